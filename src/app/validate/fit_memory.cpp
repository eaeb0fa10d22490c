#include "app/validate/fit_memory.h"

#include "app/validate/fit_rows.h"

namespace stoker::validate {
namespace {

constexpr KnobChoice kMemoryKnobs[] = {
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
    return fit_of_rows(catalog, csv_text, file, RowKind::memory, kMemoryKnobs, predict_memory);
}

}  // namespace stoker::validate
