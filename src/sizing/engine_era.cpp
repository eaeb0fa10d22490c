#include "sizing/engine_era.h"

namespace stoker {

std::optional<double> release_of(std::string_view printed) noexcept {
    const auto is_digit = [&](std::size_t at) {
        return at < printed.size() && printed[at] >= '0' && printed[at] <= '9';
    };
    const auto number = [&](std::size_t& at) {  // and moves behind it
        double out = 0;
        for (; is_digit(at); ++at) out = 10 * out + (printed[at] - '0');
        return out;
    };
    for (std::size_t at = 0; at < printed.size(); ++at) {
        if (!is_digit(at)) continue;
        const double major = number(at);
        if (at >= printed.size() || printed[at] != '.' || !is_digit(at + 1)) continue;
        return major + number(++at) / 1000;
    }
    return std::nullopt;
}

bool has_eras(std::string_view framework) noexcept {
    return framework == "vllm" || framework == "tensorrt-llm" || framework == "transformers";
}

EngineEra era_of_release(std::string_view framework, double release) noexcept {
    if (framework == "tensorrt-llm")
        return release >= 1 ? EngineEra::current : release >= 0.010 ? EngineEra::y2024 : EngineEra::y2023;
    // Its second scheduler is what runs since 0.8 (March 2025).
    if (framework == "vllm") return release >= 0.008 ? EngineEra::current : EngineEra::y2024;
    // scaled_dot_product_attention since 4.36 (December 2023), for shared heads without repeating them since 4.48
    // (January 2025; use_gqa_in_sdpa of sdpa_attention.py).
    if (framework == "transformers")
        return release >= 4.048 ? EngineEra::current : release >= 4.036 ? EngineEra::y2024 : EngineEra::y2023;
    return EngineEra::current;
}

}  // namespace stoker
