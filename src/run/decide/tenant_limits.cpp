#include "run/decide/tenant_limits.h"

#include <algorithm>

#include "run/state/rules.h"
#include "run/state/run_intervals.h"

namespace stoker {

QuotaDemand demand_of(const State& state, const RankNeeds& needs, int ranks, const std::vector<RankPlace>* places) {
    RunSpec spec;
    spec.ranks = ranks;
    spec.per_rank = needs;
    QuotaDemand demand = quota_demand(spec);
    if (places == nullptr || demand.gpu_milli == 0 || !demand.gpu_milli_of.empty()) return demand;
    for (const RankPlace& place : *places) {
        const NodeInfo* node = state.find_node(place.node);
        for (unsigned i = 0; node != nullptr && i < node->devices.size() && i < 32; ++i)
            if (place.devices >> i & 1) demand.gpu_milli_of[node->devices[i].model] += needs.gpu_milli;
    }
    return demand;
}

bool gives_back_in_time(const RunSpec& spec) {
    if (!spec.checkpoint.folder.empty()) return true;
    return spec.timeout_s > 0 && spec.timeout_s <= kReclaimNoticeS;
}

namespace {

// Told, then stopped, then gone.
std::int64_t notice_us_of(const RunSpec& spec) {
    return (kBudgetNoticeS + spec.grace_s) * kSecondUs + kNoticeSafetyUs;
}

std::int64_t weight_of_deserved(const Tenants& tenants, ProjectId project) {
    const auto found = tenants.quotas.find({project.text(), "gpu"});
    if (found == tenants.quotas.end()) return 1000;
    const QuotaEntry& entry = found->second;
    return std::max<std::int64_t>(
        1, entry.deserved_milli.value_or(entry.guaranteed_milli.value_or(entry.limit_milli.value_or(1000))));
}

}  // namespace

TenantLimits::TenantLimits(const State& state, const BudgetScene& budgets, std::int64_t now_us)
    : state_(state),
      now_us_(now_us),
      use_(state.tenants),
      gates_(budgets.gates),
      prices_(budgets.prices),
      head_start_us_(budgets.head_start_us),
      rates_(budgets.rates) {
    if (!has_quotas()) return;
    for (const auto& [key, entry] : state.tenants.quotas) names_models_ = names_models_ || key.second.size() > 3;
    std::vector<const Run*> live;
    std::map<ProjectId, std::int64_t> used;
    std::set<ProjectId> projects;
    for (const auto& [project, use] : state.fair_use) used[project] += decayed(use, now_us);
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        live.push_back(&run);
        used[run.project] += run.attempts.back().worked_us(now_us) / kSecondUs * fair_weight_milli(run.spec);
    }
    std::sort(live.begin(), live.end(), [](const Run* a, const Run* b) {
        return std::pair(a->attempts.back().created_us, a->id) < std::pair(b->attempts.back().created_us, b->id);
    });
    for (const Run* run : live) {
        const QuotaDemand demand = demand_of(state, run->spec.per_rank, run->spec.ranks, &run->attempts.back().places);
        live_tiers_[run->id] = use_.judge(owner_of(*run), demand).tier;
        use_.hold(owner_of(*run), demand);
    }
    for (const QueueKey& key : state.queue) projects.insert(state.find(key.run)->project);
    std::int64_t all_used = 0, all_deserved = 0;
    for (const auto& [project, milli_s] : used) {
        all_used += milli_s / 1000;
        projects.insert(project);
    }
    for (const ProjectId project : projects) all_deserved += weight_of_deserved(state.tenants, project);
    if (all_used == 0 || projects.size() < 2) return;
    for (const ProjectId project : projects)
        delays_us_[project] = fair_delay_us(
            static_cast<std::int64_t>(1000.0 * static_cast<double>(used[project] / 1000) /
                                      static_cast<double>(all_used)),
            static_cast<std::int64_t>(1000.0 * static_cast<double>(weight_of_deserved(state.tenants, project)) /
                                      static_cast<double>(all_deserved)));
}

const QuotaOwner& TenantLimits::owner_of(const Run& run) const {
    const auto [at, fresh] = owners_.try_emplace({run.project, run.submitted_by});
    if (fresh) at->second = quota_owner(state_.tenants.tenant_of(run.project), run.submitted_by);
    return at->second;
}

QuotaDemand TenantLimits::demand_at(const TenantRequest& request, const std::vector<RankPlace>& places) const {
    return demand_of(state_, request.needs, request.ranks, &places);
}

QuotaVerdict TenantLimits::judge(const TenantRequest& request) const {
    return use_.judge(owner_of(*request.run), demand_of(state_, request.needs, request.ranks, nullptr));
}

TenantBlock TenantLimits::block_by_quota(const TenantRequest& request, const QuotaDemand& demand) const {
    const QuotaVerdict verdict = use_.judge(owner_of(*request.run), demand);
    const bool keeps = verdict.tier == QuotaTier::borrowed && !gives_back_in_time(request.run->spec);
    if (verdict.tier != QuotaTier::over && !keeps) return {};
    return {.cause = Cause::quota,
            .scope = verdict.entry->scope,
            .resource = verdict.entry->resource,
            .tier = verdict.tier,
            .cannot_give_back = keeps,
            .used = verdict.used_milli,
            .asked = verdict.asked_milli,
            .allowed = verdict.allowed_milli()};
}

TenantBlock TenantLimits::block(const TenantRequest& request) const {
    if (!has_quotas()) return {};
    return block_by_quota(request, demand_of(state_, request.needs, request.ranks, nullptr));
}

BudgetGate::Request TenantLimits::budget_request(const TenantRequest& request, const std::vector<RankPlace>& places,
                                                 BudgetUnit unit) const {
    RunSpec spec;  // as it would be, in a what-if
    spec.ranks = request.ranks;
    spec.per_rank = request.needs;
    const RunSpec& told = request.run->spec;
    std::int64_t lasts_s = told.timeout_s;
    for (const std::int64_t s : {told.lease.stop_after_s, told.lease.hard_max_s})
        if (s > 0) lasts_s = lasts_s == 0 ? s : std::min(lasts_s, s);
    BudgetGate::Request asks{.lasts_us = lasts_s * kSecondUs, .notice_us = notice_us_of(told)};
    if (unit == BudgetUnit::gpu_hours)
        asks.rate_micro_per_h = quota_demand(spec).gpu_milli * 1000;
    else if (prices_)
        asks.rate_micro_per_h = rate_of(
            intervals_at(state_, spec, places, *prices_, 0, 1, markup_of(state_, request.run->project, *prices_)),
            *prices_, now_us_);
    return asks;
}

TenantBlock TenantLimits::block_at(const TenantRequest& request, const std::vector<RankPlace>& places) const {
    if (has_quotas() && names_models_)
        if (TenantBlock block = block_by_quota(request, demand_at(request, places))) return block;
    if (!has_budgets()) return {};
    const auto scopes = scopes_of(owner_of(*request.run));
    for (const BudgetGate& gate : gates_) {
        if (std::find(scopes.begin(), scopes.end(), gate.scope) == scopes.end()) continue;
        const BudgetGate::Request asks = budget_request(request, places, gate.unit);
        const auto rates = rates_.find({gate.scope, gate.unit});
        const std::int64_t kept =
            rates == rates_.end() ? 0
                                  : kept_for_higher(rates->second, stop_standing_of(request.run->spec), head_start_us_);
        const std::int64_t would = gate.would_use_micro(asks, now_us_) + kept;
        if (asks.rate_micro_per_h == 0 || would < gate.limit_micro) continue;
        return {.cause = Cause::budget,
                .scope = gate.scope,
                .resource = "",
                .unit = gate.unit,
                .reserve = gate.reserve,
                .used = gate.load.used_micro,
                .asked = would - gate.load.used_micro,
                .allowed = gate.limit_micro,
                .kept = kept,
                .resets_us = gate.ends_us};
    }
    return {};
}

void TenantLimits::take(const TenantRequest& request, const std::vector<RankPlace>& places) {
    if (has_quotas()) use_.hold(owner_of(*request.run), demand_at(request, places));
    if (!has_budgets()) return;
    const auto scopes = scopes_of(owner_of(*request.run));
    for (BudgetGate& gate : gates_) {
        if (std::find(scopes.begin(), scopes.end(), gate.scope) == scopes.end()) continue;
        const BudgetGate::Request asks = budget_request(request, places, gate.unit);
        gate.take(asks, now_us_);
        if (head_start_us_ > 0)
            rates_[{gate.scope, gate.unit}][stop_standing_of(request.run->spec)] += asks.rate_micro_per_h;
    }
}

QuotaTier TenantLimits::tier_of_live(RunId run) const {
    const auto found = live_tiers_.find(run);
    return found == live_tiers_.end() ? QuotaTier::fair : found->second;
}

std::vector<RunId> TenantLimits::holders(const std::string& scope, const std::string& resource) const {
    std::vector<RunId> runs;
    for (const RunId id : runs_under(state_, scope)) {
        const Run& run = *state_.find(id);
        if (demand_of(state_, run.spec.per_rank, run.spec.ranks, &run.attempts.back().places).of(resource) > 0)
            runs.push_back(id);
    }
    return runs;
}

std::int64_t TenantLimits::due_us(const Run& run) const {
    const auto delay = delays_us_.find(run.project);
    return queue_key(run).due_us + (delay == delays_us_.end() ? 0 : delay->second);
}

std::vector<RunId> runs_under(const State& state, const std::string& scope) {
    std::vector<RunId> runs;
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        const auto scopes = scopes_of(quota_owner(state.tenants.tenant_of(run.project), run.submitted_by));
        if (std::find(scopes.begin(), scopes.end(), scope) != scopes.end()) runs.push_back(id);
    }
    return runs;
}

StopStanding stop_standing_of(const RunSpec& spec) {
    return {.of_class = -static_cast<int>(spec.run_class), .priority = spec.priority};
}

std::int64_t kept_for_higher(const StandingRates& rates, const StopStanding& standing, std::int64_t head_start_us) {
    std::int64_t rate = 0;
    for (auto each = rates.upper_bound(standing); each != rates.end(); ++each) rate += each->second;
    return head_start_us <= 0 ? 0 : micro_over(rate, head_start_us);
}

BudgetScene budget_scene(const State& state, const std::shared_ptr<const PriceBook>& prices, std::int64_t now_us,
                         std::int64_t head_start_us) {
    static const PriceBook kNone;
    const PriceBook& book = prices ? *prices : kNone;
    BudgetScene scene{.gates = {}, .prices = prices, .head_start_us = head_start_us};
    const std::string month = month_of(now_us);
    const auto window = month_window(month);
    if (!window || state.tenants.budgets.empty()) return scene;
    for (const auto& [key, entry] : state.tenants.budgets) {
        BudgetGate gate{.scope = entry.scope,
                        .unit = entry.unit,
                        .limit_micro = entry.limit_micro,
                        .reserve = entry.reserve,
                        .ends_us = window->to_us};
        gate.load.used_micro = charged_micro(state.charges, state.tenants, month, entry.scope, entry.unit);
        if (entry.unit == BudgetUnit::usd)
            gate.load.committed_micro += micro_over(
                token_rate_micro_per_h(state.token_days, state.tenants, entry.scope, now_us), window->to_us - now_us);
        for (const RunId id : runs_under(state, entry.scope)) {
            const Run& run = *state.find(id);
            const Attempt& attempt = run.attempts.back();
            if (attempt.began_us() == 0) continue;
            const std::int64_t held = attempt.held_until_us(now_us),
                               open_from = std::max(window->from_us, attempt.charged_us.value_or(attempt.began_us()));
            std::int64_t rate = quota_demand(run.spec).gpu_milli * 1000;
            if (entry.unit == BudgetUnit::usd) {
                rate = 0;
                for (const UsageInterval& each : intervals_at(state, run.spec, attempt.places, book, attempt.began_us(),
                                                              held, markup_of(state, run.project, book))) {
                    gate.load.used_micro += cost_of(book, each, {open_from, held}).microusd;
                    rate += rate_of({each}, book, now_us);
                }
            } else {
                gate.load.used_micro += micro_over(rate, held - open_from);
            }
            if (held < now_us) continue;  // over
            const std::int64_t end = latest_end_us(run),
                               until = end == 0 ? window->to_us : std::min(end, window->to_us);
            gate.load.rate_micro_per_h += rate;
            if (head_start_us > 0) scene.rates[{entry.scope, entry.unit}][stop_standing_of(run.spec)] += rate;
            gate.load.committed_micro += micro_over(rate, until - now_us);
            gate.load.notice_us = std::max(gate.load.notice_us, notice_us_of(run.spec));
        }
        scene.gates.push_back(std::move(gate));
    }
    return scene;
}

}  // namespace stoker
