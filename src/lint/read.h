// From bytes to a File: what is it, which front end reads it, what does it say.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lint/file.h"

namespace stoker::lint {

struct ReadOptions {
    std::optional<Kind> kind;  // --kind: instead of looking
    std::string size;          // --size: what resources are of whose size rests on what cannot be followed
    // The text of a file that another names (templatefile("cloud-init.yaml"), a local module, .env, *.tfvars), relative
    // to the folder of the file that names it; nothing where there is none or it may not be read. Empty: none can.
    std::function<std::optional<std::string>(const std::string& path)> neighbour;
    // Names of the files in a folder, relative and under the same conditions; sorted. Empty: none can be listed.
    std::function<std::vector<std::string>(const std::string& folder)> list;
    // What a reader of Stoker's own says against a file of its own, each with its place. Empty: only its YAML is looked
    // at.
    std::function<std::vector<Problem>(const std::string& path, std::string_view text)> workload_problems;
};

inline constexpr std::size_t kMostBytes = 16u << 20;  // SYN005
inline constexpr std::size_t kMostDepth = 1000;       // SYN005; flow collections of YAML: 64
inline constexpr std::size_t kMostNodes = 1'000'000;  // SYN005, after aliases
inline constexpr std::size_t kMostGuestDepth = 3;

// Content first, name second. Empty: a file of no kind, which is skipped.
Kinds classify(std::string_view path, std::string_view text);
// Of a file that another one writes or holds. Programs of Python are read as files of their own only.
Kinds classify_guest(std::string_view name, std::string_view text);

// Null: a file of no kind. Never fails otherwise: what cannot be read is in File::problems.
std::unique_ptr<File> read_file(std::string path, std::string text, const ReadOptions& options = {});

// A guest of `host`, read and put among its guests; null (and nothing put) when it is too deep or of no kind.
// `kinds` empty: classify. `written`: where its text stands, when that is not the host.
File* read_guest(File& host, std::string text, std::vector<Piece> pieces, Kinds kinds, const ReadOptions& options,
                 const Container* container = nullptr, const Source* written = nullptr);

// A file of a local module with the inputs of one call of it, put among `caller.calls`. Its findings have the module's
// place and name the call. `options`: of that file's folder.
void read_called(File& caller, std::string path, std::string text, ModuleCall call, const ReadOptions& options);

// ---- The front ends, each in its folder. Each fills tree or script, comments, problems. ---------------------------
void read_yaml(File& file);                             // lint/yaml
void read_json(File& file);                             // lint/json: JSON, JSONC; by File::kinds also hjson's liberties
void read_hcl(File& file, const ReadOptions& options);  // lint/hcl
void read_bicep(File& file, const ReadOptions& options);       // lint/bicep
void read_shell(File& file, const ReadOptions& options);       // lint/shell
void read_dockerfile(File& file, const ReadOptions& options);  // lint/shell

// ---- From trees and scripts to facts. Each looks at File::kinds and does nothing for others. ----------------------
void find_kubernetes(File& file, const ReadOptions& options);  // lint/kubernetes: workloads, containers, guests
void find_compose(File& file, const ReadOptions& options);     // lint/kubernetes
// What a kustomization makes of the manifests beside it, among the calls of its file; lint/kubernetes.
void read_kustomization(File& file, const ReadOptions& options);
// A chart's template with the chart's own values, as a guest; lint/helm.
void read_chart_template(File& file, const ReadOptions& options);
void read_helmfile(File& file, const ReadOptions& options);    // charts beside it with the values that it gives
void read_stack_values(File& file);                            // lint/helm: servers of a chart that is elsewhere
void find_azureml(File& file, const ReadOptions& options);     // lint/azure
void find_terraform(File& file, const ReadOptions& options);   // lint/azure
void find_bicep(File& file, const ReadOptions& options);       // lint/azure
void find_arm(File& file, const ReadOptions& options);         // lint/azure
void find_az(File& file, const ReadOptions& options);          // lint/shell: az commands to Resources
void find_az_files(File& file, const ReadOptions& options);    // lint/shell: files that az commands are given
void find_launches(File& file, const ReadOptions& options);    // lint/shell: launches, environment, heredoc guests
void find_workflow(File& file, const ReadOptions& options);    // lint/shell: guests of the steps of a workflow
void find_cloud_init(File& file, const ReadOptions& options);  // lint/shell: guests of runcmd, write_files
// The words of a container or an Azure ML command as a Launch, when they are one; for find_kubernetes and its kin.
std::optional<Launch> launch_of_words(const File& file, const std::vector<Value>& words, Span span);

}  // namespace stoker::lint
