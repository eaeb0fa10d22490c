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

Result<Catalog> catalog_from_folder(const std::string& dir) {
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
    TRY(Catalog catalog, Catalog::from_files(files));
    catalog.origin = dir;
    return catalog;
}

Result<Document> read_document(const std::string& path, std::size_t max_bytes) {
    TRY(const std::string text, read_file(path, max_bytes));
    ReadLimits limits;
    limits.max_bytes = max_bytes;
    limits.max_nodes = 20'000'000;
    return Document::parse(text, path == "-" ? "stdin" : path, limits);
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

Result<Catalog*> Session::catalog() {
    if (!catalog_) {
        auto read = catalog_dir.empty() ? Catalog::embedded() : catalog_from_folder(catalog_dir);
        if (!read) return std::move(read).while_doing("reading the catalogue").error();
        catalog_ = std::move(read).value();
    }
    return &*catalog_;
}

Result<Workload> load_workload(Session& session, const std::string& path) {
    namespace fs = std::filesystem;
    TRY(Catalog * catalog, session.catalog());
    TRY(const std::string text, read_file(path, ReadLimits{}.max_bytes));
    TRY(const Document document, Document::parse(text, path == "-" ? "stdin" : path));
    const fs::path folder = path == "-" ? fs::path(".") : fs::path(path).parent_path();
    const FileLoader load = [&](const std::string& name) {
        const fs::path file = fs::path(name).is_absolute() ? fs::path(name) : folder / name;
        return read_document(file.lexically_normal().string(), ReadLimits{}.max_bytes);
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
        TRY(const Document document, read_document(path, kMaxAnswer));
        TRY(const std::vector<SkuOffer> offers, read_list_skus(document));
        options.offers.insert(options.offers.end(), offers.begin(), offers.end());
    }
    if (const auto path = args.get("usage")) {
        TRY(const Document document, read_document(*path, kMaxAnswer));
        TRY(options.usages, read_list_usage(document));
        options.usages_region = args.get_or("usage-region", "");
    }
    for (const std::string& path : args.all("prices")) {
        TRY(const Document document, read_document(path, kMaxAnswer));
        TRY_VOID(apply_retail_prices(document, options.today, *catalog));
    }
    if (const auto threads = args.get("threads")) {
        TRY(const double count, parse_count(*threads));
        if (count < 1 || count > 1024) return Error(ErrorKind::invalid, "--threads takes a number from 1 to 1024");
        options.threads = static_cast<int>(count);
    }
    return options;
}

std::string dump(const Session& session, const Json& json) {
    return session.format == Format::yaml ? json.dump_yaml() : json.dump() + "\n";
}

}  // namespace stoker
