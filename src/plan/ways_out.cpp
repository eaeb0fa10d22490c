#include "plan/ways_out.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/search_training.h"
#include "workload/video_size.h"

namespace stoker {
namespace {

// The nearest lower number of four binary digits: pipelines, groups and batches divide by two and little else.
double divides_well(double count) {
    const double unit = std::exp2(std::max(0.0, std::floor(std::log2(std::max(1.0, count))) - 3));
    return std::floor(count / unit) * unit;
}

Relaxation fewer_that_divide(const WhereSpec& where) {
    const double asked = where.gpus ? *where.gpus : where.nodes.value_or(0);
    const double well = divides_well(asked);
    return {fmt::format("where: {{{}: {:.0f}}}: {} divide badly, the rest are spares", where.gpus ? "gpus" : "nodes",
                        well, format_thousands(asked)),
            [well, asked](Workload& w) {
                if (!is_training(w.kind) || !(well < asked)) return false;
                (w.where.gpus ? w.where.gpus : w.where.nodes) = well;
                return true;
            },
            {Reason::shape_indivisible, Reason::batch_indivisible, Reason::batch_too_large, Reason::memory}};
}

// No more GPUs than sequences can share a batch: where time is short, that is what keeps a gang small.
Relaxation larger_batch(const Workload& workload) {
    constexpr double kTimes = 4;
    const double batch = global_batch_of(workload), examples = training_examples(workload);
    return {fmt::format("batch: {{global_examples: {:.0f}}} in place of {:.0f}: more GPUs than {} cannot share one",
                        kTimes * batch, batch, workload.model.transformer() ? "sequences" : "examples"),
            [batch, examples](Workload& w) {
                const bool late = w.objective.deadline.has_value() && is_training(w.kind);
                w.batch.global_examples = kTimes * batch;
                w.batch.global_tokens = kTimes * batch * w.sequence();
                return late && kTimes * batch <= examples;
            },
            {Reason::batch_too_large}};
}

}  // namespace

std::vector<Relaxation> relaxations(const Context& context) {
    auto clears = [](auto member, std::string text, std::vector<Reason> reasons) {
        return Relaxation{std::move(text),
                          [member](Workload& w) {
                              auto& value = member(w);
                              const bool had = !value.empty();
                              value.clear();
                              return had;
                          },
                          std::move(reasons)};
    };
    const Precision wide = context.workload.precision == Precision::bf16 ? Precision::fp16 : Precision::bf16;
    const auto weights = [](Precision to, std::string text) {
        return Relaxation{std::move(text),
                          [to](Workload& w) {
                              const bool had = w.kind == WorkloadKind::inference && w.model_known &&
                                               w.model.kind == ModelKind::decoder && w.precision != to &&
                                               w.precision != Precision::int4;
                              fix_precision(w, to);
                              return had;
                          },
                          {Reason::throughput, Reason::memory}};
    };
    // Never without any limit: that offers first tokens after hours.
    const auto slower = [](double factor) {
        constexpr double kWorthHaving = 3;  // a chat whose first token takes minutes saves nobody money
        return Relaxation{fmt::format("latency limits {:.0f} x as wide", factor),
                          [factor](Workload& w) {
                              LatencySpec& l = w.objective.latency;
                              for (auto* limit : {&l.ttft_p50, &l.ttft_p95, &l.ttft_p99, &l.tpot_p50, &l.tpot_p95,
                                                  &l.tpot_p99, &l.e2e_p95, &l.p95})
                                  if (*limit) *limit = Seconds((*limit)->v * factor);
                              return l.any();
                          },
                          {Reason::throughput, Reason::latency, Reason::cpu_too_slow},
                          factor > kWorthHaving};
    };
    return {
        {"objective.survive_one_replica_lost: false (a default)",
         [](Workload& w) {
             const bool had = w.kind == WorkloadKind::inference && w.objective.survive_one_replica_lost &&
                              !w.objective.at.contains("survive_one_replica_lost");
             w.objective.survive_one_replica_lost = false;
             return had;
         },
         {Reason::throughput, Reason::node_count}},
        weights(Precision::fp8, "precision: fp8"),
        weights(Precision::int8, "precision: int8 (weights in 8 bits)"),
        weights(Precision::int4, "precision: int4 (weights in 4 bits; test the answers)"),
        slower(3),
        slower(30),
        slower(1000),
        larger_batch(context.workload),
        fewer_that_divide(context.workload.where),
        {"without the number of nodes",
         [](Workload& w) {
             const bool had = w.where.nodes || w.where.max_nodes || w.where.gpus;
             w.where.nodes.reset();
             w.where.gpus.reset();
             w.where.max_nodes.reset();
             return had;
         },
         {Reason::throughput, Reason::node_count}},
        // Fine-tuning that does not fit whole fits with adapters: they need neither gradients nor optimizer states of
        // the weights, and QLoRA a quarter of the weights.
        {"method full -> lora",
         [](Workload& w) {
             const bool had = w.kind == WorkloadKind::fine_tuning && w.method == Method::full;
             w.method = Method::lora;
             return had && w.model.transformer();
         },
         {Reason::memory, Reason::host_memory}},
        {"method -> qlora (weights in 4 bits)",
         [](Workload& w) {
             const bool had = w.kind == WorkloadKind::fine_tuning && w.method != Method::qlora;
             w.method = Method::qlora;
             return had && w.model.transformer();
         },
         {Reason::memory, Reason::host_memory}},
        {fmt::format("data: {{sequence: {:.0f}}} in place of {:.0f}", context.workload.sequence() / 2,
                     context.workload.sequence()),
         [](Workload& w) {
             constexpr double kShort = 1024;  // below it there is little left to learn from
             const bool had = w.kind == WorkloadKind::fine_tuning && w.model.transformer() && w.data.sequence &&
                              *w.data.sequence >= 2 * kShort;
             if (!had) return false;
             w.data.sequence = std::floor(*w.data.sequence / 2);
             if (w.batch.global_examples) w.batch.global_tokens = *w.batch.global_examples * *w.data.sequence;
             return true;
         },
         {Reason::memory}},
        {"data: {image_size: 480}: smaller videos",
         [](Workload& w) {
             constexpr double kSmall = 480;
             const bool had = is_training(w.kind) && video_edge(w.model) > kSmall;
             if (had) scale_video(w.model, kSmall);
             return had;
         },
         {Reason::memory, Reason::host_memory}},
        {"without the pinned layout",
         [](Workload& w) {
             const LayoutSpec& l = w.layout;
             const bool had = l.tensor || l.pipeline || l.virtual_stages || l.context || l.expert || l.data || l.zero ||
                              l.micro_batch || l.shard_group || l.recompute;
             w.layout = {};
             return had;
         },
         {}},
        {"where: {spot: allowed}, which counts list prices as well",
         [](Workload& w) {
             const bool had = w.where.spot == SpotUse::only;
             w.where.spot = SpotUse::allowed;
             return had;
         },
         {Reason::unpriced, Reason::spot_not_allowed}},
        {fmt::format("precision {} -> {}", to_string(context.workload.precision), to_string(wide)),
         [wide](Workload& w) {
             const bool had = w.model_known && w.precision_order.empty();
             fix_precision(w, wide);
             return had;
         },
         {Reason::precision_unsupported}},
        clears([](Workload & w) -> auto& { return w.where.regions; }, "without the list of regions",
               {Reason::residency, Reason::restricted, Reason::zone, Reason::region}),
        {"where: {cloud: any}",
         [](Workload& w) {
             const bool had = !w.where.clouds.empty() && !w.where.residency.empty();
             w.where.clouds = {"any"};
             return had;
         },
         {Reason::residency}},
        clears([](Workload & w) -> auto& { return w.where.residency; }, "without the residency", {Reason::residency}),
        clears([](Workload & w) -> auto& { return w.where.accelerators; }, "without the list of accelerators", {}),
        clears([](Workload & w) -> auto& { return w.where.sizes; }, "without the list of sizes", {}),
    };
}

}  // namespace stoker
