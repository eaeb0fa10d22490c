// Ranks and devices per node, for every kind: what a launch starts on a node, what the batch or the container gives it.
// Used by the rules that compare the two (SLM003, SLM005, SLM013, SLM014, RUN005, RUN009, K8S024).
#pragma once

#include <optional>

#include "lint/rules/common_scripts.h"

namespace stoker::lint {

struct Counted {
    std::int64_t count = 0;
    Value value;  // where it is said
};
// gpu:8, gpu:a100:4, h100:8, 8; of --gres the part of gpu.
std::optional<std::int64_t> gpu_count(std::string_view text, bool gres);
// Of a node of the batch: --gres=gpu:N, --gpus-per-node, --gpus over --nodes, --gpus-per-task times tasks per node.
std::optional<Counted> batch_devices(const File& batch, int component = kAnyComponent);
std::optional<Counted> batch_nodes(const File& batch, int component = kAnyComponent);
std::optional<Counted> batch_tasks_per_node(const File& batch, int component = kAnyComponent);
// What a container may use: the limit of nvidia.com/gpu.
std::optional<Counted> container_devices(const Container& container);
// Devices per node of whatever the launch runs in.
std::optional<Counted> devices_for(const File& file, const File& part);
// Literal numbers only; nothing where a part of the launch cannot be followed.
std::optional<Counted> launch_nodes(const File& file, const Launch& launch);
std::optional<std::int64_t> launch_world(const File& file, const Launch& launch);

}  // namespace stoker::lint
