#include "catalog/this_machine.h"

#include <algorithm>

namespace stoker {

int add_this_machine(const MachineFacts& facts, Catalog& catalog) {
    const int cores = std::max(1, facts.cores > 0 ? facts.cores : facts.vcpus);
    Cpu cpu;
    cpu.name = facts.cpu_name.empty() ? "CPU of this machine" : facts.cpu_name;
    cpu.ghz = facts.ghz > 0 ? facts.ghz : 2.5;
    // Measured FLOP/s over clock and cores, so that ghz x flop_per_cycle x cores gives the measurement back.
    // Unmeasured: AVX2, two FMA units.
    cpu.fp32_flop_per_cycle = facts.measured_fp32_gflops > 0 ? facts.measured_fp32_gflops / (cpu.ghz * cores) : 32;
    cpu.memory_bandwidth_per_core =
        BytesPerSecond((facts.measured_memory_gb_s > 0 ? facts.measured_memory_gb_s * kGB : 2.5 * kGB * cores) / cores);
    cpu.provenance.source = facts.measured_fp32_gflops > 0 ? "measured on this machine" : "assumed, not measured";

    NodeType node;
    node.name = node.cloud = node.family = "this-machine";
    node.purpose = "general";
    node.status = "current";
    node.vcpus = std::max(facts.vcpus, cores);
    node.cores = cores;
    node.memory = facts.memory;
    node.cpu = catalog.add_cpu(std::move(cpu));
    node.available = 1;
    node.rdma = "none";
    node.provenance.source = "this machine";
    node.note = "no price: it is there already";
    return catalog.add_node_type(std::move(node));
}

}  // namespace stoker
