// One input and all that was read from it; and the inputs that belong together.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lint/facts.h"

namespace stoker::lint {

// What a file is. A shell script can be az, slurm and launch at once; a Helm template is helm and, rendered, k8s too.
enum class Kind : std::uint8_t {
    k8s,
    helm,
    terraform,
    bicep,
    arm,
    az,
    slurm,
    launch,
    deepspeed,
    compose,
    cloud_init,
    azureml,
    dockerfile,
    prometheus,
    grafana,
    markdown,
    requirements,  // a pip requirements file
    workflow,      // steps of GitHub Actions, Azure Pipelines, GitLab CI
    stoker         // a file of our own: a workload, a server, its prices and machines
};
inline constexpr int kKinds = static_cast<int>(Kind::stoker) + 1;
std::string_view to_string(Kind kind);  // "k8s", "az", "cloud-init"
std::optional<Kind> kind_from(std::string_view text);

class Kinds {
public:
    Kinds() = default;
    Kinds(std::initializer_list<Kind> kinds) {
        for (const Kind kind : kinds) add(kind);
    }
    void add(Kind kind) { bits_ |= 1u << static_cast<int>(kind); }
    bool has(Kind kind) const { return (bits_ >> static_cast<int>(kind)) & 1u; }
    bool any(Kinds other) const { return (bits_ & other.bits_) != 0; }
    bool empty() const { return bits_ == 0; }

private:
    std::uint32_t bits_ = 0;
};

// For suppressions, and for rules that ask what a comment says ("sbatch --gres=gpu:8 this.sh").
struct Comment {
    Span span;  // the mark through its last byte
    bool own_line = false;
};

class File;

// Why a file, or a part of it, could not be read. Told as SYN001 (error), SYN002, SYN003, SYN005 or SYN006.
struct ReadProblem {
    std::string_view rule;  // "SYN001"
    Span span;
    std::string message;
    const Source* source = nullptr;
};

// Whose inputs a file of a local module was evaluated with.
struct ModuleCall {
    std::string name;  // "module.gpu", "module.cluster.module.pool"
    File* caller = nullptr;
    Span span;  // of the call, in `caller`
    std::vector<std::pair<std::string_view, const Node*>> inputs;
    int depth = 1;
    bool overlay = false;  // a kustomization: what it makes of manifests that are checked where they stand
};

class File {
public:
    explicit File(std::string path, std::string text);
    File(const File& host, std::string text, std::vector<Piece> pieces);  // a guest
    // A guest whose text stands in another file than its host: a script that a kustomization puts into a ConfigMap.
    File(const File& host, const Source& written, std::string text, std::vector<Piece> pieces);
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    const Source& source() const { return source_; }
    const std::string& path() const { return source_.path(); }

    Kinds kinds;
    Tree tree;      // YAML, JSON, HCL, Bicep
    Script script;  // shell, Slurm; the RUN lines of a Dockerfile are guests
    std::vector<Comment> comments;
    std::vector<ReadProblem> problems;

    std::vector<Resource> resources;
    std::vector<Workload> workloads;  // Kubernetes objects, in order
    std::vector<Container> services;  // of a compose file; the command of an Azure ML job
    std::vector<Launch> launches;     // of this file itself
    std::vector<EnvVar> environment;  // set in this file itself: exports, env of containers, ENV of a Dockerfile
    std::vector<std::unique_ptr<File>> guests;
    std::vector<std::unique_ptr<File>> calls;       // files of the local modules that it calls, once for each call
    std::optional<ModuleCall> call;                 // of such a file
    std::vector<std::unique_ptr<File>> neighbours;  // read for their values alone: variables.tf beside main.tf
    const File* host = nullptr;
    const Container* host_container = nullptr;  // of a guest that is a container's command; made when all of its
                                                // Workload's containers are there, so that it stays where it is

    bool verbatim = false;  // of a guest: a heredoc whose delimiter is quoted, in which no shell puts values
    std::size_t module_bytes = 0, module_calls = 0;  // read for calls so far; counted in the file where they begin

    const File& outermost() const { return host ? host->outermost() : *this; }
    std::size_t depth() const { return host ? host->depth() + 1 : 0; }

private:
    Source source_;
};

// This file and its guests, each before its own guests.
template <typename F>
void for_each_part(const File& file, F&& visit) {
    visit(file);
    for (const auto& guest : file.guests) for_each_part(*guest, visit);
}

// The files of all calls that begin in this file.
template <typename F>
void for_each_call(const File& file, F&& visit) {
    for (const auto& called : file.calls) {
        visit(*called);
        for_each_call(*called, visit);
    }
}

// Files that are joined: a chart, a Terraform root, a folder.
struct Bundle {
    std::string folder;
    std::vector<const File*> files;  // outermost ones, sorted by path
};

}  // namespace stoker::lint
