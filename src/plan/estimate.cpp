// One pinned configuration: no search, every term, and when it cannot run the shortfall beside the terms.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/evidence.h"
#include "plan/pipeline.h"
#include "plan/platform.h"
#include "plan/replicas.h"
#include "plan/search_serving.h"
#include "plan/search_training.h"

namespace stoker {
namespace {

// The shape asked for, or the one that lacks least, when no replica can run: memory by term and the latency of a lone
// request.
std::vector<Point> nearest_replica(const Context& context) {
    const NodeChoice& choice = context.choices.front();
    auto setup = make_serving_setup(context.workload, context.catalog, make_device(context.catalog, choice.type));
    if (!setup) return {};
    std::optional<Point> best;
    for (ReplicaShape shape : replica_shapes(context, choice, *setup)) {
        Replica replica{.choice = 0, .setup = &*setup, .shape = shape, .cpu = choice.accelerator == nullptr};
        replica.memory = serving_memory(*setup, shape);
        predict_idle(replica);
        Point point;
        point.choice = 0;
        point.replica = shape;
        const ReplicaFleet fleet = place_fleet(choice, shape, 1, 1, false);
        point.nodes = fleet.nodes;
        point.replicas = fleet.replicas;
        point.devices = shape.gpus();
        point.service_hours = context.workload.period ? context.workload.period->v / 3600 : 1;
        point.framework = serving_framework(context.workload, choice);
        point.precision = setup->precision;
        point.kv_precision = setup->kv_precision;
        Prediction& p = point.prediction;
        p.bytes = replica.memory.bytes;
        double total = 0;
        for (double bytes : p.bytes) total += bytes;
        p.memory_bytes = {total, total, total};
        p.memory_capacity_bytes = setup->device.memory_bytes;
        p.ttft_p95_s = {replica.idle_ttft, replica.idle_ttft, replica.idle_ttft};
        p.tpot_p95_s = {replica.idle_tpot, replica.idle_tpot, replica.idle_tpot};
        const LatencySpec& limit = context.workload.objective.latency;
        point.refused = replica.memory.refused;
        point.have = replica.memory.have;
        point.need = replica.memory.need;
        if (point.refused == Reason::none) {
            point.refused = replica.cpu ? Reason::cpu_too_slow : Reason::latency;
            const bool first = replica.idle_ttft > ttft_limit(limit);
            point.have = first ? ttft_limit(limit) : tpot_limit(limit);
            point.need = first ? replica.idle_ttft : replica.idle_tpot;
        } else {
            p.fit_probability = 0;
        }
        point.notes.push_back(predicted_text(replica));
        auto lacks = [](const Point& one) { return one.need > 0 ? one.need / std::max(one.have, 1e-12) : 1e12; };
        if (!best || lacks(point) < lacks(*best)) best = std::move(point);
    }
    if (!best) return {};
    return {std::move(*best)};
}

// What the nodes that may be used hold, where that is less than what is asked.
std::vector<Point> nearest_held(const Context& context, const Search& search) {
    for (const Rejection& line : search.rejected.sorted()) {
        if (line.reason != Reason::throughput || !(line.have > 0)) continue;
        Workload asked = context.workload;
        asked.traffic.requests_per_second = asked.traffic.concurrency = asked.traffic.users = asked.traffic.streams =
            std::nullopt;
        if (!asked.where.nodes && !asked.where.gpus) asked.where.nodes = asked.where.max_nodes;
        const Context held = make_context(asked, context.catalog, context.options);
        auto found = run_search(held, {});
        if (!found) return {};
        for (Point& point : found->points) {
            point.refused = line.reason;
            point.have = line.have;
            point.need = line.need;
            point.notes.push_back(line.text);
        }
        return std::move(found->points);
    }
    return {};
}

}  // namespace

Result<Candidate> estimate(const Workload& workload, const Catalog& catalog, const PlanOptions& given) {
    const PlanOptions options = with_ordered_offers(given);
    if (workload.where.sizes.size() != 1)
        return Error(ErrorKind::invalid,
                     fmt::format("an estimate needs exactly one size, {} are named", workload.where.sizes.size()),
                     workload.pos, "add where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2}");
    const Context context = make_context(workload, catalog, options);
    if (context.choices.empty()) {
        const auto lines = context.rejected.sorted();
        return Error(ErrorKind::infeasible,
                     fmt::format("{}: {}", workload.where.sizes.front(),
                                 lines.empty() ? "not in the catalogue" : lines.front().text),
                     workload.pos);
    }
    Search search;
    if (is_training(workload.kind)) {
        if (!(training_examples(workload) > 0))
            return Error(ErrorKind::invalid, "how much data is there? data.tokens or data.examples is missing",
                         workload.pos);
        const int nodes = workload.where.pinned_nodes(*context.choices.front().node).value_or(1);
        TRY(Point point, training_point(context, 0, nodes));
        hold_nearest_run(context, point);
        search.points.push_back(std::move(point));
    } else {
        TRY(search, run_search(context, {}));
        if (search.points.empty() && serves(workload)) search.points = nearest_held(context, search);
        if (search.points.empty() && serves(workload)) search.points = nearest_replica(context);
    }
    Ranking ranking = rank(context, search.points);
    std::vector<Option> options_found = std::move(ranking.expansion.options);
    options_found.insert(options_found.end(), ranking.expansion.over_limit.begin(), ranking.expansion.over_limit.end());
    const std::vector<Option> groups = best_of_groups(std::move(options_found), workload.objective.minimize);
    if (groups.empty()) {
        RejectionLog all = search.rejected;
        all.merge(ranking.expansion.rejected);
        const auto lines = all.sorted();
        return Error(ErrorKind::infeasible,
                     fmt::format("{}: {}", workload.where.sizes.front(),
                                 lines.empty() ? "no configuration runs" : lines.front().text),
                     workload.pos);
    }
    Candidate candidate = make_candidate(context, search, groups.front());
    candidate.orchestrator = choose_platform(workload, context, candidate).orchestrator;
    return candidate;
}

}  // namespace stoker
