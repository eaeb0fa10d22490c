// What the rules about containers share: which container has accelerators, what it runs, where a pod may go, and the
// edits that add or remove lines of YAML.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/check.h"
#include "lint/rule.h"

namespace stoker::lint {

// f(const Workload&, const Container&) for the containers of a file's pods, guests (manifests in heredocs) included.
template <typename F>
void each_container(const File& file, F&& visit) {
    for_each_part(file, [&](const File& part) {
        for (const Workload& workload : part.workloads)
            for (const Container& container : workload.containers) visit(workload, container);
    });
}
// f(const Workload&): objects that make pods.
template <typename F>
void each_pod(const File& file, F&& visit) {
    for_each_part(file, [&](const File& part) {
        for (const Workload& workload : part.workloads)
            if (workload.pod) visit(workload);
    });
}
// f(const Workload&) for every object of the bundle, those of heredocs included.
template <typename F>
void each_object(const Bundle& bundle, F&& visit) {
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& part) {
            for (const Workload& workload : part.workloads) visit(workload);
        });
}
// f(const Container&): services of compose files, servers that values describe, tasks with GPUs of their own.
template <typename F>
void each_service(const File& file, F&& visit) {
    for_each_part(file, [&](const File& part) {
        if (part.kinds.any({Kind::compose, Kind::helm, Kind::workflow}))
            for (const Container& service : part.services) visit(service);
    });
}

// f(const Container&): those of workloads, and blocks of resources among the values of a chart that is elsewhere.
template <typename F>
void each_with_resources(const File& file, F&& visit) {
    each_container(file, [&](const Workload&, const Container& container) { visit(container); });
    if (file.kinds.has(Kind::helm)) each_service(file, visit);
}

// Also what other device plugins call a part of a GPU (nvidia.com/gpumem): it says that devices are dealt with.
bool is_device_resource(std::string_view key);
bool is_rdma_resource(std::string_view key);  // rdma/..., nvidia.com/mlnxnics
// The first accelerator that is asked for and not known to be 0; limits before requests. Null: none.
const Quantity* accelerator_of(const Container& container);
// How many, when all amounts are known; of a compose service that takes all devices: empty.
std::optional<std::int64_t> accelerators_of(const Container& container);
bool asks_accelerator(const Workload& workload);
bool names_device(const Workload& workload);  // any device resource, also null or 0, or a claim of one
bool asks_rdma(const Container& container);

// One command: its words and the text they are of.
struct WordList {
    const std::vector<Value>* words = nullptr;
    const File* script = nullptr;  // null: the container's own words
};
// The container's words, or the commands of the scripts that it gives a shell.
std::vector<WordList> commands_of(const Container& container);
// Last part of a path: /usr/bin/python3 -> python3.
std::string_view program_name(std::string_view word);
// --name value, --name=value, -n value; names with their dashes, '_' counts as '-'. Absent when there is none.
Value option_of(const std::vector<Value>& words, std::initializer_list<std::string_view> names);
bool has_word(const std::vector<Value>& words, std::string_view part);  // as a part of any known word
// The command that starts a training on accelerators, as far as words tell; null: none does.
const Value* training_word(const Container& container);

// Why a pod is meant for nodes with accelerators although it asks for none: the key of a selector, an affinity, a
// toleration, a runtime class. Null: nothing says so.
const Node* accelerator_intent(const Node& pod, const Knowledge& knowledge);
bool tolerates(const Node& pod, std::string_view key, std::string_view value, std::string_view effect);
// key and value of nodeSelector and of required node affinities with In and one value; f(key node, value node).
template <typename F>
void each_selector(const Node& pod, F&& visit) {
    for (const Node& each : children(pod.find("nodeSelector")))
        if (each.is_scalar()) visit(each, each);
    const Node* terms =
        pod.at({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    for (const Node& term : children(terms))
        for (const Node& expression : children(term.find("matchExpressions"))) {
            const Node* key = expression.find("key");
            const Node* operation = expression.find("operator");
            if (!key || !operation || (operation->text != "In" && operation->text != "Exists")) continue;
            const Node* values = expression.find("values");
            visit(*key, values && values->first ? *values->first : *key);
        }
}

// A quantity of Kubernetes that is not below 0: 16Gi, 512M, 1e9.
std::optional<double> quantity_of(std::string_view text);
// The part of an image reference behind the last ':'; empty when it has none. `digest`: it has @sha256.
struct ImageTag {
    std::string_view name, tag;
    bool digest = false;
};
ImageTag tag_of(std::string_view image);
bool is_upper_placeholder(std::string_view text);  // NUM_GPUS, IMAGE: what sed fills in

// Blanks in front of the line that holds `offset` up to the first other byte, a "- " of a list counted as blanks.
std::string indentation_at(const Source& source, std::uint32_t offset);
// True when a key with its value has its lines for itself, so that they can be removed.
bool source_line_is_own(const Node& node);
// The lines of a key with its value, or of a list item, through their line end.
Span lines_of(const Source& source, Span span);
// A new line with `text`, indented as the sibling, in front of the sibling's line. The sibling is a key of a block
// object; empty when its line begins with a list dash or the object is written in braces.
std::optional<Edit> line_before(const Node& sibling, std::string_view text);

}  // namespace stoker::lint
