#include "app/validate/fit_training.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "app/validate/predict.h"

namespace stoker::validate {
namespace {

// Shares move by sums, everything else by factors.
struct TimeKnob {
    std::string_view name;
    bool logarithmic = true;
    double sigma = 0.3;
};
constexpr TimeKnob kTimeKnobs[] = {
    {"gemm_efficiency_extra", true, 0.05}, {"gemm_k0"}, {"attention_efficiency"}, {"vector_pass_constant"},
    {"memory_efficiency", true, 0.1},
};

}  // namespace

Result<FitProblem> training_fit(const Catalog& catalog, const std::string& csv_text, FileName file) {
    TRY(Csv read, Csv::read(csv_text, file));
    const auto csv = std::make_shared<const Csv>(std::move(read));
    TRY(const RowKind kind, kind_of(*csv, file));
    if (kind != RowKind::training) return Error(ErrorKind::invalid, "these are no rows of training", {file, 1, 1});
    TRY(Intervals some, Intervals::embedded());
    const auto intervals = std::make_shared<const Intervals>(std::move(some));
    const auto base = std::make_shared<const Catalog>(catalog);

    FitProblem problem;
    for (const TimeKnob& knob : kTimeKnobs)
        problem.knobs.push_back(knob_of(catalog, knob.name, knob.logarithmic, knob.sigma));

    // The rows that have a prediction and a measurement.
    auto rows = std::make_shared<std::vector<std::size_t>>();
    auto measured = std::make_shared<std::vector<double>>();
    {
        Hardware hardware(catalog);
        Shapes shapes(catalog);
        Jobs jobs(hardware, shapes);
        std::vector<Line> lines;
        for (std::size_t i = 0; i < csv->rows(); ++i) lines.push_back(predict_training(Row(*csv, i), jobs, *intervals));
        compare(RowKind::training, *csv, lines);
        std::map<std::string, std::uint32_t> groups;
        for (const Line& line : lines) {
            if (!line.predicted || !line.counted || !line.measured || !(*line.measured > 0)) continue;
            const auto [at, fresh] = groups.try_emplace(line.group, static_cast<std::uint32_t>(groups.size()));
            if (fresh) problem.groups.push_back(line.group);
            problem.group_of.push_back(at->second);
            rows->push_back(line.row);
            measured->push_back(*line.measured);
        }
    }
    const auto names = std::make_shared<std::vector<std::string>>();
    for (const Knob& knob : problem.knobs) names->push_back(knob.name);
    problem.residuals = [=](std::span<const double> values, std::span<double> out) {
        Catalog changed = *base;
        for (std::size_t k = 0; k < values.size(); ++k) {
            Constant constant = *changed.constant((*names)[k]);
            constant.value = values[k];
            changed.replace_constant(std::move(constant));
        }
        Hardware hardware(changed);
        Shapes shapes(changed);
        Jobs jobs(hardware, shapes);
        for (std::size_t i = 0; i < rows->size(); ++i) {
            const Line line = predict_training(Row(*csv, (*rows)[i]), jobs, *intervals);
            out[i] = line.predicted && line.value > 0 ? std::log(line.value / (*measured)[i])
                                                      : std::numeric_limits<double>::quiet_NaN();
        }
    };
    return problem;
}

}  // namespace stoker::validate
