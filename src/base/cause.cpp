#include "base/cause.h"

#include <array>

namespace stoker {
namespace {

struct CauseWords {
    Cause cause;
    std::string_view name, meaning;
};

constexpr std::array kCauses = {
    CauseWords{Cause::none, "none", "it does not wait, and nothing is wrong"},
    CauseWords{Cause::ok, "ok", "it ended well"},
    CauseWords{Cause::user_error, "user_error",
               "the program said so: an exit code other than 0, or a signal of its own making"},
    CauseWords{Cause::oom, "oom", "it took more memory than its limit and was killed for that"},
    CauseWords{Cause::node_lost, "node_lost", "the machine went away or rebooted"},
    CauseWords{Cause::device_fault, "device_fault", "a GPU fell out or miscounts"},
    CauseWords{Cause::preempted, "preempted", "it made room for work that goes first"},
    CauseWords{Cause::evicted, "evicted", "the cloud takes the machine back"},
    CauseWords{Cause::no_capacity, "no_capacity", "there was nowhere to put it"},
    CauseWords{Cause::timeout, "timeout", "it ran longer than it may"},
    CauseWords{Cause::lease, "lease", "its lease ended"},
    CauseWords{Cause::quota, "quota", "a quota is used up"},
    CauseWords{Cause::budget, "budget", "a budget is used up"},
    CauseWords{Cause::cancelled, "cancelled", "a person said so"},
    CauseWords{Cause::dependency, "dependency", "a step that it needs did not succeed"},
    CauseWords{Cause::lost_contact, "lost_contact", "it may still run, and nobody can tell"},
    CauseWords{Cause::platform, "platform", "the fault is ours or the engine's"},
    CauseWords{Cause::order_behind, "order_behind", "others go first, and starting it would delay them"},
    CauseWords{Cause::capacity_none, "capacity_none", "nothing that takes work is large enough, even when idle"},
    CauseWords{Cause::capacity_busy, "capacity_busy", "something is large enough, but in use"},
    CauseWords{Cause::dependency_waiting, "dependency_waiting", "a step that it needs has not ended"},
    CauseWords{Cause::backing_off, "backing_off", "a try failed, and the next one waits a little"},
    CauseWords{Cause::held, "held", "a person holds it"},
    CauseWords{Cause::image_pulling, "image_pulling", "its image is being fetched"},
    CauseWords{Cause::engine_queue, "engine_queue", "the engine has it in its own queue, and starts it later"},
    CauseWords{Cause::node_unhealthy, "node_unhealthy",
               "a node did not pass its health check, or has not been checked"},
    CauseWords{Cause::begin_later, "begin_later", "it was told to begin later"},
    CauseWords{Cause::engine_away, "engine_away", "the engine that it is to run on does not answer"},
    CauseWords{Cause::parallel_limit, "parallel_limit", "as many runs of its array or graph run as may at once"},
    CauseWords{Cause::node_lemon, "node_lemon", "a node was the slowest, or was repaired, again and again"},
    CauseWords{Cause::node_repaired, "node_repaired", "a person said that the node was repaired"},
    CauseWords{Cause::node_override, "node_override", "a person lets the node take work, whatever its check said"},
};

}  // namespace

std::string_view to_string(Cause cause) {
    for (const CauseWords& each : kCauses)
        if (each.cause == cause) return each.name;
    return "none";
}

std::string_view meaning_of(Cause cause) {
    for (const CauseWords& each : kCauses)
        if (each.cause == cause) return each.meaning;
    return "";
}

std::vector<Cause> all_causes() {
    std::vector<Cause> causes;
    for (const CauseWords& each : kCauses) causes.push_back(each.cause);
    return causes;
}

std::optional<Cause> parse_cause(std::string_view name) {
    for (const CauseWords& each : kCauses)
        if (each.name == name) return each.cause;
    return std::nullopt;
}

}  // namespace stoker
