// The bytes of the collectives do not go over the device that the run names for them.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"
#include "observe/proc_text.h"

namespace stoker {

// What goes over other devices than the named ones. Ranks of one machine reach each other over loopback whatever is
// named, so loopback is no wrong device; it is the right one where it is named, and what leaves the machine then is
// wrong.
DiagnosisVerdict judge_wrong_interface(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto named = evidence.mean("net_named"), sent = evidence.mean("net_sent"),
               loopback = evidence.mean("net_loopback");
    if (!step || !evidence.planned.interface || !named || !sent || !loopback)
        return diagnosis_silent("GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME of the run, and net_named");
    constexpr double kTraffic = 1e6;  // bytes/s; less is no gradient
    const bool within = names_interface(*evidence.planned.interface, "lo");
    const double other = within ? *sent - (*named - *loopback) : *sent - *named;
    if (other < kTraffic || other < 4 * *named)
        return diagnosis_ruled_out(fmt::format("{} over {}, {} over other devices, {} within the machine",
                                               rate_text(*named), *evidence.planned.interface,
                                               rate_text(std::max(0.0, other)), rate_text(*loopback)));
    return diagnosis_found(
        {.what = fmt::format("{} go over other devices than {}, which was named", rate_text(other),
                             *evidence.planned.interface),
         .evidence = {fmt::format("{} over {}", rate_text(*named), *evidence.planned.interface)},
         .cost_s = std::max(0.0, evidence.mean("allreduce_s").value_or(0) - evidence.planned.collectives_s.value_or(0)),
         .fix = fmt::format("look for where the program sets another device; it should leave "
                            "GLOO_SOCKET_IFNAME={} alone",
                            *evidence.planned.interface),
         .rank = {},
         .figures = {
             {.name = "other_devices", .value = other, .unit = "bytes/s", .threshold = std::max(kTraffic, 4 * *named)},
             told_figure("named_device", *named, "bytes/s")}});
}

}  // namespace stoker
