// A GPU that is busy with the wrong units: double or single precision beside tensor cores that stand still.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/gpu_text.h"

namespace stoker {

namespace {

struct Units {
    const RankEvidence* rank = nullptr;
    double sm = 0, tensor = 0, fp64 = 0, fp32 = 0;
};
// Of the rank whose tensor cores do least, where they are told (from Hopper on, by the driver itself).
std::optional<Units> units_of(const RunEvidence& evidence) {
    const RankEvidence* rank = worst_gpu(evidence, "gpu_tensor", false);
    if (rank == nullptr || !rank->mean("gpu_sm")) return std::nullopt;
    return Units{rank, *rank->mean("gpu_sm"), *rank->mean("gpu_tensor"), rank->mean("gpu_fp64").value_or(0),
                 rank->mean("gpu_fp32").value_or(0)};
}

int bits_of(const RankEvidence& rank) {
    const auto cast = rank.mean("autocast_bits"), parameters = rank.mean("param_bits");
    return static_cast<int>(cast && *cast > 0 ? *cast : parameters.value_or(0));
}

void add_units(const Units& units, Diagnosis& found) {
    found.evidence.push_back(fmt::format("multiprocessors busy {}, tensor cores {}, single precision {}, double {}",
                                         percent_text(units.sm), percent_text(units.tensor), percent_text(units.fp32),
                                         percent_text(units.fp64)));
    if (const int bits = bits_of(*units.rank); bits > 0)
        found.evidence.push_back(fmt::format("the program says that it computes with {} bits", bits));
}

constexpr const char* kNeedsUnits = "what the units of the GPUs do (gpu_sm, gpu_tensor: from Hopper on)";

// Time that goes to a unit, if another one did it at once.
double time_of(const Units& units, double share) {
    return gpu_work_s(*units.rank).value_or(0) * std::clamp(share, 0.0, 1.0);
}

}  // namespace

DiagnosisVerdict judge_gpu_precision(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const auto units = units_of(evidence);
    if (!units) return diagnosis_silent(kNeedsUnits);
    const bool doubles = units->fp64 >= diagnosis_threshold("gpu.fp64_share");
    const bool singles = units->fp32 >= diagnosis_threshold("gpu.fp32_share") &&
                         units->tensor < diagnosis_threshold("gpu.tensor_share") && bits_of(*units->rank) != 16;
    if (!doubles && !singles)
        return diagnosis_ruled_out(fmt::format("tensor cores {}, single precision {}, double {}",
                                               percent_text(units->tensor), percent_text(units->fp32),
                                               percent_text(units->fp64)));
    Diagnosis found{.what = {}, .evidence = {}, .fix = {}, .rank = units->rank->rank};
    add_units(*units, found);
    if (doubles) {
        found.what = "the GPU computes in double precision";
        found.figures = {deciding_figure("fp64_share", units->fp64, "of the cycles", "gpu.fp64_share")};
        found.fix =
            "a tensor of NumPy or a constant made it float64: .float() where it enters, torch.set_default_dtype, and "
            "look for dtype=torch.float64";
        found.cost_s = time_of(*units, units->fp64);
    } else {
        found.what = "the GPU multiplies in single precision, beside tensor cores that stand still";
        found.figures = {deciding_figure("fp32_share", units->fp32, "of the cycles", "gpu.fp32_share"),
                         deciding_figure("tensor_share", units->tensor, "of the cycles", "gpu.tensor_share")};
        found.fix =
            "torch.set_float32_matmul_precision(\"high\") for TF32, or with torch.autocast(\"cuda\", "
            "dtype=torch.bfloat16): ...";
        found.cost_s = time_of(*units, units->fp32);
    }
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_gpu_tensor_idle(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const auto units = units_of(evidence);
    if (!units) return diagnosis_silent(kNeedsUnits);
    const double memory = units->rank->mean("gpu_dram").value_or(0);
    if (units->sm < diagnosis_threshold("gpu.busy") || units->tensor >= diagnosis_threshold("gpu.tensor_share"))
        return diagnosis_ruled_out(fmt::format("tensor cores work {} of the cycles, multiprocessors {}",
                                               percent_text(units->tensor), percent_text(units->sm)));
    if (memory >= diagnosis_threshold("gpu.dram_busy"))
        return diagnosis_ruled_out(
            fmt::format("device memory is busy {}: what computes there waits for it", percent_text(memory)));
    Diagnosis found{
        .what = fmt::format("the GPU is busy {} of the cycles, and its tensor cores are not", percent_text(units->sm)),
        .evidence = {},
        .fix = bits_of(*units->rank) == 16
                   ? "dimensions that are multiples of 8 (vocabulary, hidden size, heads), channels_last for "
                     "convolutions, and a fused attention (scaled_dot_product_attention)"
                   : "with torch.autocast(\"cuda\", dtype=torch.bfloat16): ..., or "
                     "torch.set_float32_matmul_precision(\"high\")",
        .rank = units->rank->rank};
    found.figures = {deciding_figure("tensor_share", units->tensor, "of the cycles", "gpu.tensor_share"),
                     deciding_figure("sm_share", units->sm, "of the cycles", "gpu.busy")};
    add_units(*units, found);
    found.cost_s = time_of(*units, units->fp32);
    return diagnosis_found(std::move(found));
}

// Tensor cores that work, in a small part of the time that the multiprocessors are busy: what is between the products
// takes the time. What could be gained is at most all of that, and nothing of a model that is so by its nature.
DiagnosisVerdict judge_gpu_unfused(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const auto units = units_of(evidence);
    if (!units) return diagnosis_silent(kNeedsUnits);
    const int bits = bits_of(*units->rank);
    if (bits == 0) return diagnosis_silent("param_bits or autocast_bits in the metrics file (stoker_torch)");
    const double busy = std::max(units->sm, 1e-9), share = units->tensor / busy;
    const std::string figures = fmt::format("tensor cores work {} of the cycles, multiprocessors {}",
                                            percent_text(units->tensor), percent_text(units->sm));
    if (units->sm < diagnosis_threshold("gpu.busy") || units->tensor < diagnosis_threshold("gpu.tensor_share") ||
        share >= diagnosis_threshold("gpu.products_share"))
        return diagnosis_ruled_out(figures);
    if (bits != 16) return diagnosis_ruled_out(fmt::format("{}, with {} bits", figures, bits));
    const auto memory = units->rank->mean("gpu_dram");
    const bool waits = memory && *memory >= diagnosis_threshold("gpu.dram_busy");
    // The products alone, if the tensor cores did them at the rate of a board that does nothing else.
    const double products = units->tensor / diagnosis_threshold("gpu.products_reached");
    Diagnosis found{.what = fmt::format("the GPU is busy {} of the cycles and multiplies in {}: most of a step goes "
                                        "to what is between the products",
                                        percent_text(units->sm), percent_text(units->tensor)),
                    .evidence = {},
                    .fix =
                        "attention that does not write its scores out (scaled_dot_product_attention; transformers: "
                        "attn_implementation=\"sdpa\"), ",
                    .rank = units->rank->rank};
    found.fix += units->rank->mean("compiled").value_or(0) > 0
                     ? "and operators that the compiler leaves apart (TORCH_LOGS=graph_breaks)"
                     : "torch.compile(model), which joins norms, activations and losses";
    found.fix += ", AdamW(fused=True), channels_last for convolutions";
    if (waits) found.fix += "; a model that looks up more than it multiplies (embeddings) is so by its nature";
    found.figures = {deciding_figure("products_share", share, "of the busy cycles", "gpu.products_share"),
                     told_figure("tensor_share", units->tensor, "of the cycles"),
                     deciding_figure("sm_share", units->sm, "of the cycles", "gpu.busy")};
    add_units(*units, found);
    if (memory) {
        found.figures.push_back(deciding_figure("dram_share", *memory, "of the bandwidth", "gpu.dram_busy"));
        found.evidence.push_back(
            waits ? fmt::format("device memory is busy {}, and binds it: tensors are written and read again between "
                                "kernels",
                                percent_text(*memory))
                  : fmt::format("device memory is busy {}", percent_text(*memory)));
    }
    found.cost_s = time_of(*units, units->sm - products);
    found.cost_range = {.low_s = 0, .high_s = found.cost_s};
    if (const auto work = gpu_work_s(*units->rank))
        found.evidence.push_back(fmt::format("at the rate that a board reaches its products take {} of {}",
                                             milliseconds_text(*work * products), milliseconds_text(*work)));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
