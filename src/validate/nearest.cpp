#include "validate/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/model_count.h"
#include "validate/predict.h"

namespace stoker::validate {
namespace {

double doublings(double a, double b) {
    return a > 0 && b > 0 ? std::log2(a / b) : 0;
}

// The code bases that a row's framework and a plan's may name; the first that the text has.
std::string_view code_base_of(std::string_view text) {
    constexpr std::array<std::string_view, 16> kNames{"megatron-bridge", "nemo",      "megatron",   "nanotron",
                                                      "deepspeed-mii",   "deepspeed", "fsdp",       "llm-foundry",
                                                      "composer",        "internevo", "tensorrt",   "vllm",
                                                      "sglang",          "jax",       "tensorflow", "mxnet"};
    for (const std::string_view name : kNames)
        if (text.find(name) != std::string_view::npos) return name;
    return text.empty() ? std::string_view() : "pytorch";
}

// Megatron-LM, NeMo and Megatron-Bridge are one code base by now.
std::string_view kin(std::string_view framework) {
    const std::string_view base = code_base_of(framework);
    return base == "nemo" || base == "megatron-bridge"   ? "megatron"
           : base == "llm-foundry" || base == "composer" ? "fsdp"
                                                         : base;
}

bool same_bits(Precision a, Precision b) {
    const auto wide = [](Precision p) { return p == Precision::fp16 ? Precision::bf16 : p; };
    return wide(a) == wide(b);
}

std::string_view device_family(std::string_view name) {
    return name.substr(0, name.find('-'));
}

// Of a device's memory, what weights leave. Where they leave nothing (weights that are kept narrower than is said),
// little.
double room_beside(double parameters, Precision precision, double gpus, int accelerator, const Catalog& catalog) {
    constexpr double kLeast = 0.02;
    const double memory = catalog.accelerators()[static_cast<std::size_t>(accelerator)].memory.v;
    if (!(parameters > 0) || !(gpus > 0) || !(memory > 0)) return 0;
    return std::max(kLeast, 1 - parameters * bytes_per_weight(precision) / gpus / memory);
}

std::optional<Precision> printed_precision(std::string_view printed) {
    const std::string text = lower(printed);
    const auto has = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
    if (has("fp4")) return Precision::fp4;
    if (has("fp8")) return Precision::fp8;
    if (has("int8")) return Precision::int8;
    if (has("int4")) return Precision::int4;
    if (has("tf32")) return Precision::tf32;
    if (has("fp32") || has("float32")) return Precision::fp32;
    if (has("16") || has("amp") || has("mixed")) return Precision::bf16;
    return std::nullopt;
}

std::string_view published_file(bool serving) {
    return embedded_bytes(serving ? "published/inference.csv" : "published/training.csv");
}

// A row without what it measured.
CaseFeatures features_of(const Row& row, bool serving, Hardware& hardware, Shapes& shapes, const Catalog& catalog) {
    CaseFeatures f;
    f.serving = serving;
    f.accelerator = hardware.find(row.text("gpu_model"), row.number("gpu_mem_gb").value_or(0)).accelerator;
    if (f.accelerator < 0) return f;
    const double tensor = row.whole("tp").value_or(1), pipeline = row.whole("pp").value_or(1);
    const Shape shape = shapes.of(row, row.text(serving ? "model" : "model_name"), tensor);
    if (!shape.refused.empty()) {
        f.accelerator = -1;
        return f;
    }
    f.kind = shape.model.kind;
    f.experts = shape.model.moe();
    f.parameters = parameters_of(shape.model);
    f.gpus = row.number("gpus").value_or(1);
    f.tensor = tensor, f.pipeline = pipeline;
    f.framework = lower(row.text(serving ? "engine" : "framework"));
    f.adapter = f.framework.find("lora") != std::string::npos;
    const auto printed = printed_precision(row.text(serving ? "precision_weights" : "precision"));
    if (printed) f.precision = *printed;
    if (serving) {
        f.sequence = row.number("input_len").value_or(0);
        f.output = row.number("output_len").value_or(0);
        f.tokens = row.number("batch_or_concurrency").value_or(0) * (f.sequence + f.output) / std::max(1.0, f.gpus);
        if (printed) f.room = room_beside(f.parameters, *printed, tensor * pipeline, f.accelerator, catalog);
    } else {
        f.sequence = is_image(f.kind) ? 0 : row.number("seq_len").value_or(0);
        const double batch = row.number("global_batch").value_or(row.number("micro_batch").value_or(0) * f.gpus);
        f.tokens = batch * std::max(1.0, f.sequence) / std::max(1.0, f.gpus);
    }
    return f;
}

CaseFeatures features_of(const Plan& plan, const Catalog& catalog) {
    const Workload& w = plan.workload;
    const Candidate& c = plan.candidates.front();
    CaseFeatures f;
    f.serving = !is_training(w.kind);
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(c.node_type)];
    f.accelerator = node.has_gpu() ? node.accelerator : -1;
    f.kind = w.model.kind;
    f.experts = w.model.moe();
    f.parameters = parameters_of(w.model);
    f.precision = w.precision;
    f.framework = lower(c.framework);
    if (f.serving) {
        f.gpus = c.replica.gpus();
        f.tensor = c.replica.tensor, f.pipeline = c.replica.pipeline;
        f.sequence = w.traffic.prompt_tokens.value_or(0);
        f.output = w.traffic.output_tokens.value_or(0);
        // By Little's law, of a replica and spread over its devices.
        const Prediction& p = c.prediction;
        const double flying =
            p.latency.requests_per_s / std::max(1, c.replicas) * (p.latency.ttft_p50 + f.output * p.latency.tpot_p50);
        f.tokens = flying * (f.sequence + f.output) / std::max(1.0, f.gpus);
        if (f.accelerator >= 0) f.room = room_beside(f.parameters, f.precision, f.gpus, f.accelerator, catalog);
    } else {
        f.gpus = c.layout.gpus();
        f.tensor = c.layout.tensor, f.pipeline = c.layout.pipeline;
        f.adapter = w.method != Method::full;
        f.sequence = is_image(f.kind) ? 0 : w.sequence();
        f.tokens = c.layout.global_batch() * std::max(1.0, f.sequence) / std::max(1.0, f.gpus);
    }
    return f;
}

std::string row_title(const Row& row, bool serving) {
    std::string text = fmt::format("{} on {} x {}", row.text(serving ? "model" : "model_name"), row.text("gpus"),
                                   row.text("gpu_model"));
    const auto add = [&text](std::string_view what, std::string_view unit) {
        if (!what.empty()) text += fmt::format(", {}{}", what, unit);
    };
    if (serving) {
        add(row.text("engine"), "");
        add(row.text("precision_weights"), "");
        text += fmt::format(", {} in, {} out", row.text("input_len"), row.text("output_len"));
        if (row.text("batch_or_concurrency") != "inf_rate") add(row.text("batch_or_concurrency"), " at once");
    } else {
        add(row.text("framework"), "");
        add(row.text("precision"), "");
        add(row.text("seq_len"), " tokens");
        add(row.text("global_batch"), " per step");
    }
    return text;
}

// One row as a file of its own: what predicts rows of files predicts it.
std::string alone(const Csv& csv, std::size_t row) {
    const auto quoted = [](std::string_view cell) { return "\"" + replace_all(cell, "\"", "\"\"") + "\""; };
    std::string head, line;
    for (std::size_t c = 0; c < csv.header().size(); ++c) {
        head += (c > 0 ? "," : "") + csv.header()[c];
        line += (c > 0 ? "," : "") + quoted(csv.at(row, c));
    }
    return head + "\n" + line + "\n";
}

std::optional<PublishedRun> predict_alone(const Csv& all, std::size_t index, bool serving, Hardware& hardware,
                                          Shapes& shapes) {
    const auto intervals = Intervals::embedded();
    const std::string text = alone(all, index);
    const auto csv = Csv::read(text, "published");
    if (!csv || !intervals) return std::nullopt;
    std::vector<Line> lines;
    if (serving) {
        lines = predict_inference(*csv, hardware, shapes, *intervals);
    } else {
        Jobs jobs(hardware, shapes);
        lines.push_back(predict_training(Row(*csv, 0), jobs, *intervals));
    }
    compare(serving ? RowKind::inference : RowKind::training, *csv, lines);
    for (const Line& line : lines) {
        if (!line.predicted || !line.measured || !(*line.measured > 0)) continue;
        const Row row(all, index);
        return PublishedRun{.id = line.id,
                            .title = row_title(row, serving),
                            .source = std::string(row.text("source")),
                            .metric = line.metric,
                            .measured = *line.measured,
                            .predicted = line.value,
                            .low = line.low,
                            .high = line.high};
    }
    return std::nullopt;
}

}  // namespace

double distance(const CaseFeatures& a, const CaseFeatures& b, const Catalog& catalog) {
    const auto half = [](double x, double y) { return 0.5 * doublings(x, y); };
    double device = 0;
    if (a.accelerator != b.accelerator) {
        const auto& all = catalog.accelerators();
        const Accelerator &x = all[static_cast<std::size_t>(a.accelerator)],
                          &y = all[static_cast<std::size_t>(b.accelerator)];
        device = device_family(x.name) == device_family(y.name) ? 1 : x.architecture == y.architecture ? 1.5 : 2.5;
    }
    const bool framework = !a.framework.empty() && !b.framework.empty() && kin(a.framework) != kin(b.framework);
    double squares = 0;
    for (const double part :
         {doublings(a.parameters, b.parameters), half(a.gpus, b.gpus), half(a.sequence, b.sequence),
          half(a.tokens, b.tokens), half(a.output, b.output), doublings(a.room, b.room), half(a.tensor, b.tensor),
          half(a.pipeline, b.pipeline), device, framework ? 1.0 : 0.0, same_bits(a.precision, b.precision) ? 0.0 : 1.0,
          a.adapter != b.adapter ? 2.0 : 0.0, a.experts != b.experts ? 2.0 : 0.0, a.kind != b.kind ? 6.0 : 0.0})
        squares += part * part;
    return std::sqrt(squares);
}

PublishedEvidence published_evidence(const Plan& plan, const Catalog& catalog) {
    PublishedEvidence out;
    const WorkloadKind kind = plan.workload.kind;
    const bool serving =
        kind == WorkloadKind::inference || kind == WorkloadKind::batch_inference || kind == WorkloadKind::embedding;
    if (!plan.feasible() || !plan.workload.model_known || !(serving || is_training(kind))) return out;
    const CaseFeatures wanted = features_of(plan, catalog);
    out.asked = true;
    if (wanted.accelerator < 0) {
        out.missing = "no published run on CPU cores: predicted from what was measured of CPUs";
        return out;
    }
    const auto csv = Csv::read(published_file(serving), serving ? "published/inference.csv" : "published/training.csv");
    if (!csv) return out;
    Hardware hardware(catalog);
    Shapes shapes(catalog);
    const std::string_view family =
        device_family(catalog.accelerators()[static_cast<std::size_t>(wanted.accelerator)].name);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < csv->rows(); ++i) {
        const Row row(*csv, i);
        const CaseFeatures features = features_of(row, serving, hardware, shapes, catalog);
        if (features.accelerator < 0) continue;
        const auto runs = static_cast<std::int64_t>(row.number("runs").value_or(1));
        out.runs += runs;
        if (device_family(catalog.accelerators()[static_cast<std::size_t>(features.accelerator)].name) == family)
            out.runs_on_device += runs;
        const double far = distance(wanted, features, catalog);
        if (far <= kNear) out.runs_near += runs;
        if (far <= kTooFar) order.emplace_back(far, i);
    }
    if (out.runs_on_device == 0)
        out.missing = fmt::format("no measured {} on {}: predicted from its data sheet and from other devices",
                                  serving ? "serving run" : "training run", family);
    std::sort(order.begin(), order.end());
    constexpr std::size_t kTries = 5;  // a row that cannot be predicted gives way to the next
    for (std::size_t i = 0; i < std::min(order.size(), kTries) && !out.closest; ++i) {
        out.closest = predict_alone(*csv, order[i].second, serving, hardware, shapes);
        if (out.closest) out.closest->distance = order[i].first;
    }
    return out;
}

}  // namespace stoker::validate
