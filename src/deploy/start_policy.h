// What its owner says about starting the work beside what it is: how often again, who goes first, where its steps are
// seen. The engine that starts it and the file that is rendered of it are told the same.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

// In this order: who goes first.
enum class RunClass : std::uint8_t { guaranteed, interactive, spot };
// A gang on several nodes: on as few switches as there is room for, or on one switch or not at all.
enum class TopologyWish : std::uint8_t { prefer, require };

constexpr std::array<std::pair<RunClass, std::string_view>, 3> enum_names(RunClass) {
    return {{{RunClass::guaranteed, "guaranteed"}, {RunClass::interactive, "interactive"}, {RunClass::spot, "spot"}}};
}
constexpr std::array<std::pair<TopologyWish, std::string_view>, 2> enum_names(TopologyWish) {
    return {{{TopologyWish::prefer, "prefer"}, {TopologyWish::require, "require"}}};
}

// Where its steps are seen, beside STOKER_METRICS_FILE (observe/step_file.h).
struct ObserveSpec {
    std::string heartbeat;     // a file; relative: below the working directory
    std::string step_pattern;  // of a line of its output
    friend bool operator==(const ObserveSpec&, const ObserveSpec&) = default;
};

template <class V>
void fields(V& visit, ObserveSpec& spec) {
    visit("heartbeat", spec.heartbeat);
    visit("step_pattern", spec.step_pattern);
}

struct StartPolicy {
    int restarts = 0;           // after errors of its own and out of memory
    int attempts = 20;          // whatever the cause
    std::int64_t grace_s = 30;  // between TERM and KILL
    std::vector<int> transient_exit_codes = {75};
    std::optional<TopologyWish> topology;
    std::optional<std::int64_t> queue_timeout_s;
    RunClass run_class = RunClass::guaranteed;
    int priority = 0;
    std::map<std::string, std::string> labels;
    std::optional<ObserveSpec> observe;
    friend bool operator==(const StartPolicy&, const StartPolicy&) = default;
};

}  // namespace stoker
