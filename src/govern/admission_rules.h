// Which runs are taken: rules that an operator writes, each about some of the runs, each asking something of them.
// Judged where a run is submitted, and against runs of the past before a rule is put in force.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/table.h"

namespace stoker {

inline constexpr std::size_t kMostAdmissionRules = 200;

struct AdmissionRule {
    std::string name;
    // About which runs: those that are in every list that says something.
    std::vector<std::string> organisations, projects, users, kinds, classes;
    // What is asked of them.
    std::vector<std::string> images;  // patterns, * for anything
    bool by_digest = false;           // name@sha256:...
    std::vector<std::string> engines, gpu_models, machines;
    std::optional<int> most_ranks, most_nodes, most_gpus;
    std::optional<Seconds> longest;   // it may not last longer, whoever renews its lease
    std::vector<std::string> labels;  // KEY, or KEY=A|B
    bool checkpoints = false;
    std::string remedy;  // what to do, in the operator's words
    std::map<std::string, SourcePos> at;
};
using AdmissionRules = std::vector<AdmissionRule>;

RecordTable<AdmissionRule> admission_rule_table();
// What a table cannot say: names that are there twice, rules that ask nothing, kinds that there are not.
void check_admission_rules(const AdmissionRules& rules, Problems& problems);
// Equal when the rules are.
std::string exact_text(const AdmissionRules& rules);
// "runs of hospital that are notebooks: at most 1 GPUs"
std::string in_words(const AdmissionRule& rule);

// A run, as far as rules ask.
struct AdmissionSubject {
    std::string organisation, project, user, kind, run_class;
    std::string image, engine, gpu_model, machine;  // machine: of the plan that it was submitted from
    int ranks = 1, nodes = 0, gpus = 0;             // gpus: of all ranks
    std::int64_t longest_s = 0;                     // 0: nothing ends it
    bool checkpoints = false;
    const std::map<std::string, std::string>* labels = nullptr;
    std::string step;  // of a graph
};
struct AdmissionRefusal {
    std::string rule, message, remedy;
    SourcePos pos;  // of the rule
};
// Some run there could be meant. An empty project: of any in the organisation.
bool may_be_about(const AdmissionRule& rule, const std::string& organisation, const std::string& project);
std::vector<AdmissionRefusal> judge(const AdmissionRules& rules, const AdmissionSubject& subject);

// * stands for any text; compared without case.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace stoker
