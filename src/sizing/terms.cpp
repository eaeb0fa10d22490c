#include "sizing/terms.h"

namespace stoker {
namespace {

struct TimeTermInfo {
    TermGroup group;
    std::string_view id;  // as records have it: never another, whatever the name becomes
    TermInfo info;
};
constexpr std::array<TimeTermInfo, kTimeTerms> kTime{{
    {TermGroup::compute,
     "matmul",
     {"matmul", "gemm: max(2 M N K/(P e q_tile q_wave q_K), bytes/(B e_m)), forward + input and weight gradients",
      "NVIDIA Matrix Multiplication Background; Williams et al. 2009"}},
    {TermGroup::compute,
     "attention",
     {"attention", "flash: 4 b s s_mean a d/(t c)/(P e_fa), backward 2.5 x; unfused: all of s^2 + 12 b a s^2 w bytes",
      "Dao 2023, arXiv 2307.08691; Korthikanti et al. 2022, arXiv 2205.05198"}},
    {TermGroup::compute,
     "memory-bound",
     {"memory-bound", "vector: c w tokens (14 h + 1.5 g f/t)/(B e_m), backward 2 x",
      "Korthikanti et al. 2022, arXiv 2205.05198; c fitted"}},
    {TermGroup::compute,
     "logits",
     {"logits", "logits: gemm(tokens, V/t, h) x 3 + 4 passes over fp32 logits",
      "Korthikanti et al. 2022, arXiv 2205.05198"}},
    {TermGroup::compute,
     "recompute",
     {"recompute", "recompute: full = one forward; selective = attention core where it is not fused",
      "Korthikanti et al. 2022, arXiv 2205.05198"}},
    {TermGroup::compute,
     "launch",
     {"launch", "launch: max(0, kernels t_launch - time on the device) per layer and micro-batch",
      "planner model; kernels counted, fitted"}},
    {TermGroup::exchange,
     "tensor comm",
     {"tensor comm", "tensor: 4 all-reduces of w tokens h per layer (6 with full recompute), or gather + scatter pairs",
      "Shoeybi et al. 2019, arXiv 1909.08053; Korthikanti et al. 2022"}},
    {TermGroup::exchange,
     "context comm",
     {"context comm", "context: (c-1) hops of K and V, backward twice, beyond what attention hides",
      "Liu et al. 2023, arXiv 2310.01889"}},
    {TermGroup::exchange,
     "expert comm",
     {"expert comm", "expert: 4 all-to-all of w tokens h K/t per layer x imbalance",
      "DeepSeek-V3, arXiv 2412.19437; Lepikhin et al. 2020, arXiv 2006.16668"}},
    {TermGroup::exchange,
     "pipeline comm",
     {"pipeline comm", "pipeline: 2 v (alpha + w tokens h/BW) per micro-batch",
      "Narayanan et al. 2021, arXiv 2104.04473"}},
    {TermGroup::compute,
     "bubble",
     {"bubble", "bubble: sum of stages - slowest stage; interleaved (p-1)/v stages",
      "Narayanan et al. 2021, arXiv 2104.04473"}},
    {TermGroup::exchange,
     "gradient comm",
     {"gradient comm", "gradients: reduction over data x context ranks beyond what backward hides, + norm",
      "Rajbhandari et al. 2019, arXiv 1910.02054"}},
    {TermGroup::exchange,
     "gather comm",
     {"gather comm", "gather: parameters of ZeRO-1..3 beyond what compute hides",
      "Rajbhandari et al. 2019; Zhao et al. 2023, arXiv 2304.11277"}},
    {TermGroup::compute,
     "optimizer",
     {"optimizer", "optimizer: (2 state + 2 gradient + weight) bytes per parameter/(B e_m); offloaded: PCIe and host",
      "Rajbhandari et al. 2019; Ren et al. 2021, arXiv 2101.06840"}},
    {TermGroup::compute,
     "host",
     {"host", "host: step + per micro-batch cost of the pipeline engine, growing with nodes", "fitted"}},
    {TermGroup::input,
     "data stall",
     {"data stall", "input: max(0, max(bytes/storage, decode/vCPUs) - step)", "Mohan et al. 2021, arXiv 2007.06775"}},
    {TermGroup::checkpoint,
     "checkpoint stall",
     {"checkpoint stall", "checkpoint: stall/steps between checkpoints", "Young 1974; Daly 2006"}},
}};

constexpr std::array<TermInfo, kMemoryTerms> kMemory{{
    {"weights", "weights: w N'/shards from ZeRO-3", "Rajbhandari et al. 2019, arXiv 1910.02054"},
    {"gradients", "gradients: w_g N'/shards from ZeRO-2", "Rajbhandari et al. 2019, arXiv 1910.02054"},
    {"optimizer", "optimizer: 12 N' for Adam with fp32 master/shards from ZeRO-1",
     "Rajbhandari et al. 2019, arXiv 1910.02054"},
    {"activations",
     "activations: tokens h (10 + (4 + 4 k/a + 4 f/h)/t + 5 a s/(h t)) per layer in flight; gated 8 and 6 f/h",
     "Korthikanti et al. 2022, arXiv 2205.05198"},
    {"logits", "logits: c tokens V/t on the last stage", "planner model; c fitted"},
    {"gathered", "gathered: two layers and the root of FSDP, one layer of gradients; a dequantised layer",
     "Zhao et al. 2023, arXiv 2304.11277"},
    {"KV cache", "KV: 2 L k d w per token", "Kwon et al. 2023, arXiv 2309.06180"},
    {"workspace", "workspace: of the matmul library", "cuBLAS documentation, cublasSetWorkspace"},
    {"framework", "framework: context, kernels and libraries of a process", "measured by many; fitted"},
    {"communication", "communication: buffers per communicator", "NCCL documentation, NCCL_BUFFSIZE; fitted"},
    {"fragmentation", "fragmentation: (reserved/allocated - 1) x what comes and goes",
     "PyTorch CUDA memory notes; fitted"},
}};

struct ReasonText {
    std::string_view code, sentence;
};
constexpr std::array<ReasonText, static_cast<int>(Reason::count)> kReasons{{
    {"none", "it is possible"},
    {"memory", "it does not fit in the memory of one device"},
    {"host-memory", "what is moved to the host does not fit in its memory"},
    {"precision-unsupported", "the device has no unit for this precision"},
    {"shape-indivisible", "the model cannot be cut into so many parts"},
    {"no-rdma", "there is no RDMA network between nodes, and the traffic between them would be the bottleneck"},
    {"gang-too-large", "more nodes at once than can be had together"},
    {"deadline", "it finishes after the deadline"},
    {"budget", "it costs more than the budget"},
    {"latency", "it misses the latency objective"},
    {"throughput", "it misses the throughput objective"},
    {"unpriced", "no price is known for it here"},
    {"region", "it is not offered in the regions asked for"},
    {"residency", "the data may not leave its geography"},
    {"retired", "it is retired, or will be before the work ends"},
    {"restricted", "the subscription may not use it here"},
    {"quota", "the quota is too small"},
    {"zone", "no zone offers it"},
    {"not-in-sizes", "it is not among the sizes asked for"},
    {"spot-not-allowed", "spot is not allowed for this work"},
    {"spot-not-tolerated", "the work cannot be interrupted"},
    {"policy-notebook", "a notebook does not need so much"},
    {"policy-inference-rdma", "inference on one node needs no InfiniBand: it is paid for and unused"},
    {"tensor-across-nodes", "tensor parallelism would cross nodes without a fast link between them"},
    {"dominated", "another choice is both faster and cheaper"},
    {"dearer", "it costs more than the chosen one"},
    {"slower", "it takes longer than the chosen one"},
    {"cpu-too-slow", "a CPU is too slow for it"},
    {"wrong-purpose", "the size is made for other work"},
    {"batch-too-large", "the global batch cannot be spread over so many devices"},
    {"batch-indivisible", "the ranks cannot share the global batch evenly"},
    {"node-count", "the layout does not use exactly these devices"},
    {"unknown-accelerator", "nothing is known of its accelerator"},
    {"wasteful", "so many machines would spend nearly all of their time waiting for one another"},
}};

}  // namespace

const TermInfo& info(TimeTerm term) {
    return kTime[static_cast<std::size_t>(term)].info;
}
TermGroup group_of(TimeTerm term) {
    return kTime[static_cast<std::size_t>(term)].group;
}
std::string_view id_of(TimeTerm term) {
    return kTime[static_cast<std::size_t>(term)].id;
}
std::optional<TimeTerm> find_time_term(std::string_view id) {
    for (std::size_t i = 0; i < kTime.size(); ++i)
        if (kTime[i].id == id) return static_cast<TimeTerm>(i);
    return std::nullopt;
}
const TermInfo& info(MemoryTerm term) {
    return kMemory[static_cast<std::size_t>(term)];
}

std::string_view to_string(Bottleneck bottleneck) {
    switch (bottleneck) {
        case Bottleneck::compute: return "compute";
        case Bottleneck::memory_bandwidth: return "memory bandwidth";
        case Bottleneck::memory_capacity: return "memory capacity";
        case Bottleneck::network: return "network";
        case Bottleneck::launch: return "launch";
        case Bottleneck::input: return "input";
        case Bottleneck::pipeline_bubble: return "pipeline bubble";
        case Bottleneck::cpu: return "cpu";
    }
    return "compute";
}

std::string_view code(Reason reason) {
    return kReasons[static_cast<std::size_t>(reason)].code;
}
std::string_view sentence(Reason reason) {
    return kReasons[static_cast<std::size_t>(reason)].sentence;
}

}  // namespace stoker
