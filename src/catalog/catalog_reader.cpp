// From the data files to a Catalog. Every problem of every file is reported at once: whoever edits the tables fixes them together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/embedded.h"
#include "catalog/field_reader.h"
#include "catalog/link_choice.h"
#include "catalog/names.h"
#include "catalog/tsv_rows.h"

namespace stoker {

class CatalogReader {
public:
    explicit CatalogReader(std::span<const CatalogFile> files) : files_(files) {}
    Result<Catalog> read();

private:
    // The bytes of a file; a problem, and nothing, when a file that has to be there is not.
    std::optional<std::string_view> file(std::string_view path, bool required = true);
    std::vector<const CatalogFile*> files_under(std::string_view folder, std::string_view name) const;

    void read_version();
    void read_constants();
    void read_links();
    void read_cpus();
    void read_accelerators();
    void read_sizes(const CatalogFile& sizes);
    void read_spot_ratios();
    void read_regions();
    void read_prices(const CatalogFile& prices);
    void read_retirements();
    void read_images();
    void read_models();
    void share_memory_bandwidth();
    void drop_undiscounted_spot();

    int cpu_named(std::string_view name) const;

    std::span<const CatalogFile> files_;
    Catalog catalog_;
    Problems problems_;
    // What cpus.tsv says of a whole socket and a whole node, until the sizes tell the number of cores.
    struct CpuTotals {
        double node_stream = 0, socket = 0;
    };
    std::vector<CpuTotals> cpu_totals_;
    std::vector<Price> prices_read_;
};

namespace {

struct ProvenanceColumns {
    explicit ProvenanceColumns(TsvRows& rows) : source(rows.required_column("source")), as_of(rows.column("as_of")) {}
    Provenance of(const TsvRows& rows) const { return {rows.text(source), rows.text(as_of)}; }
    int source, as_of;
};

std::optional<Pricing> pricing_named(std::string_view text) {
    for (Pricing p : {Pricing::on_demand, Pricing::spot, Pricing::reserved_1y, Pricing::reserved_3y, Pricing::owned}) {
        if (text == to_string(p)) return p;
    }
    return std::nullopt;
}

std::optional<ModelKind> kind_named(std::string_view text) {
    for (ModelKind k : {ModelKind::decoder, ModelKind::encoder, ModelKind::encoder_decoder, ModelKind::cnn, ModelKind::vit, ModelKind::diffusion}) {
        if (text == to_string(k)) return k;
    }
    return std::nullopt;
}

// Each of these models alternates windowed layers with full ones, so the window bounds neither its cache nor its attention.
bool window_on_some_layers_only(std::string_view model_name) {
    return model_name.starts_with("gemma") || model_name.starts_with("gpt-oss") || model_name.starts_with("llama-4");
}

}  // namespace

std::optional<std::string_view> CatalogReader::file(std::string_view path, bool required) {
    for (const CatalogFile& f : files_) {
        if (f.path == path) return f.bytes;
    }
    if (required) problems_.push_back(Problem{fmt::format("the catalogue has no {}", path), {}, {}});
    return std::nullopt;
}

std::vector<const CatalogFile*> CatalogReader::files_under(std::string_view folder, std::string_view name) const {
    std::vector<const CatalogFile*> found;
    for (const CatalogFile& f : files_) {
        // curated/ holds what the tables are made from, not facts of its own.
        if (f.path.starts_with(folder) && f.path.ends_with(name) && f.path.find("/curated/") == std::string::npos) found.push_back(&f);
    }
    std::sort(found.begin(), found.end(), [](const CatalogFile* a, const CatalogFile* b) { return a->path < b->path; });
    return found;
}

Result<Catalog> CatalogReader::read() {
    read_version();
    read_constants();
    read_links();
    read_cpus();
    read_accelerators();
    for (const CatalogFile* sizes : files_under("catalog/", "/sizes.tsv")) read_sizes(*sizes);
    share_memory_bandwidth();
    read_spot_ratios();
    read_regions();
    for (const CatalogFile* prices : files_under("catalog/prices/", ".tsv")) read_prices(*prices);
    catalog_.replace_prices(std::move(prices_read_));
    read_retirements();
    read_images();
    read_models();
    if (!problems_.empty()) return error_of(std::move(problems_)).while_doing("reading the catalogue");
    drop_undiscounted_spot();
    catalog_.estimate_missing_spot_prices();
    return std::move(catalog_);
}

void CatalogReader::read_version() {
    const auto bytes = file("catalog/VERSION");
    if (!bytes) return;
    const auto lines = split_lines(*bytes);
    if (!lines.empty()) catalog_.version = std::string(trim(lines[0]));
    if (lines.size() > 1) catalog_.as_of = std::string(trim(lines[1]));
    if (catalog_.version.empty()) {
        problems_.push_back(Problem{"the first line of VERSION names the version, such as 2026-11", {}, SourcePos{"catalog/VERSION", 1, 1}});
    }
}

void CatalogReader::read_constants() {
    const auto bytes = file("catalog/defaults.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/defaults.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), value = rows.required_column("value"), unit = rows.required_column("unit");
    const int low = rows.column("low"), high = rows.column("high"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        Constant c{.name = rows.text(name), .unit = rows.text(unit), .note = rows.text(note), .provenance = provenance.of(rows)};
        c.value = rows.number(value);
        c.low = rows.empty(low) ? c.value : rows.number(low);
        c.high = rows.empty(high) ? c.value : rows.number(high);
        if (rows.empty(value)) rows.problem(value, "a constant needs a value");
        if (c.low > c.value || c.high < c.value) rows.problem(value, "lies outside of low to high");
        catalog_.constants_.push_back(std::move(c));
    }
    std::sort(catalog_.constants_.begin(), catalog_.constants_.end(), [](const Constant& a, const Constant& b) { return a.name < b.name; });
}

void CatalogReader::read_links() {
    const auto bytes = file("catalog/links.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/links.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), bandwidth = rows.required_column("bandwidth_gb_s");
    const int latency = rows.required_column("latency_us"), half = rows.required_column("half_size_bytes");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        Link link{.name = rows.text(name), .bandwidth = BytesPerSecond(rows.number(bandwidth) * kGB), .latency = Seconds(rows.number(latency) * 1e-6),
                  .half_size = Bytes(rows.number(half)), .provenance = provenance.of(rows)};
        if (link.bandwidth.v <= 0) rows.problem(bandwidth, "a link needs a bandwidth");
        catalog_.links_.push_back(std::move(link));
    }
}

void CatalogReader::read_cpus() {
    const auto bytes = file("catalog/cpus.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/cpus.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), vendor = rows.required_column("vendor"), ghz = rows.required_column("ghz");
    const int fp32 = rows.required_column("fp32_flop_per_cycle"), bf16 = rows.column("bf16_flop_per_cycle");
    const int stream = rows.column("stream_gb_s_per_node"), socket = rows.column("memory_gb_s_per_socket");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        catalog_.add_cpu(Cpu{.name = rows.text(name), .vendor = rows.text(vendor), .ghz = rows.number(ghz), .fp32_flop_per_cycle = rows.number(fp32),
                             .bf16_flop_per_cycle = rows.number(bf16), .memory_bandwidth_per_core = {}, .provenance = provenance.of(rows)});
        cpu_totals_.push_back({rows.number(stream) * kGB, rows.number(socket) * kGB});
    }
}

void CatalogReader::read_accelerators() {
    const auto bytes = file("catalog/accelerators.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/accelerators.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), vendor = rows.required_column("vendor"), kind = rows.required_column("kind");
    const int architecture = rows.required_column("architecture"), year = rows.required_column("year");
    const int memory = rows.required_column("memory_gb"), usable = rows.required_column("usable_memory_gib");
    const int bandwidth = rows.required_column("memory_bandwidth_gb_s");
    constexpr std::pair<Precision, std::string_view> peak_names[] = {
        {Precision::fp32, "fp32_tflops"}, {Precision::tf32, "tf32_tflops"}, {Precision::fp16, "fp16_tflops"}, {Precision::bf16, "bf16_tflops"},
        {Precision::fp8, "fp8_tflops"},   {Precision::int8, "int8_tops"},   {Precision::fp4, "fp4_tflops"}};
    std::array<int, kPrecisions> peaks{};
    peaks.fill(-1);
    for (const auto& [precision, column] : peak_names) peaks[static_cast<std::size_t>(precision)] = rows.required_column(column);
    const int measured_bf16 = rows.required_column("measured_bf16_tflops"), measured_fp8 = rows.required_column("measured_fp8_tflops");
    const int scale_up = rows.required_column("scale_up"), scale_up_rate = rows.required_column("scale_up_gb_s");
    const int domain = rows.required_column("scale_up_domain"), host = rows.required_column("host_gb_s");
    const int power = rows.required_column("power_w"), idle = rows.required_column("idle_power_w");
    const int sms = rows.required_column("sm_count"), cuda = rows.required_column("cuda_cores"), tensor = rows.required_column("tensor_cores");
    const int supports = rows.required_column("supports"), aliases = rows.required_column("aliases"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    std::vector<std::pair<std::string, int>> all_aliases;
    while (rows.next()) {
        Accelerator a;
        a.name = rows.text(name), a.vendor = rows.text(vendor), a.kind = rows.text(kind), a.architecture = rows.text(architecture);
        a.year = rows.integer(year);
        a.memory = Bytes(rows.number(memory) * kGB);
        // Where no driver figure was read: 97 % of the nominal memory, which vendors give in units of 2^30 although they print GB.
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
            if (const auto p = precision_from(word)) a.supports |= 1u << static_cast<int>(*p);
        }
        // Tensor cores of Turing and Ampere run 4-bit integers at twice the 8-bit rate; nobody tabulates it.
        if (a.has(Precision::int4)) a.peak[static_cast<std::size_t>(Precision::int4)] = a.peak[static_cast<std::size_t>(Precision::int8)] * 2;
        a.aliases = rows.list(aliases);
        a.provenance = provenance.of(rows);
        a.note = rows.text(note);
        const auto folded = fold_accelerator(a.name);
        if (catalog_.accelerator_index_.contains(folded)) rows.problem(name, "another accelerator has this name");
        for (const std::string& alias : a.aliases) all_aliases.emplace_back(fold_accelerator(alias), static_cast<int>(catalog_.accelerators_.size()));
        catalog_.accelerator_index_.emplace(folded, static_cast<int>(catalog_.accelerators_.size()));
        catalog_.accelerators_.push_back(std::move(a));
    }
    // After all names, so that an alias never hides a name.
    for (auto& [alias, index] : all_aliases) catalog_.accelerator_index_.emplace(std::move(alias), index);
}

int CatalogReader::cpu_named(std::string_view name) const {
    const auto at = std::find_if(catalog_.cpus_.begin(), catalog_.cpus_.end(), [&](const Cpu& cpu) { return cpu.name == name; });
    return at == catalog_.cpus_.end() ? -1 : static_cast<int>(at - catalog_.cpus_.begin());
}

void CatalogReader::read_sizes(const CatalogFile& sizes) {
    TsvRows rows(sizes.path, sizes.bytes, problems_);
    const int name = rows.required_column("name"), cloud = rows.required_column("cloud"), family = rows.required_column("family");
    const int purpose = rows.required_column("purpose"), status = rows.required_column("status"), retires = rows.required_column("retirement_date");
    const int quota = rows.required_column("quota_family"), vcpus = rows.required_column("vcpus"), memory = rows.required_column("memory_gib");
    const int accelerator = rows.required_column("accelerator"), count = rows.required_column("accelerators");
    const int part = rows.required_column("accelerator_memory_gib_each"), temp = rows.required_column("temp_disk_gib"), nvme = rows.required_column("nvme_gib");
    const int nics = rows.required_column("nics"), ethernet = rows.required_column("ethernet_gbps"), rdma = rows.required_column("rdma");
    const int rdma_vm = rows.required_column("rdma_gbps_per_vm"), rdma_gpu = rows.required_column("rdma_gbps_per_gpu");
    const int generation = rows.required_column("infiniband"), gpu_link = rows.required_column("gpu_link"), domain = rows.required_column("scale_up_domain");
    const int generations = rows.required_column("generations"), trusted = rows.required_column("trusted_launch");
    const int accelerated = rows.required_column("accelerated_networking"), cpu = rows.required_column("cpu"), cores = rows.required_column("cores");
    const int note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        NodeType n;
        n.name = rows.text(name), n.cloud = rows.text(cloud), n.family = rows.text(family), n.purpose = rows.text(purpose);
        n.status = rows.text(status), n.retirement_date = rows.text(retires), n.quota_family = rows.text(quota);
        n.vcpus = rows.integer(vcpus), n.cores = rows.integer(cores);
        n.memory = Bytes(rows.number(memory) * kGiB);
        n.temp_disk_gib = rows.number(temp), n.nvme_gib = rows.number(nvme);
        n.nics = rows.integer(nics), n.ethernet_gbps = rows.number(ethernet);
        n.rdma = rows.text(rdma), n.rdma_generation = rows.text(generation);
        n.rdma_gbps_per_node = rows.number(rdma_vm), n.rdma_gbps_per_gpu = rows.number(rdma_gpu);
        n.scale_up_domain = std::max(1, rows.integer(domain));
        n.generations = rows.text(generations), n.trusted_launch = rows.text(trusted), n.accelerated_networking = rows.text(accelerated);
        n.provenance = provenance.of(rows);
        n.note = rows.text(note);
        if (!rows.empty(accelerator)) {
            const auto index = catalog_.find_accelerator(rows.cell(accelerator));
            if (index) {
                n.accelerator = *index;
                n.accelerators = rows.number(count);
                // A fraction of a GPU has its own memory; a whole one what its driver reports.
                n.accelerator_memory = n.accelerators < 1 ? Bytes(rows.number(part) * kGiB) : catalog_.accelerators_[static_cast<std::size_t>(*index)].usable_memory;
                if (n.accelerators > 0 && n.accelerators < 1 && rows.empty(part)) rows.problem(part, "a fraction of a GPU needs the memory of that part");
            } else {
                rows.problem(accelerator, index.error().message());
            }
        }
        if (!rows.empty(cpu)) {
            n.cpu = cpu_named(rows.cell(cpu));
            if (n.cpu < 0) rows.problem(cpu, fmt::format("cpus.tsv has no {}", rows.cell(cpu)));
        }
        choose_links(n, rows.cell(gpu_link), catalog_);
        if (catalog_.node_type_index_.contains(fold_vm_size(n.name))) rows.problem(name, "another size has this name, but for case and separators");
        catalog_.add_node_type(std::move(n));
    }
}

// A core's share of the memory bandwidth: measured STREAM over the cores of the largest size where a whole node was measured, else
// 80 % of the socket's nominal rate (the usual STREAM fraction) over the cores of a typical socket of that vendor and era.
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

void CatalogReader::read_spot_ratios() {
    const auto bytes = file("catalog/azure/spot_ratios.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/spot_ratios.tsv", *bytes, problems_);
    const int accelerator = rows.required_column("accelerator"), low = rows.required_column("low_ratio"), high = rows.required_column("high_ratio");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        if (rows.empty(accelerator)) continue;  // a bracket for CPU sizes
        const auto index = catalog_.find_accelerator(rows.cell(accelerator));
        if (!index) {
            rows.problem(accelerator, index.error().message());
            continue;
        }
        const SpotRatio ratio{*index, rows.number(low), rows.number(high), provenance.of(rows)};
        if (ratio.low <= 0 || ratio.high < ratio.low || ratio.high >= 1) rows.problem(low, "a spot price lies between nothing and the list price");
        catalog_.spot_ratios_.push_back(ratio);
    }
}

void CatalogReader::read_regions() {
    const auto bytes = file("catalog/azure/regions.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/regions.tsv", *bytes, problems_);
    const int region = rows.required_column("region");
    while (rows.next()) catalog_.note_region("azure", rows.cell(region));
}

// Nine thousand rows: the size and the region of a row are mostly those of the row before, or one that has been seen.
void CatalogReader::read_prices(const CatalogFile& prices) {
    TsvRows rows(prices.path, prices.bytes, problems_);
    const int size = rows.required_column("size"), region = rows.required_column("region"), os = rows.required_column("os");
    const int pricing = rows.required_column("pricing"), usd = rows.required_column("usd_per_hour");
    const ProvenanceColumns provenance(rows);
    prices_read_.reserve(prices_read_.size() + prices.bytes.size() / 64);
    std::string_view last_size;
    int node_type = -1;
    while (rows.next()) {
        if (rows.cell(size) != last_size) {
            last_size = rows.cell(size);
            const auto known = catalog_.node_type_index_.find(fold_vm_size(last_size));
            node_type = known == catalog_.node_type_index_.end() ? -1 : known->second;
            // Price lists are wider than the size tables: constrained-core variants, previews. Without a shape nothing can be planned.
            if (node_type < 0) catalog_.priced_without_shape_.emplace_back(last_size);
        }
        if (node_type < 0) continue;
        const auto kind = pricing_named(rows.cell(pricing));
        if (!kind) {
            rows.problem(pricing, "on-demand, spot, reserved-1y, reserved-3y and owned are known");
            continue;
        }
        const double dollars = rows.number(usd);
        if (dollars <= 0) rows.problem(usd, "a price is above zero; leave the row out when it is not known");
        prices_read_.push_back(Price{.node_type = node_type, .region = rows.text(region), .os = rows.text(os), .pricing = *kind,
                             .per_hour = Usd::from_double(dollars), .low = dollars, .high = dollars, .provenance = provenance.of(rows)});
    }
    auto& shapeless = catalog_.priced_without_shape_;
    std::sort(shapeless.begin(), shapeless.end());
    shapeless.erase(std::unique(shapeless.begin(), shapeless.end()), shapeless.end());
}

// A spot price equal to the list price means that no discount is listed, not that spot costs the same.
void CatalogReader::drop_undiscounted_spot() {
    std::erase_if(catalog_.prices_, [&](const Price& p) {
        if (p.pricing != Pricing::spot) return false;
        const Price* list = catalog_.price(p.node_type, p.region, p.os, Pricing::on_demand);
        return list != nullptr && list->per_hour <= p.per_hour;
    });
}

void CatalogReader::read_retirements() {
    const auto bytes = file("catalog/azure/retirements.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/retirements.tsv", *bytes, problems_);
    const int what = rows.required_column("what"), kind = rows.required_column("kind"), size = rows.required_column("size");
    const int date = rows.required_column("date"), status = rows.required_column("status"), target = rows.column("target"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        catalog_.retirements_.push_back(Retirement{rows.text(what), rows.text(kind), rows.text(size), rows.text(date), rows.text(status),
                                                   rows.text(target), rows.text(note), provenance.of(rows)});
    }
}

void CatalogReader::read_images() {
    const auto bytes = file("catalog/azure/images.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/images.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), publisher = rows.required_column("publisher"), urn = rows.required_column("urn");
    const int os = rows.required_column("os"), generation = rows.column("generation"), contains = rows.column("contains");
    const int good_for = rows.column("good_for"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        catalog_.images_.push_back(Image{rows.text(name), rows.text(publisher), rows.text(urn), rows.text(os), rows.text(generation),
                                         rows.text(good_for), rows.text(note), rows.list(contains), provenance.of(rows)});
    }
}

void CatalogReader::read_models() {
    const auto bytes = file("models/models.tsv");
    if (!bytes) return;
    TsvRows rows("models/models.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), kind = rows.required_column("kind"), family = rows.required_column("family");
    const int aliases = rows.required_column("aliases"), parameters = rows.required_column("parameters");
    const int gated = rows.required_column("gated"), tied = rows.required_column("tied_embeddings"), norm = rows.required_column("norm");
    const int biases = rows.required_column("biases"), attention = rows.required_column("attention");
    const int forward = rows.required_column("forward_flops_per_sample"), activations = rows.required_column("activation_bytes_per_sample_fp16");
    const int unit = rows.required_column("sample_unit"), encoder_layers = rows.column("encoder_layers"), extra = rows.column("extra_parameters");
    using M = ModelSpec;
    constexpr std::pair<std::string_view, int M::*> numbers[] = {
        {"layers", &M::layers}, {"hidden", &M::hidden}, {"heads", &M::heads}, {"kv_heads", &M::kv_heads}, {"head_dim", &M::head_dim}, {"ffn", &M::ffn},
        {"vocabulary", &M::vocabulary}, {"max_sequence", &M::max_sequence}, {"experts", &M::experts}, {"active_experts", &M::active_experts},
        {"expert_ffn", &M::expert_ffn}, {"shared_expert_ffn", &M::shared_expert_ffn}, {"dense_layers", &M::dense_layers}, {"q_lora_rank", &M::q_lora_rank},
        {"kv_lora_rank", &M::kv_lora_rank}, {"rope_head_dim", &M::rope_head_dim}, {"nope_head_dim", &M::nope_head_dim}, {"v_head_dim", &M::v_head_dim},
        {"sliding_window", &M::sliding_window}, {"learned_positions", &M::learned_positions}};
    std::array<int, std::size(numbers)> columns{};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = rows.required_column(numbers[i].first);
    const ProvenanceColumns provenance(rows);
    std::vector<std::pair<std::string, int>> all_aliases;
    while (rows.next()) {
        ModelSpec m;
        m.name = rows.text(name), m.family = rows.text(family);
        const auto known = kind_named(rows.cell(kind));
        if (!known) rows.problem(kind, "decoder, encoder, encoder-decoder, cnn, vit and diffusion are known");
        m.kind = known.value_or(ModelKind::decoder);
        m.aliases = rows.list(aliases);
        m.published_parameters = rows.number(parameters);
        for (std::size_t i = 0; i < columns.size(); ++i) m.*numbers[i].second = rows.integer(columns[i]);
        m.gated = rows.flag(gated), m.tied_embeddings = rows.flag(tied), m.biases = rows.flag(biases);
        m.layer_norm = rows.cell(norm) == "layernorm";
        m.attention = rows.cell(attention) == "mla" ? AttentionKind::mla : rows.cell(attention) == "mha" ? AttentionKind::mha : AttentionKind::gqa;
        m.extra_parameters = rows.number(extra);
        // The table gives the stacks of an encoder-decoder apart; `layers` of a ModelSpec counts both.
        if (m.kind == ModelKind::encoder_decoder) {
            m.decoder_layers = m.layers;
            m.layers += rows.integer(encoder_layers);
        }
        if (window_on_some_layers_only(m.name)) m.sliding_window = 0;
        m.forward_flops_per_sample = rows.number(forward), m.activation_bytes_per_sample = rows.number(activations);
        if (!rows.empty(unit)) m.sample_unit = rows.text(unit);
        m.provenance = provenance.of(rows);
        if (m.transformer() && (m.heads <= 0 || m.head_dim <= 0 || m.kv_heads <= 0)) rows.problem(name, "a transformer has heads, kv_heads and head_dim");
        const int index = static_cast<int>(catalog_.models_.size());
        if (!catalog_.model_index_.emplace(fold_name(m.name), index).second) rows.problem(name, "another model has this name");
        for (const std::string& alias : m.aliases) all_aliases.emplace_back(fold_name(alias), index);
        catalog_.models_.push_back(std::move(m));
    }
    for (auto& [alias, index] : all_aliases) catalog_.model_index_.emplace(std::move(alias), index);
}

Result<Catalog> Catalog::from_files(std::span<const CatalogFile> files) { return CatalogReader(files).read(); }

Result<Catalog> Catalog::embedded() {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& file : embedded_files()) files.push_back({std::string(file.path), file.bytes});
    TRY(Catalog catalog, from_files(files));
    catalog.origin = "embedded";
    return catalog;
}

}  // namespace stoker
