// Longer than 500 lines because what a scenario wants, which cells it needs and how its figures follow stay in one
// place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "plan/chance.h"
#include "plan/parallel.h"
#include "sizing/serving.h"
#include "sizing/serving_setup.h"
#include "sizing/serving_step.h"
#include "validate/benchmarks.h"
#include "validate/engine_names.h"
#include "validate/inference.h"
#include "validate/predict.h"
#include "validate/stated.h"
#include "validate/unmeasured.h"

namespace stoker::validate {
namespace {

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// Checkpoints that are published in fewer bits than 16 and say so in no column: DeepSeek-V3 and R1 in FP8 (arXiv
// 2412.19437), gpt-oss in MXFP4 (its model card).
constexpr std::array<std::pair<std::string_view, Precision>, 3> kNative{
    {{"deepseek-v3", Precision::fp8}, {"deepseek-r1", Precision::fp8}, {"gpt-oss", Precision::fp4}}};

std::optional<Precision> precision_of(std::string_view printed) {
    const std::string text = lower(printed);
    if (holds(text, "fp8")) return Precision::fp8;
    if (holds(text, "fp4") || holds(text, "mxfp4")) return Precision::fp4;
    if (holds(text, "int8") || text.starts_with("q8") || text.starts_with("q6")) return Precision::int8;
    if (holds(text, "int4") || text.starts_with("q4") || text.starts_with("q5")) return Precision::int4;
    if (holds(text, "bf16") || holds(text, "bfloat16")) return Precision::bf16;
    if (holds(text, "fp16") || holds(text, "float16")) return Precision::fp16;
    if (holds(text, "tf32")) return Precision::tf32;
    if (holds(text, "fp32") || holds(text, "float32")) return Precision::fp32;
    return std::nullopt;
}

// Billions of parameters of a network without experts, of the cell or of a name like "Aquila-7B"; 0: not told, or a
// mixture ("8x7B", "30B-A3B").
double dense_billions(const Row& row, std::string_view name) {
    if (row.number("is_moe").value_or(0) > 0 || row.number("experts").value_or(0) > 1) return 0;
    const std::string text = lower(name);
    double found = 0;
    for (std::size_t b = text.find('b'); b != std::string::npos; b = text.find('b', b + 1)) {
        const bool ends = b + 1 == text.size() || std::isalnum(static_cast<unsigned char>(text[b + 1])) == 0;
        std::size_t begin = b;
        while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.'))
            --begin;
        if (!ends || begin == b) continue;
        if (begin > 0 && (text[begin - 1] == 'x' || text[begin - 1] == 'a')) return 0;
        found = parse_number(text.substr(begin, b - begin)).value_or(0);
    }
    const double size = row.number("params_b").value_or(found);
    return size >= 0.1 && size <= 700 ? size : 0;
}

// By release, else by the date of the measurement; a batch that is run to its end without a server is how engines were
// measured before they had schedulers worth measuring.
EngineEra era_of(std::string_view engine, std::string_view printed, const Row& row, bool fixed_batch) {
    if (const auto release = release_of(printed)) {
        // The release of TensorRT alone says nothing of the engine on top of it.
        if (engine == "tensorrt-llm" && !holds(lower(printed), "llm")) return EngineEra::y2024;
        return era_of_release(engine, *release);
    }
    if (const auto year = stated_number(row, "year_of_run"); year && *year >= 2000 && *year < 2100)
        return *year >= 2025 ? EngineEra::current : *year >= 2024 ? EngineEra::y2024 : EngineEra::y2023;
    return fixed_batch && engine != "transformers" ? EngineEra::y2024 : EngineEra::current;
}

// Prompts of a batch in one pass, then one token of each after the other.
double batch_seconds_of(const InferenceRequest& r, const StepModel& model, double outputs) {
    double seconds = 0;
    if (r.chunk > 0) {
        for (double done = 0; done < r.prompt; done += r.chunk) {
            StepWork piece;
            const double n = std::min(r.chunk, r.prompt - done);
            piece.add_prompt(n, done, done + n >= r.prompt);
            seconds += model.seconds(piece);
        }
    } else if (r.prompt > 0) {
        StepWork prompts;
        prompts.prompt = prompts.prompt_reads = r.batch * r.prompt;
        prompts.prompt_pairs = r.batch * r.prompt * r.prompt / 2;
        prompts.sampled = r.batch;
        seconds = model.seconds(prompts);
    }
    if (outputs > 1) {
        StepWork decode;
        decode.decode = r.batch;
        decode.context = r.batch * (r.prompt + outputs / 2);
        seconds += (outputs - 1) * model.seconds(decode);
    }
    return seconds;
}

}  // namespace

std::vector<double> figures_of(const InferenceRequest& r) {
    const ServingSetup& s = *r.setup;
    const StepModel model(s, r.shape);
    switch (r.scenario) {
        case InferenceScenario::offline: {
            // So many requests at once: the last of them run nearly alone, and their tail is in the rate.
            if (r.requests > 0) {
                ServingLoad load;
                load.concurrency = r.requests;
                load.rounds = 1;
                load.burst = true;
                return {simulate_serving(s, r.shape, load).output_tokens_per_s * r.replicas / r.beams};
            }
            return {offline_throughput(s, r.shape).output_tokens_per_s * r.replicas / r.beams};
        }
        case InferenceScenario::batch: return {r.replicas * r.batch * r.output / batch_seconds_of(r, model, r.output)};
        case InferenceScenario::batch_total:
            return {r.replicas * r.batch * (r.prompt + r.output) / batch_seconds_of(r, model, r.output)};
        case InferenceScenario::batch_ttft: return {1e3 * batch_seconds_of(r, model, 1)};
        case InferenceScenario::sequence:
            return {(r.prompt + r.output) / batch_seconds_of(r, model, r.prompt > 0 ? r.output : r.output + 1)};
        case InferenceScenario::stream: {
            if (!s.decoder) return {1e3 * batch_seconds(s, r.batch)};
            const double all = batch_seconds_of(r, model, r.output);
            // Of each token behind the first.
            if (r.lines.front().metric == "tpot_ms" && r.output > 1)
                return {1e3 * (all - batch_seconds_of(r, model, 1)) / (r.output - 1)};
            return {1e3 * all};
        }
        case InferenceScenario::examples:
            // What generates its answer, such as the text of a recording, takes as long as all of its tokens.
            return {r.replicas * r.batch /
                    (s.decoder ? batch_seconds_of(r, model, r.output) : batch_seconds(s, r.batch))};
        case InferenceScenario::offline_examples: return {r.replicas * offline_throughput(s, r.shape).requests_per_s};
        case InferenceScenario::server: {
            const double rate = sustained_rate(s, r.shape, r.limits) * r.replicas;
            return {s.decoder && r.lines.front().metric == "out_tokens_per_s" ? rate * r.output : rate};
        }
        case InferenceScenario::open_loop: {
            ServingLoad load;
            load.requests_per_second = r.rate / r.replicas;
            if (r.requests > 0) {
                load.requests = static_cast<int>(r.requests);
                load.whole_run = true;
            }
            const ServingOutcome o = simulate_serving(s, r.shape, load);
            return {1e3 * o.ttft_mean, 1e3 * o.tpot_mean, o.output_tokens_per_s * r.replicas};
        }
        case InferenceScenario::closed_loop: {
            // Benchmark clients send their requests all at once, then each answer is followed by the next request; the
            // mean that they print has the burst in it, with the share that it has in the run.
            ServingLoad load;
            load.concurrency = r.requests > 0 ? std::min(r.batch, r.requests) : r.batch;
            load.rounds = r.requests > 0 ? r.requests / load.concurrency : 10;
            load.burst = true;
            const ServingOutcome o = simulate_serving(s, r.shape, load);
            const double burst = r.requests > 0 ? 1 / load.rounds : r.burst_share;
            const double ttft = burst * o.ttft_first_mean + (1 - burst) * o.ttft_mean;
            return {1e3 * o.tpot_mean, 1e3 * ttft};
        }
    }
    return {};
}

bool take_setup(InferenceRequest& r, const Catalog& catalog) {
    auto made = make_serving_setup(r.workload, catalog, *r.device, r.era);
    if (!made) return false;
    auto setup = std::make_shared<ServingSetup>(std::move(made).value());
    if (r.most_sequences > 0) setup->max_sequences = r.most_sequences;
    if (setup->decoder) setup->max_sequences = std::max(setup->max_sequences, r.batch);
    // Engines pad the heads where the tensor degree does not divide them.
    const double tensor = r.shape.tensor;
    if (std::fmod(setup->heads, tensor) != 0) setup->heads = std::ceil(setup->heads / tensor) * tensor;
    setup->host_step_s += (r.split - 1) * setup->split_s;
    setup->device.memory_bytes *= r.split;
    // Clients draw lengths from a narrow range or stop early, which is enough for requests to drift apart; where
    // nothing differs, those that began together end together and begin again.
    if (r.scenario == InferenceScenario::closed_loop && !r.in_step)
        setup->prompt_cv = setup->output_cv = catalog.constant_or_die("inference_client_cv");
    if (r.lengths != nullptr) {
        setup->length_law = r.lengths->law;
        setup->prompt_cv = r.lengths->prompt_cv;
        setup->output_cv = r.lengths->output_cv;
        setup->length_most = r.lengths->most;
    }
    // Clients that send all at once wait in a front end that is alone with them; what that costs was fitted on bursts.
    // Those of TensorRT-LLM were of four clients and more: one alone waits for nobody. Of vLLM and SGLang it has lone
    // clients in it.
    const bool waits = r.batch > 1 || r.workload.framework != "tensorrt-llm";
    if (r.scenario == InferenceScenario::closed_loop && setup->decoder && waits)
        setup->first_token_s = setup->first_token_burst_s;
    r.burst_share = catalog.constant_or_die("inference_burst_share");
    r.unfit = false;
    // Every row ran: what is said not to fit still gets a figure, as if the device were just large enough.
    if (serving_memory(*setup, r.shape).refused == Reason::memory && r.make_room) {
        r.unfit = true;
        for (int i = 0; i < 40; ++i) {
            setup->device.memory_bytes *= 1.25;
            if (serving_memory(*setup, r.shape).refused != Reason::memory) break;
        }
    }
    r.setup = std::move(setup);
    return true;
}

namespace {

class Preparer {
public:
    Preparer(Hardware& hardware, Shapes& shapes, const Benchmarks& benchmarks, const LengthTable& lengths)
        : hardware_(&hardware), shapes_(&shapes), benchmarks_(&benchmarks), lengths_(&lengths) {}

    InferenceRequest prepare(const Row& row) {
        InferenceRequest r;
        std::vector<std::string> assumed;
        std::string refused;
        const std::vector<std::string> metrics = scenario_of(row, r, assumed, refused);
        if (refused.empty()) fill(row, r, assumed, refused);
        if (!row.invalid().empty()) refused = fmt::format("invalid:{}", row.invalid());
        const std::string group(row.text("split_group"));
        for (const std::string& metric : metrics) {
            Line line{.row = row.index(),
                      .id = std::string(row.text("id")),
                      .group = group + " " + metric,
                      .metric = metric,
                      .refused = refused,
                      .assumed = assumed};
            line.unfit = r.unfit;
            r.lines.push_back(std::move(line));
        }
        return r;
    }

private:
    static std::vector<std::string> scenario_of(const Row& row, InferenceRequest& r, std::vector<std::string>& assumed,
                                                std::string& refused) {
        const std::string text = lower(row.text("scenario"));
        const auto is = [&text](std::string_view name) { return text == name; };
        const bool tokens = row.given("measured_out_tokens_per_s");
        if (is("offline_max_throughput")) return {"out_tokens_per_s"};
        r.scenario = InferenceScenario::batch;
        if (is("max_throughput_static") || is("static")) return {"out_tokens_per_s"};
        r.scenario = InferenceScenario::batch_ttft;
        if (is("low_latency_first_token") || is("static_batch_ttft")) return {"ttft_ms"};
        r.scenario = InferenceScenario::closed_loop;
        if (holds(text, "closed_loop")) return {"tpot_ms", "ttft_ms"};
        r.scenario = InferenceScenario::open_loop;
        if (holds(text, "qps") || holds(text, "rps") || holds(text, "open_loop") || holds(text, "open-loop") ||
            holds(text, "poisson") || holds(text, "rate")) {
            std::vector<std::string> metrics{"ttft_ms", "tpot_ms"};
            if (tokens) metrics.emplace_back("out_tokens_per_s");
            return metrics;
        }
        r.scenario = InferenceScenario::batch_total;
        if (is("static_batch")) return {"tokens_per_s_total"};
        r.scenario = InferenceScenario::sequence;
        if (text.starts_with("llama-bench")) return {"tokens_per_s_total"};
        r.scenario = InferenceScenario::stream;
        if (is("single_stream")) return {"tpot_ms"};
        if (is("mlperf singlestream") || is("mlperf multistream")) return {"latency_ms_p50"};
        r.scenario = InferenceScenario::examples;
        if (is("offline_batch")) return {"samples_per_s"};
        r.scenario = InferenceScenario::offline;
        if (is("mlperf offline")) return {tokens ? "out_tokens_per_s" : "samples_per_s"};
        r.scenario = InferenceScenario::server;
        if (is("mlperf server") || is("mlperf interactive")) return {tokens ? "out_tokens_per_s" : "samples_per_s"};
        return scenario_by_columns(row, r, text, assumed, refused);
    }

    // A name that is not known here: what was measured says what was done.
    static std::vector<std::string> scenario_by_columns(const Row& row, InferenceRequest& r, const std::string& text,
                                                        std::vector<std::string>& assumed, std::string& refused) {
        struct Usual {
            std::string_view column, metric, told;
            InferenceScenario scenario;
        };
        static constexpr std::array<Usual, 6> kUsual{
            {{"measured_tokens_per_s_total", "tokens_per_s_total", "one batch", InferenceScenario::batch_total},
             {"measured_out_tokens_per_s", "out_tokens_per_s", "one batch", InferenceScenario::batch},
             {"ttft_ms", "ttft_ms", "the prefill of one batch", InferenceScenario::batch_ttft},
             {"tpot_ms", "tpot_ms", "one request at a time", InferenceScenario::stream},
             {"samples_per_s", "samples_per_s", "batches of one size", InferenceScenario::examples},
             {"latency_ms_p50", "latency_ms_p50", "one request at a time", InferenceScenario::stream}}};
        const std::string_view batch = row.text("batch_or_concurrency");
        const bool any = batch.empty() || batch == "inf_rate";
        const auto take = [&](InferenceScenario scenario, std::string_view told) {
            r.scenario = scenario;
            assumed.push_back(fmt::format("scenario: {}", told));
        };
        if (row.given("ttft_ms") && row.given("tpot_ms")) {
            take(InferenceScenario::closed_loop, "so many requests in flight");
            return {"tpot_ms", "ttft_ms"};
        }
        for (const Usual& usual : kUsual) {
            if (!row.given(usual.column)) continue;
            const bool alone = any || batch == "1";
            if (!alone && usual.column == "latency_ms_p50") break;  // of a request or of the batch: not told
            if (usual.scenario == InferenceScenario::stream && !alone) {
                take(InferenceScenario::closed_loop, "so many requests in flight");
            } else if (any && usual.scenario != InferenceScenario::stream &&
                       usual.scenario != InferenceScenario::batch_ttft &&
                       usual.scenario != InferenceScenario::batch_total) {
                take(InferenceScenario::offline, "as many as fit at once");
            } else {
                take(usual.scenario, usual.told);
            }
            return {std::string(usual.metric)};
        }
        refused = text.empty() ? "missing:scenario" : fmt::format("unsupported:scenario {}", printable(text, 40));
        return {"out_tokens_per_s"};
    }

    void fill(const Row& row, InferenceRequest& r, std::vector<std::string>& assumed, std::string& refused) {
        const bool mlperf = starts_with_ignore_case(row.text("scenario"), "mlperf");
        const Benchmark* benchmark =
            mlperf ? benchmarks_->find(row.text("model"), holds(lower(row.text("scenario")), "interactive")) : nullptr;
        const std::string_view name = benchmark != nullptr ? std::string_view(benchmark->model) : row.text("model");
        Shape shape = shapes_->of(row, name, row.whole("tp").value_or(1));
        if (const double size = dense_billions(row, name); size > 0 && shape.refused.starts_with("unknown_model:")) {
            // Dense decoders of one size differ by less than engines do.
            Shape usual = shapes_->of(row, fmt::format("llama-{:g}b", size), row.whole("tp").value_or(1));
            if (usual.refused.empty()) {
                usual.assumed.push_back(
                    fmt::format("model: {} taken for a Llama of {:g}e9 parameters", printable(name, 40), size));
                shape = std::move(usual);
            }
        }
        if (!shape.refused.empty()) {
            refused = shape.refused;
            return;
        }
        assumed.insert(assumed.end(), shape.assumed.begin(), shape.assumed.end());
        const ModelSpec& model = shape.model;
        const bool decoder = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder;
        const bool image = is_image(model.kind);
        if (model.kind == ModelKind::diffusion && benchmark == nullptr) {
            const auto steps = stated_number(row, "sampling_steps");
            const double taken = steps.value_or(model.request.steps);
            if (!(taken >= 1 && taken <= 1e4)) {
                refused = steps ? std::string("invalid:sampling_steps")
                                : fmt::format("unsupported:sampling steps of {}", model.name);
                return;
            }
            if (!steps) assumed.push_back(fmt::format("sampling_steps: {:g}", taken));
            r.workload.traffic.steps = taken;
        }

        // Lengths and batch
        if (mlperf && benchmark == nullptr) {
            refused = fmt::format("unsupported:benchmark {}", printable(name, 40));
            return;
        }
        r.prompt = image ? 1 : row.number("input_len").value_or(benchmark != nullptr ? benchmark->prompt_tokens : -1);
        r.output =
            !decoder ? 1 : row.number("output_len").value_or(benchmark != nullptr ? benchmark->output_tokens : 1);
        if (r.prompt < 0 && model.kind == ModelKind::encoder_decoder && holds(model.sample_unit, "audio")) {
            r.prompt = std::max(1, model.learned_positions - model.max_sequence);  // frames of a window
            assumed.push_back(fmt::format("input_len: {:g}, of {}", r.prompt, model.sample_unit));
            if (!row.given("output_len") && model.request.window_s > 0) {
                r.output = std::max(1.0, std::round(model.request.window_s * model.request.output_tokens_per_s));
                assumed.push_back(fmt::format("output_len: {:g}", r.output));
            }
        }
        if (r.prompt < 0 || (r.prompt < 1 && r.scenario != InferenceScenario::sequence)) {
            refused = "missing:input_len";
            return;
        }
        if (benchmark != nullptr && decoder) r.beams = benchmark->beams;
        // Positions that a network was not made for end the request: such a row has counted tokens that nobody made.
        constexpr double kSmallContext = 2048;  // of the years before positions could be scaled
        const NamedEngine named = engine_named(row.text("engine"));
        // Encoders are launched in one go however they are run, and what is tuned for a benchmark is compiled.
        const bool eager = named.name == "transformers" && decoder && !mlperf;
        const bool plain = named.name == "transformers" && !eager;
        const bool compiled = holds(lower(row.text("engine")), "compile");
        const std::string engine(!plain ? named.name : compiled ? "pytorch, compiled" : "pytorch");
        if (decoder && !named.assumed.empty()) {
            assumed.push_back(named.assumed);
            r.engine_unmeasured = true;
        }
        const bool checks = engine == "vllm" || engine == "sglang";  // max_model_len
        if (decoder && checks && model.max_sequence > 0 && model.max_sequence <= kSmallContext &&
            (model.kind == ModelKind::encoder_decoder ? 0 : r.prompt) + r.output > model.max_sequence) {
            refused = fmt::format("contradiction:input_len+output_len>{} of the model", model.max_sequence);
            return;
        }
        if (benchmark != nullptr && !image)
            assumed.push_back(fmt::format("input_len, output_len: {:g}, {:g}", r.prompt, r.output));
        for (const auto& [column, figure] :
             {std::pair{"input_len", r.prompt}, std::pair{"output_len", r.output},
              std::pair{"gpus", row.number("gpus").value_or(0)}, std::pair{"tp", row.number("tp").value_or(0)},
              std::pair{"pp", row.number("pp").value_or(0)}}) {
            if (figure <= 1e7) continue;  // beyond any machine or context: a slip of a unit
            refused = fmt::format("invalid:{}", column);
            return;
        }
        const bool needs_output = r.scenario == InferenceScenario::offline || r.scenario == InferenceScenario::batch ||
                                  r.scenario == InferenceScenario::batch_total ||
                                  r.scenario == InferenceScenario::closed_loop ||
                                  r.scenario == InferenceScenario::open_loop;
        if (decoder && needs_output && benchmark == nullptr && !row.given("output_len")) {
            refused = "missing:output_len";
            return;
        }
        const std::string batch(row.text("batch_or_concurrency"));
        const bool unlimited = batch.empty() || batch == "inf_rate";
        const bool open = r.scenario == InferenceScenario::open_loop;
        if (open) {
            r.rate = stated_number(row, "request_rate").value_or(0);
            if (r.rate <= 0 && !unlimited) r.rate = row.number("batch_or_concurrency").value_or(0);
            if (r.rate <= 0) {
                refused = "missing:request rate";
                return;
            }
        }
        r.batch = unlimited || open ? 1 : row.whole("batch_or_concurrency").value_or(1);
        // A query of the rules' multi-stream scenario has eight samples.
        if (r.scenario == InferenceScenario::stream && mlperf)
            r.batch = equals_ignore_case(row.text("scenario"), "mlperf multistream") ? 8 : 1;
        const bool batched = r.scenario == InferenceScenario::batch || r.scenario == InferenceScenario::batch_total ||
                             r.scenario == InferenceScenario::closed_loop || r.scenario == InferenceScenario::examples;
        if (batched && unlimited) {
            refused = "missing:batch_or_concurrency";
            return;
        }

        // Devices. In a layer split (llama.cpp) one device after the other works on the only sequence.
        double gpus = row.number("gpus").value_or(0);
        if (gpus < 1 && row.given("tp"))  // some sources count no devices beside the degrees
            gpus = row.whole("tp").value_or(1) * row.whole("pp").value_or(1) *
                   std::max(1.0, stated_number(row, "attn_dp").value_or(1));
        if (gpus < 1 && names_processor(row.text("gpu_model"))) gpus = 1;
        if (gpus < 1) {
            refused = "missing:gpus";
            return;
        }
        double tensor = row.whole("tp").value_or(0), pipeline = row.whole("pp").value_or(1);
        // Experts are divided over all devices of a replica, so their degrees say how many it has, whatever attention
        // does; some sources multiply the others with each other.
        double data = std::max(1.0, stated_number(row, "attn_dp").value_or(1));
        if (const double world = stated_number(row, "moe_tp").value_or(0) * stated_number(row, "moe_ep").value_or(0);
            world >= 1 && model.moe() && tensor > 0 && world < gpus && std::fmod(gpus, world) == 0) {
            assumed.push_back(fmt::format("gpus: {:g}, of the experts", world));
            gpus = world;
            data = data > 1 ? std::max(1.0, std::floor(world / std::min(tensor, world))) : 1;
            tensor = std::max(1.0, std::floor(world / data));
        }
        // Both degrees of the experts equal, and attention over their product: one divides the devices, and the source
        // multiplied them. Nobody divides the experts of one replica eightfold in both ways.
        const double expert_tensor = stated_number(row, "moe_tp").value_or(0);
        double experts_over = std::max(0.0, stated_number(row, "moe_ep").value_or(0));
        if (model.moe() && expert_tensor > 1 && expert_tensor == experts_over && gpus == expert_tensor * experts_over &&
            std::max(tensor, data) == gpus) {
            gpus = experts_over;
            assumed.push_back(fmt::format("gpus: {:g}, of the experts", gpus));
            tensor = std::max(1.0, std::floor(tensor / experts_over));
            data = std::max(1.0, std::floor(data / experts_over));
        }
        // The batch of one attention rank, where a row has it: more requests in flight than all ranks have are those of
        // other ranks that share the experts, or of other replicas.
        const double groups = std::max(1.0, stated_number(row, "attn_dp").value_or(1));
        const double each = stated_number(row, "batch_of_rank").value_or(0) * groups;
        if (const double times = each >= 1 ? r.batch / each : 1;
            r.scenario == InferenceScenario::closed_loop && times > 1 && std::fmod(times, 1) == 0) {
            if (model.moe() && groups <= 1 && times == tensor) {
                assumed.push_back(fmt::format("attn_dp: {:g}", tensor));
                data = tensor;
                tensor = 1;
            } else {
                assumed.push_back(fmt::format("replicas: {:g}", times));
                r.batch /= times;
            }
        }
        // No engine divides the heads of a latent cache by a degree that does not divide them: such a degree counts all
        // devices of a deployment whose attention is data parallel.
        if (tensor > 1 && model.attention == AttentionKind::mla && std::fmod(model.heads, tensor) != 0) {
            assumed.push_back(fmt::format("attn_dp: {:g}", tensor));
            data = tensor;
            tensor = 1;
        }
        data = std::min(data, std::max(1.0, gpus));
        if (r.scenario == InferenceScenario::sequence && engine == "llama.cpp") {
            tensor = pipeline = 1;
            r.split = gpus;
            r.chunk = stated_number(row, "prompt_chunk").value_or(0);
        } else if (tensor > 0) {
            if (tensor * pipeline > gpus) {
                refused = "contradiction:tp*pp>gpus";
                return;
            }
            if (r.scenario == InferenceScenario::closed_loop && data <= 1)
                tensor = std::max(tensor, std::floor(gpus / (pipeline * data)));
            data = std::max(1.0, std::min(data, std::floor(gpus / (tensor * pipeline))));
            r.replicas = std::max(1.0, std::floor(gpus / (tensor * pipeline * data)));
        }
        const bool chosen = tensor <= 0;
        if (chosen) tensor = 1;
        const auto cluster_of = [&](double devices) {
            return hardware_->cluster({.gpu_model = row.text("gpu_model"),
                                       .intra_link = {},
                                       .inter_link = {},
                                       .gpus = devices,
                                       .processors = true});
        };
        Cluster cluster = cluster_of(tensor * pipeline * data);
        if (!cluster.refused.empty()) {
            refused = cluster.refused;
            return;
        }
        assumed.insert(assumed.end(), cluster.assumed.begin(), cluster.assumed.end());

        const double instances = cluster.instances;  // each answers for itself
        Workload& w = r.workload;
        w.kind = decoder ? WorkloadKind::inference : WorkloadKind::embedding;
        w.model = model;
        w.model_known = true;
        w.framework = engine == "tensorrt-llm" && !decoder ? "tensorrt" : engine;
        w.traffic.prompt_tokens = std::max(1.0, r.prompt);
        // Every beam is a sequence that decodes: so many times the tokens of a request, of which one beam is the
        // answer.
        w.traffic.output_tokens = std::max(1.0, r.output * r.beams);
        if (benchmark != nullptr && model.kind == ModelKind::diffusion) w.traffic.steps = benchmark->steps;
        w.precision = precision_for(row, *cluster.device, model.kind, mlperf, assumed);
        const auto kv = precision_of(row.text("precision_kv"));
        w.kv_precision = kv.value_or(w.precision == Precision::fp32 ? Precision::fp32 : Precision::fp16);
        // TensorRT-LLM takes the format of the cache from the checkpoint, and its FP8 and FP4 checkpoints have FP8.
        const bool narrow = w.precision == Precision::fp8 || w.precision == Precision::fp4;
        // Its checkpoints say so to other engines too (kv_cache_quant_algo of hf_quant_config.json).
        const bool modelopt = starts_with_ignore_case(name, "nvidia/") && w.precision == Precision::fp8;
        if (!kv && (engine == "tensorrt-llm" || modelopt) && narrow && decoder &&
            model.attention != AttentionKind::mla) {
            w.kv_precision = Precision::fp8;
            assumed.push_back("precision_kv: fp8");
        }
        r.era = era_of(engine, row.text("engine"), row,
                       r.scenario == InferenceScenario::batch_total || r.scenario == InferenceScenario::batch_ttft);
        // What is submitted to a benchmark is tuned: schedulers of several steps, which the release alone has not.
        if (mlperf && engine == "vllm") r.era = EngineEra::current;
        r.in_step = stated(row, "clients_in_step");
        r.most_sequences = stated_number(row, "most_sequences").value_or(0);
        take_load(row, r, decoder && benchmark == nullptr);

        // Where the source leaves the division to the engine: the fewest devices that hold the model.
        for (;;) {
            r.device = cluster.device;
            r.accelerator = cluster.accelerator;
            r.shape = {static_cast<int>(tensor), static_cast<int>(pipeline), static_cast<int>(data),
                       static_cast<int>(std::min(experts_over, tensor * data))};
            r.make_room = !(chosen && decoder && tensor * 2 <= gpus);
            if (!take_setup(r, hardware_->catalog())) {
                refused = "unsupported:no shape to predict inference from";
                return;
            }
            const ServingMemory memory = serving_memory(*r.setup, r.shape);
            if (memory.refused == Reason::memory && !r.make_room) {
                tensor *= 2;
                cluster = cluster_of(tensor * pipeline);
                continue;
            }
            if (memory.refused != Reason::none && memory.refused != Reason::memory) {
                refused = fmt::format("unsupported:{} (has {:g}, wants {:g})", code(memory.refused), memory.have,
                                      memory.need);
                return;
            }
            break;
        }
        if (chosen) {
            r.replicas = std::max(1.0, std::floor(gpus / tensor));
            if (decoder) assumed.push_back(fmt::format("tp: {:g}", tensor));
        }
        r.replicas *= instances;
        if (r.requests > 0 && r.scenario != InferenceScenario::closed_loop) {
            r.replicas = std::min(r.replicas, r.requests);  // others have nothing to do
            r.requests = std::max(1.0, std::round(r.requests / r.replicas));
        }
        if (!decoder && r.scenario == InferenceScenario::offline) r.scenario = InferenceScenario::offline_examples;
        if (decoder && r.scenario == InferenceScenario::offline && !row.given("measured_out_tokens_per_s"))
            r.replicas /= std::max(1.0, r.output);  // requests, not tokens
        if (benchmark != nullptr) {
            const auto seconds = [](const std::optional<double>& s) {
                return s ? std::optional<Seconds>(Seconds(*s)) : std::nullopt;
            };
            r.limits.ttft_p99 = seconds(benchmark->limit_ttft_s);
            r.limits.tpot_p99 = seconds(benchmark->limit_tpot_s);
            r.limits.p95 = seconds(benchmark->limit_latency_s);
        }
    }

    // How many requests are sent in all, and how unequal they are.
    void take_load(const Row& row, InferenceRequest& r, bool generates) const {
        const bool loaded = r.scenario == InferenceScenario::open_loop ||
                            r.scenario == InferenceScenario::closed_loop || r.scenario == InferenceScenario::offline;
        if (!generates || !loaded) return;
        r.requests = std::min(std::floor(stated_number(row, "requests").value_or(0)), 1e5);
        if (r.requests < 1 && r.scenario == InferenceScenario::offline && r.batch > 1)
            r.requests = std::min(r.batch, 1e5);
        if (const auto named = stated_word(row, "lengths")) r.lengths = lengths_->find(*named);
    }

    static Precision precision_for(const Row& row, const Device& device, ModelKind kind, bool mlperf,
                                   std::vector<std::string>& assumed) {
        std::optional<Precision> wanted = precision_of(row.text("precision_weights"));
        const std::string name = lower(row.text("model"));
        if (!wanted) wanted = precision_of(stated_word(row, "gemm_precision").value_or(""));
        if (!wanted) wanted = precision_of(name);
        if (!wanted)
            for (const auto& [family, precision] : kNative)
                if (holds(name, family)) wanted = precision;
        if (!wanted) {
            // Benchmarks leave it to the vendor, who takes the narrowest that holds the accuracy target. In diffusion
            // that is 8 bits for some layers only: attention, normalisation and the decoder of the image stay in 16.
            const bool strict = holds(name, "99.9");
            const bool decoder = kind == ModelKind::decoder || kind == ModelKind::encoder_decoder;
            wanted = Precision::fp16;
            if (mlperf && decoder && device.peak(Precision::fp8) > 0) {
                wanted = Precision::fp8;
            } else if (mlperf && !decoder && !strict && kind != ModelKind::diffusion &&
                       device.peak(Precision::int8) > 0) {
                wanted = Precision::int8;
            }
            assumed.push_back(fmt::format("precision_weights: {}", to_string(*wanted)));
        }
        // FP16 and BF16 cost the same; a device without one has the other.
        if (*wanted == Precision::bf16 && device.peak(Precision::bf16) <= 0) wanted = Precision::fp16;
        if (*wanted == Precision::fp16 && device.peak(Precision::fp16) <= 0) wanted = Precision::bf16;
        return *wanted;
    }

    Hardware* hardware_;
    Shapes* shapes_;
    const Benchmarks* benchmarks_;
    const LengthTable* lengths_;
};

}  // namespace

std::vector<InferenceRequest> inference_requests(const Csv& csv, Hardware& hardware, Shapes& shapes) {
    const auto benchmarks = Benchmarks::embedded();
    CHECK(benchmarks.ok());
    static const Result<LengthTable> lengths = LengthTable::embedded();  // requests point into it
    CHECK(lengths.ok());
    Preparer preparer(hardware, shapes, *benchmarks, *lengths);
    std::vector<InferenceRequest> requests;
    requests.reserve(csv.rows());
    for (std::size_t i = 0; i < csv.rows(); ++i) requests.push_back(preparer.prepare(Row(csv, i)));
    return requests;
}

std::vector<Line> predict_inference(const Csv& csv, Hardware& hardware, Shapes& shapes, const Intervals& intervals) {
    std::vector<InferenceRequest> requests = inference_requests(csv, hardware, shapes);
    constexpr double kNinetieth = 1.2816;  // of the normal distribution; as in a plan
    const Constant* engine_sigma = hardware.catalog().constant("sigma_serving_engine_no_rows");
    const double unmeasured_engine = std::exp(kNinetieth * (engine_sigma != nullptr ? engine_sigma->value : 0));
    for_each_index(requests.size(), 0, [&](std::size_t i) {
        InferenceRequest& r = requests[i];
        if (!r.setup || !r.lines.front().refused.empty()) return;
        const std::vector<double> figures = figures_of(r);
        const double spread = std::exp(kNinetieth * r.setup->device.sigma);
        // Its own source says nothing of how near others are.
        const Row row(csv, r.lines.front().row);
        const std::string_view source = row.text("split_group");
        const Nearness near = nearness(serving_case(*r.device, r.workload, r.era), source);
        const double growth = interval_growth_of_row(hardware.catalog(), MeasuredWork::serving, near, source);
        Range own = wider_where_unmeasured({1 / spread, 1, spread}, hardware.catalog(), r.accelerator, "serving");
        if (r.engine_unmeasured) own = combined(own, {1 / unmeasured_engine, 1, unmeasured_engine});
        for (std::size_t k = 0; k < r.lines.size() && k < figures.size(); ++k) {
            Line& line = r.lines[k];
            line.distance = near.distance;
            line.growth = growth;
            if (figures[k] > 0 && std::isfinite(figures[k])) {
                line.predict(figures[k], intervals.factors(line.metric, own, line.assumed.size(), growth));
            } else {
                line.refused = "unsupported:no figure";
            }
        }
    });
    std::vector<Line> lines;
    for (InferenceRequest& r : requests)
        for (Line& line : r.lines) lines.push_back(std::move(line));
    return lines;
}

}  // namespace stoker::validate
