#include "explain/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/thread_pools.h"
#include "catalog/this_machine.h"
#include "deploy/pinned.h"
#include "doctor/calibration_file.h"
#include "doctor/framework_speed.h"
#include "doctor/this_machine.h"
#include "govern/usage.h"
#include "io/machine/machine.h"
#include "plan/plan.h"

namespace stoker {
namespace {

// The share of one processor that a quota leaves the thread of a rank; 1: it has whole ones.
double quota_share(const RankNeeds& needs) {
    return std::clamp(static_cast<double>(needs.cpu_milli) / 1000, 0.01, 1.0);
}

// One rank as a machine of its own: the ranks of one host see each other over its loopback device.
int add_rank_as_machine(const Machine& machine, const MachineSpeed& speed, const RankRates& framework,
                        const RankRates& bf16, int ranks, const RankNeeds& needs, Catalog& catalog) {
    const double all = std::max(1, machine.usable_cores());
    const double cores = std::clamp(static_cast<double>(needs.cpu_milli) / 1000, 0.001, all);
    // A quota below one processor stops the one thread for the rest of the time.
    const double quota = quota_share(needs);
    // Ranks that ask for more than there is share what there is.
    const double share = std::min(cores, all / ranks) / all;
    const double memory = machine.usable_memory().v;
    return add_this_machine(
        {.name = std::string(kRankAsMachine),
         .cpu_name = machine.model,
         .vcpus = std::max(1, static_cast<int>(std::floor(cores))),
         .cores = std::max(1, static_cast<int>(std::floor(cores))),
         .ghz = machine.mhz / 1000,
         .measured_fp32_gflops =
             (framework.flops_per_second > 0 ? quota * framework.flops_per_second : speed.matmul_flops.max * share) /
             1e9,
         .measured_memory_gb_s = (framework.memory_bytes_per_second > 0 ? quota * framework.memory_bytes_per_second
                                                                        : speed.triad_bytes.max * share) /
                                 1e9,
         .measured_bf16_gflops = quota * bf16.flops_per_second / 1e9,
         .memory = Bytes(needs.memory_bytes > 0 ? std::min<double>(memory, needs.memory_bytes) : memory / ranks),
         .instances = ranks},
        catalog);
}

// What a framework was measured to reach here, where it was and a training asks: in fp32, and in bf16 where it computes
// with that.
struct MeasuredHere {
    RankRates fp32, bf16;
};
MeasuredHere measured_rates(const Machine& machine, const StartSpec& start, LocalWork& local) {
    const auto path = this_machine_path();
    if (!path || !is_training(local.workload.kind)) return {};
    const auto framework = load_framework(*path, machine);
    if (!framework) return {};
    const LayoutSpec& layout = local.workload.layout;
    const ModelSpec& model = local.workload.model;
    const double sequence = local.workload.sequence();
    const RankShape shape{
        .hidden = static_cast<double>(model.hidden),
        .tokens = layout.micro_batch.value_or(1) * sequence,
        .sequence = sequence,
        .head = static_cast<double>(model.head_dim > 0 ? model.head_dim : model.hidden / std::max(1, model.heads))};
    const int threads = planned_threads(start.per_rank.cpu_milli, start.per_rank.gpus);
    MeasuredHere here;
    here.fp32 = rates_of_rank(*framework, "fp32", start.ranks, threads, shape);
    if (framework_computes(*framework, "bf16"))
        here.bf16 = rates_of_rank(*framework, "bf16", start.ranks, threads, shape);
    RankRates used =
        here.bf16.flops_per_second > 0 && local.workload.precision == Precision::bf16 ? here.bf16 : here.fp32;
    // Under a quota everything but the wire takes as much longer; the memory and the products are scaled with the rank.
    const double quota = quota_share(start.per_rank);
    for (double* seconds : {&used.operator_s, &used.attention_s, &used.elementwise_s, &used.optimizer_s})
        *seconds /= quota;
    for (double* rate : {&used.flops_per_second, &used.memory_bytes_per_second}) *rate *= quota;
    use_rates(used, *framework, local.catalog);
    return here;
}

// The published time of an operator, for a thread that a quota stops.
void slow_launches(double factor, Catalog& catalog) {
    const Constant* published = catalog.constant("launch_us_cpu");
    if (published == nullptr || !(factor > 1)) return;
    Constant mine = *published;
    mine.value *= factor, mine.low *= factor, mine.high *= factor;
    catalog.replace_constant(std::move(mine));
}

std::string ranged(const PredictedRange& range) {
    const auto time = [](double s) { return format_seconds(Seconds(s)); };
    return fmt::format("{} ({} - {})", time(range.mid), time(range.low), time(range.high));
}

// "8 H100-SXM" of "this-machine with 8 H100-SXM"; empty: it runs on cores.
std::string gpus_of(const PredictionSpec& p) {
    constexpr std::string_view kWith = " with ";
    const std::size_t at = p.machine.find(kWith);
    return at == std::string::npos ? "" : p.machine.substr(at + kWith.size());
}

std::string place_text(const PredictionSpec& p, int ranks) {
    const std::string gpus = gpus_of(p);
    return fmt::format("{} rank{} on {}", ranks, ranks == 1 ? "" : "s",
                       gpus.empty() ? "this machine" : gpus + (p.serving && ranks > 1 ? " each" : ""));
}

std::string serving_text(const PredictionSpec& p, int ranks) {
    const PredictedServing& serving = *p.serving;
    std::string text = place_text(p, ranks) + ":";
    const char* unit = serving.tpot_s.mid > 0 || p.run_s > 0 ? "tokens/s" : "requests/s";
    if (p.run_s > 0) {
        text += fmt::format(" done in {}, {:.3g} {} ({:.3g} - {:.3g})", ranged({p.run_low_s, p.run_s, p.run_high_s}),
                            serving.tokens_per_s.mid, unit, serving.tokens_per_s.low, serving.tokens_per_s.high);
    } else {
        text += fmt::format(" {} after {} for 95 of 100 requests", serving.tpot_s.mid > 0 ? "first token" : "answer",
                            ranged(serving.ttft_s));
        if (serving.tpot_s.mid > 0) text += fmt::format(", each further one {}", ranged(serving.tpot_s));
        text += fmt::format("; {:.3g} of the {:.3g} requests/s that they sustain", serving.requests_per_s,
                            serving.most_requests_per_s);
    }
    if (p.cost_microusd > 0) text += ", " + format_usd(Usd::micro(p.cost_microusd));
    return text;
}

void take_learnt(LocalWork& local) {
    if (const auto points = load_calibration(local.place))
        if (auto learnt = fit_calibration(points_of_kind(*points, network_word(local.workload.model))))
            local.calibrations.emplace(kHere, std::move(*learnt));
}

// Which GPU the ranks get: as the run says, the workload, or as there is one kind here.
Result<int> gpu_of_ranks(const Catalog& catalog, const Workload& workload, const StartSpec& start,
                         const std::vector<NvidiaGpu>& gpus) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    std::string name = start.per_rank.gpu_model;
    if (name.empty() && workload.where.accelerators.size() == 1) name = workload.where.accelerators.front();
    if (name.empty() && !gpus.empty()) {
        name = gpus.front().model;
        for (const NvidiaGpu& other : gpus)
            if (other.model != name)
                return none(fmt::format("this machine has {} and {}: say which (run: gpu:)", name, other.model));
    }
    if (name.empty()) return none("which GPU the ranks get is not said (run: gpu:), and this machine has none");
    const auto found = catalog.find_accelerator(name);
    if (!found) return none(found.error().message());
    return *found;
}

Result<LocalWork> work_on_gpus(const Catalog& catalog, const Workload& workload, const StartSpec& start,
                               const std::vector<NvidiaGpu>& gpus) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    const RankNeeds& needs = start.per_rank;
    if (needs.gpu_milli < 1000) return none("the ranks share a GPU, and how fast a share is has not been measured");
    if (start.nodes > 1) return none("its ranks are spread over several machines, whose network the run does not say");
    TRY(const int gpu, gpu_of_ranks(catalog, workload, start, gpus));
    const bool training = is_training(workload.kind);
    TRY(Workload pinned, pinned_to_gpus(workload, start.ranks, needs.gpus, start.checkpoint, false));
    LocalWork local{.workload = std::move(pinned), .catalog = catalog};
    if (training) {
        TRY(local.otherwise, pinned_to_gpus(workload, start.ranks, needs.gpus, start.checkpoint, true));
    }
    const Machine machine = discover_machine();
    const Bytes memory = machine.usable_memory();
    const int machines = training ? 1 : start.ranks;
    add_this_machine({.name = std::string(kGpusHere),
                      .cpu_name = machine.model,
                      .vcpus = std::max(1, machine.usable_cores() / machines),
                      .cores = std::max(1, std::min(machine.usable_cores(), machine.physical_cores) / machines),
                      .ghz = machine.mhz / 1000,
                      .memory = needs.memory_bytes > 0 && !training
                                    ? Bytes(std::min(memory.v, static_cast<double>(needs.memory_bytes)))
                                    : memory / machines,
                      .accelerator = gpu,
                      .accelerators = training ? start.ranks * needs.gpus : needs.gpus,
                      .instances = machines},
                     local.catalog);
    local.place = place_of_gpus(machine_key(machine), catalog.accelerators()[static_cast<std::size_t>(gpu)].name);
    take_learnt(local);
    return local;
}

}  // namespace

Result<LocalWork> local_work(const Catalog& catalog, const std::string& today, const Workload& workload,
                             const StartSpec& start, const std::vector<NvidiaGpu>& gpus) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    const bool training = is_training(workload.kind);
    const bool answers = workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::batch_inference ||
                         workload.kind == WorkloadKind::embedding;
    if ((!training && !answers) || !workload.model_known)
        return none(answers ? "only models that are known are" : "only trainings of a known model are");
    const RankNeeds& needs = start.per_rank;
    const double batch = training ? workload.batch.global_examples.value_or(0) : 0;
    if (std::fmod(batch, start.ranks) != 0)
        return none(
            fmt::format("the batch of {:g} examples cannot be spread evenly over {} ranks", batch, start.ranks));
    if (needs.gpus > 0) return work_on_gpus(catalog, workload, start, gpus);
    TRY(Workload pinned, pinned_to_ranks(workload, start.ranks, start.checkpoint));
    // A program that says nothing computes in FP32 on a CPU, whatever units there are.
    if (!pinned.precision_order.empty()) fix_precision(pinned, Precision::fp32);
    LocalWork local{.workload = std::move(pinned), .catalog = catalog};
    const Machine machine = discover_machine();
    local.place = machine_key(machine);
    const MeasuredHere rates = measured_rates(machine, start, local);
    if (training && local.workload.precision == Precision::bf16 && !(rates.bf16.flops_per_second > 0))
        return none(
            "what PyTorch makes of bf16 on this CPU has not been measured, or it has no kernels for it "
            "(stoker bench cpu --framework measures); fp32 runs here");
    if (!(rates.fp32.operator_s > 0)) slow_launches(1 / quota_share(needs), local.catalog);
    add_rank_as_machine(machine, known_speed(machine, today), rates.fp32, rates.bf16, start.ranks, needs,
                        local.catalog);
    take_learnt(local);
    return local;
}

DeploymentHere deployment_here(const Catalog& catalog, const std::string& today, const Workload& workload,
                               const std::string& name, const StartSpec& start, const std::vector<NvidiaGpu>& gpus) {
    DeploymentHere out;
    const auto none = [&](const Error& error) {
        out.note = "nothing is predicted: " + error.message();
        if (error.kind() == ErrorKind::invalid) out.pos = error.problems().front().pos;
        return out;
    };
    auto local = local_work(catalog, today, workload, start, gpus);
    if (!local) return none(local.error());
    const PlanOptions options{.today = today, .what_if = false, .threads = 1, .calibrations = local->calibrations};
    auto one = estimate(local->workload, local->catalog, options);
    if (one && one->refused != Reason::none && local->otherwise) {
        // Where neither fits, what comes nearer is what is told.
        if (auto open = estimate(*local->otherwise, local->catalog, options);
            open &&
            (open->refused == Reason::none || open->prediction.memory_bytes.mid < one->prediction.memory_bytes.mid))
            local->workload = std::move(*local->otherwise), one = std::move(open);
    }
    if (!one) return none(one.error());
    if (one->refused != Reason::none) out.note = "the planner expects that it cannot run: " + one->refusal;
    // What the engine would be at with more replicas than there are says nothing of these.
    if (one->refused != Reason::none && !is_training(workload.kind)) return out;
    const Candidate candidate = for_all_ranks(*one, local->workload, start.ranks);
    const auto learnt = local->calibrations.find(kHere);
    Workload asked = local->workload;  // with the requests of all ranks
    asked.traffic = workload.traffic, asked.objective = workload.objective;
    auto made = make_deployment(candidate, asked, local->catalog,
                                {.name = name,
                                 .target = "local",
                                 .start = &start,
                                 .place = local->place,
                                 .learnt = learnt == local->calibrations.end() ? nullptr : &learnt->second});
    if (!made) return none(made.error());
    out.deployment = std::move(*made);
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
    if (p.serving) return serving_text(p, ranks);
    const auto time = [](double s) { return format_seconds(Seconds(s)); };
    const std::string gpus = gpus_of(p);
    std::string text = fmt::format("{}: step {} ({} - {})", place_text(p, ranks), time(p.step_s), time(p.step_low_s),
                                   time(p.step_high_s));
    if (p.memory_bytes > 0)
        text += fmt::format(", {} a {}", format_bytes_gib(Bytes(static_cast<double>(p.memory_bytes))),
                            gpus.empty() ? "rank" : "GPU");
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
    const auto name = [](const PredictedTerm& each) {
        const auto term = find_time_term(each.id);
        return term ? info(*term).name : std::string_view(each.id);
    };
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (i >= 4 || terms[i].seconds < 0.01 * p.step_s)
            rest += terms[i].seconds;
        else
            parts += fmt::format("{}{} {}", parts.empty() ? "step = " : " + ", name(terms[i]), time(terms[i].seconds));
    }
    if (rest > 0) parts += fmt::format(" + rest {}", time(rest));
    return text + "\n" + parts;
}

}  // namespace stoker
