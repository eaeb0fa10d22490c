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
    std::vector<std::string> engines, regions, residency, gpu_models, machines;
    std::optional<int> most_ranks, most_nodes, most_gpus, most_node_gpus;
    std::optional<Seconds> longest;   // it may not last longer, whoever renews its lease
    std::vector<std::string> labels;  // KEY, or KEY=A|B
    bool checkpoints = false;
    std::string remedy;  // what to do, in the operator's words
    std::map<std::string, SourcePos> at;
};
using AdmissionRules = std::vector<AdmissionRule>;

// An engine that a run may go to, and where that stands; an empty region: nobody said.
struct EnginePlace {
    std::string name, region;
    friend bool operator==(const EnginePlace&, const EnginePlace&) = default;
};
// What is in force: the rules, and where the engines of the installation stand.
struct AdmissionPolicy {
    AdmissionRules rules;
    std::vector<EnginePlace> engines;  // in the order of the configuration; those that it says nothing of are left out
    // Whether a place (a geography, a country, eu, a region) contains a region. Told by whoever has a catalogue.
    bool (*lies_in)(std::string_view place, std::string_view region) = nullptr;
};

RecordTable<AdmissionRule> admission_rule_table();
// What a table cannot say: names that are there twice, rules that ask nothing, kinds that there are not.
void check_admission_rules(const AdmissionRules& rules, Problems& problems);
// Equal when the rules are.
std::string exact_text(const AdmissionRules& rules);
// As the list that admission_rule_table() reads, one rule a line.
std::string rules_text(const AdmissionRules& rules);
// "runs of hospital that are notebooks: at most 1 GPUs"
std::string in_words(const AdmissionRule& rule);

// A run, as far as rules ask.
struct AdmissionSubject {
    std::string organisation, project, user, kind, run_class;
    std::string image, gpu_model, machine;  // machine: of the plan that it was submitted from
    std::vector<EnginePlace> engines;       // all that it may go to: it goes to the first that has room
    int ranks = 1, nodes = 0, gpus = 0;     // gpus: of all ranks
    std::int64_t longest_s = 0;             // 0: nothing ends it
    bool checkpoints = false;
    const std::map<std::string, std::string>* labels = nullptr;
    std::string step;   // of a graph
    int node_gpus = 0;  // of the node with the most GPUs on which it could be put, and that one's name
    std::string widest_node;
    bool (*lies_in)(std::string_view place, std::string_view region) = nullptr;  // of AdmissionPolicy
    // Of a plan: what it is not yet known to be (its image, its owner's labels, how long it lasts) is not asked.
    bool planned = false;
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
bool any_matches(const std::vector<std::string>& patterns, std::string_view text);
// The classes of runs, as rules name them.
const std::vector<std::string>& class_words();
// Each pattern of a rule's key meets one of the words that there are; `section`: of the configuration.
void check_patterns(std::string_view section, std::string_view key, const std::vector<std::string>& given,
                    const std::vector<std::string>& words, const SourcePos& pos, Problems& problems);

}  // namespace stoker
