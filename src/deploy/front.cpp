#include "deploy/front.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace stoker {
namespace {

// Beyond it a queue of requests grows faster than pods come.
constexpr double kBusy = 0.6;
// The rate of the file is a mean, and CPUs are cheap beside the GPUs that would wait for them.
constexpr int kTimesMost = 2;
// Of a node: the rest is the kubelet's, the system's and the daemon sets'.
constexpr double kShareOfNode = 0.9;

int pods_of(const NodeType& node, const FrontWork& front) {
    const double by_cpu = std::floor(node.vcpus * 1000 * kShareOfNode / static_cast<double>(front.cpu_milli));
    const double by_memory = std::floor(node.memory.v * kShareOfNode / static_cast<double>(front.memory_bytes));
    return static_cast<int>(std::min(by_cpu, by_memory));
}

int nodes_for(int pods, int a_node, int least) {
    return std::max((pods + a_node - 1) / a_node, least);
}

// The cheapest that hold it; of x86, since its image is most likely for that. A node that is lost takes not all of it.
void choose_machine(const Catalog& catalog, const std::string& cloud, const std::string& region, FrontWork& front) {
    double best = 0;
    for (std::size_t i = 0; i < catalog.node_types().size(); ++i) {
        const NodeType& node = catalog.node_types()[i];
        if (node.cloud != cloud || node.has_gpu() || node.purpose != "general" || node.status != "current") continue;
        if (node.cpu < 0) continue;
        const std::string& vendor = catalog.cpus()[static_cast<std::size_t>(node.cpu)].vendor;
        const int pods = pods_of(node, front);
        if ((vendor != "Intel" && vendor != "AMD") || pods < 1) continue;
        const Price* price = catalog.price(static_cast<int>(i), region, "linux", Pricing::on_demand);
        if (price == nullptr) continue;
        const int nodes = nodes_for(front.replicas, pods, front.least);
        const double usd = nodes * price->per_hour.dollars();
        if (!front.machine.empty() && usd >= best) continue;
        best = usd;
        front.machine = node.name;
        front.machines = nodes, front.most_machines = nodes_for(front.most, pods, front.least);
        front.microusd_per_hour = nodes * price->per_hour.micro();
    }
}

}  // namespace

std::optional<FrontWork> front_of(const Workload& w, const Catalog& catalog, const std::string& cloud,
                                  const std::string& region, double requests_per_s) {
    if (w.front.image.empty() || w.kind != WorkloadKind::inference) return std::nullopt;
    FrontWork out{.image = w.front.image, .health = w.front.health, .command = w.front.command};
    out.port = static_cast<int>(*w.front.port);
    out.cpu_milli = std::llround(*w.front.cpus * 1000);
    out.memory_bytes = std::llround(w.front.memory->v);
    out.busy = kBusy;
    out.least = w.objective.survive_one_replica_lost ? 2 : 1;
    const double wanted = std::ceil(requests_per_s * w.front.cpu_per_request->v / (*w.front.cpus * kBusy));
    out.replicas = std::max(out.least, static_cast<int>(std::min(wanted, 1e5)));
    out.most = kTimesMost * out.replicas;
    choose_machine(catalog, cloud, region, out);
    return out;
}

}  // namespace stoker
