// What tenants may still take: quotas and budgets, kept up to date while one pass of the scheduler admits runs. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "govern/budget.h"
#include "govern/price_book.h"
#include "govern/quota.h"
#include "run/state/state.h"

namespace stoker {

// Who stands how high where a budget runs out: guaranteed above interactive above spot, then by priority.
struct StopStanding {
    int of_class = 0, priority = 0;
    friend auto operator<=>(const StopStanding&, const StopStanding&) = default;
};
StopStanding stop_standing_of(const RunSpec& spec);
using StandingRates = std::map<StopStanding, std::int64_t>;  // of what runs, in micro of the unit an hour
// What those that stand higher use in so long a time.
std::int64_t kept_for_higher(const StandingRates& rates, const StopStanding& standing, std::int64_t head_start_us);

// Prices and budgets as they stand; brought up to date by the core, since prices follow from the configuration.
struct BudgetScene {
    std::vector<BudgetGate> gates{};
    std::shared_ptr<const PriceBook> prices{};
    std::int64_t head_start_us = 0;  // so much sooner what stands lower is told to stop; 0: all at once
    std::map<std::pair<std::string, BudgetUnit>, StandingRates> rates{};  // by gate, where there is a head start
    friend bool operator==(const BudgetScene& a, const BudgetScene& b) {
        return a.gates == b.gates && a.prices == b.prices && a.head_start_us == b.head_start_us;
    }
};

// Why a run may not start although there may be room.
struct TenantBlock {
    Cause cause = Cause::none;    // quota, budget
    std::string scope, resource;  // of a quota
    QuotaTier tier = QuotaTier::fair;
    bool cannot_give_back = false;  // it would borrow, and has neither a checkpoint nor an early end
    BudgetUnit unit = BudgetUnit::usd;
    bool reserve = false;
    std::int64_t used = 0, asked = 0, allowed = 0;  // milli of the resource, or micro of the unit
    std::int64_t kept = 0;                          // of a budget, of what is asked: for what stands higher
    std::int64_t resets_us = 0;                     // of a budget: the month ends
    explicit operator bool() const { return cause != Cause::none; }
};

// Who stands in which queue, and what it would take.
struct TenantRequest {
    const Run* run = nullptr;
    int ranks = 1;
    RankNeeds needs{};
};

class TenantLimits {
public:
    TenantLimits(const State& state, const BudgetScene& budgets, std::int64_t now_us);

    bool has_quotas() const { return !use_.empty(); }
    bool has_budgets() const { return !gates_.empty(); }

    QuotaVerdict judge(const TenantRequest& request) const;
    // By the numbers of what it says it needs.
    TenantBlock block(const TenantRequest& request) const;
    // By what these places are: the kinds of their GPUs, and what they cost.
    TenantBlock block_at(const TenantRequest& request, const std::vector<RankPlace>& places) const;
    void take(const TenantRequest& request, const std::vector<RankPlace>& places);

    // Of what runs, counted in the order in which it started: what stands above what its project deserves.
    QuotaTier tier_of_live(RunId run) const;
    // The runs of a scope that hold the resource.
    std::vector<RunId> holders(const std::string& scope, const std::string& resource) const;

    // When a run is taken for having queued, by the share that its project had of what was used lately.
    std::int64_t due_us(const Run& run) const;

private:
    const QuotaOwner& owner_of(const Run& run) const;
    QuotaDemand demand_at(const TenantRequest& request, const std::vector<RankPlace>& places) const;
    BudgetGate::Request budget_request(const TenantRequest& request, const std::vector<RankPlace>& places,
                                       BudgetUnit unit) const;
    TenantBlock block_by_quota(const TenantRequest& request, const QuotaDemand& demand) const;

    const State& state_;
    std::int64_t now_us_;
    QuotaUse use_;
    bool names_models_ = false;
    std::map<RunId, QuotaTier> live_tiers_;
    std::map<ProjectId, std::int64_t> delays_us_;
    std::vector<BudgetGate> gates_;
    std::shared_ptr<const PriceBook> prices_;
    std::int64_t head_start_us_ = 0;
    std::map<std::pair<std::string, BudgetUnit>, StandingRates> rates_;
    mutable std::map<std::pair<ProjectId, std::string>, QuotaOwner> owners_;
};

// What so many ranks take: with places, of the kinds of GPUs that these have.
QuotaDemand demand_of(const State& state, const RankNeeds& needs, int ranks, const std::vector<RankPlace>* places);
// What may borrow: it goes on from a checkpoint, or ends within the notice.
bool gives_back_in_time(const RunSpec& spec);

// What each budget stands at: booked, still open, and to come.
BudgetScene budget_scene(const State& state, const std::shared_ptr<const PriceBook>& prices, std::int64_t now_us,
                         std::int64_t head_start_us = 0);
// The live runs that a budget pays for.
std::vector<RunId> runs_under(const State& state, const std::string& scope);

}  // namespace stoker
