// Images of another size than the one the catalogue counts a model for.
#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "workload/video_size.h"
#include "workload/workload_form.h"

namespace stoker {

std::string samples_of(const ModelSpec& model) {
    if (model.sample_unit.find(' ') == std::string::npos) return model.sample_unit + "s";
    if (model.kind != ModelKind::diffusion) return "examples";
    // What they measure decides the work: "videos of 81 frames of 1280 x 720".
    const std::size_t video = model.sample_unit.find("video of ");
    return video == std::string::npos ? model.request_unit() + "s" : "videos" + model.sample_unit.substr(video + 5);
}

void take_image_size(WorkloadForm& w, Problems& problems) {
    const bool traffic = w.traffic.image_size.has_value();
    const auto& size = traffic ? w.traffic.image_size : w.data.image_size;
    if (!size) return;
    ModelSpec& model = w.model;
    const SourcePos pos = place_of(traffic ? w.traffic.at : w.data.at, "image_size", w.pos);
    const auto refuse = [&](std::string why, std::string remedy) {
        problems.push_back({fmt::format("image_size: {}", why), std::move(remedy), pos});
    };
    if (w.data.image_size && w.traffic.image_size)
        return refuse("said in data and in traffic", "keep the one that the work reads");
    if (!is_image(model.kind))
        return refuse(fmt::format("{} takes no images that are counted by their pixels", model.name), "take it out");
    if (video_edge(model) > 0) {
        if (std::string changed = scale_video(model, *size); !changed.empty())
            w.assumptions.push_back(std::move(changed));
        return;
    }
    // A vision transformer has a table of positions for one number of patches.
    if (model.kind == ModelKind::vit || !(model.image_size > 0) || !(model.forward_flops_per_sample > 0))
        return refuse(fmt::format("the size that the work of {} is counted for is not known", model.name),
                      "say the work of one of your samples: model: {forward_flops: ..., activation_bytes: ...}");
    if (*size == model.image_size) return;
    const double area = *size * *size / (model.image_size * model.image_size);
    for (double* work :
         {&model.forward_flops_per_sample, &model.activation_bytes_per_sample, &model.frozen_flops_per_sample,
          &model.frozen_activation_bytes, &model.winograd_flops_per_sample, &model.request.once_flops})
        *work *= area;
    w.assumptions.push_back(fmt::format(
        "images of {0:.0f} x {0:.0f}: {1:.2g} times the work and activations of {2} at {3:.0f} x {3:.0f}, "
        "by the pixels{4}",
        *size, area, model.name, model.image_size,
        model.transformer_denoiser ? "; attention between patches grows faster, which is not counted" : ""));
    model.sample_unit = replace_all(model.sample_unit, fmt::format("{0:.0f} x {0:.0f}", model.image_size),
                                    fmt::format("{0:.0f} x {0:.0f}", *size));
    model.image_size = *size;
}

}  // namespace stoker
