#include "sizing/nearness.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {
namespace {

// The first word that is there decides.
constexpr auto kStackWords = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"megatron-deepspeed", "megatron-deepspeed"},
    {"megatron + deepspeed", "megatron-deepspeed"},
    {"megatron", "megatron"},
    {"nemo", "megatron"},
    {"nanotron", "nanotron"},
    {"torchtitan", "torchtitan"},
    {"litgpt", "litgpt"},
    {"lit-gpt", "litgpt"},
    {"torchtune", "torchtune"},
    {"hf trainer", "hugging-face"},
    {"transformers", "hugging-face"},
    {"hugging", "hugging-face"},
    {"peft", "hugging-face"},
    {"trl", "hugging-face"},
    {"accelerate", "hugging-face"},
    {"axolotl", "hugging-face"},
    {"llama-factory", "hugging-face"},
    {"llamafactory", "hugging-face"},
    {"unsloth", "unsloth"},
    {"composer", "composer"},
    {"llm-foundry", "composer"},
    {"internevo", "internevo"},
    {"tensorrt", "tensorrt-llm"},
    {"trt", "tensorrt-llm"},
    {"sglang", "sglang"},
    {"vllm", "vllm"},
    {"deepspeed-mii", "deepspeed-mii"},
    {"mii", "deepspeed-mii"},
    {"llama.cpp", "llama.cpp"},
    {"deepspeed", "deepspeed"},
    {"zero", "deepspeed"},
    {"fsdp", "fsdp"},
    {"tensorflow", "tensorflow"},
    {"mxnet", "mxnet"},
    {"paddle", "paddle"},
    {"maxtext", "jax"},
    {"jax", "jax"},
    {"neuron", "neuron"},
    {"habana", "habana"},
    {"openvino", "openvino"},
    {"onnx", "onnx"},
    {"tgi", "tgi"},
    {"pytorch", "pytorch"},
    {"torch", "pytorch"},
});

constexpr std::size_t kOpinions = 3;
constexpr double kFarthest = 3;

struct SourceRows {
    MeasuredCase what;
    std::string source;
    double rows = 0;
};

const std::vector<SourceRows>& sources() {
    static const std::vector<SourceRows>* const all = [] {
        auto* out = new std::vector<SourceRows>;
        const auto table = Tsv::read(embedded_bytes("calibration/sources.tsv"), "data/calibration/sources.tsv");
        CHECK(table.ok());
        const auto work = table->column("work"), source = table->column("source"), silicon = table->column("silicon"),
                   architecture = table->column("architecture"), vendor = table->column("vendor"),
                   stack = table->column("stack"), network = table->column("network"), rows = table->column("rows");
        CHECK(work && source && silicon && architecture && vendor && stack && network && rows);
        for (std::size_t i = 0; i < table->rows(); ++i) {
            SourceRows one;
            for (const MeasuredWork kind : {MeasuredWork::training, MeasuredWork::memory, MeasuredWork::serving})
                if (table->at(i, *work) == to_string(kind)) one.what.work = kind;
            one.source = table->at(i, *source);
            one.what.silicon = table->at(i, *silicon);
            one.what.architecture = table->at(i, *architecture);
            one.what.vendor = table->at(i, *vendor);
            one.what.stack = table->at(i, *stack);
            one.what.network = table->at(i, *network);
            one.rows = table->number(i, *rows).value();
            out->push_back(std::move(one));
        }
        return out;
    }();
    return *all;
}

double network_distance(std::string_view a, std::string_view b) {
    if (a == b) return 0;
    const auto decodes = [](std::string_view n) { return n == "dense" || n == "experts" || n == "adapter"; };
    const auto hears = [](std::string_view n) { return n == "speech"; };
    if ((hears(a) && decodes(b)) || (hears(b) && decodes(a))) return 1.2;
    return decodes(a) && decodes(b) ? 0.7 : 2;
}

// Boards of one die: their memory and power differ, and what is launched on them does not.
std::string_view die_of(std::string_view silicon) {
    constexpr auto kDies = std::to_array<std::pair<std::string_view, std::string_view>>({{"A800", "A100"},
                                                                                         {"H200", "H100"},
                                                                                         {"H800", "H100"},
                                                                                         {"H20", "H100"},
                                                                                         {"GH200", "H100"},
                                                                                         {"GB200", "B200"},
                                                                                         {"B300", "B200"},
                                                                                         {"GB300", "B200"}});
    for (const auto& [board, die] : kDies)
        if (silicon == board) return die;
    return silicon;
}

double distance_between(const MeasuredCase& a, const MeasuredCase& b) {
    const double device = a.silicon == b.silicon                                         ? 0
                          : !a.silicon.empty() && die_of(a.silicon) == die_of(b.silicon) ? 0.35
                          : !a.architecture.empty() && a.architecture == b.architecture  ? 0.7
                          : !a.vendor.empty() && a.vendor == b.vendor                    ? 1
                                                                                         : 2;
    const double stack = a.stack == b.stack ? 0 : a.stack.empty() || b.stack.empty() ? 0.5 : 1;
    const double network = network_distance(a.network, b.network);
    return std::sqrt(device * device + stack * stack + network * network);
}

double interval_constant(const Catalog& catalog, std::string_view what, MeasuredWork work) {
    return catalog.constant_or_die(fmt::format("interval_{}_{}", what, to_string(work)));
}

double far_at_most(const Catalog& catalog, const Nearness& near) {
    return std::min(near.distance, catalog.constant_or_die("interval_distance_most"));
}

}  // namespace

std::string_view to_string(MeasuredWork work) noexcept {
    return work == MeasuredWork::training ? "training" : work == MeasuredWork::memory ? "memory" : "serving";
}

std::string measured_stack(std::string_view framework) {
    const std::string text = lower(framework);
    for (const auto& [word, name] : kStackWords)
        if (text.find(word) != std::string::npos) return std::string(name);
    return text;
}

std::string_view measured_network(const ModelSpec& model, bool adapter) noexcept {
    const bool decodes = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder;
    if (!decodes) return is_image(model.kind) ? "vision" : "encoder";
    if (model.request.window_s > 0) return "speech";
    return adapter ? "adapter" : model.moe() ? "experts" : "dense";
}

MeasuredCase measured_case(MeasuredWork work, const Device& device, std::string_view framework, const ModelSpec& model,
                           bool adapter) {
    return {.work = work,
            .silicon = device.gpu ? device.silicon : "CPU",
            .architecture = device.architecture,
            .vendor = !device.gpu     ? ""
                      : device.nvidia ? "NVIDIA"
                      : device.amd    ? "AMD"
                                      : device.architecture,
            .stack = measured_stack(framework),
            .network = std::string(measured_network(model, adapter))};
}

Nearness nearness(const MeasuredCase& asked, std::string_view without) {
    constexpr double kFewRows = 10, kFew = 0.5;
    std::array<double, kOpinions> nearest;
    nearest.fill(kFarthest);
    // The rows of a source stand together in the table: each source counts once, by its nearest kind.
    const std::vector<SourceRows>& all = sources();
    for (std::size_t i = 0; i < all.size();) {
        const SourceRows& first = all[i];
        double far = kFarthest;
        for (; i < all.size() && all[i].source == first.source && all[i].what.work == first.what.work; ++i)
            far = std::min(far, distance_between(asked, all[i].what) + (all[i].rows < kFewRows ? kFew : 0));
        if (first.what.work != asked.work || first.source == without) continue;
        for (double& place : nearest)
            if (far < place) std::swap(far, place);
    }
    double sum = 0;
    for (const double one : nearest) sum += one;
    return {sum / kOpinions};
}

double interval_growth(const Catalog& catalog, MeasuredWork work, const Nearness& near) {
    return interval_constant(catalog, "unseen", work) *
           (1 + interval_constant(catalog, "distance", work) * far_at_most(catalog, near));
}

bool is_looked_at(MeasuredWork work, std::string_view source) {
    const std::vector<SourceRows>& all = sources();
    return std::any_of(all.begin(), all.end(),
                       [&](const SourceRows& one) { return one.what.work == work && one.source == source; });
}

double interval_growth_of_row(const Catalog& catalog, MeasuredWork work, const Nearness& near,
                              std::string_view source) {
    if (is_looked_at(work, source))
        return interval_constant(catalog, "known", work) *
               (1 + interval_constant(catalog, "known_distance", work) * far_at_most(catalog, near));
    return interval_constant(catalog, "stranger", work) *
           (1 + interval_constant(catalog, "stranger_distance", work) * far_at_most(catalog, near));
}

Range grown(const Range& factors, double growth) noexcept {
    return {factors.low > 0 ? std::pow(factors.low, growth) : 0, 1, std::pow(factors.high, growth)};
}

}  // namespace stoker
