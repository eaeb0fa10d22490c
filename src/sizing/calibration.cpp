#include "sizing/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stoker {

namespace {

template <std::size_t N>
using Parts = std::array<double, N>;
template <std::size_t N>
using SquareOfParts = std::array<Parts<N>, N>;

// What is believed before the first point; docs/guides/reality-against-plan.md says where from.
constexpr Parts<3> kStepDeviation{0.35, 0.60, 0.60};
constexpr Parts<2> kMemoryDeviation{0.10, 0.40};
constexpr double kStepSpread = 0.06, kMemorySpread = 0.05, kPriorFreedom = 3;
constexpr double kFarAway = 2.5;  // deviations from which on a point pulls less (Huber)
// One deviation of a step, or of a peak, that is taught at one size and asked at twice that:
// docs/measurements/reality.md.
constexpr double kDeviationPerDoubling = 0.08;

// Of a symmetric positive matrix, by elimination.
template <std::size_t N>
SquareOfParts<N> inverse(SquareOfParts<N> m) {
    SquareOfParts<N> out{};
    for (std::size_t i = 0; i < N; ++i) out[i][i] = 1;
    for (std::size_t i = 0; i < N; ++i) {
        const double pivot = m[i][i];
        for (std::size_t j = 0; j < N; ++j) m[i][j] /= pivot, out[i][j] /= pivot;
        for (std::size_t r = 0; r < N; ++r) {
            if (r == i) continue;
            const double times = m[r][i];
            for (std::size_t j = 0; j < N; ++j) m[r][j] -= times * m[i][j], out[r][j] -= times * out[i][j];
        }
    }
    return out;
}

template <std::size_t N>
double dot(const Parts<N>& a, const Parts<N>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
    return sum;
}

Parts<3> vector_of(const StepParts& parts, double scale) {
    return {parts.compute_s / scale, parts.other_s / scale, parts.exchange_s / scale};
}
Parts<2> vector_of(const MemoryParts& parts, double scale) {
    return {parts.held / scale, parts.transient / scale};
}

// The same prediction: as exactly as one that went through another calibration and back still is.
bool same_case(const CalibrationPoint& a, const CalibrationPoint& b) {
    const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-6 * std::max(std::abs(x), std::abs(y)); };
    return near(a.predicted.compute_s, b.predicted.compute_s) && near(a.predicted.other_s, b.predicted.other_s) &&
           near(a.predicted.exchange_s, b.predicted.exchange_s);
}

bool usable(const CalibrationPoint& point) {
    return point.step_s > 0 && std::isfinite(point.step_s) && point.predicted.sum() > 0 &&
           std::isfinite(point.predicted.sum());
}

// 90 % quantile of Student's t by the expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5).
double t_quantile(double freedom) {
    constexpr double z = 1.2815515655;
    const double n = std::max(2.0, freedom);
    return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

// Each row, times the factors that are looked for, is to come out as 1.
template <std::size_t N>
PartsFit<N> fit_parts(const std::vector<Parts<N>>& rows, const Parts<N>& believed, double prior_spread) {
    PartsFit<N> out;
    out.spread = prior_spread;
    const double n = static_cast<double>(rows.size());
    std::vector<double> weights(rows.size(), 1);
    for (int round = 0; round < 20; ++round) {
        SquareOfParts<N> precision{};
        Parts<N> pull{};
        for (std::size_t i = 0; i < N; ++i) {
            precision[i][i] = 1 / (believed[i] * believed[i]);
            pull[i] = precision[i][i];
        }
        const double noise = 1 / (out.spread * out.spread);
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (std::size_t i = 0; i < N; ++i) {
                pull[i] += weights[r] * noise * rows[r][i];
                for (std::size_t j = 0; j < N; ++j) precision[i][j] += weights[r] * noise * rows[r][i] * rows[r][j];
            }
        out.covariance = inverse<N>(precision);
        double spent =
            static_cast<double>(N);  // what the points said about the factors is not free to tell of the spread
        for (std::size_t i = 0; i < N; ++i) {
            out.factor[i] = std::max(0.05, dot<N>(out.covariance[i], pull));
            spent -= out.covariance[i][i] / (believed[i] * believed[i]);
        }
        out.freedom = kPriorFreedom + n - spent;
        double squares = kPriorFreedom * prior_spread * prior_spread;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const double off = std::abs(1 - dot<N>(out.factor, rows[r]));
            weights[r] = std::min(1.0, kFarAway * out.spread / std::max(off, 1e-12));
            squares += weights[r] * off * off;
        }
        const double spread = std::sqrt(squares / out.freedom);
        const bool settled = std::abs(spread - out.spread) < 1e-6;
        out.spread = spread;
        if (settled) break;
    }
    return out;
}

// What models that were not taught are further off than what is left says of those that were: each model in turn is
// predicted by what the others teach (leave one group out, Hastie et al., The Elements of Statistical Learning, 7.10),
// and what its error has beyond what those would expect widens the spread. Noise alone gives about nothing to widen it
// by.
template <std::size_t N>
void add_spread_between(const std::vector<Parts<N>>& rows, const std::vector<CaseShape>& shapes,
                        const Parts<N>& believed, double prior_spread, PartsFit<N>& whole) {
    const auto same = [](const CaseShape& a, const CaseShape& b) {
        return a.hidden == b.hidden && a.layers == b.layers && a.sequence == b.sequence;
    };
    double excess = 0;
    std::size_t models = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto first =
            std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return same(s, shapes[i]); });
        if (!shapes[i].known() || first != shapes.begin() + static_cast<std::ptrdiff_t>(i)) continue;
        std::vector<Parts<N>> others, left_out;
        for (std::size_t j = 0; j < rows.size(); ++j)
            (same(shapes[j], shapes[i]) ? left_out : others).push_back(rows[j]);
        if (others.size() < kLeastCalibration) return;
        const PartsFit<N> fit = fit_parts<N>(others, believed, prior_spread);
        double off = 0, expected_variance = 0;
        for (const Parts<N>& row : left_out) {
            const double mid = dot<N>(fit.factor, row);
            double unsure = 0;
            for (std::size_t k = 0; k < N; ++k) unsure += row[k] * dot<N>(fit.covariance[k], row);
            const double variance = std::max(0.0, unsure) / (mid * mid) + fit.spread * fit.spread;
            off += std::min((1 - mid) * (1 - mid), 2 * kFarAway * kFarAway * variance);
            expected_variance += variance;
        }
        excess += (off - expected_variance) / static_cast<double>(left_out.size());
        ++models;
    }
    if (models < 3 || excess <= 0) return;
    // The freedom of a sum of variances, by Welch and Satterthwaite: of few models little is known.
    const double within = whole.spread * whole.spread, between = excess / static_cast<double>(models);
    whole.freedom = std::pow(within + between, 2) /
                    (within * within / whole.freedom + between * between / static_cast<double>(models - 1));
    whole.spread = std::sqrt(within + between);
}

// What the factors expect of such parts, and the reach of the 80 % interval as a share of it.
template <std::size_t N>
std::pair<double, double> expected(const PartsFit<N>& fit, const Parts<N>& parts, double doublings) {
    const double mid = dot<N>(fit.factor, parts);
    double unsure = 0;
    for (std::size_t i = 0; i < N; ++i) unsure += parts[i] * dot<N>(fit.covariance[i], parts);
    const double away = kDeviationPerDoubling * doublings;
    const double deviation = std::sqrt(std::max(0.0, unsure) / (mid * mid) + fit.spread * fit.spread + away * away);
    return {mid, t_quantile(fit.freedom) * deviation};
}

}  // namespace

StepPart part_of(TimeTerm term) {
    switch (term) {
        case TimeTerm::matmul:
        case TimeTerm::attention:
        case TimeTerm::logits:
        case TimeTerm::recompute:
        case TimeTerm::bubble: return StepPart::compute;
        case TimeTerm::tensor_comm:
        case TimeTerm::context_comm:
        case TimeTerm::expert_comm:
        case TimeTerm::pipeline_comm:
        case TimeTerm::gradient_comm:
        case TimeTerm::gather_comm: return StepPart::exchange;
        case TimeTerm::memory_bound:
        case TimeTerm::launch:
        case TimeTerm::optimizer:
        case TimeTerm::host:
        case TimeTerm::data_stall:
        case TimeTerm::checkpoint_stall:
        case TimeTerm::count: break;
    }
    return StepPart::other;
}

StepParts parts_of(const std::array<double, kTimeTerms>& seconds) {
    Parts<3> sums{};
    for (std::size_t i = 0; i < seconds.size(); ++i)
        sums[static_cast<std::size_t>(part_of(static_cast<TimeTerm>(i)))] += seconds[i];
    return {sums[0], sums[1], sums[2]};
}

bool is_transient(MemoryTerm term) {
    switch (term) {
        case MemoryTerm::activations:
        case MemoryTerm::logits:
        case MemoryTerm::gathered:
        case MemoryTerm::fragmentation: return true;
        default: return false;
    }
}

MemoryParts memory_parts_of(const std::array<double, kMemoryTerms>& bytes, double total) {
    double transient = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (is_transient(static_cast<MemoryTerm>(i))) transient += bytes[i];
    return {std::max(0.0, total - transient), transient};
}

std::vector<CalibrationPoint> points_of_kind(std::span<const CalibrationPoint> points, std::string_view kind) {
    std::vector<CalibrationPoint> out;
    for (const CalibrationPoint& point : points)
        if (point.kind == kind ||
            (point.kind.empty() && kind == "decoder" && (point.shape.sequence > 1 || !point.shape.known())))
            out.push_back(point);
    return out;
}

std::optional<Calibration> fit_calibration(std::span<const CalibrationPoint> points) {
    std::vector<Parts<3>> rows;
    std::vector<Parts<2>> memory;
    std::vector<CaseShape> shapes, memory_shapes;
    std::array<Range, 4> taught;
    bool any_shape = false;
    std::vector<CalibrationPoint> cases;
    std::size_t runs = 0;
    for (const CalibrationPoint& point : points) {
        if (!usable(point)) continue;
        ++runs;
        const auto seen = std::find_if(cases.begin(), cases.end(),
                                       [&](const CalibrationPoint& each) { return same_case(each, point); });
        if (seen == cases.end()) {
            cases.push_back(point);
            continue;
        }
        seen->step_s = std::min(seen->step_s, point.step_s);
        seen->bytes = std::max(seen->bytes, point.bytes);
    }
    for (const CalibrationPoint& point : cases) {
        rows.push_back(vector_of(point.predicted, point.step_s));
        shapes.push_back(point.shape);
        if (point.predicted_bytes.sum() > 0 && point.bytes > 0) {
            memory.push_back(vector_of(point.predicted_bytes, point.bytes));
            memory_shapes.push_back(point.shape);
        }
        if (!point.shape.known()) continue;
        const auto values = point.shape.values();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double at = std::log2(values[i]);
            taught[i].low = any_shape ? std::min(taught[i].low, at) : at;
            taught[i].high = any_shape ? std::max(taught[i].high, at) : at;
        }
        any_shape = true;
    }
    if (runs < kLeastCalibration) return std::nullopt;
    Calibration out{.points = runs};
    if (any_shape) out.taught = taught;

    // What all have in common first, however much that is; then how the three kinds of work differ from it.
    std::vector<double> ratios;
    for (const Parts<3>& row : rows) ratios.push_back(1 / (row[0] + row[1] + row[2]));
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
    const double common = ratios[ratios.size() / 2];
    for (Parts<3>& row : rows)
        for (double& part : row) part *= common;
    out.step = fit_parts<3>(rows, kStepDeviation, kStepSpread);
    add_spread_between<3>(rows, shapes, kStepDeviation, kStepSpread, out.step);
    for (std::size_t i = 0; i < 3; ++i) {
        out.step.factor[i] *= common;
        for (std::size_t j = 0; j < 3; ++j) out.step.covariance[i][j] *= common * common;
    }
    if (!memory.empty()) {
        out.memory = fit_parts<2>(memory, kMemoryDeviation, kMemorySpread);
        add_spread_between<2>(memory, memory_shapes, kMemoryDeviation, kMemorySpread, out.memory);
    }
    return out;
}

double doublings_outside(const Calibration& calibration, const CaseShape& shape) {
    if (!calibration.taught || !shape.known()) return 0;
    double squares = 0;
    const auto values = shape.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Range& range = (*calibration.taught)[i];
        const double at = std::log2(values[i]);
        const double out = std::max({0.0, range.low - at, at - range.high});
        squares += out * out;
    }
    return std::sqrt(squares);
}

Range calibrated_step(const Calibration& calibration, const StepParts& predicted, const CaseShape& shape) {
    const auto [mid, reach] =
        expected<3>(calibration.step, vector_of(predicted, 1), doublings_outside(calibration, shape));
    // Steps are late more often than early: the same reach by ratio.
    return {mid / (1 + reach), mid, mid * (1 + reach)};
}

std::optional<Range> calibrated_bytes(const Calibration& calibration, const MemoryParts& predicted,
                                      const CaseShape& shape) {
    if (!(calibration.memory.spread > 0) || !(predicted.sum() > 0)) return std::nullopt;
    const auto [mid, reach] =
        expected<2>(calibration.memory, vector_of(predicted, 1), doublings_outside(calibration, shape));
    return Range{mid / (1 + reach), mid, mid * (1 + reach)};
}

}  // namespace stoker
