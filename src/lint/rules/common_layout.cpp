#include "lint/rules/common_layout.h"

#include <charconv>

namespace stoker::lint {

std::optional<std::int64_t> gpu_count(std::string_view text, bool gres) {
    if (gres) {
        // Several resources with commas; only that of gpu counts.
        std::size_t from = 0;
        bool found = false;
        while (from <= text.size()) {
            const std::size_t stop = std::min(text.find(',', from), text.size());
            std::string_view part = text.substr(from, stop - from);
            if (part.starts_with("gres/")) part.remove_prefix(5);
            if (part == "gpu" || part.starts_with("gpu:")) {
                if (found) return std::nullopt;  // of two types
                text = part;
                found = true;
                break;
            }
            from = stop + 1;
        }
        if (!found) return std::nullopt;
        if (text == "gpu") return 1;
        text.remove_prefix(4);
    }
    if (const std::size_t sockets = text.find('('); sockets != std::string_view::npos) text = text.substr(0, sockets);
    if (text.find(',') != std::string_view::npos) return std::nullopt;
    const std::size_t colon = text.rfind(':');
    if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return gres && colon == std::string_view::npos ? std::optional<std::int64_t>(1) : std::nullopt;  // gpu:a100
    }
    return number;
}

std::optional<Counted> batch_nodes(const File& batch, int component) {
    const Directive* nodes = batch_option(batch, "nodes", component);
    if (!nodes) return std::nullopt;
    const auto count = nodes->value.as_int();
    if (!count) return std::nullopt;
    return Counted{*count, nodes->value};
}

std::optional<Counted> batch_tasks_per_node(const File& batch, int component) {
    if (const Directive* tasks = batch_option(batch, "ntasks-per-node", component)) {
        const auto count = tasks->value.as_int();
        return count ? std::optional<Counted>({*count, tasks->value}) : std::nullopt;
    }
    const Directive* total = batch_option(batch, "ntasks", component);
    auto nodes = batch_nodes(batch, component);
    if (total && !nodes && total->value.is("1")) nodes = Counted{1, total->value};  // one task stands on one node
    if (!total || !nodes || nodes->count < 1) return std::nullopt;
    const auto count = total->value.as_int();
    if (!count || *count % nodes->count != 0) return std::nullopt;
    return Counted{*count / nodes->count, total->value};
}

std::optional<Counted> batch_devices(const File& batch, int component) {
    if (const Directive* gres = batch_option(batch, "gres", component); gres && gres->value.known())
        if (const auto count = gpu_count(gres->value.text, true)) return Counted{*count, gres->value};
    if (const Directive* per_node = batch_option(batch, "gpus-per-node", component);
        per_node && per_node->value.known()) {
        const auto count = gpu_count(per_node->value.text, false);
        return count ? std::optional<Counted>({*count, per_node->value}) : std::nullopt;
    }
    if (const Directive* all = batch_option(batch, "gpus", component); all && all->value.known()) {
        const auto count = gpu_count(all->value.text, false);
        const auto nodes = batch_nodes(batch, component);
        if (count && nodes && nodes->count > 0 && *count % nodes->count == 0)
            return Counted{*count / nodes->count, all->value};
        return std::nullopt;
    }
    if (const Directive* per_task = batch_option(batch, "gpus-per-task", component);
        per_task && per_task->value.known()) {
        const auto count = gpu_count(per_task->value.text, false);
        const auto tasks = batch_tasks_per_node(batch, component);
        if (count && tasks) return Counted{*count * tasks->count, per_task->value};
    }
    return std::nullopt;
}

std::optional<Counted> container_devices(const Container& container) {
    const Quantity* limit = container.limit("nvidia.com/gpu");
    if (!limit) limit = container.limit("amd.com/gpu");
    if (!limit) return std::nullopt;
    const auto count = literal_int(limit->amount);
    return count ? std::optional<Counted>({*count, limit->amount}) : std::nullopt;
}

std::optional<Counted> devices_for(const File& file, const File& part) {
    for (const File* at = &part; at; at = at->host)
        if (at->host_container) return container_devices(*at->host_container);
    const File* batch = batch_part(file);
    return batch ? batch_devices(*batch) : std::nullopt;
}

std::optional<Counted> launch_nodes(const File& file, const Launch& launch) {
    // As many nodes as the batch has, in the scheduler's words.
    if (launch.nodes.unknown())
        for (const std::string_view name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
            if (std::string_view text = launch.nodes.text; text.starts_with('$') || text.starts_with("\"$")) {
                if (text.front() == '"') text.remove_prefix(1);
                text.remove_prefix(text.starts_with("${") ? 2 : 1);
                const bool whole = text.starts_with(name) && (text.size() == name.size() || text[name.size()] == '}' ||
                                                              text[name.size()] == ':' || text[name.size()] == '"');
                const File* batch = whole ? batch_part(file) : nullptr;
                if (batch) return batch_nodes(*batch, component_of(*batch, launch));
            }
    if (launch.nodes.present()) {
        const auto count = literal_int(launch.nodes);
        return count ? std::optional<Counted>({*count, launch.nodes}) : std::nullopt;
    }
    if (launch.srun_nodes.present()) {
        const auto count = literal_int(launch.srun_nodes);
        return count ? std::optional<Counted>({*count, launch.srun_nodes}) : std::nullopt;
    }
    if (launch.open) return std::nullopt;
    if (launch.launcher == Launcher::torchrun || launch.launcher == Launcher::torch_launch)
        return Counted{1, {}};  // their own default
    if (launch.launcher == Launcher::srun)
        if (const File* batch = batch_part(file)) return batch_nodes(*batch, component_of(*batch, launch));
    return std::nullopt;
}

std::optional<std::int64_t> launch_world(const File& file, const Launch& launch) {
    if (launch.launcher == Launcher::accelerate) return std::nullopt;
    const auto nodes = launch_nodes(file, launch);
    const auto per_node = literal_int(launch.per_node);
    if (!nodes || !per_node || nodes->count < 1 || *per_node < 1) return std::nullopt;
    return nodes->count * *per_node;
}

}  // namespace stoker::lint
