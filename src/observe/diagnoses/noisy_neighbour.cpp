// Programs that are no part of the run take the processors that its ranks compute on.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_noisy_neighbour(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto foreign = foreign_use(evidence);
    const auto queue = common_queue(evidence);
    if (!step || !foreign) return diagnosis_silent("step_s, foreign_cpu, cpu and run_wait");
    const bool stolen = foreign->stolen >= diagnosis_threshold("neighbour.steal_share");
    if (!foreign->much || (!stolen && (!queue || !queue->much)))
        return diagnosis_ruled_out(
            fmt::format("other programs use {:.2f} processors, {} of the machine; {}", foreign->processors,
                        percent_text(foreign->share),
                        queue ? fmt::format("ready threads wait {}, {} of a step at most", queue_text(queue->share),
                                            milliseconds_text(queue->cost_s))
                              : std::string("how long ready threads wait is not known")));
    const auto crowd = own_crowd(evidence);
    if (crowd && crowd->fills && !stolen)
        return diagnosis_ruled_out(
            fmt::format("{:.1f} threads of the run are ready for {:.0f} processors, whoever else is there",
                        crowd->ready, crowd->processors));
    const double theirs = crowd ? 1 - crowd->part_beside(foreign->processors) : 1;
    const double wait = evidence.mean("run_wait").value_or(0), cpu = evidence.mean("cpu").value_or(0);
    Diagnosis found{.what = fmt::format("other programs use {:.2f} of {:.0f} processors, and the ranks wait for them",
                                        foreign->processors, *evidence.machine_cpus),
                    .evidence = {fmt::format("{:.2f} s per second in the run queue, {:.2f} processors in use by a rank",
                                             wait, cpu)},
                    .cost_s = queue ? queue->cost_s * theirs : 0,
                    .fix = "stop the other work (top -o %CPU), or run on a machine of its own",
                    .rank = {}};
    found.figures = {deciding_figure("foreign_share", foreign->share, "of the machine", "neighbour.cpu_share"),
                     told_figure("foreign_cpu", foreign->processors, "processors")};
    if (queue) found.cost_range = {theirs * queue->least_s, theirs * queue->most_s};
    if (queue)
        found.figures.push_back(
            deciding_figure("queue_share", queue->share, "of the processor time", "cpu.queue_share"));
    if (foreign->stolen >= diagnosis_threshold("neighbour.steal_share")) {
        found.figures.push_back(
            deciding_figure("steal_share", foreign->stolen, "of the machine", "neighbour.steal_share"));
        found.evidence.push_back(fmt::format("the hypervisor takes {} of the machine", percent_text(foreign->stolen)));
        found.cost_s = std::max(found.cost_s, *step * foreign->stolen);
        found.cost_range = {};
    }
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
