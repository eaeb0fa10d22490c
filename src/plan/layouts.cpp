#include "plan/layouts.h"

#include <algorithm>
#include <cmath>

#include "plan/search_training.h"
#include "sizing/training_memory.h"

namespace stoker {
namespace {

// How far a step may be from the wanted global batch where it cannot be exact: 48 ranks cannot make 512, and 528 trains
// the same model.
constexpr double kBatchSlack = 0.125;
// As deep as a production run tells of (MegaScale, arXiv 2402.15627: 6); deeper ones are found in papers only, and can
// be pinned.
constexpr int kMostInterleaving = 6;

bool allows(const std::optional<double>& pinned, int value) {
    return !pinned || std::lround(*pinned) == value;
}

std::vector<int> tensor_degrees(const LayoutSpace& space) {
    if (space.pinned.tensor) return {static_cast<int>(std::lround(*space.pinned.tensor))};
    std::vector<int> degrees{1};
    if (!space.transformer || !space.gpu || space.adapters_only || !space.divides) return degrees;
    // Off the fast links tensor parallelism loses more than it divides (planner smells): only pairs there.
    const int most = space.pairs_only   ? 2
                     : space.domain > 1 ? std::min(space.domain, 16)
                                        : std::min(space.devices_per_node, 2);
    for (int t = 2; t <= most; t *= 2)
        if (space.heads % t == 0 && (space.mla || space.kv_heads % t == 0 || t % std::max(1, space.kv_heads) == 0))
            degrees.push_back(t);
    return degrees;
}

std::vector<int> pipeline_degrees(const LayoutSpace& space, int rest) {
    if (space.pinned.pipeline) return {static_cast<int>(std::lround(*space.pinned.pipeline))};
    std::vector<int> degrees{1};
    if (!space.transformer || !space.gpu || space.adapters_only || !space.divides || !space.pipelines) return degrees;
    for (int p = 2; p <= std::min({space.layers, rest, 64}); ++p) {
        const bool power = (p & (p - 1)) == 0;
        if (rest % p == 0 && (space.layers % p == 0 || (power && p <= 16))) degrees.push_back(p);
    }
    return degrees;
}

std::vector<int> context_degrees(const LayoutSpace& space, int rest) {
    if (space.pinned.context) return {static_cast<int>(std::lround(*space.pinned.context))};
    std::vector<int> degrees{1};
    if (!space.transformer || !space.divides) return degrees;
    // Short sequences gain nothing from being cut, unless there are more ranks than sequences.
    // What trains adapters (PEFT, TRL, Axolotl) cuts only what no device can hold.
    const double shortest = space.adapters_only ? 32768 : rest > space.global_batch * (1 + kBatchSlack) ? 2048 : 8192;
    for (int c = 2; c <= 16 && space.sequence / c >= shortest; c *= 2) degrees.push_back(c);
    return degrees;
}

// `ranks`: data-parallel ones.
std::vector<int> expert_degrees(const LayoutSpace& space, int ranks, int tensor) {
    if (space.pinned.expert) return {static_cast<int>(std::lround(*space.pinned.expert))};
    std::vector<int> degrees{1};
    if (space.adapters_only) return degrees;  // PEFT shards experts with everything else
    for (int e = 2; e <= std::min(space.experts, ranks * tensor); e *= 2) {
        const bool whole = space.whole_experts && e % tensor == 0;
        if (space.experts % e == 0 && (whole ? ranks * tensor : ranks) % e == 0) degrees.push_back(e);
    }
    return degrees;
}

// Chunks of layers on each stage of a pipeline: whatever divides its layers. With few stages there is little to gain.
std::vector<int> interleavings(const LayoutSpace& space, int pipeline) {
    // Megatron-Core cuts anywhere: embedding, loss and a layer that predicts further count as layers where that helps.
    const bool anywhere = space.modules && pipeline > 1 && !shares_layers(space.layers, pipeline);
    if (anywhere && space.pinned.virtual_stages) {
        const int chunks = static_cast<int>(std::lround(*space.pinned.virtual_stages));
        return chunks >= 1 && chunks * pipeline <= space.layers ? std::vector<int>{chunks} : std::vector<int>{};
    }
    if (anywhere && space.interleaves) {
        std::vector<int> depths;
        for (int v = 1; v <= 4 && v * pipeline <= space.layers; v *= 2) depths.push_back(v);
        return depths;
    }
    if (pipeline == 1 || !shares_layers(space.layers, pipeline)) {
        const bool one = !space.pinned.virtual_stages || std::lround(*space.pinned.virtual_stages) == 1;
        return one ? std::vector<int>{1} : std::vector<int>{};
    }
    const int on_stage = (space.layers % pipeline == 0 ? space.layers : space.layers + 2) / pipeline;
    if (space.pinned.virtual_stages) {
        const int chunks = static_cast<int>(std::lround(*space.pinned.virtual_stages));
        return chunks >= 1 && on_stage % chunks == 0 ? std::vector<int>{chunks} : std::vector<int>{};
    }
    if (!space.interleaves) return {1};
    std::vector<int> depths;
    const int most = std::min(on_stage, pipeline < 4 ? 2 : kMostInterleaving);
    for (int v = 1; v <= most; ++v)
        if (on_stage % v == 0) depths.push_back(v);
    return depths;
}

int pinned_micro_batch(const LayoutSpace& space) {
    return space.pinned.micro_batch ? std::max(1, static_cast<int>(std::lround(*space.pinned.micro_batch))) : 1;
}

// The sequences that a rank gets of an exact batch; 0 where they cannot be shared evenly.
std::int64_t share_of_batch(const LayoutSpace& space, int data) {
    const std::int64_t batch = std::llround(space.global_batch);
    const std::int64_t at_once = std::int64_t{data} * pinned_micro_batch(space);
    return batch % at_once == 0 ? batch / data : 0;
}

void add_states(const LayoutSpace& space, ParallelLayout layout, std::vector<ParallelLayout>& out) {
    const int ranks = layout.data * layout.context;
    auto add = [&](int zero, int shard_group) {
        if (!allows(space.pinned.zero, zero)) return;
        if (space.pinned.shard_group && std::lround(*space.pinned.shard_group) != shard_group && shard_group != 0)
            return;
        layout.zero = static_cast<std::uint8_t>(zero);
        layout.shard_group =
            space.pinned.shard_group ? static_cast<int>(std::lround(*space.pinned.shard_group)) : shard_group;
        out.push_back(layout);
    };
    if (ranks == 1) return add(space.pinned.zero ? static_cast<int>(*space.pinned.zero) : 0, 0);
    // Stages 2 and 3 gather and scatter for every micro-batch, which a pipeline has many of: frameworks refuse the mix.
    const bool mixed = layout.pipeline > 1 && !space.pinned.zero && space.zero_least <= 1;
    const bool cut = layout.tensor > 1 || layout.pipeline > 1 || layout.expert > 1;
    const int last = std::min(
        mixed ? 1 : 3, cut && !space.pinned.zero ? std::min(space.zero_most, space.zero_most_cut) : space.zero_most);
    for (int zero = space.zero_least; zero <= last; ++zero) add(zero, 0);
    if (space.pinned.zero && (*space.pinned.zero < space.zero_least || *space.pinned.zero > last))
        add(static_cast<int>(*space.pinned.zero), 0);
    const int in_node = std::max(1, space.devices_per_node / layout.tensor);
    if (space.node_groups && last == 3 && ranks > in_node && in_node > 1 && ranks % in_node == 0 &&
        !space.pinned.shard_group)
        add(3, in_node);  // HSDP
}

}  // namespace

Divisions divisions(const LayoutSpace& space) {
    Divisions out;
    for (int t : tensor_degrees(space)) {
        if (t < 1 || space.devices % t != 0) continue;
        for (int p : pipeline_degrees(space, space.devices / t)) {
            if (p < 1 || (space.devices / t) % p != 0 || p > space.layers) continue;
            const int rest = space.devices / t / p;
            for (int c : context_degrees(space, rest)) {
                if (c < 1 || rest % c != 0) continue;
                ParallelLayout layout;
                layout.tensor = t;
                layout.pipeline = p;
                layout.context = c;
                layout.data = rest / c;
                layout.sequence_parallel = space.pinned.sequence_parallel.value_or(t > 1);
                layout.offload = space.pinned.offload.value_or(false);
                if (!allows(space.pinned.data, layout.data)) continue;
                if (layout.data > space.global_batch * (1 + kBatchSlack)) {
                    ++out.too_many_ranks;
                    continue;
                }
                if (space.exact_batch && share_of_batch(space, layout.data) == 0) {
                    if (out.uneven++ == 0) out.uneven_ranks = layout.data;
                    continue;
                }
                const std::vector<int> depths = interleavings(space, p);
                for (int e : expert_degrees(space, layout.data * c, t)) {
                    layout.expert = e;
                    for (int v : depths) {
                        layout.virtual_stages = v;
                        add_states(space, layout, out.layouts);
                    }
                }
            }
        }
    }
    return out;
}

double set_up_share(const LayoutSpace& space, const ParallelLayout& layout, double seconds, bool megatron) {
    if ((!megatron && !needs_megatron(layout)) || seconds <= 0) return 0;
    return std::min(space.set_up_device_s / (seconds * std::max(1, space.devices)), space.set_up_most);
}

double oddness(const LayoutSpace& space, const ParallelLayout& layout, double seconds, bool megatron) {
    const int steps = (layout.tensor > 1 ? 1 : 0) + (layout.pipeline > 1 ? 2 : 0) +
                      (layout.virtual_stages > 1 ? 1 : 0) + (layout.virtual_stages > 4 ? 1 : 0);
    const bool inside = layout.pipeline > 1 && space.domain > 1 && space.devices <= space.domain;
    const double taste = std::pow(1 + space.simpler_share, steps);
    // DistributedDataParallel. FSDP is no simpler for it: beside a pipeline it is the simple one.
    const bool plain = layout.zero == 0 && layout.tensor == 1 && layout.pipeline == 1 && layout.context == 1;
    // Setting up is what the steps of simplicity stand for, too: of the two what is more.
    const double simpler = std::max(space.simpler_most > 0 ? std::min(taste, 1 + space.simpler_most) : taste,
                                    1 + set_up_share(space, layout, seconds, megatron));
    return simpler * (inside ? 1 + space.pipeline_inside_share : 1) / (plain ? 1 + space.plain_share : 1);
}

bool shares_batch(LayoutSpace space) {
    space.exact_batch = true;
    // States and experts have no say in it.
    space.pinned.zero = 0;
    space.pinned.expert = 1;
    return !divisions(space).layouts.empty();
}

bool fit_batch(ParallelLayout& layout, int micro_batch, const LayoutSpace& space) {
    const double at_once = static_cast<double>(layout.data) * micro_batch;
    const double count = std::max(1.0, std::round(space.global_batch / at_once));
    const double off = std::abs(count * at_once - space.global_batch);
    if (count > 1e6 || off > (space.exact_batch ? 0.5 : kBatchSlack * space.global_batch)) return false;
    // Interleaved schedules take micro-batches in groups as long as the pipeline (Narayanan et al. 2021, arXiv
    // 2104.04473, 2.2); Megatron-LM refuses the rest. Who pins the depth knows a framework that does not.
    const bool groups = layout.virtual_stages > 1 && !space.pinned.virtual_stages;
    if (groups && static_cast<std::int64_t>(count) % layout.pipeline != 0) return false;
    layout.micro_batch = micro_batch;
    layout.micro_batches = static_cast<std::int32_t>(count);
    return true;
}

std::vector<int> micro_batches(const LayoutSpace& space, const ParallelLayout& division) {
    if (space.pinned.micro_batch) return {static_cast<int>(std::lround(*space.pinned.micro_batch))};
    std::vector<int> sizes;
    const int largest = space.transformer ? 64 : 1024;
    if (space.exact_batch) {
        const std::int64_t share = share_of_batch(space, division.data);
        // Powers of two are what kernels like; a share that has few of them is cut as it can be.
        const bool odd = share % 8 != 0;
        for (int b = 1; b <= std::min<std::int64_t>(share, largest); ++b) {
            const bool power = (b & (b - 1)) == 0;
            if (share % b == 0 && (power || (odd && b <= 48) || (b == share && b <= 48))) sizes.push_back(b);
        }
        return sizes;
    }
    const double most = space.global_batch * (1 + kBatchSlack) / division.data;
    for (int b = 1; b <= most && b <= largest; b *= 2) sizes.push_back(b);
    // The whole share of a rank at once, when it is no power of two.
    const int share = static_cast<int>(std::lround(space.global_batch / division.data));
    if (share > 1 && share <= 48 && (share & (share - 1)) != 0) sizes.push_back(share);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
}

}  // namespace stoker
