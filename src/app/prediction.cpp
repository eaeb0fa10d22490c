#include "app/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/this_machine.h"
#include "catalog/this_machine.h"
#include "io/machine.h"

namespace stoker {
namespace {

MachineSpeed known_speed(const Session& session, const Machine& machine) {
    const auto path = this_machine_path();
    if (path) {
        if (auto speed = load_speed(*path, machine)) return std::move(*speed);
    }
    MachineSpeed speed = measure_machine(machine, true);
    if (path) (void)save_speed(*path, machine, speed, session.today);  // the next run need not measure
    return speed;
}

// One rank as a machine of its own: the ranks of one host see each other over its loopback device.
int add_rank_as_machine(const Machine& machine, const MachineSpeed& speed, int ranks, const RankNeeds& needs,
                        Catalog& catalog) {
    const double all = std::max(1, machine.usable_cores());
    const double cores = std::clamp(static_cast<double>(needs.cpu_milli) / 1000, 0.001, all);
    // Ranks that ask for more than there is share what there is.
    const double share = std::min(cores, all / ranks) / all;
    const double memory = machine.usable_memory().v;
    return add_this_machine(
        {.cpu_name = machine.model,
         .vcpus = std::max(1, static_cast<int>(std::floor(cores))),
         .cores = std::max(1, static_cast<int>(std::floor(cores))),
         .ghz = machine.mhz / 1000,
         .measured_fp32_gflops = speed.matmul_flops.max * share / 1e9,
         .measured_memory_gb_s = speed.triad_bytes.max * share / 1e9,
         .memory = Bytes(needs.memory_bytes > 0 ? std::min<double>(memory, needs.memory_bytes) : memory / ranks),
         .instances = ranks},
        catalog);
}

// What the run does is not the planner's to choose: its ranks, each with its part of the batch at once.
Workload pinned(const Workload& workload, int ranks) {
    Workload pinned = workload;
    pinned.where.clouds = {"this-machine"};
    pinned.where.sizes = {"this-machine"};
    pinned.where.regions.clear();
    pinned.where.residency.clear();
    pinned.where.accelerators.clear();
    pinned.where.gpus.reset();
    pinned.where.max_nodes.reset();
    pinned.where.nodes = ranks;
    pinned.where.spot = SpotUse::never;
    pinned.objective.deadline.reset();
    pinned.objective.budget.reset();
    LayoutSpec& layout = pinned.layout;
    layout.tensor = layout.pipeline = layout.context = layout.expert = 1;
    layout.data = ranks;
    layout.zero = layout.zero.value_or(0);
    if (!layout.recompute) layout.recompute = "none";
    layout.sequence_parallel = layout.offload = false;
    if (!layout.micro_batch && pinned.batch.micro) layout.micro_batch = pinned.batch.micro;
    if (!layout.micro_batch) layout.micro_batch = pinned.batch.global_examples.value_or(ranks) / ranks;
    return pinned;
}

PredictionSpec spec_from(const Candidate& candidate, const Workload& workload, const Catalog& catalog, int ranks) {
    const Prediction& p = candidate.prediction;
    PredictionSpec spec;
    spec.machine = "this-machine";
    spec.nodes = 1;
    spec.layout = fmt::format("data parallel over {} rank{}", ranks, ranks == 1 ? "" : "s");
    spec.step_s = p.step_s.mid, spec.step_low_s = p.step_s.low, spec.step_high_s = p.step_s.high;
    for (int i = 0; i < kTimeTerms; ++i) {
        const double seconds = p.seconds[static_cast<std::size_t>(i)];
        if (seconds > 0) spec.step_terms.push_back({std::string(info(static_cast<TimeTerm>(i)).name), seconds});
    }
    const double batch = candidate.layout.global_batch();
    spec.tokens_per_step = batch * workload.sequence();
    if (const auto setup = make_training_setup(workload, catalog, make_device(catalog, candidate.node_type)))
        spec.flops_per_step = model_flops(*setup, batch);
    spec.steps = p.steps;
    // Nothing is provisioned and nobody takes this machine away.
    spec.run_s = p.steps * p.step_s.mid, spec.run_low_s = p.steps * p.step_s.low,
    spec.run_high_s = p.steps * p.step_s.high;
    spec.memory_bytes = static_cast<std::int64_t>(p.memory_bytes.mid);
    spec.mfu = p.mfu;
    spec.bottleneck = to_string(p.bottleneck);
    spec.catalogue = catalog.version;
    return spec;
}

}  // namespace

PredictedRun predict(Session& session, const Workload& workload, int ranks, const RankNeeds& needs) {
    PredictedRun out;
    const auto none = [&](std::string why) {
        out.note = "nothing is predicted: " + std::move(why);
        return out;
    };
    if (!is_training(workload.kind) || !workload.model_known) return none("only trainings of a known model are");
    if (needs.gpus > 0) return none("the ranks use GPUs, and only the cores of this machine have been measured");
    if (needs.cpu_milli < 1000) return none("a rank has less than one core");
    const double batch = workload.batch.global_examples.value_or(0);
    if (std::fmod(batch, ranks) != 0)
        return none(fmt::format("the batch of {:g} examples cannot be spread evenly over {} ranks", batch, ranks));
    const auto shared = session.catalog();
    if (!shared) return none(shared.error().message());
    Catalog catalog = **shared;  // this one knows a rank as a machine
    const Machine machine = discover_machine();
    add_rank_as_machine(machine, known_speed(session, machine), ranks, needs, catalog);
    const Workload asked = pinned(workload, ranks);
    const auto candidate = estimate(asked, catalog, {.today = session.today, .what_if = false, .threads = 1});
    if (!candidate) return none(candidate.error().message());
    out.prediction = spec_from(*candidate, asked, catalog, ranks);
    if (candidate->refused != Reason::none) out.note = "the planner expects that it cannot run: " + candidate->refusal;
    out.checkpoint_write_s = candidate->prediction.checkpoint.write_s;
    out.mtbf_s = candidate->prediction.checkpoint.mtbf_s;
    return out;
}

std::string prediction_text(const PredictionSpec& p, int ranks) {
    std::string text = fmt::format("predicted on this machine, {} rank{}: {} a step ({} to {})", ranks,
                                   ranks == 1 ? "" : "s", format_seconds(Seconds(p.step_s)),
                                   format_seconds(Seconds(p.step_low_s)), format_seconds(Seconds(p.step_high_s)));
    if (p.steps > 0)
        text += fmt::format(", {:.0f} steps in {} ({} to {})", p.steps, format_seconds(Seconds(p.run_s)),
                            format_seconds(Seconds(p.run_low_s)), format_seconds(Seconds(p.run_high_s)));
    text += fmt::format("\n{} of memory a rank, {:.0f} % of the measured matrix rate, limited by {}",
                        format_bytes_gib(Bytes(static_cast<double>(p.memory_bytes))), 100 * p.mfu, p.bottleneck);
    return text;
}

}  // namespace stoker
