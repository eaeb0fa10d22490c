#include "validate/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/model_count.h"
#include "validate/networks.h"
#include "validate/predict.h"

namespace stoker::validate {

// Features as they are compared: figures as logarithms, NaN where one is not known.
struct ComparedFeatures {
    std::array<double, 8> logs{};
    std::string_view base;
    int accelerator = -1;
    ModelKind kind = ModelKind::decoder;
    Precision precision = Precision::bf16;
    bool adapter = false, narrow = false, experts = false;
};

namespace {

enum Compared : std::size_t {
    of_parameters,
    of_gpus,
    of_tokens,
    of_sequence,
    of_output,
    of_room,
    of_tensor,
    of_stages
};
constexpr std::array<double, 8> kWeights{1, 0.25, 0.25, 0.25, 0.25, 1, 0.25, 0.25};

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
    f.narrow =
        f.adapter && (f.framework.find("qlora") != std::string::npos || f.framework.find("-bnb") != std::string::npos ||
                      f.framework.find("gptq") != std::string::npos);
    const auto printed = printed_precision(row.text(serving ? "precision_weights" : "precision"));
    if (printed) f.precision = *printed;
    if (serving) {
        f.sequence = row.number("input_len").value_or(0);
        f.output = row.number("output_len").value_or(0);
        f.tokens = row.number("batch_or_concurrency").value_or(0) * (f.sequence + f.output) / std::max(1.0, f.gpus);
        if (printed) f.room = room_beside(f.parameters, *printed, tensor * pipeline, f.accelerator, catalog);
    } else {
        f.sequence = is_image(f.kind) ? shape.model.forward_flops_per_sample : row.number("seq_len").value_or(0);
        const double batch = row.number("global_batch").value_or(row.number("micro_batch").value_or(0) * f.gpus);
        f.tokens = batch * (is_image(f.kind) ? 1 : std::max(1.0, f.sequence)) / std::max(1.0, f.gpus);
    }
    return f;
}

CaseFeatures features_of(const PlannedCase& c, const Catalog& catalog) {
    const Workload& w = c.workload;
    CaseFeatures f;
    f.serving = !is_training(w.kind);
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(c.node_type)];
    f.accelerator = node.has_gpu() ? node.accelerator : -1;
    f.kind = w.model.kind;
    f.experts = w.model.moe();
    f.parameters = parameters_of(w.model);
    f.precision = c.precision;
    f.framework = lower(c.framework);
    if (f.serving) {
        f.gpus = c.replica.gpus();
        f.tensor = c.replica.tensor, f.pipeline = c.replica.pipeline;
        f.sequence = w.traffic.prompt_tokens.value_or(0);
        f.output = w.traffic.output_tokens.value_or(0);
        // By Little's law, of a replica and spread over its devices.
        const double flying =
            c.latency.requests_per_s / std::max(1, c.replicas) * (c.latency.ttft_p50 + f.output * c.latency.tpot_p50);
        f.tokens = flying * (f.sequence + f.output) / std::max(1.0, f.gpus);
        if (f.accelerator >= 0) f.room = room_beside(f.parameters, f.precision, f.gpus, f.accelerator, catalog);
    } else {
        f.gpus = c.layout.gpus();
        f.tensor = c.layout.tensor, f.pipeline = c.layout.pipeline;
        f.adapter = w.method != Method::full;
        f.narrow = w.method == Method::qlora;
        f.sequence = is_image(f.kind) ? w.model.forward_flops_per_sample : w.sequence();
        f.tokens = c.layout.global_batch() * (is_image(f.kind) ? 1 : std::max(1.0, f.sequence)) / std::max(1.0, f.gpus);
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

// What such a run took, its network decided, which nobody else has.
bool held_up_by_its_network(const Row& row, const PublishedNetworks& networks) {
    const PublishedNetwork* network =
        row.text("inter_node_link").empty() ? networks.find(row.text("source_group")) : nullptr;
    const double nodes = row.number("gpus").value_or(1) / std::max(1.0, row.number("gpus_per_node").value_or(8));
    return network != nullptr && network->stage_wait(static_cast<int>(std::min(nodes, 1e6))) > 0;
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

ComparedFeatures compared(const CaseFeatures& f) {
    const auto log = [](double x) { return x > 0 ? std::log2(x) : std::numeric_limits<double>::quiet_NaN(); };
    return {.logs = {log(f.parameters), log(f.gpus), log(f.tokens), log(f.sequence), log(f.output), log(f.room),
                     log(f.tensor), log(f.pipeline)},
            .base = kin(f.framework),
            .accelerator = f.accelerator,
            .kind = f.kind,
            .precision = f.precision,
            .adapter = f.adapter,
            .narrow = f.narrow,
            .experts = f.experts};
}

double device_distance(int a, int b, const Catalog& catalog) {
    if (a == b) return 0;
    const auto& all = catalog.accelerators();
    const Accelerator &x = all[static_cast<std::size_t>(a)], &y = all[static_cast<std::size_t>(b)];
    return device_family(x.name) == device_family(y.name) ? 1 : x.architecture == y.architecture ? 1.5 : 2.5;
}

// The square of the distance, or some figure above `most` where it is more than that.
double squared_distance(const ComparedFeatures& a, const ComparedFeatures& b, double device, double most) {
    double squares = device * device;
    if (a.kind != b.kind) squares += 36;
    if (a.adapter != b.adapter) squares += 4;
    if (a.adapter && b.adapter && a.narrow != b.narrow) squares += 1;
    if (a.experts != b.experts) squares += 4;
    if (!a.base.empty() && !b.base.empty() && a.base != b.base) squares += 1;
    if (!same_bits(a.precision, b.precision)) squares += 1;
    for (std::size_t i = 0; i < a.logs.size() && squares <= most; ++i) {
        const double doublings = a.logs[i] - b.logs[i];
        if (!std::isnan(doublings)) squares += kWeights[i] * doublings * doublings;
    }
    return squares;
}

// What a run has that is not so of what is asked, each at least half a doubling away; the largest first.
std::vector<std::string> differences(const ComparedFeatures& asked, const ComparedFeatures& run, bool serving,
                                     double device) {
    std::vector<std::pair<double, std::string>> found;
    const auto add = [&found](double weight, std::string what) { found.emplace_back(weight, std::move(what)); };
    if (asked.kind != run.kind) add(6, "another kind of network");
    if (device > 1) add(device, "another GPU");
    if (asked.adapter != run.adapter) add(2, run.adapter ? "adapters only" : "all weights trained");
    if (asked.experts != run.experts) add(2, run.experts ? "a mixture of experts" : "no experts");
    if (asked.adapter && run.adapter && asked.narrow != run.narrow) add(1, run.narrow ? "QLoRA" : "LoRA");
    if (!asked.base.empty() && !run.base.empty() && asked.base != run.base)
        add(1, serving ? "another engine" : "another framework");
    if (!same_bits(asked.precision, run.precision)) add(1, std::string(to_string(run.precision)));
    const auto ratio = [&](Compared which, std::string_view what) {
        const double doublings = run.logs[which] - asked.logs[which];
        const double weight = std::sqrt(kWeights[which]) * std::fabs(doublings);
        if (std::isnan(doublings) || weight < 0.5) return;
        const double times = std::exp2(doublings);
        add(weight, times > 9.95 ? fmt::format("{:.0f} x {}", times, what)
                    : times > 1  ? fmt::format("{:.2g} x {}", times, what)
                                 : fmt::format("{:.2g} % of {}", 100 * times, what));
    };
    ratio(of_parameters, "the parameters");
    ratio(of_gpus, "the GPUs");
    ratio(of_sequence, is_image(run.kind) ? "the work of an image" : serving ? "the prompt" : "the sequence");
    ratio(of_output, "the answer");
    ratio(of_tokens, is_image(run.kind) ? "the images of a step on a GPU"
                     : serving          ? "the tokens in flight on a GPU"
                                        : "the tokens of a step on a GPU");
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> words;
    for (auto& [weight, what] : found) words.push_back(std::move(what));
    return words;
}

// Files of one origin are one source: llmib_vllm and llmib_quant, mlperf-v3.0 and mlperf-v3.1.
std::string_view origin_of(std::string_view group) {
    return group.substr(0, std::min(group.find('_'), group.find("-v")));
}

// How much a run says about a plan: half as much for each 1.4 doublings.
double weight_of(double squares) {
    return std::exp2(-squares / 2);
}

}  // namespace

double distance(const CaseFeatures& a, const CaseFeatures& b, const Catalog& catalog) {
    return std::sqrt(squared_distance(compared(a), compared(b), device_distance(a.accelerator, b.accelerator, catalog),
                                      std::numeric_limits<double>::infinity()));
}

// The rows of one file, read once, and what was predicted of those that somebody came near.
class PublishedRuns::RunTable {
public:
    RunTable(bool serving, const Catalog& catalog)
        : serving_(serving), catalog_(catalog), hardware_(catalog), shapes_(catalog) {
        const std::string_view name = serving ? "published/inference.csv" : "published/training.csv";
        auto csv = Csv::read(embedded_bytes(name), name);
        CHECK(csv.ok());
        csv_.emplace(std::move(csv).value());
        const auto networks = PublishedNetworks::embedded();
        CHECK(networks.ok());
        for (std::size_t i = 0; i < csv_->rows(); ++i) {
            const Row row(*csv_, i);
            const CaseFeatures features = features_of(row, serving, hardware_, shapes_, catalog);
            if (features.accelerator < 0) continue;
            const std::string origin(origin_of(row.text(serving ? "split_group" : "source_group")));
            const auto source = sources_.try_emplace(origin, sources_.size()).first->second;
            rows_.push_back({compared(features), i, source, static_cast<std::int64_t>(row.number("runs").value_or(1)),
                             serving || !held_up_by_its_network(row, *networks)});
        }
    }

    // The nearest that can be predicted, with those of other sources about as near, and into `counts` how many there
    // are.
    std::optional<PublishedRun> nearest(const CaseFeatures& asked, PublishedEvidence* counts) {
        const ComparedFeatures wanted = compared(asked);
        std::vector<double> devices(catalog_.accelerators().size());
        for (std::size_t i = 0; i < devices.size(); ++i)
            devices[i] = device_distance(wanted.accelerator, static_cast<int>(i), catalog_);
        const double counted = counts != nullptr ? kNear * kNear : 0;
        double most = kTooFar * kTooFar;
        std::vector<NearRow> order;
        for (const KnownRun& row : rows_) {
            const double device = devices[static_cast<std::size_t>(row.features.accelerator)];
            const double squares = squared_distance(wanted, row.features, device, std::max(most, counted));
            if (counts != nullptr) {
                counts->runs += row.runs;
                if (device <= 1) counts->runs_on_device += row.runs;
                if (squares <= counted) counts->runs_near += row.runs;
            }
            if (squares > most || !row.tells) continue;
            order.push_back({squares, &row});
            most = std::min(most, std::pow(std::sqrt(squares) + kBeside, 2));
        }
        std::sort(order.begin(), order.end(), [](const NearRow& a, const NearRow& b) {
            return std::tie(a.squares, a.row->index) < std::tie(b.squares, b.row->index);
        });
        std::optional<PublishedRun> first;
        double bound = 0;
        std::map<std::size_t, SourceShown> shown;
        for (const NearRow& near : order) {
            if (first && near.squares > bound) break;
            const auto known = shown.find(near.row->source);
            if (known == shown.end() ? shown.size() >= kSources : known->second.rows >= kRowsOfSource) continue;
            const std::optional<PublishedRun>& run = predicted(near.row->index);
            if (!run) continue;
            if (!first) {
                first = run;
                first->distance = std::sqrt(near.squares);
                first->unlike = differences(wanted, near.row->features, serving_,
                                            devices[static_cast<std::size_t>(near.row->features.accelerator)]);
                bound = std::pow(first->distance + kBeside, 2);
            }
            // What a first token waits says nothing of the rate, and the other way round.
            if ((run->metric == "ttft_ms") == (first->metric == "ttft_ms"))
                shown[near.row->source].add(weight_of(near.squares), std::log(run->slower()));
        }
        if (!first || shown.size() < 2) return first;
        double weights = 0, sum = 0;
        for (const auto& [source, one] : shown) {
            weights += one.nearest;
            sum += one.nearest * one.sum / one.weights;
        }
        first->other_sources = static_cast<int>(shown.size()) - 1;
        first->together = std::exp(sum / weights);
        return first;
    }

private:
    struct KnownRun {
        ComparedFeatures features;
        std::size_t index = 0, source = 0;
        std::int64_t runs = 1;
        bool tells = true;  // how far off a prediction is
    };
    struct NearRow {
        double squares = 0;
        const KnownRun* row = nullptr;
    };
    // The nearest rows of a source; the source weighs what its nearest does, however many it has.
    struct SourceShown {
        int rows = 0;
        double nearest = 0, weights = 0, sum = 0;
        void add(double weight, double log_slower) {
            ++rows;
            nearest = std::max(nearest, weight);
            weights += weight;
            sum += weight * log_slower;
        }
    };
    static constexpr double kBeside = 1.5;  // doublings behind the nearest; what is farther weighs a third and less
    static constexpr std::size_t kSources = 6;
    static constexpr int kRowsOfSource = 3;

    const std::optional<PublishedRun>& predicted(std::size_t index) {
        const auto [found, is_new] = predicted_.try_emplace(index);
        if (is_new) found->second = predict_alone(*csv_, index, serving_, hardware_, shapes_);
        return found->second;
    }

    bool serving_;
    const Catalog& catalog_;
    Hardware hardware_;
    Shapes shapes_;
    std::optional<Csv> csv_;
    std::vector<KnownRun> rows_;
    std::map<std::string, std::size_t, std::less<>> sources_;
    std::map<std::size_t, std::optional<PublishedRun>> predicted_;
};

PublishedRuns::PublishedRuns(const Catalog& catalog) : catalog_(catalog) {}
PublishedRuns::~PublishedRuns() = default;

PublishedRuns::RunTable* PublishedRuns::table_for(const Workload& workload) {
    const WorkloadKind kind = workload.kind;
    const bool serving =
        kind == WorkloadKind::inference || kind == WorkloadKind::batch_inference || kind == WorkloadKind::embedding;
    if (!workload.model_known || !(serving || is_training(kind))) return nullptr;
    std::unique_ptr<RunTable>& table = serving ? serving_ : training_;
    if (table == nullptr) table = std::make_unique<RunTable>(serving, catalog_);
    return table.get();
}

std::optional<PublishedRun> PublishedRuns::nearest(const PlannedCase& planned) {
    const CaseFeatures wanted = features_of(planned, catalog_);
    if (wanted.accelerator < 0) return std::nullopt;
    RunTable* table = table_for(planned.workload);
    return table == nullptr ? std::nullopt : table->nearest(wanted, nullptr);
}

PublishedEvidence PublishedRuns::evidence(const Plan& plan) {
    PublishedEvidence out;
    RunTable* table = plan.feasible() ? table_for(plan.workload) : nullptr;
    if (table == nullptr) return out;
    const Candidate& c = plan.candidates.front();
    const CaseFeatures wanted = features_of({.workload = plan.workload,
                                             .node_type = c.node_type,
                                             .precision = plan.workload.precision,
                                             .framework = c.framework,
                                             .layout = c.layout,
                                             .replica = c.replica,
                                             .replicas = c.replicas,
                                             .latency = c.prediction.latency},
                                            catalog_);
    out.asked = true;
    if (wanted.accelerator < 0) {
        out.missing = "no published run on CPU cores: predicted from what was measured of CPUs";
        return out;
    }
    out.closest = table->nearest(wanted, &out);
    if (out.runs_on_device == 0)
        out.missing =
            fmt::format("no measured {} on {}: predicted from its data sheet and from other devices",
                        wanted.serving ? "serving run" : "training run",
                        device_family(catalog_.accelerators()[static_cast<std::size_t>(wanted.accelerator)].name));
    return out;
}

std::function<std::optional<PublishedRun>(const PlannedCase&)> nearest_published(const Catalog& catalog) {
    return [runs = std::make_shared<PublishedRuns>(catalog)](const PlannedCase& one) { return runs->nearest(one); };
}

}  // namespace stoker::validate
