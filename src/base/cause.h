// Why something waits, was refused or ended: one list for the log, the API and the console.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stoker {

// Stored in the journal by name; a name is never used again for something else.
enum class Cause : std::uint8_t {
    none,
    // How an attempt or a run ended.
    ok,
    user_error,    // the program said so: an exit code other than 0, or a signal of its own making
    oom,           // killed by the memory limit
    node_lost,     // the machine went away or rebooted
    device_fault,  // a GPU fell out or miscounts
    preempted,     // made room for work that goes first
    evicted,       // the cloud took a spot machine back
    no_capacity,   // nowhere to put it
    timeout,       // ran longer than it may
    lease,         // its lease ended
    quota,
    budget,
    cancelled,     // a person said so
    dependency,    // a step it needs did not succeed
    lost_contact,  // it may still run, and nobody can tell
    platform,      // ours or the engine's fault
    // Why a run waits.
    order_behind,        // others go first
    capacity_none,       // nothing is that large
    capacity_busy,       // large enough, but in use
    dependency_waiting,  // a step it needs has not ended
    backing_off,         // a try failed; the next one waits
    held,                // a person holds it
    image_pulling,       // its image is being fetched
    engine_queue,        // the engine has it and starts it later, without saying why
    node_unhealthy,      // the nodes that it needs did not pass their check, or have not been checked
    begin_later,         // it was told when to begin
    parallel_limit,      // as many of its array run as may at once
    engine_away,         // the engine that it was told to run on does not answer
    // Why a node is what it is.
    node_lemon,     // slow or repaired again and again
    node_repaired,  // a person says that it was repaired
    node_override,  // a person lets it take work all the same
};
std::string_view to_string(Cause cause);
std::string_view meaning_of(Cause cause);  // in a few words: "its lease ended"
std::vector<Cause> all_causes();
std::optional<Cause> parse_cause(std::string_view name);

}  // namespace stoker
