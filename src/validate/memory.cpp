#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "sizing/memory_habits.h"
#include "sizing/nearness.h"
#include "sizing/training_memory.h"
#include "validate/predict.h"
#include "validate/stated.h"

namespace stoker::validate {
namespace {

bool mentions(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// What a kind of measurement sees of the memory, on which stage, and in which unit it is printed.
enum class Seen : std::uint8_t { allocated, last_stage, reserved, driver, formula };
struct Kind {
    Seen seen = Seen::allocated;
    double unit = 1e9;
};

// The longest beginning that fits decides; anything else is taken for allocated bytes in GB.
Kind kind_of_memory(std::string_view printed) {
    const std::string text = lower(printed);
    Kind kind;
    // nanotron's log is in MiB; figures of 1,024 of them are printed as GB.
    kind.unit = mentions(text, "gib") || mentions(text, "nanotron") ? kGiB : 1e9;
    if (text.starts_with("gib: params")) {
        kind.seen = Seen::formula;
    } else if (mentions(text, "smi") || mentions(text, "device memory") || mentions(text, "vram") ||
               mentions(text, "memory used") || mentions(text, "memory usage")) {
        kind.seen = Seen::driver;
    } else if (mentions(text, "reserved")) {
        kind.seen = Seen::reserved;
    } else if (mentions(text, "mem-max-allocated-bytes")) {
        kind.seen = Seen::last_stage;  // Megatron's training log is written by the last rank
    }
    return kind;
}

// Billions of parameters: of the cell, or of a name like "T0_3B" and "bloomz-7b1".
double billions(const Row& row) {
    if (const auto stated = row.number("params_b")) return *stated;
    const std::string name = lower(row.text("model_name"));
    for (std::size_t b = name.find('b'); b != std::string::npos; b = name.find('b', b + 1)) {
        std::size_t begin = b;
        while (begin > 0 && (std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0 || name[begin - 1] == '.'))
            --begin;
        if (begin == b) continue;
        if (const auto number = parse_number(name.substr(begin, b - begin)); number && *number > 0) return *number;
    }
    return 0;
}

// What stands in the way of a figure, answered by what is usual where a figure or at least a verdict follows from it.
struct Rescue {
    Row::Changes changes;
    std::vector<std::string> told;
    bool figure = true;       // false: a verdict only
    bool cannot_run = false;  // a layout that nothing can be made of, whatever the memory
};

bool rescue(const Row& row, std::string_view refused, Rescue& out) {
    const auto change = [&out](const char* column, std::string text, std::string told) {
        const bool fresh = out.changes.emplace(column, std::move(text)).second;
        if (fresh && !told.empty()) out.told.push_back(std::move(told));
        return fresh;
    };
    const std::string framework = lower(row.text("framework"));
    if (refused.starts_with("method:") && stated_number(row, "trainable")) {
        // Base and activations decide, whatever the adapter; how much of it is trained is stated.
        const std::size_t peft = framework.find("peft ");
        std::string text = peft != std::string::npos ? framework.substr(0, peft) + "peft lora"
                                                     : replace_all(framework, "with adapter", "with lora");
        return change("framework", std::move(text), fmt::format("{}: memory as of LoRA", refused));
    }
    const auto layers = row.whole("layers"), stages = row.whole("pp");
    if (refused.starts_with("unsupported:shape-indivisible") && layers && stages && *stages > *layers) {
        out.cannot_run = true;
        const double ranks = *layers * row.whole("tp").value_or(1) * row.whole("cp").value_or(1);
        change("gpus", fmt::format("{:.0f}", ranks * row.whole("dp").value_or(1)), "");
        return change("pp", fmt::format("{:.0f}", *layers),
                      fmt::format("pp: {:.0f}, the stages that have a layer", *layers));
    }
    if (refused == "missing:seq_len") {
        // Long examples decide the peak: packed to the usual context, and SQuAD's 384 tokens for encoders.
        const std::string name = lower(row.text("model_name"));
        const bool encoder = lower(row.text("arch")) == "bert" || mentions(name, "bert") || name.starts_with("t5");
        out.figure = false;
        return change("seq_len", encoder ? "384" : "4096", fmt::format("seq_len: {}", encoder ? 384 : 4096));
    }
    if (refused == "missing:layers" && row.whole("hidden")) {
        out.figure = false;
        return change("layers", fmt::format("{:.0f}", std::max(1.0, std::round(*row.whole("hidden") / 128))),
                      "layers: hidden / 128");
    }
    if (refused == "missing:global_batch") {
        out.figure = false;
        return change("micro_batch", "1", "micro_batch: 1");
    }
    if (refused.starts_with("unknown_model:") || refused == "missing:experts") {
        // A decoder of that size: 12 L h^2 parameters and h = 128 L, as published families have it.
        const double size = billions(row) * 1e9;
        if (!(size >= 1e8)) return false;
        const double hidden = 128 * std::max(2.0, std::round(std::cbrt(size * 128 / 12) / 128));
        out.figure = false;
        change("hidden", fmt::format("{:.0f}", hidden), "");
        change("heads", fmt::format("{:.0f}", hidden / 128), "");
        change("arch", "gpt", "");
        return change("layers", fmt::format("{:.0f}", std::max(1.0, std::round(size / (12 * hidden * hidden)))),
                      fmt::format("model: any of {:g}e9 parameters", size / 1e9));
    }
    return false;
}

// What the text of the row says of habits that the setup does not know by itself.
void apply_text(const Row& row, TrainingSetup& s, ParallelLayout& layout, std::vector<std::string>& assumed) {
    const std::string framework = lower(row.text("framework")), precision = lower(row.text("precision"));
    const CodeBaseKind kind = code_base_kind(framework);
    const bool tuner =
        kind == CodeBaseKind::hugging_face || kind == CodeBaseKind::litgpt || kind == CodeBaseKind::torchtune;
    // Nothing is trained in FP16 alone: a context casts around the products of an FP32 model.
    const bool cast = s.method == Method::full && (mentions(precision, "fp16") || mentions(precision, "float16"));
    const bool mixed =
        mentions(precision, "amp") || mentions(precision, "mixed") || (cast && !mentions(precision, "bfloat16"));
    const bool many = layout.gpus() > 1;
    if (kind == CodeBaseKind::torchtune && many && !row.given("zero_stage")) layout.zero = 3;
    if (kind == CodeBaseKind::litgpt && many && !row.given("zero_stage")) {
        layout.zero = 3;
        if (s.method != Method::full) s.live_layers = s.layers;  // frozen and trained weights share one unit
    }
    if (tuner && s.compute_bytes == 2 && !mixed) {
        // The type of the model, not of a context around it: FP32 unless something else is asked for (torchtune: BF16).
        // Accelerate keeps what FSDP trains in FP32 all the same.
        const bool sharded = kind == CodeBaseKind::hugging_face && layout.zero >= 3 && layout.shard_ranks() > 1;
        const bool loaded_wide = precision.empty() && kind != CodeBaseKind::torchtune;
        store_states(sharded || loaded_wide ? StateStorage::full : StateStorage::sixteen_bit, s);
        if (loaded_wide && s.method == Method::lora) s.weight_bytes = s.embedding_weight_bytes = 4;
        if (loaded_wide) s.habits.update_bytes = 0;
    }
    if (kind == CodeBaseKind::hugging_face && s.experts > 1 && mentions(framework, "scattermoe")) {
        // "moe-scattermoe-granite-ep4": experts are shared by so many ranks. On twice as many devices as that they take
        // no less, so FSDP leaves them alone.
        const double degree = stated_number(row, "expert_kernel_degree").value_or(1);
        if (degree >= 1 && std::fmod(layout.data, degree) == 0 && std::fmod(s.experts, degree) == 0) {
            layout.expert = static_cast<std::int32_t>(degree);
            s.habits.experts_unsharded = true;
            s.habits.expert_state_share = std::min(1.0, s.compute_bytes / s.weight_bytes);
        }
    }
    if (s.device.gpu && (tuner || mentions(framework, "offload")) && stated(row, "states_offload"))
        layout.offload = s.habits.offloads_weights = true;
    if (s.method == Method::qlora && stated(row, "double_quantised")) s.weight_bytes = kDoubleQuantisedBytes;
    if (kind == CodeBaseKind::torchtune && s.method == Method::full && !many) {
        // The recipe for one device: an 8-bit optimizer in pages on the host, stepped inside the backward pass.
        s.gradient_bytes = s.optimizer_bytes = s.habits.update_bytes = 0;
    }
    if (kind == CodeBaseKind::megatron && !mentions(framework, "nemo") && !mentions(framework, "bridge")) {
        // The default of its arguments is 0.1; recipes of gated mixtures of experts switch it off.
        s.dropout = !(s.experts > 1 && s.gate_matrices > 2);
        s.predicted_share = 1;  // its BERT computes the logits of all tokens
    }
    if (row.given("recompute") || stated_word(row, "recompute_granularity") || !s.transformer) return;
    Recompute usual = layout.recompute;
    if (kind == CodeBaseKind::nanotron || kind == CodeBaseKind::megatron) usual = Recompute::none;
    if (kind == CodeBaseKind::hugging_face || kind == CodeBaseKind::torchtune) usual = Recompute::full;
    if (kind == CodeBaseKind::litgpt) usual = layout.gpus() > 1 ? Recompute::full : Recompute::none;
    if (usual == layout.recompute) return;
    layout.recompute = usual;
    std::erase_if(assumed, [](const std::string& text) { return text.starts_with("recompute: "); });
    assumed.push_back(fmt::format("recompute: {}, usual of this code base", to_string(usual)));
}

// How likely the run is to fit the largest device that the row may mean. Where equal runs show two levels of what
// tensor parallelism leaves whole, it fits with the chance of each level that does.
double likely_to_fit(TrainingSetup setup, const ParallelLayout& layout, int nodes, double most_memory,
                     double bare_context, bool knows_loss) {
    setup.device.memory_bytes = std::max(setup.device.memory_bytes, most_memory);
    // Kernels are loaded as they are used (CUDA_MODULE_LOADING, lazy since CUDA 12.2), and what a process takes beyond
    // its context where there is room it does without: 23.05 GiB reserved of a 24 GiB device ran (fsdp_qlora).
    if (setup.device.gpu) setup.framework_bytes = std::min(setup.framework_bytes, bare_context);
    const auto likely = [&] {
        TrainingEstimate estimate;
        evaluate_memory(setup, layout, nodes, estimate);
        const Range own = memory_interval(setup, layout, estimate);
        double need = estimate.memory_bytes;
        // Who runs out of memory for its logits computes the loss in pieces, unless the code base is known not to.
        if (!knows_loss) need -= 0.9 * estimate.bytes[static_cast<std::size_t>(MemoryTerm::logits)];
        return fit_probability(setup, {need * own.low, need, need * own.high});
    };
    MemoryHabits& habits = setup.habits;
    if (layout.tensor <= 1 || habits.undivided_most <= 0) return likely();
    habits.undivided = 0;
    const double none = likely();
    habits.undivided = habits.undivided_most;
    return habits.undivided_most_share * likely() + (1 - habits.undivided_most_share) * none;
}

// Who publishes a configuration has as a rule seen it run, and the farther a row lies from what was measured the less a
// probability says against that.
double verdict_threshold(double where_measured, const Nearness& near) {
    return where_measured / (1 + near.distance);
}

// A vision encoder is in no column: with the language model's alone, neither figure nor verdict means anything.
bool lacks_encoder(const Row& row) {
    if (!row.given("layers") || !row.given("hidden")) return false;
    return stated(row, "vision_encoder");
}

// Nothing of the model is known. Who publishes a configuration has as a rule seen it run.
Line without_model(Line line, const Jobs& jobs) {
    line.fits = jobs.constant("verdict_base_rate");
    line.base_rate = true;
    line.outcome = *line.fits < jobs.constant("fit_verdict_probability") ? "oom" : "fit";
    line.assumed.push_back(fmt::format("verdict: {:.0f} % of published configurations ran", 100 * *line.fits));
    return line;
}

double bytes_seen(const TrainingSetup& s, const ParallelLayout& layout, const TrainingEstimate& e, Seen seen) {
    const auto of = [&e](MemoryTerm term) { return e.bytes[static_cast<std::size_t>(term)]; };
    switch (seen) {
        case Seen::allocated: return e.allocated_bytes;
        case Seen::last_stage: return stage_allocated_bytes(s, layout, layout.pipeline - 1);
        case Seen::reserved: return e.reserved_bytes;
        case Seen::driver: return e.reserved_bytes + of(MemoryTerm::framework) + of(MemoryTerm::communication);
        case Seen::formula:
            return of(MemoryTerm::weights) + of(MemoryTerm::gradients) + of(MemoryTerm::optimizer) +
                   of(MemoryTerm::activations);
    }
    return 0;
}

}  // namespace

Line predict_memory(const Row& row, Jobs& jobs, const Intervals& intervals) {
    Line line{.row = row.index(),
              .id = std::string(row.text("id")),
              .group = std::string(row.text("source_group")),
              .metric = "peak_mem_gb"};
    const std::string_view printed = row.text("mem_kind");
    if (says(printed, "percent of TP baseline")) {
        line.refused = "ratio row";
        return line;
    }
    if (row.invalid().empty() && lacks_encoder(row)) {
        line.refused = "missing:vision encoder";
        return without_model(std::move(line), jobs);
    }
    Job job = jobs.of(row, true);
    line.refused = !row.invalid().empty() ? fmt::format("invalid:{}", row.invalid()) : job.refused;
    Rescue usual;
    constexpr int kTries = 6;  // each answers one refusal
    for (int i = 0; i < kTries && !job.refused.empty() && row.invalid().empty(); ++i) {
        if (!rescue(row, job.refused, usual)) break;
        job = jobs.of(Row(row, usual.changes), true);
    }
    line.assumed = job.assumed;
    if (!row.invalid().empty() || line.refused.starts_with("contradiction:")) return line;
    if (!job.refused.empty()) return without_model(std::move(line), jobs);
    line.assumed.insert(line.assumed.end(), usual.told.begin(), usual.told.end());

    TrainingSetup setup = *job.setup;
    ParallelLayout layout = job.layout;
    apply_text(Row(row, usual.changes), setup, layout, line.assumed);
    const bool in_pieces = stated(row, "loss_in_pieces");
    if (in_pieces) setup.logit_bytes = std::min(setup.logit_bytes, jobs.constant("logit_bytes_chunked"));
    TrainingEstimate estimate;
    int nodes = job.nodes;
    evaluate_memory(setup, layout, nodes, estimate);
    if (!row.given("gpus") && !row.given("dp") && layout.zero >= 1) {
        // Nobody says on how many devices: on as many as the states need.
        constexpr int kMostData = 1024;
        const int stated = layout.data;
        while (estimate.refused == Reason::memory && layout.data < kMostData) {
            layout.data *= 2;
            evaluate_memory(setup, layout, nodes *= 2, estimate);
        }
        if (layout.data != stated) line.assumed.push_back(fmt::format("gpus: {}, to fit", layout.gpus()));
    }
    const Kind kind = kind_of_memory(printed);
    const double figure = bytes_seen(setup, layout, estimate, kind.seen) / kind.unit;
    if (!(figure > 0) || !std::isfinite(figure)) {
        line.refused = "unsupported:no peak";
        return line;
    }
    const Nearness near = nearness(job.measured, line.group);
    line.distance = near.distance;
    const double growth = interval_growth_of_row(jobs.catalog(), MeasuredWork::memory, near, line.group);
    line.growth = growth;
    const Range own = peak_interval(setup, layout, estimate, growth);
    if (usual.figure) {
        line.refused.clear();
        line.predict(figure, intervals.factors(line.metric, own, line.assumed.size(), growth));
    }
    const bool idle = usual.cannot_run || leaves_stage_empty(setup, layout);
    const CodeBaseKind kind_of_code = code_base_kind(lower(row.text("framework")));
    const bool knows_loss = in_pieces || (kind_of_code != CodeBaseKind::other && kind_of_code != CodeBaseKind::fsdp);
    line.fits = idle ? 0
                     : likely_to_fit(setup, layout, nodes, job.most_memory,
                                     jobs.constant("cuda_context_bare_gib") * kGiB, knows_loss);
    line.outcome = *line.fits < verdict_threshold(setup.fit_verdict_probability, near) ? "oom" : "fit";
    return line;
}

}  // namespace stoker::validate
