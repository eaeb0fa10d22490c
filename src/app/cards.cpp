#include "app/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "app/explain_pages.h"
#include "base/text.h"
#include "catalog/model_count.h"

namespace stoker {

namespace {

Json known(double value) {
    return value > 0 ? Json(value) : Json();
}
Json known(int value) {
    return value > 0 ? Json(value) : Json();
}
Json known(const std::string& value) {
    return value.empty() || value == "none" ? Json() : Json(value);
}

std::string with_unit(double value, std::string_view unit) {
    return value > 0 ? fmt::format("{} {}", number_text(value), unit) : "-";
}

std::string link_text(const Catalog& catalog, int index) {
    if (index < 0) return "-";
    const Link& link = catalog.links()[static_cast<std::size_t>(index)];
    return fmt::format("{}: {} GB/s bus bandwidth, {} us", link.name, number_text(link.bandwidth.v / 1e9),
                       number_text(link.latency.v * 1e6));
}

void add_provenance(Card& card, const Provenance& provenance, const std::string& note) {
    card.add("note", "note", known(note));
    card.add("source", "source", known(provenance.source));
    card.add("as_of", "as of", known(provenance.as_of));
}

// The catalogue fills in 97 % where nobody read what the driver reports.
std::string usable_text(const Accelerator& gpu) {
    const double assumed = 0.97 * gpu.memory.v / kGB, usable = gpu.usable_memory.v / kGiB;
    if (usable <= 0) return "usable part not known";
    return fmt::format("{} {} GiB", std::abs(usable - assumed) < 1e-6 ? "97 % taken as usable," : "the driver reports",
                       number_text(usable));
}

void add_gpus(Card& card, const Catalog& catalog, const NodeType& node) {
    if (!node.has_gpu()) {
        card.add("accelerator", "GPU", Json(), "none");
        return;
    }
    const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
    const double each = node.accelerator_memory.v / kGiB;
    const double all = device_memory_of_node(node, catalog) / kGiB;
    card.add("accelerator", "GPU", gpu.name, gpu_count_text(node.accelerators, gpu.name));
    card.add("accelerators", "", node.accelerators);
    card.add("accelerator_memory_gib", "GPU memory, usable", all,
             node.accelerators > 1 ? fmt::format("{} GiB each, {} GiB in all", number_text(each), number_text(all))
                                   : fmt::format("{} GiB", number_text(all)));
    card.add(
        "bf16_tflops", "dense FP16/BF16",
        known(std::max(peak_of_node(node, catalog, Precision::bf16), peak_of_node(node, catalog, Precision::fp16)) /
              1e12),
        with_unit(
            std::max(peak_of_node(node, catalog, Precision::bf16), peak_of_node(node, catalog, Precision::fp16)) / 1e12,
            "TFLOPS"));
    card.add("device_bandwidth_gb_s", "GPU memory bandwidth", known(memory_bandwidth_of_node(node, catalog) / 1e9),
             with_unit(memory_bandwidth_of_node(node, catalog) / 1e9, "GB/s"));
    card.add("link_inside", "between its GPUs",
             node.accelerators > 1 ? Json(link_text(catalog, node.link_inside)) : Json());
}

void add_network(Card& card, const Catalog& catalog, const NodeType& node) {
    if (node.rdma_gbps_per_node > 0) {
        card.add("rdma", node.rdma == "infiniband" ? "InfiniBand" : "RDMA network", node.rdma,
                 fmt::format("{} {:g} Gb/s per GPU, {:g} Gb/s for the whole VM", node.rdma_name(),
                             node.rdma_gbps_per_gpu, node.rdma_gbps_per_node));
    } else {
        card.add("rdma", "RDMA network", Json(), "none: Ethernet only");
    }
    card.add("rdma_gbps_per_gpu", "", node.rdma_gbps_per_gpu);
    card.add("rdma_gbps_per_vm", "", node.rdma_gbps_per_node);
    card.add("ethernet_gbps", "Ethernet", known(node.ethernet_gbps), with_unit(node.ethernet_gbps, "Gb/s"));
    card.add("nics", "NICs, at most", known(node.nics));
    card.add("accelerated_networking", "accelerated networking", known(node.accelerated_networking));
    card.add("link_across", "between VMs", known(link_text(catalog, node.link_across)));
}

}  // namespace

std::string gpu_count_text(double count, const std::string& name) {
    return count >= 1 ? fmt::format("{:g} x {}", count, name) : fmt::format("1/{:.0f} of one {}", 1 / count, name);
}

Card gpu_card(const Catalog& catalog, int accelerator) {
    const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(accelerator)];
    Card card{gpu.name, {}};
    card.add("name", "", gpu.name);
    card.add("vendor", "vendor", known(gpu.vendor));
    card.add("architecture", "architecture", known(gpu.architecture));
    card.add("year", "year", known(gpu.year));
    card.add("memory_gb", "memory", known(gpu.memory.v / 1e9),
             fmt::format("{} GB; {}", number_text(gpu.memory.v / 1e9), usable_text(gpu)));
    card.add("memory_bandwidth_gb_s", "memory bandwidth", known(gpu.memory_bandwidth.v / 1e9),
             with_unit(gpu.memory_bandwidth.v / 1e9, "GB/s"));
    card.add("cuda_cores", "CUDA cores", known(gpu.cuda_cores),
             gpu.cuda_cores > 0 ? format_thousands(gpu.cuda_cores) : "");
    card.add("tensor_cores", "tensor cores", known(gpu.tensor_cores));
    for (int p = 0; p < kPrecisions; ++p) {
        const std::string name(to_string(static_cast<Precision>(p)));
        const bool whole = name.starts_with("int");
        const double peak = gpu.peak[static_cast<std::size_t>(p)].v / 1e12;
        card.add(name + (whole ? "_tops" : "_tflops"), upper(name) + " dense", known(peak),
                 with_unit(peak, whole ? "TOPS" : "TFLOPS"));
    }
    const double ratio = tensor_ratio(gpu);
    card.add("tensor_to_fp32", "FP16/BF16 over FP32", known(ratio),
             ratio > 0 ? fmt::format("{:.1f}x (derived; not 8x for every GPU)", ratio) : "");
    card.add("measured_bf16_tflops", "best measured BF16", known(gpu.measured_bf16.v / 1e12),
             with_unit(gpu.measured_bf16.v / 1e12, "TFLOPS"));
    card.add("scale_up", "between GPUs", known(gpu.scale_up),
             gpu.scale_up_bandwidth.v > 0
                 ? fmt::format("{}, {} GB/s one way, up to {} GPUs", gpu.scale_up,
                               number_text(gpu.scale_up_bandwidth.v / 1e9), gpu.scale_up_domain)
                 : "-");
    card.add("host_bandwidth_gb_s", "to the host", known(gpu.host_bandwidth.v / 1e9),
             with_unit(gpu.host_bandwidth.v / 1e9, "GB/s"));
    card.add("power_w", "power", known(gpu.power.v), with_unit(gpu.power.v, "W"));
    card.add("kind", "", gpu.kind);
    card.add("clouds", "rented only on", gpu.clouds.empty() ? Json() : Json(join(gpu.clouds, ", ")));
    card.add("toolchain", "toolchain", known(gpu.toolchain));
    card.add("lock_in", "ties you", known(gpu.lock_in));
    // Worth naming where the software does not carry over: an AMD GPU runs the same PyTorch.
    const int nvidia = gpu.is_gpu() ? -1 : catalog.nvidia_alternative(accelerator);
    if (nvidia >= 0) {
        const Accelerator& other = catalog.accelerators()[static_cast<std::size_t>(nvidia)];
        card.add("nvidia_alternative", "NVIDIA alternative", other.name,
                 fmt::format("{}: {} GB, {} GB/s, nearest in memory, bandwidth and rate", other.name,
                             number_text(other.memory.v / 1e9), number_text(other.memory_bandwidth.v / 1e9)));
    }
    add_provenance(card, gpu.provenance, gpu.note);
    return card;
}

Card size_card(const Catalog& catalog, int node_type, std::string_view region, std::string_view today) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(node_type)];
    Card card{node.name, {}};
    card.add("name", "", node.name);
    card.add("cloud", "cloud", node.cloud);
    card.add("family", "series", known(node.family));
    card.add("purpose", "purpose", known(node.purpose));
    card.add("vcpus", "vCPU", known(node.vcpus),
             node.cores > 0 ? fmt::format("{} ({} physical cores)", node.vcpus, node.cores) : "");
    card.add("memory_gib", "memory", known(node.memory.v / kGiB), with_unit(node.memory.v / kGiB, "GiB"));
    card.add("cpu", "processor", node.cpu < 0 ? Json() : Json(catalog.cpus()[static_cast<std::size_t>(node.cpu)].name));
    add_gpus(card, catalog, node);
    add_network(card, catalog, node);
    card.add("temp_disk_gib", "temporary disk", known(node.temp_disk_gib), with_unit(node.temp_disk_gib, "GiB"));
    card.add("nvme_gib", "local NVMe", known(node.nvme_gib), with_unit(node.nvme_gib, "GiB"));
    card.add("quota_family", "quota family", known(node.quota_family));
    card.add("generations", "VM generations", known(node.generations));
    card.add("trusted_launch", "Trusted Launch", known(node.trusted_launch));
    const std::string retirement = retirement_text(node.retirement_date, today);
    card.add("retirement_date", "retirement", known(node.retirement_date), retirement);
    card.add("retired", "", !node.retirement_date.empty() && node.retirement_date <= today);
    const Price* price = usual_price(catalog, node_type, region, "linux", Pricing::on_demand);
    card.add(
        "usd_per_hour", "price", price ? Json(price->per_hour.dollars()) : Json(),
        price ? price_line(*price) : fmt::format("unpriced{}", region.empty() ? "" : " in " + std::string(region)));
    card.add("price_region", "", price ? Json(price->region) : Json());
    card.add("price_as_of", "", price ? Json(price->provenance.as_of) : Json());
    const Price* windows = usual_price(catalog, node_type, region, "windows", Pricing::on_demand);
    card.add("windows_usd_per_hour", "price with Windows", windows ? Json(windows->per_hour.dollars()) : Json(),
             windows                 ? price_line(*windows)
             : node.cloud == "azure" ? "not in the catalogue; priced apart"
                                     : "");
    if (node.cloud == "azure") card.add("verify", "verify prices", Json(join(price_pages(), " ")));
    add_provenance(card, node.provenance, node.note);
    return card;
}

Card model_card(const ModelSpec& model) {
    Card card{model.name, {}};
    card.add("name", "", model.name);
    card.add("kind", "kind", to_string(model.kind));
    card.add("family", "family", known(model.family));
    card.add("parameters", "parameters", known(parameters_of(model)), format_count(parameters_of(model)));
    card.add("active_parameters", "active per token", model.moe() ? Json(active_parameters_of(model)) : Json(),
             model.moe() ? format_count(active_parameters_of(model)) : "");
    for (const auto& [key, label, value] : {std::tuple{"layers", "layers", model.layers},
                                            {"hidden", "hidden size", model.hidden},
                                            {"heads", "heads", model.heads},
                                            {"kv_heads", "KV heads", model.kv_heads},
                                            {"ffn", "FFN size", model.ffn},
                                            {"vocabulary", "vocabulary", model.vocabulary},
                                            {"max_sequence", "longest sequence", model.max_sequence},
                                            {"experts", "experts", model.experts},
                                            {"active_experts", "experts per token", model.active_experts}}) {
        card.add(key, label, known(value));
    }
    const auto format = [](const std::optional<Precision>& p) { return p ? Json(to_string(*p)) : Json(); };
    card.add("precision", "published in", format(model.published_precision));
    card.add("training_precision", "trained in", format(model.trained_precision));
    card.add("forward_gflops_per_sample", "forward GFLOP", known(model.forward_flops_per_sample / 1e9),
             model.forward_flops_per_sample > 0
                 ? fmt::format("{} per {}", number_text(model.forward_flops_per_sample / 1e9), model.sample_unit)
                 : "");
    card.add("aliases", "also called", model.aliases.empty() ? Json() : Json(join(model.aliases, ", ")));
    add_provenance(card, model.provenance, {});
    return card;
}

Card image_card(const Image& image) {
    Card card{image.name, {}};
    Json contains = Json::array();
    for (const std::string& item : image.contains) contains.push(item);
    card.add("name", "", image.name);
    card.add("publisher", "publisher", known(image.publisher));
    card.add("urn", "URN", known(image.urn));
    card.add("os", "system", known(image.os));
    card.add("generation", "VM generation", known(image.generation));
    card.add("architecture", "CPU", known(image.architecture));
    card.add("contains", "contains", contains);
    card.add("good_for", "good for", known(image.good_for));
    card.add("orchestrators", "started by",
             image.orchestrators.empty() ? Json() : Json(join(image.orchestrators, ", ")));
    card.add("extend", "more software by", image.extend.empty() ? Json() : Json(join(image.extend, ", ")));
    card.add("terms_to_accept", "plan terms", image.terms.empty() ? Json() : Json(image.terms == "yes"),
             image.terms == "yes"  ? fmt::format("to accept: az vm image terms accept --urn {}", image.urn)
             : image.terms == "no" ? "none"
                                   : "not known: az vm image show --urn URN --query plan");
    add_provenance(card, image.provenance, image.note);
    return card;
}

Card disk_card(const DiskTier& disk) {
    Card card{disk.name, {}};
    card.add("name", "", disk.name);
    card.add("kind", "kind", disk.kind);
    card.add("gib", "size", disk.gib, with_unit(disk.gib, "GiB"));
    card.add("iops", "IOPS", known(disk.iops));
    card.add("mb_s", "throughput", known(disk.mb_s), with_unit(disk.mb_s, "MB/s"));
    card.add("usd_per_month", "price", known(disk.usd_per_month),
             disk.usd_per_month > 0
                 ? fmt::format("${:.2f} a month, {}, {}", disk.usd_per_month, disk.price_region, disk.price_source)
                 : "unpriced, which is not free");
    card.add("verify", "verify prices", "https://azure.microsoft.com/pricing/details/managed-disks/");
    add_provenance(card, disk.provenance, disk.note);
    return card;
}

Card retirement_card(const Retirement& retirement, std::string_view today) {
    Card card{retirement.size.empty() ? retirement.what : retirement.size, {}};
    card.add("what", "part of", retirement.what);
    card.add("size", "", known(retirement.size));
    card.add("date", "retirement", known(retirement.date), retirement_text(retirement.date, today));
    card.add("target", "moves to", known(retirement.target),
             retirement.target.empty() ? "" : retirement.target + " (different hardware: check memory and speed)");
    add_provenance(card, retirement.provenance, retirement.note);
    return card;
}

std::string correction_notes(std::string_view size, const Style& style) {
    std::string text;
    for (const Correction& correction : corrections_of(size)) {
        const std::vector<std::string> lines =
            wrap(fmt::format("often quoted: {}. Right: {} ({})", correction.said, correction.right, correction.source),
                 static_cast<std::size_t>(style.width) - 4);
        for (std::size_t i = 0; i < lines.size(); ++i)
            text += (i == 0 ? "  " + style.warn("!") + " " : "    ") + lines[i] + "\n";
    }
    return text;
}

Json correction_json(std::string_view size) {
    Json array = Json::array();
    for (const Correction& correction : corrections_of(size))
        array.push(Json::object()
                       .set("said", correction.said)
                       .set("right", correction.right)
                       .set("source", correction.source));
    return array;
}

}  // namespace stoker
