// stoker compare: sizes or GPUs side by side; workload files, saved plans, or one workload under several restrictions,
// planned and their ratio explained.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cards.h"
#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/commands/compare_runs.h"
#include "app/compare_sides.h"
#include "app/render/plan_text.h"
#include "base/text.h"
#include "catalog/names.h"
#include "io/files.h"
#include "validate/nearest.h"

namespace stoker {

namespace {

const NodeType& node_of(const Catalog& catalog, int index) {
    return catalog.node_types()[static_cast<std::size_t>(index)];
}

// ---- sizes and GPUs ----

double best_half(const NodeType& node, const Catalog& catalog) {
    return std::max(peak_of_node(node, catalog, Precision::bf16), peak_of_node(node, catalog, Precision::fp16));
}

void add_ratio(Card& card, std::string key, std::string label, double value, std::string_view unit) {
    card.add(std::move(key), std::move(label), value > 0 ? Json(value) : Json(),
             value <= 0    ? "-"
             : unit == "$" ? money_text(value)
                           : number_text(value));
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
    for (const CardFact& fact : card.facts) {
        if (fact.key != key) continue;
        if (const auto* number = std::get_if<double>(&fact.value.value())) return *number;
        if (const auto* whole = std::get_if<std::int64_t>(&fact.value.value())) return static_cast<double>(*whole);
    }
    return 0;
}

// "1.6x", or "as much" where the difference is not worth a figure.
std::string more_or_less(double ratio, std::string_view noun) {
    if (ratio > 0.995 && ratio < 1.005) return fmt::format("the same {}", noun);
    return fmt::format("{:.2f}x the {}", ratio, noun);
}

// Each later card against the first, in the figures that decide.
std::string verdicts(const std::vector<Card>& cards, const Style& style) {
    std::string text;
    const Card& a = cards.front();
    for (std::size_t i = 1; i < cards.size(); ++i) {
        std::vector<std::string> parts;
        for (const auto& [key, what] : {std::pair{"usd_per_hour", "price"},
                                        {"half_tflops", "FP16/BF16 peak"},
                                        {"device_memory_gib", "device memory"},
                                        {"memory_gb", "memory"},
                                        {"bandwidth_gb_s", "bandwidth"},
                                        {"usd_per_unit", "cost per unit of work"}}) {
            const double x = value_of(a, key), y = value_of(cards[i], key);
            if (x > 0 && y > 0) parts.push_back(more_or_less(y / x, what));
        }
        if (!parts.empty())
            text += bullet(fmt::format("{} against {}: {}.", cards[i].title, a.title, join(parts, ", ")), style);
        for (const auto& [cheap, dear] : {std::pair{&a, &cards[i]}, {&cards[i], &a}}) {
            const double price_cheap = value_of(*cheap, "usd_per_hour"), price_dear = value_of(*dear, "usd_per_hour");
            const double more = value_of(*cheap, "device_memory_gib") / value_of(*dear, "device_memory_gib") - 1;
            if (price_cheap > 0 && price_cheap < price_dear && more > 0.005)
                text +=
                    bullet(fmt::format("{} is cheaper and has {:.0f} % more memory.", cheap->title, 100 * more), style);
        }
    }
    return text;
}

// What a unit of real work costs on each: the cheapest plan of one reference workload under that restriction. Peaks
// and prices alone say little of it.
constexpr std::string_view kReference =
    "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 10B, sequence: 8192}\nprecision: bf16\n"
    "objective: {minimize: cost}\nwhere: {cloud: any}\n";

void add_unit_of_work(Card& card, const std::string& word, const Catalog& catalog, const PlanOptions& options,
                      const std::string& region) {
    Json usd, on;
    const auto document = Document::parse(kReference, "the reference workload");
    if (document) {
        const FileLoader none = [](const std::string&) { return Error(ErrorKind::internal, "no files here"); };
        const auto workload = read_workload(*document, catalog, none);
        std::optional<Workload> under;
        if (workload) {
            if (auto found = restricted(*workload, word, catalog)) under = std::move(found).value();
        }
        if (under) {
            if (!region.empty()) under->where.regions = {region};
            const auto side = side_of_workload(word, *std::move(under), catalog, options);
            if (side && side->usd_per_unit > 0) {
                usd = side->usd_per_unit;
                on = fmt::format("{} x {}", side->candidate->nodes,
                                 bare_size(node_of(catalog, side->candidate->node_type).name));
            }
        }
    }
    card.add("usd_per_unit", "$ per B tokens trained (1)", usd,
             usd.is_null() ? "-" : "$" + figure_text(std::get<double>(usd.value())));
    card.add("unit_on", "  on", on);
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
    std::string text = side_by_side(cards, session.style) + "\n" + verdicts(cards, session.style) + "\n";
    for (const std::string& line :
         wrap("Linux, on demand; peaks are dense and never reached. (1) The cheapest plan that trains llama-3-8b in "
              "bf16, sequences of 8,192, with these machines only. For your own work: --workload FILE.",
              static_cast<std::size_t>(session.style.width) - 2))
        text += "  " + session.style.dim(line) + "\n";
    return {text, 0};
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
                "\n  Numbers for machines of yours: stoker cost SIZE --own FILE (break-even month and utilisation);\n"
                "  for a workload on both: stoker compare azure on-prem --workload FILE.\n",
            0};
}

CommandOutput sides_output(Session& session, const std::vector<Side>& sides, const Catalog& catalog,
                           const PlanOptions& options) {
    const bool any = std::any_of(sides.begin(), sides.end(), [](const Side& side) { return side.no_plan.empty(); });
    const int exit = any ? 0 : 1;
    if (session.format != Format::text) return {dump(session, sides_json(sides, catalog)), exit};
    return {sides_text(sides, catalog, options, session.style), exit};
}

// Workload files and saved plans, in any mixture. All files are read before the catalogue is used, since a workload
// may add nodes of its own to it.
Result<CommandOutput> compare_files(Session& session, const Args& args) {
    TRY(PlanOptions options, plan_options(session, args));
    struct Input {
        std::string title;
        std::optional<Workload> workload;
        std::optional<Document> saved;
    };
    std::vector<Input> inputs;
    for (const std::string& path : args.positional) {
        Input input{.title = std::filesystem::path(path).filename().string()};
        for (const std::string& other : args.positional) {  // two files of one name keep their folders
            if (&other != &path && std::filesystem::path(other).filename() == input.title) input.title = path;
        }
        if (lower(path).ends_with(".json")) {
            TRY(const std::string text, read_file(path, ReadLimits{}.max_bytes));
            TRY(Document document, Document::parse(text, path));
            if (is_saved_plan(document)) input.saved = std::move(document);
        }
        if (!input.saved) {
            TRY(input.workload, load_workload(session, path));
        }
        inputs.push_back(std::move(input));
    }
    TRY(const Catalog* catalog, session.catalog());
    options.nearest_run = validate::nearest_published(*catalog);
    std::vector<Side> sides;
    for (Input& input : inputs) {
        if (input.saved) {
            TRY(Side side, side_of_saved_plan(input.title, *input.saved));
            sides.push_back(std::move(side));
        } else {
            TRY(Side side, side_of_workload(input.title, std::move(*input.workload), *catalog, options));
            sides.push_back(std::move(side));
        }
    }
    return sides_output(session, sides, *catalog, options);
}

// One workload, planned once under each of the restrictions.
Result<CommandOutput> compare_restricted(Session& session, const Args& args, const std::string& file) {
    TRY(PlanOptions options, plan_options(session, args));
    TRY(const Workload workload, load_workload(session, file));
    TRY(const Catalog* catalog, session.catalog());
    options.nearest_run = validate::nearest_published(*catalog);
    std::vector<Side> sides;
    for (const std::string& word : args.positional) {
        TRY(auto under, restricted(workload, word, *catalog));
        if (!under) {
            std::vector<std::string> known = {"azure", "aws", "gcp", "on-prem", "spot", "on-demand"};
            for (const Accelerator& gpu : catalog->accelerators()) known.push_back(gpu.name);
            for (const NodeType& node : catalog->node_types()) known.push_back(node.name);
            for (const std::string& precision : precision_names()) known.push_back(precision);
            return Error(ErrorKind::invalid,
                         fmt::format("'{}' is no size, GPU, cloud, region, precision, spot or on-demand{}",
                                     printable(word, 60), did_you_mean(word, known)),
                         {}, "stoker compare --help shows what can be compared");
        }
        TRY(Side side, side_of_workload(word, std::move(*under), *catalog, options));
        sides.push_back(std::move(side));
    }
    return sides_output(session, sides, *catalog, options);
}

bool is_file(const std::string& word) {
    std::error_code error;
    return word == "-" || word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
           std::filesystem::is_regular_file(word, error);
}

// Clouds, regions and the like mean something only for a workload.
bool needs_workload(const std::string& word, const Catalog& catalog) {
    const std::string folded = fold_name(word);
    if (folded == "spot" || folded == "ondemand" || folded == "onprem" || precision_from(lower(word))) return true;
    for (const NodeType& node : catalog.node_types()) {
        if (fold_name(node.cloud) == folded) return true;
    }
    for (const char* cloud : {"azure", "aws", "gcp"}) {
        if (catalog.find_region(cloud, word)) return true;
    }
    return false;
}

Result<CommandOutput> run_compare(Session& session, const Args& args) {
    const auto& words = args.positional;
    if (are_runs(words)) return compare_runs(session, args);
    if (words.size() < 2)
        return Error(ErrorKind::invalid, "stoker compare needs two sides; one alone may only be a run", {},
                     "usage: stoker compare A B [C...] [--workload FILE]   (stoker compare --help)");
    if (const auto file = args.get("workload")) return compare_restricted(session, args, *file);
    const auto files = std::count_if(words.begin(), words.end(), is_file);
    if (files == static_cast<std::ptrdiff_t>(words.size())) return compare_files(session, args);
    if (files > 0)
        return Error(ErrorKind::invalid, "workload files compare with workload files, sizes with sizes, GPUs with GPUs",
                     {}, "to plan one workload on each of several: stoker compare A B --workload FILE");
    if (words.size() == 2 && fold_name(words[0]) == "cloud" && fold_name(words[1]) == "onprem")
        return cloud_on_prem(session);
    TRY(PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    std::string region;
    if (const auto wanted = args.get("region")) {
        TRY(region, catalog->find_region("azure", *wanted));
    }
    std::vector<Card> gpus, sizes;
    for (const std::string& word : words) {
        auto size = catalog->find_node_type(word);
        auto gpu = catalog->find_accelerator(word);
        if (size) {
            sizes.push_back(compare_card_of_size(*catalog, *size, region));
            add_unit_of_work(sizes.back(), word, *catalog, options, region);
        } else if (gpu) {
            gpus.push_back(compare_card_of_gpu(*catalog, *gpu, region));
            add_unit_of_work(gpus.back(), gpus.back().title, *catalog, options, region);
        } else if (needs_workload(word, *catalog)) {
            return Error(
                ErrorKind::invalid,
                fmt::format("what '{}' costs depends on the work: say for which workload", printable(word, 60)), {},
                fmt::format("stoker compare {} --workload FILE", join(words, " ")));
        } else {
            std::vector<std::string> known;
            for (const Accelerator& each : catalog->accelerators()) known.push_back(each.name);
            for (const NodeType& each : catalog->node_types()) known.push_back(each.name);
            return Error(ErrorKind::invalid,
                         fmt::format("'{}' is no file, size or GPU{}", printable(word, 60), did_you_mean(word, known)),
                         {}, "stoker catalog sizes, stoker catalog gpus; stoker compare --help");
        }
    }
    if (!gpus.empty() && !sizes.empty())
        return Error(ErrorKind::invalid,
                     fmt::format("sizes compare with sizes, GPUs with GPUs: {} is a GPU, {} is a size", gpus[0].title,
                                 sizes[0].title),
                     {}, "with --workload FILE they compare: the workload is planned on each");
    return gpus.empty() ? cards_output(session, sizes, "sizes") : cards_output(session, gpus, "gpus");
}

}  // namespace

CliCommand compare_command() {
    CliCommand command{
        .name = "compare",
        .summary = "sizes, GPUs, workloads, saved plans, clouds side by side, and why they differ",
        .usage = "stoker compare A B [C...] [--workload FILE]",
        .description =
            "A, B, ... can be:\n"
            "  sizes or GPUs      facts, prices, and what training a reference model costs on each\n"
            "  workload files     each is planned (or estimated, where it pins one size and its nodes)\n"
            "  saved plans        written by: stoker plan FILE -o json > plan.json; mixes with workload files\n"
            "  cloud on-prem      the two ways to own compute, in words\n"
            "  runs               r-7 r-8: parameters, metrics, time, cost; a sweep or graph stands for its steps\n"
            "With --workload FILE, one workload is planned under each restriction: sizes, GPUs, clouds (azure, aws,\n"
            "gcp, on-prem), regions, precisions (bf16, fp8, ...), spot or on-demand.\n"
            "The ratio of two training times is taken apart: peak, share of it that is reached, waiting for data.\n"
            "Exit 1 when no side has a plan.",
        .examples = {"stoker compare A100-SXM-80GB H100-SXM H200-SXM", "stoker compare ND96isr_H100_v5 ND96isr_H200_v5",
                     "stoker compare examples/story/cpu.yaml examples/story/gpu.yaml",
                     "stoker compare azure aws gcp --workload examples/llama-3-8b.yaml",
                     "stoker compare A100-SXM-80GB H100-SXM H200-SXM --workload examples/llama-3-8b.yaml",
                     "stoker compare bf16 fp8 --workload examples/llama-3-70b-serve.yaml",
                     "stoker compare r-7 --by loss"},
        .options = {{.name = "workload",
                     .value = "FILE",
                     .help = "plan this workload on each of A, B, ...",
                     .completes = "file"},
                    {.name = "by",
                     .value = "METRIC",
                     .help = "runs: best first by the last value of this metric; lowest, or METRIC:max"},
                    {.name = "region",
                     .value = "REGION",
                     .help = "sizes and GPUs: prices of this Azure region; default: eastus, or the cheapest"}},
        .min_positional = 1,
        .max_positional = 8,
        .run = run_compare,
        .completes = "compare",
        .warns_stale = true};
    for (const auto* list : {&planning_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    return command;
}

}  // namespace stoker
