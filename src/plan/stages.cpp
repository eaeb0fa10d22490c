#include "plan/stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "plan/quota.h"

namespace stoker {
namespace {

constexpr double kMonthHours = 730;  // 365 x 24 / 12

bool stays(const Plan& plan) {
    return plan.workload.kind == WorkloadKind::inference &&
           plan.candidates.front().prediction.latency.requests_per_s > 0;
}

// The latest end of what a stage waits for, by one end of the intervals.
std::vector<double> ends_of(const std::vector<PlannedStage>& stages, double Range::*which,
                            std::vector<double>* starts) {
    std::vector<double> ends(stages.size(), -1);
    if (starts != nullptr) starts->assign(stages.size(), 0);
    const std::function<double(std::size_t)> end_of = [&](std::size_t i) {
        if (ends[i] >= 0) return ends[i];
        double start = 0;
        for (const int other : stages[i].after) start = std::max(start, end_of(static_cast<std::size_t>(other)));
        const Plan& plan = stages[i].plan;
        // What waits for a service waits for its start.
        const double takes = !plan.feasible() || stays(plan) ? 0 : plan.candidates.front().prediction.hours.*which;
        if (starts != nullptr) (*starts)[i] = start;
        return ends[i] = start + takes;
    };
    for (std::size_t i = 0; i < stages.size(); ++i) end_of(i);
    return ends;
}

// Most is used at some start: there each stage counts that has started and not ended.
void add_quota(const std::vector<PlannedStage>& stages, const Catalog& catalog, const std::vector<double>& ends,
               StagesTotal& total) {
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    for (std::size_t at = 0; at < stages.size(); ++at) {
        std::map<std::pair<std::string, std::string>, QuotaNeed> now;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            const Plan& plan = stages[i].plan;
            if (!plan.feasible()) continue;
            const double moment = total.starts_hours[at];
            const bool there = total.starts_hours[i] <= moment && (i == at || stays(plan) || ends[i] > moment);
            const Candidate& c = plan.candidates.front();
            const NodeType& node = catalog.node_types()[static_cast<std::size_t>(c.node_type)];
            if (!there || node.cloud != "azure") continue;
            const std::string family = c.pricing == Pricing::spot ? "lowPriorityCores" : node.quota_family;
            QuotaNeed& need = now[{fold_family(family), c.region}];
            need.family = family;
            need.region = c.region;
            need.vcpus += static_cast<double>(node.vcpus) * c.nodes;
            need.users.push_back(static_cast<int>(i));
        }
        for (auto& [key, need] : now) {
            const auto [found, first] = known.try_emplace(key, total.quota.size());
            if (first)
                total.quota.push_back(std::move(need));
            else if (need.vcpus > total.quota[found->second].vcpus)
                total.quota[found->second] = std::move(need);
        }
    }
}

}  // namespace

StagesTotal total_of(const std::vector<PlannedStage>& stages, const Catalog& catalog) {
    StagesTotal total;
    for (const PlannedStage& stage : stages) {
        if (!stage.plan.feasible()) {
            total.feasible = false;
            continue;
        }
        const Candidate& c = stage.plan.candidates.front();
        const Prediction& p = c.prediction;
        if (!c.priced) total.priced = false;
        if (stays(stage.plan)) {
            ++total.services;
            if (c.priced) total.month_usd += p.usd.mid / std::max(p.hours.mid, 1e-9) * kMonthHours;
            continue;
        }
        ++total.jobs;
        if (!c.priced) continue;
        total.jobs_usd.low += p.usd.low;
        total.jobs_usd.mid += p.usd.mid;
        total.jobs_usd.high += p.usd.high;
    }
    const std::vector<double> ends = ends_of(stages, &Range::mid, &total.starts_hours);
    const auto last = [&](double Range::*which) {
        const std::vector<double> all = ends_of(stages, which, nullptr);
        return all.empty() ? 0.0 : *std::max_element(all.begin(), all.end());
    };
    total.hours = {last(&Range::low), last(&Range::mid), last(&Range::high)};
    add_quota(stages, catalog, ends, total);
    return total;
}

}  // namespace stoker
