#include "validate/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "catalog/link_choice.h"
#include "catalog/names.h"
#include "validate/row.h"

namespace stoker::validate {
namespace {

struct MigSlice {
    double instances = 1, slices = 1, memory_gb = 0;
};

// "NVIDIA A30 (4x1g.6gb MIG)": instances of one compute slice with 6 GB each.
std::optional<MigSlice> mig_of(std::string_view name) {
    const std::string text = lower(name);
    const std::size_t g = text.find("g.");
    if (g == std::string::npos || text.find("mig") == std::string::npos) return std::nullopt;
    std::size_t begin = g;
    while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == 'x'))
        --begin;
    MigSlice slice;
    const std::string_view part = std::string_view(text).substr(begin, g - begin);
    const std::size_t x = part.find('x');
    slice.slices = parse_number(x == std::string_view::npos ? part : part.substr(x + 1)).value_or(1);
    if (x != std::string_view::npos)
        slice.instances = std::clamp(parse_number(part.substr(0, x)).value_or(1), 1.0, 7.0);
    slice.memory_gb = number_behind(text.substr(g), "g.").value_or(0);
    return slice;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The number that ends right before `at`, blanks between allowed: the 400 of "400 Gb/s".
std::optional<double> number_before(std::string_view text, std::size_t at) {
    while (at > 0 && text[at - 1] == ' ') --at;
    std::size_t begin = at;
    while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.'))
        --begin;
    if (begin == at) return std::nullopt;
    return parse_number(text.substr(begin, at - begin));
}

double gbps_of_segment(std::string_view text) {
    std::size_t unit = text.find("gb");
    double rate = 0;
    for (; unit != std::string_view::npos && rate <= 0; unit = text.find("gb", unit + 1))
        rate = number_before(text, unit).value_or(0);
    if (rate <= 0 && contains(text, "omni-path")) rate = 100;  // the only generation that was sold
    if (rate <= 0) return 0;
    double adapters = 1;
    for (std::size_t x = text.find('x'); x != std::string_view::npos; x = text.find('x', x + 1)) {
        // "4x100", "8x ConnectX", "4 x Mellanox": the letter stands behind a number, which is no speed.
        if (const auto count = number_before(text, x); count && *count >= 1 && *count <= 64) {
            adapters = *count;
            break;
        }
    }
    return adapters * rate;
}

// The cloud of nodes that rows describe: no row is told what another one states.
constexpr std::string_view kPublished = "published";

// Two accelerators of one family: what stands before the form factor and the memory.
std::string_view family_of(std::string_view name) {
    return name.substr(0, name.find('-'));
}

// "h100-sxm-96gb-hbm2e" -> 96; 0 where no number stands there.
double number_before(std::string_view text, std::string_view unit) {
    const std::size_t end = text.find(unit);
    if (end == std::string_view::npos) return 0;
    std::size_t begin = end;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    return parse_number(text.substr(begin, end - begin)).value_or(0);
}

}  // namespace

double gbps_of_node(std::string_view text) {
    std::string all = replace_all(lower(text), " and ", ",");
    for (char& c : all)
        if (c == ';' || c == '+') c = ',';
    double compute = 0, other = 0;
    for (const std::string_view segment : split(all, ',')) {
        const double gbps = gbps_of_segment(segment);
        if (contains(segment, "compute")) {
            compute = std::max(compute, gbps);
        } else if (!contains(segment, "storage:") && !contains(segment, "management:")) {
            other = std::max(other, gbps);
        }
    }
    return compute > 0 ? compute : other;
}

Hardware::Hardware(const Catalog& catalog) : catalog_(catalog) {
    auto processors = Processors::embedded();
    CHECK(processors.ok());
    processors_ = std::move(processors).value();
    auto networks = PublishedNetworks::embedded();
    CHECK(networks.ok());
    networks_ = std::move(networks).value();
}

// Each socket is a node of its own: benchmarks run an instance on each.
Cluster Hardware::sockets(const ClusterText& text) {
    Cluster out;
    const Processor* processor = processors_.find(text.gpu_model);
    if (processor == nullptr) {
        out.refused = fmt::format("unknown_device:{}", printable(text.gpu_model, 60));
        return out;
    }
    out.key = "cpu/" + processor->words;
    out.nodes = static_cast<int>(std::max(1.0, text.gpus));
    auto& device = devices_[out.key];
    if (!device) device = std::make_shared<const Device>(stoker::validate::device_of(*processor, catalog_));
    out.device = device;
    out.assumed.push_back(fmt::format("gpu_model: sockets of {} cores, 256 GB each", processor->cores));
    return out;
}

const NamedDevice& Hardware::find(std::string_view name, double memory_gb) {
    std::string key = fmt::format("{}|{:g}", name, memory_gb);
    if (const auto known = names_.find(key); known != names_.end()) return known->second;
    NamedDevice found;
    std::string printed(trim(name.substr(0, name.find('('))));
    const auto look_up = [&](const std::string& word) {
        if (word.empty()) return false;
        const auto index = catalog_.find_accelerator(word);
        if (index) found.accelerator = *index;
        return index.ok();
    };
    const bool has_memory = contains(lower(printed), "gb");
    bool known = memory_gb > 0 && !has_memory && look_up(fmt::format("{}-{:g}GB", printed, memory_gb));
    known = known || look_up(printed);
    for (std::string shorter = printed; !known;) {
        // A printed name says more than the catalogue has: memory, power limit, partition mode.
        const std::size_t cut = shorter.find_last_of("- ");
        if (cut == std::string::npos) break;
        shorter.resize(cut);
        known = look_up(shorter);
        if (!known) continue;
        const std::string& taken = catalog_.accelerators()[static_cast<std::size_t>(found.accelerator)].name;
        found.assumed.push_back(fmt::format("gpu_model: {} taken for {}", taken, printable(printed, 60)));
    }
    if (!known) {
        found.refused = fmt::format("unknown_device:{}", printable(printed.empty() ? name : printed, 60));
    } else {
        const auto& all = catalog_.accelerators();
        const auto nominal = [&](int i) { return all[static_cast<std::size_t>(i)].memory.v / 1e9; };
        if (!has_memory && memory_gb <= 0) {
            // One name, several sizes of memory in the catalogue, and the row does not tell.
            int variants = 0;
            for (std::size_t i = 0; i < all.size(); ++i)
                if (family_of(all[i].name) == family_of(all[static_cast<std::size_t>(found.accelerator)].name) &&
                    std::abs(nominal(static_cast<int>(i)) - nominal(found.accelerator)) > 1)
                    ++variants;
            for (const Accelerator& other : all)
                if (starts_with_ignore_case(other.name, printed))
                    found.most_memory = std::max(found.most_memory, other.usable_memory.v);
            if (variants > 0)
                found.assumed.push_back(fmt::format("gpu_mem_gb: {} GB", std::round(nominal(found.accelerator))));
        }
        const double stated = has_memory ? number_before(lower(printed), "gb") : memory_gb;
        if (const double taken = nominal(found.accelerator); stated > 8 && taken > 0 && !mig_of(name))
            found.memory_share = std::abs(stated / taken - 1) > 0.1 ? stated / taken : 1;
        if (const auto mig = mig_of(name)) {
            const bool four = family_of(all[static_cast<std::size_t>(found.accelerator)].name) == "A30";
            found.part = std::min(1.0, mig->slices / (four ? 4 : 7));  // compute slices of a whole device
            found.part_memory = mig->memory_gb * 1e9;
            found.instances = mig->instances;
        }
    }
    return names_.emplace(std::move(key), std::move(found)).first->second;
}

// Of the sizes that can be had with this accelerator, else one adapter per GPU of its years.
double Hardware::usual_gbps_per_gpu(int accelerator) const {
    double most = 0;
    for (const NodeType& node : catalog_.node_types()) {
        if (node.accelerator != accelerator || node.whole_gpus() < 2 || node.cloud == kPublished) continue;
        const double shared = node.rdma_gbps_per_node / std::max(1.0, node.accelerators);
        most = std::max({most, node.rdma_gbps_per_gpu, shared});
    }
    if (most > 0) return most;
    const int year = catalog_.accelerators()[static_cast<std::size_t>(accelerator)].year;
    return year <= 2018 ? 100 : year <= 2021 ? 200 : 400;  // EDR, HDR, NDR InfiniBand
}

std::shared_ptr<const Device> Hardware::device_of(const NamedDevice& named, double per_node, std::string_view gpu_link,
                                                  double gbps_per_node, std::string_view rdma,
                                                  const PublishedNetwork* network, const std::string& key) {
    if (const auto known = devices_.find(key); known != devices_.end()) return known->second;
    const Accelerator& gpu = catalog_.accelerators()[static_cast<std::size_t>(named.accelerator)];
    NodeType node;
    node.name = "validate-" + key;
    node.cloud = kPublished;
    node.accelerator = named.accelerator;
    node.accelerators = named.part < 1 ? named.part : per_node;
    node.accelerator_memory = Bytes(named.part_memory > 0 ? named.part_memory : gpu.usable_memory.v);
    // Only offloaded states and decoding on the host ask for these: a usual host, 12 vCPUs and 200 GB for each GPU.
    node.vcpus = static_cast<int>(12 * per_node);
    node.memory = Bytes(2e11 * per_node);
    const bool rack = gpu.scale_up_domain > 8;
    node.scale_up_domain =
        gpu_link == "pcie" || gpu_link == "none" ? 1 : std::min(gpu.scale_up_domain, static_cast<int>(per_node));
    if (rack) node.scale_up_domain = gpu.scale_up_domain;
    const int node_domain = node.scale_up_domain;
    node.rdma = std::string(rdma);
    node.rdma_gbps_per_node = gbps_per_node;
    node.rdma_gbps_per_gpu = gbps_per_node / std::max(1.0, per_node);
    choose_links(node, gpu_link, catalog_);
    const int index = catalog_.add_node_type(std::move(node));
    auto made = std::make_shared<Device>(make_device(catalog_, index));
    made->memory_bytes *= named.memory_share;
    // Where each pair has links of its own, a part of a node's devices has a part of the links (collectives.cpp).
    const bool meshed = gpu.vendor != "NVIDIA" && gpu.scale_up_domain <= 8 && node_domain > 1;
    if (meshed && node_domain < gpu.scale_up_domain) {
        for (double* scaled : {&made->inside.bytes_per_second, &made->inside.half_bytes})
            *scaled *= (node_domain - 1.0) / (gpu.scale_up_domain - 1.0);
    }
    if (network != nullptr) set_latency(*network, *made);
    const std::shared_ptr<const Device> device = std::move(made);
    devices_.emplace(key, device);
    return device;
}

double Hardware::most_memory() const {
    double most = 0;
    for (const Accelerator& one : catalog_.accelerators()) most = std::max(most, one.usable_memory.v);
    return most;
}

Cluster Hardware::cluster(const ClusterText& text) {
    if (text.processors && names_processor(text.gpu_model)) return sockets(text);
    Cluster out;
    const NamedDevice named = find(text.gpu_model, text.gpu_mem_gb);
    out.refused = named.refused;
    out.most_memory = named.most_memory;
    out.assumed = named.assumed;
    if (!out.refused.empty()) return out;
    out.accelerator = named.accelerator;
    out.instances = named.instances;
    const Accelerator& gpu = catalog_.accelerators()[static_cast<std::size_t>(named.accelerator)];
    const double gpus = std::max(1.0, text.gpus);

    double per_node = text.gpus_per_node;
    if (per_node < 1) {
        per_node = gpu.scale_up_domain > 8 ? 4 : 8;  // trays of four GPUs in NVL72 racks
        if (gpus > per_node) out.assumed.push_back(fmt::format("gpus_per_node: {:g}", per_node));
    }
    per_node = std::min({per_node, gpus, 65536.0});
    while (per_node > 1 && std::fmod(gpus, per_node) != 0) --per_node;
    out.nodes = static_cast<int>(gpus / per_node);

    // Switched GPUs are on their switch unless the row says PCIe; bridges between pairs are an option that a row names.
    const std::string intra = lower(text.intra_link);
    const bool without = contains(intra, "no nvlink") || contains(intra, "without nvlink");
    const bool nvlink = !without && (contains(intra, "nvlink") || contains(intra, "nvswitch"));
    std::string link = "pcie";
    if (per_node <= 1 && gpu.scale_up_domain <= 8) {
        link = "none";
    } else if (gpu.scale_up_bandwidth.v > 0 && gpu.scale_up_domain == 2) {
        if (nvlink || contains(intra, "bridge")) link = "nvlink-pair";
    } else if (gpu.scale_up_bandwidth.v > 0 && gpu.scale_up_domain > 2) {
        if (nvlink || !(without || contains(intra, "pcie"))) link = gpu.vendor == "AMD" ? "xgmi" : "nvlink";
    }
    double gbps = 0;
    std::string rdma = "none";
    const PublishedNetwork* network = nullptr;
    if (out.nodes > 1) {
        if (text.inter_link.empty()) network = networks_.find(text.source);
        const std::string inter = lower(network != nullptr ? network->link : text.inter_link);
        gbps = gbps_of_node(inter);
        if (gbps <= 0) {
            gbps = usual_gbps_per_gpu(named.accelerator) * per_node;
            out.assumed.push_back(fmt::format("inter_node_link: {:g} Gb/s per GPU", gbps / per_node));
        }
        rdma = contains(inter, "efa")                                   ? "efa"
               : contains(inter, "roce") || contains(inter, "ethernet") ? "roce"
                                                                        : "infiniband";
    }
    out.key = fmt::format("{}/{:g}/{:g}/{:g}/{:g}/{}/{:g}/{}", gpu.name, named.part, named.part_memory,
                          named.memory_share, per_node, link, gbps, rdma);
    if (network != nullptr) out.key += fmt::format("/{}/{}", network->source, out.nodes);
    out.network = network;
    out.device = device_of(named, per_node, link, gbps, rdma, network, out.key);
    return out;
}

}  // namespace stoker::validate
