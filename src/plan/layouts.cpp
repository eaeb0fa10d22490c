#include "plan/layouts.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

// How far a step may be from the wanted global batch: 48 ranks cannot make 512 exactly, and 528 trains the same model.
constexpr double kBatchSlack = 0.125;

bool allows(const std::optional<double>& pinned, int value) {
    return !pinned || std::lround(*pinned) == value;
}

std::vector<int> tensor_degrees(const LayoutSpace& space) {
    if (space.pinned.tensor) return {static_cast<int>(std::lround(*space.pinned.tensor))};
    std::vector<int> degrees{1};
    if (!space.transformer || !space.gpu || space.adapters_only) return degrees;
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
    if (!space.transformer || !space.gpu || space.adapters_only) return degrees;
    for (int p = 2; p <= std::min({space.layers, rest, 64}); ++p) {
        const bool power = (p & (p - 1)) == 0;
        if (rest % p == 0 && (space.layers % p == 0 || (power && p <= 16))) degrees.push_back(p);
    }
    return degrees;
}

std::vector<int> context_degrees(const LayoutSpace& space, int rest) {
    if (space.pinned.context) return {static_cast<int>(std::lround(*space.pinned.context))};
    std::vector<int> degrees{1};
    if (!space.transformer) return degrees;
    // Short sequences gain nothing from being cut, unless there are more ranks than sequences.
    const double shortest = rest > space.global_batch * (1 + kBatchSlack) ? 2048 : 8192;
    for (int c = 2; c <= 16 && space.sequence / c >= shortest; c *= 2) degrees.push_back(c);
    return degrees;
}

std::vector<int> expert_degrees(const LayoutSpace& space, int ranks) {
    if (space.pinned.expert) return {static_cast<int>(std::lround(*space.pinned.expert))};
    std::vector<int> degrees{1};
    for (int e = 2; e <= std::min(space.experts, ranks); e *= 2)
        if (space.experts % e == 0 && ranks % e == 0) degrees.push_back(e);
    return degrees;
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
    const int last = layout.pipeline > 1 && !space.pinned.zero ? 1 : 3;
    for (int zero = 0; zero <= last; ++zero) add(zero, 0);
    const int in_node = std::max(1, space.devices_per_node / layout.tensor);
    if (last == 3 && ranks > in_node && in_node > 1 && ranks % in_node == 0 && !space.pinned.shard_group)
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
                for (int e : expert_degrees(space, layout.data * c)) {
                    layout.expert = e;
                    for (int v : {1, 2, 4}) {
                        if (v > 1 && (p == 1 || space.layers % (p * v) != 0 || (v > 2 && p < 4))) continue;
                        if (!allows(space.pinned.virtual_stages, v)) continue;
                        layout.virtual_stages = v;
                        add_states(space, layout, out.layouts);
                    }
                }
            }
        }
    }
    return out;
}

bool fit_batch(ParallelLayout& layout, int micro_batch, double global_batch) {
    const double at_once = static_cast<double>(layout.data) * micro_batch;
    const double count = std::max(1.0, std::round(global_batch / at_once));
    if (count > 1e6 || std::abs(count * at_once - global_batch) > kBatchSlack * global_batch) return false;
    layout.micro_batch = micro_batch;
    layout.micro_batches = static_cast<std::int32_t>(count);
    return true;
}

std::vector<int> micro_batches(const LayoutSpace& space, const ParallelLayout& division) {
    if (space.pinned.micro_batch) return {static_cast<int>(std::lround(*space.pinned.micro_batch))};
    std::vector<int> sizes;
    const double most = space.global_batch * (1 + kBatchSlack) / division.data;
    for (int b = 1; b <= most && b <= (space.transformer ? 64 : 1024); b *= 2) sizes.push_back(b);
    // The whole share of a rank at once, when it is no power of two.
    const int share = static_cast<int>(std::lround(space.global_batch / division.data));
    if (share > 1 && share <= 48 && (share & (share - 1)) != 0) sizes.push_back(share);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
}

}  // namespace stoker
