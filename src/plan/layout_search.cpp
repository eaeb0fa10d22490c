#include "plan/layout_search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/search_training.h"
#include "sizing/framework.h"

namespace stoker {
namespace {

std::vector<Recompute> recomputes(const LayoutSpace& space) {
    if (space.pinned.recompute_layers) return {Recompute::full};
    if (space.pinned.recompute) {
        if (*space.pinned.recompute == "none") return {Recompute::none};
        return {*space.pinned.recompute == "full" ? Recompute::full : Recompute::selective};
    }
    // FlashAttention recomputes the attention core by itself, which leaves nothing to the selective kind.
    if ((space.flash && !space.modules) || !space.transformer) return {Recompute::none, Recompute::full};
    return {Recompute::none, Recompute::selective, Recompute::full};
}

}  // namespace

Range absolute(Range range, double value) {
    return range.mid > 0 && std::abs(range.mid - 1) < 1e-9 ? range * value : range;
}

double pinned_devices(const LayoutSpec& pinned) {
    return pinned.tensor.value_or(1) * pinned.pipeline.value_or(1) * pinned.context.value_or(1) *
           pinned.data.value_or(1);
}

std::string no_division_text(const LayoutSpace& space, double devices) {
    const double pinned = pinned_devices(space.pinned);
    if (pinned > 1)
        return fmt::format("the pinned layout needs {}{:.0f} devices, {:.0f} are there",
                           space.pinned.data ? "" : "a multiple of ", pinned, devices);
    return fmt::format("no way to divide {} layers and {} heads over {:.0f} devices", space.layers, space.heads,
                       devices);
}

LayoutSpace layout_space(const Workload& workload, const TrainingSetup& setup, const NodeChoice& choice) {
    LayoutSpace space = layout_space(workload, setup, choice.devices());
    space.gpu = choice.accelerator != nullptr;
    return space;
}

LayoutSpace layout_space(const Workload& workload, const TrainingSetup& setup, int devices_per_node) {
    LayoutSpace space;
    space.devices_per_node = devices_per_node;
    space.gpu = setup.device.gpu;
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
    // Who names no framework gets Megatron where a mixture is cut.
    space.modules = setup.module_bytes > 0 ||
                    (workload.framework.empty() && workload.kind == WorkloadKind::training && workload.model.moe());
    space.whole_experts = space.modules && workload.model.moe();
    space.adapters_only = workload.method != Method::full;
    const std::string stack = lower(workload.framework);
    space.pipelines = workload.kind != WorkloadKind::fine_tuning || stack.find("megatron") != std::string::npos ||
                      stack.find("nemo") != std::string::npos;
    space.pinned = workload.layout;
    space.any_framework = workload.framework.empty();
    // Who names a framework gets what it can do; else the layout decides which one it takes.
    if (!workload.framework.empty()) {
        const FrameworkFamily& family = framework_family(workload.framework);
        space.zero_least = family.zero_least;
        space.zero_most = family.zero_most;
        space.node_groups = family.name != "zero3";  // DeepSpeed took MiCS out (0.19, runtime/config.py)
        space.divides = family.divides || family.name == "default";
        space.interleaves = family.interleaves || family.name == "default";
    }
    return space;
}

LayoutSpace layout_space(LayoutSpace space, const TrainingSetup& setup, int nodes) {
    space.devices = space.devices_per_node * nodes;
    const bool beyond = setup.device.scale_up_crosses_nodes;
    space.domain = std::min(space.domain, beyond ? space.devices : space.devices_per_node);
    return space;
}

LayoutSpace prefer_simple(const Context& context, LayoutSpace space) {
    // Fine-tuning is done with FSDP and DeepSpeed; what needs Megatron has to be worth it.
    space.simpler_share = context.workload.kind == WorkloadKind::fine_tuning ? context.settings.simpler_share_tuning
                                                                             : context.settings.simpler_share;
    // Months of a thousand GPUs are worth any layout.
    if (context.workload.kind != WorkloadKind::fine_tuning) space.simpler_most = context.settings.simpler_most;
    space.pipeline_inside_share = context.settings.pipeline_inside_share;
    // Megatron takes a number of layers; the others recompute all of them or none.
    const std::string stack = lower(context.workload.framework);
    space.some_layers =
        space.transformer && !space.pinned.recompute && !space.pinned.recompute_layers &&
        (space.any_framework ? context.workload.kind == WorkloadKind::training : framework_family(stack).some_layers);
    // Who names a framework has named how it keeps states, and has it.
    if (space.any_framework) space.plain_share = context.settings.plain_share;
    const double examples = training_examples(context.workload);
    if (space.any_framework && context.workload.kind == WorkloadKind::training && examples > 0 &&
        context.workload.objective.minimize == Minimize::cost) {
        space.set_up_device_s = context.settings.set_up_gpu_s / examples;
        space.set_up_most = context.settings.set_up_most;
    }
    return space;
}

// The best micro-batch and recompute of every division. Recomputing never makes a step faster, so a size that surely
// fits without it is not tried again with it.
const TrainingSetup& setup_for(const TrainingSetup& setup, const TrainingSetup* divided, const ParallelLayout& layout) {
    return divided != nullptr && needs_megatron(layout) ? *divided : setup;
}

void evaluate_layouts(const TrainingSetup& plain, const TrainingSetup* divided, const LayoutSpace& space, int nodes,
                      double fit_wanted, LayoutResult& out) {
    out.done = true;
    const Divisions all = divisions(space);
    out.too_many_ranks = all.too_many_ranks;
    out.uneven = all.uneven;
    out.uneven_ranks = all.uneven_ranks;
    out.considered = out.refused = all.too_many_ranks + all.uneven;
    double best_unsure = kInfinity, best_fit = 0,
           least = 0;    // seconds per example, odd layouts having more to make up for
    bool whole = false;  // what is considered
    TrainingEstimate estimate;
    auto refuse = [&](const TrainingEstimate& e, const ParallelLayout& layout) {
        ++out.refused;
        if (e.refused == Reason::memory && !out.found && (!out.nearly || e.need < out.nearest_estimate.need)) {
            out.nearly = true;
            out.nearest = layout;
            out.nearest_estimate = e;
        }
        auto& worst = out.refusals[static_cast<std::size_t>(e.refused)];
        if (worst.count++ == 0 || e.need < worst.need) worst.have = e.have, worst.need = e.need;
    };
    auto consider = [&](const ParallelLayout& layout) {  // 0: does not run, 1: may, 2: surely does
        ++out.considered;
        const TrainingSetup& setup = whole ? *divided : setup_for(plain, divided, layout);
        evaluate(setup, layout, nodes, estimate);
        if (estimate.refused != Reason::none) return refuse(estimate, layout), 0;
        const double seconds = estimate.step_s / layout.global_batch(),
                     weighed = seconds * oddness(space, layout, seconds, whole);
        const double fit =
            fit_probability(setup, absolute(memory_interval(setup, layout, estimate), estimate.memory_bytes));
        const bool sure = fit >= fit_wanted;
        if (sure && space.set_up_device_s > 0 && needs_megatron(layout) &&
            (!out.divided || seconds < out.divided_seconds))
            out.divided = layout, out.divided_seconds = seconds, out.divided_mfu = estimate.mfu;
        // Layouts that wait for the same input take equally long; the one that computes least shows what the time is
        // for.
        constexpr auto kStall = static_cast<std::size_t>(TimeTerm::data_stall);
        const bool faster = weighed < least * (1 - 1e-9) ||
                            (weighed <= least * (1 + 1e-9) &&
                             estimate.seconds[kStall] / estimate.step_s >
                                 out.estimate.seconds[kStall] / std::max(out.estimate.step_s, 1e-12) + 1e-9);
        const bool better =
            sure ? (!(best_fit >= fit_wanted) || faster) : (best_fit < fit_wanted && weighed < best_unsure);
        if (better) {
            out.found = true;
            out.whole = whole;
            out.layout = layout;
            out.estimate = estimate;
            out.seconds_per_example = seconds;
            least = weighed;
            out.fit_probability = best_fit = fit;
            if (!sure) best_unsure = weighed;
        }
        return sure ? 2 : 1;
    };
    // The fewest layers of each chunk that have to be recomputed for a layout to fit surely. False: all of them do, or
    // recomputing none of them would be no faster than what is known.
    const auto fewest_layers = [&](ParallelLayout& layout) {
        const TrainingSetup& setup = setup_for(plain, divided, layout);
        evaluate(setup, layout, nodes, estimate);
        if (estimate.refused != Reason::none && estimate.refused != Reason::memory) return false;
        // What recomputes no whole layer is simpler: to count layers beside it has to be worth it.
        const double worth = out.layout.recompute == Recompute::full ? 1 : 1 + space.simpler_share;
        const double seconds = estimate.step_s / layout.global_batch();
        if (out.found && best_fit >= fit_wanted && worth * seconds * oddness(space, layout, seconds) >= least)
            return false;
        const int chunk = static_cast<int>(std::ceil(setup.layers / (layout.pipeline * layout.virtual_stages)));
        layout.recompute = Recompute::full;
        int low = 1, high = chunk;  // recomputing `high` of them fits, once it was moved
        while (low < high) {
            const int middle = (low + high) / 2;
            layout.recompute_layers = middle;
            evaluate(setup, layout, nodes, estimate);
            const bool fits = estimate.refused == Reason::none &&
                              fit_probability(setup, absolute(memory_interval(setup, layout, estimate),
                                                              estimate.memory_bytes)) >= fit_wanted;
            (fits ? high : low) = fits ? middle : middle + 1;
        }
        layout.recompute_layers = low;
        return low < chunk;
    };
    const std::vector<Recompute> kinds = recomputes(space);
    const auto search = [&](const ParallelLayout& division) {
        const std::vector<int> sizes = micro_batches(space, division);
        std::size_t surely = 0;        // sizes[0 .. surely) fit without (or with less) recompute
        std::size_t surely_whole = 0;  // the same, of those that recompute no whole layer
        for (Recompute recompute : kinds) {
            ParallelLayout layout = division;
            layout.recompute = recompute;
            if (recompute == Recompute::full)
                surely_whole = surely,
                layout.recompute_layers = static_cast<std::int32_t>(space.pinned.recompute_layers.value_or(0));
            for (std::size_t i = surely; i < sizes.size(); ++i) {
                if (!fit_batch(layout, sizes[i], space)) continue;
                const int runs = consider(layout);
                if (runs == 0) break;  // larger ones need more memory still
                if (runs == 2 && i == surely) surely = i + 1;
            }
        }
        if (!space.some_layers || (space.any_framework && !needs_megatron(division))) return;
        for (std::size_t i = surely_whole; i < sizes.size(); ++i) {
            ParallelLayout layout = division;
            if (!fit_batch(layout, sizes[i], space)) continue;
            if (!fewest_layers(layout)) break;
            consider(layout);
        }
    };
    for (const ParallelLayout& division : all.layouts) search(division);
    // Where a cut wins, that may be for the kernels of the stack that cuts: without one it may do better still, with
    // states divided as it divides them.
    if (divided != nullptr && out.found && needs_megatron(out.layout)) {
        whole = true;
        for (const ParallelLayout& division : all.layouts)
            if (!needs_megatron(division) && division.zero <= 1) search(division);
        whole = false;
    }
    // Host memory is the last resort: it is bound by PCIe, many times slower than the device's own memory. Who pins how
    // states are divided wants to know whether that fits.
    const LayoutSpec& pin = space.pinned;
    const bool pinned = pin.offload || pin.tensor || pin.pipeline || pin.data || pin.zero || pin.shard_group;
    if (!out.found && !pinned && space.gpu) {
        for (ParallelLayout layout : all.layouts) {
            // DeepSpeed does it, beside which nothing cuts the model; of a named framework any layout may.
            if (needs_megatron(layout) && space.any_framework) continue;
            layout.offload = true;
            layout.recompute = kinds.back();
            if (fit_batch(layout, 1, space)) consider(layout);
        }
    }
}

LayoutResult place_training(const TrainingSetup& setup, LayoutSpace space, int nodes, double fit_wanted,
                            const TrainingSetup* divided) {
    space = layout_space(space, setup, nodes);
    space.exact_batch = shares_batch(space);
    LayoutResult result;
    evaluate_layouts(setup, divided, space, nodes, fit_wanted, result);
    if (!result.found && result.nearly) {
        result.layout = result.nearest;
        result.estimate = result.nearest_estimate;
        result.seconds_per_example = result.estimate.step_s / result.layout.global_batch();
    }
    return result;
}

double network_share(const TrainingEstimate& estimate) {
    double waiting = 0;
    for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm, TimeTerm::pipeline_comm,
                          TimeTerm::gradient_comm, TimeTerm::gather_comm})
        waiting += estimate.seconds[static_cast<std::size_t>(term)];
    return estimate.step_s > 0 ? waiting / estimate.step_s : 0;
}

double waiting_share(const TrainingEstimate& estimate) {
    const double bubble = estimate.seconds[static_cast<std::size_t>(TimeTerm::bubble)];
    return network_share(estimate) + (estimate.step_s > 0 ? bubble / estimate.step_s : 0);
}

}  // namespace stoker
