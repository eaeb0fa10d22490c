#include "validate/fit_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "validate/held_out.h"

namespace stoker::validate {

Catalog with_knobs(const Catalog& catalog, std::span<const Knob> knobs, std::span<const double> values) {
    Catalog changed = catalog;
    for (std::size_t k = 0; k < values.size(); ++k) {
        Constant constant = *changed.constant(knobs[k].name);
        constant.value = values[k];
        changed.replace_constant(std::move(constant));
    }
    return changed;
}

Result<FitProblem> fit_of_rows(const Catalog& catalog, const std::string& csv_text, FileName file, RowKind kind,
                               std::span<const KnobChoice> knobs, RowPredictor predict) {
    TRY(Csv read, Csv::read(csv_text, file));
    const auto csv = std::make_shared<const Csv>(std::move(read));
    TRY(const RowKind found, kind_of(*csv, file));
    if (found != kind)
        return Error(ErrorKind::invalid, fmt::format("these are no rows of {}", to_string(kind)), {file, 1, 1});
    TRY(Intervals some, Intervals::embedded());
    const auto intervals = std::make_shared<const Intervals>(std::move(some));
    const auto base = std::make_shared<const Catalog>(catalog);

    FitProblem problem;
    for (const KnobChoice& knob : knobs)
        problem.knobs.push_back(knob_of(catalog, knob.name, knob.logarithmic, knob.sigma));
    auto rows = std::make_shared<std::vector<std::size_t>>();
    auto measured = std::make_shared<std::vector<double>>();
    {
        Hardware hardware(catalog);
        Shapes shapes(catalog);
        Jobs jobs(hardware, shapes);
        std::vector<Line> lines;
        TRY(const HeldOut apart, HeldOut::embedded());
        for (std::size_t i = 0; i < csv->rows(); ++i)
            if (const Row row(*csv, i); !apart.has(row)) lines.push_back(predict(row, jobs, *intervals));
        compare(kind, *csv, lines);
        std::map<std::string, std::uint32_t> groups;
        for (const Line& line : lines) {
            if (!line.predicted || !line.counted || !line.measured || !(*line.measured > 0)) continue;
            const auto [at, fresh] = groups.try_emplace(line.group, static_cast<std::uint32_t>(groups.size()));
            if (fresh) problem.groups.push_back(line.group);
            problem.group_of.push_back(at->second);
            problem.names.push_back(line.id + " " + line.metric);
            rows->push_back(line.row);
            measured->push_back(*line.measured);
        }
    }
    const auto moved = std::make_shared<const std::vector<Knob>>(problem.knobs);
    problem.residuals = [=](std::span<const double> values, std::span<const char> wanted, std::span<double> out) {
        const Catalog changed = with_knobs(*base, *moved, values);
        Hardware hardware(changed);
        Shapes shapes(changed);
        Jobs jobs(hardware, shapes);
        for (std::size_t i = 0; i < rows->size(); ++i) {
            if (!wanted.empty() && wanted[i] == 0) continue;
            const Line line = predict(Row(*csv, (*rows)[i]), jobs, *intervals);
            out[i] = line.predicted && line.value > 0 ? std::log(line.value / (*measured)[i])
                                                      : std::numeric_limits<double>::quiet_NaN();
        }
    };
    return problem;
}

}  // namespace stoker::validate
