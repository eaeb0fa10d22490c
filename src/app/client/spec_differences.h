// What several runs were told that is not the same.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/spec/run_spec.h"

namespace stoker {

struct Difference {
    std::string path;                 // "environment.LR", "per_rank.gpus", "command"
    std::vector<std::string> values;  // of each in turn, as JSON; empty: it has none
};

// By path, in order. Mappings are looked into, lists are compared whole.
std::vector<Difference> differences_of(const std::vector<Json>& texts, const std::set<std::string>& left_out = {});
// Of specs, without what is no part of what was asked for: its prediction, and labels that Stoker set itself.
std::vector<Difference> spec_differences(const std::vector<const RunSpec*>& specs, std::set<std::string> left_out = {});

}  // namespace stoker
