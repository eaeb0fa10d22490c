#include "observe/diagnoses/course_text.h"

#include <algorithm>
#include <vector>

namespace stoker {
namespace {

constexpr std::size_t kMostPoints = 40, kLeastPoints = 6, kSurePoints = 8, kLeastPart = 3;
constexpr double kMostOverlap = 0.05;  // of the pairs of a point before and one after

double median_of(std::vector<double> values) {
    return spread_of(values).median;
}

}  // namespace

Course condensed(const Course& course) {
    const std::size_t each = (course.size() + kMostPoints - 1) / kMostPoints;
    if (each <= 1) return course;
    Course out;
    for (std::size_t i = 0; i < course.size(); i += each) {
        CoursePoint sum{.at_s = course[i].at_s, .min = course[i].min, .max = course[i].max};
        std::vector<double> means;
        for (std::size_t j = i; j < std::min(course.size(), i + each); ++j) {
            means.push_back(course[j].mean);
            sum.min = std::min(sum.min, course[j].min);
            sum.max = std::max(sum.max, course[j].max);
            sum.count += course[j].count;
        }
        sum.mean = median_of(std::move(means));
        out.push_back(sum);
    }
    return out;
}

std::optional<Rise> rise_of(const Course& course, double share) {
    if (course.size() < kLeastPoints) return std::nullopt;
    if (course.size() < kSurePoints) share *= 2;  // so few may stand that way by chance
    std::optional<Rise> best;
    double apart = 0;  // the means of the two parts, where they are cut best
    for (std::size_t cut = kLeastPart; cut + kLeastPart <= course.size(); ++cut) {
        std::vector<double> before, after;
        for (std::size_t i = 0; i < course.size(); ++i) (i < cut ? before : after).push_back(course[i].mean);
        std::size_t overlaps = 0;
        for (const double a : before)
            overlaps +=
                static_cast<std::size_t>(std::count_if(after.begin(), after.end(), [&](double b) { return b <= a; }));
        if (static_cast<double>(overlaps) > kMostOverlap * static_cast<double>(before.size() * after.size())) continue;
        const Rise rise{.before = median_of(before),
                        .after = median_of(after),
                        .at_s = course[cut].at_s,
                        .sudden = after.front() - before.back() > 0.5 * (course.back().mean - course.front().mean)};
        if (rise.after < (1 + share) * rise.before) continue;
        const double means = spread_of(after).mean - spread_of(before).mean;
        if (best && means <= apart) continue;
        best = rise;
        apart = means;
    }
    return best;
}

const RankEvidence* best_course(const RunEvidence& evidence, std::string_view name) {
    const RankEvidence* best = nullptr;
    for (const RankEvidence& rank : evidence.ranks)
        if (!rank.course(name).empty() && (best == nullptr || rank.course(name).size() > best->course(name).size()))
            best = &rank;
    return best;
}

}  // namespace stoker
