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
    // Matrix products and attention
    {"gemm_efficiency_extra", true, 0.05},
    {"gemm_k0", true, 0.5},
    {"gemm_tile_half", true, 0.5},
    {"gemm_partly_aligned_rate", true, 0.2},
    {"gemm_measured_fraction_fp32", true, 0.1},
    {"attention_efficiency", true, 0.2},
    {"attention_efficiency_first", true, 0.3},
    {"attention_efficiency_hopper", true, 0.3},
    {"attention_efficiency_vendor", true, 0.2},
    {"attention_backward_factor", true, 0.1},
    {"attention_head_dim_64_factor", true, 0.15},
    {"attention_unfused_passes", true, 0.4},
    // What passes through memory
    {"memory_efficiency", true, 0.1},
    {"vector_pass_constant", true, 0.3},
    {"vector_pass_constant_compiled", true, 0.3},
    {"vector_factor_megatron", true, 0.3},
    {"vector_factor_megatron_deepspeed", true, 0.3},
    {"vector_factor_nemo", true, 0.3},
    {"vector_factor_nanotron", true, 0.4},
    {"vector_factor_composer", true, 0.3},
    {"vector_factor_tensorflow", true, 0.3},
    {"logits_passes_fp32", true, 0.4},
    {"moe_dispatch_passes", true, 0.5},
    {"lora_vector_factor", true, 0.3},
    // The host
    {"launch_factor_default", true, 0.5},
    {"launch_factor_megatron", true, 0.5},
    {"launch_factor_megatron_deepspeed", true, 0.5},
    {"launch_factor_nemo", true, 0.5},
    {"launch_factor_nanotron", true, 0.5},
    {"launch_factor_composer", true, 0.5},
    {"launch_factor_fsdp", true, 0.5},
    {"launch_factor_tensorflow", true, 0.5},
    {"moe_launch_factor", true, 0.7},
    {"lora_kernel_factor", true, 0.4},
    {"step_host_ms", true, 0.7},
    {"pipeline_host_ms_megatron_deepspeed", true, 1},
    {"pipeline_host_ms_nanotron", true, 1.5},
    {"pipeline_host_ms_nemo", true, 1},
    // Communication
    {"collective_share_inside", true, 0.15},
    {"collective_share_across", true, 0.2},
    {"collective_start_share", true, 0.5},
    {"overlap_megatron", false, 0.2},
    {"overlap_megatron_deepspeed", false, 0.3},
    {"overlap_nemo", false, 0.3},
    {"overlap_nanotron", false, 0.3},
    {"overlap_composer", false, 0.3},
    {"overlap_fsdp", false, 0.3},
    {"overlap_tensorflow", false, 0.3},
    {"overlap_default", false, 0.3},
    {"overlap_tensor_nemo", false, 0.25},
    {"overlap_expert_nemo", false, 0.3},
    {"overlap_pipeline", false, 0.3},
    {"overlap_slowdown", false, 0.2},
    // Networks that are counted by samples
    {"vision_matmul_efficiency", true, 0.2},
    {"vision_passes", true, 0.5},
    {"vision_passes_compiled", true, 0.4},
    {"vision_kernels_per_step", true, 0.5},
    {"unpadded_share_encoder", true, 0.15},
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
    problem.residuals = [=](std::span<const double> values, std::span<const char> wanted, std::span<double> out) {
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
            if (!wanted.empty() && wanted[i] == 0) continue;
            const Line line = predict_training(Row(*csv, (*rows)[i]), jobs, *intervals);
            out[i] = line.predicted && line.value > 0 ? std::log(line.value / (*measured)[i])
                                                      : std::numeric_limits<double>::quiet_NaN();
        }
    };
    return problem;
}

}  // namespace stoker::validate
