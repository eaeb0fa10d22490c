// A board that is about to fail or has; and one that is shared, in its memory or its multiprocessors.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/gpu_text.h"
#include "observe/xid_actions.h"

namespace stoker {

namespace {

// The highest of what was seen, however short it was.
double most_of(const RankEvidence& rank, std::string_view name) {
    double most = rank.mean(name).value_or(0);
    if (const MeasureSpread* spread = rank.find(name)) most = std::max(most, spread->high);
    for (const CoursePoint& point : rank.course(name)) most = std::max(most, point.max);
    return most;
}

// The rank that has most of it; none: nobody tells.
const RankEvidence* rank_with_most(const RunEvidence& evidence, std::string_view name) {
    const RankEvidence* worst = nullptr;
    for (const RankEvidence* rank : gpu_ranks(evidence))
        if (rank->find(name) != nullptr && (worst == nullptr || most_of(*rank, name) > most_of(*worst, name)))
            worst = rank;
    return worst;
}

}  // namespace

DiagnosisVerdict judge_gpu_error(const RunEvidence& evidence) {
    const auto ranks = gpu_ranks(evidence);
    if (ranks.empty()) return no_gpu_here();
    for (const RankEvidence* rank : ranks) {
        const double lost = most_of(*rank, "gpu_lost"), xid = most_of(*rank, "gpu_xid");
        if (lost < 0.01 && xid < 0.5) continue;
        const int code = static_cast<int>(xid + 0.5);
        const XidAction action = xid_action(code);
        Diagnosis found{.what = lost >= 0.01 ? fmt::format("{} does not answer any more", gpu_of(*rank))
                                             : fmt::format("the driver reports Xid {} on {}", code, gpu_of(*rank)),
                        .evidence = {},
                        .fix = {},
                        .rank = rank->rank};
        if (code > 0) {
            found.evidence.push_back(fmt::format("Xid {}: {}", code, to_string(action.kind)));
            found.fix = std::string(action.action);
            found.figures.push_back(told_figure("xid", code, "code"));
        }
        if (lost >= 0.01) {
            found.evidence.push_back("its figures are no longer told");
            if (found.fix.empty()) found.fix = "dmesg | grep -i xid; drain the node and restart it";
        }
        found.stops = lost >= 0.01 || action.kind == XidClass::reset_gpu || action.kind == XidClass::restart_machine;
        return diagnosis_found(std::move(found));
    }
    return diagnosis_ruled_out("the driver reports no error on the GPUs of the run");
}

DiagnosisVerdict judge_gpu_memory_errors(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence *corrected = worst_gpu(evidence, "gpu_ecc_corrected"),
                       *broken = rank_with_most(evidence, "gpu_ecc_uncorrected"),
                       *pending = rank_with_most(evidence, "gpu_remap_pending");
    if (corrected == nullptr && broken == nullptr && pending == nullptr)
        return diagnosis_silent("counters of memory errors (gpu_ecc_corrected); cards without ECC have none");
    const double errors = broken == nullptr ? 0 : most_of(*broken, "gpu_ecc_uncorrected"),
                 waits = pending == nullptr ? 0 : most_of(*pending, "gpu_remap_pending"),
                 rate = corrected == nullptr ? 0 : *corrected->mean("gpu_ecc_corrected");
    if (errors < 0.5 && waits < 0.5 && rate < diagnosis_threshold("gpu.ecc_rate"))
        return diagnosis_ruled_out("memory of the GPUs tells of no errors that count");
    const RankEvidence& rank = errors >= 0.5 ? *broken : waits >= 0.5 ? *pending : *corrected;
    Diagnosis found{
        .what = errors >= 0.5  ? fmt::format("memory of {} has errors that were not corrected", gpu_of(rank))
                : waits >= 0.5 ? fmt::format("rows of memory of {} wait to be replaced", gpu_of(rank))
                               : fmt::format("memory of {} corrects {:.2g} errors a second", gpu_of(rank), rate),
        .evidence = {},
        .fix = errors >= 0.5
                   ? "drain the node and reset the GPU (nvidia-smi --gpu-reset); what was computed since may be wrong: "
                     "resume from a checkpoint before it"
                   : "reset the GPU when it is free, so that its rows are replaced (nvidia-smi --gpu-reset); when it "
                     "comes again, hand the board back",
        .rank = rank.rank};
    if (errors >= 0.5) found.evidence.push_back(fmt::format("{:.0f} not corrected since the run was watched", errors));
    if (waits >= 0.5) found.evidence.emplace_back("a replacement of rows is pending");
    if (rate > 0) found.evidence.push_back(fmt::format("{:.2g} corrected a second", rate));
    found.figures = {deciding_figure("ecc_corrected", rate, "errors/s", "gpu.ecc_rate"),
                     told_figure("ecc_uncorrected", errors, "errors"), told_figure("remap_pending", waits, "boards")};
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_gpu_neighbour(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence* rank = worst_gpu(evidence, "gpu_other_sm");
    const RankEvidence* shared = worst_gpu(evidence, "gpu_other_instances");
    const RankEvidence* held = rank_with_most(evidence, "gpu_other");
    const double others = held == nullptr ? 0 : most_of(*held, "gpu_other");
    if (rank == nullptr && held != nullptr && others >= 0.5)
        return diagnosis_silent(
            fmt::format("how much the {:.0f} other processes on {} work there (gpu_other_sm); the driver does not tell",
                        others, gpu_of(*held)));
    if (rank == nullptr && shared == nullptr)
        return diagnosis_silent("the processes on the GPUs, by pids of this machine");
    const double sm = rank == nullptr ? 0 : *rank->mean("gpu_other_sm");
    if (sm >= diagnosis_threshold("gpu.other_sm")) {
        Diagnosis found{
            .what = fmt::format("programs of others work on {} for {} of the time", gpu_of(*rank), percent_text(sm)),
            .evidence = {fmt::format("{:.0f} processes that are no ranks of the run",
                                     rank->mean("gpu_other").value_or(1))},
            .cost_s = gpu_work_s(*rank).value_or(0) * std::min(1.0, sm),
            .fix =
                "stoker gpu processes says whose they are; end them, or run on a GPU of its own (a MIG instance "
                "keeps neighbours apart, MPS and time slices do not)",
            .rank = rank->rank};
        found.figures = {deciding_figure("other_sm", sm, "of the time", "gpu.other_sm")};
        return diagnosis_found(std::move(found));
    }
    if (held != nullptr && others < 0.5) return diagnosis_ruled_out("no other program is on the GPUs");
    return diagnosis_ruled_out(sm > 0 || rank != nullptr
                                   ? fmt::format("{:.0f} other process{} on the GPUs, at work {} of the time", others,
                                                 others < 1.5 ? " is" : "es are", percent_text(sm))
                                   : fmt::format("{:.0f} other instances of the board are held; each has its own part",
                                                 shared->mean("gpu_other_instances").value_or(0)));
}

DiagnosisVerdict judge_gpu_fragmentation(const RunEvidence& evidence) {
    const RankEvidence* rank = evidence.worst("cuda_reserved");
    if (rank == nullptr)
        return gpu_ranks(evidence).empty() ? no_gpu_here()
                                           : diagnosis_silent("cuda_reserved of the allocator (stoker_torch)");
    const double reserved = *rank->mean("cuda_reserved"), used = rank->mean("cuda_peak").value_or(reserved),
                 whole = rank->mean("gpu_memory_size").value_or(rank->mean("cuda_size").value_or(0));
    const MeasureSpread* retries = rank->find("cuda_retries");
    const double again = retries == nullptr ? 0 : retries->high - retries->low;
    const double unused = reserved > 0 ? 1 - used / reserved : 0;
    const bool full = whole > 0 && reserved / whole >= diagnosis_threshold("gpu.memory_full");
    if (again < 1 && !(full && unused >= diagnosis_threshold("gpu.unused_share")))
        return diagnosis_ruled_out(
            fmt::format("the allocator holds {}, {} of it never used at once, and was never short", size_text(reserved),
                        percent_text(std::max(0.0, unused))));
    Diagnosis found{
        .what = again >= 1 ? fmt::format("the allocator of rank {} ran out of memory and freed its cache {:.0f} times",
                                         rank->rank, again)
                           : fmt::format("device memory of rank {} is in pieces: {} are held, {} at most used",
                                         rank->rank, size_text(reserved), size_text(used)),
        .evidence = {fmt::format("{} held of {}, {} used at the peak", size_text(reserved), size_text(whole),
                                 size_text(used))},
        .fix =
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, sizes that do not change from step to step (pad to "
            "a few lengths), and a batch that leaves a tenth of the memory free",
        .rank = rank->rank};
    found.figures = {deciding_figure("unused_share", std::max(0.0, unused), "of what is held", "gpu.unused_share"),
                     told_figure("retries", again, "times")};
    // A freed cache is filled again by allocations that wait for the device: what the longest steps took beyond a
    // usual.
    const auto longest = rank->mean("longest_s"), usual = rank->mean("compute_s");
    if (again >= 1 && evidence.steady && evidence.steady->steps > 0 && longest && usual)
        found.cost_s = std::max(0.0, *longest - *usual) * std::min(1.0, again / evidence.steady->steps);
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
