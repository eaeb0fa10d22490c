// Longer than 500 lines because bounds, order and cuts of the one search read each other's state; the bounds are the
// next to move.
#include "plan/search_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/calibrated.h"
#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/evidence.h"
#include "plan/parallel.h"
#include "plan/precision_text.h"
#include "plan/roles.h"
#include "sizing/precision.h"
#include "sizing/training_memory.h"

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
    const TrainingSetup* divided = nullptr;  // of layouts that cut the model; null: as all
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
    // By what has no more against it than the machine itself has.
    std::int64_t objective_to_beat = std::numeric_limits<std::int64_t>::max();
    std::int64_t to_beat_when_scarce = objective_to_beat, to_beat_when_doubted = objective_to_beat;
};

Workload as_megatron(Workload workload) {
    workload.framework = "megatron";
    return workload;
}

// Who names no framework gets the one that can run the layout: where the model itself is cut, that is Megatron, with
// what is known of it, mixtures of experts among it: its kernels, what it hides of their exchange, and no ZeRO-3 beside
// expert parallelism. How surely stays as with an unnamed one.
std::optional<TrainingSetup> divided_setup(const Context& context, const Workload& megatron, const TrainingSetup& plain,
                                           const Device& device) {
    const bool pretraining = context.workload.kind == WorkloadKind::training;  // fine-tuning is done without it
    if (!pretraining || !context.workload.framework.empty() || !plain.transformer || !plain.device.gpu)
        return std::nullopt;
    auto setup = make_training_setup(megatron, context.catalog, device);
    if (!setup) return std::nullopt;
    setup->model = plain.model;
    setup->sigma_framework = plain.sigma_framework;
    return std::move(*setup);
}

// What a layout that cuts the model would save over the plain one that was taken.
std::string simpler_text(const ParallelLayout& divided, double saved_s, const Point& point) {
    std::string how;
    const auto add = [&](std::string_view what, int degree) {
        if (degree > 1) how += fmt::format("{}{} {}", how.empty() ? "" : ", ", what, degree);
    };
    add("tensor", divided.tensor);
    add("pipeline", divided.pipeline);
    add("expert", divided.expert);
    add("context", divided.context);
    const double gpu_hours = saved_s / 3600 * point.devices;
    return fmt::format(
        "data parallel work is what a plain script does: {} under Megatron would take {:.0f} % less time, {} GPU-hours "
        "in all, which does not pay for setting it up",
        how, 100 * saved_s / point.work_s, format_thousands(gpu_hours, gpu_hours < 10 ? 1 : 0));
}

class TrainingSearch {
public:
    TrainingSearch(const Context& context, const TrainingSearchOptions& options)
        : context_(context),
          options_(options),
          cache_(options.cache ? options.cache : make_layout_cache()),
          megatron_(as_megatron(context.workload)),
          examples_(training_examples(context.workload)),
          role_(role_of(context.workload)) {}

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
    void set_preferences(std::vector<Point>& points) const;
    bool can_be_left_out(const Lane& lane, int nodes, const Frontier& frontier) const;
    // Why a gang that works is still none that anybody should rent.
    Reason waste_of(const Lane& lane, int nodes, const LayoutResult& result) const;
    bool runs(const Lane& lane, int nodes, const LayoutResult& result) const;
    std::vector<int> seeds(const Lane& lane) const;
    Frontier frontier() const;
    void sweep(Lane& lane, const Frontier& frontier);

    const Context& context_;
    TrainingSearchOptions options_;
    std::shared_ptr<LayoutCache> cache_;
    Workload megatron_;
    double examples_;
    SizeRole role_;
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
        if (auto divided = divided_setup(context_, megatron_, *lane.setup, device)) {
            setups_.push_back(std::make_unique<TrainingSetup>(std::move(*divided)));
            lane.divided = setups_.back().get();
        }
        lane.space = prefer_simple(context_, layout_space(context_.workload, *lane.setup, one));
        if (lane.divided != nullptr) lane.space.zero_most_cut = 1;
        lane.gpus_per_node = one.devices();
        lane.counts = node_counts(context_.workload.where, *one.node);
        // A part of a GPU has no fast neighbours, and a CPU gang beyond a rack is slower than one GPU.
        if (one.node->has_gpu() && one.node->whole_gpus() == 0) std::erase_if(lane.counts, [](int n) { return n > 1; });
        if (!one.node->has_gpu() && !context_.workload.where.nodes)
            std::erase_if(lane.counts, [](int n) { return n > 16; });
        // Beyond a thousand nodes only where those would take more than a day even at the matmul ceiling.
        constexpr int kManyNodes = 1024;
        if (!context_.workload.where.pinned_nodes(*one.node) && lower_bound_hours(lane, kManyNodes) < 24)
            std::erase_if(lane.counts, [](int n) { return n > kManyNodes; });
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
                               .text = precision_refusal(context_, one, lane.setup->precision),
                               .count = static_cast<std::int64_t>(lane.counts.size())});
            lane.counts.clear();
        }
        // Only where no number of these machines shares the batch, the nearest is good enough.
        lane.space.exact_batch =
            lane.counts.empty() || std::any_of(lane.counts.begin(), lane.counts.end(), [&](int nodes) {
                return shares_batch(layout_space(lane.space, *lane.setup, nodes));
            });
        lane.results = &cache_->results[one.type];
        lanes_.push_back(std::move(lane));
    }
    if (lanes_.empty() && first) return std::move(*first);
    return done();
}

const LayoutResult& TrainingSearch::layouts(Lane& lane, int nodes) {
    LayoutResult& result = (*lane.results)[nodes];
    if (!result.done) {
        evaluate_layouts(*lane.setup, lane.divided, layout_space(lane.space, *lane.setup, nodes), nodes,
                         context_.settings.fit_wanted, result);
    }
    if (std::find(lane.evaluated.begin(), lane.evaluated.end(), nodes) == lane.evaluated.end())
        lane.evaluated.push_back(nodes);
    return result;
}

Reason TrainingSearch::waste_of(const Lane& lane, int nodes, const LayoutResult& result) const {
    const NodeType& node = *choice(lane).node;
    const bool asked = node.cloud == "on-prem" || context_.size_was_named(choice(lane).type);
    if (nodes <= 1 || asked) return Reason::none;
    if (!is_rdma(node) && waiting_share(result.estimate) > context_.settings.network_bound_share)
        return Reason::no_rdma;
    return result.estimate.mfu < context_.settings.gang_mfu_least ? Reason::wasteful : Reason::none;
}

bool TrainingSearch::runs(const Lane& lane, int nodes, const LayoutResult& result) const {
    return result.found && waste_of(lane, nodes, result) == Reason::none;
}

// Sound: the bounds are below anything evaluate() can say, so what is left out can neither be among the best groups nor
// on the front.
bool TrainingSearch::can_be_left_out(const Lane& lane, int nodes, const Frontier& frontier) const {
    if (options_.exhaustive) return false;
    // Who names a few sizes wants a figure of each, also of the hopeless.
    constexpr std::size_t kFewSizes = 8;
    if (!options_.quick && context_.workload.where.sizes.size() <= kFewSizes &&
        context_.size_was_named(choice(lane).type))
        return false;
    const double hours = lower_bound_hours(lane, nodes);
    const double price = choice(lane).cheapest();
    if (!(price < kInfinity)) return false;
    const double usd = hours * nodes * price;
    const double set_up =
        std::min(lane.space.set_up_most, context_.settings.set_up_gpu_s / (3600 * hours * nodes * lane.gpus_per_node));
    // What is measured comes before what is not, so only the former can beat it.
    const std::int64_t beat = choice(lane).doubted  ? frontier.to_beat_when_doubted
                              : choice(lane).scarce ? frontier.to_beat_when_scarce
                                                    : frontier.objective_to_beat;
    bool objective_beaten = beat < std::numeric_limits<std::int64_t>::max();
    const double most =
        static_cast<double>(beat) * (1 + std::max({context_.settings.tie_share, context_.settings.most_for_time,
                                                   context_.settings.most_for_money, set_up}));  // ties reach so far
    switch (context_.workload.objective.minimize) {
        case Minimize::cost: objective_beaten &= usd * 1e6 > most; break;
        case Minimize::time: objective_beaten &= hours * 3.6e6 > most; break;
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
    set_preferences(points);
    Expansion expansion = expand(context_, points, false);
    Frontier out;
    const Minimize minimize = context_.workload.objective.minimize;
    const std::vector<Option> groups = best_of_groups(expansion.options, minimize);
    const auto top =
        static_cast<std::size_t>(options_.quick ? 1 : options_.top + 1);  // + 1: the second region is no group
    auto score_of_last = [&](int most_doubts) {
        std::vector<std::int64_t> scores;
        for (const Option& option : groups)
            if (option.doubts <= most_doubts && scores.size() < top) scores.push_back(score(option, minimize));
        return scores.size() < top ? std::numeric_limits<std::int64_t>::max()
                                   : *std::max_element(scores.begin(), scores.end());
    };
    out.objective_to_beat = score_of_last(0);
    out.to_beat_when_scarce = score_of_last(doubt::scarce);
    out.to_beat_when_doubted = score_of_last(doubt::unmeasured);
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
        const double slow = at_quantile(step_interval(*lane.setup, result.layout, result.estimate),
                                        context_.settings.confidence_deviations);
        if (deadline && result.seconds_per_example * examples_ * slow * 1.05 > deadline->v) continue;
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
        if (result.considered == 0) {
            lane.considered += 1;
            lane.refused += 1;
            lane.rejected.add({.node_type = one.type,
                               .nodes = nodes,
                               .reason = Reason::shape_indivisible,
                               .have = lane.gpus_per_node * nodes,
                               .need = pinned_devices(lane.space.pinned),
                               .text = no_division_text(lane.space, lane.gpus_per_node * nodes)});
        }
        if (result.too_many_ranks > 0)
            add(Reason::batch_too_large, lane.space.global_batch, lane.gpus_per_node * nodes, result.too_many_ranks,
                nodes);
        if (result.uneven > 0)
            add(Reason::batch_indivisible, lane.space.global_batch, result.uneven_ranks, result.uneven, nodes);
        if (result.found && !runs(lane, nodes, result)) {
            ++lane.refused;
            if (waste_of(lane, nodes, result) == Reason::no_rdma)
                add(Reason::no_rdma, context_.settings.network_bound_share, waiting_share(result.estimate), 1, nodes);
            else
                add(Reason::wasteful, context_.settings.gang_mfu_least, result.estimate.mfu, 1, nodes);
        }
    }
}

Point TrainingSearch::point_of(const Lane& lane, int nodes, const LayoutResult& result) const {
    const bool whole = result.whole && lane.divided != nullptr;
    const TrainingSetup& setup = whole ? *lane.divided : setup_for(*lane.setup, lane.divided, result.layout);
    const Workload& workload = context_.workload;
    Point point;
    point.choice = lane.choice;
    point.nodes = nodes;
    point.layout = result.layout;
    point.devices = choice(lane).node->has_gpu() ? choice(lane).node->accelerators * nodes : nodes;
    point.work_s = examples_ * result.seconds_per_example;
    point.gang = true;
    point.framework = whole ? "megatron" : training_framework(workload, result.layout);
    point.precision = setup.precision;
    point.kv_precision = kv_precision_with(workload, setup.precision);
    const double trained = setup.trainable_params > 0 ? setup.trainable_params : setup.total_params;
    point.checkpoint_bytes = workload.method == Method::full
                                 ? trained * context_.settings.checkpoint_bytes_per_parameter
                                 : trained * (setup.weight_bytes + setup.optimizer_bytes);

    Prediction& p = point.prediction;
    const TrainingEstimate& e = result.estimate;
    p.seconds = e.seconds;
    p.bytes = e.bytes;
    // No step is told shorter than the best published MFU makes it: what that leaves out is not known, and in each
    // term.
    const double held_back = setup.mfu_most > 0 ? std::max(1.0, e.mfu / setup.mfu_most) : 1;
    for (double& seconds : p.seconds) seconds *= held_back;
    point.work_s *= held_back;
    p.step_s = absolute(step_interval(setup, result.layout, e), e.step_s * held_back);
    point.growth = setup.step_growth;
    if (setup.mfu_most > 0) point.fastest = std::min(1.0, e.mfu / setup.mfu_most);
    if (p.step_s.mid > 0) point.speed = p.step_s * (1 / p.step_s.mid);
    p.memory_bytes = absolute(peak_interval(setup, result.layout, e), e.memory_bytes);
    p.memory_capacity_bytes = setup.device.memory_bytes;
    p.fit_probability = result.fit_probability;
    p.mfu = e.mfu / held_back;
    p.hfu = e.hfu / held_back;
    p.steps = std::ceil(examples_ / result.layout.global_batch());
    p.tokens_per_s = e.step_s > 0 ? e.tokens_per_step / (e.step_s * held_back) : 0;
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
        point.notes.push_back(batch_text(result.layout, lane.space.global_batch));
    if (result.layout.offload) point.notes.emplace_back("optimizer states are offloaded to host memory: bound by PCIe");
    if (result.fit_probability < context_.settings.fit_wanted)
        point.notes.push_back(
            fmt::format("memory is tight: fits with probability {:.0f} %", 100 * result.fit_probability));
    point.set_up =
        set_up_share(layout_space(lane.space, setup, nodes), result.layout, result.seconds_per_example, whole);
    if (result.divided && lane.divided != nullptr && !whole && !needs_megatron(result.layout)) {
        const double least =
            lane.divided->mfu_most > 0 ? std::max(1.0, result.divided_mfu / lane.divided->mfu_most) : 1;
        const double saved_s = point.work_s - examples_ * result.divided_seconds * least;
        if (saved_s > 0.01 * point.work_s)
            point.notes.emplace_back(simpler_text(*result.divided, saved_s, point), NoteKind::simpler);
    }
    widen_for_unmeasured(context_, point);
    calibrate(context_, *choice(lane).node, point);
    return point;
}

// The series that the table of sizes by role names comes first among those that cost the same.
void TrainingSearch::set_preferences(std::vector<Point>& points) const {
    if (role_.series == 0 || context_.workload.objective.minimize != Minimize::cost) return;
    for (Point& point : points) {
        const NodeChoice& one = context_.choices[static_cast<std::size_t>(point.choice)];
        const bool named = fills_role(role_, *one.node);
        point.preference = named ? 0 : 1;
        point.rule = named ? "M series first for small models" : "";
    }
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
        // Of the doubted ones a few: they come behind the others, and bound one another.
        const int seeded = options_.quick ? 3 : 8;
        int clean = 0, doubted = 0;
        std::erase_if(order, [&](std::size_t i) {
            const bool behind = choice(lanes_[i]).doubted || choice(lanes_[i]).scarce;
            return (behind ? doubted : clean)++ >= (behind ? seeded / 2 : seeded);
        });
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
    set_preferences(search.points);
    return search;
}

}  // namespace

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
    const Workload megatron = as_megatron(context.workload);
    const std::optional<TrainingSetup> divided = divided_setup(context, megatron, setup, device);
    LayoutSpace space =
        layout_space(prefer_simple(context, layout_space(context.workload, setup, choice)), setup, nodes);
    if (divided) space.zero_most_cut = 1;
    const LayoutResult result =
        place_training(setup, space, nodes, context.settings.fit_wanted, divided ? &*divided : nullptr);
    if (!result.found && !result.nearly) {
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
    lane.divided = divided ? &*divided : nullptr;
    lane.space = space;
    lane.gpus_per_node = choice.devices();
    Point point = search.point_of(lane, nodes, result);
    if (!result.found) {
        point.refused = result.estimate.refused;
        point.have = result.estimate.have;
        point.need = result.estimate.need;
        const Prediction& p = point.prediction;
        point.prediction.fit_probability = fit_probability(setup, p.memory_bytes);
    }
    return point;
}

}  // namespace stoker
