// Inference: memory and KV budget, time of one engine step, and a discrete-event simulation of the engine's scheduler.
// TTFT is never a closed form: it comes from the simulation. Formulas and sources: docs/reference/model-inference.md.
#pragma once

#include <cstdint>
#include <string>

#include "sizing/device.h"
#include "sizing/engine_era.h"
#include "sizing/terms.h"
#include "workload/workload.h"

namespace stoker {

// How the engine picks the work of its next step.
//   chunked        all decodes and as much of the prompts as the token budget allows (vLLM V1, Sarathi-Serve arXiv
//   2403.02310) prefill_first  whole prompts while there are any, decodes wait (vLLM V0, TGI, SGLang without chunks)
//   in_flight      whole prompts and all decodes in one pass, the full length reserved: nothing is ever preempted
//   (TensorRT-LLM) fixed_batch    a batch is formed, and none joins until all of it is done; also dynamic batching of
//   encoders and CNNs
enum class SchedulerPolicy : std::uint8_t { chunked, prefill_first, in_flight, fixed_batch };
enum class LengthLaw : std::uint8_t { lognormal, gamma, uniform };

// Everything that does not depend on the shape of the replica. Copied freely: numbers only.
struct ServingSetup {
    Device device;
    Precision precision = Precision::bf16, kv_precision = Precision::bf16;
    Precision compute_precision =
        Precision::bf16;            // of the matrix units: FP8 weights on an A100 are computed in 16 bits
    bool weight_only = false;       // stored in `precision`, computed in another: worth a note in the plan
    Reason refused = Reason::none;  // precision_unsupported; serving_memory repeats it
    double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0;
    double experts = 0, active_experts = 0;
    // Parameters: attention, mlp and shared of one layer, expert of one routed expert, embedding of all tables and the
    // head.
    double attention_params = 0, mlp_params = 0, expert_params = 0, shared_params = 0, dense_layers = 0,
           embedding_params = 0;
    double moe_layers = 0, head_params = 0;
    double total_params = 0, active_params = 0;
    // Encoder-decoder: the prompt passes the encoder only. 0: prompts pass the same layers as generated tokens.
    double encoder_params = 0;
    double weight_bytes = 0;  // all weights, stored, with quantisation scales; embeddings stay in 16 bits or more
    double weight_bytes_per_param = 2;
    bool fp8_blocks = false;  // FP8 comes with a scale per block of weights
    // Where a checkpoint of 4 bits leaves attention as it was; 0: as weight_bytes_per_param.
    double attention_bytes_per_param = 0;
    double attention_weight_bytes() const {
        return attention_bytes_per_param > 0 ? attention_bytes_per_param : weight_bytes_per_param;
    }
    double kv_bytes_per_token = 0;         // whole model
    bool kv_replicated_by_tensor = false;  // MLA
    double sliding_window = 0;
    double full_attention_share = 1;  // of the layers, where the others see a small window only
    // FLOP of one (query, key) pair over all layers and heads.
    double decode_attention_flops = 0, prompt_attention_flops = 0;
    double sample_forward_flops = 0;  // cnn, vit, diffusion, embedding per example
    double sample_bytes = 0;          // activations of one example, written and read
    double sample_passes = 1;         // over the weights, one after the other: steps of a diffusion model
    double sample_live_share = 0.1;   // of what a pass writes: at once in memory
    double sample_kernels = 0;        // launches of one batch
    double sample_efficiency = 0.3;   // of the peak, whole network
    double sample_ramp_s = 0;         // what each kernel costs beside its work: filling and draining the device
    double sample_launch_s = 0;       // of the host per kernel; 0: the device's own
    double sample_host_s = 0;         // per batch, instead of host_step_s
    bool decoder = true;
    double interval_growth = 1;  // by what was measured near (nearness.h)
    SchedulerPolicy policy = SchedulerPolicy::chunked;
    LengthLaw length_law = LengthLaw::lognormal;
    double length_most = 20;  // of a drawn prompt or answer, as a multiple of its mean
    double token_budget = 8192, max_sequences = 256, block_tokens = 16, memory_fraction = 0.90;
    // Of the prompt, on average: in the cache already, once for all requests.
    double cached_tokens = 0;
    // Speculative decoding: a step checks so many guessed tokens of every sequence, and so many tokens come of it on
    // average; each guess costs a share of the passes of the model (its own extra layers), and the reading of a draft.
    double guessed = 0, tokens_per_step = 1, guess_share = 0, draft_bytes = 0;
    double prompt_tokens = 0, output_tokens = 0, prompt_cv = 0, output_cv = 0, arrival_cv = 1;
    bool fraction_of_free =
        false;  // memory_fraction is of what weights and activations leave (TensorRT-LLM), not of the device (vLLM)
    double kv_output_share =
        0.55;  // of the output that a sequence holds on average; 1 where the full length is reserved
    double weight_read_efficiency = 0.8, compute_efficiency = 0.6, kv_read_efficiency = 0.7, prefill_efficiency = 0.55;
    double expert_width = 0, expert_half_width = 0;  // of one expert; at which its products reach half of their rate
    double expert_half_tokens = 0;  // of one expert at which its products reach half of their rate: tiles fill up
    double expert_efficiency = 1;   // of the grouped matmul of routed experts, relative to a dense one
    double layer_launch_s = 5e-6, host_step_s = 3e-4;
    double quantise_layer_s = 0;  // of kernels that quantise the activations of a layer
    // Weights read and multiplied overlap: (read^k + compute^k)^(1/k); 0: the longer one alone.
    double overlap_power = 0;
    double matmul_half_tokens = 0;  // tokens per step at which the matrix units reach half of their rate
    // Elements that norms, activations, quantisation and expert permutation move per token, all layers: of the part
    // that every rank repeats and of the part that they share.
    double vector_hidden = 0, vector_ffn = 0;
    double narrow_read_efficiency = 1;  // of streaming 4-bit weights, relative to wider ones
    // Routers have favourites: the share of tokens that an expert gets is gamma distributed with this variance over its
    // mean squared, so that a batch touches fewer experts than independent choices would. 0: all are alike.
    double expert_skew = 0;
    double expert_imbalance = 1;        // of the busiest rank's experts and tokens, over that of independent choices
    double expert_read_efficiency = 1;  // of streaming routed experts, relative to dense weights
    double prompt_attention_efficiency = 0;  // of the peak; 0: prefill_efficiency
    double prompt_pair_bytes = 0;            // scores of prompts that lie in memory, all layers; 0: fused attention
    double latent_efficiency = 1;            // of reading a latent cache (MLA), relative to plain attention
    double moe_kernels = 1;                  // launches of a layer with experts over those of a dense one
    double moe_prompt_kernels = 1;           // the same in a step with prompts
    double latent_prompt_kernels = 1;        // launches of prompts under MLA over those under plain attention
    double sequence_host_s = 0;              // per running sequence and step: sampling, detokenisation, bookkeeping
    double prompt_layer_s = 0;               // floor of a step with prompts, per layer: such steps are not in graphs
    double front_request_s = 0, front_token_s = 0;  // of the tokeniser, one request after the other
    double first_token_s = 0;                       // front end: tokenisation and HTTP, once per request
    double first_token_burst_s = 0;  // the same where clients send their requests all at once, as benchmarks do
    // Engines reduce with kernels of their own: a floor for two ranks, which each doubling of the ranks raises by a
    // share; then bytes at link_efficiency of the link's rate. Messages of up to one_shot_bytes are read from every
    // peer in one exchange, n - 1 times their size; larger ones go around a ring, 2 (n - 1) hops of a latency each, of
    // which 2 (n - 1)/n times their size. No floor: the ring of NCCL as collectives.h has it.
    double all_reduce_s = 0, all_reduce_growth = 1, one_shot_bytes = 0, ring_hop_s = 0;
    double link_efficiency = 1;
    double split_s = 0;  // per step and device boundary, where layers run on one device after the other
    // Memory beside weights and cache, per device.
    double activation_hidden = 6, activation_ffn = 2.5;   // elements per token in flight
    double framework_bytes = 0, communication_bytes = 0;  // communication only where ranks talk
};

// An error only when the model has no shape to count; a precision the device lacks is told by ServingSetup::refused.
// `era`: of the engine, where the file names no version.
Result<ServingSetup> make_serving_setup(const Workload& workload, const Catalog& catalog, const Device& device,
                                        EngineEra era = EngineEra::current);

struct ReplicaShape {
    int tensor = 1, pipeline = 1;
    // Attention data parallelism: so many groups of `tensor` ranks each attend to their own sequences, while experts
    // and MLP are divided over all of them.
    int data = 1;
    // Ranks over which whole experts are divided; 0: over all of them under attention data parallelism, else each
    // expert over all ranks.
    int expert = 0;
    int gpus() const { return tensor * pipeline * data; }
    std::string text() const;  // "tensor parallel 8, pipeline of 2 stages"; "one device"
};

struct ServingMemory {
    Reason refused = Reason::none;
    double have = 0, need = 0;
    std::array<double, kMemoryTerms> bytes{};  // per device
    double kv_tokens = 0;                      // that fit in the replica
    double max_batch = 0;                      // sequences (examples) of the workload's lengths at once
    double token_budget = 0;  // per step; smaller than asked where only that leaves room for one request
};
// Refuses with memory (have and need in bytes per device), shape_indivisible (have: heads or layers, need: the degree),
// or setup.refused.
ServingMemory serving_memory(const ServingSetup& setup, ReplicaShape shape) noexcept;

// One pass: `decode` sequences whose contexts sum to `context_sum`, and a prompt chunk of `chunk` tokens that follow
// `chunk_context`.
double step_seconds(const ServingSetup& setup, ReplicaShape shape, double decode, double context_sum, double chunk,
                    double chunk_context) noexcept;
Bottleneck decode_bound(const ServingSetup& setup, ReplicaShape shape, double decode, double context_sum) noexcept;
Bottleneck prefill_bound(const ServingSetup& setup, ReplicaShape shape, double tokens) noexcept;

struct ServingLoad {
    double requests_per_second = 0;  // on this replica; 0 with concurrency: closed loop
    double concurrency = 0;
    // What answers in batches: so many alike behind one queue, as a router that knows who is idle makes of them; the
    // load is then that of all of them.
    int servers = 1;
    double think_s = 0;  // closed loop: mean time from an answer to the client's next request, exponential
    double speed = 1;    // multiplies step times: for the interval; above 1 is slower
    std::uint64_t seed = 1;
    int requests = 2000;  // simulated, the first tenth discarded
    // Closed loop, from its first request to its last: so many requests of each client; 0: the steady state.
    double rounds = 0;
    // Open loop: all of `requests` from the first on and none behind them, as a benchmark sends them; else the steady
    // state.
    bool whole_run = false;
    bool burst = false;  // closed loop: all start with a whole request ahead; else spread over a request's life, so
                         // that requests of one length do not stay in lockstep as no real clients do
    bool single_steps = false;  // every step of the engine by itself: what runs of steps must agree with
};

struct ServingOutcome {
    bool saturated =
        false;  // the queue grew without bound: the latencies are then of this run's length, not a steady state
    double ttft_p50 = 0, ttft_p95 = 0, ttft_p99 = 0, tpot_p50 = 0, tpot_p95 = 0, tpot_p99 = 0, e2e_p50 = 0, e2e_p95 = 0,
           e2e_p99 = 0;
    double output_tokens_per_s = 0, requests_per_s = 0, mean_batch = 0, busy = 0;  // busy: share of time a step runs
    double preemptions = 0;
    double ttft_mean = 0, tpot_mean = 0, e2e_mean = 0;
    double ttft_first_mean = 0;  // closed loop with rounds: of the burst it starts with; ttft_mean is of the others
    double mean_in_system = 0;   // time average of requests waiting or running
    double peak_kv_share = 0;    // of the blocks, at most 1
    std::int64_t steps = 0;      // of the engine
    std::int64_t decisions = 0;  // of the simulator: a run of decode steps in which nothing else happens is one
    std::int64_t finished = 0, tokens = 0;  // all requests that finished, and their output tokens
    std::int64_t measured = 0;              // requests behind the percentiles
};
ServingOutcome simulate_serving(const ServingSetup& setup, ReplicaShape shape, const ServingLoad& load);
// Every limit that is set, in a steady state.
bool keeps_limits(const ServingOutcome& outcome, const LatencySpec& latency);

// Highest tokens/s with no latency limit (batch inference): the largest batch that fits.
struct OfflineOutcome {
    double output_tokens_per_s = 0, prompt_tokens_per_s = 0, batch = 0, requests_per_s = 0;
};
OfflineOutcome offline_throughput(const ServingSetup& setup, ReplicaShape shape) noexcept;

// What a question cost: runs of the simulator, and decisions in all of them.
struct SimulatedWork {
    std::int64_t runs = 0, decisions = 0;
};

// Requests/s one replica sustains within the latency objective, by bisection over the simulation. A good `guess` makes
// it quicker and changes the answer by no more than the bisection's own 2 %; 0: there is none.
double sustained_rate(const ServingSetup& setup, ReplicaShape shape, const LatencySpec& latency, double speed = 1,
                      double guess = 0, SimulatedWork* work = nullptr);

// Clients in a closed loop that one replica carries within the latency objective, at most `most`; 0: not even one.
double carried_clients(const ServingSetup& setup, ReplicaShape shape, const LatencySpec& latency, double think_s,
                       double most, double speed = 1, double guess = 0, SimulatedWork* work = nullptr);

// Encoders, CNNs, ViT, embedding: seconds of one batch, and the batch that meets a latency limit.
double batch_seconds(const ServingSetup& setup, double batch) noexcept;

}  // namespace stoker
