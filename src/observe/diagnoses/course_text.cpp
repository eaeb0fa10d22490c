#include "observe/diagnoses/course_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "observe/thresholds.h"

namespace stoker {
namespace {

constexpr std::size_t kMostPoints = 40, kLeastPoints = 6, kSurePoints = 8, kLeastPart = 3;
constexpr double kMostOverlap = 0.05;  // of the pairs of a point before and one after

double median_of(std::vector<double> values) {
    return spread_of(values).median;
}

const CoursePoint* point_at(const Course& course, double at_s) {
    for (const CoursePoint& point : course)
        if (point.at_s == at_s) return &point;
    return nullptr;
}

struct PauseStep {
    double number = 0, seconds = 0;
};

struct Beat {
    double steps = 0;  // from one to the next
    // The median of those on it: a line that came together with the next shares its time.
    double takes_s = 0;
};

// Numbers of steps that are multiples of one number apart, but for some that other reasons made long: all such numbers,
// the least first. None: they come as it happens.
std::vector<Beat> beats_of(std::vector<PauseStep> pauses) {
    constexpr double kLeastSeen = 4, kOfAll = 0.7, kOff = 0.02;
    constexpr int kLeastBeat = 4, kTriedBeat = 64;
    constexpr std::size_t kMostPauses = 64, kOrigins = 16;
    if (pauses.size() > kMostPauses)
        pauses.erase(pauses.begin(), pauses.end() - static_cast<std::ptrdiff_t>(kMostPauses));
    std::set<double> tried;
    for (int beat = kLeastBeat; beat <= kTriedBeat; ++beat) tried.insert(beat);
    for (std::size_t i = 1; i < pauses.size(); ++i)
        if (const double beat = pauses[i].number - pauses[i - 1].number; beat > kTriedBeat) tried.insert(beat);
    std::vector<Beat> beats;
    for (const double beat : tried)
        for (std::size_t i = 0; i < std::min(pauses.size(), kOrigins); ++i) {
            std::vector<double> takes;
            std::set<double> turns;
            for (const PauseStep& each : pauses) {
                const double away = each.number - pauses[i].number;
                if (std::abs(std::remainder(away, beat)) > kOff * beat) continue;
                takes.push_back(each.seconds);
                turns.insert(std::round(away / beat));
            }
            if (static_cast<double>(turns.size()) < kLeastSeen ||
                static_cast<double>(takes.size()) < kOfAll * static_cast<double>(pauses.size()))
                continue;
            beats.push_back({.steps = beat, .takes_s = median_of(std::move(takes))});
            break;
        }
    return beats;
}

// Steps on no beat, where every so many of all take so long.
double usual_beside(const Beat& beat, double step_s) {
    return (step_s * beat.steps - beat.takes_s) / (beat.steps - 1);
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

std::optional<std::pair<double, double>> means_around(const Course& course, double at_s) {
    std::vector<double> before, after;
    for (const CoursePoint& point : course) (point.at_s < at_s ? before : after).push_back(point.mean);
    if (before.empty() || after.empty()) return std::nullopt;
    return std::pair(spread_of(before).mean, spread_of(after).mean);
}

bool Pauses::matter() const {
    constexpr double kLeast = 3, kExplained = 0.5;  // of what steps are longer on average
    if (share() < diagnosis_threshold("pauses.share")) return false;
    return regular || (seen >= kLeast && in_them_s >= kExplained * cost_s * steps);
}

std::optional<Pauses> pauses_of(const RunEvidence& evidence) {
    // Waiting for data in bursts has a rule: these are of what a step computes, where the program tells.
    const RankEvidence* rank = best_course(evidence, "longest_s");
    if (rank == nullptr) return std::nullopt;
    const Course& whole = rank->course(rank->course("compute_s").empty() ? "step_s" : "compute_s");
    Pauses out;
    double time = 0;
    for (const CoursePoint& point : whole) time += point.mean * point.count, out.steps += point.count;
    std::vector<double> shortest, others;
    for (const CoursePoint& point : rank->course("shortest_s")) shortest.push_back(point.mean);
    // Of each second the mean of all steps but the longest; where several are long the shortest is nearer to the usual.
    for (const CoursePoint& point : whole)
        if (const CoursePoint* most = point_at(rank->course("longest_s"), point.at_s); most && point.count > 1)
            others.push_back((point.mean * point.count - most->mean) / (point.count - 1));
    constexpr double kAlike = 1.5;
    out.usual_s = median_of(shortest);
    if (const double mean = median_of(others); mean > out.usual_s && mean < kAlike * out.usual_s) out.usual_s = mean;
    if (!(out.usual_s > 0) || !(out.steps > 0)) return std::nullopt;
    out.step_s = out.whole_s = time / out.steps;
    if (const MeasureSpread* step = rank->find("step_s")) out.whole_s = std::max(out.step_s, step->mean);
    std::vector<PauseStep> steps;
    for (const CoursePoint& point : rank->course("longest_s")) {
        if (point.mean <= diagnosis_threshold("pauses.factor") * out.usual_s) continue;
        out.longest_s = std::max(out.longest_s, point.mean);
        out.in_them_s += point.mean - out.usual_s;
        ++out.seen;
        out.spans.push_back({.from_s = point.at_s, .to_s = point.at_s + 1});
        const CoursePoint* number = point_at(rank->course("longest_step"), point.at_s);
        // The only one of its second.
        if (number == nullptr) number = point_at(rank->course("step"), point.at_s);
        if (number != nullptr) steps.push_back({.number = number->max, .seconds = point.mean});
    }
    out.cost_s = out.step_s - out.usual_s;
    const std::vector<Beat> beats = beats_of(std::move(steps));
    out.regular = !beats.empty();
    if (beats.empty()) return out;
    // One of a second is seen at the most. Where nearly each second has one and they explain little, there are more:
    // the closest that leave others as long as the shortest are. Else those that were seen are all there are.
    constexpr double kAllSeen = 0.7, kExplain = 0.6, kAsShort = 0.85;
    const double shortest_s = median_of(std::move(shortest));
    const bool more = out.seen >= kAllSeen * static_cast<double>(rank->course("longest_s").size()) &&
                      out.in_them_s < kExplain * (out.step_s - shortest_s) * out.steps;
    if (more) {
        const auto first = std::find_if(beats.begin(), beats.end(), [&](const Beat& each) {
            return usual_beside(each, out.step_s) >= kAsShort * shortest_s;
        });
        if (first == beats.end()) return out;
        out.every = first->steps;
        out.usual_s = usual_beside(*first, out.step_s);
        out.cost_s = std::max(0.0, out.step_s - out.usual_s);
    } else {
        out.every = beats.back().steps;
        out.cost_s = std::max(0.0, (beats.back().takes_s - out.usual_s) / beats.back().steps);
    }
    return out;
}

const RankEvidence* best_course(const RunEvidence& evidence, std::string_view name) {
    const RankEvidence* best = nullptr;
    for (const RankEvidence& rank : evidence.ranks)
        if (!rank.course(name).empty() && (best == nullptr || rank.course(name).size() > best->course(name).size()))
            best = &rank;
    return best;
}

}  // namespace stoker
