#include "app/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "app/this_machine.h"
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
    TRY(std::string text, read_file(path, max_bytes));
    ReadLimits limits;
    limits.max_bytes = max_bytes;
    if (max_bytes > ReadLimits{}.max_bytes) limits.max_nodes = kMaxValues;
    const std::string name = path == "-" ? "stdin" : path;
    auto document = Document::parse(text, name, limits);
    if (text.size() <= ReadLimits{}.max_bytes) sources[name] = std::move(text);
    return document;
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
    namespace fs = std::filesystem;
    TRY(Catalog * catalog, session.catalog());
    TRY(const Document document, session.read_document(path));
    const fs::path folder = path == "-" ? fs::path(".") : fs::path(path).parent_path();
    const FileLoader load = [&](const std::string& name) {
        const fs::path file = fs::path(name).is_absolute() ? fs::path(name) : folder / name;
        return session.read_document(file.lexically_normal().string());
    };
    TRY_VOID(add_this_machine_if_named(document, *catalog));
    TRY(Workload workload, read_workload(document, *catalog, load));
    if (!workload.where.nodes_file.empty()) {
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
        {.name = "prices",
         .value = "FILE",
         .help = "a page of the Azure Retail Prices API; newer prices replace ours",
         .repeats = true,
         .completes = "file"},
        {.name = "as-of", .value = "DATE", .help = "plan as on this day, YYYY-MM-DD: retirements, age of prices"},
        {.name = "threads", .value = "N", .help = "cores to use; the plan does not depend on it"},
    };
    return options;
}

Result<PlanOptions> plan_options(Session& session, const Args& args) {
    TRY(Catalog * catalog, session.catalog());
    PlanOptions options;
    options.today = session.today;
    if (const auto day = args.get("as-of")) {
        TRY(options.today, parse_day(*day));
    }
    for (const std::string& path : args.all("skus")) {
        TRY(const Document document, session.read_document(path, kMaxAnswer));
        TRY(const std::vector<SkuOffer> offers, read_list_skus(document));
        options.offers.insert(options.offers.end(), offers.begin(), offers.end());
    }
    if (const auto path = args.get("usage")) {
        TRY(const Document document, session.read_document(*path, kMaxAnswer));
        TRY(options.usages, read_list_usage(document));
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
    for (const std::string& path : args.all("prices")) {
        TRY(const Document document, session.read_document(path, kMaxAnswer));
        TRY_VOID(apply_retail_prices(document, options.today, *catalog));
    }
    TRY(options.threads, args.whole_number("threads", options.threads, 1, 1024));
    return options;
}

std::string dump(const Session& session, const Json& json) {
    return session.format == Format::yaml ? json.dump_yaml() : json.dump() + "\n";
}

}  // namespace stoker
