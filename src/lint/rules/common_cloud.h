// What rules about cloud resources share: which resource has which GPUs, dates, images, edits of values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/check.h"
#include "lint/rule.h"

namespace stoker::lint {

template <typename F>
void each_resource(const File& file, F&& use) {
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) use(resource);
    });
}
template <typename F>
void each_resource(const Bundle& bundle, F&& use) {
    for (const File* file : bundle.files) each_resource(*file, use);
}
std::string_view folder_of(std::string_view path);
// Files of one folder are joined; findings never rest on a file far away in a big tree.
bool same_folder(const File& a, const File& b);
template <typename F>
void each_beside(const Bundle& bundle, const Resource& of, F&& use) {
    for (const File* file : bundle.files)
        if (same_folder(*file, of.file->outermost())) each_resource(*file, use);
}
// What a rule asks about the folder of a resource, found out once for each folder: a file may hold a thousand machines.
class Beside {
public:
    Beside(const Bundle& bundle, const Knowledge& knowledge) : bundle_(bundle), knowledge_(knowledge) {}
    const Work& work(const Resource& of);
    // Any file of the folder says one of the words, in any case; for what silences a rule. The words of one rule are
    // the same every time.
    bool says(const Resource& of, std::initializer_list<std::string_view> words);
    // Some resource of the folder is such a one; the question of one rule is the same every time.
    bool any(const Resource& of, const std::function<bool(const Resource&)>& such);
    bool has_module_call(const Resource& of);

private:
    struct Folder {
        std::string_view path;
        std::optional<Work> work, managed_work;
        std::optional<bool> says, any, module_call;
    };
    Folder& folder(const Resource& of);

    const Bundle& bundle_;
    const Knowledge& knowledge_;
    std::vector<Folder> folders_;
};

// Null where the size is not known or not written.
const KnownSize* size_of(const Resource& resource, const Report& report);
bool gpu_size(std::string_view size, const Knowledge& knowledge);  // retired ones too
bool has_gpu(const Resource& resource, const Report& report);      // by its size
// A pool whose size cannot be followed may say it otherwise: driver settings, accelerators, taints and labels.
bool is_gpu_pool(const Resource& resource, const Report& report);
// What a workflow makes for its own run and takes away at its end, cluster or group and all.
bool torn_down_here(const Resource& resource);
bool has_rdma(const Resource& resource, const Report& report);
bool is_retired(const KnownRetirement& retirement, const CheckOptions& options);
// Any GPU work in the file, offered sizes included.
bool gpu_file(const File& file, const Report& report);
// The same, or another file of its folder does, which Terraform, and as often Bicep and ARM, deploys with it.
bool gpu_root(const File& file, const Bundle& bundle, const Report& report);
bool gpu_part(const File& file, const Report& report);  // this file alone, whoever calls it
// Written, or resting on something that is. A command of az that ends in "$@" may have any option: for rules about what
// a command leaves out, what it does not show counts as left out.
bool is_written(const Resource& resource, Attr attr);
bool is_az(const Resource& resource);  // made of a command: what is absent has the defaults of az
// Node pools, and `az aks create`, which describes a cluster and its first pool at once.
bool is_pool(const Resource& resource);
std::optional<std::int64_t> count_of(const Resource& resource);
std::size_t zones_of(const Resource& resource);  // known ones; 0 when any is unknown
bool says_yes(const Value& value);
bool says_no(const Value& value);

// Where something absent is told: the header.
Finding* add_at_header(Report& report, const Resource& resource, std::string message);
// At the attribute of the resource, where its value was written elsewhere: the resource is at fault, not the variable.
Finding* add_at_use(Report& report, const Value& value, const std::string& address, std::string message);

// What `nodes` of the resource cost when nothing runs on them; nothing where size, number or price is not known.
void tell_idle_cost(Report& report, Finding* finding, const Resource& resource, std::optional<std::int64_t> nodes);
void tell_idle_cost(Report& report, Finding* finding, const KnownSize& size, std::int64_t nodes);
// What the size costs, beside the cheapest with a GPU.
void tell_cost_beside_gpu(Report& report, Finding* finding, const KnownSize& size);

struct ImageName {
    std::string publisher, offer, sku;  // empty where unknown
    Value at;                           // the sku, else what is written
    bool alias = false;                 // UbuntuLTS
};
std::optional<ImageName> image_of(const Resource& resource);
bool is_plain_linux(const ImageName& image);  // a distribution's own image, without drivers

// The machine or scale set of an extension, of all that are in the folder; null: it cannot be told.
const Resource* machine_of(const Bundle& bundle, const Resource& extension);
bool is_nvidia_extension(const Resource& extension);
bool is_amd_extension(const Resource& extension);

// Every place of a file where a size is named: resources, and instance types in Kubernetes objects.
void each_size(const File& file, const std::function<void(const Value& size, const std::string& address)>& use);
// The default of a variable that several resources use is one thing: its address instead of theirs.
std::string address_of_size(const Resource& resource, const Value& size);

// Replaces the text of a value inside its quotes. Nothing when it is not written as it reads.
void fix_value(Report& report, Finding* finding, const Value& value, FixClass safety, std::string title,
               std::string_view text);
int days_between(std::string_view from, std::string_view to);  // dates; 0 when one is none

}  // namespace stoker::lint
