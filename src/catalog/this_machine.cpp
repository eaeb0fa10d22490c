#include "catalog/this_machine.h"

#include <algorithm>

#include "catalog/link_choice.h"

namespace stoker {

int add_this_machine(const MachineFacts& facts, Catalog& catalog) {
    const int cores = std::max(1, facts.cores > 0 ? facts.cores : facts.vcpus);
    Cpu cpu;
    cpu.name = facts.cpu_name.empty() ? "CPU of this machine" : facts.cpu_name;
    cpu.ghz = facts.ghz > 0 ? facts.ghz : 2.5;
    // Measured FLOP/s over clock and cores, so that ghz x flop_per_cycle x cores gives the measurement back.
    // Unmeasured: AVX2, two FMA units.
    cpu.fp32_flop_per_cycle = facts.measured_fp32_gflops > 0 ? facts.measured_fp32_gflops / (cpu.ghz * cores) : 32;
    cpu.bf16_flop_per_cycle = facts.measured_bf16_gflops > 0 ? facts.measured_bf16_gflops / (cpu.ghz * cores) : 0;
    cpu.memory_bandwidth_per_core =
        BytesPerSecond((facts.measured_memory_gb_s > 0 ? facts.measured_memory_gb_s * kGB : 2.5 * kGB * cores) / cores);
    cpu.measured = facts.measured_fp32_gflops > 0;
    cpu.provenance.source = facts.measured_fp32_gflops > 0 ? "measured on this machine" : "assumed, not measured";

    NodeType node;
    node.name = facts.name;
    node.cloud = node.family = "this-machine";
    node.purpose = "general";
    node.status = "current";
    node.vcpus = std::max(facts.vcpus, cores);
    node.cores = cores;
    node.memory = facts.memory;
    node.cpu = catalog.add_cpu(std::move(cpu));
    node.available = facts.instances;
    node.rdma = "none";
    if (facts.accelerator >= 0 && facts.accelerators > 0) {
        const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(facts.accelerator)];
        node.accelerator = facts.accelerator;
        node.accelerators = facts.accelerators;
        node.accelerator_memory = gpu.usable_memory;
        choose_links(node, own_gpu_link(node, gpu), catalog);
    }
    if (facts.instances > 1) {
        Link loopback;
        loopback.name = "loopback";
        // A catalogue of before this was known has neither.
        const Constant* rate = catalog.constant("loopback_gb_s");
        const Constant* latency = catalog.constant("loopback_latency_us");
        loopback.bandwidth = BytesPerSecond(kGB * (rate != nullptr ? rate->value : 2.3));
        loopback.latency = Seconds(1e-6 * (latency != nullptr ? latency->value : 33));
        loopback.provenance.source = "defaults.tsv";
        node.link_across = catalog.add_link(std::move(loopback));
    }
    node.provenance.source = "this machine";
    node.note = "no price: it is there already";
    return catalog.add_node_type(std::move(node));
}

}  // namespace stoker
