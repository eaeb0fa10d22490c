// ./dev fit: the constants of the cost model from the published rows of data/validation, written to data/calibration.
// usage: fit [NAME...] [--only CONSTANT,...] [--rows FOLDER] [--out FOLDER] [--residuals FILE] [--no-folds] [--dry-run]
//        fit --measured: only counts the rows of each device and kind of work
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/files.h"
#include "validate/fit.h"
#include "validate/measured.h"

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
    fmt::print("written: {}/measured.tsv; it is in effect after the next build\n", out);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    std::string rows = "data/validation", out = "data/calibration", residuals;
    std::vector<std::string> names, only;
    validate::FitOptions options;
    options.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    bool dry = false, measured = false;
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
        } else if (word == "--measured") {
            measured = true;
        } else if (word.starts_with("-")) {
            return usage("unknown or incomplete option " + word);
        } else {
            names.push_back(word);
        }
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
