// What a workload leaves open gets a value, and the value and its origin are written down for the plan to show.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "catalog/batches.h"
#include "catalog/model_count.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

struct BatchDefault {
    double examples;
    std::string source;
};

BatchDefault default_batch(const WorkloadForm& w) {
    const ModelSpec& model = w.model;
    if (is_image(model.kind)) {
        if (model.kind == ModelKind::diffusion) {
            if (w.kind == WorkloadKind::training) return {2048, "Stable Diffusion 1.x model card"};
            return {w.method == Method::full ? 64.0 : 16.0, "common for fine-tuning diffusion models"};
        }
        if (model.sample_unit == "row") return {65536, "MLPerf Training, DLRM-DCNv2, recalled"};
        const double images = w.data.examples.value_or(0);
        if (w.kind == WorkloadKind::fine_tuning || images < 2e5) return {256, "Goyal et al., arXiv 1706.02677"};
        return {images < 1e6 ? 1024.0 : 4096.0, "large-batch SGD with warm-up, arXiv 1706.02677"};
    }
    if (w.kind == WorkloadKind::fine_tuning) {
        if (w.method == Method::full) return {128, "common for instruction tuning, as in Alpaca"};
        return {64, "QLoRA, arXiv 2305.14314 table 9, its larger models"};
    }
    if (model.kind == ModelKind::encoder) return {256, "BERT, arXiv 1810.04805"};
    const PublishedBatch& row = published_batch(parameters_of(model), model.moe());
    return {std::max(1.0, std::floor(row.tokens() / w.sequence())), row.source};
}

void fill_sequence(WorkloadForm& w) {
    if (is_image(w.model.kind) || w.data.sequence || !is_training(w.kind)) return;
    w.data.sequence = default_sequence(w);
    w.assumptions.push_back(
        fmt::format("sequences of {} tokens, since data.sequence is not given", format_thousands(*w.data.sequence)));
}

// Ranks share a batch evenly only where it divides by their number, so what is ours to choose is a power of two: the
// nearest by ratio.
double near_power_of_two(double examples) {
    return std::exp2(std::max(0.0, std::round(std::log2(std::max(1.0, examples)))));
}

// Sequences of a batch that is given in tokens. Where it is no whole number of them, 4M tokens being 976.6 sequences of
// 4,096, it is a round figure, and the number within an eighth that most ranks can share is meant.
double sequences_of(double tokens, double sequence) {
    const double exact = tokens / sequence;
    if (exact < 1) return 1;
    if (std::abs(exact - std::round(exact)) < 1e-9 * exact) return std::round(exact);
    for (double step = std::exp2(std::floor(std::log2(exact))); step > 1; step /= 2) {
        const double near = std::round(exact / step) * step;
        if (near > 0 && std::abs(near - exact) <= 0.125 * exact) return near;
    }
    return std::floor(exact);
}

// What is ours to choose for a number of GPUs that is given: at least what a GPU had to do in a step of the widest runs
// that were published, and a multiple of what they can be divided into.
void share_among(const WorkloadForm& w, double gpus, BatchDefault& batch) {
    const PublishedBatch& widest = widest_published_batch();
    // Those runs are of models that generate: images and texts of encoders are no tokens of theirs.
    const bool generates = !is_image(w.model.kind) && w.model.kind != ModelKind::encoder;
    const double least = generates ? gpus * widest.tokens() / widest.gpus / w.sequence() : 0;
    if (least > batch.examples) {
        batch.examples = least;
        batch.source = fmt::format("as many tokens for each GPU as {} had on {}, {}", widest.model,
                                   format_thousands(widest.gpus), widest.source);
    }
    double step = gpus;
    while (step > batch.examples && std::fmod(step, 2) == 0) step /= 2;
    batch.examples =
        step > batch.examples ? near_power_of_two(batch.examples) : std::round(batch.examples / step) * step;
}

// Batches are counted in sequences where those are short. Long ones are learned from by as many tokens, and not by as
// many sequences.
void fewer_long_sequences(double sequence, BatchDefault& batch) {
    constexpr double kMostTokens = 4'194'304;
    if (!(batch.examples * sequence > 1.05 * kMostTokens)) return;
    while (batch.examples > 1 && batch.examples * sequence > 1.05 * kMostTokens) batch.examples /= 2;
    batch.source = "4M tokens, as models are tuned to 64k tokens, ProLong, arXiv 2410.02660, recalled";
}

// The batches of instruction tunings are made for thousands of steps. Who tunes on billions of tokens takes larger
// ones, as more GPUs than sequences cannot share a batch.
void fewer_steps(double examples, const Catalog& catalog, BatchDefault& batch) {
    const Constant* most = catalog.constant("fine_tuning_steps");
    if (most == nullptr || !(examples > most->value * batch.examples)) return;
    while (examples > most->value * batch.examples) batch.examples *= 2;
    batch.source = fmt::format("at most {} steps: {}", format_thousands(most->value), most->provenance.source);
}

void fill_batch(WorkloadForm& w, const Catalog& catalog) {
    if (!is_training(w.kind)) return;
    BatchSpec& batch = w.batch;
    if (w.learns_pairs() && batch.global_examples) *batch.global_examples *= 2;
    const double sequence = w.sequence(), all = std::floor(w.total_examples());
    if (!batch.global_examples && batch.global_tokens) {
        batch.global_examples = sequences_of(*batch.global_tokens, sequence);
        const double tokens = *batch.global_examples * sequence;
        if (std::abs(tokens - *batch.global_tokens) > 0.5)
            w.assumptions.push_back(
                fmt::format("global batch of {} sequences, {} tokens: the nearest to {} tokens that ranks can share",
                            format_thousands(*batch.global_examples), format_thousands(tokens),
                            format_thousands(*batch.global_tokens)));
        batch.global_tokens = tokens;
    }
    if (!batch.global_examples) {
        BatchDefault chosen = default_batch(w);
        chosen.examples = near_power_of_two(chosen.examples);
        // A default made for clusters and long runs leaves a short one no steps to learn in.
        if (w.kind == WorkloadKind::fine_tuning && !is_image(w.model.kind)) fewer_long_sequences(sequence, chosen);
        if (w.kind == WorkloadKind::fine_tuning) fewer_steps(all, catalog, chosen);
        const double fewest_steps = w.kind == WorkloadKind::training ? 100 : 1;
        while (all >= 1 && chosen.examples > 1 && chosen.examples * fewest_steps > all) chosen.examples /= 2;
        if (w.where.gpus && w.kind == WorkloadKind::training) share_among(w, *w.where.gpus, chosen);
        batch.global_examples = chosen.examples;
        const std::string unit = is_image(w.model.kind) ? std::string("examples")
                                                        : fmt::format("sequences ({} tokens)",
                                                                      format_count(*batch.global_examples * sequence));
        w.assumptions.push_back(fmt::format("global batch of {} {}, since batch is not given ({})",
                                            format_thousands(*batch.global_examples), unit, chosen.source));
    } else if (all >= 1 && *batch.global_examples > all) {
        w.assumptions.push_back(fmt::format("global batch of {} rather than {}: there are no more examples",
                                            format_thousands(all), format_thousands(*batch.global_examples)));
        batch.global_examples = all;
        batch.global_tokens = all * sequence;
    }
    if (!batch.global_tokens) batch.global_tokens = *batch.global_examples * sequence;
}

// A data set of so many bytes is read once an epoch.
void fill_bytes(WorkloadForm& w) {
    if (!is_training(w.kind) || !w.data.bytes || w.data.bytes_per_example) return;
    const double in_an_epoch = w.total_examples() / w.data.epochs.value_or(1);
    if (in_an_epoch >= 1) w.data.bytes_per_example = Bytes(w.data.bytes->v / in_an_epoch);
}

// What the makers publish, or computed in, comes first; then 16 bits, in which everything is trained and served that
// has the units; then what every device can do.
std::vector<Precision> precision_order(const WorkloadForm& w) {
    if (!w.model_known) return {};
    const ModelSpec& model = w.model;
    const bool generates = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder;
    std::vector<Precision> order;
    // Adapters and short tunings of a model are made in 16 bits, whatever its makers pretrained it in.
    const auto& own = w.kind == WorkloadKind::training ? model.trained_precision : model.published_precision;
    if (own && w.kind != WorkloadKind::fine_tuning) order.push_back(*own);
    // Encoders and image models leave nothing outside the range of FP16, and were published in it or in FP32.
    if (is_training(w.kind) || generates)
        order.insert(order.end(), {Precision::bf16, Precision::fp16});
    else
        order.insert(order.end(), {Precision::fp16, Precision::bf16});
    order.push_back(Precision::fp32);
    return order;
}

void fill_precision(WorkloadForm& w) {
    w.kv_precision_given = w.kv_given;
    if (w.given_precision) {
        w.precision = *w.given_precision;
    } else {
        w.precision_order = precision_order(w);
        w.precision = w.precision_order.empty() ? Precision::bf16 : w.precision_order.front();
        const bool own = !w.precision_order.empty() && w.precision_order.front() != Precision::bf16 &&
                         w.precision_order.front() != Precision::fp16;
        if (w.model_known)
            w.assumptions.push_back(fmt::format(
                "precision {}, since none is given{}", to_string(w.precision),
                !own ? ""
                : is_training(w.kind)
                    ? fmt::format(" and {} was trained in it ({})", w.model.name, w.model.provenance.source)
                    : fmt::format(" and {} is published in it ({})", w.model.name, w.model.provenance.source)));
    }
    if (!w.kv_given) w.kv_precision = kv_precision_beside(w.precision);
}

// The share of users who are active and how long they think, by what they use it for.
void fill_users(WorkloadForm& w, const Catalog& catalog) {
    TrafficSpec& traffic = w.traffic;
    if (!traffic.users) return;
    const auto known = [&](std::string_view name) {
        std::string key(name);
        if (!w.use_case.empty()) {
            key += "_" + replace_all(w.use_case, "-", "_");
            if (const Constant* own = catalog.constant(key)) return own;
        }
        return catalog.constant(name);
    };
    const std::string use = w.use_case.empty() ? "a chatbot" : "use_case " + w.use_case;
    if (!traffic.active_share) {
        const Constant* share = known("users_active_share");
        traffic.active_share = share != nullptr ? share->value : 1;
        w.assumptions.push_back(fmt::format(
            "{:.0f} % of the users are active at the busiest time, as with {}, since "
            "traffic.active_share is not given{}",
            100 * *traffic.active_share, use, share != nullptr ? " (" + share->provenance.source + ")" : ""));
    }
    if (traffic.requests_per_minute) {
        traffic.requests_per_second = *traffic.users * *traffic.active_share * *traffic.requests_per_minute / 60;
        w.assumptions.push_back(fmt::format("{} users x {:g} active x {:g} requests a minute are {:.3g} requests/s",
                                            format_thousands(*traffic.users), *traffic.active_share,
                                            *traffic.requests_per_minute, *traffic.requests_per_second));
        return;
    }
    if (!traffic.think_time) {
        const Constant* think = known("users_think_s");
        traffic.think_time = Seconds(think != nullptr ? think->value : 0);
        w.assumptions.push_back(fmt::format(
            "an active user asks again {} after an answer, as with {}, since "
            "traffic.think_time is not given{}",
            format_seconds(*traffic.think_time), use, think != nullptr ? " (" + think->provenance.source + ")" : ""));
    }
    w.assumptions.push_back(
        fmt::format("{} users x {:g} active = {} at once, {} between an answer and the next request",
                    format_thousands(*traffic.users), *traffic.active_share, format_thousands(w.clients()),
                    format_seconds(*traffic.think_time)));
}

// An image is all of its steps; what a speech model hears comes in windows, and is written down as it is spoken.
void fill_request(WorkloadForm& w, const Catalog& catalog) {
    TrafficSpec& traffic = w.traffic;
    const RequestShape& request = w.model.request;
    if (w.model.kind == ModelKind::diffusion) {
        if (!traffic.steps) {
            const Constant* common = catalog.constant("diffusion_steps");
            traffic.steps = request.steps > 0 ? request.steps : common != nullptr ? common->value : 1;
            w.assumptions.push_back(
                fmt::format("{:g} denoising steps an image, since traffic.steps is not given", *traffic.steps));
        }
        if (!traffic.guidance) {
            traffic.guidance = request.steps <= 0 || request.guidance;
            w.assumptions.push_back(fmt::format("{} since traffic.guidance is not given",
                                                *traffic.guidance ? "guidance, which doubles the passes of every step,"
                                                                  : "one pass a step, without guidance,"));
        }
        if (request.once_flops <= 0)
            w.assumptions.push_back(
                "text encoder and image decoder are not counted: the catalogue does not know those of " + w.model.name);
    }
    if (request.window_s <= 0 || request.window_tokens <= 0) return;
    if (!traffic.audio && !traffic.prompt_tokens) {
        traffic.audio = Seconds(request.window_s);
        w.assumptions.push_back(
            fmt::format("{} of audio a request, since traffic.audio is not given", format_seconds(*traffic.audio)));
    }
    fill_streams(w);
    if (traffic.audio && !traffic.prompt_tokens)
        traffic.prompt_tokens = std::ceil(traffic.audio->v / request.window_s - 1e-9) * request.window_tokens;
    if (traffic.audio && !traffic.output_tokens && request.output_tokens_per_s > 0) {
        traffic.output_tokens = std::max(1.0, std::round(traffic.audio->v * request.output_tokens_per_s));
        w.assumptions.push_back(
            fmt::format("{:g} tokens are written for a second of audio, since "
                        "traffic.output_tokens is not given",
                        request.output_tokens_per_s));
    }
}

// MLPerf Inference: 2 s of llama2-70b, whose prompts are of some hundred tokens, and 6 s of llama3.1-405b, whose are of
// 9,400 in the mean: half a millisecond for each token beyond a thousand.
Seconds default_ttft(const TrafficSpec& traffic) {
    constexpr double kShort = 1024, kSecondsPerToken = 0.0005;
    const double read = traffic.prompt_tokens.value_or(0) - traffic.cached_prompt_tokens.value_or(0);
    return Seconds(2 + std::round(2 * kSecondsPerToken * std::max(0.0, read - kShort)) / 2);
}

// 100 ms is twice as fast as people read (238 words a minute, Brysbaert 2019, of 1.3 tokens each: 190 ms). Beside long
// prompts, whose reading holds every answer up, 175 ms as llama3.1-405b has there, and never slower than people read.
Seconds default_tpot(const TrafficSpec& traffic) {
    constexpr double kShort = 1024, kLong = 9400, kMost = 0.19;
    const double read = traffic.prompt_tokens.value_or(0) - traffic.cached_prompt_tokens.value_or(0);
    const double limit = 0.1 + 0.075 * std::max(0.0, read - kShort) / (kLong - kShort);
    return Seconds(std::min(kMost, std::round(limit * 100) / 100));
}

std::string_view ttft_source(Seconds limit) {
    return limit.v > 2 ? "as in MLPerf Inference, llama3.1-405b: 6 s for prompts of 9,400 tokens"
                       : "as in MLPerf Inference, llama2-70b";
}

std::string_view tpot_source(Seconds limit) {
    return limit.v > 0.1 ? "175 ms a token there" : "twice as fast as people read";
}

// A video is minutes of work for any GPU: nobody waits in front of it, so it may take twice what one of today's takes
// alone.
struct DrawingLimit {
    Seconds limit;
    std::string source;
};
DrawingLimit default_drawing(const WorkloadForm& w, const Catalog& catalog) {
    const Constant *image = catalog.constant("drawing_seconds"), *gpu = catalog.constant("drawing_gpu_tflops");
    const double least = image != nullptr ? image->value : 0;
    const RequestShape& request = w.model.request;
    const double passes = w.traffic.steps.value_or(std::max(request.steps, 1.0)) *
                          (w.traffic.guidance.value_or(request.guidance) ? 2 : 1);
    const double alone = gpu != nullptr ? passes * w.model.forward_flops_per_sample / (1e12 * gpu->value) : 0;
    const double twice = 10 * std::ceil(2 * alone / 10);
    if (twice > least) return {Seconds(twice), "twice what an H100 takes for one alone"};
    return {Seconds(std::max(least, 1.0)), image != nullptr ? image->provenance.source : ""};
}

// Clients who wait carry no rate into the plan, and what a machine holds is a matter of how long one may wait: without
// any limit both would be answered by a queue of minutes.
void fill_wait(WorkloadForm& w, const Catalog& catalog, bool generates) {
    LatencySpec& latency = w.objective.latency;
    if (generates) {
        if (w.clients() <= 0 && !w.asks_for_capacity()) return;
        if (latency.ttft_p50 || latency.ttft_p95 || latency.ttft_p99 || latency.e2e_p95 || latency.p95) return;
        latency.ttft_p99 = default_ttft(w.traffic);
        w.assumptions.push_back(fmt::format(
            "first token within {} for 99 of 100 requests, since no limit says how long clients wait for it ({})",
            format_seconds(*latency.ttft_p99), ttft_source(*latency.ttft_p99)));
        return;
    }
    if (latency.any()) return;
    // A pile of texts waits for nobody; searches that come at a rate do.
    const bool live = w.kind == WorkloadKind::inference || w.traffic.requests_per_second.value_or(0) > 0;
    if (!live && w.clients() <= 0 && !w.asks_for_capacity()) return;
    const DrawingLimit wait =
        w.model.kind == ModelKind::diffusion
            ? default_drawing(w, catalog)
            : DrawingLimit{Seconds(1), "what does not interrupt a person's thought, Nielsen 1993"};
    latency.p95 = wait.limit;
    w.assumptions.push_back(fmt::format("an answer within {} for 95 of 100 requests, since no latency is given ({})",
                                        format_seconds(wait.limit), wait.source));
}

void fill_traffic(WorkloadForm& w, const Catalog& catalog) {
    const bool generates = w.model.kind == ModelKind::decoder || w.model.kind == ModelKind::encoder_decoder;
    TrafficSpec& traffic = w.traffic;
    fill_users(w, catalog);
    fill_request(w, catalog);
    fill_survival(w, catalog);
    if (w.kind == WorkloadKind::embedding || !generates) {
        fill_wait(w, catalog, false);
        if (is_image(w.model.kind)) return;
        if (!traffic.prompt_tokens) {
            traffic.prompt_tokens = w.data.sequence.value_or(
                w.model.max_sequence > 0 ? std::min(256.0, static_cast<double>(w.model.max_sequence)) : 256.0);
            w.assumptions.push_back(fmt::format("{} tokens per text, since traffic.prompt_tokens is not given",
                                                format_thousands(*traffic.prompt_tokens)));
        }
        if (!traffic.output_tokens) traffic.output_tokens = 1;
        return;
    }
    // Means of the conversation trace published with Splitwise (Azure LLM inference trace 2023, arXiv 2311.18677).
    if (!traffic.prompt_tokens) {
        // A table of learned positions has to hold the answer as well.
        const double most =
            w.model.learned_positions > 0 && w.model.max_sequence > 0 ? std::floor(0.75 * w.model.max_sequence) : 1155;
        traffic.prompt_tokens = w.data.sequence.value_or(std::min(1155.0, most));
        w.assumptions.push_back(fmt::format("prompts of {} tokens, since traffic.prompt_tokens is not given",
                                            format_thousands(*traffic.prompt_tokens)));
    }
    if (!traffic.output_tokens) {
        traffic.output_tokens = 211;
        w.assumptions.push_back(
            "answers of 211 tokens, since traffic.output_tokens is not given (mean of Azure's conversation trace of "
            "2023)");
    }
    if (w.kind == WorkloadKind::inference && !w.objective.latency.any()) {
        w.objective.latency.ttft_p99 = default_ttft(traffic);
        w.objective.latency.tpot_p99 = default_tpot(traffic);
        w.assumptions.push_back(fmt::format(
            "first token within {} and each further one within {} for 99 of 100 requests, since no latency is given "
            "({}; {})",
            format_seconds(*w.objective.latency.ttft_p99), format_seconds(*w.objective.latency.tpot_p99),
            ttft_source(*w.objective.latency.ttft_p99), tpot_source(*w.objective.latency.tpot_p99)));
    }
    fill_wait(w, catalog, true);
}

void fill_plain(WorkloadForm& w) {
    const bool plain = !needs_model(w.kind);
    if (!plain) return;
    if (!w.memory) {
        w.memory = Bytes((w.kind == WorkloadKind::simulation ? 32 : 8) * kGiB);
        w.assumptions.push_back(
            fmt::format("{} of memory are enough, since memory is not given", format_bytes_gib(*w.memory)));
    }
    if (w.kind == WorkloadKind::notebook && !w.period) {
        w.period = Seconds(8 * 3600);
        w.assumptions.push_back("kept for 8 h, a working day, since period is not given");
    }
    if (w.kind == WorkloadKind::preprocessing && !w.vcpu_hours && !w.gpu_hours) {
        // One vCPU decodes, cleans and writes about 20 MB/s; 10 ms for an example of unknown size.
        if (w.data.bytes)
            w.vcpu_hours = w.data.bytes->v / 20e6 / 3600;
        else if (w.data.examples)
            w.vcpu_hours = *w.data.examples * w.data.decode_per_example.value_or(Seconds(0.01)).v / 3600;
        else
            w.vcpu_hours = 100;
        w.assumptions.push_back(fmt::format("{} vCPU hours of work, since vcpu_hours is not given{}",
                                            format_thousands(*w.vcpu_hours, *w.vcpu_hours < 10 ? 1 : 0),
                                            w.data.bytes      ? " (20 MB/s on a vCPU)"
                                            : w.data.examples ? " (10 ms an example unless data says otherwise)"
                                                              : ""));
    }
    if (w.kind == WorkloadKind::simulation && !w.vcpu_hours && !w.gpu_hours) {
        w.gpu_hours = 24;
        w.assumptions.push_back("24 GPU hours of work, since neither gpu_hours nor vcpu_hours is given");
    }
}

void fill_use_case(WorkloadForm& w) {
    constexpr std::array<std::string_view, 3> guarded = {"medical-imaging", "healthcare-records", "security-analytics"};
    const bool data_is_sensitive = std::find(guarded.begin(), guarded.end(), w.use_case) != guarded.end();
    if (data_is_sensitive && !w.at.contains("sensitive")) {
        w.sensitive = true;
        w.assumptions.push_back("sensitive: true, because of use_case " + w.use_case);
    }
}

}  // namespace

Precision kv_precision_beside(Precision weights) {
    const bool wide = weights == Precision::fp32 || weights == Precision::tf32;
    return wide ? Precision::fp32 : weights == Precision::fp16 ? Precision::fp16 : Precision::bf16;
}

void fix_precision(Workload& workload, Precision precision) {
    workload.precision = precision;
    workload.precision_order.clear();
    if (!workload.kv_precision_given) workload.kv_precision = kv_precision_beside(precision);
}

double default_sequence(const WorkloadForm& w) {
    const double most = w.model.max_sequence > 0 ? w.model.max_sequence : 1e9;
    const double wanted = w.kind == WorkloadKind::fine_tuning ? 2048 : w.model.kind == ModelKind::encoder ? 512 : 4096;
    return std::min(wanted, most);
}

namespace {

// What a stack that is tuned, or as it comes, does otherwise. Engines that generate tokens come with their graphs,
// fused kernels and schedulers: what is measured of them is their defaults.
void fill_stack(WorkloadForm& w) {
    if (!w.stack) return;
    const bool tuned = *w.stack == Stack::tuned;
    const bool generates = w.model.kind == ModelKind::decoder || w.model.kind == ModelKind::encoder_decoder;
    if (!is_training(w.kind) && generates && w.kind != WorkloadKind::embedding) {
        w.assumptions.push_back(
            fmt::format("stack: {} changes nothing: what is measured of engines that generate "
                        "tokens is what they do as they come",
                        tuned ? "tuned" : "stock"));
        return;
    }
    w.compiled = tuned;
    const bool megatron = w.framework == "megatron";
    // Megatron-Core with its arguments' defaults: no distributed optimizer, nothing overlapped.
    if (megatron && !tuned) w.framework = "megatron-core";
    w.assumptions.push_back(
        megatron && !tuned ? "stack: stock: Megatron-Core with the defaults of its arguments"
        : !tuned           ? "stack: stock: as its defaults have it, nothing compiled"
        : is_training(w.kind)
            ? "stack: tuned: compiled (torch.compile), as records are; a plain script takes longer (stack: stock)"
            : "stack: tuned: compiled, or built into an engine (TensorRT); plain PyTorch takes longer (stack: stock)");
}

}  // namespace

void fill_defaults(WorkloadForm& w, const Catalog& catalog) {
    if (w.given_method)
        w.method = *w.given_method;
    else if (w.kind == WorkloadKind::fine_tuning)
        w.assumptions.push_back("method full (all weights): none is given");
    say_loss(w);
    fill_stack(w);
    fill_precision(w);
    fill_sequence(w);
    fill_batch(w, catalog);
    fill_bytes(w);
    if (!is_training(w.kind) && needs_model(w.kind)) fill_traffic(w, catalog);
    fill_plain(w);
    fill_use_case(w);
    if (w.model.max_sequence > 0 && w.data.sequence && !is_image(w.model.kind) &&
        *w.data.sequence > w.model.max_sequence) {
        w.assumptions.push_back(fmt::format("sequences of {} tokens are longer than the {} that {} was made for",
                                            format_thousands(*w.data.sequence), format_thousands(w.model.max_sequence),
                                            w.model.name));
    }
    if (w.kind == WorkloadKind::inference && w.objective.deadline)
        w.assumptions.push_back("objective.deadline is left aside: inference has no end");
}

}  // namespace stoker
