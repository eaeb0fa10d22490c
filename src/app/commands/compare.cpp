// stoker compare: sizes or GPUs side by side, or two workload files planned and their ratio explained.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cards.h"
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "base/text.h"

namespace stoker {

namespace {

const NodeType& node_of(const Catalog& catalog, int index) {
    return catalog.node_types()[static_cast<std::size_t>(index)];
}

std::string bullet(std::string_view text, const Style& style) {
    std::string out;
    const std::vector<std::string> lines = wrap(text, static_cast<std::size_t>(style.width) - 5);
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "   - " : "     ") + lines[i] + "\n";
    return out;
}

// ---- sizes and GPUs ----

double best_half(const NodeType& node, const Catalog& catalog) {
    return std::max(peak_of_node(node, catalog, Precision::bf16), peak_of_node(node, catalog, Precision::fp16));
}

void add_ratio(Card& card, std::string key, std::string label, double value, std::string_view unit) {
    card.add(std::move(key), std::move(label), value > 0 ? Json(value) : Json(),
             value > 0 ? fmt::format("{}{}", unit == "$" ? "$" : "", number_text(value)) : "-");
}

Card compare_card_of_size(const Catalog& catalog, int index, const std::string& region) {
    const NodeType& node = node_of(catalog, index);
    const Price* price = usual_price(catalog, index, region, "linux", Pricing::on_demand);
    const double hourly = price ? price->per_hour.dollars() : 0;
    const double fp32 = peak_of_node(node, catalog, Precision::fp32), half = std::max(best_half(node, catalog), 0.0);
    const double memory = device_memory_of_node(node, catalog) / kGiB,
                 bandwidth = memory_bandwidth_of_node(node, catalog);
    Card card{bare_size(node.name), {}};
    card.add("name", "", node.name);
    card.add("accelerator", "GPU",
             node.has_gpu() ? Json(fmt::format("{:.3g} x {}", node.accelerators,
                                               catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name))
                            : Json(),
             "");
    card.add("year", "year of the GPU",
             node.has_gpu() ? Json(catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].year) : Json());
    card.add("vcpus", "vCPU", node.vcpus);
    card.add("memory_gib", "RAM GiB", node.memory.v / kGiB);
    card.add("device_memory_gib", "device memory GiB", memory);
    add_ratio(card, "bandwidth_gb_s", "device bandwidth GB/s", bandwidth / 1e9, "");
    add_ratio(card, "fp32_tflops", "FP32 TFLOPS", fp32 / 1e12, "");
    add_ratio(card, "half_tflops", "FP16/BF16 TFLOPS", half / 1e12, "");
    add_ratio(card, "rdma_gbps_per_gpu", "RDMA Gb/s per GPU", node.rdma_gbps_per_gpu, "");
    add_ratio(card, "rdma_gbps_per_vm", "RDMA Gb/s per VM", node.rdma_gbps_per_node, "");
    add_ratio(card, "ethernet_gbps", "Ethernet Gb/s", node.ethernet_gbps, "");
    add_ratio(card, "usd_per_hour", "$ per hour", hourly, "$");
    card.add("region", "region of the price", price ? Json(price->region) : Json());
    add_ratio(card, "usd_per_pflop_hour", "$ per FP16 PFLOPS and hour", half > 0 ? hourly / (half / 1e15) : 0, "$");
    add_ratio(card, "usd_per_gib_hour", "$ per device GiB and hour", memory > 0 ? hourly / memory : 0, "$");
    add_ratio(card, "gb_s_per_usd", "GB/s per $ per hour", hourly > 0 ? bandwidth / 1e9 / hourly : 0, "");
    card.add("retirement_date", "retirement", node.retirement_date.empty() ? Json() : Json(node.retirement_date));
    card.add("as_of", "price as of", price ? Json(price->provenance.as_of) : Json());
    return card;
}

double value_of(const Card& card, std::string_view key) {
    for (const Fact& fact : card.facts) {
        if (fact.key != key) continue;
        if (const auto* number = std::get_if<double>(&fact.value.value())) return *number;
        if (const auto* whole = std::get_if<std::int64_t>(&fact.value.value())) return static_cast<double>(*whole);
    }
    return 0;
}

// Each later card against the first, in the figures that decide.
std::string verdicts(const std::vector<Card>& cards, const Style& style) {
    std::string text;
    const Card& a = cards.front();
    for (std::size_t i = 1; i < cards.size(); ++i) {
        std::vector<std::string> parts;
        for (const auto& [key, what] : {std::pair{"usd_per_hour", "of the price"},
                                        {"half_tflops", "of the FP16/BF16 peak"},
                                        {"device_memory_gib", "of the device memory"},
                                        {"memory_gb", "of the memory"},
                                        {"bandwidth_gb_s", "of the bandwidth"},
                                        {"usd_per_pflop_hour", "of the $ per PFLOPS and hour"}}) {
            const double x = value_of(a, key), y = value_of(cards[i], key);
            if (x > 0 && y > 0) parts.push_back(fmt::format("{:.2f}x {}", y / x, what));
        }
        if (!parts.empty())
            text += bullet(fmt::format("{} has {} of {}.", cards[i].title, join(parts, ", "), a.title), style);
        const double price_a = value_of(a, "usd_per_hour"), price_b = value_of(cards[i], "usd_per_hour");
        const double memory_a = value_of(a, "device_memory_gib"), memory_b = value_of(cards[i], "device_memory_gib");
        if (price_a > 0 && price_b > 0 && price_b < price_a && memory_b > memory_a)
            text += bullet(fmt::format("{} is cheaper and has {:.0f} % more memory.", cards[i].title,
                                       100 * (memory_b / memory_a - 1)),
                           style);
        if (price_a > 0 && price_b > 0 && price_a < price_b && memory_a > memory_b)
            text += bullet(
                fmt::format("{} is cheaper and has {:.0f} % more memory.", a.title, 100 * (memory_a / memory_b - 1)),
                style);
    }
    return text;
}

Card compare_card_of_gpu(const Catalog& catalog, int index, const std::string& region) {
    const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(index)];
    Card card{gpu.name, {}};
    const double half = std::max(gpu.peak[static_cast<std::size_t>(Precision::bf16)].v,
                                 gpu.peak[static_cast<std::size_t>(Precision::fp16)].v);
    double per_gpu = 0;  // the cheapest way to a whole one, Linux on demand
    std::string where;
    for (std::size_t i = 0; i < catalog.node_types().size(); ++i) {
        const NodeType& node = catalog.node_types()[i];
        if (node.accelerator != index || node.accelerators < 1) continue;
        const Price* price =
            usual_price(catalog, static_cast<int>(i), node.cloud == "azure" ? region : "", "linux", Pricing::on_demand);
        if (price == nullptr || (per_gpu > 0 && price->per_hour.dollars() / node.accelerators >= per_gpu)) continue;
        per_gpu = price->per_hour.dollars() / node.accelerators;
        where = bare_size(node.name);
    }
    card.add("name", "", gpu.name);
    card.add("architecture", "architecture", gpu.architecture);
    card.add("year", "year", gpu.year);
    card.add("memory_gb", "memory GB", gpu.memory.v / 1e9);
    card.add("bandwidth_gb_s", "bandwidth GB/s", gpu.memory_bandwidth.v / 1e9);
    add_ratio(card, "fp32_tflops", "FP32 TFLOPS", gpu.peak[static_cast<std::size_t>(Precision::fp32)].v / 1e12, "");
    add_ratio(card, "half_tflops", "FP16/BF16 TFLOPS", half / 1e12, "");
    add_ratio(card, "fp8_tflops", "FP8 TFLOPS", gpu.peak[static_cast<std::size_t>(Precision::fp8)].v / 1e12, "");
    card.add("tensor_to_fp32", "tensor : FP32", tensor_ratio(gpu) > 0 ? Json(tensor_ratio(gpu)) : Json(),
             tensor_ratio(gpu) > 0 ? fmt::format("{:.1f}x", tensor_ratio(gpu)) : "-");
    add_ratio(card, "scale_up_gb_s", "scale-up GB/s one way", gpu.scale_up_bandwidth.v / 1e9, "");
    add_ratio(card, "power_w", "power W", gpu.power.v, "");
    add_ratio(card, "tflops_per_w", "FP16/BF16 TFLOPS per W", gpu.power.v > 0 ? half / 1e12 / gpu.power.v : 0, "");
    add_ratio(card, "usd_per_hour", "cheapest $ per GPU-hour", per_gpu, "$");
    card.add("cheapest_in", "in", where);
    add_ratio(card, "usd_per_pflop_hour", "$ per FP16 PFLOPS and hour", half > 0 ? per_gpu / (half / 1e15) : 0, "$");
    add_ratio(card, "usd_per_gb_hour", "$ per GB and hour", gpu.memory.v > 0 ? per_gpu / (gpu.memory.v / 1e9) : 0, "$");
    add_ratio(card, "gb_s_per_usd", "GB/s per $ per hour", per_gpu > 0 ? gpu.memory_bandwidth.v / 1e9 / per_gpu : 0,
              "");
    return card;
}

CommandOutput cards_output(Session& session, const std::vector<Card>& cards, std::string_view kind) {
    if (session.format != Format::text) {
        Json array = Json::array();
        for (const Card& card : cards) array.push(card.json());
        return {dump(session, Json::object().set("compared", kind).set("items", array)), 0};
    }
    std::string text = side_by_side(cards, session.style) + "\n" + verdicts(cards, session.style);
    return {text + "  " +
                session.style.dim("Linux, on demand; peaks are dense and never reached: a plan of your workload tells "
                                  "more (stoker plan)") +
                "\n",
            0};
}

// ---- cloud and on-prem ----

CommandOutput cloud_on_prem(Session& session) {
    const std::vector<std::vector<std::string>> rows = {
        {"speed to start", "minutes, once quota is granted", "weeks to months: order, rack, cable"},
        {"scale", "up and down by the hour, where there is capacity", "what was bought"},
        {"upfront", "nothing", "the whole price (capex)"},
        {"long term", "price x hours, dearer when always busy", "cheaper above the break-even utilisation"},
        {"residency", "regions and their geographies", "your own building"},
        {"latency", "network to the region, plus a few ms", "local network"},
        {"control", "sizes, drivers and limits of the provider", "all of it, and all of the repairs"},
        {"security", "shared responsibility, certified sites", "yours alone"},
        {"planning", "quota and spot evictions", "power, cooling, spares, people"},
    };
    if (session.format != Format::text) {
        Json array = Json::array();
        for (const auto& row : rows)
            array.push(Json::object().set("aspect", row[0]).set("cloud", row[1]).set("on_prem", row[2]));
        return {dump(session, array), 0};
    }
    return {table_text(session.style, {{""}, {"cloud"}, {"on-prem"}}, rows) +
                "\n  Numbers for a machine of yours: stoker cost SIZE --own FILE --utilisation U (break-even month, "
                "table of utilisations).\n",
            0};
}

// ---- workloads ----

struct Side {
    std::string path;
    Workload workload;
    Candidate candidate;
};

bool pinned(const Workload& w) {
    return w.where.nodes.has_value() && w.where.sizes.size() == 1;
}

Result<Candidate> evaluate(const Workload& workload, const Catalog& catalog, const PlanOptions& options,
                           const std::string& path) {
    if (pinned(workload)) return estimate(workload, catalog, options).while_doing("estimating " + path);
    auto plan = make_plan(workload, catalog, options);
    if (!plan) return std::move(plan).while_doing("planning " + path).error();
    if (!plan->feasible())
        return Error(ErrorKind::infeasible, fmt::format("{} has no plan: {}", path, plan->infeasible_because));
    return plan->candidates.front();
}

// The rate of multiplication that the chosen precision can use at best, all devices together.
double peak_of(const Side& side, const Catalog& catalog) {
    const NodeType& node = node_of(catalog, side.candidate.node_type);
    double peak = peak_of_node(node, catalog, side.workload.precision);
    if (peak <= 0) peak = peak_of_node(node, catalog, Precision::fp32);
    return peak * side.candidate.nodes;
}

double share_of(const Candidate& c, TimeTerm term) {
    return c.prediction.step_s.mid > 0 ? c.prediction.seconds[static_cast<std::size_t>(term)] / c.prediction.step_s.mid
                                       : 0;
}

Card side_card(const Side& side, const Catalog& catalog) {
    const Candidate& c = side.candidate;
    const Prediction& p = c.prediction;
    const NodeType& node = node_of(catalog, c.node_type);
    Card card{std::filesystem::path(side.path).filename().string(), {}};
    card.add("size", "machines", node.name, fmt::format("{} x {}", c.nodes, bare_size(node.name)));
    card.add("nodes", "", c.nodes);
    card.add("vcpus", "vCPU in all", c.nodes * node.vcpus);
    card.add("devices", "GPUs", node.has_gpu() ? Json(c.nodes * node.accelerators) : Json());
    card.add("precision", "precision", to_string(side.workload.precision));
    card.add("hours", "time", p.hours.mid,
             fmt::format("{} ({} - {})", hours_text(p.hours.mid), hours_text(p.hours.low), hours_text(p.hours.high)));
    card.add("usd", "cost", c.priced ? Json(p.usd.mid) : Json(),
             c.priced
                 ? fmt::format("{} ({} - {})", money_text(p.usd.mid), money_text(p.usd.low), money_text(p.usd.high))
                 : "unpriced");
    card.add("usd_per_node_hour", "price per node and hour", c.priced ? Json(c.node_per_hour.dollars()) : Json(),
             c.priced ? fmt::format("{}{}, as of {}", format_usd(c.node_per_hour),
                                    c.region.empty() ? "" : " " + c.region, c.price_provenance.as_of)
                      : "");
    card.add("usd_per_unit", "$ per " + (p.unit_name.empty() ? std::string("unit") : p.unit_name),
             c.priced ? Json(p.usd_per_unit.mid) : Json());
    card.add("peak_tflops", "peak TFLOPS", peak_of(side, catalog) / 1e12);
    card.add("mfu_percent", "MFU %", p.mfu > 0 ? Json(100 * p.mfu) : Json());
    card.add("data_stall_percent", "waiting for data %",
             p.step_s.mid > 0 ? Json(100 * share_of(c, TimeTerm::data_stall)) : Json());
    card.add("bottleneck", "bound by", to_string(p.bottleneck));
    card.add("memory_gib", "memory GiB, fullest device",
             p.memory_bytes.mid > 0 ? Json(p.memory_bytes.mid / kGiB) : Json(),
             p.memory_bytes.mid > 0 ? fmt::format("{} of {}", number_text(p.memory_bytes.mid / kGiB),
                                                  number_text(p.memory_capacity_bytes / kGiB))
                                    : "-");
    card.add("kwh", "kWh", p.kwh.mid > 0 ? Json(p.kwh.mid) : Json());
    return card;
}

// Time ratio = peak ratio x share of the peak that is reached x what is lost waiting for data.
std::string why_text(const Side& slow, const Side& fast, const Catalog& catalog, const Style& style) {
    const double ratio = slow.candidate.prediction.hours.mid / fast.candidate.prediction.hours.mid;
    const double peaks = peak_of(fast, catalog) / std::max(1.0, peak_of(slow, catalog));
    const double busy_slow = 1 - share_of(slow.candidate, TimeTerm::data_stall),
                 busy_fast = 1 - share_of(fast.candidate, TimeTerm::data_stall);
    const double waiting = busy_fast / std::max(1e-9, busy_slow);
    const double reach = ratio / peaks / waiting;
    std::string text = "\n  " + style.bold(fmt::format("Why {:.3g}x", ratio)) + "\n";
    text += bullet(fmt::format("peak: {} TFLOPS in {} against {} TFLOPS in {}: {:.3g}x",
                               number_text(peak_of(fast, catalog) / 1e12), to_string(fast.workload.precision),
                               number_text(peak_of(slow, catalog) / 1e12),
                               node_of(catalog, slow.candidate.node_type).has_gpu() ? to_string(slow.workload.precision)
                                                                                    : std::string_view("fp32"),
                               peaks),
                   style);
    text += bullet(
        fmt::format(
            "share of that peak reached while computing, memory traffic, launches and communication counted: {:.2g}x",
            reach),
        style);
    text += bullet(fmt::format("waiting for data: {:.0f} % of a step against {:.0f} %: {:.2g}x", 100 * (1 - busy_fast),
                               100 * (1 - busy_slow), waiting),
                   style);
    return text + fmt::format("     {:.3g} x {:.2g} x {:.2g} = {:.3g}\n", peaks, reach, waiting, ratio);
}

// The fast side again with BF16 tensor cores and an input pipeline that keeps up.
std::optional<Side> tuned(const Side& fast, const Catalog& catalog, const PlanOptions& options) {
    const NodeType& node = node_of(catalog, fast.candidate.node_type);
    if (!node.has_gpu() || !is_training(fast.workload.kind) || peak_of_node(node, catalog, Precision::bf16) <= 0)
        return std::nullopt;
    const bool starved = share_of(fast.candidate, TimeTerm::data_stall) > 0.01;
    const bool wide = fast.workload.precision == Precision::fp32 || fast.workload.precision == Precision::tf32;
    if (!starved && !wide) return std::nullopt;
    Side better = fast;
    better.workload.precision = Precision::bf16;
    better.workload.data.decode_per_example = Seconds(0);
    better.workload.data.storage_bandwidth_per_second = Bytes(1e15);
    better.workload.compiled = true;
    better.workload.where.sizes = {node.name};
    better.workload.where.nodes = fast.candidate.nodes;
    auto candidate = estimate(better.workload, catalog, options);
    if (!candidate) return std::nullopt;
    better.candidate = std::move(candidate).value();
    return better;
}

std::string tuned_text(const Side& slow, const Side& fast, const Side& better, const Style& style) {
    const double before = slow.candidate.prediction.hours.mid / fast.candidate.prediction.hours.mid;
    const double after = slow.candidate.prediction.hours.mid / better.candidate.prediction.hours.mid;
    std::string text = "\n  " + style.bold("What it leaves on the table") + "\n";
    text += bullet(
        fmt::format("{:.3g}x holds for {} with an input pipeline that makes the GPUs wait {:.0f} % of the time.",
                    before, to_string(fast.workload.precision), 100 * share_of(fast.candidate, TimeTerm::data_stall)),
        style);
    return text +
           bullet(fmt::format("Tuned, with BF16 on the tensor cores, compiled, and data that arrives in time (decoded "
                              "beforehand or on the GPU): {} and {}, {:.3g}x.",
                              hours_text(better.candidate.prediction.hours.mid),
                              better.candidate.priced ? money_text(better.candidate.prediction.usd.mid) : "unpriced",
                              after),
                  style);
}

std::string workloads_text(const std::vector<Side>& sides, const Catalog& catalog, const PlanOptions& options,
                           const Style& style) {
    std::vector<Card> cards;
    for (const Side& side : sides) cards.push_back(side_card(side, catalog));
    std::string text = side_by_side(cards, style);
    for (std::size_t i = 1; i < sides.size(); ++i) {
        const bool faster = sides[i].candidate.prediction.hours.mid <= sides[0].candidate.prediction.hours.mid;
        const Side& slow = faster ? sides[0] : sides[i];
        const Side& fast = faster ? sides[i] : sides[0];
        const Prediction &s = slow.candidate.prediction, &f = fast.candidate.prediction;
        if (!(s.hours.mid > 0) || !(f.hours.mid > 0)) continue;
        if (slow.workload.kind == WorkloadKind::inference ||
            fast.workload.kind == WorkloadKind::inference) {  // both for one hour: only the cost says something
            if (slow.candidate.priced && fast.candidate.priced && f.usd.mid > 0)
                text += fmt::format("\n  {} costs {:.3g}x per hour of {}.\n", sides[0].path,
                                    sides[0].candidate.prediction.usd.mid / sides[i].candidate.prediction.usd.mid,
                                    sides[i].path);
            continue;
        }
        text += fmt::format("\n  {} is {:.3g}x faster", fast.path, s.hours.mid / f.hours.mid);
        if (slow.candidate.priced && fast.candidate.priced && f.usd.mid > 0)
            text += f.usd.mid <= s.usd.mid ? fmt::format(" and {:.3g}x cheaper", s.usd.mid / f.usd.mid)
                                           : fmt::format(" and costs {:.3g}x as much", f.usd.mid / s.usd.mid);
        text += ".\n";
        if (!is_training(slow.workload.kind) || !is_training(fast.workload.kind)) continue;
        text += why_text(slow, fast, catalog, style);
        if (const auto better = tuned(fast, catalog, options)) text += tuned_text(slow, fast, *better, style);
    }
    return text;
}

Result<CommandOutput> compare_workloads(Session& session, const Args& args) {
    TRY(const PlanOptions options, plan_options(session, args));
    std::vector<Side> sides;
    for (const std::string& path : args.positional) {
        TRY(Workload workload, load_workload(session, path));
        sides.push_back({path, std::move(workload), {}});
    }
    TRY(const Catalog* catalog, session.catalog());  // after the files, which may add nodes of their own
    for (Side& side : sides) {
        TRY(side.candidate, evaluate(side.workload, *catalog, options, side.path));
    }
    if (session.format == Format::text)
        return CommandOutput{workloads_text(sides, *catalog, options, session.style), 0};
    Json array = Json::array();
    for (const Side& side : sides)
        array.push(Json::object()
                       .set("file", side.path)
                       .set("summary", side_card(side, *catalog).json())
                       .set("candidate", candidate_json(side.candidate, side.workload, *catalog)));
    const double first = sides[0].candidate.prediction.hours.mid, last = sides.back().candidate.prediction.hours.mid;
    return CommandOutput{dump(session, Json::object()
                                           .set("compared", "workloads")
                                           .set("items", array)
                                           .set("time_ratio", last > 0 ? Json(first / last) : Json())),
                         0};
}

bool is_file(const std::string& word) {
    std::error_code error;
    return word == "-" || word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
           std::filesystem::is_regular_file(word, error);
}

Result<CommandOutput> run(Session& session, const Args& args) {
    const auto& words = args.positional;
    const auto files = std::count_if(words.begin(), words.end(), is_file);
    if (files == static_cast<std::ptrdiff_t>(words.size())) return compare_workloads(session, args);
    if (files > 0)
        return Error(ErrorKind::invalid,
                     "workload files compare with workload files, sizes with sizes, GPUs with GPUs");
    if (words.size() == 2 && lower(words[0]) == "cloud" && lower(words[1]).starts_with("on-prem"))
        return cloud_on_prem(session);
    TRY(Catalog * catalog, session.catalog());
    std::string region;
    if (const auto wanted = args.get("region")) {
        TRY(region, catalog->find_region("azure", *wanted));
    }
    std::vector<Card> gpus, sizes;
    for (const std::string& word : words) {
        auto size = catalog->find_node_type(word);
        auto gpu = catalog->find_accelerator(word);
        if (size)
            sizes.push_back(compare_card_of_size(*catalog, *size, region));
        else if (gpu)
            gpus.push_back(compare_card_of_gpu(*catalog, *gpu, region));
        else
            return std::move(word.find('_') != std::string::npos || word.find('.') != std::string::npos ? size.error()
                                                                                                        : gpu.error());
    }
    if (!gpus.empty() && !sizes.empty())
        return Error(ErrorKind::invalid, "sizes compare with sizes, GPUs with GPUs", {},
                     fmt::format("{} is a GPU, {} is a size", gpus[0].title, sizes[0].title));
    return gpus.empty() ? cards_output(session, sizes, "sizes") : cards_output(session, gpus, "gpus");
}

}  // namespace

Command compare_command() {
    Command command{
        .name = "compare",
        .summary = "sizes, GPUs or workloads side by side, and why they differ",
        .usage = "stoker compare A B [C...]",
        .description =
            "Sizes and GPUs: facts, price per PFLOPS, per GiB, bandwidth per dollar. Workload files: both are planned "
            "(or estimated, where\n"
            "the file pins one size and its nodes), and the ratio of their times is taken apart. `cloud on-prem`: the "
            "two ways to own compute.",
        .examples = {"stoker compare A100-SXM-80GB H100-SXM H200-SXM", "stoker compare ND96isr_H100_v5 ND96isr_H200_v5",
                     "stoker compare examples/story/cpu.yaml examples/story/gpu.yaml"},
        .options = {{.name = "region",
                     .value = "REGION",
                     .help = "prices of this region; default: eastus, or the cheapest"}},
        .min_positional = 2,
        .max_positional = 8,
        .run = run,
        .completes = "file",
        .warns_stale = true};
    command.options.insert(command.options.end(), planning_options().begin(), planning_options().end());
    return command;
}

}  // namespace stoker
