// From the data files to a Catalog. Every problem of every file is reported at once: whoever edits the tables fixes
// them together.
#include "catalog/catalog_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/geography.h"
#include "catalog/names.h"

namespace stoker {

namespace {

std::optional<Pricing> pricing_named(std::string_view text) {
    for (Pricing p : {Pricing::on_demand, Pricing::spot, Pricing::reserved_1y, Pricing::reserved_3y, Pricing::owned}) {
        if (text == to_string(p)) return p;
    }
    return std::nullopt;
}

bool is_day(std::string_view text) {
    return text.size() == 10 && text[4] == '-' && text[7] == '-' &&
           std::all_of(text.begin(), text.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
}

}  // namespace

std::optional<std::string_view> CatalogReader::file(std::string_view path, bool required) {
    for (const CatalogFile& f : files_) {
        if (f.path == path) return f.bytes;
    }
    if (required) {
        const bool too_deep = std::any_of(files_.begin(), files_.end(),
                                          [&](const CatalogFile& f) { return path.ends_with("/" + f.path); });
        problems_.push_back(Problem{fmt::format("the catalogue has no {}", path),
                                    too_deep ? "this is the inside of a catalogue: give the folder above it" : "",
                                    {}});
    }
    return std::nullopt;
}

std::vector<const CatalogFile*> CatalogReader::files_under(std::string_view folder, std::string_view name) const {
    std::vector<const CatalogFile*> found;
    for (const CatalogFile& f : files_) {
        // curated/ holds what the tables are made from, not facts of its own.
        if (f.path.starts_with(folder) && f.path.ends_with(name) && f.path.find("/curated/") == std::string::npos)
            found.push_back(&f);
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
    read_toolchains();
    read_weight_formats();
    read_mig_profiles();
    for (const CatalogFile* sizes : files_under("catalog/", "/sizes.tsv")) read_sizes(*sizes);
    share_memory_bandwidth();
    read_spot_ratios();
    read_regions();
    for (const CatalogFile* prices : files_under("catalog/prices/", ".tsv")) read_prices(*prices);
    catalog_.replace_prices(std::move(prices_read_));
    for (const RegionPriceRatio& ratio : region_price_ratios())
        if (!catalog_.regions_of(ratio.cloud).empty()) catalog_.note_region(ratio.cloud, ratio.region);
    read_retirements();
    read_images();
    read_disks();
    read_models();
    read_requests();
    if (!problems_.empty()) return error_of(std::move(problems_));  // the caller knows which folder
    drop_undiscounted_spot();
    catalog_.estimate_missing_spot_prices();
    return std::move(catalog_);
}

void CatalogReader::read_version() {
    auto bytes = file("catalog/VERSION");
    if (!bytes) return;
    if (bytes->starts_with("\xEF\xBB\xBF")) bytes->remove_prefix(3);
    const auto lines = split_lines(*bytes);
    if (!lines.empty()) catalog_.version = std::string(trim(lines[0]));
    if (lines.size() > 1) catalog_.as_of = std::string(trim(lines[1]));
    if (catalog_.version.empty()) {
        problems_.push_back(Problem{
            "the first line of VERSION names the version, such as 2026-11", {}, SourcePos{"catalog/VERSION", 1, 1}});
    }
    // Its age is told by this day, and compared as text.
    if (!is_day(catalog_.as_of)) {
        problems_.push_back(Problem{
            "the second line of VERSION is the day of its facts, such as 2026-11-20", {}, {"catalog/VERSION", 2, 1}});
    }
}

void CatalogReader::read_constants() {
    const auto bytes = file("catalog/defaults.tsv");
    if (!bytes) return;
    TsvRows rows("catalog/defaults.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), value = rows.required_column("value"),
              unit = rows.required_column("unit");
    const int low = rows.column("low"), high = rows.column("high"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        Constant c{.name = rows.text(name),
                   .unit = rows.text(unit),
                   .note = rows.text(note),
                   .provenance = provenance.of(rows)};
        rows.check_unique(name);
        c.value = rows.number(value);
        c.low = rows.empty(low) ? c.value : rows.number(low);
        c.high = rows.empty(high) ? c.value : rows.number(high);
        if (rows.empty(value)) rows.problem(value, "a constant needs a value");
        if (c.low > c.value || c.high < c.value) rows.problem(value, "lies outside of low to high");
        catalog_.constants_.push_back(std::move(c));
    }
    std::sort(catalog_.constants_.begin(), catalog_.constants_.end(),
              [](const Constant& a, const Constant& b) { return a.name < b.name; });
    for (const std::string_view fitted : {"training", "memory", "serving"})
        read_fitted(fmt::format("calibration/{}.tsv", fitted));
}

// Constants that were fitted on published runs take the place of the start values (./dev fit writes the files).
void CatalogReader::read_fitted(std::string_view path) {
    const auto bytes = file(path, false);
    if (!bytes) return;
    TsvRows rows(path, *bytes, problems_);
    const int name = rows.required_column("name"), value = rows.required_column("value"),
              spread = rows.column("spread"), groups = rows.column("groups"), count = rows.column("rows"),
              note = rows.column("note");
    while (rows.next()) {
        rows.check_unique(name);
        const auto at = std::find_if(catalog_.constants_.begin(), catalog_.constants_.end(),
                                     [&](const Constant& c) { return c.name == rows.cell(name); });
        if (at == catalog_.constants_.end()) {
            rows.problem(name, "is no constant of catalog/defaults.tsv");
            continue;
        }
        if (rows.empty(value)) rows.problem(value, "a constant needs a value");
        at->value = rows.number(value);
        // The start value's range was a guess beforehand; a fit may know better.
        at->low = std::min(at->low, at->value);
        at->high = std::max(at->high, at->value);
        if (rows.number(count) <= 0) continue;  // its prior, as it stands in defaults.tsv
        at->note = fmt::format("{}{}fitted, spread {} over the folds{}{}", at->note, at->note.empty() ? "" : "; ",
                               rows.cell(spread), rows.empty(note) ? "" : "; ", rows.cell(note));
        at->provenance.source = fmt::format("fitted on {} rows of {}", rows.cell(count), rows.cell(groups));
    }
}

void CatalogReader::read_spot_ratios() {
    const auto bytes = file("catalog/azure/spot_ratios.tsv", false);
    if (!bytes || catalog_.accelerators_.empty()) return;
    TsvRows rows("catalog/azure/spot_ratios.tsv", *bytes, problems_);
    const int accelerator = rows.required_column("accelerator"), low = rows.required_column("low_ratio"),
              high = rows.required_column("high_ratio");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        if (rows.empty(accelerator)) continue;  // a bracket for CPU sizes
        const auto index = catalog_.find_accelerator(rows.cell(accelerator));
        if (!index) {
            rows.problem(accelerator, index.error().message());
            continue;
        }
        const SpotRatio ratio{*index, rows.number(low), rows.number(high), provenance.of(rows)};
        if (ratio.low <= 0 || ratio.high < ratio.low || ratio.high >= 1)
            rows.problem(low, "a spot price lies between nothing and the list price");
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
    const int size = rows.required_column("size"), region = rows.required_column("region"),
              os = rows.required_column("os");
    const int pricing = rows.required_column("pricing"), usd = rows.required_column("usd_per_hour");
    const ProvenanceColumns provenance(rows);
    prices_read_.reserve(prices_read_.size() + prices.bytes.size() / 64);
    std::string_view last_size;
    int node_type = -1;
    const int zone = rows.column("zone");
    std::array<std::string_view, 5> key, last_key;
    while (rows.next()) {
        key = {rows.cell(size), rows.cell(region), rows.cell(os), rows.cell(pricing), rows.cell(zone)};
        if (key == last_key) rows.problem(size, "repeats the row above it");
        last_key = key;
        if (rows.empty(region)) rows.problem(region, "a price needs a region");
        rows.check_one_of(os, {"linux", "windows"});
        if (rows.cell(size) != last_size) {
            last_size = rows.cell(size);
            const auto known = catalog_.node_type_index_.find(fold_vm_size(last_size));
            node_type = known == catalog_.node_type_index_.end() ? -1 : known->second;
            // Price lists are wider than the size tables: constrained-core variants, previews. Without a shape nothing
            // can be planned.
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
        prices_read_.push_back(Price{.node_type = node_type,
                                     .region = rows.text(region),
                                     .os = rows.text(os),
                                     .pricing = *kind,
                                     .per_hour = Usd::from_double(dollars),
                                     .low = dollars,
                                     .high = dollars,
                                     .provenance = provenance.of(rows)});
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
    const int what = rows.required_column("what"), kind = rows.required_column("kind"),
              size = rows.required_column("size");
    const int date = rows.required_column("date"), status = rows.required_column("status"),
              target = rows.column("target"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        rows.check_date(date);
        catalog_.retirements_.push_back(Retirement{rows.text(what), rows.text(kind), rows.text(size), rows.text(date),
                                                   rows.text(status), rows.text(target), rows.text(note),
                                                   provenance.of(rows)});
    }
}

void CatalogReader::read_images() {
    const auto bytes = file("catalog/azure/images.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/images.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), publisher = rows.required_column("publisher"),
              urn = rows.required_column("urn");
    const int os = rows.required_column("os"), generation = rows.column("generation"),
              contains = rows.column("contains");
    const int architecture = rows.column("architecture"), orchestrators = rows.column("orchestrators");
    const int extend = rows.column("extend"), terms = rows.column("terms");
    const int good_for = rows.column("good_for"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        rows.check_unique(name);
        if (!rows.empty(terms) && rows.cell(terms) != "yes" && rows.cell(terms) != "no")
            rows.problem(terms, "yes, no, or empty where it is not known");
        if (!rows.empty(urn) && std::count(rows.cell(urn).begin(), rows.cell(urn).end(), ':') != 3)
            rows.problem(urn, "expected publisher:offer:sku:version");
        catalog_.images_.push_back(Image{.name = rows.text(name),
                                         .publisher = rows.text(publisher),
                                         .urn = rows.text(urn),
                                         .os = rows.text(os),
                                         .generation = rows.text(generation),
                                         .architecture = rows.text(architecture),
                                         .good_for = rows.text(good_for),
                                         .note = rows.text(note),
                                         .contains = rows.list(contains),
                                         .orchestrators = rows.list(orchestrators),
                                         .extend = rows.list(extend),
                                         .terms = rows.text(terms),
                                         .provenance = provenance.of(rows)});
    }
}

void CatalogReader::read_disks() {
    const auto bytes = file("catalog/azure/disks.tsv", false);
    if (!bytes) return;
    TsvRows rows("catalog/azure/disks.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), kind = rows.required_column("kind"),
              gib = rows.required_column("gib");
    const int iops = rows.required_column("iops"), mb_s = rows.required_column("mb_s");
    const int usd = rows.column("usd_per_month"), region = rows.column("price_region"),
              price_source = rows.column("price_source"), note = rows.column("note");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        DiskTier disk{.name = rows.text(name),
                      .kind = rows.text(kind),
                      .gib = rows.number(gib),
                      .iops = rows.number(iops),
                      .mb_s = rows.number(mb_s),
                      .usd_per_month = rows.number(usd),
                      .price_region = rows.text(region),
                      .price_source = rows.text(price_source),
                      .note = rows.text(note),
                      .provenance = provenance.of(rows)};
        rows.check_unique(name);
        if (disk.gib <= 0) rows.problem(gib, "a disk needs a size");
        if (disk.usd_per_month > 0 && disk.price_source.empty()) rows.problem(usd, "a price needs its price_source");
        catalog_.disks_.push_back(std::move(disk));
    }
}

Result<Catalog> Catalog::from_files(std::span<const CatalogFile> files) {
    return CatalogReader(files).read();
}

Result<Catalog> Catalog::embedded() {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& file : embedded_files()) files.push_back({std::string(file.path), file.bytes});
    TRY(Catalog catalog, from_files(files));
    catalog.origin = "embedded";
    return catalog;
}

Result<Catalog> Catalog::embedded_unfitted(std::string_view name) {
    std::vector<CatalogFile> files;
    for (const EmbeddedFile& file : embedded_files())
        if (file.path != fmt::format("calibration/{}.tsv", name)) files.push_back({std::string(file.path), file.bytes});
    TRY(Catalog catalog, from_files(files));
    catalog.origin = "embedded";
    return catalog;
}

}  // namespace stoker
