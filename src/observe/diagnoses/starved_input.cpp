// The step waits for its input: the loader is slower than the model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_starved_input(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = evidence.worst("wait_s");
    if (!step || worst == nullptr) return diagnosis_silent("step_s and wait_s in the metrics file");
    const double share = diagnosis_threshold("starved.share");
    const double wait = worst->find("wait_s")->mean, planned = evidence.planned.wait_s.value_or(0);
    const double own = std::max(*step, worst->find("step_s") ? worst->find("step_s")->mean : 0);
    // Workers of a loader that other programs keep from the processors are late like everything else: what is left is
    // what they would take on a machine of their own.
    const auto foreign = foreign_use(evidence, worst);
    const auto queue = common_queue(evidence);
    const bool beside = std::max(worst->mean("workers").value_or(0), worst->mean("processes").value_or(1) - 1) >= 1;
    const double late = beside && foreign && foreign->much && queue && queue->much
                            ? (wait - planned) * queue->share / (1 + queue->share)
                            : 0;
    const double cost = wait - planned - late;
    // A few long waits count in the mean, and are no reason to change a loader.
    const double typical = worst->find("wait_s")->high - planned;
    if (cost < share * own || typical < share * own)
        return diagnosis_ruled_out(
            fmt::format("{} a step waiting for data ({} of it){}", milliseconds_text(wait), percent_text(wait / own),
                        late > 0 ? ", as its workers wait for processors that other programs use" : ""));
    Diagnosis found{.what = fmt::format("{} a step waiting for data{}", milliseconds_text(wait),
                                        planned_text(evidence.planned.wait_s)),
                    .evidence = {fmt::format("{} of the step on rank {}", percent_text(wait / own), worst->rank)},
                    .cost_s = cost,
                    .fix = "",
                    .rank = worst->rank};
    found.figures = {deciding_figure("input_share", cost / own, "of a step", "starved.share"),
                     told_figure("wait_s", wait, "s"), told_figure("planned_s", planned, "s")};
    const auto calls = worst->mean("read_calls"), bytes = worst->mean("call_read"), disk = worst->mean("disk_read"),
               cpu = worst->mean("cpu"), workers = worst->mean("workers"), blocked = worst->mean("blocked");
    const bool small = calls && bytes && *calls > diagnosis_threshold("starved.many_reads") &&
                       *bytes / *calls < diagnosis_threshold("starved.small_read_bytes");
    if (calls && bytes && *calls > 1)
        found.evidence.push_back(fmt::format("{:.0f} reads/s of {:.1f} KB", *calls, *bytes / *calls / 1e3));
    if (disk && *disk > 1e6) found.evidence.push_back(rate_text(*disk) + " from the disk");
    if (blocked && *blocked > 0.2) found.evidence.push_back(fmt::format("{:.1f} threads wait for a device", *blocked));
    if (calls) found.figures.push_back(deciding_figure("read_calls", *calls, "reads/s", "starved.many_reads"));
    if (workers) found.figures.push_back(told_figure("workers", *workers, "processes"));
    if (workers) found.evidence.push_back(fmt::format("{:.0f} loader workers", *workers));
    if (cpu) found.evidence.push_back(fmt::format("{:.2f} processors in use", *cpu));
    // So many at work side by side that what one takes for a batch fits into the rest of the step.
    const double computing = std::max(own - wait, 0.05 * own);
    const double now = std::max(1.0, workers.value_or(0));
    const int wanted = static_cast<int>(std::min(64.0, std::ceil(now * own / computing)));
    // Workers that compute get no further than the processors there are; those that wait for a store do.
    const auto limit = worst->mean("cpu_limit") ? worst->mean("cpu_limit") : evidence.machine_cpus;
    const double processors = std::max(1.0, std::floor(limit.value_or(1)));
    // The step itself keeps about one processor at work while it does not wait; the rest is what loading takes.
    const double loading = cpu.value_or(0) - (own - wait) / own;
    const double loaders = workers.value_or(0) > 0 ? *workers : wait / own;
    const bool bound = limit && wanted > processors && loading > 0.5 * std::min(loaders, processors);
    const int more = bound ? static_cast<int>(std::max(processors, now)) : wanted;
    std::string add = fmt::format("DataLoader(..., num_workers={}, prefetch_factor=4, persistent_workers=True)", more);
    if (!workers)  // which loader that is nobody tells
        add = fmt::format("{} worker{} that prepare{} batches ahead of the step (PyTorch: {}; tf.data: prefetch)", more,
                          more == 1 ? "" : "s", more == 1 ? "s" : "", add);
    if (small)
        found.fix =
            "pack the samples into few large files (stoker prepare FOLDER --format files --to SHARDS); until then " +
            add;
    else if (bound)
        found.fix = fmt::format(
            "prepare the samples ahead (stoker prepare): at their pace {} workers would keep up, and there {} {:.0f} "
            "processor{}{}",
            wanted, processors == 1 ? "is" : "are", processors, processors == 1 ? "" : "s",
            more > now ? "; until then " + add : "");
    else
        found.fix = add + ", or prepare the samples ahead";
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
