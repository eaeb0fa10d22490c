// The workload file as written, before anything is looked up or defaulted. Only the workload_*.cpp files use it.
#pragma once

#include "workload/workload.h"

namespace stoker {

// `model:` in any of its forms.
struct ModelForm {
    bool given = false;
    bool broken = false;  // a part of it could not be read, and that was said: nothing more can be
    bool served = false;  // by a workload that answers requests
    std::string name, config, family;
    std::optional<double> parameters, active_parameters;
    std::optional<ModelKind> kind;
    std::optional<int> layers, decoder_layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, max_sequence;
    std::optional<int> experts, active_experts, expert_ffn, shared_expert_ffn, dense_layers;
    std::optional<int> q_lora_rank, kv_lora_rank, rope_head_dim, nope_head_dim, v_head_dim, sliding_window,
        learned_positions;
    std::optional<bool> gated, tied_embeddings, biases, layer_norm;
    std::optional<double> forward_flops, activation_bytes;
    std::optional<std::string> sample_unit;
    std::map<std::string, SourcePos> at;
    SourcePos pos;

    // Says something about the shape, so that it can be counted.
    bool any_shape() const {
        return layers || hidden || heads || kv_heads || head_dim || ffn || vocabulary || experts || forward_flops;
    }
    SourcePos place(std::string_view key) const;
};

enum class Stack : std::uint8_t { stock, tuned };

struct WorkloadForm : Workload {
    bool kind_given = false, kind_unknown = false, sensitive_given = false, kv_given = false;
    ModelForm form;
    std::optional<Method> given_method;
    std::optional<Precision> given_precision;
    std::optional<Stack> stack;
};

const std::vector<std::pair<std::string, WorkloadKind>>& workload_kinds();
const RecordTable<WorkloadForm>& workload_table();

// The place of a value, or of the record that lacks it.
SourcePos place_of(const std::map<std::string, SourcePos>& at, std::string_view key, const SourcePos& otherwise);

// What the loss of a fine-tuning takes for granted.
void say_loss(WorkloadForm& workload);

// Problems with the model are added; the spec that comes back is then only good for further checks.
// The name in the file without an owner, where the catalogue knows its shape under another; else empty.
std::string name_as_written(const ModelForm& form, const ModelSpec& model);
// In words: the file says so many parameters, and the shape that is planned has others; empty: they agree.
std::string parameters_that_differ(const ModelForm& form, const ModelSpec& model,
                                   std::string_view what = "the shape that is planned");
ModelSpec resolve_model(const ModelForm& form, const Catalog& catalog, const FileLoader& load,
                        std::vector<std::string>& assumptions, Problems& problems);

// "images", "videos of 81 frames of 1280 x 720"; what else a sample is called can be half a sentence, and that reads
// badly in a title.
std::string samples_of(const ModelSpec& model);

// What is taken for granted of losing a node of a service.
void fill_survival(WorkloadForm& workload, const Catalog& catalog);

// Images of another size than the model's work is counted for (data.image_size, traffic.image_size).
void take_image_size(WorkloadForm& workload, Problems& problems);

// `where`: clouds, regions, sizes and geographies by their canonical names.
void resolve_where(WorkloadForm& workload, const Catalog& catalog, const FileLoader& load, Problems& problems);

// What the kind of work cannot do without. An unanswered question is a problem in the words of questions_for.
void ask_missing(const WorkloadForm& workload, Problems& problems);
bool needs_model(WorkloadKind kind);

// Values that are each fine but not together, or not for this kind of work.
void check_workload(const WorkloadForm& workload, Problems& problems);

// What is longer than a table of learned positions.
void check_positions(const WorkloadForm& workload, const Catalog& catalog, Problems& problems);
// A release of an engine that is none, or of no engine.
void check_framework_version(const WorkloadForm& workload, Problems& problems);

// What a service before the model cannot do without, and what is taken for granted of it.
void check_front(const WorkloadForm& workload, Problems& problems);
void fill_front(WorkloadForm& workload);

// Tokens of one sequence of a training that says nothing about it.
double default_sequence(const WorkloadForm& workload);
// Live streams as a rate, once it is known how much of each one request hears.
void fill_streams(WorkloadForm& workload);
// What is missing and has a sensible value gets it, and the assumption is written down.
void fill_defaults(WorkloadForm& workload, const Catalog& catalog);

}  // namespace stoker
