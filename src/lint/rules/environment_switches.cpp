// RUN001, RUN003, RUN004, RUN012, NET008, NET009, NET014: one environment variable that should not be there, or not
// with this value, in scripts, manifests, compose files, jobs and images alike.
#include <algorithm>
#include <array>
#include <functional>

#include "lint/rules/common_layout.h"

namespace stoker::lint {

namespace {

struct SwitchUse {
    const File& file;  // the outermost
    const File& part;  // where the variable is set
    const EnvVar& variable;
    const Container* container;
    std::string address;
};

// Whose own words are that launch of the file; null: nobody's.
const Container* container_that_starts(const File& part, int launch) {
    for (const Workload& workload : part.workloads)
        for (const Container& each : workload.containers)
            if (std::find(each.launches.begin(), each.launches.end(), launch) != each.launches.end()) return &each;
    return nullptr;
}

// Every environment variable of the file, once, with what it belongs to.
template <typename F>
void for_each_variable(const File& file, F&& visit) {
    for_each_part(file, [&](const File& part) {
        bool of_containers = false;
        const auto container = [&](const Container& each) {
            of_containers |= !each.environment.empty();
            for (const EnvVar& variable : each.environment)
                visit(SwitchUse{file, part, variable, &each, each.address + "#env/" + std::string(variable.name)});
        };
        for (const Workload& workload : part.workloads)
            for (const Container& each : workload.containers) container(each);
        for (const Container& each : part.services) container(each);
        // mpirun -x, env: in the words of a container.
        for (std::size_t i = 0; i < part.launches.size(); ++i) {
            const Launch& launch = part.launches[i];
            if (launch.command >= 0) continue;
            const Container* around = container_that_starts(part, static_cast<int>(i));
            for (const EnvVar& variable : launch.environment)
                visit(SwitchUse{file, part, variable, around,
                                script_address(part) + "#env/" + std::string(variable.name)});
        }
        if (of_containers && part.kinds.any({Kind::k8s, Kind::helm, Kind::compose, Kind::azureml})) return;
        const Container* outer = nullptr;
        for (const File* at = &part; at && !outer; at = at->host) outer = at->host_container;
        for (const EnvVar& variable : part.environment)
            visit(SwitchUse{file, part, variable, outer, script_address(part) + "#env/" + std::string(variable.name)});
    });
}

// In a script that sets the variable to something else too, which of the two counts is not known.
bool set_otherwise(const SwitchUse& use, bool (*matches)(std::string_view)) {
    if (use.container && !use.container->environment.empty() && &use.container->environment.front() <= &use.variable &&
        &use.variable <= &use.container->environment.back())
        return false;
    for (const EnvVar& other : use.part.environment)
        if (other.name == use.variable.name && &other != &use.variable &&
            (!other.value.known() || !matches(other.value.text)))
            return true;
    return false;
}

// At the assignment: where the value is written elsewhere, that comes second.
Finding* tell_switch(Report& report, const SwitchUse& use, std::string message) {
    const Value& value = use.variable.value;
    if (!value.use_source) return report.add(value, use.address, std::move(message));
    Finding* finding = report.add(*value.use_source, value.use, use.address, std::move(message));
    if (finding) {
        finding->value = value.text;
        report.relate(finding, *value.source, value.span, "its value");
    }
    return finding;
}

// Replaces the value, without its quotes.
void put_value(Report& report, Finding* finding, const Value& value, std::string_view wanted, std::string title) {
    if (!finding || !value.known() || value.text.empty()) return;
    // The value of another variable may be used elsewhere too; a default written here is not.
    if (value.use_source && (value.use_source != value.source || !value.use.contains(value.span))) return;
    const std::string_view written = value.source->text(value.span);
    const std::size_t at = written.find(value.text);
    if (at == std::string_view::npos || written.find(value.text, at + 1) != std::string_view::npos) return;
    const auto begin = value.span.begin + static_cast<std::uint32_t>(at);
    report.fix(finding, *value.source, FixClass::safe, std::move(title),
               {{{begin, begin + static_cast<std::uint32_t>(value.text.size())}, std::string(wanted)}});
}

bool is_one(std::string_view text) {
    return text == "1" || equals_ignore_case(text, "true");
}
bool is_debug_level(std::string_view text) {
    return equals_ignore_case(text, "INFO") || equals_ignore_case(text, "TRACE");
}
bool is_detail(std::string_view text) {
    return equals_ignore_case(text, "DETAIL");
}
bool is_lo(std::string_view text) {
    return text == "lo" || text == "=lo";
}

// A table row: this variable, this value, these words.
void check_switch(const File& file, std::string_view name, bool (*matches)(std::string_view),
                  const std::function<Finding*(const SwitchUse&)>& tell) {
    for_each_variable(file, [&](const SwitchUse& use) {
        if (use.variable.name != name || !use.variable.value.known() || !matches(use.variable.value.text)) return;
        if (set_otherwise(use, matches)) return;
        tell(use);
    });
}

// What the variable is for runs on more than one node: a literal says so, or the launcher does that by nature.
bool on_many_nodes(const SwitchUse& use) {
    if (use.container) {
        bool many = false;
        for_each_part(use.file, [&](const File& part) {
            // A job of Azure ML, by the number of its instances.
            for (const Resource& resource : part.resources)
                many |= resource.node && resource.node == use.container->node &&
                        literal_int(resource.get(Attr::count)).value_or(1) > 1;
            for (const Workload& workload : part.workloads)
                for (const Container& each : workload.containers)
                    many |= &each == use.container &&
                            (is_multi_node_kind(workload.kind) || literal_int(workload.group_size).value_or(1) > 1);
        });
        if (many) return true;
    }
    bool many = false, single = false, hosts = false;
    for_each_part(use.file, [&](const File& part) {
        if (use.container && part.host_container && part.host_container != use.container) return;
        for (const Launch& launch : part.launches) {
            const auto nodes = launch_nodes(use.file, launch);
            if (nodes && nodes->count > 1) many = true;
            if (nodes && nodes->count == 1) single = true;
            if (launch.launcher == Launcher::deepspeed && launch.nodes.absent() && !launch.option("include") &&
                !launch.option("num-gpus") && !launch.option("i"))
                hosts = true;  // reads the hostfile
            if (launch.launcher == Launcher::mpirun &&
                (launch.option("hostfile") || launch.option("H") || launch.option("host") ||
                 launch.option("machinefile") || launch.option("f")))
                hosts = true;
        }
    });
    if (const File* batch = batch_part(use.file)) {
        const auto nodes = batch_nodes(*batch);
        if (nodes && nodes->count > 1) many = true;
        if (nodes && nodes->count == 1) return false;
    }
    return many || (hosts && !single);
}

}  // namespace

void check_run001(const File& file, Report& report) {
    check_switch(file, "NCCL_DEBUG", is_debug_level, [&](const SwitchUse& use) {
        Finding* finding = tell_switch(report, use,
                                       "NCCL_DEBUG is left at " + std::string(use.variable.value.text) +
                                           ": every rank writes its set-up and rings to the log");
        if (!finding) return finding;
        finding->advice = "set it to WARN, and to INFO only while you look for a fault";
        put_value(report, finding, use.variable.value, "WARN", "set NCCL_DEBUG to WARN");
        return finding;
    });
}

void check_run003(const File& file, Report& report) {
    if (contains_nocase(file_name_of(file), "debug")) return;
    check_switch(file, "CUDA_LAUNCH_BLOCKING", is_one, [&](const SwitchUse& use) {
        Finding* finding = tell_switch(report, use,
                                       "CUDA_LAUNCH_BLOCKING=1 makes every kernel launch wait: host and GPU no longer "
                                       "overlap");
        if (!finding) return finding;
        finding->advice = "take it out; it is for finding the kernel that failed";
        put_value(report, finding, use.variable.value, "0", "set CUDA_LAUNCH_BLOCKING to 0");
        return finding;
    });
}

void check_run004(const File& file, Report& report) {
    for_each_variable(file, [&](const SwitchUse& use) {
        const std::string_view name = use.variable.name;
        if (name != "NCCL_ASYNC_ERROR_HANDLING" && name != "NCCL_BLOCKING_WAIT") return;
        const std::string renamed = "TORCH_" + std::string(name);
        bool both = false;
        for_each_variable(file, [&](const SwitchUse& other) { both |= other.variable.name == renamed; });
        if (both || !use.variable.value.source) return;
        Finding* finding = report.add(*use.variable.value.source, use.variable.span, use.address,
                                      std::string(name) + " is the old name of " + renamed +
                                          ": PyTorch 2.2 and later warn about it and will drop it");
        if (!finding) return;
        finding->advice = "rename it to " + renamed;
        const Source& source = *use.variable.value.source;
        const std::string_view written = source.text(use.variable.span);
        const std::size_t at = written.find(name);
        if (at == std::string_view::npos) return;
        const auto begin = use.variable.span.begin + static_cast<std::uint32_t>(at);
        report.fix(finding, source, FixClass::safe, "rename to " + renamed,
                   {{{begin, begin + static_cast<std::uint32_t>(name.size())}, renamed}});
    });
}

void check_run012(const File& file, Report& report) {
    check_switch(file, "TORCH_DISTRIBUTED_DEBUG", is_detail, [&](const SwitchUse& use) {
        Finding* finding = tell_switch(
            report, use, "TORCH_DISTRIBUTED_DEBUG=DETAIL checks every collective on all ranks before it runs");
        if (!finding) return finding;
        finding->advice = "set it to OFF (or INFO) outside a search for mismatched collectives";
        put_value(report, finding, use.variable.value, "OFF", "set TORCH_DISTRIBUTED_DEBUG to OFF");
        return finding;
    });
}

void check_net008(const File& file, Report& report) {
    check_switch(file, "NCCL_IB_DISABLE", is_one, [&](const SwitchUse& use) {
        if (!on_many_nodes(use)) return static_cast<Finding*>(nullptr);
        // A size that has no InfiniBand loses nothing; Elastic Fabric Adapter is none.
        for (const std::string_view word : {"nc96", "ncv4", "nc48ads", "nc24ads", "ncads_a100"})
            if (mentions(file, word)) return static_cast<Finding*>(nullptr);
        bool rdma = false, without = false;
        for_each_part(file, [&](const File& part) {
            for (const Resource& resource : part.resources)
                if (const Value& size = resource.get(Attr::size); size.known())
                    if (const KnownSize* known = report.knowledge().size(size.text); known && known->gpu())
                        (known->rdma() ? rdma : without) = true;
        });
        if (without && !rdma) return static_cast<Finding*>(nullptr);
        Finding* finding =
            tell_switch(report, use, "NCCL_IB_DISABLE=1 sends the traffic between nodes through TCP sockets");
        if (!finding) return finding;
        if (rdma && !report.options().severity.contains("NET008")) finding->severity = Severity::error;
        finding->advice =
            "take it out where the nodes have InfiniBand; look for the cause with NCCL_DEBUG=INFO instead";
        return finding;
    });
}

void check_net009(const File& file, Report& report) {
    for (const std::string_view name : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"})
        check_switch(file, name, is_one, [&](const SwitchUse& use) {
            for (const std::string_view word : {"rtx", "3090", "4090", "5090", "2080", "vgpu", "geforce"})
                if (mentions(file, word)) return static_cast<Finding*>(nullptr);
            std::int64_t devices = 0;
            if (const auto given = use.container ? container_devices(*use.container) : devices_for(file, use.part))
                devices = given->count;
            for_each_part(file, [&](const File& part) {
                if (use.container && part.host_container && part.host_container != use.container) return;
                for (const Launch& launch : part.launches)
                    devices = std::max(devices, literal_int(launch.per_node).value_or(0));
                // Devices that are named, one after the other, for ranks that something starts.
                for (const EnvVar& variable : part.environment)
                    if (variable.name == "CUDA_VISIBLE_DEVICES" && variable.value.known() && !part.launches.empty())
                        devices = std::max<std::int64_t>(
                            devices, std::count(variable.value.text.begin(), variable.value.text.end(), ',') + 1);
            });
            if (devices < 2) return static_cast<Finding*>(nullptr);
            Finding* finding =
                tell_switch(report, use,
                            name == "NCCL_P2P_DISABLE"
                                ? "NCCL_P2P_DISABLE=1 cuts the direct path between the GPUs of a node (NVLink, PCIe)"
                                : "NCCL_SHM_DISABLE=1 sends traffic within a node through the network");
            if (finding) finding->advice = "take it out; it is for narrowing down a fault";
            return finding;
        });
}

void check_net014(const File& file, Report& report) {
    check_switch(file, "NCCL_SOCKET_IFNAME", is_lo, [&](const SwitchUse& use) {
        if (!on_many_nodes(use)) return static_cast<Finding*>(nullptr);
        Finding* finding = tell_switch(report, use,
                                       "NCCL_SOCKET_IFNAME=lo: the ranks of other nodes cannot be reached over the "
                                       "loopback interface");
        if (finding) finding->advice = "name the interface that joins the nodes (eth0), or leave the choice to NCCL";
        return finding;
    });
}

void check_net015(const File& file, Report& report) {
    bool set = false;
    for_each_variable(file, [&](const SwitchUse& use) { set |= use.variable.name == "NCCL_TOPO_FILE"; });
    if (set || mentions(file, "nccl.conf") || mentions(file, "NCCL_TOPO_FILE")) return;
    const Value* size = nullptr;
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources)
            if (const KnownSize* known = report.knowledge().size(resource.get(Attr::size).text);
                known && known->rdma() &&
                (starts_with_ignore_case(known->name, "Standard_ND96") || known->accelerators == 8))
                size = &resource.get(Attr::size);
    });
    if (!size) return;
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        const std::string_view text = part.source().text(launch.span);
        if (text.find("docker ") == std::string_view::npos && text.find("container-image") == std::string_view::npos &&
            text.find("apptainer") == std::string_view::npos && text.find("singularity") == std::string_view::npos)
            return;
        report.add(*launch.source, launch.word, address,
                   "NCCL in a container on " + std::string(size->text) +
                       " without NCCL_TOPO_FILE does not see which GPU "
                       "is next to which network card");
    });
}

}  // namespace stoker::lint
