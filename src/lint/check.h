// Runs the rules over what was read.
#pragma once

#include <memory>
#include <vector>

#include "lint/rule.h"

namespace stoker::lint {

// Of one bundle: sorted by path, place and rule, severities as options say; suppressions are not applied yet
// (suppress.h). SYN rules about the input come from File::problems.
std::vector<Finding> check_bundle(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge);
// The bundle as rules over several files see it: a file of a local module is what its calls make of it; where nobody
// calls it, what its defaults do.
Bundle with_calls(const Bundle& bundle);
// Without what a call of a local module tells again at a place that is told already, and without what stands in files
// that are not checked themselves. check_bundle() does so itself.
std::vector<Finding> without_repeats(std::vector<Finding> findings, const std::vector<const File*>& files);
// The rules that see one file, with the local modules that it calls; for an editor.
std::vector<Finding> check_file(const File& file, const CheckOptions& options, const Knowledge& knowledge);
// The rules that see all files at once; with check_file() of each file what check_bundle() finds.
std::vector<Finding> check_joins(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge);

// ---- Evidence: why a file or a bundle counts as GPU work. Rules stay silent without it. ---------------------------
struct Evidence {
    const Source* source = nullptr;
    Span span;
    std::string what;  // "size Standard_ND96asr_v4", "nvidia.com/gpu", "torchrun"
};
struct Work {
    std::optional<Evidence> gpu;         // any accelerator: resource key, size, image family, launcher, DeepSpeed key
    std::optional<Evidence> training;    // a training launcher, DeepSpeed, a training job
    std::optional<Evidence> multi_node;  // of a training: more than one node by literal
    std::optional<Evidence> inference;   // a model server
};
Work work_of(const File& file, const Knowledge& knowledge);  // with its guests
Work work_of(const Bundle& bundle, const Knowledge& knowledge);
// True for images that are of no use without a GPU: nvidia/cuda, nvcr.io/nvidia/*, vllm, tgi, tritonserver ...
bool is_gpu_image(std::string_view image);
bool is_server_image(std::string_view image);
// Programs that look after nodes: device plugins, DCGM, drivers, node feature discovery; by image or object.
bool is_node_agent(const Workload& workload);
// Kinds whose pods work on one training.
bool is_multi_node_kind(std::string_view kind);

}  // namespace stoker::lint
