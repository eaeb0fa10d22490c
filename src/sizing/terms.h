// The terms of a step and of a device's memory: one enum, one table of names, formulas and sources for both people and
// tests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace stoker {

enum class TimeTerm : std::uint8_t {
    matmul,
    attention,
    memory_bound,
    logits,
    recompute,
    launch,
    tensor_comm,
    context_comm,
    expert_comm,
    pipeline_comm,
    bubble,
    gradient_comm,
    gather_comm,
    optimizer,
    host,
    data_stall,
    checkpoint_stall,
    count
};
enum class MemoryTerm : std::uint8_t {
    weights,
    gradients,
    optimizer,
    activations,
    logits,
    gathered,
    kv_cache,
    workspace,
    framework,
    communication,
    fragmentation,
    count
};
inline constexpr int kTimeTerms = static_cast<int>(TimeTerm::count);
inline constexpr int kMemoryTerms = static_cast<int>(MemoryTerm::count);

struct TermInfo {
    std::string_view name;     // as shown: "matmul"
    std::string_view formula;  // its name and form: "gemm: max(2MNK/(P e q), bytes/(B e_m), launch)"
    std::string_view source;   // paper, vendor page, or "fitted"
};
const TermInfo& info(TimeTerm term);
// What a term of a step is spent on; a run is held against the sums (explain/explanation.h).
enum class TermGroup : std::uint8_t { compute, input, exchange, checkpoint };
TermGroup group_of(TimeTerm term);
// What a prediction is kept under, in journals for ever: the names of the first version. None: of another version.
std::string_view id_of(TimeTerm term);
std::optional<TimeTerm> find_time_term(std::string_view id);
const TermInfo& info(MemoryTerm term);

enum class Bottleneck : std::uint8_t {
    compute,
    memory_bandwidth,
    memory_capacity,
    network,
    launch,
    input,
    pipeline_bubble,
    cpu
};
std::string_view to_string(Bottleneck bottleneck);

// Why a candidate is not possible, or was not chosen: a reason, as a cause (base/cause.h) says why a run waits or ended
// and a diagnosis (observe/diagnosis.h) why it is slow. Most are the planner's; they stand here because the cost model
// refuses too (memory, shape, precision), and one list keeps a code from meaning two things. Numbers travel beside it
// (have, need).
enum class Reason : std::uint8_t {
    none,
    memory,
    host_memory,
    precision_unsupported,
    shape_indivisible,
    no_rdma,
    gang_too_large,
    deadline,
    budget,
    latency,
    throughput,
    unpriced,
    region,
    residency,
    retired,
    restricted,
    quota,
    zone,
    not_in_sizes,
    spot_not_allowed,
    spot_not_tolerated,
    policy_notebook,
    policy_inference_rdma,
    tensor_across_nodes,
    dominated,
    dearer,
    slower,
    cpu_too_slow,
    wrong_purpose,
    batch_too_large,
    batch_indivisible,
    node_count,
    unknown_accelerator,
    wasteful,
    count
};
std::string_view code(Reason reason);      // "memory", "no-rdma": stable, for -o json
std::string_view sentence(Reason reason);  // what it means, for people

}  // namespace stoker
