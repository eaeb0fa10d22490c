#include "sizing/serving.h"

#include <algorithm>
#include <cmath>

#include "sizing/kv_cache.h"
#include "sizing/serving_step.h"

namespace stoker {
namespace {

double& term(ServingMemory& memory, MemoryTerm t) {
    return memory.bytes[static_cast<std::size_t>(t)];
}

bool divides(double n, int degree) {
    return degree <= 1 || n <= 0 || std::fmod(n, degree) == 0;
}

// Layers of the fullest stage plus the tables it holds: both on one device, one of them at either end of a pipeline.
double weights_of_device(const ServingSetup& s, ReplicaShape shape) {
    const double t = std::max(shape.tensor, 1), p = std::max(shape.pipeline, 1);
    const double tables = s.embedding_params * std::max(s.weight_bytes_per_param, 2.0);
    const double layers = s.weight_bytes - tables;
    const double stage = s.layers > 0 ? std::ceil(s.layers / p) / s.layers : 1 / p;
    const double end = p > 1 && s.embedding_params > 1.5 * s.head_params ? tables / 2 : tables;
    const double d = std::max(shape.data, 1);
    if (d <= 1) return (layers * stage + end) / t;
    // Attention and tables are on each of the d groups in whole.
    const double attention = s.attention_params * s.layers * s.attention_weight_bytes();
    return ((attention + (layers - attention) / d) * stage + end) / t;
}

double activations_of(const ServingSetup& s, double tokens, double tensor) {
    const double element = s.compute_precision == Precision::fp32 || s.compute_precision == Precision::tf32 ? 4 : 2;
    return tokens * (s.hidden * s.activation_hidden + s.ffn * s.activation_ffn / tensor) * element;
}

// Below this a step is mostly overhead, and engines refuse it or crawl.
constexpr double kSmallestBudget = 256;

ServingMemory decoder_memory(const ServingSetup& s, ReplicaShape shape, ServingMemory out) {
    const double t = std::max(shape.tensor, 1), p = std::max(shape.pipeline, 1);
    // The d groups of attention data parallelism hold different sequences.
    const double groups = std::max(shape.data, 1);
    const double per_token = s.kv_bytes_per_token * kv_share_of_device(s, shape);
    const double block = std::max(s.block_tokens, 1.0);
    const double whole = kv_tokens_held(s, s.prompt_tokens + s.output_tokens);
    const double room_for_one = std::ceil(whole / block) * block * per_token;
    const double fixed = out.bytes[static_cast<std::size_t>(MemoryTerm::weights)] + s.framework_bytes +
                         (t * p > 1 ? s.communication_bytes : 0);
    term(out, MemoryTerm::framework) = s.framework_bytes;
    term(out, MemoryTerm::communication) = t * p > 1 ? s.communication_bytes : 0;
    // Sampling works on FP32 logits of every running sequence.
    const double logits = std::min(s.max_sequences, 1024.0) * s.vocabulary / t * 4;
    term(out, MemoryTerm::logits) = logits;

    // A budget that leaves no room for one request is lowered, as people do by hand (max_num_batched_tokens).
    // Every group of attention data parallelism has its own budget and places.
    double budget = std::max(s.token_budget, 1.0) * groups;
    double activations = activations_of(s, budget / groups, t);
    const double share = s.fraction_of_free ? s.memory_fraction : 1;
    while ((out.have - fixed - logits - activations) * share < room_for_one && budget / 2 >= kSmallestBudget * groups) {
        budget /= 2;
        activations = activations_of(s, budget / groups, t);
    }
    out.token_budget = budget;
    term(out, MemoryTerm::activations) = activations;
    const double free = (out.have - fixed - logits - activations) * share;
    out.need = fixed + logits + activations + room_for_one / share;
    if (free < room_for_one) {
        out.refused = Reason::memory;
        term(out, MemoryTerm::kv_cache) = room_for_one;
        return out;
    }
    if (per_token <= 0) {  // no cache at all: only the engine's own limit counts
        out.kv_tokens = s.max_sequences * whole;
        out.max_batch = s.max_sequences * groups;
        return out;
    }
    const double blocks = std::floor(free / per_token / block);
    out.kv_tokens = blocks * block * groups;
    term(out, MemoryTerm::kv_cache) = blocks * block * per_token;
    // What requests share is held once, in every group.
    const double shared = shared_kv_tokens(s);
    out.kv_tokens = std::max(out.kv_tokens - shared * groups, block);
    const double held = kv_tokens_held(s, s.prompt_tokens + s.kv_output_share * s.output_tokens) - shared +
                        block / 2;  // the last block is half empty
    out.max_batch = std::clamp(std::floor(out.kv_tokens / held), 1.0, std::max(s.max_sequences * groups, 1.0));
    return out;
}

ServingMemory sample_memory(const ServingSetup& s, ServingMemory out) {
    term(out, MemoryTerm::framework) = s.framework_bytes;
    // Few layers' activations live at once: a tenth of all that is written is generous for feed-forward networks.
    // Of a transformer one layer's: what is written and read again in a layer does not live at once.
    const double layer = s.prompt_tokens * (s.activation_hidden * s.hidden + s.activation_ffn * s.ffn) * 2;
    const double live = std::max(
        s.layers > 0 && s.hidden > 0 ? 2 * layer : s.sample_bytes / s.sample_passes * s.sample_live_share, 1.0);
    const double fixed = out.bytes[static_cast<std::size_t>(MemoryTerm::weights)] + s.framework_bytes;
    out.need = fixed + live;
    out.token_budget = s.token_budget;
    if (out.have < out.need) {
        out.refused = Reason::memory;
        term(out, MemoryTerm::activations) = live;
        return out;
    }
    out.max_batch = std::clamp(std::floor((out.have - fixed) / live), 1.0, std::max(s.max_sequences, 1.0));
    term(out, MemoryTerm::activations) = out.max_batch * live;
    return out;
}

ServingOutcome counted(ServingOutcome outcome, SimulatedWork* work) {
    if (work != nullptr) ++work->runs, work->decisions += outcome.decisions;
    return outcome;
}

bool within(const std::optional<Seconds>& limit, double value) {
    return !limit || value <= limit->v;
}

}  // namespace

bool keeps_limits(const ServingOutcome& o, const LatencySpec& l) {
    return !o.saturated && o.measured > 0 && within(l.ttft_p50, o.ttft_p50) && within(l.ttft_p95, o.ttft_p95) &&
           within(l.ttft_p99, o.ttft_p99) && within(l.tpot_p50, o.tpot_p50) && within(l.tpot_p95, o.tpot_p95) &&
           within(l.tpot_p99, o.tpot_p99) && within(l.e2e_p95, o.e2e_p95) && within(l.p95, o.e2e_p95);
}

std::string ReplicaShape::text() const {
    std::string text;
    const auto add = [&](const char* what, int degree, const char* unit = "") {
        if (degree > 1) text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(degree) + unit;
    };
    add("tensor parallel", tensor);
    add("pipeline of", pipeline, " stages");
    add("attention data parallel", data);
    if (data > 1 || expert > 1) add("experts over", expert > 0 ? expert : data * tensor);
    return text.empty() ? "one device" : text;
}

ServingMemory serving_memory(const ServingSetup& setup, ReplicaShape shape) noexcept {
    ServingMemory out;
    out.have = setup.device.memory_bytes * (setup.fraction_of_free && setup.decoder ? 1 : setup.memory_fraction);
    term(out, MemoryTerm::weights) = weights_of_device(setup, shape);
    out.need = term(out, MemoryTerm::weights);
    if (setup.refused != Reason::none) {
        out.refused = setup.refused;
        return out;
    }
    if (!divides(setup.heads, shape.tensor)) {
        out.refused = Reason::shape_indivisible;
        out.have = setup.heads;
        out.need = shape.tensor;
        return out;
    }
    if (shape.pipeline > 1 && setup.layers < shape.pipeline) {
        out.refused = Reason::shape_indivisible;
        out.have = setup.layers;
        out.need = shape.pipeline;
        return out;
    }
    return setup.decoder ? decoder_memory(setup, shape, out) : sample_memory(setup, out);
}

// The largest batch that fits, prompts and decodes in the same steps.
OfflineOutcome offline_throughput(const ServingSetup& setup, ReplicaShape shape) noexcept {
    OfflineOutcome out;
    const ServingMemory memory = serving_memory(setup, shape);
    if (memory.refused != Reason::none) return out;
    if (!setup.decoder) {
        out.batch = memory.max_batch;
        out.requests_per_s = out.batch / batch_seconds(setup, out.batch);
        out.prompt_tokens_per_s = out.requests_per_s * setup.prompt_tokens;
        return out;
    }
    const StepModel model(setup, shape);
    const double cached = setup.cached_tokens;
    const double isl = std::max(setup.prompt_tokens - cached, 1.0), osl = std::max(setup.output_tokens, 1.0);
    const double budget = std::max(memory.token_budget, 1.0);
    // In the steady state as many requests begin in a step as end in it: B sequences that decode bring B isl / (osl -
    // 1) prompt tokens with them. Where that exceeds the budget, fewer run at once.
    double begin = std::clamp(budget / isl, 1.0, memory.max_batch);  // requests per step; of prompts alone
    out.batch = begin;
    if (osl > 1) {
        out.batch = std::max(1.0, std::min(memory.max_batch, budget * (osl - 1) / (osl - 1 + isl)));
        begin = out.batch / (osl - 1);
    }
    StepWork decode;
    decode.decode = osl > 1 ? out.batch : 0;
    decode.context = decode.decode * kv_tokens_held(setup, cached + isl + osl / 2);
    // Prompts come whole: where less than one begins per step, some steps have one and the others none.
    const double share = std::min(1.0, begin), together = begin / share;
    StepWork mixed = decode;
    mixed.prompt = together * isl;
    mixed.prompt_reads = together * (cached + isl);
    mixed.prompt_pairs = together * isl * kv_tokens_held(setup, cached + isl / 2);
    mixed.sampled = together;
    const double step_s = share * model.seconds(mixed) + (1 - share) * model.seconds(decode);
    out.requests_per_s = begin / step_s;
    out.output_tokens_per_s = osl * out.requests_per_s;
    out.prompt_tokens_per_s = isl * out.requests_per_s;
    return out;
}

// Reading the weights is paid once per batch (t0), each example costs t1; launches run beside the device's work and are
// a floor.
double batch_seconds(const ServingSetup& setup, double batch) noexcept {
    const Device& d = setup.device;
    const auto p = static_cast<std::size_t>(setup.compute_precision);
    const double peak = d.peak_flops[p] > 0 ? d.peak_flops[p] : d.matmul_flops[p];
    const double bandwidth = std::max(d.memory_bytes_per_s, 1.0);
    const double weights = setup.weight_bytes - setup.embedding_params * std::max(setup.weight_bytes_per_param, 2.0);
    const double t0 = setup.sample_passes * std::max(weights, 0.0) / (bandwidth * setup.weight_read_efficiency);
    // One kernel after the other: those that multiply, and those that only move activations.
    // The caches of a CPU hold what its kernels move while the units multiply.
    const double compute = setup.sample_forward_flops / std::max(peak * setup.sample_efficiency, 1.0);
    const double move = setup.sample_bytes / (bandwidth * d.memory_efficiency);
    const double t1 = d.gpu ? compute + move : std::max(compute, move);
    const double launch = setup.sample_launch_s > 0 ? setup.sample_launch_s : d.launch_s;
    const double host = setup.sample_host_s > 0 ? setup.sample_host_s : setup.host_step_s;
    return std::max(t0 + setup.sample_kernels * setup.sample_ramp_s + batch * t1, setup.sample_kernels * launch) + host;
}

// Bisection in ln(rate) on one seed: the same requests in the same order at every rate, only closer together, so that
// noise is common to all probes. Ends within 2 %, and backs off when the answer does not hold in a longer run.
double sustained_rate(const ServingSetup& setup, ReplicaShape shape, const LatencySpec& latency, double speed,
                      double guess, SimulatedWork* work) {
    const OfflineOutcome offline = offline_throughput(setup, shape);
    if (offline.requests_per_s <= 0) return 0;
    ServingLoad load;
    load.speed = speed;
    const auto passes = [&](double rate, int requests) {
        load.requests_per_second = rate;
        load.requests = requests;
        return keeps_limits(counted(simulate_serving(setup, shape, load), work), latency);
    };
    constexpr int kProbe = 1000, kFinal = 2000;
    const double peak = offline.requests_per_s / std::max(speed, 1e-6) * 1.1;
    // A rate at which requests hardly ever meet: what fails there fails for an empty machine.
    const double empty = peak * 1e-3;
    double good = 0, bad = 0;
    // Steps from the guess that grow until the answer lies between two of them.
    double at = guess > 0 ? std::clamp(guess, empty, peak) : peak, step = guess > 0 ? 1.04 : 1.5;
    while (good == 0 || bad == 0) {
        if (passes(at, kProbe)) {
            good = at;
            if (bad > 0 || at > 11 * peak) break;
            at *= step;
        } else {
            bad = at;
            if (good > 0) break;
            if (guess <= 0) break;  // nothing is known of how far below the peak it is
            at = std::max(at / step, empty);
            if (bad <= empty * 1.0001) return 0;
        }
        if (guess > 0) step = std::min(step * step, 4.0);
    }
    if (good == 0) {
        good = empty;
        if (!passes(good, 200)) return 0;
    }
    if (bad == 0) bad = good * 1.02;
    while (bad / good > 1.02) {
        const double middle = bad / good > 4 ? std::sqrt(bad * std::sqrt(good * bad)) : std::sqrt(good * bad);
        (passes(middle, kProbe) ? good : bad) = middle;
    }
    for (int i = 0; i < 10 && !passes(good, kFinal); ++i) good *= 0.95;
    return good;
}

// Doubles or halves from a guess, by Little's law where none is given, then bisects to 2 %: on one seed, as
// sustained_rate does.
double carried_clients(const ServingSetup& setup, ReplicaShape shape, const LatencySpec& latency, double think_s,
                       double most, double speed, double guess, SimulatedWork* work) {
    const OfflineOutcome offline = offline_throughput(setup, shape);
    if (offline.requests_per_s <= 0) return 0;
    // Without limits any number may wait in one queue; beyond this nobody lets them, and it would only cost time.
    constexpr double kLongestQueue = 16384;
    most = std::clamp(std::floor(most), 1.0, kLongestQueue);
    const auto passes = [&](double clients, int requests) {
        return keeps_limits(
            counted(
                simulate_serving(setup, shape,
                                 {.concurrency = clients, .think_s = think_s, .speed = speed, .requests = requests}),
                work),
            latency);
    };
    constexpr int kProbe = 1000, kFinal = 2000;
    double good = 0, bad = most + 1;
    double at = std::clamp(std::round(guess > 0 ? guess : offline.requests_per_s * (think_s + 1)), 1.0, most);
    const double up = guess > 0 ? 1.15 : 2, down = guess > 0 ? 0.85 : 0.25;
    while (good < most && (good == 0 || bad > most)) {
        if (passes(at, kProbe)) {
            good = at;
            at = std::min(std::ceil(up * at), most);
        } else {
            if (at <= 1) return 0;
            bad = at;
            at = std::max(1.0, std::floor(at * down));
        }
    }
    while (bad - good > std::max(1.0, 0.02 * good)) {
        const double middle = std::floor((good + bad) / 2);
        (passes(middle, kProbe) ? good : bad) = middle;
    }
    for (int i = 0; i < 10 && good > 1 && !passes(good, kFinal); ++i) good = std::floor(good * 0.95);
    return good;
}

}  // namespace stoker
