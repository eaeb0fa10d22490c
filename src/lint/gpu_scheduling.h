// The three settings that decide together whether GPU pods find their nodes: the pool's taint, the device plugin and
// the pod's toleration.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lint/file.h"
#include "lint/knowledge.h"

namespace stoker::lint {

enum class Certainty : std::uint8_t { no, yes, unknown };
std::string_view to_string(Certainty certainty);

struct SchedulingPart {
    Certainty there = Certainty::unknown;
    std::string what;  // "sku=gpu:NoSchedule"
    std::string path;  // where it is written; empty: nowhere
    Place place;
};
struct SchedulingVerdict {
    std::string folder;
    SchedulingPart taint, plugin, toleration;
    Certainty runs = Certainty::unknown;  // the pods get onto GPU nodes
    std::string text;                     // the three parts and what follows, in a sentence
};

// Nothing for a bundle without GPU pools or without pods that ask for GPUs: there is nothing to join.
std::optional<SchedulingVerdict> scheduling_verdict(const Bundle& bundle, const Knowledge& knowledge);

}  // namespace stoker::lint
