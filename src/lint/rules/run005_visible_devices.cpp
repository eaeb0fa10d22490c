#include "lint/rules/common_layout.h"

namespace stoker::lint {

namespace {

// "0,1,2": how many, and the highest; nothing for UUIDs, -1 and what is empty.
struct VisibleList {
    std::int64_t count = 0, highest = -1;
};
std::optional<VisibleList> visible_list(std::string_view text) {
    VisibleList list;
    std::size_t from = 0;
    if (text.empty()) return std::nullopt;
    while (from <= text.size()) {
        std::size_t stop = std::min(text.find(',', from), text.size());
        std::string_view part = text.substr(from, stop - from);
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        if (part.empty() || part.size() > 4) return std::nullopt;
        std::int64_t number = 0;
        for (const char c : part) {
            if (c < '0' || c > '9') return std::nullopt;
            number = number * 10 + (c - '0');
        }
        list.highest = std::max(list.highest, number);
        ++list.count;
        from = stop + 1;
    }
    return list;
}

// The one list that holds for the launch: its own, else what the script exports when that is one value.
const EnvVar* visible_for(const File& part, const Launch& launch) {
    const EnvVar* found = nullptr;
    for (const EnvVar& variable : launch.environment)
        if (variable.name == "CUDA_VISIBLE_DEVICES") found = &variable;
    if (found) return found;
    for (const EnvVar& variable : part.environment)
        if (variable.name == "CUDA_VISIBLE_DEVICES") {
            // A prefix of another command holds only there.
            bool prefix = false;
            for (const Command& command : part.script.commands)
                for (const Assignment& each : command.assignments) prefix |= each.span == variable.span;
            if (prefix) continue;
            if (found && found->value.text != variable.value.text) return nullptr;
            found = &variable;
        }
    if (found || part.script.variable("CUDA_VISIBLE_DEVICES").present()) return found;
    // What stands around the script: of a step, a recipe, a container.
    for (const File* at = &part; at; at = at->host)
        if (at->host_container) return at->host_container->env("CUDA_VISIBLE_DEVICES");
    return nullptr;
}

}  // namespace

void check_run005(const File& file, Report& report) {
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (launch.launcher == Launcher::mpirun || launch.launcher == Launcher::srun) return;
        const EnvVar* visible = visible_for(part, launch);
        if (!visible || !visible->value.known()) return;
        const auto list = visible_list(visible->value.text);
        const auto per_node = launch.per_node.as_int();
        if (!list || !per_node) return;
        // Its processes are those of all machines, and a configuration elsewhere may say that there are several.
        if (launch.launcher == Launcher::accelerate && !launch.nodes.is("1")) return;
        if (*per_node <= list->count) return;
        Finding* finding =
            report.add(launch.per_node, address + "#visible",
                       std::to_string(*per_node) + " processes per node, but CUDA_VISIBLE_DEVICES shows " +
                           std::to_string(list->count) + " device" + (list->count == 1 ? "" : "s") +
                           ": the others fail with \"invalid device ordinal\"");
        if (!finding) return;
        report.relate(finding, *visible->value.source, visible->value.span, "visible devices");
        finding->advice = "make the two agree";
    });
    // An index that the container or the batch does not have.
    const auto index = [&](const EnvVar& variable, const Counted& devices, const std::string& address) {
        if (variable.name != "CUDA_VISIBLE_DEVICES" || !variable.value.known()) return;
        const auto list = visible_list(variable.value.text);
        if (!list || list->highest < devices.count || devices.count < 1) return;
        Finding* finding = report.add(variable.value, address + "#index",
                                      "CUDA_VISIBLE_DEVICES names device " + std::to_string(list->highest) + ", but " +
                                          std::to_string(devices.count) + (devices.count == 1 ? " is" : " are") +
                                          " given: devices inside are counted from 0, so the program sees none");
        if (!finding) return;
        if (devices.value.source) report.relate(finding, *devices.value.source, devices.value.span, "devices given");
        finding->advice = "take the variable out; the runtime shows only the devices that are given";
    };
    for_each_part(file, [&](const File& part) {
        const auto container = [&](const Container& each) {
            if (const auto devices = container_devices(each))
                for (const EnvVar& variable : each.environment) index(variable, *devices, each.address);
        };
        for (const Workload& workload : part.workloads)
            for (const Container& each : workload.containers) container(each);
        for (const Container& each : part.services) container(each);
        if (part.script.empty() || part.kinds.has(Kind::dockerfile)) return;
        if (const auto devices = devices_for(file, part)) {
            const EnvVar* one = nullptr;
            for (const EnvVar& variable : part.environment) {
                if (variable.name != "CUDA_VISIBLE_DEVICES") continue;
                if (one && one->value.text != variable.value.text) return;
                one = &variable;
            }
            if (one) index(*one, *devices, script_address(part));
        }
    });
}

}  // namespace stoker::lint
