// ./dev fit: the constants of the cost model from the published rows of data/validation, written to data/calibration.
// usage: fit [NAME...] [--only CONSTANT,...] [--rows FOLDER] [--out FOLDER] [--residuals FILE] [--no-folds] [--dry-run]
//        fit --measured: only counts the rows of each device and kind of work
//        fit --collectives: bus bandwidth told by published, fabric by fabric (data/validation/collectives.csv)
//        fit --spread FILE: by what each row is off, and how far other sources lie (tools/fit_intervals.py reads it)
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "base/text.h"
#include "io/files.h"
#include "sizing/collectives.h"
#include "validate/fit.h"
#include "validate/hardware.h"
#include "validate/held_out.h"
#include "validate/measured.h"
#include "validate/predict.h"

namespace {

using namespace stoker;

constexpr std::size_t kMostRowBytes = 256u << 20;

int fail(const Error& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return exit_code(error.kind());
}

int usage(const std::string& why) {
    fmt::print(stderr,
               "error: {}\n  usage: fit [NAME...] [--rows FOLDER] [--out FOLDER] [--residuals FILE] [--no-folds] "
               "[--dry-run]\n",
               why);
    return 2;
}

Result<bool> fit_one(const validate::FitCase& one, const std::string& rows, const std::string& out,
                     const validate::FitOptions& options, bool dry, const std::string& residuals,
                     const std::vector<std::string>& only) {
    // The constants as they stand before any fit: what was fitted last time must not decide what is fitted now. Where
    // only a few may move, the others stay as fitted.
    TRY(const Catalog catalog, only.empty() ? Catalog::embedded_unfitted(one.name) : Catalog::embedded());
    const std::string path = rows + "/" + std::string(one.rows);
    TRY(const std::string text, read_file(path, kMostRowBytes));
    TRY(validate::FitProblem problem, one.problem(catalog, text, path));
    if (!only.empty()) {
        TRY(problem, validate::restricted(std::move(problem), only));
    }
    const auto begin = std::chrono::steady_clock::now();
    validate::Fit fitted = validate::fit(problem, options);
    std::string more;
    if (one.finish != nullptr && only.empty()) {
        TRY(more, one.finish(catalog, text, path, problem, fitted));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print("{}: {} rows in {} groups, {} constants, {} iterations, {:.0f} s\n{}\n", one.name,
               problem.group_of.size(), problem.groups.size(), problem.knobs.size(), fitted.iterations, seconds,
               validate::fit_text(problem, fitted) + more);
    if (options.folds) fmt::print("{}\n", validate::interval_text(problem, fitted));
    if (!residuals.empty()) TRY_VOID(write_file_atomic(residuals, validate::residuals_tsv(problem, fitted)));
    if (!dry) {
        const std::string file = fmt::format("{}/{}.tsv", out, one.name);
        std::string written = validate::calibration_tsv(one.name, problem, fitted);
        if (!only.empty()) {
            TRY(const std::string before, read_file(file, kMostRowBytes));
            written = validate::merged_calibration(before, written);
        }
        TRY_VOID(write_file_atomic(file, written));
        fmt::print("written: {}; it is in effect after the next build\n", file);
    }
    return true;
}

Result<bool> count_measured(const std::string& rows, const std::string& out) {
    TRY(const Catalog catalog, Catalog::embedded());
    TRY(const std::string training, read_file(rows + "/training.csv", kMostRowBytes));
    TRY(const std::string inference, read_file(rows + "/inference.csv", kMostRowBytes));
    TRY(const std::string text, validate::measured_tsv(catalog, training, inference));
    TRY_VOID(write_file_atomic(out + "/measured.tsv", text));
    TRY(const std::string memory, read_file(rows + "/memory.csv", kMostRowBytes));
    TRY(const std::string sources, validate::sources_tsv(catalog, training, memory, inference));
    TRY_VOID(write_file_atomic(out + "/sources.tsv", sources));
    fmt::print("written: {0}/measured.tsv, {0}/sources.tsv; it is in effect after the next build\n", out);
    return true;
}

// All rows of a kind with the widths of intervals as they are before they grow.
Result<std::vector<validate::Line>> lines_ungrown(std::string_view work, const Csv& csv, validate::RowKind kind) {
    TRY(Catalog catalog, Catalog::embedded());
    for (const auto& [name, value] :
         {std::pair{"interval_known_", 1.0}, std::pair{"interval_known_distance_", 0.0},
          std::pair{"interval_stranger_", 1.0}, std::pair{"interval_stranger_distance_", 0.0}}) {
        Constant constant = *catalog.constant(fmt::format("{}{}", name, work));
        constant.value = value;
        catalog.replace_constant(std::move(constant));
    }
    TRY(const Intervals intervals, Intervals::embedded());
    validate::Hardware hardware(catalog);
    validate::Shapes shapes(catalog);
    validate::Jobs jobs(hardware, shapes);
    std::vector<validate::Line> lines;
    if (kind == validate::RowKind::inference) {
        lines = validate::predict_inference(csv, hardware, shapes, intervals);
    } else {
        const bool memory = kind == validate::RowKind::memory;
        for (std::size_t i = 0; i < csv.rows(); ++i) {
            const validate::Row row(csv, i);
            lines.push_back(memory ? validate::predict_memory(row, jobs, intervals)
                                   : validate::predict_training(row, jobs, intervals));
        }
    }
    validate::compare(kind, csv, lines);
    return lines;
}

Result<bool> write_spread(const std::string& rows, const std::string& out) {
    TRY(const validate::HeldOut apart, validate::HeldOut::embedded());
    std::string text =
        "# ln(measured / predicted) of every row, the ends of its interval before it grows, and its distance from\n"
        "# what other sources measured.\nwork\tsource\tgroup\tapart\tid\tmetric\terror\tlow\thigh\tdistance\n";
    for (const auto& [name, work] :
         {std::pair{"training", "training"}, std::pair{"memory", "memory"}, std::pair{"inference", "serving"}}) {
        const std::string path = fmt::format("{}/{}.csv", rows, name);
        TRY(const std::string bytes, read_file(path, kMostRowBytes));
        TRY(const Csv csv, Csv::read(bytes, path));
        TRY(const validate::RowKind kind, validate::kind_of(csv, path));
        TRY(const std::vector<validate::Line> lines, lines_ungrown(work, csv, kind));
        for (const validate::Line& line : lines) {
            if (!line.predicted || !line.counted || !line.measured || !(*line.measured > 0)) continue;
            const validate::Row row(csv, line.row);
            text += fmt::format("{}\t{}\t{}\t{:d}\t{}\t{}\t{:.5f}\t{:.5f}\t{:.5f}\t{:.3f}\n", work,
                                row.text(row.given("source_group") ? "source_group" : "split_group"), line.group,
                                apart.has(row), line.id, line.metric, std::log(*line.measured / line.value),
                                std::log(line.low / line.value), std::log(line.high / line.value), line.distance);
        }
    }
    TRY_VOID(write_file_atomic(out, text));
    fmt::print("written: {}\n", out);
    return true;
}

// The median, over sizes of 64 MB and more, of what is told by what nccl-tests and rccl-tests measured.
Result<bool> print_collectives(const std::string& rows) {
    TRY(const Catalog catalog, Catalog::embedded());
    const std::string path = rows + "/collectives.csv";
    TRY(const std::string bytes, read_file(path, kMostRowBytes));
    TRY(const Csv csv, Csv::read(bytes, path));
    validate::Hardware hardware(catalog);
    std::map<std::tuple<std::string, std::string, double>, std::vector<double>> ratios;
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const validate::Row row(csv, i);
        const std::string fabric(row.text("fabric")), op(row.text("op"));
        // "H200 8-GPU node, ...", "4x B200 ...", "4 nodes x 8 H100 ...", "AWS P5-class ... (H100; EFA)".
        std::string device;
        for (const std::string_view name :
             {"GB200", "H200", "B200", "H100", "MI355X", "A100-SXM4-40GB", "A100", "V100"})
            if (device.empty() && fabric.find(name) != std::string::npos) device = name;
        const double gpus = row.number("gpus").value_or(0), size = row.number("bytes").value_or(0),
                     bus = row.number("busbw_GBps").value_or(0);
        if (device.empty() || size < 64e6 || bus <= 0) continue;
        if (device == "V100") device = "V100-SXM2-16GB";
        const std::string_view link = fabric.find("EFA v4") != std::string::npos ? "3200 Gb/s EFA"
                                      : fabric.find("EFA") != std::string::npos  ? "3200 Gb/s EFA"
                                                                                 : "";
        const validate::Cluster nodes = hardware.cluster({.gpu_model = device,
                                                          .inter_link = link,
                                                          .gpus_per_node = gpus / row.number("nodes").value_or(1),
                                                          .gpus = gpus});
        if (!nodes.refused.empty()) continue;
        const Group group = make_group(*nodes.device, gpus, 1);
        const double seconds = op == "all_reduce"   ? all_reduce_s(*nodes.device, group, size)
                               : op == "all_gather" ? all_gather_s(*nodes.device, group, size)
                                                    : reduce_scatter_s(*nodes.device, group, size);
        const double moved = op == "all_reduce" ? all_reduce_bytes(gpus, size) : gather_bytes(gpus, size);
        ratios[{fabric, op, gpus}].push_back(moved / seconds / (bus * 1e9));
    }
    for (auto& [key, all] : ratios) {
        std::sort(all.begin(), all.end());
        fmt::print("{:<88} {:>14} {:>5} {:>3} {:6.2f} ({:.2f} to {:.2f})\n", std::get<0>(key), std::get<1>(key),
                   std::get<2>(key), all.size(), all[all.size() / 2], all.front(), all.back());
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    std::string rows = "data/validation", out = "data/calibration", residuals, spread;
    std::vector<std::string> names, only;
    validate::FitOptions options;
    options.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    bool dry = false, measured = false, collectives = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if ((word == "--rows" || word == "--out") && i + 1 < argc) {
            (word == "--rows" ? rows : out) = argv[++i];
        } else if (word == "--only" && i + 1 < argc) {
            for (const std::string_view name : split(argv[++i], ',')) only.emplace_back(name);
        } else if (word == "--residuals" && i + 1 < argc) {
            residuals = argv[++i];
        } else if (word == "--no-folds") {
            options.folds = false;
        } else if (word == "--dry-run") {
            dry = true;
        } else if (word == "--spread" && i + 1 < argc) {
            spread = argv[++i];
        } else if (word == "--collectives") {
            collectives = true;
        } else if (word == "--measured") {
            measured = true;
        } else if (word.starts_with("-")) {
            return usage("unknown or incomplete option " + word);
        } else {
            names.push_back(word);
        }
    }
    if (!spread.empty()) {
        auto written = write_spread(rows, spread);
        return written ? 0 : fail(written.error());
    }
    if (collectives) {
        auto printed = print_collectives(rows);
        return printed ? 0 : fail(printed.error());
    }
    if (measured) {
        auto counted = count_measured(rows, out);
        return counted ? 0 : fail(counted.error());
    }
    for (const std::string& name : names) {
        bool known = false;
        for (const validate::FitCase& one : validate::fit_cases()) known = known || one.name == name;
        if (!known) return usage("nothing called " + name + " is fitted");
    }
    for (const validate::FitCase& one : validate::fit_cases()) {
        bool wanted = names.empty();
        for (const std::string& name : names) wanted = wanted || one.name == name;
        if (!wanted) continue;
        if (auto done = fit_one(one, rows, out, options, dry, residuals, only); !done) return fail(done.error());
    }
    return 0;
}
