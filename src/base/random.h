// Random numbers that are the same on every platform: own generator and own distributions, since those of the standard
// library differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>

namespace stoker {

// splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): passes BigCrush, state of 8
// bytes.
class SplitMix {
public:
    explicit SplitMix(std::uint64_t state) : state_(state) {}
    std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
    double uniform() noexcept { return (static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53; }  // in (0, 1)
    // In [0, n), n > 0; the bias of the multiplication (Lemire 2019) is below n / 2^64.
    std::uint64_t below(std::uint64_t n) noexcept {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
    }
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

}  // namespace stoker
