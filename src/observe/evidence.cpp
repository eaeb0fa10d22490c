#include "observe/evidence.h"

#include <algorithm>

namespace stoker {

MeasureSpread weighted_spread(std::vector<std::pair<double, double>> values) {
    MeasureSpread spread;
    std::erase_if(values, [](const auto& each) { return !(each.second > 0); });
    if (values.empty()) return spread;
    std::sort(values.begin(), values.end());
    double weight = 0, sum = 0;
    for (const auto& [value, each] : values) {
        weight += each;
        sum += value * each;
    }
    const auto at = [&](double share) {
        double passed = 0;
        for (const auto& [value, each] : values)
            if ((passed += each) >= share * weight) return value;
        return values.back().first;
    };
    spread.count = static_cast<std::size_t>(weight + 0.5);
    spread.mean = sum / weight;
    spread.median = at(0.5);
    spread.low = at(0.1);
    spread.high = at(0.9);
    return spread;
}

MeasureSpread spread_of(const std::vector<double>& values) {
    std::vector<std::pair<double, double>> weighted;
    weighted.reserve(values.size());
    for (const double value : values) weighted.emplace_back(value, 1);
    return weighted_spread(std::move(weighted));
}

const MeasureSpread* RankEvidence::find(std::string_view name) const {
    const auto found = measures.find(name);
    return found == measures.end() || found->second.count == 0 ? nullptr : &found->second;
}

std::optional<double> RankEvidence::mean(std::string_view name) const {
    const MeasureSpread* spread = find(name);
    return spread == nullptr ? std::nullopt : std::optional(spread->mean);
}

std::optional<double> RankEvidence::after(std::string_view name) const {
    const auto found = afterwards.find(name);
    return found == afterwards.end() ? std::nullopt : std::optional(found->second.mean);
}

const Course& RankEvidence::course(std::string_view name) const {
    static const Course none;
    const auto found = courses.find(name);
    return found == courses.end() ? none : found->second;
}

std::optional<double> RunEvidence::step_s() const {
    std::vector<double> steps;
    for (const RankEvidence& rank : ranks)
        // The mean: what computing, waiting and collectives take are means, too, and parts of it.
        if (const MeasureSpread* step = rank.find("step_s")) steps.push_back(step->mean);
    return steps.empty() ? std::nullopt : std::optional(spread_of(steps).median);
}

std::string rank_text(const RankEvidence& rank) {
    return "rank " + std::to_string(rank.rank) + (rank.node.empty() ? "" : " on " + rank.node);
}

std::string RunEvidence::node_of(int rank) const {
    for (const RankEvidence& each : ranks)
        if (each.rank == rank) return each.node;
    return {};
}

std::optional<double> RunEvidence::mean(std::string_view name) const {
    return mean_on("", name);
}

std::optional<double> RunEvidence::mean_on(std::string_view node, std::string_view name) const {
    double sum = 0;
    int count = 0;
    for (const RankEvidence& rank : ranks)
        if (const auto value = rank.mean(name); value && (node.empty() || rank.node == node)) {
            sum += *value;
            ++count;
        }
    return count == 0 ? std::nullopt : std::optional(sum / count);
}

const RankEvidence* RunEvidence::worst(std::string_view name) const {
    const RankEvidence* worst = nullptr;
    for (const RankEvidence& rank : ranks)
        if (rank.find(name) && (!worst || rank.find(name)->mean > worst->find(name)->mean)) worst = &rank;
    return worst;
}

}  // namespace stoker
