// A GPU that waits: for the host that launches its work, for data, or for something that is not told.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/gpu_text.h"

namespace stoker {

namespace {

// Of the ranks with GPUs the one that idles most; not one that is late, which the others' collectives wait for.
struct Idle {
    const RankEvidence* rank = nullptr;
    double seconds = 0, share = 0;  // of a step
};
std::optional<Idle> idle_of(const RunEvidence& evidence) {
    std::optional<Idle> most;
    for (const RankEvidence* rank : gpu_ranks(evidence)) {
        const auto seconds = gpu_idle_s(*rank), step = rank->mean("step_s");
        if (!seconds || !step || *step <= 0) continue;
        if (!most || *seconds / *step > most->share) most = Idle{rank, *seconds, *seconds / *step};
    }
    return most;
}

enum class IdleWhy { host, input, unknown };
// One thread launches the work of a rank, and where it is at its limit the GPU waits for it. Readers beside it, or
// bytes that come in, speak of data; a program that tells how long it waits for data is believed, and counted before.
IdleWhy why_idle(const RankEvidence& rank) {
    const double cpu = rank.mean("cpu").value_or(0);
    const double read = std::max(rank.mean("disk_read").value_or(0), rank.mean("call_read").value_or(0));
    const bool reads = read >= diagnosis_threshold("gpu.input_bytes") || rank.mean("blocked").value_or(0) >= 0.5;
    if (!rank.mean("wait_s") && (reads || cpu >= diagnosis_threshold("gpu.loader_cpu"))) return IdleWhy::input;
    return cpu >= diagnosis_threshold("gpu.host_cpu") ? IdleWhy::host : IdleWhy::unknown;
}

DiagnosisVerdict idle_because(const RunEvidence& evidence, IdleWhy wanted) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const auto idle = idle_of(evidence);
    if (!idle) return diagnosis_silent("load of the GPUs and time of steps (gpu_util, step_s)");
    if (idle->share < diagnosis_threshold("gpu.idle_share"))
        return diagnosis_ruled_out(fmt::format("the GPU idles {} of a step", percent_text(idle->share)));
    const RankEvidence& rank = *idle->rank;
    if (why_idle(rank) != wanted)
        return diagnosis_ruled_out(fmt::format("{} idles {} of a step, and {}", gpu_of(rank), percent_text(idle->share),
                                               why_idle(rank) == IdleWhy::host    ? "its host is at its limit"
                                               : why_idle(rank) == IdleWhy::input ? "its host reads"
                                                                                  : "its host is at rest"));
    Diagnosis found{.what = {}, .evidence = {}, .cost_s = idle->seconds, .fix = {}, .rank = rank.rank};
    if (gpu_ranks(evidence).size() == evidence.ranks.size() && evidence.ranks.size() > 1) {
        bool alike = true;
        for (const RankEvidence& each : evidence.ranks)
            if (const auto seconds = gpu_idle_s(each); !seconds || *seconds < 0.5 * idle->seconds) alike = false;
        if (alike) found.rank.reset();
    }
    found.figures = {deciding_figure("gpu_idle_share", idle->share, "of a step", "gpu.idle_share"),
                     told_figure("gpu_util", *rank.mean("gpu_util"), "of the time")};
    found.evidence = {fmt::format("{} is busy {} of the time", gpu_of(rank), percent_text(*rank.mean("gpu_util")))};
    const auto cpu = rank.mean("cpu");
    if (cpu) found.evidence.push_back(fmt::format("{:.2f} processors in use by the rank", *cpu));
    if (cpu) found.figures.push_back(told_figure("cpu", *cpu, "processors"));
    const std::string time = milliseconds_text(idle->seconds);
    if (wanted == IdleWhy::host) {
        found.what = fmt::format("the GPU idles {} a step while the host launches its work", time);
        found.fix =
            "fewer and larger launches: torch.compile(model, mode=\"reduce-overhead\") or CUDA graphs, a larger "
            "batch on each GPU, fused optimizer (fused=True), and no .item(), .cpu() or print of a tensor in the "
            "step";
    } else if (wanted == IdleWhy::input) {
        const double read = std::max(rank.mean("disk_read").value_or(0), rank.mean("call_read").value_or(0));
        if (read > 1e6) found.evidence.push_back(rate_text(read) + " are read");
        found.what = fmt::format("the GPU idles {} a step while its data are read and prepared", time);
        found.fix =
            "DataLoader(..., num_workers=8, pin_memory=True, prefetch_factor=4, persistent_workers=True), or prepare "
            "the samples ahead (stoker prepare); stoker_torch tells how long a step waits for data";
    } else {
        found.what = fmt::format("the GPU idles {} a step, and its host does not compute either", time);
        found.fix =
            "both wait for something: stoker_torch in the training tells apart data, collectives, checkpoints and "
            "syncs; py-spy dump --pid shows where it stands";
    }
    return diagnosis_found(std::move(found));
}

}  // namespace

DiagnosisVerdict judge_gpu_host_bound(const RunEvidence& evidence) {
    return idle_because(evidence, IdleWhy::host);
}
DiagnosisVerdict judge_gpu_starved(const RunEvidence& evidence) {
    return idle_because(evidence, IdleWhy::input);
}
DiagnosisVerdict judge_gpu_idle(const RunEvidence& evidence) {
    return idle_because(evidence, IdleWhy::unknown);
}

}  // namespace stoker
