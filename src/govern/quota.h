// How much may be held at once, of which resource, at which level of the tree of tenants. Pure.
//
// Three numbers, each of which may be left out: guaranteed <= deserved <= limit. What lies within the guarantee is owed
// and is made room for; what lies within what is deserved is fair; what lies above is borrowed: it takes what is idle,
// and gives it back when somebody is owed it. Above the limit nothing starts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "govern/tenants.h"

namespace stoker {

// Borrowed work is told so long before it is stopped.
inline constexpr std::int64_t kReclaimNoticeS = 120;
inline constexpr std::size_t kMostQuotas = 10'000;

enum class QuotaTier : std::uint8_t { owed, fair, borrowed, over };
constexpr std::array<std::pair<QuotaTier, std::string_view>, 4> enum_names(QuotaTier) {
    return {{{QuotaTier::owed, "owed"},
             {QuotaTier::fair, "fair"},
             {QuotaTier::borrowed, "borrowed"},
             {QuotaTier::over, "over"}}};
}

// Whose a run is: its project, the organisation above it, and the name of whoever submitted it.
struct QuotaOwner {
    Tenant tenant{};
    std::string user{};
    friend bool operator==(const QuotaOwner&, const QuotaOwner&) = default;
};
// "user/anna" and "anna" are the same.
QuotaOwner quota_owner(const Tenant& tenant, std::string_view submitted_by);
// "o-2", "p-3", "p-3/anna": the levels at which a run of this owner counts, highest first.
std::array<std::string, 3> scopes_of(const QuotaOwner& owner);
// The project that a scope is, or is part of; of an organisation: any of its projects is not named.
struct QuotaScope {
    OrganisationId organisation{};  // of an organisation
    ProjectId project{};            // else
    std::string user{};
};
// not_found: there is no such level. invalid: it reads as none.
Result<QuotaScope> parse_quota_scope(const Tenants& tenants, std::string_view text);
// "organisation hospital", "project hospital/imaging", "anna in project hospital/imaging".
std::string scope_in_words(const Tenants& tenants, std::string_view scope);

// What a run takes, or would: thousandths. What it takes of which model is known once it has a place.
struct QuotaDemand {
    std::int64_t cpu_milli = 0, gpu_milli = 0;
    std::map<std::string, std::int64_t> gpu_milli_of{};
    std::int64_t of(std::string_view resource) const;  // "cpu", "gpu", "gpu:H100"
};
// "cpu", "gpu", or "gpu:" and the name of a GPU.
bool is_quota_resource(std::string_view resource);
// "6 of H100", "1.5 CPU".
std::string amount_in_words(std::string_view resource, std::int64_t milli);

// Structure alone; the tree is looked at by check_quota_in_tree.
Status check_quota(const QuotaEntry& entry);
// What children are guaranteed fits into what their parent is. conflict, with both numbers.
Status check_quota_in_tree(const Tenants& tenants, const QuotaEntry& entry);

struct QuotaVerdict {
    QuotaTier tier = QuotaTier::fair;
    const QuotaEntry* entry = nullptr;  // that decided; none: no number is there
    std::int64_t used_milli = 0, asked_milli = 0;
    std::int64_t allowed_milli() const;  // of the entry, by the tier: its limit, or what is deserved
};

// What is held against the numbers. The entries of `tenants` have to outlive it.
class QuotaUse {
public:
    explicit QuotaUse(const Tenants& tenants);
    bool empty() const { return rows_.empty(); }
    void hold(const QuotaOwner& owner, const QuotaDemand& demand) { add(owner, demand, 1); }
    void give_back(const QuotaOwner& owner, const QuotaDemand& demand) { add(owner, demand, -1); }
    // Of that much more. The worst of all levels counts: a gang is in one tier as a whole.
    QuotaVerdict judge(const QuotaOwner& owner, const QuotaDemand& demand) const;
    std::int64_t used_milli(const std::string& scope, const std::string& resource) const;

private:
    struct Row {
        const QuotaEntry* entry;
        std::int64_t used_milli = 0;
    };
    void add(const QuotaOwner& owner, const QuotaDemand& demand, int sign);
    std::map<std::string, std::vector<Row>, std::less<>> rows_;  // by scope
};

// Usage that is forgotten by half in a week; whole numbers, so that a replay gives the same.
inline constexpr std::int64_t kFairHalfLifeUs = std::int64_t{7} * 86'400 * 1'000'000;
// What an hour of a GPU, or of 8 CPUs where there is none, weighs: thousandths of a GPU second.
struct FairUse {
    std::int64_t milli_s = 0, at_us = 0;
    friend bool operator==(const FairUse&, const FairUse&) = default;
};
std::int64_t decayed(const FairUse& use, std::int64_t now_us);
void add_use(FairUse& use, std::int64_t milli_s, std::int64_t now_us);
// How much later than it queued a run of a project is taken for, because of what the project used beyond its share: at
// most a day, so that waiting always wins in the end. Shares are thousandths.
std::int64_t fair_delay_us(std::int64_t used_share_milli, std::int64_t deserved_share_milli);

}  // namespace stoker
