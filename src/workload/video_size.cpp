#include "workload/video_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

struct Video {
    double frames = 0, width = 0, height = 0;
};

// "denoising step of a video of 81 frames of 1280 x 720"
std::optional<Video> video_in(std::string_view unit) {
    constexpr std::string_view kVideo = "video of ", kFrames = " frames of ", kBy = " x ";
    const std::size_t video = unit.find(kVideo), frames = unit.find(kFrames), by = unit.find(kBy);
    if (video == std::string_view::npos || frames == std::string_view::npos || by == std::string_view::npos ||
        frames < video || by < frames)
        return std::nullopt;
    const auto number = [&](std::size_t from, std::size_t to) {
        const auto count = parse_count(trim(unit.substr(from, to - from)));
        return count ? *count : 0;
    };
    const Video out{number(video + kVideo.size(), frames), number(frames + kFrames.size(), by),
                    number(by + kBy.size(), unit.size())};
    if (!(out.frames >= 1 && out.width > 0 && out.height > 0)) return std::nullopt;
    return out;
}

}  // namespace

double video_edge(const ModelSpec& model) {
    const auto video = video_in(model.sample_unit);
    return video ? std::min(video->width, video->height) : 0;
}

// Its patches attend to all others, which is most of the work of a large one.
std::string scale_video(ModelSpec& model, double edge) {
    const auto video = video_in(model.sample_unit);
    if (!video) return {};
    const double shorter = std::min(video->width, video->height);
    if (edge == shorter) return {};
    constexpr double kFramesOfOne = 4, kPixelsOfOne = 16 * 16;  // of a token: the compression of the VAE, and 2 x 2
    const double ratio = edge / shorter, area = ratio * ratio;
    const double tokens = ((video->frames - 1) / kFramesOfOne + 1) * video->width * video->height / kPixelsOfOne;
    const double matrices =
        std::min(1.0, 2 * parameters_of(model) * tokens / std::max(1.0, model.forward_flops_per_sample));
    const double work = matrices * area + (1 - matrices) * area * area;
    model.forward_flops_per_sample *= work;
    model.frozen_flops_per_sample *= work;
    model.activation_bytes_per_sample *= area;
    model.frozen_activation_bytes *= area;
    const auto edge_text = [&](double pixels) { return fmt::format("{:.0f}", 16 * std::round(pixels * ratio / 16)); };
    const std::string before = fmt::format("{:.0f} x {:.0f}", video->width, video->height),
                      after = edge_text(video->width) + " x " + edge_text(video->height);
    model.sample_unit = replace_all(model.sample_unit, before, after);
    return fmt::format(
        "videos of {} frames of {}: {:.2g} times the work and {:.2g} times the activations of {} at {}, by the patches "
        "and, of attention, by their square",
        format_thousands(video->frames), after, work, area, model.name, before);
}

}  // namespace stoker
