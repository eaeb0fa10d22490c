// The bytes of the collectives do not go over the device that the run names for them.
#include <fmt/format.h>

#include "observe/causes/rule_text.h"

namespace stoker {

// Of a run whose ranks are all on one machine and which names loopback: what leaves the machine is wrong. Which device
// of several carries them is not measured, so more is not claimed.
CauseVerdict judge_wrong_interface(const Evidence& evidence) {
    const auto step = evidence.step_s();
    const auto loopback = evidence.mean("net_loopback"), sent = evidence.mean("net_sent");
    if (!step || !evidence.planned.interface || !loopback || !sent)
        return cause_silent("GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME of the run, and net_sent");
    constexpr double kTraffic = 1e6;  // bytes/s; less is no gradient
    const bool wants_loopback = *evidence.planned.interface == "lo";
    const double right = wants_loopback ? *loopback : *sent, other = wants_loopback ? *sent : *loopback;
    if (other < kTraffic || other < 4 * right)
        return cause_ruled_out(
            fmt::format("{} over {}, {} over others", rate_text(right), *evidence.planned.interface, rate_text(other)));
    return cause_found(
        {.cause = "wrong-interface",
         .what = fmt::format("{} go over {} where {} was named", rate_text(other),
                             wants_loopback ? "a network device" : "loopback", *evidence.planned.interface),
         .evidence = {rate_text(right) + " over " + *evidence.planned.interface},
         .cost_s = evidence.mean("allreduce_s").value_or(0),
         .fix = fmt::format("set GLOO_SOCKET_IFNAME={} where the program sets another", *evidence.planned.interface),
         .rank = {}});
}

}  // namespace stoker
