#include "app/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "app/size_answer.h"
#include "app/user_settings.h"
#include "base/text.h"
#include "base/utf16.h"
#include "catalog/names.h"
#include "doctor/this_machine.h"
#include "io/files.h"
#include "io/terminal.h"

namespace stoker {

namespace {

constexpr std::size_t kMaxCatalogFile = 64u << 20;
constexpr std::size_t kMaxAnswer = 256u << 20;  // az vm list-skus over all regions is some 50 MB
constexpr std::size_t kMaxValues = 20'000'000;  // and 4 million values

Result<Catalog> catalog_from_folder(Session& session, const std::string& dir) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<std::string> paths;
    for (fs::recursive_directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
        if (it->is_regular_file(error)) paths.push_back(it->path().string());
    }
    if (error || paths.empty()) {
        return Error(ErrorKind::not_found, fmt::format("no catalogue in {}", dir), {dir, 0, 0},
                     "expected the layout of data/: catalog/*.tsv and models/models.tsv");
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> texts(paths.size());
    std::vector<CatalogFile> files;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        TRY(texts[i], read_file(paths[i], kMaxCatalogFile));
        files.push_back({fs::relative(paths[i], dir).string(), texts[i]});
    }
    auto catalog = Catalog::from_files(files);
    if (!catalog) {
        for (std::size_t i = 0; i < paths.size(); ++i) session.sources[files[i].path] = texts[i];
        return std::move(catalog).error();
    }
    catalog->origin = dir;
    return catalog;
}

// The file's text; az on Windows, redirected by PowerShell, writes UTF-16.
Result<std::string> read_text(const Session& session, const std::string& path, std::size_t max_bytes) {
    if (!session.given.empty()) {
        const auto given = session.given.find(path);
        if (given != session.given.end()) return given->second;
        return Error(ErrorKind::denied,
                     fmt::format("{} is another file, and one that is posted to a server stands alone",
                                 printable(std::filesystem::path(path).filename().string(), 80)),
                     {}, "write what it says into the file itself, or use the command line where both are");
    }
    TRY(std::string text, read_file(path, max_bytes));
    if (auto converted = utf8_from_utf16(text)) return std::move(*converted);
    return text;
}

// The files an option names: a folder stands for the .json files in it, such as the pages of a price list.
Result<std::vector<std::string>> files_named(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) return std::vector{path};
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path, error)) {
        if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
    if (files.empty())
        return Error(ErrorKind::not_found, fmt::format("no .json file in the folder {}", printable(path)),
                     {path, 0, 0});
    std::sort(files.begin(), files.end());
    return files;
}

// What az or the price list answered, however it was saved: one JSON value, or several one after another.
Result<std::vector<Document>> read_answers(Session& session, const std::string& path, AzureAnswer wanted) {
    TRY(const std::vector<std::string> files, files_named(path));
    std::vector<Document> documents;
    for (const std::string& file : files) {
        const std::string name = file == "-" ? "stdin" : file;
        TRY(std::string text, read_text(session, file, kMaxAnswer));
        TRY(const std::vector<std::string_view> values, json_values(text, wanted, name));
        ReadLimits limits;
        limits.max_bytes = kMaxAnswer;
        limits.max_nodes = kMaxValues;
        for (std::string_view value : values) {
            TRY(Document document, Document::parse_json(value, name, limits));
            documents.push_back(std::move(document));
        }
        if (text.size() <= ReadLimits{}.max_bytes) session.sources[name] = std::move(text);
    }
    return documents;
}

// GPU sizes that Azure offers and the catalogue has not heard of: nobody should think that they were considered.
std::string unknown_gpu_sizes(const std::vector<SkuOffer>& offers, const Catalog& catalog) {
    std::set<std::string, std::less<>> known;  // find_node_type looks for the nearest name when it finds none
    for (const NodeType& node : catalog.node_types()) known.insert(fold_vm_size(node.name));
    std::map<std::string, const SkuOffer*> unknown;
    for (const SkuOffer& offer : offers) {
        if (offer.gpus > 0 && !offer.location_restricted && !known.contains(fold_vm_size(offer.size)))
            unknown.emplace(offer.size, &offer);
    }
    std::vector<std::string> words;
    for (const auto& [size, offer] : unknown) {
        if (words.size() == 5) {
            words.push_back(fmt::format("and {} more", unknown.size() - 5));
            break;
        }
        words.push_back(fmt::format("{} ({:.0f} GPUs, {:.0f} vCPUs, {:.0f} GB)", printable(size, 60), offer->gpus,
                                    offer->vcpus, offer->memory_gb));
    }
    return join(words, ", ");
}

void tell(const Session& session, const std::string& note) {
    if (!session.quiet) fmt::print(stderr, "note: {}\n", note);
}

// A real calendar day in the form that sorts as text.
Result<std::string> parse_day(const std::string& text) {
    int year = 0, month = 0, day = 0, used = 0;
    const bool shaped =
        text.size() == 10 && std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3 && used == 10;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!shaped || !date.ok())
        return Error(ErrorKind::invalid, fmt::format("'{}' is no day", text), {},
                     "expected YYYY-MM-DD, such as 2026-11-21");
    return text;
}

}  // namespace

Result<Document> Session::read_document(const std::string& path, std::size_t max_bytes) {
    TRY(std::string text, read_text(*this, path, max_bytes));
    ReadLimits limits;
    limits.max_bytes = max_bytes;
    if (max_bytes > ReadLimits{}.max_bytes) limits.max_nodes = kMaxValues;
    const std::string name = path == "-" ? "stdin" : path;
    auto document = Document::parse(text, name, limits);
    if (text.size() <= ReadLimits{}.max_bytes) sources[name] = std::move(text);
    return document;
}

Result<std::string> Session::read_source(const std::string& path) {
    TRY(std::string text, read_text(*this, path, ReadLimits{}.max_bytes));
    sources[path == "-" ? "stdin" : path] = text;
    return text;
}

Result<Catalog*> Session::catalog() {
    if (!catalog_) {
        auto read = catalog_dir.empty() ? Catalog::embedded() : catalog_from_folder(*this, catalog_dir);
        if (!read) return std::move(read).while_doing("reading the catalogue").error();
        catalog_ = std::move(read).value();
    }
    return &*catalog_;
}

Result<Workload> load_workload(Session& session, const std::string& path) {
    TRY(const Document document, session.read_document(path));
    return load_workload(session, document, path);
}

namespace {

// The stage that was named, of a file that has several.
Result<Workload> load_one_stage(Session& session, const Document& document, const std::string& path) {
    TRY(std::vector<Stage> stages, split_stages(document));
    std::vector<std::string> names;
    for (const Stage& stage : stages) {
        if (stage.name == session.stage) return load_workload(session, stage.document, path);
        names.push_back(stage.name);
    }
    if (session.stage.empty())
        return Error(ErrorKind::invalid, fmt::format("the file has {} stages: one is needed", names.size()),
                     document.root().pos, "--stage " + join(names, ", or --stage "));
    return Error(ErrorKind::not_found, fmt::format("no stage is named {}", printable(session.stage)),
                 document.root().pos, "stages are " + join(names, ", "));
}

}  // namespace

Result<std::vector<LoadedStage>> load_stages(Session& session, const Document& document, const std::string& path) {
    TRY(std::vector<Stage> stages, split_stages(document));
    std::vector<LoadedStage> loaded;
    Problems problems;
    for (Stage& stage : stages) {
        auto workload = load_workload(session, stage.document, path);
        if (workload) {
            loaded.push_back({std::move(stage), std::move(*workload)});
            continue;
        }
        for (const Problem& problem : workload.error().problems()) {
            // What is wrong outside of the stages is wrong in each of them, and is told once.
            const bool known = std::any_of(problems.begin(), problems.end(), [&](const Problem& one) {
                return one.message == problem.message && one.pos.line == problem.pos.line &&
                       one.pos.column == problem.pos.column;
            });
            if (!known) problems.push_back(problem);
        }
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return loaded;
}

Result<Workload> load_workload(Session& session, const Document& document, const std::string& path) {
    namespace fs = std::filesystem;
    if (has_stages(document.root())) return load_one_stage(session, document, path);
    TRY(Catalog * catalog, session.catalog());
    const fs::path folder = path == "-" ? fs::path(".") : fs::path(path).parent_path();
    const FileLoader load = [&](const std::string& name) {
        fs::path file = fs::path(name).is_absolute() ? fs::path(name) : folder / name;
        std::error_code error;
        if (fs::is_directory(file, error)) file /= "config.json";  // a model's folder, as Hugging Face tools take it
        return session.read_document(file.lexically_normal().string());
    };
    TRY_VOID(add_this_machine_if_named(document, *catalog, session.today));
    TRY(Workload workload, read_workload(document, *catalog, load));
    if (workload.where.nodes_here) {
        const Node* list = document.root().find("where")->find("nodes");
        for (const auto& item : list->items) TRY_VOID(add_on_prem_node(*item, *catalog));
    } else if (!workload.where.nodes_file.empty()) {
        TRY(const Document nodes, load(workload.where.nodes_file));
        const Node* list = nodes.root().is_mapping() ? nodes.root().find("nodes") : &nodes.root();
        if (list == nullptr || !list->is_sequence()) {
            return Error(ErrorKind::invalid, "expected a list of nodes", nodes.root().pos,
                         "nodes: [{name: ..., gpu: H100-SXM, gpus: 8, ...}]");
        }
        for (const auto& item : list->items) TRY_VOID(add_on_prem_node(*item, *catalog));
    }
    return workload;
}

const std::vector<OptionSpec>& planning_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "skus",
         .value = "FILE",
         .help = "answer of: az vm list-skus --all -o json",
         .repeats = true,
         .completes = "file"},
        {.name = "usage",
         .value = "FILE",
         .help = "answer of: az vm list-usage -l REGION -o json",
         .completes = "file"},
        {.name = "usage-region", .value = "REGION", .help = "the region that --usage was asked for"},
        {.name = "startable", .help = "only what can start today by --usage and --skus"},
        {.name = "prices",
         .value = "FILE",
         .help = "a page of the Azure Retail Prices API; newer prices replace ours",
         .repeats = true,
         .completes = "file"},
        {.name = "as-of", .value = "DATE", .help = "plan as on this day, YYYY-MM-DD: retirements, age of prices"},
        {.name = "stage", .value = "NAME", .help = "of a file with several stages, this one alone"},
        {.name = "threads", .value = "N", .help = "cores to use; the plan does not depend on it"},
    };
    return options;
}

std::function<std::vector<Problem>(const std::string&, std::string_view)> workload_judge(Session& session) {
    // Nodes that a file names are added to the catalogue of its reader: each file has one of its own.
    const auto guard = std::make_shared<std::mutex>();
    return [&session, guard](const std::string& path, std::string_view text) -> std::vector<Problem> {
        std::optional<Session> own;
        {
            const std::lock_guard lock(*guard);
            const auto read = session.catalog();
            if (!read) return {};  // a bug of the binary, which every other command tells
            own.emplace(session);
        }
        const auto document = Document::parse(text, path);
        if (!document) return document.error().problems();
        if (has_stages(document->root())) {
            const auto stages = load_stages(*own, *document, path);
            return stages ? std::vector<Problem>{} : stages.error().problems();
        }
        const auto workload = load_workload(*own, *document, path);
        return workload ? std::vector<Problem>{} : workload.error().problems();
    };
}

Result<std::vector<SkuOffer>> sku_offers(Session& session, const Args& args) {
    std::vector<SkuOffer> all;
    for (const std::string& path : args.all("skus")) {
        TRY(const std::vector<Document> answers, read_answers(session, path, AzureAnswer::skus));
        for (const Document& answer : answers) {
            TRY(std::vector<SkuOffer> offers, read_list_skus(answer));
            std::move(offers.begin(), offers.end(), std::back_inserter(all));
        }
    }
    order_offers(all);
    return all;
}

Result<PlanOptions> plan_options(Session& session, const Args& args) {
    TRY(Catalog * catalog, session.catalog());
    PlanOptions options;
    options.today = session.today;
    if (const auto day = args.get("as-of")) {
        TRY(options.today, parse_day(*day));
    }
    TRY(options.offers, sku_offers(session, args));
    if (const std::string unknown = unknown_gpu_sizes(options.offers, *catalog); !unknown.empty())
        tell(session, fmt::format("not planned with, because the catalogue has no row for them: {}", unknown));
    if (const auto path = args.get("usage")) {
        TRY(const std::vector<Document> answers, read_answers(session, *path, AzureAnswer::usage));
        for (const Document& answer : answers) {
            TRY(const std::vector<QuotaUsage> usages, read_list_usage(answer));
            options.usages.insert(options.usages.end(), usages.begin(), usages.end());
        }
    }
    if (const auto region = args.get("usage-region")) {
        if (!args.has("usage")) {
            return Error(ErrorKind::invalid,
                         "--usage-region says where the answer of --usage is from, and that is not given", {},
                         "add --usage FILE, or leave --usage-region out");
        }
        auto known = catalog->find_region("azure", *region);
        if (!known) return std::move(known).while_doing("reading --usage-region").error();
        options.usages_region = *known;
    }
    TRY(UserSettings settings, load_user_settings());
    options.home = std::move(settings.home);
    options.residency = std::move(settings.residency);
    if (!settings.evictions.empty()) options.evictions_per_hour = parse_eviction_rate(settings.evictions);
    options.startable = args.has("startable");
    if (options.startable && options.usages.empty() && options.offers.empty())
        return Error(ErrorKind::invalid, "--startable: what can start today is not known", {},
                     "add --usage FILE (az vm list-usage -l REGION -o json) and --usage-region REGION, or --skus FILE");
    PricePageReport prices;
    int pages = 0, followed = 0;
    for (const std::string& path : args.all("prices")) {
        TRY(const std::vector<Document> answers, read_answers(session, path, AzureAnswer::prices));
        for (const Document& answer : answers) {
            TRY(const PricePageReport page, apply_retail_prices(answer, options.today, *catalog));
            prices.taken += page.taken, prices.skipped += page.skipped;
            prices.unknown_sizes.insert(prices.unknown_sizes.end(), page.unknown_sizes.begin(),
                                        page.unknown_sizes.end());
            pages += 1, followed += page.more_pages;
        }
    }
    if (pages > 0) {
        tell(session,
             fmt::format(
                 "{} price{} taken from {} page{}, {} left out (Windows, low priority, not by the hour, not in force), "
                 "{} of sizes the catalogue does not have",
                 prices.taken, prices.taken == 1 ? "" : "s", pages, pages == 1 ? "" : "s", prices.skipped,
                 prices.unknown_sizes.size()));
        if (followed == pages)
            tell(session, "each price page names a next one (NextPageLink): the list is not complete");
    }
    TRY(options.threads, args.whole_number("threads", options.threads, 1, 1024));
    return options;
}

std::string dump(const Session& session, const Json& json) {
    return session.format == Format::yaml ? json.dump_yaml() : json.dump() + "\n";
}

}  // namespace stoker
