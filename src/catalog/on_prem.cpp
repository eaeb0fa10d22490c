// An on-prem node as its owner describes it in YAML.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/azure_answers.h"
#include "catalog/field_reader.h"
#include "catalog/link_choice.h"

namespace stoker {
namespace {

constexpr const char* kHostAssumed = "vcpus and memory are not both given";
constexpr double kHoursPerYear = 8766;  // with a quarter of a leap day

// What people call what has a key here. `interconnect: infiniband-ndr` is no spelling of any.
struct KeyWord {
    std::string_view words, key;
};
constexpr KeyWord kKeyWords[] = {
    {"cpus vcpu ncpus cpu_count num_cpus threads", "vcpus"},
    {"ram mem memory_gib memory_gb", "memory"},
    {"gpu_count num_gpus ngpus gpus_per_node", "gpus"},
    {"gpu_model gpu_type accelerator device", "gpu"},
    {"nodes quantity number machines hosts", "count"},
    {"hostname host id", "name"},
    {"interconnect infiniband ib fabric roce", "rdma, as in rdma: NDR, or rdma: {gbps_per_gpu: 400, kind: roce}"},
    {"ethernet network network_gbps nic nic_gbps bandwidth", "ethernet_gbps, as in ethernet_gbps: 100"},
    {"price cost hourly price_usd_per_hour", "price_per_hour"},
};

std::optional<std::string_view> key_called(std::string_view word) {
    for (const KeyWord& one : kKeyWords)
        for (const std::string_view known : split(one.words, ' '))
            if (equals_ignore_case(word, known)) return one.key;
    return std::nullopt;
}

// Reads a quantity that people write with a unit ("80GB", "$250k"); a bare number is taken in `bare_unit`.
class OnPremReader {
public:
    OnPremReader(const Node& node, Catalog& catalog) : node_(node), in_(node, problems_), catalog_(catalog) {}

    Result<int> read() {
        check_keys(node_, {"name", "gpu", "gpus", "vcpus", "cores", "memory", "rdma", "ethernet_gbps", "nvlink",
                           "price_per_hour", "capex", "count", "cpu", "topology", "devices", "doctor", "mig"});
        NodeType node;
        node.cloud = "on-prem";
        node.purpose = "training";
        node.status = "current";
        node.provenance.source = "described by the user";
        node.name = name_of_node();
        if (node.name.size() > 100) in_.problem("\"name\" is longer than 100 characters", in_.find({"name"}));
        node.family = node.name;
        const bool gpu = in_.has({"gpu"});
        if (!gpu || in_.has({"vcpus"})) node.vcpus = in_.required_integer({"vcpus"}, 1, 100'000);
        if (!gpu || in_.has({"memory"})) node.memory = Bytes(bytes(in_, "memory", kGiB, true));
        node.available = in_.integer({"count"}, 1, 1'000'000).value_or(0);
        node.ethernet_gbps = in_.number({"ethernet_gbps"}, 0, 1e6).value_or(0);
        std::optional<Accelerator> own;
        read_gpu(node, own);
        assume_host(node);
        node.cores = in_.integer({"cores"}, 1, 100'000).value_or(std::max(1, node.vcpus / 2));
        read_cpu(node);
        read_rdma(node);
        const std::string link = in_.has({"mig"}) ? "none" : read_gpu_link(node, own);
        auto hourly = read_price();
        cut(node, hourly);
        if (!problems_.empty()) return error_of(std::move(problems_)).while_doing("reading the on-prem node");

        if (own) {
            own->name = fmt::format("GPU of {}", node.name);
            node.accelerator = catalog_.add_accelerator(std::move(*own));
        }
        choose_links(node, link, catalog_);
        const int index = catalog_.add_node_type(std::move(node));
        if (hourly) {
            catalog_.replace_price(Price{.node_type = index,
                                         .region = "on-prem",
                                         .os = "linux",
                                         .pricing = Pricing::owned,
                                         .per_hour = Usd::from_double(*hourly),
                                         .low = *hourly,
                                         .high = *hourly,
                                         .provenance = {"described by the user", {}}});
        }
        return index;
    }

private:
    // Who has machines of one kind has no name for it: own-h100-sxm.
    std::string name_of_node() {
        const Node* gpu = in_.find({"gpu"});
        if (in_.has({"name"}) || gpu == nullptr || !gpu->is_scalar()) return in_.required_text({"name"});
        std::string name = "own-" + lower(gpu->text);
        std::replace(name.begin(), name.end(), ' ', '-');
        return name;
    }

    // Our own format, so a key we do not know is a typing error.
    void check_keys(const Node& mapping, const std::vector<std::string>& known) {
        for (const Member& member : mapping.members) {
            if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
            const auto called = key_called(member.key);
            const bool here =
                called && std::find(known.begin(), known.end(), called->substr(0, called->find(','))) != known.end();
            const auto near = nearest(member.key, known);
            problems_.push_back(Problem{fmt::format("unknown key \"{}\"", printable(member.key, 60)),
                                        here   ? fmt::format("write {}", *called)
                                        : near ? fmt::format("did you mean {}?", *near)
                                               : fmt::format("the keys are {}", join(known, ", ")),
                                        member.key_pos});
        }
    }

    double bytes(FieldReader& in, std::string_view key, double bare_unit, bool required) {
        const Node* value = in.find({key});
        if (value == nullptr) {
            if (required) in.problem(fmt::format("\"{}\" is missing", key));
            return 0;
        }
        if (value->kind == NodeKind::number) return in.number({key}, 1e-9, 1e9).value_or(0) * bare_unit;
        std::string text = value->text;
        if (text.ends_with("/s")) text.resize(text.size() - 2);
        const auto parsed = parse_bytes(trim(text));
        if (parsed && parsed->v > 0) return parsed->v;
        in.problem(fmt::format("\"{}\" is \"{}\"; write it like 80GB", key, printable(value->text, 40)), value);
        return 0;
    }

    std::optional<double> dollars(FieldReader& in, std::string_view key, bool required) {
        const Node* value = in.find({key});
        if (value == nullptr) {
            if (required) in.problem(fmt::format("\"{}\" is missing", key));
            return std::nullopt;
        }
        const auto parsed =
            value->is_scalar() ? parse_usd(value->text) : Result<Usd>(Error(ErrorKind::invalid, "not money"));
        if (parsed && parsed->micro() >= 0) return parsed->dollars();
        in.problem(fmt::format("\"{}\" is not an amount of dollars; write it like $250k", key), value);
        return std::nullopt;
    }

    // "EPYC 7763", "Intel Xeon Platinum 8480": all words that tell processors apart are in the catalogue's name.
    int cpu_named(std::string_view text) const {
        constexpr std::string_view kSayNothing[] = {"amd", "intel", "platinum", "gold", "silver", "processor", "cpu"};
        for (std::size_t i = 0; i < catalog_.cpus().size(); ++i) {
            const std::string known = lower(catalog_.cpus()[i].name);
            bool all = true, any = false;
            for (const std::string_view part : split(text, ' ')) {
                std::string word = lower(part);
                while (word.ends_with('+')) word.pop_back();
                if (word.empty() ||
                    std::find(std::begin(kSayNothing), std::end(kSayNothing), word) != std::end(kSayNothing))
                    continue;
                any = true;
                all = all && known.find(word) != std::string::npos;
            }
            if (any && all) return static_cast<int>(i);
        }
        return -1;
    }

    // Where there is no GPU the processors compute: of an ordinary server of 2021, unless they are named.
    void read_cpu(NodeType& node) {
        constexpr std::string_view kOrdinary = "EPYC Milan 7763";
        const Node* cpu = in_.find({"cpu"});
        if (cpu != nullptr && cpu->is_scalar()) node.cpu = cpu_named(cpu->text);
        if (cpu != nullptr && node.cpu < 0)
            in_.problem(fmt::format("no processor named {}", printable(cpu->text, 60)), cpu,
                        "name it as EPYC 7763 or Xeon 8480C, or leave cpu out: that of an ordinary server is taken");
        if (cpu != nullptr || node.accelerator >= 0 || in_.has({"gpu"})) return;
        node.cpu = cpu_named(kOrdinary);
        node.cpu_assumed = node.cpu >= 0;
    }

    void read_gpu(NodeType& node, std::optional<Accelerator>& own) {
        const Node* gpu = in_.find({"gpu"});
        if (gpu == nullptr) {
            if (in_.has({"gpus"}))
                in_.problem("\"gpus\" is given without \"gpu\"", in_.find({"gpus"}), "name the GPU: gpu: H100-SXM");
            return;
        }
        node.accelerators = in_.integer({"gpus"}, 1, 1024).value_or(1);
        if (gpu->is_mapping()) {
            own = read_own_gpu(*gpu);
            node.accelerator_memory = own->usable_memory;
            node.scale_up_domain = 1;
            return;
        }
        const auto index = gpu->is_scalar()
                               ? catalog_.find_accelerator(gpu->text)
                               : Result<int>(Error(ErrorKind::invalid, "\"gpu\" is neither a name nor a mapping"));
        if (!index) {
            in_.problem(index.error().message(), gpu, "name one of the catalogue, or give {memory, bandwidth, bf16}");
            return;
        }
        node.accelerator = *index;
        const Accelerator& known = catalog_.accelerators()[static_cast<std::size_t>(*index)];
        node.accelerator_memory = known.usable_memory;
    }

    // What is around the GPUs hardly changes a plan of them: as GPU machines are sold.
    void assume_host(NodeType& node) {
        if (!(node.accelerators > 0) || (in_.has({"vcpus"}) && in_.has({"memory"}))) return;
        node.note = kHostAssumed;
        const auto usual = [&](const char* name, double otherwise) {
            const Constant* constant = catalog_.constant(name);  // a catalogue of before has none
            return constant != nullptr ? constant->value : otherwise;
        };
        if (!in_.has({"vcpus"})) node.vcpus = static_cast<int>(usual("own_vcpus_per_gpu", 8) * node.accelerators);
        if (!in_.has({"memory"}))
            node.memory = node.accelerator_memory * (usual("own_memory_per_gpu_memory", 2) * node.accelerators);
    }

    // The machine becomes one of its parts, each with its share of all; what it costs is shared as well.
    void cut(NodeType& node, std::optional<double>& hourly) {
        const Node* mig = in_.find({"mig"});
        if (mig == nullptr || !problems_.empty()) return;
        const Accelerator* gpu =
            node.accelerator < 0 ? nullptr : &catalog_.accelerators()[static_cast<std::size_t>(node.accelerator)];
        if (gpu == nullptr || gpu->mig.empty())
            return in_.problem(fmt::format("\"mig\": {} cannot be cut into parts that are known here",
                                           gpu == nullptr ? "a GPU that the catalogue does not have" : gpu->name),
                               mig, "leave mig out, or name a GPU that has them: A100, A30, H100, H200");
        // Media extensions change nothing that is planned with: 1g.10gb+me.
        const std::string profile = mig->is_scalar() ? lower(trim(mig->text)) : "";
        const auto known = std::find_if(gpu->mig.begin(), gpu->mig.end(),
                                        [&](const MigProfile& each) { return each.name == profile; });
        if (known == gpu->mig.end()) {
            std::vector<std::string> names;
            for (const MigProfile& each : gpu->mig) names.push_back(each.name);
            return in_.problem(fmt::format("\"mig\": {} has no parts of the profile {}", gpu->name,
                                           printable(mig->is_scalar() ? mig->text : "that is no text", 40)),
                               mig,
                               fmt::format("write one of {}; all GPUs of the machine are cut alike", join_or(names)));
        }
        node.mig = MigCut{.profile = known->name,
                          .per_gpu = known->most,
                          .gpus = static_cast<int>(node.accelerators),
                          .vcpus = node.vcpus,
                          .memory = node.memory,
                          .machines = node.available};
        const int parts = node.mig->parts();
        node.accelerators = gpu->sm_count > 0 ? std::min(1.0, double(known->sms) / gpu->sm_count) : 1.0 / known->most;
        node.accelerator_memory = known->memory;
        node.vcpus = std::max(1, node.vcpus / parts), node.cores = std::max(1, node.cores / parts);
        node.memory = node.memory / parts;
        node.available *= parts;
        // No part talks to another: neither NVLink nor GPUDirect reaches into one.
        node.scale_up_domain = 1, node.scale_up_pairs = false;
        node.rdma = "none", node.rdma_generation.clear(), node.rdma_gbps_per_gpu = node.rdma_gbps_per_node = 0;
        if (hourly) *hourly /= parts;
    }

    Accelerator read_own_gpu(const Node& gpu) {
        FieldReader in(gpu, problems_);
        check_keys(gpu, {"memory", "bandwidth", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "power_watts",
                         "vendor"});
        Accelerator a;
        a.kind = "gpu";
        a.vendor = in.text({"vendor"}).value_or("unknown");
        a.architecture = "unknown";
        a.memory = Bytes(bytes(in, "memory", kGiB, true));
        a.usable_memory = a.memory * 0.97;
        a.memory_bandwidth = BytesPerSecond(bytes(in, "bandwidth", kGB, true));
        a.host_bandwidth = BytesPerSecond(31.5e9);  // PCIe 4.0 x16
        a.power = Watts(in.number({"power_watts"}, 0, 1e5).value_or(0));
        a.scale_up = "none";
        for (int p = 0; p < kPrecisions; ++p) {
            const auto tflops = in.number({to_string(static_cast<Precision>(p))}, 0, 1e6);
            if (!tflops || *tflops <= 0) continue;
            a.peak[static_cast<std::size_t>(p)] = FlopsPerSecond(*tflops * 1e12);
            a.supports |= 1u << p;
        }
        if (a.supports == 0)
            in.problem("no peak rate is given", nullptr, "give at least bf16 or fp16, in TFLOP/s without sparsity");
        a.provenance.source = "described by the user";
        return a;
    }

    // "InfiniBand NDR", hdr: a port of that generation for each GPU, as stoker explain network has them; 0: no such
    // word.
    static double infiniband_gbps(std::string_view text) {
        const std::string word = lower(text);
        std::string_view name = trim(word);
        for (const std::string_view before : {"infiniband", "ib"})
            if (name.starts_with(before) && name.size() > before.size())
                name = trim(name.substr(before.size() + (name[before.size()] == '-' ? 1 : 0)));
        for (const auto& [generation, gbps] :
             {std::pair("edr", 100.0), std::pair("hdr", 200.0), std::pair("ndr", 400.0), std::pair("xdr", 800.0)})
            if (name == generation) return gbps;
        return 0;
    }

    void read_rdma(NodeType& node) {
        const Node* rdma = in_.find({"rdma"});
        node.rdma = "none";
        if (rdma == nullptr) return;
        if (!rdma->is_mapping()) {
            if (rdma->is_scalar() && (equals_ignore_case(rdma->text, "no") || equals_ignore_case(rdma->text, "none") ||
                                      equals_ignore_case(rdma->text, "false")))
                return;
            if (const double gbps = rdma->is_scalar() ? infiniband_gbps(rdma->text) : 0; gbps > 0) {
                node.rdma = "infiniband";
                node.rdma_gbps_per_gpu = gbps;
                node.rdma_gbps_per_node = gbps * std::max(1.0, node.accelerators);
                return;
            }
            in_.problem("\"rdma\" is a mapping", rdma, "write rdma: {gbps_per_gpu: 400, kind: infiniband}");
            return;
        }
        FieldReader in(*rdma, problems_);
        check_keys(*rdma, {"gbps_per_gpu", "gbps_per_node", "kind"});
        node.rdma = lower(in.text({"kind"}).value_or(std::string("infiniband")));
        const double generation = infiniband_gbps(node.rdma);
        if (generation > 0) node.rdma = "infiniband";
        const std::vector<std::string> kinds = {"infiniband", "roce", "efa"};
        if (std::find(kinds.begin(), kinds.end(), node.rdma) == kinds.end()) {
            in.problem(fmt::format("\"kind\" is \"{}\"; {} are known", printable(node.rdma, 40), join_or(kinds)),
                       in.find({"kind"}));
        }
        const double gpus = std::max(1.0, node.accelerators);
        node.rdma_gbps_per_gpu = in.number({"gbps_per_gpu"}, 1e-3, 1e5).value_or(generation);
        node.rdma_gbps_per_node = in.number({"gbps_per_node"}, 1e-3, 1e6).value_or(node.rdma_gbps_per_gpu * gpus);
        if (node.rdma_gbps_per_gpu <= 0 && node.rdma_gbps_per_node <= 0) in.problem("\"gbps_per_gpu\" is missing");
        if (node.rdma_gbps_per_gpu <= 0 && node.accelerators > 0)
            node.rdma_gbps_per_gpu = node.rdma_gbps_per_node / gpus;
    }

    // As sizes.tsv spells it. Unless told otherwise, GPUs that have a switch are taken to be on one.
    std::string read_gpu_link(NodeType& node, const std::optional<Accelerator>& own) {
        const std::optional<bool> nvlink = in_.boolean({"nvlink"});
        node.scale_up_domain = 1;
        if (node.accelerators <= 1) return "none";
        if (own || node.accelerator < 0) {
            if (nvlink.value_or(false) && own) {
                in_.problem("the rate of NVLink is not known for a GPU of your own", in_.find({"nvlink"}),
                            "name a GPU of the catalogue");
            }
            return "pcie";
        }
        const Accelerator& a = catalog_.accelerators()[static_cast<std::size_t>(node.accelerator)];
        if (nvlink.value_or(false) && a.scale_up_bandwidth.v <= 0)
            in_.problem(fmt::format("{} has no NVLink", a.name), in_.find({"nvlink"}));
        return std::string(own_gpu_link(node, a, nvlink));
    }

    // (capex / years / hours of a year + power x PUE x price of a kWh + staff / hours of a year) / utilisation
    std::optional<double> read_price() {
        const Node* capex = in_.find({"capex"});
        if (in_.has({"price_per_hour"})) {
            if (capex != nullptr) in_.problem("both price_per_hour and capex are given", capex, "keep one of them");
            return dollars(in_, "price_per_hour", true);
        }
        if (capex == nullptr) return std::nullopt;  // unpriced
        if (!capex->is_mapping()) {
            in_.problem("\"capex\" is a mapping", capex, "write capex: {price: $250k, years: 4}");
            return std::nullopt;
        }
        FieldReader in(*capex, problems_);
        check_keys(*capex, {"price", "years", "power_watts", "usd_per_kwh", "staff_per_year", "utilisation", "pue"});
        const double price = dollars(in, "price", true).value_or(0);
        const double years = in.required_number({"years"}, 0.1, 50);
        const double kilowatts = in.number({"power_watts"}, 0, 1e7).value_or(0) / 1000;
        const double kwh = dollars(in, "usd_per_kwh", kilowatts > 0).value_or(0);
        const double staff = dollars(in, "staff_per_year", false).value_or(0);
        const Constant* pue_default = catalog_.constant("pue");
        const double pue = in.number({"pue"}, 1, 5).value_or(pue_default != nullptr ? pue_default->value : 1.2);
        const double used = in.number({"utilisation"}, 0.01, 1).value_or(1);  // not told: every hour is used
        if (years <= 0) return std::nullopt;
        return (price / years / kHoursPerYear + kilowatts * pue * kwh + staff / kHoursPerYear) / used;
    }

    const Node& node_;
    Problems problems_;
    FieldReader in_;
    Catalog& catalog_;
};

}  // namespace

bool host_is_assumed(const NodeType& node) {
    return node.cloud == "on-prem" && node.note == kHostAssumed;
}

Result<int> add_on_prem_node(const Node& node, Catalog& catalog) {
    if (!node.is_mapping()) {
        return Error(ErrorKind::invalid, fmt::format("an on-prem node is a mapping, not {}", to_string(node.kind)),
                     node.pos, "write {name: rack-1, gpu: H100-SXM, gpus: 8, vcpus: 96, memory: 1900GiB}");
    }
    return OnPremReader(node, catalog).read();
}

}  // namespace stoker
