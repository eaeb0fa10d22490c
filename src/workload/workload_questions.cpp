// The questions, asked one by one of somebody without a file, and reported by name where a file leaves them open.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/names.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

using Kinds = unsigned;  // one bit per WorkloadKind

constexpr Kinds bit(WorkloadKind kind) {
    return 1u << static_cast<unsigned>(kind);
}
constexpr Kinds kTraining = bit(WorkloadKind::training), kTuning = bit(WorkloadKind::fine_tuning),
                kInference = bit(WorkloadKind::inference), kBatch = bit(WorkloadKind::batch_inference),
                kEmbedding = bit(WorkloadKind::embedding), kPreprocessing = bit(WorkloadKind::preprocessing),
                kNotebook = bit(WorkloadKind::notebook), kSimulation = bit(WorkloadKind::simulation);
constexpr Kinds kAll =
    kTraining | kTuning | kInference | kBatch | kEmbedding | kPreprocessing | kNotebook | kSimulation;
constexpr Kinds kModels = kTraining | kTuning | kInference | kBatch | kEmbedding;
constexpr Kinds kPlain = kPreprocessing | kNotebook | kSimulation;

struct Row {
    Kinds kinds, required;
    const char *key, *text, *why, *example;
    std::vector<std::string> choices;
};

const std::vector<Row>& rows() {
    static const std::vector<Row> all = {
        {kAll,
         kAll,
         "kind",
         "training or inference?",
         "Training fills all GPUs for hours or weeks; inference answers in milliseconds from as few as it can.",
         "training",
         {}},
        {kModels,
         kModels,
         "model",
         "how many parameters does the model have?",
         "Memory and work follow from it. A known name, a config.json, or a number such as 7B.",
         "llama-3-8b",
         {}},
        {kTuning,
         0,
         "method",
         "all weights, or adapters?",
         "QLoRA needs a tenth of the memory of full fine-tuning.",
         "qlora",
         {"full", "lora", "qlora"}},
        {kTraining,
         kTraining,
         "data.tokens",
         "how many tokens or examples?",
         "Work is proportional to them. Images have data.examples instead.",
         "150B",
         {}},
        {kTuning,
         kTuning,
         "data.examples",
         "how many examples or tokens?",
         "Work is proportional to them.",
         "52000",
         {}},
        {kTuning, 0, "data.epochs", "how often is the data gone through?", "Each epoch costs the same again.", "3", {}},
        {kTraining | kTuning,
         0,
         "data.sequence",
         "how many tokens has a sequence?",
         "Activations grow with it.",
         "8192",
         {}},
        {kInference,
         kInference,
         "traffic.requests_per_second",
         "how many requests per second?",
         "It decides how many replicas there are.",
         "12",
         {}},
        {kInference | kBatch,
         0,
         "traffic.prompt_tokens",
         "how long is a prompt, in tokens?",
         "It decides the time to the first token.",
         "1500",
         {}},
        {kInference | kBatch,
         0,
         "traffic.output_tokens",
         "how long is an answer, in tokens?",
         "It decides how long a GPU is busy with a request.",
         "300",
         {}},
        {kBatch | kEmbedding,
         kBatch | kEmbedding,
         "traffic.requests",
         "how many requests in all?",
         "The pile that is worked off. A steady rate is traffic.requests_per_second.",
         "1M",
         {}},
        {kInference,
         0,
         "objective.latency.ttft_p95",
         "when must the first token be there?",
         "A tighter limit costs more replicas.",
         "800ms",
         {}},
        {kInference,
         0,
         "objective.latency.tpot_p95",
         "how long may each further token take?",
         "Readers need about 100 ms.",
         "50ms",
         {}},
        {kModels, 0, "precision", "which number format?", "Halving the bits halves the memory.", "bf16", {}},
        {kPlain, 0, "memory", "how much memory does the work need?", "The VM must have it.", "32GiB", {}},
        {kPreprocessing | kSimulation,
         0,
         "vcpu_hours",
         "how many vCPU hours is it?",
         "Measured on a part, scaled to the whole.",
         "400",
         {}},
        {kSimulation,
         0,
         "gpu_hours",
         "how many GPU hours is it?",
         "Measured on a part, scaled to the whole.",
         "40",
         {}},
        {kNotebook | kInference, 0, "period", "how long is it kept?", "Every hour is paid for, used or not.", "8h", {}},
        {kAll & ~kNotebook & ~kInference,
         0,
         "objective.deadline",
         "when must it be done?",
         "A deadline decides how many machines work at once.",
         "14d",
         {}},
        {kAll, 0, "objective.budget", "what may it cost?", "Plans above it are left out.", "$20k", {}},
        {kAll,
         0,
         "objective.minimize",
         "cheapest, fastest or least energy?",
         "The best plan has least of it.",
         "cost",
         {"cost", "time", "energy"}},
        {kAll,
         0,
         "where.cloud",
         "which cloud?",
         "Prices and machines differ.",
         "azure",
         {"azure", "aws", "gcp", "any", "this-machine"}},
        {kAll,
         0,
         "where.regions",
         "which regions?",
         "Prices and stock differ; data may have to stay.",
         "eastus, westeurope",
         {}},
        {kAll, 0, "where.sizes", "which VM sizes may be used?", "Empty: all are compared.", "Standard_NC4as_T4_v3", {}},
        {kPlain, 0, "needs", "which software must be there?", "The image of the VM follows.", "pytorch, jupyter", {}},
        {kPlain, 0, "disk.size", "how large is the data disk?", "Paid for as long as it is kept.", "256GiB", {}},
        {kAll & ~kNotebook,
         0,
         "where.spot",
         "may capacity be used that can be taken away?",
         "Spot costs a fraction, and is evicted.",
         "allowed",
         {"never", "allowed", "only"}},
    };
    return all;
}

// "data.tokens", "150B" -> "data: {tokens: 150B}", as it is written in the file.
std::string as_yaml(std::string_view path, std::string_view value) {
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return fmt::format("{}: {}", path, value);
    return fmt::format("{}: {{{}}}", path.substr(0, dot), as_yaml(path.substr(dot + 1), value));
}

bool answered(const WorkloadForm& w, std::string_view key) {
    if (key == "kind") return w.kind_given;
    if (key == "model") return w.form.given;
    const DataSpec& data = w.data;
    // A value that could not be read is an answer, too: its own problem has been reported.
    const bool said_data = data.tokens || data.examples || data.at.contains("tokens") || data.at.contains("examples");
    if (key == "data.tokens" || key == "data.examples") return said_data;
    const auto said = [&](const char* name) { return w.traffic.at.contains(name); };
    const bool rate = said("requests_per_second") || said("concurrency") || said("users") || said("streams");
    // With the machines given and no load the question is what they hold.
    const bool machines =
        w.where.gpus || w.where.at.contains("gpus") || (w.where.at.contains("nodes") && !w.where.describes_nodes());
    if (key == "traffic.requests_per_second") return rate || machines;
    if (key == "traffic.requests") return rate || said("requests") || said_data;
    return true;
}

}  // namespace

bool needs_model(WorkloadKind kind) {
    return (bit(kind) & kModels) != 0;
}

std::vector<Question> questions_for(std::string_view kind) {
    std::vector<Question> out;
    const auto known = std::find_if(workload_kinds().begin(), workload_kinds().end(),
                                    [&](const auto& each) { return fold_name(each.first) == fold_name(kind); });
    for (const Row& row : rows()) {
        const bool first = std::string_view(row.key) == "kind";
        if (known == workload_kinds().end() ? !first : (row.kinds & bit(known->second)) == 0) continue;
        Question question{
            .key = row.key, .text = row.text, .why = row.why, .example = row.example, .choices = row.choices};
        question.required = known == workload_kinds().end() || (row.required & bit(known->second)) != 0;
        if (first) {
            for (const auto& each : workload_kinds()) question.choices.push_back(each.first);
        }
        if (question.key == "precision") question.choices = precision_names();
        out.push_back(std::move(question));
    }
    return out;
}

void ask_missing(const WorkloadForm& workload, Problems& problems) {
    const bool kind_known = workload.kind_given && !workload.kind_unknown;
    for (const Row& row : rows()) {
        const bool always =
            row.required == kAll || row.required == kModels;  // most workloads need a model: say so at once
        if (kind_known ? (row.required & bit(workload.kind)) == 0 : !always) continue;
        if (answered(workload, row.key)) continue;
        std::string remedy = "write for example " + as_yaml(row.key, row.example);
        if (std::string_view(row.key) == "kind") {
            std::vector<std::string> kinds;
            for (const auto& each : workload_kinds()) kinds.push_back(each.first);
            remedy += "; the kinds are " + join(kinds, ", ");
        }
        if (std::string_view(row.key) == "traffic.requests_per_second")
            remedy +=
                ", or traffic: {users: 500} for people, traffic: {concurrency: 64} for clients that each wait for "
                "their answer, traffic: {streams: 50} for speech that is heard live, or where: {nodes: 1} to ask how "
                "much so many nodes hold";
        SourcePos pos = workload.pos;
        const std::string path = row.key;
        const std::size_t dot = path.find('.');
        if (dot != std::string::npos) pos = place_of(workload.at, path.substr(0, dot), pos);
        problems.push_back({path + " is missing: " + row.text, std::move(remedy), pos});
    }
}

}  // namespace stoker
