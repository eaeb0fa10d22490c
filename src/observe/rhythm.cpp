#include "observe/rhythm.h"

#include <algorithm>
#include <cmath>

#include "observe/thresholds.h"

namespace stoker {
namespace {

constexpr std::size_t kShortest = 6;
// What a second of a fast rhythm has more or less than the next stays below a fifth (sinc of its frequency): deeper
// ones are slow.
constexpr double kBeats = 5;
constexpr std::string_view kSeen[] = {"cpu", "net_loopback", "net_sent", "disk_read"};

// How alike the values are to those `lag` later: 1 the same, 0 nothing in common.
double likeness(const std::vector<double>& values, double mean, double variance, std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - mean) * (values[i + lag] - mean);
    return sum / (static_cast<double>(values.size() - lag) * variance);
}

}  // namespace

std::optional<Rhythm> rhythm_of(const std::vector<double>& each_second) {
    const std::size_t n = each_second.size();
    const std::size_t longest = static_cast<std::size_t>(static_cast<double>(n) / kBeats);
    if (longest < kShortest) return std::nullopt;
    double mean = 0, variance = 0;
    for (const double value : each_second) mean += value / static_cast<double>(n);
    for (const double value : each_second) variance += (value - mean) * (value - mean) / static_cast<double>(n);
    if (!(mean > 0) || std::sqrt(variance) < diagnosis_threshold("rhythm.depth") * mean) return std::nullopt;
    std::vector<double> alike(2 * longest + 2, 0);
    for (std::size_t lag = 1; lag < alike.size() && lag < n; ++lag)
        alike[lag] = likeness(each_second, mean, variance, lag);
    const double least = diagnosis_threshold("rhythm.likeness");
    // A rhythm that comes back sooner comes back at its multiples, too, and is none that can be told.
    for (std::size_t lag = 2; lag < kShortest; ++lag)
        if (alike[lag] >= 0.5 * least && alike[lag] >= alike[lag - 1] && alike[lag] >= alike[lag + 1])
            return std::nullopt;
    for (std::size_t lag = kShortest; lag <= longest; ++lag) {
        if (alike[lag] < least || alike[lag] < alike[lag - 1] || alike[lag] < alike[lag + 1]) continue;
        // Half of a period later it must look otherwise: a slow drift is like itself at every lag.
        if (alike[lag / 2] > 0.5 * alike[lag]) continue;
        // The second time tells the length twice as well.
        std::size_t twice = 2 * lag;
        for (std::size_t near = 2 * lag - 1; near <= 2 * lag + 1 && near < alike.size(); ++near)
            if (alike[near] > alike[twice]) twice = near;
        if (twice >= alike.size() || alike[twice] < 0.8 * least) continue;
        const double period = static_cast<double>(twice) / 2;
        return Rhythm{
            .period_s = period, .beats = static_cast<double>(n) / period, .strength = alike[lag], .measure = {}};
    }
    return std::nullopt;
}

std::optional<Rhythm> rhythm_of(const std::vector<RankSeries>& series) {
    std::optional<Rhythm> best;
    for (const RankSeries& each : series) {
        const auto seen = std::find(std::begin(kSeen), std::end(kSeen), each.metric);
        if (seen == std::end(kSeen) || each.seconds != 1 || each.points.size() < 8) continue;
        std::vector<double> values;
        for (std::size_t i = each.points.size() / 4; i < each.points.size(); ++i) {
            // A look that was missed is as the one before: one gap breaks no rhythm.
            const auto at = each.points[i].at_s;
            while (!values.empty() && at - each.points[i - 1].at_s > 1 &&
                   static_cast<std::int64_t>(values.size()) < at - each.points[each.points.size() / 4].at_s)
                values.push_back(values.back());
            values.push_back(each.points[i].mean);
        }
        auto found = rhythm_of(values);
        if (!found || (best && best->strength >= found->strength)) continue;
        best = found;
        best->measure = *seen;
        best->rank = each.rank;
    }
    return best;
}

}  // namespace stoker
