// The tables of accelerators, CPUs, links and sizes.
#include "catalog/catalog_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/link_choice.h"
#include "catalog/names.h"

namespace stoker {

void CatalogReader::read_links() {
    const auto bytes = file("catalog/links.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/links.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), bandwidth = rows.required_column("bandwidth_gb_s");
    const int latency = rows.required_column("latency_us"), half = rows.required_column("half_size_bytes");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        Link link{.name = rows.text(name),
                  .bandwidth = BytesPerSecond(rows.number(bandwidth) * kGB),
                  .latency = Seconds(rows.number(latency) * 1e-6),
                  .half_size = Bytes(rows.number(half)),
                  .provenance = provenance.of(rows)};
        rows.check_unique(name);
        if (link.bandwidth.v <= 0) rows.problem(bandwidth, "a link needs a bandwidth");
        catalog_.links_.push_back(std::move(link));
    }
}

void CatalogReader::read_cpus() {
    const auto bytes = file("catalog/cpus.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/cpus.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), vendor = rows.required_column("vendor"),
              ghz = rows.required_column("ghz");
    const int fp32 = rows.required_column("fp32_flop_per_cycle"), bf16 = rows.column("bf16_flop_per_cycle");
    const int stream = rows.column("stream_gb_s_per_node"), socket = rows.column("memory_gb_s_per_socket");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        rows.check_unique(name);
        catalog_.add_cpu(Cpu{.name = rows.text(name),
                             .vendor = rows.text(vendor),
                             .ghz = rows.number(ghz),
                             .fp32_flop_per_cycle = rows.number(fp32),
                             .bf16_flop_per_cycle = rows.number(bf16),
                             .memory_bandwidth_per_core = {},
                             .provenance = provenance.of(rows)});
        cpu_totals_.push_back({rows.number(stream) * kGB, rows.number(socket) * kGB});
    }
}

void CatalogReader::read_accelerators() {
    const auto bytes = file("catalog/accelerators.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/accelerators.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), vendor = rows.required_column("vendor"),
              kind = rows.required_column("kind");
    const int architecture = rows.required_column("architecture"), year = rows.required_column("year");
    const int memory = rows.required_column("memory_gb"), usable = rows.required_column("usable_memory_gib");
    const int bandwidth = rows.required_column("memory_bandwidth_gb_s");
    constexpr std::pair<Precision, std::string_view> peak_names[] = {
        {Precision::fp32, "fp32_tflops"}, {Precision::tf32, "tf32_tflops"}, {Precision::fp16, "fp16_tflops"},
        {Precision::bf16, "bf16_tflops"}, {Precision::fp8, "fp8_tflops"},   {Precision::int8, "int8_tops"},
        {Precision::fp4, "fp4_tflops"}};
    std::array<int, kPrecisions> peaks{};
    peaks.fill(-1);
    for (const auto& [precision, column] : peak_names)
        peaks[static_cast<std::size_t>(precision)] = rows.required_column(column);
    const int measured_bf16 = rows.required_column("measured_bf16_tflops"),
              measured_fp8 = rows.required_column("measured_fp8_tflops");
    const int scale_up = rows.required_column("scale_up"), scale_up_rate = rows.required_column("scale_up_gb_s");
    const int domain = rows.required_column("scale_up_domain"), host = rows.required_column("host_gb_s");
    const int power = rows.required_column("power_w"), idle = rows.required_column("idle_power_w");
    const int sms = rows.required_column("sm_count"), cuda = rows.required_column("cuda_cores"),
              tensor = rows.required_column("tensor_cores");
    const int supports = rows.required_column("supports"), aliases = rows.required_column("aliases"),
              note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    std::vector<std::pair<std::string, int>> all_aliases;
    while (rows.next()) {
        Accelerator a;
        a.name = rows.text(name), a.vendor = rows.text(vendor), a.kind = rows.text(kind),
        a.architecture = rows.text(architecture);
        if (a.name.empty()) rows.problem(name, "is empty: every row needs a name of its own");
        rows.check_one_of(kind, {"gpu", "tpu", "asic", "fpga"});
        a.year = rows.integer(year);
        a.memory = Bytes(rows.number(memory) * kGB);
        // Where no driver figure was read: 97 % of the nominal memory, which vendors give in units of 2^30 although
        // they print GB.
        a.usable_memory = Bytes((rows.empty(usable) ? 0.97 * rows.number(memory) : rows.number(usable)) * kGiB);
        a.memory_bandwidth = BytesPerSecond(rows.number(bandwidth) * kGB);
        for (std::size_t p = 0; p < kPrecisions; ++p) a.peak[p] = FlopsPerSecond(rows.number(peaks[p]) * 1e12);
        a.measured_bf16 = FlopsPerSecond(rows.number(measured_bf16) * 1e12);
        a.measured_fp8 = FlopsPerSecond(rows.number(measured_fp8) * 1e12);
        a.scale_up = rows.text(scale_up);
        a.scale_up_bandwidth = BytesPerSecond(rows.number(scale_up_rate) * kGB);
        a.scale_up_domain = std::max(1, rows.integer(domain));
        a.host_bandwidth = BytesPerSecond(rows.number(host) * kGB);
        a.power = Watts(rows.number(power)), a.idle_power = Watts(rows.number(idle));
        a.sm_count = rows.integer(sms), a.cuda_cores = rows.integer(cuda), a.tensor_cores = rows.integer(tensor);
        for (const std::string& word : rows.list(supports)) {
            // fp64 and fp6 stand in the table for people; nothing is computed with them.
            if (const auto p = precision_from(word)) {
                a.supports |= 1u << static_cast<int>(*p);
            } else if (word != "fp64" && word != "fp6") {
                rows.problem(supports, fmt::format("no precision named {}{}", printable(word, 40),
                                                   did_you_mean(word, precision_names())));
            }
        }
        // Tensor cores of Turing and Ampere run 4-bit integers at twice the 8-bit rate; nobody tabulates it.
        if (a.has(Precision::int4))
            a.peak[static_cast<std::size_t>(Precision::int4)] = a.peak[static_cast<std::size_t>(Precision::int8)] * 2;
        a.aliases = rows.list(aliases);
        a.provenance = provenance.of(rows);
        a.note = rows.text(note);
        const auto folded = fold_accelerator(a.name);
        if (catalog_.accelerator_index_.contains(folded)) rows.problem(name, "another accelerator has this name");
        for (const std::string& alias : a.aliases)
            all_aliases.emplace_back(fold_accelerator(alias), static_cast<int>(catalog_.accelerators_.size()));
        catalog_.accelerator_index_.emplace(folded, static_cast<int>(catalog_.accelerators_.size()));
        catalog_.accelerators_.push_back(std::move(a));
    }
    // After all names, so that an alias never hides a name.
    for (auto& [alias, index] : all_aliases) catalog_.accelerator_index_.emplace(std::move(alias), index);
}

// What is true of every chip of an architecture: who rents it, what it is programmed with, what ties to it.
void CatalogReader::read_toolchains() {
    const auto bytes = file("catalog/toolchains.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/toolchains.tsv", *bytes, problems_);
    const int architecture = rows.required_column("architecture"), clouds = rows.required_column("clouds"),
              toolchain = rows.required_column("toolchain"), lock_in = rows.required_column("lock_in");
    while (rows.next()) {
        bool known = false;
        for (Accelerator& a : catalog_.accelerators_) {
            if (a.architecture != rows.cell(architecture)) continue;
            known = true;
            a.clouds = rows.list(clouds);
            a.toolchain = rows.text(toolchain), a.lock_in = rows.text(lock_in);
        }
        if (!known && !catalog_.accelerators_.empty())
            rows.problem(architecture, "no accelerator is of this architecture");
    }
}

// What engines keep weights in on a generation that has no units for it.
void CatalogReader::read_weight_formats() {
    const auto bytes = file("catalog/weight_formats.tsv", false);
    if (!bytes) {  // a catalogue of before: every GPU widened whatever was narrow
        for (Accelerator& a : catalog_.accelerators_)
            for (const Precision p : {Precision::fp8, Precision::int8, Precision::int4, Precision::fp4})
                a.weight_formats |= 1u << static_cast<int>(p);
        return;
    }
    TsvRows rows("catalog/weight_formats.tsv", *bytes, problems_);
    const int architecture = rows.required_column("architecture"), formats = rows.required_column("formats");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        std::uint32_t mask = 0;
        for (const std::string& word : rows.list(formats)) {
            if (const auto p = precision_from(word))
                mask |= 1u << static_cast<int>(*p);
            else
                rows.problem(formats, fmt::format("no precision named {}", printable(word, 40)));
        }
        provenance.of(rows);
        bool known = false;
        for (Accelerator& a : catalog_.accelerators_)
            if (a.architecture == rows.cell(architecture)) a.weight_formats = mask, known = true;
        if (!known && !catalog_.accelerators_.empty())
            rows.problem(architecture, "no accelerator is of this architecture");
    }
}

// What the owner of a GPU may cut it into.
void CatalogReader::read_mig_profiles() {
    const auto bytes = file("catalog/mig_profiles.tsv", false);
    if (!bytes) return;  // a catalogue of before: nothing is cut
    TsvRows rows("catalog/mig_profiles.tsv", *bytes, problems_);
    const int accelerator = rows.required_column("accelerator"), profile = rows.required_column("profile"),
              sms = rows.required_column("sms"), memory = rows.required_column("memory_gib"),
              most = rows.required_column("most");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        provenance.of(rows);
        const auto found = std::find_if(catalog_.accelerators_.begin(), catalog_.accelerators_.end(),
                                        [&](const Accelerator& a) { return a.name == rows.cell(accelerator); });
        if (found == catalog_.accelerators_.end()) {
            if (!catalog_.accelerators_.empty()) rows.problem(accelerator, "no accelerator is called so");
            continue;
        }
        found->mig.push_back({.name = rows.text(profile),
                              .sms = static_cast<int>(rows.number(sms)),
                              .memory = Bytes(rows.number(memory) * kGiB),
                              .most = static_cast<int>(rows.number(most))});
    }
}

int CatalogReader::cpu_named(std::string_view name) const {
    const auto at =
        std::find_if(catalog_.cpus_.begin(), catalog_.cpus_.end(), [&](const Cpu& cpu) { return cpu.name == name; });
    return at == catalog_.cpus_.end() ? -1 : static_cast<int>(at - catalog_.cpus_.begin());
}

void CatalogReader::read_sizes(const CatalogFile& sizes) {
    TsvRows rows(sizes.path, sizes.bytes, problems_);
    const int name = rows.required_column("name"), cloud = rows.required_column("cloud"),
              family = rows.required_column("family");
    const int purpose = rows.required_column("purpose"), status = rows.required_column("status"),
              retires = rows.required_column("retirement_date");
    const int quota = rows.required_column("quota_family"), vcpus = rows.required_column("vcpus"),
              memory = rows.required_column("memory_gib");
    const int accelerator = rows.required_column("accelerator"), count = rows.required_column("accelerators");
    const int part = rows.required_column("accelerator_memory_gib_each"), temp = rows.required_column("temp_disk_gib"),
              nvme = rows.required_column("nvme_gib");
    const int nics = rows.required_column("nics"), ethernet = rows.required_column("ethernet_gbps"),
              rdma = rows.required_column("rdma");
    const int rdma_vm = rows.required_column("rdma_gbps_per_vm"), rdma_gpu = rows.required_column("rdma_gbps_per_gpu");
    const int generation = rows.required_column("infiniband"), gpu_link = rows.required_column("gpu_link"),
              domain = rows.required_column("scale_up_domain");
    const int generations = rows.required_column("generations"), trusted = rows.required_column("trusted_launch");
    const int accelerated = rows.required_column("accelerated_networking"), cpu = rows.required_column("cpu"),
              cores = rows.required_column("cores");
    const int note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        NodeType n;
        n.name = rows.text(name), n.cloud = rows.text(cloud), n.family = rows.text(family),
        n.purpose = rows.text(purpose);
        n.status = rows.text(status), n.retirement_date = rows.text(retires), n.quota_family = rows.text(quota);
        n.vcpus = rows.integer(vcpus), n.cores = rows.integer(cores);
        n.memory = Bytes(rows.number(memory) * kGiB);
        n.temp_disk_gib = rows.number(temp), n.nvme_gib = rows.number(nvme);
        n.nics = rows.integer(nics), n.ethernet_gbps = rows.number(ethernet);
        n.rdma = rows.text(rdma), n.rdma_generation = rows.text(generation);
        n.rdma_gbps_per_node = rows.number(rdma_vm), n.rdma_gbps_per_gpu = rows.number(rdma_gpu);
        n.scale_up_domain = std::max(1, rows.integer(domain));
        n.generations = rows.text(generations), n.trusted_launch = rows.text(trusted),
        n.accelerated_networking = rows.text(accelerated);
        if (n.name.empty()) rows.problem(name, "is empty: every row needs a name of its own");
        if (n.cloud.empty()) rows.problem(cloud, "a size belongs to a cloud");
        rows.check_date(retires);
        rows.check_one_of(rdma, {"infiniband", "efa", "roce", "none", ""});
        n.provenance = provenance.of(rows);
        n.note = rows.text(note);
        if (!rows.empty(accelerator)) {
            const auto index = catalog_.find_accelerator(rows.cell(accelerator));
            if (index) {
                n.accelerator = *index;
                n.accelerators = rows.number(count);
                // A fraction of a GPU has its own memory; a whole one what its driver reports.
                n.accelerator_memory = n.accelerators < 1
                                           ? Bytes(rows.number(part) * kGiB)
                                           : catalog_.accelerators_[static_cast<std::size_t>(*index)].usable_memory;
                if (n.accelerators > 0 && n.accelerators < 1 && rows.empty(part))
                    rows.problem(part, "a fraction of a GPU needs the memory of that part");
            } else if (!catalog_.accelerators_.empty()) {  // without a table of them that is the problem
                rows.problem(accelerator, index.error().message());
            }
        }
        if (!rows.empty(cpu)) {
            n.cpu = cpu_named(rows.cell(cpu));
            if (n.cpu < 0 && !catalog_.cpus_.empty())
                rows.problem(cpu, fmt::format("cpus.tsv has no {}", rows.cell(cpu)));
        }
        choose_links(n, rows.cell(gpu_link), catalog_);
        if (catalog_.node_type_index_.contains(fold_vm_size(n.name)))
            rows.problem(name, "another size has this name, but for case and separators");
        catalog_.add_node_type(std::move(n));
    }
}

// A core's share of the memory bandwidth: measured STREAM over the cores of the largest size where a whole node was
// measured, else 80 % of the socket's nominal rate (the usual STREAM fraction) over the cores of a typical socket of
// that vendor and era.
void CatalogReader::share_memory_bandwidth() {
    for (std::size_t i = 0; i < catalog_.cpus_.size(); ++i) {
        Cpu& cpu = catalog_.cpus_[i];
        int most_cores = 0;
        for (const NodeType& node : catalog_.node_types_) {
            if (node.cpu == static_cast<int>(i)) most_cores = std::max(most_cores, node.cores);
        }
        const double typical = cpu.vendor == "Intel" ? 36 : cpu.vendor == "NVIDIA" ? 72 : 64;
        if (cpu_totals_[i].node_stream > 0 && most_cores > 0) {
            cpu.memory_bandwidth_per_core = BytesPerSecond(cpu_totals_[i].node_stream / most_cores);
        } else {
            cpu.memory_bandwidth_per_core = BytesPerSecond(0.8 * cpu_totals_[i].socket / typical);
        }
    }
}

}  // namespace stoker
