#include "app/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/calibration_file.h"
#include "app/framework_speed.h"
#include "app/this_machine.h"
#include "catalog/this_machine.h"
#include "govern/usage.h"
#include "io/machine.h"
#include "plan/calibrated.h"

namespace stoker {
namespace {

constexpr const char* kRank = "rank";

// One rank as a machine of its own: the ranks of one host see each other over its loopback device.
int add_rank_as_machine(const Machine& machine, const MachineSpeed& speed, const RankRates& framework, int ranks,
                        const RankNeeds& needs, Catalog& catalog) {
    const double all = std::max(1, machine.usable_cores());
    const double cores = std::clamp(static_cast<double>(needs.cpu_milli) / 1000, 0.001, all);
    // Ranks that ask for more than there is share what there is.
    const double share = std::min(cores, all / ranks) / all;
    const double memory = machine.usable_memory().v;
    return add_this_machine(
        {.name = kRank,
         .cpu_name = machine.model,
         .vcpus = std::max(1, static_cast<int>(std::floor(cores))),
         .cores = std::max(1, static_cast<int>(std::floor(cores))),
         .ghz = machine.mhz / 1000,
         .measured_fp32_gflops =
             (framework.flops_per_second > 0 ? framework.flops_per_second : speed.matmul_flops.max * share) / 1e9,
         .measured_memory_gb_s = (framework.memory_bytes_per_second > 0 ? framework.memory_bytes_per_second
                                                                        : speed.triad_bytes.max * share) /
                                 1e9,
         .memory = Bytes(needs.memory_bytes > 0 ? std::min<double>(memory, needs.memory_bytes) : memory / ranks),
         .instances = ranks},
        catalog);
}

// What the run does is not the planner's to choose: its ranks, each with its part of the batch at once.
Workload pinned(const Workload& workload, int ranks, const CheckpointPolicy& checkpoint) {
    Workload pinned = workload;
    pinned.where.clouds = {"this-machine"};
    pinned.where.sizes = {kRank};
    pinned.where.regions.clear();
    pinned.where.residency.clear();
    pinned.where.accelerators.clear();
    pinned.where.gpus.reset();
    pinned.where.max_nodes.reset();
    pinned.where.nodes = ranks;
    pinned.where.spot = SpotUse::never;
    pinned.objective.deadline.reset();
    pinned.objective.budget.reset();
    if (!checkpoint.folder.empty() && checkpoint.interval_s > 0)
        pinned.checkpoint.every = Seconds(static_cast<double>(checkpoint.interval_s));
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

PredictionSpec spec_from(const Candidate& candidate, const LocalTraining& local, int ranks) {
    const auto& [workload, catalog, calibrations, place] = local;
    const Prediction& p = candidate.prediction;
    PredictionSpec spec;
    StepParts parts = parts_of(p.seconds);
    MemoryParts memory = memory_parts_of(p.bytes, p.memory_bytes.mid);
    PublishedSpec published{.place = place};
    if (const auto learnt = calibrations.find("this-machine"); learnt != calibrations.end()) {
        const Calibration& c = learnt->second;
        const auto& factor = c.step.factor;
        parts = {parts.compute_s / factor[0], parts.other_s / factor[1], parts.exchange_s / factor[2]};
        memory = {memory.held / c.memory.factor[0], memory.transient / c.memory.factor[1]};
        published.calibrated_on = static_cast<std::int64_t>(c.points);
    }
    published.memory_bytes = memory.sum(), published.transient_bytes = memory.transient;
    const CaseShape shape = case_shape(workload, candidate.layout);
    published.hidden = shape.hidden, published.layers = shape.layers;
    published.sequence = shape.sequence, published.tokens = shape.tokens;
    published.compute_s = parts.compute_s, published.other_s = parts.other_s, published.exchange_s = parts.exchange_s;
    spec.published = std::move(published);
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
    // Steps, the start of the processes, and checkpoints.
    spec.run_s = 3600 * p.hours.mid, spec.run_low_s = 3600 * p.hours.low, spec.run_high_s = 3600 * p.hours.high;
    spec.memory_bytes = static_cast<std::int64_t>(p.memory_bytes.mid);
    spec.memory_low_bytes = static_cast<std::int64_t>(p.memory_bytes.low);
    spec.memory_high_bytes = static_cast<std::int64_t>(p.memory_bytes.high);
    spec.mfu = p.mfu;
    spec.bottleneck = to_string(p.bottleneck);
    spec.catalogue = catalog.version;
    // Only what the file says: what was assumed is not held against the program.
    if (workload.at.contains("precision")) {
        const Precision precision = workload.precision;
        const bool whole = precision == Precision::fp32 || precision == Precision::tf32;
        if (whole || precision == Precision::fp16 || precision == Precision::bf16)
            spec.precision_bits = whole ? 32 : 16;
    }
    spec.recompute = candidate.layout.recompute != Recompute::none;
    if (workload.at.contains("compiled")) spec.compiled = workload.compiled;
    return spec;
}

}  // namespace

Result<LocalTraining> local_training(Session& session, const Workload& workload, int ranks, const RankNeeds& needs,
                                     const CheckpointPolicy& checkpoint) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    if (!is_training(workload.kind) || !workload.model_known) return none("only trainings of a known model are");
    if (needs.gpus > 0) return none("the ranks use GPUs, and only the cores of this machine have been measured");
    if (needs.cpu_milli < 1000) return none("a rank has less than one core");
    const double batch = workload.batch.global_examples.value_or(0);
    if (std::fmod(batch, ranks) != 0)
        return none(fmt::format("the batch of {:g} examples cannot be spread evenly over {} ranks", batch, ranks));
    TRY(const Catalog* shared, session.catalog());
    LocalTraining local{.workload = pinned(workload, ranks, checkpoint), .catalog = *shared};
    const Machine machine = discover_machine();
    local.place = machine_key(machine);
    RankRates rates;
    if (const auto path = this_machine_path()) {
        if (const auto framework = load_framework(*path, machine)) {
            const LayoutSpec& layout = local.workload.layout;
            const ModelSpec& model = local.workload.model;
            const double sequence = local.workload.sequence();
            rates = rates_of_rank(*framework, std::string(to_string(local.workload.precision)), ranks,
                                  std::max(1, static_cast<int>(needs.cpu_milli / 1000)),
                                  {.hidden = static_cast<double>(model.hidden),
                                   .tokens = layout.micro_batch.value_or(1) * sequence,
                                   .sequence = sequence,
                                   .head = static_cast<double>(
                                       model.head_dim > 0 ? model.head_dim : model.hidden / std::max(1, model.heads))});
            use_rates(rates, *framework, local.catalog);
        }
    }
    add_rank_as_machine(machine, known_speed(machine, session.today), rates, ranks, needs, local.catalog);
    if (const auto points = load_calibration(local.place))
        if (auto learnt = fit_calibration(*points)) local.calibrations.emplace("this-machine", std::move(*learnt));
    return local;
}

PredictedRun predict(Session& session, const Workload& workload, int ranks, const RankNeeds& needs,
                     const CheckpointPolicy& checkpoint) {
    PredictedRun out;
    const auto none = [&](const std::string& why) {
        out.note = "nothing is predicted: " + why;
        return out;
    };
    const auto local = local_training(session, workload, ranks, needs, checkpoint);
    if (!local) return none(local.error().message());
    const auto candidate =
        estimate(local->workload, local->catalog,
                 {.today = session.today, .what_if = false, .threads = 1, .calibrations = local->calibrations});
    if (!candidate) return none(candidate.error().message());
    out.prediction = spec_from(*candidate, *local, ranks);
    if (candidate->refused != Reason::none) out.note = "the planner expects that it cannot run: " + candidate->refusal;
    out.checkpoint_write_s = candidate->prediction.checkpoint.write_s;
    out.mtbf_s = candidate->prediction.checkpoint.mtbf_s;
    return out;
}

std::int64_t predicted_cost(const PriceBook& book, const RunSpec& run, double seconds, std::int64_t now_us) {
    if (book.empty() || !(seconds > 0)) return 0;
    const RankNeeds& needs = run.per_rank;
    const std::int64_t to = now_us + std::llround(1e6 * seconds);
    UsageInterval each{.milli = needs.cpu_milli, .from_us = now_us, .to_us = to};
    Cost cost = cost_of(book, each, {now_us, to});
    if (needs.gpus > 0) {
        each.resource = PricedResource::gpu;
        each.model = needs.gpu_model;
        each.milli = std::int64_t{needs.gpus} * needs.gpu_milli;
        cost.microusd += cost_of(book, each, {now_us, to}).microusd;
    }
    return cost.microusd * run.ranks;
}

std::string prediction_text(const PredictionSpec& p, int ranks) {
    const auto time = [](double s) { return format_seconds(Seconds(s)); };
    std::string text = fmt::format("{} rank{} on this machine: step {} ({} - {})", ranks, ranks == 1 ? "" : "s",
                                   time(p.step_s), time(p.step_low_s), time(p.step_high_s));
    if (p.memory_bytes > 0)
        text += fmt::format(", {} a rank", format_bytes_gib(Bytes(static_cast<double>(p.memory_bytes))));
    if (p.steps > 0)
        text += fmt::format(", {:.0f} steps in {} ({} - {})", p.steps, time(p.run_s), time(p.run_low_s),
                            time(p.run_high_s));
    if (p.cost_microusd > 0) text += ", " + format_usd(Usd::micro(p.cost_microusd));
    if (p.published && p.published->calibrated_on > 0)
        text += fmt::format(", calibrated on {} runs here", p.published->calibrated_on);
    std::vector<PredictedTerm> terms = p.step_terms;
    std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    double rest = 0;
    std::string parts;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (i >= 4 || terms[i].seconds < 0.01 * p.step_s)
            rest += terms[i].seconds;
        else
            parts += fmt::format("{}{} {}", parts.empty() ? "step = " : " + ", terms[i].name, time(terms[i].seconds));
    }
    if (rest > 0) parts += fmt::format(" + rest {}", time(rest));
    return text + "\n" + parts;
}

}  // namespace stoker
