// front: the service before the model, that needs no GPU.
#include <fmt/format.h>

#include "base/text.h"
#include "workload/workload_form.h"

namespace stoker {

void check_front(const WorkloadForm& w, Problems& problems) {
    if (!w.at.contains("front")) return;
    const SourcePos pos = w.at.at("front");
    if (w.kind != WorkloadKind::inference)
        problems.push_back({fmt::format("front belongs to inference, not to {}", to_string(w.kind)),
                            "take front out: what prepares data is a workload of kind preprocessing", pos});
    if (w.front.image.empty())
        problems.push_back({"front: its container image is missing",
                            "write front: {image: registry.example/gateway:1.4, cpu_per_request: 20ms}", pos});
    if (!w.front.health.empty() && w.front.health.front() != '/')
        problems.push_back({fmt::format("front.health: \"{}\" is no path", printable(w.front.health, 60)),
                            "write it from the root: /healthz", place_of(w.front.at, "health", pos)});
}

void fill_front(WorkloadForm& w) {
    if (w.front.image.empty()) return;
    FrontSpec& front = w.front;
    if (!front.cpu_per_request) {
        front.cpu_per_request = Seconds(0.01);
        w.assumptions.emplace_back("front: 10 ms of a vCPU a request; measure it, and write front.cpu_per_request");
    }
    if (!front.cpus) front.cpus = 1;
    if (!front.memory) front.memory = Bytes(1 << 30);
    if (!front.port) front.port = 8080;
}

}  // namespace stoker
