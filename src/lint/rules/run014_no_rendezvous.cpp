#include <fmt/format.h>

#include "lint/rules/common_containers.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// A ConfigMap that was found: what it holds is among the variables of the container.
bool run014_read(const Container& container, const Node* name) {
    for (const EnvVar& variable : container.environment) {
        const Node* document = variable.value.node;
        while (document && document->parent) document = document->parent;
        const Node* called = document ? document->at({"metadata", "name"}) : nullptr;
        const Node* kind = document ? document->find("kind") : nullptr;
        if (name && called && kind && kind->text == "ConfigMap" && called->text == name->text) return true;
    }
    return false;
}

// Operators that tell each pod where the others meet.
bool run014_told(const Workload& workload, const Container& container) {
    for (const std::string_view name : {"MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"})
        if (container.env(name)) return true;
    for (const Node& each : children(container.node->find("envFrom")))
        if (each.find("prefix") || !run014_read(container, each.at({"configMapRef", "name"}))) return true;
    return workload.kind != "Job" || !workload.api_version.starts_with("batch/");
}

}  // namespace

void check_run014(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        const auto judge = [&](const Workload& workload, const Container& container, const Launch& launch) {
            if (launch.launcher != Launcher::torchrun || launch.open) return;
            const auto nodes = literal_int(launch.nodes);
            if (!nodes || *nodes < 2 || launch.master.present() || run014_told(workload, container)) return;
            for (const std::string_view option : {"rdzv-endpoint", "rdzv-backend", "master-addr", "rdzv-conf"})
                if (launch.option(option)) return;
            Finding* finding = report.add(*launch.source, launch.word, container.address + "#rendezvous",
                                          fmt::format("torchrun waits for {} nodes and is not told where they meet: "
                                                      "each pod looks for the others on itself",
                                                      *nodes));
            if (finding)
                finding->advice =
                    "give --rdzv-backend c10d --rdzv-endpoint HOST:29500 with the name of the first pod (an Indexed "
                    "Job with a headless Service), or use PyTorchJob, JobSet or LeaderWorkerSet";
        };
        for (const Workload& workload : part.workloads)
            for (const Container& container : workload.containers) {
                for (const int index : container.launches)
                    judge(workload, container, part.launches[static_cast<std::size_t>(index)]);
                for (const File* script : container.scripts)
                    for (const Launch& launch : script->launches) judge(workload, container, launch);
            }
    });
}

}  // namespace stoker::lint
