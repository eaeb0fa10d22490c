#include "plan/search_simple.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/search_training.h"

namespace stoker {
namespace {

constexpr int kMostMachines = 1024;

// False, and a line in the log, when the machine has too little memory for the work.
bool enough_memory(Search& search, const NodeChoice& choice, double need) {
    ++search.considered;
    if (choice.node->memory.v >= need) return true;
    ++search.refused;
    search.rejected.add({.node_type = choice.type,
                         .reason = Reason::host_memory,
                         .have = choice.node->memory.v,
                         .need = need,
                         .text = refusal_text(Reason::host_memory, choice.node->memory.v, need)});
    return false;
}

// Of two that cost the same the one that stays: work that is set up once is done again.
void prefer_what_stays(Point& point, const NodeChoice& choice) {
    const bool goes = choice.node->status == "announced" || !choice.retires.empty();
    point.preference = goes ? 1 : 0;
    if (!goes) point.rule = "sizes whose retirement is not announced first";
}

void fill_common(Point& point, const NodeChoice& choice, double need) {
    point.devices = choice.accelerator != nullptr ? choice.node->accelerators * point.nodes : point.nodes;
    point.prediction.memory_bytes = {need, need, need};
    point.prediction.memory_capacity_bytes = choice.node->memory.v;
    point.prediction.bottleneck = choice.accelerator != nullptr ? Bottleneck::compute : Bottleneck::cpu;
}

// How many T4 a device replaces in rendering, solvers and decoding, which live from vector units: by peak rate. 0: its
// rate is not known.
double in_t4(const Catalog& catalog, const Accelerator& device) {
    const auto fp32 = static_cast<std::size_t>(Precision::fp32);
    for (const Accelerator& each : catalog.accelerators())
        if (each.name == "T4") return device.peak[fp32].v / each.peak[fp32].v;
    return 0;
}

}  // namespace

Search search_notebook(const Context& context) {
    const Workload& workload = context.workload;
    Search search;
    const double need = workload.memory ? workload.memory->v : 0;
    // A model to be tried in the notebook has to fit the piece of the GPU; nothing more is asked of it.
    const double on_gpu =
        workload.model_known ? 1.2 * parameters_of(workload.model) * bytes_per_weight(workload.precision) : 0;
    for (std::size_t i = 0; i < context.choices.size(); ++i) {
        const NodeChoice& choice = context.choices[i];
        if (!enough_memory(search, choice, need)) continue;
        if (choice.accelerator != nullptr && choice.node->accelerator_memory.v < on_gpu) {
            ++search.refused;
            search.rejected.add({.node_type = choice.type,
                                 .reason = Reason::memory,
                                 .have = choice.node->accelerator_memory.v,
                                 .need = on_gpu,
                                 .text = refusal_text(Reason::memory, choice.node->accelerator_memory.v, on_gpu)});
            continue;
        }
        Point point;
        point.choice = static_cast<int>(i);
        point.service_hours = workload.period ? workload.period->v / 3600 : 1;
        point.units = 1;
        point.prediction.unit_name = "hour";
        // A notebook is asked for to try things on a GPU (doubt::no_gpu), and a piece of an A10 is the usual one.
        const bool a10 = choice.accelerator != nullptr && choice.node->purpose == "visualisation" &&
                         choice.accelerator->vendor == "NVIDIA";
        point.preference = a10 ? 0 : 1;
        if (a10) point.rule = "a piece of an A10 first for notebooks";
        point.framework = "jupyter";
        point.prediction.utilisation = 0.1;
        fill_common(point, choice, need);
        if (choice.accelerator != nullptr && choice.node->accelerators < 1)
            point.notes.push_back(fmt::format("{:.2f} of an {}: a share, not a whole GPU, whatever list-skus counts",
                                              choice.node->accelerators, choice.accelerator->name));
        search.points.push_back(std::move(point));
    }
    return search;
}

Search search_preprocessing(const Context& context) {
    const Workload& workload = context.workload;
    Search search;
    const double need = workload.memory ? workload.memory->v : 0;
    const bool on_gpu = workload.gpu_hours.has_value();
    const double hours =
        on_gpu ? *workload.gpu_hours
               : workload.vcpu_hours.value_or(workload.total_examples() *
                                              workload.data.decode_per_example.value_or(Seconds(0.01)).v / 3600);
    for (std::size_t i = 0; i < context.choices.size(); ++i) {
        const NodeChoice& choice = context.choices[i];
        if (!enough_memory(search, choice, need)) continue;
        // Nobody rents a GPU for its processors; of one's own, or named, it is what is there.
        if (!on_gpu && choice.accelerator != nullptr && !choice.named) continue;
        const double speed = choice.accelerator != nullptr ? in_t4(context.catalog, *choice.accelerator) : 0;
        const double capacity = on_gpu ? choice.node->accelerators * speed : choice.node->usable_vcpus();
        if (!(capacity > 0)) continue;
        for (int nodes : node_counts(workload.where, *choice.node)) {
            const double work_s = std::max(1.0, hours * 3600 / (capacity * nodes));
            if (nodes > kMostMachines || (nodes > 1 && work_s < 600 && !workload.where.nodes)) break;
            ++search.considered;
            Point point;
            point.choice = static_cast<int>(i);
            point.nodes = nodes;
            point.work_s = work_s;
            point.checkpoint_bytes = 1e6;
            // Whatever one vCPU or one T4 does of it: not measured here.
            point.speed = on_gpu ? Range{0.5, 1, 2} : Range{0.7, 1, 1.5};
            if (on_gpu && (speed > 1.05 || speed < 0.95))
                point.notes.push_back(
                    fmt::format("one {} counts as {:.1f} T4, by peak FP32", choice.accelerator->name, speed));
            point.units = std::max(hours, 1e-6);
            point.prediction.unit_name = on_gpu ? "GPU hour of a T4" : "vCPU hour";
            point.prediction.utilisation = 0.9;
            if (!on_gpu) point.framework = "spark";
            prefer_what_stays(point, choice);
            fill_common(point, choice, need);
            search.points.push_back(std::move(point));
        }
    }
    return search;
}

Search search_simulation(const Context& context) {
    const Workload& workload = context.workload;
    Search search;
    const double need = workload.memory ? workload.memory->v : 0;
    const bool on_cpu = !workload.gpu_hours && workload.vcpu_hours;
    for (std::size_t i = 0; i < context.choices.size(); ++i) {
        const NodeChoice& choice = context.choices[i];
        if (!enough_memory(search, choice, need)) continue;
        if (on_cpu && choice.accelerator != nullptr) continue;
        const double speed = choice.accelerator != nullptr ? in_t4(context.catalog, *choice.accelerator) : 0;
        const double capacity = on_cpu ? choice.node->usable_vcpus() : choice.node->accelerators * speed;
        if (capacity <= 0) continue;
        const double hours = on_cpu ? *workload.vcpu_hours : workload.gpu_hours.value_or(24);
        for (int nodes : node_counts(workload.where, *choice.node)) {
            const double work_s = std::max(1.0, hours * 3600 / (capacity * nodes));
            if (nodes > kMostMachines || (nodes > 1 && work_s < 1800 && !workload.where.nodes)) break;
            ++search.considered;
            Point point;
            point.choice = static_cast<int>(i);
            point.nodes = nodes;
            point.work_s = work_s;
            point.checkpoint_bytes = 1e9;
            point.speed = on_cpu ? Range{0.7, 1, 1.5} : Range{0.5, 1, 2};  // whatever one core or one T4 does of it
            point.units = std::max(hours, 1e-6);
            point.prediction.unit_name = on_cpu ? "vCPU hour" : "GPU hour of a T4";
            point.prediction.utilisation = 0.8;
            if (!on_cpu) {
                // Azure's sizes for it are shares of a GPU, or come with that driver; a whole GPU elsewhere renders and
                // computes under the one of its image.
                point.framework = choice.accelerator->vendor == "AMD" ? "graphics driver (AMD)"
                                  : choice.node->cloud == "azure"     ? "graphics driver (GRID)"
                                                                      : "NVIDIA driver";
                if (speed > 1.05 || speed < 0.95)
                    point.notes.push_back(
                        fmt::format("one {} counts as {:.1f} T4, by peak FP32", choice.accelerator->name, speed));
            }
            prefer_what_stays(point, choice);
            fill_common(point, choice, need);
            search.points.push_back(std::move(point));
        }
    }
    return search;
}

}  // namespace stoker
