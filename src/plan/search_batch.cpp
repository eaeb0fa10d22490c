// A pile of requests without an endpoint: every replica works at its best throughput until the pile is done.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/intervals.h"
#include "plan/precision_text.h"
#include "plan/replicas.h"
#include "plan/search_serving.h"
#include "plan/search_training.h"
#include "plan/serving_units.h"

namespace stoker {
namespace {

constexpr int kMostForPile = 1024;  // machines that one pile is spread over
// Fewer machines than these are not worth naming; 1 where a deadline or a number says how long it may take. Without
// either a pile that one machine works at for longer than people wait is spread: ten machines for two days cost what
// one costs for twenty.
int fewest_for_pile(const Context& context, const NodeType& node, const std::vector<int>& counts, int span,
                    double seconds_on_one) {
    if (context.workload.objective.deadline || context.workload.where.pinned_nodes(node)) return 1;
    for (const int nodes : counts)
        if (nodes % span == 0 && nodes <= kMostForPile && seconds_on_one / nodes <= context.settings.pile_patience_s)
            return nodes;
    return 1;
}

}  // namespace

Result<Search> search_batch(const Context& context) {
    const Workload& workload = context.workload;
    const double total = workload.total_examples();
    if (!(total > 0))
        return Error(ErrorKind::invalid,
                     "how many requests are in the pile? traffic.requests (or data.examples) is missing", workload.pos,
                     "add traffic: {requests: 1M, prompt_tokens: 1000, output_tokens: 200}");
    Search search;
    for (std::size_t i = 0; i < context.choices.size(); ++i) {
        const NodeChoice& choice = context.choices[i];
        auto made = make_serving_setup(workload, context.catalog, make_device(context.catalog, choice.type));
        if (!made) return std::move(made).error();
        const ServingSetup& setup = *made;
        double best_rate = 0;
        ReplicaShape best_shape;
        ServingMemory best_memory;
        int span = 1;
        for (ReplicaShape shape : replica_shapes(context, choice, setup)) {
            ++search.considered;
            const ServingMemory memory = serving_memory(setup, shape);
            if (memory.refused != Reason::none) {
                ++search.refused;
                search.rejected.add({.node_type = choice.type,
                                     .reason = memory.refused,
                                     .have = memory.have,
                                     .need = memory.need,
                                     .text = refusal_text(memory.refused, memory.have, memory.need)});
                continue;
            }
            const int held = replicas_per_node(choice, shape);
            const int nodes = held > 0 ? 1 : (shape.gpus() + choice.devices() - 1) / choice.devices();
            double rate = 0;
            if (setup.decoder) {
                rate = offline_throughput(setup, shape).requests_per_s * std::max(1, held) / nodes;
            } else {
                for (double batch = 1; batch <= std::min(256.0, std::max(1.0, memory.max_batch)); batch *= 2)
                    rate = std::max(rate, batch / batch_seconds(setup, batch) * std::max(1, held));
            }
            if (rate > best_rate) best_rate = rate, best_shape = shape, best_memory = memory, span = nodes;
        }
        if (!(best_rate > 0)) continue;
        const std::vector<int> counts = node_counts(workload.where, *choice.node);
        const int fewest = fewest_for_pile(context, *choice.node, counts, span, total / best_rate);
        for (int nodes : counts) {
            if (nodes % span != 0 || nodes < fewest ||
                (nodes > kMostForPile && !workload.where.pinned_nodes(*choice.node)))
                continue;
            const double work_s = total / (best_rate * nodes);
            if (nodes > span && work_s < 300 && !workload.where.pinned_nodes(*choice.node))
                break;  // provisioning would be most of it
            ++search.considered;
            Point point;
            point.choice = static_cast<int>(i);
            point.nodes = nodes;
            point.replica = best_shape;
            const int held = replicas_per_node(choice, best_shape);
            point.replicas = held > 0 ? held * nodes : nodes / span;
            point.devices = choice.accelerator != nullptr ? choice.node->accelerators * nodes : nodes;
            point.work_s = work_s;
            point.checkpoint_bytes = 1e6;  // the list of finished requests
            const double spread = std::exp(1.2816 * setup.device.sigma);
            const Range rates = calibrated_intervals().factors(setup.decoder ? "out_tokens_per_s" : "samples_per_s",
                                                               {1 / spread, 1, spread}, 0, setup.interval_growth);
            point.speed = {1 / rates.high, 1, 1 / rates.low};
            point.growth = setup.interval_growth;
            const ServiceUnits units = units_of(workload, setup);
            point.units = total * units.price_each;
            point.framework = serving_framework(workload, choice);
            point.precision = setup.precision;
            point.kv_precision = setup.kv_precision;
            point.weight_only = setup.weight_only && setup.device.gpu;
            if (setup.weight_only) point.notes.emplace_back(weight_only_text(setup, choice), NoteKind::weight_only);
            Prediction& p = point.prediction;
            p.bytes = best_memory.bytes;
            double bytes = 0;
            for (double b : p.bytes) bytes += b;
            p.memory_bytes = {bytes, bytes, bytes};
            p.memory_capacity_bytes = setup.device.memory_bytes;
            p.unit_name = units.price;
            p.rate_unit = units.rate;
            p.tokens_per_s = best_rate * nodes * units.rate_each;
            p.knee_requests_per_s = best_rate * nodes / std::max(1, point.replicas);
            p.utilisation = 0.95;
            p.bottleneck = setup.decoder
                               ? decode_bound(setup, best_shape, best_memory.max_batch,
                                              best_memory.max_batch * (setup.prompt_tokens + setup.output_tokens / 2))
                           : choice.accelerator == nullptr ? Bottleneck::cpu
                                                           : Bottleneck::compute;
            p.prefill_bound = setup.decoder ? prefill_bound(setup, best_shape, setup.token_budget) : p.bottleneck;
            search.points.push_back(std::move(point));
        }
    }
    return search;
}

}  // namespace stoker
