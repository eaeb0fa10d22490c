// Quotas and budgets: who may set them, what is charged, and what happens when a budget runs out.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"
#include "run/decide/stop_order.h"
#include "run/decide/tenant_limits.h"
#include "run/state/rules.h"
#include "run/state/run_intervals.h"

namespace stoker {
namespace {

// Reports are no more than this behind, and so is what a crash leaves uncharged until the next start.
constexpr std::int64_t kChargeEveryUs = 3600 * kSecondUs;

}  // namespace

// What limits a level is said by whoever stands above it. What is foreign is as good as not there.
Status Core::may_limit(const std::string& scope) const {
    const Tenants& tenants = state_.tenants;
    TRY(const QuotaScope level, parse_quota_scope(tenants, scope));
    if (actor_.kind == PrincipalKind::core || actor_.level == Level::provider) return done();
    const bool reached = level.organisation ? actor_.tenant.organisation == level.organisation
                                            : reaches(actor_, tenants.tenant_of(level.project));
    if (!reached)
        return Error(ErrorKind::not_found,
                     fmt::format("there is no {} {}", level.organisation ? "organisation" : "project",
                                 level.organisation ? level.organisation.text() : level.project.text()));
    const Level needed = level.organisation   ? Level::provider
                         : level.user.empty() ? Level::organisation
                                              : Level::project;
    if (actor_.level >= needed) return done();
    return denial(actor_, {Action::administer, needed});
}

Result<Ack> Core::on(const SetQuota& set) {
    TRY_VOID(may_limit(set.quota.scope));
    TRY_VOID(check_quota(set.quota));
    TRY_VOID(check_quota_in_tree(state_.tenants, set.quota));
    const std::string made = set.quota.scope + "/" + set.quota.resource;
    const auto& quotas = state_.tenants.quotas;
    const auto found = quotas.find({set.quota.scope, set.quota.resource});
    if (found == quotas.end() && set.quota.says_nothing())
        return Error(ErrorKind::not_found, fmt::format("there is no quota of {} for {}", set.quota.resource,
                                                       scope_in_words(state_.tenants, set.quota.scope)));
    if (found != quotas.end() && found->second == set.quota) return Ack{.repeated = true, .made = made};
    if (found == quotas.end() && quotas.size() >= kMostQuotas)
        return Error(ErrorKind::exhausted, fmt::format("there are {} quotas already", kMostQuotas));
    emit(QuotaSet{set.quota});
    changed_ = true;
    return Ack{.made = made};
}

Result<Ack> Core::on(const SetBudget& set) {
    TRY_VOID(may_limit(set.budget.scope));
    TRY_VOID(check_budget(set.budget));
    const auto& budgets = state_.tenants.budgets;
    const auto found = budgets.find({set.budget.scope, set.budget.unit});
    const auto& prices = options_.scheduler.budgets.prices;
    if (set.remove && found == budgets.end())
        return Error(ErrorKind::not_found,
                     "there is no such budget for " + scope_in_words(state_.tenants, set.budget.scope));
    if (!set.remove && set.budget.unit == BudgetUnit::usd && (!prices || prices->empty()) &&
        state_.token_cursors.empty())
        return Error(ErrorKind::conflict, "there are no prices: a budget in dollars would never fill", {},
                     "stoker up --prices FILE, `prices` in server.yaml, or a budget in GPU hours");
    if (found == budgets.end() && budgets.size() >= kMostBudgets)
        return Error(ErrorKind::exhausted, fmt::format("there are {} budgets already", kMostBudgets));
    BudgetEntry entry = set.budget;
    entry.month.clear();
    entry.told.clear();
    // What was told of the same limit is not told again.
    if (found != budgets.end() && found->second.limit_micro == entry.limit_micro) {
        entry.month = found->second.month;
        entry.told = found->second.told;
        if (!set.remove && entry == found->second) return Ack{.repeated = true, .made = entry.scope};
    }
    emit(BudgetSet{.budget = std::move(entry), .removed = set.remove});
    next_budget_us_ = 0;
    changed_ = true;
    return Ack{.made = set.budget.scope};
}

Result<Ack> Core::on(const SetPrices& set) {
    options_.scheduler.budgets.prices = set.book;
    prices_digest_ = set.digest;
    next_budget_us_ = 0;
    changed_ = true;
    return Ack{};
}

Result<Ack> Core::on(const ChargeTokens& charge) {
    const auto found = state_.token_cursors.find(charge.account);
    const std::uint64_t was = found == state_.token_cursors.end() ? 0 : found->second;
    if (charge.after != was || charge.up_to <= charge.after)
        return Error(ErrorKind::conflict, fmt::format("{} was charged up to record {}, and this is what follows {}",
                                                      printable(charge.account, 60), was, charge.after));
    static const PriceBook kNone;
    const auto prices = options_.scheduler.budgets.prices;
    TokensCharged charged{.account = charge.account,
                          .after = charge.after,
                          .up_to = charge.up_to,
                          .book = prices_digest_,
                          .lines = charge.lines};
    std::map<ChargeKey, std::int64_t> left;
    for (TokensCharged::Line& line : charged.lines) {
        if (!state_.tenants.projects.contains(line.project))
            return Error(ErrorKind::not_found, "there is no project " + line.project.text());
        const ChargeKey key{.month = month_of(line.from_us),
                            .project = line.project,
                            .user = line.user,
                            .resource = PricedResource::tokens,
                            .model = line.model};
        const auto before = state_.charges.find(key);
        std::int64_t& rest =
            left.try_emplace(key, before == state_.charges.end() ? 0 : before->second.left).first->second;
        line.markup_bp = markup_of(state_, line.project, prices ? *prices : kNone);
        const WholeMicro whole = whole_micro(rest, line.picousd, line.markup_bp);
        line.microusd = whole.microusd;
        line.left = rest = whole.left;
    }
    emit(std::move(charged));
    next_budget_us_ = 0;
    changed_ = true;
    return Ack{};
}

// Usage is written down where somebody gave it a price or a bound.
bool Core::bills() const {
    const auto& prices = options_.scheduler.budgets.prices;
    return (prices && !prices->empty()) || !state_.tenants.budgets.empty();
}

// After a start, until the configuration was read: nothing would have a price, and every budget room.
bool Core::awaits_prices() const {
    if (options_.scheduler.budgets.prices) return false;
    return std::any_of(state_.tenants.budgets.begin(), state_.tenants.budgets.end(),
                       [](const auto& each) { return each.first.second == BudgetUnit::usd; });
}

void Core::charge(RunId id) {
    if (!bills()) return;
    static const PriceBook kNone;
    const auto prices = options_.scheduler.budgets.prices;
    for (std::size_t i = 0; i < state_.find(id)->attempts.size(); ++i)
        while (true) {
            const Run& run = *state_.find(id);
            const Attempt& attempt = run.attempts[i];
            if (attempt.live()) break;  // by the hour
            auto piece = next_charge(state_, run, attempt, prices ? *prices : kNone, prices_digest_, now_us_);
            if (!piece) break;
            emit(std::move(*piece));
        }
}

void Core::charge_what_runs() {
    if (!bills() || now_us_ < next_charge_us_) return;
    next_charge_us_ = (now_us_ / kChargeEveryUs + 1) * kChargeEveryUs;
    static const PriceBook kNone;
    const auto prices = options_.scheduler.budgets.prices;
    const std::vector<RunId> live(state_.live.begin(), state_.live.end());
    const std::int64_t until = now_us_ / kChargeEveryUs * kChargeEveryUs;
    for (const RunId id : live)
        while (true) {
            const Run& run = *state_.find(id);
            auto piece = next_charge(state_, run, run.attempts.back(), prices ? *prices : kNone, prices_digest_, until);
            if (!piece) break;
            emit(std::move(*piece));
        }
    settle();
}

void Core::guard_budgets() {
    BudgetScene& scene = options_.scheduler.budgets;
    if (state_.tenants.budgets.empty()) {
        scene.gates.clear();
        next_budget_us_ = 0;
        return;
    }
    const std::int64_t ended = scene.gates.empty() ? 0 : scene.gates.front().ends_us;
    scene = budget_scene(state_, scene.prices, now_us_, scene.head_start_us);
    if (!scene.gates.empty() && scene.gates.front().ends_us != ended) changed_ = true;
    next_budget_us_ = now_us_ + kChargeEveryUs;
    const std::string month = month_of(now_us_);
    for (const BudgetGate& gate : scene.gates) {
        const BudgetEntry& entry = state_.tenants.budgets.at({gate.scope, gate.unit});
        const BudgetStand stand = stand_of(entry, gate.load, now_us_);
        if (stand.next_us > 0) next_budget_us_ = std::min(next_budget_us_, stand.next_us);
        for (const std::string& mark : stand.marks)
            emit(BudgetReached{.scope = gate.scope,
                               .unit = gate.unit,
                               .month = month,
                               .mark = mark,
                               .used_micro = gate.load.used_micro,
                               .limit_micro = gate.limit_micro,
                               .rate_micro_per_h = gate.load.rate_micro_per_h});
        StopOrder order;
        if (const auto rates = scene.rates.find({gate.scope, gate.unit});
            rates != scene.rates.end() && entry.on_exhausted == BudgetStop::stop_all)
            order = stop_order(rates->second, gate.load, gate.limit_micro, scene.head_start_us, now_us_);
        if (order.next_us > 0) next_budget_us_ = std::min(next_budget_us_, order.next_us);
        if (!stand.stop && order.now.empty()) continue;
        const std::int64_t deadline = now_us_ + kBudgetNoticeS * kSecondUs;
        for (const RunId id : runs_under(state_, gate.scope)) {
            const Run& run = *state_.find(id);
            const Attempt& attempt = run.attempts.back();
            if (!stand.stop && !order.now.contains(stop_standing_of(run.spec))) continue;
            if (attempt.end_us != 0 || run.state == RunState::cancelling) continue;
            if (attempt.deadline_us != 0 && attempt.deadline_us <= deadline) continue;
            emit(NoticeGiven{{id, attempt.number}, deadline, Cause::budget});
        }
    }
    settle();
}

}  // namespace stoker
