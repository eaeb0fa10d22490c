// Longer than 500 lines because the search, its bounds and its cache of evaluated layouts stand or fall together; the
// cache could move out.
#include "plan/search_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/layouts.h"
#include "plan/parallel.h"

namespace stoker {

struct LayoutCache {
    std::map<int, std::map<int, LayoutResult>> results;  // node type -> nodes
};

std::shared_ptr<LayoutCache> make_layout_cache() {
    return std::make_shared<LayoutCache>();
}

namespace {

// One node type during a search. Only one thread at a time works on it.
struct Lane {
    int choice = -1;
    const TrainingSetup* setup = nullptr;
    LayoutSpace space;
    double gpus_per_node = 1;
    std::vector<int> counts;
    std::map<int, LayoutResult>* results = nullptr;
    std::vector<int> evaluated;  // counts, in the order in which they were done
    RejectionLog rejected;
    std::int64_t considered = 0, refused = 0;
};

struct Incumbent {
    double hours = 0, usd = 0;
};

// What the bounds compare with; frozen while lanes run, so that the outcome does not depend on threads.
struct Frontier {
    std::vector<Incumbent> points;
    std::int64_t objective_to_beat = std::numeric_limits<std::int64_t>::max();
};

LayoutSpace make_space(const Workload& workload, const TrainingSetup& setup, const NodeChoice& choice) {
    LayoutSpace space;
    space.devices_per_node = choice.devices();
    space.gpu = choice.accelerator != nullptr;
    space.domain = std::max(1, setup.device.scale_up_domain);
    space.pairs_only = setup.device.pairs_only;
    space.layers = std::max(1, static_cast<int>(setup.layers));
    space.heads = std::max(1, static_cast<int>(setup.heads));
    space.kv_heads = std::max(1, static_cast<int>(setup.kv_heads));
    space.experts = static_cast<int>(setup.experts);
    space.sequence = setup.sequence;
    space.global_batch = global_batch_of(workload);
    space.transformer = setup.transformer;
    space.mla = workload.model.attention == AttentionKind::mla;
    space.flash = setup.flash;
    space.adapters_only = workload.method != Method::full;
    space.pinned = workload.layout;
    return space;
}

std::vector<Recompute> recomputes(const LayoutSpace& space) {
    if (space.pinned.recompute) {
        if (*space.pinned.recompute == "none") return {Recompute::none};
        return {*space.pinned.recompute == "full" ? Recompute::full : Recompute::selective};
    }
    // FlashAttention recomputes the attention core by itself, which leaves nothing to the selective kind.
    if (space.flash || !space.transformer) return {Recompute::none, Recompute::full};
    return {Recompute::none, Recompute::selective, Recompute::full};
}

Range absolute(Range range, double value) {
    return range.mid > 0 && std::abs(range.mid - 1) < 1e-9 ? range * value : range;
}

// The best micro-batch and recompute of every division. Recomputing never makes a step faster, so a size that surely
// fits without it is not tried again with it.
void evaluate_layouts(const TrainingSetup& setup, const LayoutSpace& space, int nodes, double fit_wanted,
                      LayoutResult& out) {
    out.done = true;
    const Divisions all = divisions(space);
    out.too_many_ranks = all.too_many_ranks;
    out.considered = out.refused = all.too_many_ranks;
    double best_unsure = kInfinity, best_fit = 0;
    TrainingEstimate estimate;
    auto refuse = [&](const TrainingEstimate& e) {
        ++out.refused;
        auto& worst = out.refusals[static_cast<std::size_t>(e.refused)];
        if (worst.count++ == 0 || e.need < worst.need) worst.have = e.have, worst.need = e.need;
    };
    auto consider = [&](const ParallelLayout& layout) {  // 0: does not run, 1: may, 2: surely does
        ++out.considered;
        evaluate(setup, layout, nodes, estimate);
        if (estimate.refused != Reason::none) return refuse(estimate), 0;
        const double seconds = estimate.step_s / layout.global_batch();
        const double fit =
            fit_probability(setup, absolute(memory_interval(setup, layout, estimate), estimate.memory_bytes));
        const bool sure = fit >= fit_wanted;
        const bool better = sure ? (!(best_fit >= fit_wanted) || seconds < out.seconds_per_example)
                                 : (best_fit < fit_wanted && seconds < best_unsure);
        if (better) {
            out.found = true;
            out.layout = layout;
            out.estimate = estimate;
            out.seconds_per_example = seconds;
            out.fit_probability = best_fit = fit;
            if (!sure) best_unsure = seconds;
        }
        return sure ? 2 : 1;
    };
    const std::vector<Recompute> kinds = recomputes(space);
    for (const ParallelLayout& division : all.layouts) {
        const std::vector<int> sizes = micro_batches(space, division);
        std::size_t surely = 0;  // sizes[0 .. surely) fit without (or with less) recompute
        for (Recompute recompute : kinds) {
            ParallelLayout layout = division;
            layout.recompute = recompute;
            for (std::size_t i = surely; i < sizes.size(); ++i) {
                if (!fit_batch(layout, sizes[i], space.global_batch)) continue;
                const int runs = consider(layout);
                if (runs == 0) break;  // larger ones need more memory still
                if (runs == 2 && i == surely) surely = i + 1;
            }
        }
    }
    // Host memory is the last resort: it is bound by PCIe, many times slower than the device's own memory.
    if (!out.found && !space.pinned.offload && space.gpu) {
        for (ParallelLayout layout : all.layouts) {
            layout.offload = true;
            layout.recompute = kinds.back();
            if (fit_batch(layout, 1, space.global_batch)) consider(layout);
        }
    }
}

double network_share(const TrainingEstimate& estimate) {
    double waiting = 0;
    for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm, TimeTerm::pipeline_comm,
                          TimeTerm::gradient_comm, TimeTerm::gather_comm})
        waiting += estimate.seconds[static_cast<std::size_t>(term)];
    return estimate.step_s > 0 ? waiting / estimate.step_s : 0;
}

std::string precision_text(Precision precision, const NodeChoice& choice) {
    const std::string name = choice.accelerator != nullptr ? choice.accelerator->name : "this CPU";
    std::string text = fmt::format("{} has no {} matrix units", name, to_string(precision));
    if (precision == Precision::bf16 && choice.accelerator != nullptr && choice.accelerator->vendor == "NVIDIA")
        text += "; A100, A10, H100 and later have them, fp16 runs here";
    if (precision == Precision::fp8) text += "; H100, L4 and later have them";
    return text;
}

class TrainingSearch {
public:
    TrainingSearch(const Context& context, const TrainingSearchOptions& options)
        : context_(context),
          options_(options),
          cache_(options.cache ? options.cache : make_layout_cache()),
          examples_(training_examples(context.workload)) {}

    Status prepare();
    Search run();
    Point point_of(const Lane& lane, int nodes, const LayoutResult& result) const;
    const std::vector<Lane>& lanes() const { return lanes_; }

private:
    const NodeChoice& choice(const Lane& lane) const { return context_.choices[static_cast<std::size_t>(lane.choice)]; }
    double lower_bound_hours(const Lane& lane, int nodes) const {
        return examples_ / lane.space.global_batch *
               step_lower_bound(*lane.setup, lane.space.global_batch, lane.gpus_per_node * nodes) / 3600;
    }
    const LayoutResult& layouts(Lane& lane, int nodes);
    bool can_be_left_out(const Lane& lane, int nodes, const Frontier& frontier) const;
    bool runs(const Lane& lane, int nodes, const LayoutResult& result) const;
    std::vector<int> seeds(const Lane& lane) const;
    Frontier frontier() const;
    void sweep(Lane& lane, const Frontier& frontier);

    const Context& context_;
    TrainingSearchOptions options_;
    std::shared_ptr<LayoutCache> cache_;
    double examples_;
    std::vector<std::unique_ptr<TrainingSetup>> setups_;
    std::vector<Lane> lanes_;
};

Status TrainingSearch::prepare() {
    std::optional<Error> first;
    for (std::size_t i = 0; i < context_.choices.size(); ++i) {
        const NodeChoice& one = context_.choices[i];
        const Device device = make_device(context_.catalog, one.type);
        auto setup = make_training_setup(context_.workload, context_.catalog, device);
        if (!setup) {
            if (!first) first = std::move(setup).error();
            continue;
        }
        setups_.push_back(std::make_unique<TrainingSetup>(std::move(setup).value()));
        Lane lane;
        lane.choice = static_cast<int>(i);
        lane.setup = setups_.back().get();
        lane.space = make_space(context_.workload, *lane.setup, one);
        lane.gpus_per_node = one.devices();
        lane.counts = node_counts(context_.workload.where, *one.node);
        // A part of a GPU has no fast neighbours, and a CPU gang beyond a rack is slower than one GPU.
        if (one.node->has_gpu() && one.node->whole_gpus() == 0) std::erase_if(lane.counts, [](int n) { return n > 1; });
        if (!one.node->has_gpu() && !context_.workload.where.nodes)
            std::erase_if(lane.counts, [](int n) { return n > 16; });
        if (lane.counts.empty()) {  // only a number of nodes above one was asked for
            ++lane.considered;
            ++lane.refused;
            lane.rejected.add({.node_type = one.type,
                               .reason = Reason::wrong_purpose,
                               .text = "part of a GPU: several such nodes cannot train one model"});
        }
        if (!(lane.setup->device.matmul(lane.setup->precision) > 0)) {
            lane.considered += static_cast<std::int64_t>(lane.counts.size());
            lane.refused += static_cast<std::int64_t>(lane.counts.size());
            lane.rejected.add({.node_type = one.type,
                               .reason = Reason::precision_unsupported,
                               .need = 1,
                               .text = precision_text(lane.setup->precision, one),
                               .count = static_cast<std::int64_t>(lane.counts.size())});
            lane.counts.clear();
        }
        lane.results = &cache_->results[one.type];
        lanes_.push_back(std::move(lane));
    }
    if (lanes_.empty() && first) return std::move(*first);
    return done();
}

const LayoutResult& TrainingSearch::layouts(Lane& lane, int nodes) {
    LayoutResult& result = (*lane.results)[nodes];
    if (!result.done) {
        LayoutSpace space = lane.space;
        space.devices = static_cast<int>(lane.gpus_per_node) * nodes;
        if (lane.setup->device.scale_up_crosses_nodes)
            space.domain = std::min(space.domain, space.devices);
        else
            space.domain = std::min(space.domain, space.devices_per_node);
        evaluate_layouts(*lane.setup, space, nodes, context_.settings.fit_wanted, result);
    }
    if (std::find(lane.evaluated.begin(), lane.evaluated.end(), nodes) == lane.evaluated.end())
        lane.evaluated.push_back(nodes);
    return result;
}

bool TrainingSearch::runs(const Lane& lane, int nodes, const LayoutResult& result) const {
    if (!result.found) return false;
    const NodeType& node = *choice(lane).node;
    const bool gang =
        nodes > 1 && !is_rdma(node) && node.cloud != "on-prem" && !context_.size_was_named(choice(lane).type);
    return !gang || network_share(result.estimate) <= context_.settings.network_bound_share;
}

// Sound: the bounds are below anything evaluate() can say, so what is left out can neither be among the best groups nor
// on the front.
bool TrainingSearch::can_be_left_out(const Lane& lane, int nodes, const Frontier& frontier) const {
    if (options_.exhaustive) return false;
    const double hours = lower_bound_hours(lane, nodes);
    const double price = choice(lane).cheapest();
    if (!(price < kInfinity)) return false;
    const double usd = hours * nodes * price;
    bool objective_beaten = frontier.objective_to_beat < std::numeric_limits<std::int64_t>::max();
    switch (context_.workload.objective.minimize) {
        case Minimize::cost: objective_beaten &= usd * 1e6 > static_cast<double>(frontier.objective_to_beat); break;
        case Minimize::time: objective_beaten &= hours * 3.6e6 > static_cast<double>(frontier.objective_to_beat); break;
        case Minimize::energy: objective_beaten = false; break;  // no lower bound of energy is kept
    }
    // What misses a limit at the bound can only matter for the front.
    const ObjectiveSpec& objective = context_.workload.objective;
    if (objective.deadline && hours * 3600 > objective.deadline->v) objective_beaten = true;
    if (objective.budget && usd > objective.budget->dollars()) objective_beaten = true;
    if (!objective_beaten) return false;
    if (options_.quick) return true;
    return std::any_of(frontier.points.begin(), frontier.points.end(),
                       [&](const Incumbent& i) { return i.hours <= hours && i.usd <= usd; });
}

// A few counts worth knowing first, spread over the range, so that the bounds have something to compare with.
std::vector<int> TrainingSearch::seeds(const Lane& lane) const {
    std::vector<int> chosen;
    const auto& deadline = context_.workload.objective.deadline;
    const double capacity = lane.setup->device.memory_bytes;
    double next = 0;
    for (int nodes : lane.counts) {
        if (nodes < next) continue;
        if (capacity > 0 && memory_lower_bound(*lane.setup, lane.gpus_per_node * nodes) * 1.3 > capacity) continue;
        if (chosen.empty() && deadline && lower_bound_hours(lane, nodes) * 3600 * 2 > deadline->v) continue;
        chosen.push_back(nodes);
        if (options_.quick && chosen.size() == 2) break;
        next = nodes * (options_.quick ? 1.3 : 3.0);
    }
    return chosen;
}

Frontier TrainingSearch::frontier() const {
    std::vector<Point> points;
    for (const Lane& lane : lanes_)
        for (int nodes : lane.evaluated) {
            const LayoutResult& result = lane.results->at(nodes);
            if (runs(lane, nodes, result)) points.push_back(point_of(lane, nodes, result));
        }
    Expansion expansion = expand(context_, points);
    Frontier out;
    const Minimize minimize = context_.workload.objective.minimize;
    const std::vector<Option> groups = best_of_groups(expansion.options, minimize);
    const auto top =
        static_cast<std::size_t>(options_.quick ? 1 : options_.top + 1);  // + 1: the second region is no group
    if (groups.size() >= top) out.objective_to_beat = score(groups[top - 1], minimize);
    expansion.options.insert(expansion.options.end(), expansion.over_limit.begin(), expansion.over_limit.end());
    for (const Option& option : pareto_front(std::move(expansion.options)))
        out.points.push_back({option.hours.mid, option.usd.mid});
    return out;
}

void TrainingSearch::sweep(Lane& lane, const Frontier& frontier) {
    const NodeChoice& one = choice(lane);
    Rejection dominated{.node_type = one.type, .reason = Reason::dominated, .count = 0};
    double cheapest = kInfinity;  // node-seconds per example
    int dearer = 0;
    for (int nodes : lane.counts) {
        const bool known = std::find(lane.evaluated.begin(), lane.evaluated.end(), nodes) != lane.evaluated.end();
        if (!known && can_be_left_out(lane, nodes, frontier)) {
            const double best = lower_bound_hours(lane, nodes);
            ++lane.considered;
            ++lane.refused;
            ++dominated.count;
            if (dominated.count == 1) {
                dominated.nodes = nodes;
                dominated.need = best * 3600;
                dominated.have = frontier.points.empty() ? 0 : frontier.points.front().hours * 3600;
                if (one.accelerator == nullptr) dominated.reason = Reason::cpu_too_slow;
                dominated.text = fmt::format(
                    "{} x at the matmul ceiling: {} and {}; something is both faster and cheaper", nodes,
                    format_seconds(Seconds(best * 3600)), format_usd(Usd::from_double(best * nodes * one.cheapest())));
            }
            continue;
        }
        const LayoutResult& result = layouts(lane, nodes);
        if (!options_.quick || context_.workload.objective.minimize != Minimize::cost || !runs(lane, nodes, result))
            continue;
        // A what-if follows the winner only: once in time, more nodes cost more, give or take how they divide the
        // batch.
        const auto& deadline = context_.workload.objective.deadline;
        if (deadline && result.seconds_per_example * examples_ * 1.05 > deadline->v) continue;
        const double cost = nodes * result.seconds_per_example;
        dearer = cost < cheapest ? 0 : dearer + 1;
        cheapest = std::min(cheapest, cost);
        if (dearer >= 3) break;
    }
    if (dominated.count > 0) lane.rejected.add(dominated);
    std::sort(lane.evaluated.begin(), lane.evaluated.end());
    for (int nodes : lane.evaluated) {
        const LayoutResult& result = lane.results->at(nodes);
        lane.considered += result.considered;
        lane.refused += result.refused;
        auto add = [&](Reason reason, double have, double need, std::int64_t count, int at) {
            lane.rejected.add({.node_type = one.type,
                               .nodes = at,
                               .reason = reason,
                               .have = have,
                               .need = need,
                               .text = refusal_text(reason, have, need),
                               .count = count});
        };
        for (std::size_t r = 1; r < result.refusals.size(); ++r) {
            const auto& worst = result.refusals[r];
            if (worst.count > 0) add(static_cast<Reason>(r), worst.have, worst.need, worst.count, nodes);
        }
        if (result.too_many_ranks > 0)
            add(Reason::batch_too_large, lane.space.global_batch, lane.gpus_per_node * nodes, result.too_many_ranks,
                nodes);
        if (result.found && !runs(lane, nodes, result)) {
            ++lane.refused;
            add(Reason::no_rdma, context_.settings.network_bound_share, network_share(result.estimate), 1, nodes);
        }
    }
}

Point TrainingSearch::point_of(const Lane& lane, int nodes, const LayoutResult& result) const {
    const TrainingSetup& setup = *lane.setup;
    const Workload& workload = context_.workload;
    Point point;
    point.choice = lane.choice;
    point.nodes = nodes;
    point.layout = result.layout;
    point.devices = choice(lane).node->has_gpu() ? choice(lane).node->accelerators * nodes : nodes;
    point.work_s = examples_ * result.seconds_per_example;
    point.gang = true;
    point.framework = training_framework(workload, result.layout);
    const double trained = setup.trainable_params > 0 ? setup.trainable_params : setup.total_params;
    point.checkpoint_bytes = workload.method == Method::full
                                 ? trained * context_.settings.checkpoint_bytes_per_parameter
                                 : trained * (setup.weight_bytes + setup.optimizer_bytes);

    Prediction& p = point.prediction;
    const TrainingEstimate& e = result.estimate;
    p.seconds = e.seconds;
    p.bytes = e.bytes;
    p.step_s = absolute(step_interval(setup, result.layout, e), e.step_s);
    if (p.step_s.mid > 0) point.speed = p.step_s * (1 / p.step_s.mid);
    p.memory_bytes = absolute(memory_interval(setup, result.layout, e), e.memory_bytes);
    p.memory_capacity_bytes = setup.device.memory_bytes;
    p.fit_probability = result.fit_probability;
    p.mfu = e.mfu;
    p.hfu = e.hfu;
    p.steps = std::ceil(examples_ / result.layout.global_batch());
    p.tokens_per_s = e.step_s > 0 ? e.tokens_per_step / e.step_s : 0;
    p.tensor_bytes = e.tensor_bytes;
    p.pipeline_bytes = e.pipeline_bytes;
    p.gradient_bytes = e.gradient_bytes;
    p.bottleneck = e.bottleneck;
    const double waits =
        network_share(e) + (e.step_s > 0 ? e.seconds[static_cast<std::size_t>(TimeTerm::data_stall)] / e.step_s : 0);
    p.utilisation = std::clamp(1 - waits, 0.05, 1.0);
    const double tokens = setup.transformer && workload.total_tokens() > 0 ? workload.total_tokens() : 0;
    point.units = tokens > 0 ? tokens / 1e9 : examples_ / 1e6;
    p.unit_name = tokens > 0 ? "B tokens" : "M examples";

    const double batch = result.layout.global_batch();
    if (std::abs(batch - lane.space.global_batch) > 0.5)
        point.notes.push_back(fmt::format("global batch {:.0f} instead of {:.0f}, so that {} ranks share it evenly",
                                          batch, lane.space.global_batch, result.layout.data));
    if (result.layout.offload) point.notes.push_back("optimizer states are offloaded to host memory: bound by PCIe");
    if (result.fit_probability < context_.settings.fit_wanted)
        point.notes.push_back(
            fmt::format("memory is tight: fits with probability {:.0f} %", 100 * result.fit_probability));
    return point;
}

Search TrainingSearch::run() {
    const int threads = context_.options.threads;
    const auto& progress = context_.options.progress;
    Frontier known;
    if (!options_.exhaustive) {
        // Seeds only of the node types with the cheapest work: the rest would set no bound anyway.
        std::vector<double> cost_of_work(lanes_.size(), kInfinity);
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            if (!lanes_[i].counts.empty())
                cost_of_work[i] = lower_bound_hours(lanes_[i], 1) * choice(lanes_[i]).cheapest();
        std::vector<std::size_t> order(lanes_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return cost_of_work[a] < cost_of_work[b]; });
        order.resize(std::min<std::size_t>(order.size(), options_.quick ? 3 : 8));
        for_each_index(order.size(), threads, [&](std::size_t i) {
            for (int nodes : seeds(lanes_[order[i]])) layouts(lanes_[order[i]], nodes);
        });
        known = frontier();
    }
    if (progress) progress(0.3, "bounds known, searching layouts");
    for_each_index(lanes_.size(), threads, [&](std::size_t i) { sweep(lanes_[i], known); });
    if (progress) progress(0.9, "layouts searched, ranking");

    Search search;
    for (Lane& lane : lanes_) {
        search.rejected.merge(lane.rejected);
        search.considered += lane.considered;
        search.refused += lane.refused;
        for (int nodes : lane.evaluated) {
            const LayoutResult& result = lane.results->at(nodes);
            if (runs(lane, nodes, result)) search.points.push_back(point_of(lane, nodes, result));
        }
    }
    return search;
}

}  // namespace

double training_examples(const Workload& workload) {
    return workload.total_examples();
}

double global_batch_of(const Workload& workload) {
    const double sequence = std::max(1.0, workload.sequence());
    double batch = 0;
    if (workload.batch.global_examples)
        batch = *workload.batch.global_examples;
    else if (workload.batch.global_tokens)
        batch = *workload.batch.global_tokens / sequence;
    else if (!workload.model.transformer())
        batch = 1024;
    else if (workload.kind == WorkloadKind::training && parameters_of(workload.model) > 2e8)
        batch = 4'194'304 / sequence;  // 4 M tokens, as Llama 2
    else if (workload.kind == WorkloadKind::training)
        batch = 524'288 / sequence;  // GPT-2 and GPT-3 Small
    else
        batch = 64;
    const double examples = training_examples(workload);
    if (examples > 0) batch = std::min(batch, examples);
    return std::max(1.0, std::round(batch));
}

std::vector<int> node_counts(const WhereSpec& where, const NodeType& type) {
    if (const auto pinned = where.pinned_nodes(type)) return {*pinned};
    int most = where.max_nodes ? static_cast<int>(std::min(*where.max_nodes, 1024.0)) : 1024;
    if (type.available > 0) most = std::min(most, type.available);
    std::vector<int> counts;
    for (int n = 1; n <= std::min(16, most); ++n) counts.push_back(n);
    // Then counts with many divisors, about an eighth to a quarter apart.
    for (int base = 16; base < most; base *= 2)
        for (int n : {base * 5 / 4, base * 3 / 2, base * 7 / 4, base * 2})
            if (n <= most) counts.push_back(n);
    if (most > 16 && counts.back() != most) counts.push_back(most);
    return counts;
}

std::string training_framework(const Workload& workload, const ParallelLayout& layout) {
    if (!workload.framework.empty()) return workload.framework;
    if (layout.tensor > 1 || layout.pipeline > 1 || layout.context > 1 || layout.expert > 1) return "megatron";
    if (layout.offload) return "deepspeed";
    if (layout.zero >= 2) return "fsdp";
    if (layout.zero == 1) return "deepspeed";
    return "pytorch";
}

Result<Search> search_training(const Context& context, const TrainingSearchOptions& options) {
    if (!(training_examples(context.workload) > 0))
        return Error(ErrorKind::invalid, "how much data is there? data.tokens or data.examples is missing",
                     context.workload.pos, "add data: {tokens: 10B} or data: {examples: 52000, sequence: 2048}");
    TrainingSearch search(context, options);
    TRY_VOID(search.prepare());
    return search.run();
}

Result<Point> training_point(const Context& context, int choice_index, int nodes) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(choice_index)];
    const Device device = make_device(context.catalog, choice.type);
    TRY(TrainingSetup setup, make_training_setup(context.workload, context.catalog, device));
    LayoutSpace space = make_space(context.workload, setup, choice);
    space.devices = choice.devices() * nodes;
    if (!setup.device.scale_up_crosses_nodes) space.domain = std::min(space.domain, space.devices_per_node);
    LayoutResult result;
    evaluate_layouts(setup, space, nodes, context.settings.fit_wanted, result);
    if (!result.found) {
        std::string why = "no layout of this shape exists";
        Reason reason = Reason::shape_indivisible;
        for (std::size_t r = 1; r < result.refusals.size(); ++r)
            if (result.refusals[r].count > 0) {
                reason = static_cast<Reason>(r);
                why = refusal_text(reason, result.refusals[r].have, result.refusals[r].need);
                break;
            }
        if (result.too_many_ranks > 0 && result.considered == result.too_many_ranks)
            why = refusal_text(Reason::batch_too_large, space.global_batch, space.devices);
        return Error(ErrorKind::infeasible, fmt::format("{} x {}: {}", nodes, choice.node->name, why));
    }
    TrainingSearch search(context, {});
    Lane lane;
    lane.choice = choice_index;
    lane.setup = &setup;
    lane.space = space;
    lane.gpus_per_node = choice.devices();
    return search.point_of(lane, nodes, result);
}

}  // namespace stoker
