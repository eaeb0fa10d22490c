#include "base/cause.h"

#include <array>
#include <utility>

namespace stoker {
namespace {

constexpr std::array kCauses = {
    std::pair{Cause::none, std::string_view("none")},
    std::pair{Cause::ok, std::string_view("ok")},
    std::pair{Cause::user_error, std::string_view("user_error")},
    std::pair{Cause::oom, std::string_view("oom")},
    std::pair{Cause::node_lost, std::string_view("node_lost")},
    std::pair{Cause::device_fault, std::string_view("device_fault")},
    std::pair{Cause::preempted, std::string_view("preempted")},
    std::pair{Cause::evicted, std::string_view("evicted")},
    std::pair{Cause::no_capacity, std::string_view("no_capacity")},
    std::pair{Cause::timeout, std::string_view("timeout")},
    std::pair{Cause::lease, std::string_view("lease")},
    std::pair{Cause::quota, std::string_view("quota")},
    std::pair{Cause::budget, std::string_view("budget")},
    std::pair{Cause::cancelled, std::string_view("cancelled")},
    std::pair{Cause::dependency, std::string_view("dependency")},
    std::pair{Cause::lost_contact, std::string_view("lost_contact")},
    std::pair{Cause::platform, std::string_view("platform")},
    std::pair{Cause::order_behind, std::string_view("order_behind")},
    std::pair{Cause::capacity_none, std::string_view("capacity_none")},
    std::pair{Cause::capacity_busy, std::string_view("capacity_busy")},
    std::pair{Cause::dependency_waiting, std::string_view("dependency_waiting")},
    std::pair{Cause::backing_off, std::string_view("backing_off")},
    std::pair{Cause::held, std::string_view("held")},
};

}  // namespace

std::string_view to_string(Cause cause) {
    for (const auto& [value, name] : kCauses)
        if (value == cause) return name;
    return "none";
}

std::optional<Cause> parse_cause(std::string_view name) {
    for (const auto& [value, known] : kCauses)
        if (known == name) return value;
    return std::nullopt;
}

}  // namespace stoker
