#include "validate/fit_serving.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "validate/fit_rows.h"
#include "validate/held_out.h"
#include "validate/inference.h"
#include "validate/predict.h"

namespace stoker::validate {
namespace {

struct ServingKnob {
    std::string_view name;
    double sigma = 0.3;
};
constexpr ServingKnob kServingKnobs[] = {
    // Devices
    {"decode_weight_bandwidth_efficiency_ampere", 0.2},
    {"decode_weight_bandwidth_efficiency_ada", 0.2},
    {"decode_weight_bandwidth_efficiency_hopper", 0.2},
    {"decode_weight_bandwidth_efficiency_cdna", 0.5},
    {"inference_matmul_efficiency_cdna", 0.5},
    {"inference_link_efficiency_cdna", 0.7},
    {"decode_attention_efficiency_vllm_amd", 1},
    {"kv_group_reread_vllm_amd", 1},
    {"inference_sequence_us_vllm_amd", 1},
    {"inference_host_step_us_vllm_amd", 1},
    {"inference_layer_us_vllm_amd", 1},
    {"inference_layer_us_sglang_amd", 1},
    {"inference_host_step_us_sglang_amd", 1},
    {"inference_sequence_us_sglang_amd", 1},
    {"inference_moe_kernels_sglang_amd", 1},
    {"inference_allreduce_alpha_us_sglang_amd", 1},
    {"decode_weight_bandwidth_efficiency_blackwell", 0.2},
    {"decode_weight_bandwidth_efficiency_llama_cpp", 0.38},
    {"inference_matmul_efficiency_ampere", 0.38},
    {"inference_matmul_efficiency_ada", 0.38},
    {"inference_matmul_efficiency_hopper", 0.38},
    {"inference_matmul_efficiency_blackwell", 0.38},
    {"inference_matmul_efficiency_llama_cpp", 0.75},
    {"inference_prompt_attention_efficiency", 0.75},
    {"decode_attention_efficiency", 0.38},
    {"decode_attention_efficiency_vllm_2024", 0.75},
    {"decode_attention_efficiency_deepspeed_mii", 0.75},
    {"decode_attention_efficiency_llama_cpp", 0.75},
    // Kernels
    {"inference_latent_efficiency", 0.75},
    {"inference_expert_efficiency", 0.75},
    {"inference_expert_efficiency_tensorrt_llm", 0.75},
    {"inference_expert_read_efficiency", 0.75},
    {"inference_expert_skew", 1.2},
    {"inference_untuned_expert_factor", 0.75},
    {"inference_expert_half_tokens", 1.2},
    {"inference_expert_half_width", 1.2},
    {"inference_ring_hop_us", 1},
    {"inference_ring_hop_us_tensorrt_llm_2024", 1},
    {"inference_fp8_matmul_factor", 0.3},
    {"inference_block_matmul_factor", 0.38},
    {"inference_block_read_factor", 0.2},
    {"inference_quantise_layer_us", 1.2},
    {"inference_moe_kernels", 1},
    {"inference_moe_kernels_sglang", 1},
    {"inference_moe_kernels_tensorrt_llm", 1},
    {"inference_moe_kernels_tensorrt_llm_2024", 1},
    {"inference_latent_prompt_kernels", 1},
    {"inference_moe_prompt_kernels", 1.2},
    {"inference_widening_efficiency", 0.75},
    {"inference_widening_kernels", 1},
    {"inference_widening_prompt_kernels", 1},
    {"inference_block_prompt_kernels", 1},
    {"inference_expert_imbalance", 0.75},
    {"inference_emulated_cache_efficiency", 1.2},
    {"inference_client_cv", 0.3},
    {"inference_overlap_power", 0.75},
    {"inference_matmul_half_tokens", 1.2},
    {"inference_vector_passes", 1},
    {"inference_link_efficiency_ampere", 0.75},
    {"inference_link_efficiency_ada", 0.75},
    {"inference_link_efficiency_hopper", 0.75},
    {"inference_link_efficiency_blackwell", 0.75},
    {"inference_allreduce_alpha_us", 1},
    {"inference_allreduce_alpha_us_tensorrt_llm", 1},
    {"inference_allreduce_growth", 1},
    {"inference_allreduce_alpha_us_tensorrt_llm_2024", 1},
    {"inference_allreduce_alpha_us_vllm_2024", 1},
    {"inference_allreduce_alpha_us_deepspeed_mii", 1},
    // Engines
    {"inference_layer_us_tensorrt_llm", 1.2},
    {"inference_layer_us_tensorrt_llm_2024", 1.2},
    {"inference_layer_us_vllm", 1.2},
    {"inference_layer_us_vllm_2024", 1.2},
    {"inference_layer_us_sglang", 1.2},
    {"inference_layer_us_llama_cpp", 1.2},
    {"inference_layer_us_deepspeed_mii", 1.2},
    {"inference_prompt_layer_us_tensorrt_llm", 1.2},
    {"inference_prompt_layer_us_vllm", 1.2},
    {"inference_prompt_layer_us_sglang", 1.2},
    {"inference_host_step_us_tensorrt_llm", 1.2},
    {"inference_host_step_us_tensorrt_llm_2024", 1.2},
    {"inference_host_step_us_vllm", 1.2},
    {"inference_host_step_us_vllm_2024", 1.2},
    {"inference_host_step_us_sglang", 1.2},
    {"inference_host_step_us_llama_cpp", 1.2},
    {"inference_host_step_us_deepspeed_mii", 1.2},
    {"inference_sequence_us_tensorrt_llm", 1.2},
    {"inference_sequence_us_tensorrt_llm_2024", 1.2},
    {"inference_sequence_us_vllm", 1.2},
    {"inference_sequence_us_vllm_2024", 1.2},
    {"inference_sequence_us_sglang", 1.2},
    {"inference_sequence_us_deepspeed_mii", 1.2},
    {"inference_split_us_llama_cpp", 1.2},
    {"inference_first_token_ms_tensorrt_llm", 1.2},
    {"inference_first_token_ms_vllm", 1.2},
    {"inference_first_token_ms_sglang", 1.2},
    {"inference_front_ms_tensorrt_llm", 1.2},
    {"inference_front_ms_vllm", 1.2},
    {"inference_front_ms_sglang", 1.2},
    {"inference_front_token_us", 1.2},
    {"inference_narrow_read_efficiency", 0.75},
    {"inference_fp4_matmul_factor", 0.75},
    {"inference_burst_share", 0.75},
    // Batches of examples
    {"encoder_efficiency", 0.5},
    {"encoder_efficiency_tuned", 0.5},
    {"vision_efficiency", 0.5},
    {"vision_efficiency_tuned", 0.5},
    {"encoder_layer_kernels_tuned", 0.75},
    {"encoder_score_bytes", 0.75},
    {"encoder_bytes_tuned", 0.75},
    {"vision_kernels", 0.75},
    {"vision_kernels_tuned", 0.75},
    {"vision_bytes_tuned", 0.75},
    {"kernel_ramp_us", 1},
    {"sample_host_us", 1.2},
    {"sample_host_us_tuned", 1.2},
    {"sample_wide_factor", 0.38},
    {"sample_narrow_factor", 0.38},
};

// So many rows of a source and metric are taken, evenly through the file: more tell the same again.
constexpr std::size_t kMostRows = 150;

}  // namespace

Result<FitProblem> serving_fit(const Catalog& catalog, const std::string& csv_text, FileName file) {
    TRY(const Csv csv, Csv::read(csv_text, file));
    TRY(const RowKind kind, kind_of(csv, file));
    if (kind != RowKind::inference) return Error(ErrorKind::invalid, "these are no rows of inference", {file, 1, 1});

    FitProblem problem;
    for (const ServingKnob& knob : kServingKnobs)
        problem.knobs.push_back(knob_of(catalog, knob.name, true, knob.sigma));

    struct Point {
        std::size_t request, figure;
        double measured;
    };
    auto requests = std::make_shared<std::vector<InferenceRequest>>();
    auto points = std::make_shared<std::vector<Point>>();
    auto base = std::make_shared<const Catalog>(catalog);
    {
        Hardware hardware(catalog);
        Shapes shapes(catalog);
        std::vector<InferenceRequest> all = inference_requests(csv, hardware, shapes);
        TRY(const HeldOut apart, HeldOut::embedded());
        std::map<std::string, std::size_t> size, seen;
        for (InferenceRequest& r : all) {
            compare(RowKind::inference, csv, r.lines);
            if (!apart.has(Row(csv, r.lines.front().row)))
                for (const Line& line : r.lines) ++size[line.group];
        }
        std::map<std::string, std::uint32_t> groups;
        for (InferenceRequest& r : all) {
            // The highest rate within limits is a search over simulations of the same constants: far too slow here.
            if (!r.setup || !r.lines.front().refused.empty() || r.scenario == InferenceScenario::server) continue;
            if (apart.has(Row(csv, r.lines.front().row))) continue;
            const std::string& name = r.lines.front().group;
            const std::size_t stride = (size[name] + kMostRows - 1) / kMostRows;
            if (seen[name]++ % stride != 0) continue;
            // Both figures of a row, and all metrics of a source, are left out together.
            const std::string source = name.substr(0, name.find(' '));
            bool used = false;
            for (std::size_t k = 0; k < r.lines.size(); ++k) {
                const Line& line = r.lines[k];
                if (!line.measured || !(*line.measured > 0)) continue;
                const auto [at, fresh] = groups.try_emplace(source, static_cast<std::uint32_t>(groups.size()));
                if (fresh) problem.groups.push_back(source);
                problem.group_of.push_back(at->second);
                problem.names.push_back(line.id + " " + line.metric);
                points->push_back({requests->size(), k, *line.measured});
                used = true;
            }
            if (used) requests->push_back(std::move(r));
        }
    }
    const auto knobs = std::make_shared<const std::vector<Knob>>(problem.knobs);
    problem.residuals = [=](std::span<const double> values, std::span<const char> wanted, std::span<double> out) {
        const Catalog changed = with_knobs(*base, *knobs, values);
        std::size_t done = requests->size();
        std::vector<double> figures;
        for (std::size_t i = 0; i < points->size(); ++i) {
            const Point& point = (*points)[i];
            if (!wanted.empty() && wanted[i] == 0) continue;
            if (point.request != done) {
                InferenceRequest request = (*requests)[point.request];
                figures = take_setup(request, changed) ? figures_of(request) : std::vector<double>{};
                done = point.request;
            }
            const double figure = point.figure < figures.size() ? figures[point.figure] : 0;
            out[i] = figure > 0 ? std::log(figure / point.measured) : std::numeric_limits<double>::quiet_NaN();
        }
    };
    return problem;
}

}  // namespace stoker::validate
