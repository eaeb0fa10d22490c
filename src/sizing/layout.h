// How one job is spread over devices. Plain numbers: the search makes millions of these.
#pragma once

#include <cstdint>
#include <string>

#include "catalog/catalog.h"

namespace stoker {

enum class Recompute : std::uint8_t { none, selective, full };
std::string_view to_string(Recompute recompute);

// Who holds what: ZeRO stages 0-3 (arXiv 1910.02054). FSDP full shard is 3; HSDP is 3 with shard_group < data *
// context.
struct ParallelLayout {
    std::int32_t tensor = 1;
    std::int32_t pipeline = 1;
    std::int32_t virtual_stages = 1;  // 1: 1F1B; more: interleaved
    std::int32_t context = 1;
    std::int32_t expert = 1;  // ranks that share the experts; re-uses data and context ranks, and see whole_experts()
    std::int32_t data = 1;
    std::int32_t shard_group = 0;    // ranks that shard the states; 0: all data * context ranks
    std::int32_t micro_batch = 1;    // sequences
    std::int32_t micro_batches = 1;  // per data-parallel rank and step
    std::uint8_t zero = 0;
    Recompute recompute = Recompute::none;
    std::int32_t recompute_layers = 0;  // full: so many layers of each chunk of each stage; 0: all of them
    bool sequence_parallel = false;
    bool offload = false;  // optimizer states in host memory

    std::int32_t gpus() const { return tensor * pipeline * context * data; }
    double global_batch() const { return static_cast<double>(data) * micro_batch * micro_batches; }
    std::int32_t shard_ranks() const { return shard_group > 0 ? shard_group : data * context; }
    // Experts need not be divided over tensor ranks: those are among the ranks that share them.
    bool whole_experts() const { return expert > 1 && expert % tensor == 0; }
    // Of so many layers in all, the share that full recompute runs through again.
    double recomputed_share(double layers) const {
        if (recompute != Recompute::full) return 0;
        const double chunk = layers / (static_cast<double>(pipeline) * virtual_stages);
        return recompute_layers > 0 && recompute_layers < chunk ? recompute_layers / chunk : 1;
    }
    friend bool operator==(const ParallelLayout&, const ParallelLayout&) = default;
};
std::string describe(const ParallelLayout& layout);  // "FSDP over 48, micro-batch 2, no recompute"

}  // namespace stoker
