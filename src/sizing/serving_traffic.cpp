#include "sizing/serving_traffic.h"

namespace stoker {
namespace {

double draw_length(SplitMix& random, LengthLaw law, double mean, double cv, double most) noexcept {
    mean = std::max(mean, 1.0);
    if (!(cv > 0)) return std::round(mean);
    double length = 0;
    if (law == LengthLaw::gamma) {
        const double shape = 1 / (cv * cv);
        length = random.gamma(shape) * mean / shape;
    } else if (law == LengthLaw::uniform) {
        length = mean * (1 + cv * std::sqrt(3.0) * (2 * random.uniform() - 1));
    } else {
        const double variance = std::log1p(cv * cv);
        length = mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
    }
    return std::clamp(std::round(length), 1.0, std::max(1.0, std::round(most * mean)));
}

}  // namespace

RequestDraw draw_request(const ServingSetup& setup, std::uint64_t seed, std::uint64_t index) noexcept {
    const std::uint64_t key = SplitMix::mix(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) + index * 4;
    SplitMix gaps(SplitMix::mix(key)), prompts(SplitMix::mix(key + 1)), outputs(SplitMix::mix(key + 2));
    RequestDraw draw;
    const double cv = setup.arrival_cv;
    if (cv == 1) {
        draw.gap = gaps.exponential();
    } else if (cv > 0) {
        const double shape = 1 / (cv * cv);
        draw.gap = gaps.gamma(shape) / shape;
    } else {
        draw.gap = 1;
    }
    draw.prompt = draw_length(prompts, setup.length_law, setup.prompt_tokens, setup.prompt_cv, setup.length_most);
    draw.output = draw_length(outputs, setup.length_law, setup.output_tokens, setup.output_cv, setup.length_most);
    return draw;
}

}  // namespace stoker
