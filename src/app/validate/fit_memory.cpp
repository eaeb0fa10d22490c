#include "app/validate/fit_memory.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "app/validate/predict.h"

namespace stoker::validate {
namespace {

struct MemoryKnob {
    std::string_view name;
    bool logarithmic = true;
    double sigma = 0.3;
};
constexpr MemoryKnob kMemoryKnobs[] = {
    {"logit_bytes_megatron"},
    {"logit_bytes_nanotron"},
    {"logit_bytes_eager"},
    {"logit_bytes_fused"},
    {"held_bytes_nanotron", false},
    {"activation_undivided_nanotron", false},
    {"activation_stage_nanotron", false},
    {"checkpoint_copies_sharded_adapter"},
    {"fsdp_live_layers"},
    {"allocator_reserve_logits", true, 0.2},
};

}  // namespace

Result<FitProblem> memory_fit(const Catalog& catalog, const std::string& csv_text, FileName file) {
    TRY(Csv read, Csv::read(csv_text, file));
    const auto csv = std::make_shared<const Csv>(std::move(read));
    TRY(const RowKind kind, kind_of(*csv, file));
    if (kind != RowKind::memory) return Error(ErrorKind::invalid, "these are no rows of training memory", {file, 1, 1});
    TRY(Intervals some, Intervals::embedded());
    const auto intervals = std::make_shared<const Intervals>(std::move(some));
    const auto base = std::make_shared<const Catalog>(catalog);

    FitProblem problem;
    for (const MemoryKnob& knob : kMemoryKnobs)
        problem.knobs.push_back(knob_of(catalog, knob.name, knob.logarithmic, knob.sigma));
    auto rows = std::make_shared<std::vector<std::size_t>>();
    auto measured = std::make_shared<std::vector<double>>();
    {
        Hardware hardware(catalog);
        Shapes shapes(catalog);
        Jobs jobs(hardware, shapes);
        std::vector<Line> lines;
        for (std::size_t i = 0; i < csv->rows(); ++i) lines.push_back(predict_memory(Row(*csv, i), jobs, *intervals));
        compare(RowKind::memory, *csv, lines);
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
    problem.residuals = [=](std::span<const double> values, std::span<const char> wanted, std::span<double> out) {
        Catalog moved = *base;
        for (std::size_t k = 0; k < values.size(); ++k) {
            Constant constant = *moved.constant((*names)[k]);
            constant.value = values[k];
            moved.replace_constant(std::move(constant));
        }
        Hardware hardware(moved);
        Shapes shapes(moved);
        Jobs jobs(hardware, shapes);
        for (std::size_t i = 0; i < rows->size(); ++i) {
            if (!wanted.empty() && wanted[i] == 0) continue;
            const Line line = predict_memory(Row(*csv, (*rows)[i]), jobs, *intervals);
            out[i] = line.predicted && line.value > 0 ? std::log(line.value / (*measured)[i])
                                                      : std::numeric_limits<double>::quiet_NaN();
        }
    };
    return problem;
}

}  // namespace stoker::validate
