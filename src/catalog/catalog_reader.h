// Inside of Catalog::from_files: who builds the Catalog, in three files. catalog_reader.cpp has the order and the
// prices, hardware_tables.cpp the machines, model_table.cpp the models.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
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
    void read_fitted(std::string_view path);
    void read_links();
    void read_cpus();
    void read_accelerators();
    void read_toolchains();
    void read_weight_formats();
    void read_mig_profiles();
    void read_sizes(const CatalogFile& sizes);
    void read_spot_ratios();
    void read_regions();
    void read_prices(const CatalogFile& prices);
    void read_retirements();
    void read_images();
    void read_disks();
    void read_models();
    void read_requests();
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

// Where the facts of a table come from.
struct ProvenanceColumns {
    explicit ProvenanceColumns(TsvRows& rows) : source(rows.required_column("source")), as_of(rows.column("as_of")) {}
    Provenance of(TsvRows& rows) const {
        rows.check_date(as_of, true);
        return {rows.text(source), rows.text(as_of)};
    }
    int source, as_of;
};

}  // namespace stoker
