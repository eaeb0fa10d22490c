#include "govern/quota.h"

#include <gmock/gmock.h>

#include "base/random.h"

namespace stoker {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kDayUs = std::int64_t{86'400} * 1'000'000;

Tenants two_projects() {
    Tenants tenants;
    tenants.organisations[{2}] = {.id = {2}, .name = "hospital"};
    tenants.projects[{2}] = {.id = {2}, .organisation = {2}, .name = "imaging"};
    tenants.projects[{3}] = {.id = {3}, .organisation = {2}, .name = "genomics"};
    return tenants;
}
void put(Tenants& tenants, QuotaEntry entry) {
    tenants.quotas[{entry.scope, entry.resource}] = entry;
}
QuotaDemand gpus(std::int64_t milli, const std::string& model = "H100") {
    return {.gpu_milli = milli, .gpu_milli_of = {{model, milli}}};
}
const QuotaOwner kAnna = quota_owner({{2}, {2}}, "user/anna"), kBen = quota_owner({{2}, {3}}, "service/ben");

// A team is told the wrong tier, and somebody else's training is stopped for it.
TEST(Quota, TheWorstOfAllLevelsCounts) {
    Tenants tenants = two_projects();
    put(tenants, {.scope = "o-2", .resource = "gpu", .limit_milli = 10'000});
    put(tenants, {.scope = "p-2", .resource = "gpu", .guaranteed_milli = 2000, .deserved_milli = 4000});
    put(tenants, {.scope = "p-2/anna", .resource = "gpu:H100", .limit_milli = 6000});
    QuotaUse use(tenants);
    EXPECT_EQ(use.judge(kAnna, gpus(2000)).tier, QuotaTier::owed);
    EXPECT_EQ(use.judge(kAnna, gpus(3000)).tier, QuotaTier::fair);
    EXPECT_EQ(use.judge(kAnna, gpus(5000)).tier, QuotaTier::borrowed);
    const QuotaVerdict over = use.judge(kAnna, gpus(7000));
    EXPECT_EQ(over.tier, QuotaTier::over);
    EXPECT_EQ(over.entry->scope, "p-2/anna");
    EXPECT_EQ(over.allowed_milli(), 6000);
    EXPECT_EQ(use.judge(kAnna, gpus(7000, "A100")).tier, QuotaTier::borrowed);  // her limit is of another kind
    use.hold(kBen, gpus(9000));
    EXPECT_EQ(use.judge(kAnna, gpus(2000)).entry->scope, "o-2");  // the organisation is full
    use.give_back(kBen, gpus(9000));
    EXPECT_EQ(use.judge(kAnna, gpus(2000)).tier, QuotaTier::owed);
    EXPECT_EQ(use.judge(kBen, gpus(9000)).tier, QuotaTier::fair);  // a limit alone makes nobody a borrower
}

// Numbers that contradict each other would be found out when two teams are owed the same GPU.
TEST(Quota, WhatIsGuaranteedBelowFitsIntoWhatIsGuaranteedAbove) {
    Tenants tenants = two_projects();
    put(tenants, {.scope = "o-2", .resource = "gpu", .guaranteed_milli = 8000});
    put(tenants, {.scope = "p-2", .resource = "gpu", .guaranteed_milli = 6000});
    EXPECT_TRUE(check_quota_in_tree(tenants, {.scope = "p-3", .resource = "gpu", .guaranteed_milli = 2000}));
    const Status refused = check_quota_in_tree(tenants, {.scope = "p-3", .resource = "gpu", .guaranteed_milli = 3000});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::conflict);
    EXPECT_THAT(refused.error().text(), HasSubstr("below organisation hospital 9 GPUs would be guaranteed, and it is "
                                                  "itself guaranteed 8 GPUs"));
    EXPECT_FALSE(check_quota_in_tree(tenants, {.scope = "o-2", .resource = "gpu", .guaranteed_milli = 5000}));
    EXPECT_FALSE(check_quota({.scope = "p-3", .resource = "gpu", .guaranteed_milli = 3, .limit_milli = 2}));
    EXPECT_FALSE(check_quota({.scope = "p-3", .resource = "tpu", .limit_milli = 2}));
    EXPECT_EQ(parse_quota_scope(tenants, "p-9").error().kind(), ErrorKind::not_found);
    EXPECT_EQ(parse_quota_scope(tenants, "p-2/an na").error().kind(), ErrorKind::invalid);
    EXPECT_EQ(scope_in_words(tenants, "p-2/anna"), "anna in project hospital/imaging");
}

// Whatever is taken and given back, in any order: what is let in never passes a limit, and asking for less never comes
// into a worse tier.
TEST(Quota, NoOrderOfTakingAndGivingBackPassesALimit) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SplitMix random(seed);
        Tenants tenants = two_projects();
        for (const char* scope : {"o-2", "p-2", "p-3", "p-2/anna"}) {
            const std::int64_t g = 1000 * static_cast<std::int64_t>(random.below(4)),
                               d = g + 1000 * static_cast<std::int64_t>(random.below(4));
            put(tenants, {.scope = scope,
                          .resource = "gpu",
                          .guaranteed_milli = g,
                          .deserved_milli = d,
                          .limit_milli = d + 1000 * static_cast<std::int64_t>(random.below(4))});
        }
        QuotaUse use(tenants);
        std::vector<std::pair<QuotaOwner, QuotaDemand>> held;
        for (int i = 0; i < 100; ++i) {
            if (!held.empty() && random.below(2) == 0) {
                const std::size_t at = random.below(held.size());
                use.give_back(held[at].first, held[at].second);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
                continue;
            }
            const QuotaOwner& owner = random.below(2) == 0 ? kAnna : kBen;
            const QuotaDemand asked = gpus(250 * static_cast<std::int64_t>(1 + random.below(16)));
            const QuotaTier tier = use.judge(owner, asked).tier;
            EXPECT_LE(use.judge(owner, gpus(asked.gpu_milli / 2)).tier, tier) << "seed " << seed;
            if (tier == QuotaTier::over) continue;
            use.hold(owner, asked);
            held.emplace_back(owner, asked);
            for (const auto& [key, entry] : tenants.quotas)
                EXPECT_LE(use.used_milli(key.first, key.second), *entry.limit_milli) << "seed " << seed;
        }
        for (const auto& [owner, demand] : held) use.give_back(owner, demand);
        for (const auto& [key, entry] : tenants.quotas) EXPECT_EQ(use.used_milli(key.first, key.second), 0);
    }
}

// Who used much last month must not wait for ever, and who waits long enough goes first.
TEST(Quota, UseIsForgottenByHalfInAWeek) {
    FairUse use;
    add_use(use, 1'000'000, 0);
    EXPECT_EQ(decayed(use, 7 * kDayUs), 500'000);
    EXPECT_EQ(decayed(use, 14 * kDayUs), 250'000);
    EXPECT_NEAR(static_cast<double>(decayed(use, 7 * kDayUs / 2)), 750'000, 2);
    EXPECT_EQ(decayed(use, 1000 * kDayUs), 0);
    std::int64_t last = use.milli_s;
    for (std::int64_t hour = 1; hour < 24 * 30; ++hour) {
        const std::int64_t now = decayed(use, hour * kDayUs / 24);
        EXPECT_LE(now, last);
        last = now;
    }
    EXPECT_EQ(fair_delay_us(1000, 0), kDayUs);
    EXPECT_EQ(fair_delay_us(300, 500), 0);
}

}  // namespace
}  // namespace stoker
