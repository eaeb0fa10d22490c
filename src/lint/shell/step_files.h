// Files of YAML whose values are steps for a shell: pipelines, tasks, playbooks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/read.h"

namespace stoker::lint {

// One tool's way to write steps.
struct StepDialect {
    std::string_view tool;                   // "GitHub Actions"
    std::span<const std::string_view> keys;  // whose value, or list of lines, a shell is given
    bool one_shell = false;                  // the lines of a list are run by one shell
};

// Keys of other tools under which a size of Azure stands: SkyPilot, dstack, Ansible, Pulumi, Ray, Databricks.
inline constexpr std::string_view kSizeKeys[] = {
    "vm_size", "vmSize", "instance_type", "node_type_id", "instanceType", "driver_node_type_id", "instance_types"};

bool names_size(std::string_view text);

// {{ x }}, which Ansible, Task and just fill in: as long a name of a variable that nothing sets.
void hide_templates(std::string& text);

inline constexpr std::size_t kMostRounds = 8;  // of a matrix

// Each round of a job's matrix by its names; empty: there is none. `filled`: a value with those that it names.
std::vector<std::vector<EnvVar>> matrix_rounds(File& file, const Node& job, const std::function<Value(Value)>& filled);

// Null: no file of steps, as far as its name and its text say.
const StepDialect* step_dialect_of(std::string_view path, std::string_view text);

// include: {local: ci/train.yml} of GitLab: the documents in which jobs that others extend stand; they live as long as
// the file.
std::vector<const Node*> documents_taken_in(File& file, const ReadOptions& options);

}  // namespace stoker::lint
