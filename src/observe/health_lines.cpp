#include "observe/health_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "base/units.h"
#include "catalog/names.h"

namespace stoker {
namespace {

constexpr std::string_view kLinesFile = "observe/health.tsv", kSizesFile = "catalog/azure/node_checks.tsv",
                           kRatesFile = "observe/gpu_rates.tsv", kGpusFile = "catalog/accelerators.tsv";

const Tsv& embedded_health_table(std::string_view path) {
    const auto read = [](std::string_view wanted) {
        auto table = Tsv::read(embedded_bytes(wanted), wanted);
        CHECK(table.ok());  // our own data
        return std::move(*table);
    };
    static const Tsv lines = read(kLinesFile), sizes = read(kSizesFile), rates = read(kRatesFile),
                     gpus = read(kGpusFile);
    return path == kLinesFile ? lines : path == kSizesFile ? sizes : path == kRatesFile ? rates : gpus;
}

double number_of_cell(std::string_view text) {
    return std::strtod(std::string(text).c_str(), nullptr);
}

// "470543164kB" of /proc/meminfo, "221450MB" of free -m, "433GB" of free -g: all of them powers of two.
double memory_of_cell(std::string_view text) {
    const double number = number_of_cell(text);
    return text.ends_with("kB") ? number * kKiB : text.ends_with("MB") ? number * kMiB : number * kGiB;
}

std::string_view health_cell(const Tsv& table, std::size_t row, std::string_view column) {
    const auto at = table.column(column);
    CHECK(at.ok());
    return table.at(row, *at);
}

// The row of the catalogue whose name or alias that is, whole: a part of a board (MIG) has another name.
std::optional<std::size_t> row_of_gpu(std::string_view gpu) {
    const Tsv& table = embedded_health_table(kGpusFile);
    const std::string wanted = fold_accelerator(gpu);
    for (std::size_t row = 0; row < table.rows(); ++row) {
        if (fold_accelerator(health_cell(table, row, "name")) == wanted) return row;
        for (const std::string_view alias : split(health_cell(table, row, "aliases"), ','))
            if (fold_accelerator(alias) == wanted) return row;
    }
    return std::nullopt;
}

}  // namespace

const std::vector<HealthLine>& health_lines() {
    static const std::vector<HealthLine> list = [] {
        std::vector<HealthLine> found;
        const Tsv& table = embedded_health_table(kLinesFile);
        CHECK(table.header().size() == 8);
        for (std::size_t row = 0; row < table.rows(); ++row)
            found.push_back({.name = table.at(row, 0),
                             .kind = table.at(row, 1),
                             .unit = table.at(row, 4),
                             .source = table.at(row, 6),
                             .as_of = table.at(row, 7),
                             .pass = number_of_cell(table.at(row, 2)),
                             .warn = number_of_cell(table.at(row, 3)),
                             .lower_is_better = table.at(row, 5) == "lower"});
        return found;
    }();
    return list;
}

const HealthLine* health_line(std::string_view name, std::string_view kind) {
    for (const HealthLine& each : health_lines())
        if (each.name == name && each.kind == kind) return &each;
    return nullptr;
}

bool lower_is_better(std::string_view check) {
    for (const HealthLine& each : health_lines())
        if (each.name == check) return each.lower_is_better;
    return false;
}

Result<std::vector<SizeFact>> facts_of_size(std::string_view size) {
    const Tsv& table = embedded_health_table(kSizesFile);
    const std::string wanted = fold_vm_size(size);
    std::vector<std::string> known;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        known.emplace_back(table.at(row, 0));
        if (fold_vm_size(table.at(row, 0)) != wanted) continue;
        const auto cell = [&](std::string_view column) {
            const auto at = table.column(column);
            CHECK(at.ok());
            return table.at(row, *at);
        };
        std::vector<SizeFact> facts;
        const auto add = [&](const char* name, const char* column, const char* unit, double scale, bool is_line) {
            const std::string_view text = cell(column);
            if (text.empty()) return;
            facts.push_back({.name = name,
                             .unit = unit,
                             .source = fmt::format("{}: {} of {} ({}, {})", kSizesFile, column, table.at(row, 0),
                                                   cell("source"), cell("as_of")),
                             .value = number_of_cell(text) * scale,
                             .is_line = is_line});
        };
        add("gpu-count", "gpus", "count", 1, false);
        add("processors", "cores", "count", 1, false);
        add("memory-present", "physical_memory", "bytes", 1, false);
        if (!facts.empty() && facts.back().name == "memory-present")
            facts.back().value = memory_of_cell(cell("physical_memory"));
        add("ib-ports", "ib_ports", "count", 1, false);
        add("ib-rate", "ib_link_gbps", "bytes/s", 1e9 / 8, false);
        add("nvme-disks", "nvme_disks", "count", 1, false);
        add("gpu-copy", "h2d_d2h_min_gb_s", "bytes/s", 1e9, true);
        add("gpu-peer-copy", "gpu_p2p_min_gb_s", "bytes/s", 1e9, true);
        add("gpu-all-reduce", "nccl_allreduce_min_gb_s", "bytes/s", 1e9, true);
        // STREAM triad on all processors.
        add("memory-bandwidth", "stream_triad_min_mb_s", "bytes/s", 1e6, true);
        return facts;
    }
    return Error(
        ErrorKind::not_found,
        fmt::format("no thresholds of a node check are known for {}{}", printable(size, 60), did_you_mean(size, known)),
        {}, fmt::format("{} has {} sizes", kSizesFile, table.rows()));
}

std::optional<SizeFact> fact_of_gpu(std::string_view gpu, std::string_view check, std::string_view work) {
    const auto found = row_of_gpu(gpu);
    if (!found) return std::nullopt;
    const Tsv &gpus = embedded_health_table(kGpusFile), &rates = embedded_health_table(kRatesFile);
    const std::string_view name = health_cell(gpus, *found, "name");
    for (std::size_t row = 0; row < rates.rows(); ++row) {
        if (health_cell(rates, row, "gpu") != name || health_cell(rates, row, "check") != check ||
            health_cell(rates, row, "work") != work)
            continue;
        const std::string_view column = health_cell(rates, row, "of");
        const bool tera = column.ends_with("_tflops");
        const double whole = number_of_cell(health_cell(gpus, *found, column)) * (tera ? 1e12 : 1e9);
        const std::string_view boards = health_cell(rates, row, "boards");
        return SizeFact{
            .name = std::string(check),
            .unit = tera ? "FLOP/s" : "bytes/s",
            .source = fmt::format("{}: {} of {} of {} ({} board{}, {})", kRatesFile, health_cell(rates, row, "share"),
                                  column, name, boards, boards == "1" ? "" : "s", health_cell(rates, row, "as_of")),
            .value = whole * number_of_cell(health_cell(rates, row, "share"))};
    }
    return std::nullopt;
}

}  // namespace stoker
