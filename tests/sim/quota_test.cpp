// Teams that borrow from each other, are owed, and run out of budget, with faults and kills: nobody is ever above a
// limit, what is owed comes within the notice, a budget is overrun by less than one notice, what was charged is what
// was held, and all work ends well.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "govern/usage.h"
#include "run/decide/tenant_limits.h"
#include "run/state/rules.h"
#include "scenarios.h"
#include "seeds.h"
#include "simulation.h"

namespace stoker::sim {
namespace {

using testing::IsEmpty;

constexpr std::int64_t kBudgetMicro = 3'000'000;  // three GPU hours
// Between the notice and the place: the notice, the grace, and lost answers that are asked for again.
constexpr double kOwedWithinS = kReclaimNoticeS + 30 + 60;

Actor developer(std::uint64_t project) {
    return {.kind = PrincipalKind::user, .role = Role::developer, .tenant = {{1}, {project}}, .name = "anna"};
}

// Whether the run fits once all that borrows has gone. A guarantee is of so many GPUs and not of their places: where
// nobody borrows and what is free lies on several nodes, it waits for an end (seed 69 of 200).
bool fits_without_borrowers(const Simulation& sim, const TenantLimits& limits, const Run& run) {
    const State& state = sim.state();
    std::map<std::string, int> taken;
    for (const RunId id : state.live)
        if (limits.tier_of_live(id) == QuotaTier::owed)
            for (const RankPlace& place : state.find(id)->attempts.back().places)
                taken[place.node] += state.find(id)->spec.per_rank.gpus;
    int ranks = 0;
    for (const auto& [name, node] : state.nodes)
        ranks += (static_cast<int>(node.info.devices.size()) - taken[name]) / std::max(1, run.spec.per_rank.gpus);
    return ranks >= run.spec.ranks;
}

struct Watch {
    std::vector<std::string> broken;
    std::map<RunId, std::int64_t> owed_since;
    bool punctual = false;  // nothing but us moves work
    std::uint64_t reclaimed = 0, borrowed = 0, stopped = 0;

    void look(const Simulation& sim) {
        const State& state = sim.state();
        const TenantLimits limits(state, budget_scene(state, nullptr, sim.now_us()), sim.now_us());
        QuotaUse use(state.tenants);
        for (const RunId id : state.live) {
            const Run& run = *state.find(id);
            use.hold(quota_owner(state.tenants.tenant_of(run.project), run.submitted_by), quota_demand(run.spec));
            borrowed += limits.tier_of_live(id) == QuotaTier::borrowed ? 1 : 0;
            reclaimed += run.attempts.back().notice == Cause::preempted ? 1 : 0;
            stopped += run.attempts.back().notice == Cause::budget ? 1 : 0;
        }
        for (const auto& [key, entry] : state.tenants.quotas)
            if (entry.limit_milli && use.used_milli(key.first, key.second) > *entry.limit_milli)
                broken.push_back(fmt::format("{} holds {} of {}, its limit is {}", key.first,
                                             use.used_milli(key.first, key.second), key.second, *entry.limit_milli));
        // Of those that are owed a place and whose budget lets them in, the one that waits longest in each project.
        std::map<RunId, std::int64_t> owed;
        std::set<ProjectId> seen;
        for (const QueueKey& key : state.queue) {
            const Run& run = *state.find(key.run);
            const TenantRequest request{.run = &run, .ranks = run.spec.ranks, .needs = run.spec.per_rank};
            const std::vector<RankPlace> anywhere(static_cast<std::size_t>(run.spec.ranks));
            if (limits.judge(request).tier != QuotaTier::owed || limits.block_at(request, anywhere)) continue;
            // What stands behind one that cannot have its place yet waits with it.
            if (!fits_without_borrowers(sim, limits, run)) break;
            if (!seen.insert(run.project).second) continue;
            const auto before = owed_since.find(key.run);
            owed[key.run] = before == owed_since.end() ? sim.now_us() : before->second;
            if (punctual && static_cast<double>(sim.now_us() - owed[key.run]) / 1e6 > kOwedWithinS)
                broken.push_back(fmt::format("{} of {} is owed its place since {} s", key.run.text(),
                                             run.project.text(), (sim.now_us() - owed[key.run]) / kSecondUs));
        }
        owed_since = std::move(owed);
    }
};

// What of a project was written down is what its attempts held.
void check_charges(const Simulation& sim, std::vector<std::string>& broken) {
    const State& state = sim.state();
    std::map<ProjectId, std::int64_t> held;
    for (const auto& [id, run] : state.runs)
        for (const Attempt& attempt : run.attempts)
            if (attempt.began_us() != 0)
                held[run.project] += cost_until(1'000'000, quota_demand(run.spec).gpu_milli, attempt.began_us(),
                                                attempt.held_until_us(sim.now_us()));
    for (const auto& [project, micro] : held) {
        std::int64_t charged = 0;
        for (const auto& [key, sum] : state.charges)
            if (key.project == project) charged += sum.gpu_micro_hours;
        if (charged != micro)
            broken.push_back(fmt::format("{} held {} and was charged {}", project.text(), micro, charged));
    }
}

TEST(SimQuota, BorrowingReclaimAndBudgetsHoldTheirPromises) {
    std::uint64_t reclaimed = 0, borrowed = 0, stopped = 0, kills = 0;
    for (const std::uint64_t seed : seeds(200)) {
        SplitMix random(seed ^ 0x90aa);
        const bool faults = seed % 2 == 0;
        SimulationOptions options{
            .seed = seed, .faults = faults ? Faults::common() : Faults::none(), .nodes = make_nodes(2, 4)};
        options.snapshot_every = 200;
        options.check_each_turn = seed % 8 == 1;
        if (faults)
            for (int i = 0; i < 4; ++i) options.kill_at.insert(2 + random.below(400));
        Simulation sim(options);
        const auto watch = std::make_shared<Watch>();
        watch->punctual = !faults;
        const auto admin = [](Simulation& s, CommandBody what) {
            (void)s.command({.what = std::move(what), .actor = Actor::token("admin")});
        };
        // Three projects, each command by itself and several times: kills may take the first try.
        for (double at = 1; at < 200; at += 40) {
            for (const char* name : {"north", "south"})
                sim.at(at + (*name == 's' ? 1 : 0), [admin, name](Simulation& s) { admin(s, MakeProject{{1}, name}); });
            struct Numbers {
                const char* scope;
                int guaranteed, limit;
            };
            for (const Numbers& each : {Numbers{"p-1", 2, 7}, {"p-2", 4, 8}, {"p-3", 2, 6}})
                sim.at(at + 2 + each.guaranteed + each.limit, [admin, each](Simulation& s) {
                    admin(s, SetQuota{{.scope = each.scope,
                                       .resource = "gpu",
                                       .guaranteed_milli = each.guaranteed * 1000,
                                       .limit_milli = each.limit * 1000}});
                });
            sim.at(at + 20, [admin](Simulation& s) {
                admin(s, SetBudget{{.scope = "p-3", .unit = BudgetUnit::gpu_hours, .limit_micro = kBudgetMicro}});
            });
        }
        constexpr double kRaiseS = 7000;
        for (double at = kRaiseS; at < kRaiseS + 400; at += 80)
            sim.at(at, [admin](Simulation& s) {
                admin(s, SetBudget{{.scope = "p-3", .unit = BudgetUnit::gpu_hours, .limit_micro = 1'000'000'000}});
            });
        for (double at = 60; at < 12'000; at += 20)
            sim.at(at, [watch, at](Simulation& s) {
                watch->look(s);
                if (at >= kRaiseS) return;
                const auto& gates = s.scheduler().budgets.gates;
                const std::int64_t used =
                    gates.empty() ? 0 : budget_scene(s.state(), nullptr, s.now_us()).gates.front().load.used_micro;
                // What one notice of all that its limit lets run can cost, and, after a kill, the time without a
                // server.
                const std::int64_t notice = micro_over(6'000'000, (95 + 20) * kSecondUs);
                if (!gates.empty() && used > kBudgetMicro + notice)
                    watch->broken.push_back(fmt::format("the budget is overrun: {} of {}", used, kBudgetMicro));
            });
        std::map<std::string, std::string> expected;
        for (int i = 0; i < 30; ++i) {
            RunSpec spec = simple_run(fmt::format("job{:03}", i), static_cast<std::int64_t>(60 + random.below(1500)));
            spec.per_rank.gpus = static_cast<int>(1 + random.below(2));
            spec.ranks = static_cast<int>(1 + random.below(2));
            spec.max_attempts = 200;
            // What is larger than the guarantee of its project always borrows, and has to be able to go.
            if (spec.ranks * spec.per_rank.gpus > 2 || random.below(4) != 0)
                spec.checkpoint.folder = "/ck/" + spec.name;
            sim.submit_at(250 + random.uniform() * 6000, spec, developer(1 + random.below(3)));
            expected[spec.name] = "succeeded ok";
        }
        const std::string replay = sim.replay_command("SimQuota.*");
        ASSERT_TRUE(sim.run_until_done(200'000)) << replay << "\n" << sim.unfinished();
        check_charges(sim, watch->broken);
        EXPECT_THAT(watch->broken, IsEmpty()) << replay;
        ASSERT_EQ(sim.outcomes(), expected) << replay;
        ASSERT_THAT(sim.problems(), IsEmpty()) << replay;
        if (testing::Test::HasFailure()) return;
        reclaimed += watch->reclaimed;
        borrowed += watch->borrowed;
        stopped += watch->stopped;
        kills += sim.kills();
    }
    if (!all_seeds()) return;
    EXPECT_GT(borrowed, 0U);
    EXPECT_GT(reclaimed, 0U);
    EXPECT_GT(stopped, 0U);
    EXPECT_GT(kills, 0U);
}

}  // namespace
}  // namespace stoker::sim
