#include "sizing/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stoker {

namespace {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

// What is believed before the first point; docs/guides/reality-against-plan.md says where from.
constexpr Vector3 kPriorDeviation{0.35, 0.60, 0.60};
constexpr double kPriorSpread = 0.06, kPriorFreedom = 3;
constexpr double kFarAway = 2.5;  // deviations from which on a point pulls less (Huber)
constexpr double kMemoryPrior = 0.10, kMemorySpread = 0.05;

// Of a symmetric positive matrix, by cofactors.
Matrix3 inverse(const Matrix3& m) {
    Matrix3 out{};
    const double det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                       m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                       m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            const std::size_t a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            out[i][j] = (m[a][c] * m[b][d] - m[a][d] * m[b][c]) / det;
        }
    return out;
}

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector3 vector_of(const StepParts& parts, double scale) {
    return {parts.compute_s / scale, parts.other_s / scale, parts.exchange_s / scale};
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
    Vector3 sums{};
    for (std::size_t i = 0; i < seconds.size(); ++i)
        sums[static_cast<std::size_t>(part_of(static_cast<TimeTerm>(i)))] += seconds[i];
    return {sums[0], sums[1], sums[2]};
}

std::optional<Calibration> fit_calibration(std::span<const CalibrationPoint> points) {
    std::vector<Vector3> rows;
    std::vector<double> memory;
    for (const CalibrationPoint& point : points) {
        if (!usable(point)) continue;
        rows.push_back(vector_of(point.predicted, point.step_s));  // each is to come out as 1
        if (point.predicted_bytes > 0 && point.bytes > 0)
            memory.push_back(std::log(point.bytes / point.predicted_bytes));
    }
    if (rows.size() < kLeastCalibration) return std::nullopt;

    // What all have in common first, however much that is; then how the three kinds of work differ from it.
    std::vector<double> ratios;
    for (const Vector3& row : rows) ratios.push_back(1 / (row[0] + row[1] + row[2]));
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
    const double common = ratios[ratios.size() / 2];
    for (Vector3& row : rows)
        for (double& part : row) part *= common;

    Calibration out{.points = rows.size(), .spread = kPriorSpread};
    const double n = static_cast<double>(rows.size());
    std::vector<double> weights(rows.size(), 1);
    for (int round = 0; round < 20; ++round) {
        Matrix3 precision{};
        Vector3 pull{};
        for (std::size_t i = 0; i < 3; ++i) {
            precision[i][i] = 1 / (kPriorDeviation[i] * kPriorDeviation[i]);
            pull[i] = precision[i][i];
        }
        const double noise = 1 / (out.spread * out.spread);
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (std::size_t i = 0; i < 3; ++i) {
                pull[i] += weights[r] * noise * rows[r][i];
                for (std::size_t j = 0; j < 3; ++j) precision[i][j] += weights[r] * noise * rows[r][i] * rows[r][j];
            }
        out.covariance = inverse(precision);
        double spent = 3;  // what the points had to say about the factors is not free to tell of the spread
        for (std::size_t i = 0; i < 3; ++i) {
            out.factor[i] = std::max(0.05, dot(out.covariance[i], pull));
            spent -= out.covariance[i][i] / (kPriorDeviation[i] * kPriorDeviation[i]);
        }
        out.freedom = kPriorFreedom + n - spent;
        double squares = kPriorFreedom * kPriorSpread * kPriorSpread;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const double off = std::abs(1 - dot(out.factor, rows[r]));
            weights[r] = std::min(1.0, kFarAway * out.spread / std::max(off, 1e-12));
            squares += weights[r] * off * off;
        }
        const double spread = std::sqrt(squares / out.freedom);
        const bool settled = std::abs(spread - out.spread) < 1e-6;
        out.spread = spread;
        if (settled) break;
    }

    for (std::size_t i = 0; i < 3; ++i) {
        out.factor[i] *= common;
        for (std::size_t j = 0; j < 3; ++j) out.covariance[i][j] *= common * common;
    }

    if (!memory.empty()) {
        const double m = static_cast<double>(memory.size());
        const double prior = (kMemorySpread * kMemorySpread) / (kMemoryPrior * kMemoryPrior);  // as so many points
        double sum = 0, squares = kPriorFreedom * kMemorySpread * kMemorySpread;
        for (const double each : memory) sum += each;
        const double mean = sum / (m + prior);
        for (const double each : memory) squares += (each - mean) * (each - mean);
        out.memory_factor = std::exp(mean);
        out.memory_spread = std::sqrt(squares / (kPriorFreedom + m) * (1 + 1 / (m + prior)));
    }
    return out;
}

Range calibrated_step(const Calibration& calibration, const StepParts& predicted) {
    const Vector3 parts = vector_of(predicted, 1);
    const double mid = dot(calibration.factor, parts);
    double unsure = 0;
    for (std::size_t i = 0; i < 3; ++i) unsure += parts[i] * dot(calibration.covariance[i], parts);
    const double deviation = std::sqrt(std::max(0.0, unsure) + std::pow(calibration.spread * mid, 2));
    const double reach = t_quantile(calibration.freedom) * deviation / mid;
    // Steps are late more often than early: the same reach by ratio.
    return {mid / (1 + reach), mid, mid * (1 + reach)};
}

Range calibrated_bytes(const Calibration& calibration, const Range& predicted) {
    if (!(calibration.memory_spread > 0)) return predicted;
    const double mid = predicted.mid * calibration.memory_factor;
    const double reach = t_quantile(calibration.freedom) * calibration.memory_spread;
    return {mid * std::exp(-reach), mid, mid * std::exp(reach)};
}

}  // namespace stoker
