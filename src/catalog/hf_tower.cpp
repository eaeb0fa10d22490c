#include "catalog/hf_tower.h"

#include <algorithm>

#include "base/text.h"
#include "catalog/field_reader.h"

namespace stoker {

double tower_parameters(const Node& block, int text_hidden) {
    Problems ignored;  // a tower that cannot be read is told as not counted
    FieldReader in(block, ignored);
    const double most = 1e6;
    // Qwen2-VL gives the tower's width as embed_dim, and the language model's as hidden_size.
    const double w = in.number({"embed_dim", "hidden_size", "d_model", "width", "vt_hidden_size"}, 1, most).value_or(0);
    double depth =
        in.number({"depth", "num_hidden_layers", "encoder_layers", "layers", "vt_num_hidden_layers"}, 1, 10'000)
            .value_or(0);
    if (w <= 0 || depth <= 0) return 0;
    depth += in.number({"num_global_layers"}, 0, 10'000).value_or(0);  // Llama 3.2 Vision
    const double ratio = in.number({"mlp_ratio"}, 0.1, 64).value_or(4);
    const double f =
        in.number({"intermediate_size", "encoder_ffn_dim", "vt_intermediate_size"}, 1, 1e7).value_or(ratio * w);
    const std::string type = in.text({"model_type"}).value_or(""), act = in.text({"hidden_act"}).value_or("");
    const bool gated = type == "pixtral" || starts_with_ignore_case(act, "silu");
    const double layer = 4 * w * w + (gated ? 3 : 2) * w * f + 10 * w;

    const double patch = in.number({"patch_size"}, 1, 65'536).value_or(0);
    const double channels = in.number({"in_channels", "in_chans", "num_channels"}, 1, 1024).value_or(3);
    const double frames = in.number({"temporal_patch_size"}, 1, 64).value_or(1);
    double front = patch * patch * channels * frames * w;
    if (const auto bins = in.number({"num_mel_bins"}, 1, 65'536)) front += 3 * w * (*bins + w);

    // Patches are merged, m x m of them, before they become tokens of the language model.
    const double m = in.number({"spatial_merge_size"}, 1, 64).value_or(1), merged = m * m * w;
    const Node* deep = in.find({"deepstack_visual_indexes"});
    const double mergers =
        1 +
        (deep != nullptr && deep->is_sequence() ? std::min<double>(static_cast<double>(deep->items.size()), depth) : 0);
    const double out = text_hidden;
    double projection = m > 1 ? mergers * (merged * merged + merged * out) : w * out + out * out;
    if (const auto wide = in.number({"vision_output_dim"}, 1, most)) projection = *wide * out;
    return depth * layer + front + projection;
}

}  // namespace stoker
