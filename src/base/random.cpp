#include "base/random.h"

namespace stoker {

// Marsaglia's polar method, one of the pair kept back for nobody: draws stay independent of call order.
double SplitMix::normal() noexcept {
    for (;;) {
        const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, r = u * u + v * v;
        if (r < 1 && r > 0) return u * std::sqrt(-2 * std::log(r) / r);
    }
}

// Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; shapes below 1 by their boost.
double SplitMix::gamma(double shape) noexcept {
    if (shape < 1) {
        const double boost = std::pow(uniform(), 1 / shape);
        return gamma(shape + 1) * boost;
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        const double x = normal(), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root;
        if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
}

}  // namespace stoker
