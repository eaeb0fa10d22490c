// Random draws and the event loop behind simulate_serving. Deterministic by seed on every platform: own generator and
// own distributions, since those of the standard library differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>

#include "sizing/serving.h"

namespace stoker {

// splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): passes BigCrush, state of 8
// bytes.
class SplitMix {
public:
    explicit SplitMix(std::uint64_t state) : state_(state) {}
    std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
    double uniform() noexcept { return (static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53; }  // in (0, 1)
    double exponential() noexcept { return -std::log(uniform()); }
    double normal() noexcept;
    double gamma(double shape) noexcept;  // scale 1
    static std::uint64_t mix(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

private:
    std::uint64_t state_;
};

// Request i of a seed is the same whatever the rate, the device or the policy: common random numbers for every
// comparison.
struct RequestDraw {
    double gap = 0;                 // to the request before, in units of the mean gap
    double prompt = 1, output = 1;  // whole tokens
};
RequestDraw draw_request(const ServingSetup& setup, std::uint64_t seed, std::uint64_t index) noexcept;

// Longest that a drawn length gets, as a multiple of its mean.
inline constexpr double kLongestOverMean = 20;

}  // namespace stoker
