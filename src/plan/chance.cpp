#include "plan/chance.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kNinetieth = 1.2815515655446004;  // an 80 % interval ends at the 10th and the 90th percentile

double side(double inner, double outer) {  // standard deviation of the logarithm on one side
    return inner > 0 && outer > inner ? std::log(outer / inner) / kNinetieth : 0;
}
double normal_below(double deviations) {
    return 0.5 * std::erfc(-deviations / std::sqrt(2.0));
}

}  // namespace

double normal_quantile(double probability) {
    const double p = std::clamp(probability, 1e-9, 1 - 1e-9);
    double low = -7, high = 7;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (normal_below(middle) < p ? low : high) = middle;
    }
    return (low + high) / 2;
}

double chance_below(const Range& range, double limit) {
    if (!(range.mid > 0)) return limit >= range.mid ? 1 : 0;
    if (!(limit > 0)) return 0;
    const double sigma = limit >= range.mid ? side(range.mid, range.high) : side(range.low, range.mid);
    if (sigma <= 0) return limit >= range.mid ? 1 : 0;
    return normal_below(std::log(limit / range.mid) / sigma);
}

double at_quantile(const Range& range, double deviations) {
    const double sigma = deviations >= 0 ? side(range.mid, range.high) : side(range.low, range.mid);
    return range.mid * std::exp(deviations * sigma);
}

Range combined(const Range& a, const Range& b) {
    const double mid = a.mid * b.mid;
    const double below = std::hypot(side(a.low, a.mid), side(b.low, b.mid));
    const double above = std::hypot(side(a.mid, a.high), side(b.mid, b.high));
    return {mid * std::exp(-kNinetieth * below), mid, mid * std::exp(kNinetieth * above)};
}

}  // namespace stoker
