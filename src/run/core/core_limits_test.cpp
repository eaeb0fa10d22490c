// Quotas and budgets as whoever submits meets them.
#include "govern/usage.h"
#include "run/core/core_testing.h"
#include "run/decide/tenant_limits.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

using testing::Contains;
using testing::ElementsAre;

class LimitsTest : public CoreTest {
protected:
    static Actor in(std::uint64_t project, Role role = Role::developer, Level level = Level::project) {
        return {.kind = PrincipalKind::user,
                .role = role,
                .level = level,
                .tenant = {{project == 1 ? 1U : 2U}, {project}},
                .name = "anna"};
    }
    void two_projects() {
        ASSERT_TRUE(tell(MakeOrganisation{"hospital", "imaging"}).ok());  // o-2, p-2
        ASSERT_TRUE(tell(MakeProject{{2}, "genomics"}).ok());             // p-3
    }
    Result<Ack> as(const Actor& actor, decltype(Command::what) what) {
        const Command command{.what = std::move(what), .actor = actor};
        now_us_ += kSecondUs;
        auto turn = core_->turn({&command, 1}, now_us_);
        if (!turn) return turn.error();
        turn_ = std::move(*turn);
        return turn_.acks[0];
    }
    RunId submit(std::uint64_t project, int gpus, std::int64_t timeout_s = 60) {
        RunSpec spec = job(gpus);
        spec.timeout_s = timeout_s;
        const auto ack = as(in(project), Submit{.spec = spec});
        EXPECT_TRUE(ack.ok()) << ack.error().text();
        return ack.ok() ? ack->run : RunId{};
    }
    void start(RunId run) {
        const OperationId launch = core_->state().find(run)->attempts.back().launch;
        ASSERT_TRUE(answer(launch, Certainty::confirmed));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_started, launch)}));
    }
    void end(RunId run, Cause cause = Cause::ok) {
        const OperationId launch = core_->state().find(run)->attempts.back().launch;
        ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_ended, launch, cause)}));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, launch)}));
    }
    void quota(const std::string& scope, std::optional<int> g, std::optional<int> d, std::optional<int> l) {
        const auto milli = [](std::optional<int> n) {
            return n ? std::optional<std::int64_t>(*n * 1000) : std::nullopt;
        };
        const auto set = tell(SetQuota{{.scope = scope,
                                        .resource = "gpu",
                                        .guaranteed_milli = milli(g),
                                        .deserved_milli = milli(d),
                                        .limit_milli = milli(l)}});
        ASSERT_TRUE(set.ok()) << set.error().text();
    }
    void prices() {
        auto book = std::make_shared<PriceBook>();
        book->prices = {{.resource = PricedResource::gpu, .microusd_per_hour = 3'600'000}};
        ASSERT_TRUE(tell(SetPrices{book, "book"}).ok());
    }
    Why why_of(RunId run) { return why(core_->state(), run, now_us_, core_->scheduler()); }
    std::vector<std::string> marks() const {
        std::vector<std::string> all;
        for (const auto& [key, budget] : core_->state().tenants.budgets) return budget.told;
        return all;
    }
};

// Whoever waits for a quota has to learn which number of which level it is, and what would let it start.
TEST_F(LimitsTest, AWaitNamesTheNumberTheLevelAndTheCure) {
    two_projects();
    machine(8);
    quota("p-2", {}, {}, 3);
    const RunId first = submit(2, 2), second = submit(2, 2), foreign = submit(3, 2);
    EXPECT_EQ(state_of(first), RunState::starting);
    EXPECT_EQ(state_of(second), RunState::queued);
    EXPECT_EQ(state_of(foreign), RunState::starting);
    const Why why = why_of(second);
    EXPECT_EQ(why.code, Cause::quota);
    EXPECT_EQ(why.text,
              "project hospital/imaging may hold at most 3 GPUs at once and holds 2 GPUs; this run takes 2 GPUs");
    EXPECT_THAT(why.blockers, ElementsAre(first));
    EXPECT_THAT(why.unblock, ElementsAre("1 GPUs a rank instead of 2",
                                         "a limit of 4 GPUs for project hospital/imaging (stoker quota set)"));
    quota("p-2", {}, {}, 4);
    EXPECT_EQ(state_of(second), RunState::starting);
}

// Whoever raises the one number that is told, and finds the next one behind it, has been sent the wrong way.
TEST_F(LimitsTest, AWaitForSeveralNumbersNamesAllOfThem) {
    two_projects();
    machine(8);
    quota("o-2", {}, {}, 3);
    quota("p-2", {}, {}, 3);
    submit(2, 2);
    const RunId second = submit(2, 2);
    const Why why = why_of(second);
    EXPECT_EQ(why.text,
              "organisation hospital may hold at most 3 GPUs at once and holds 2 GPUs; this run takes 2 GPUs; and "
              "project hospital/imaging may hold at most 3 GPUs at once and holds 2 GPUs; this run takes 2 GPUs");
    EXPECT_THAT(why.unblock,
                Contains("a limit of 4 GPUs for organisation hospital (stoker quota set), and a limit of 4 "
                         "GPUs for project hospital/imaging (stoker quota set)"));
    quota("o-2", {}, {}, 4);
    EXPECT_EQ(state_of(second), RunState::queued);
    quota("p-2", {}, {}, 4);
    EXPECT_EQ(state_of(second), RunState::starting);
}

// What is guaranteed comes back within the notice, from whoever borrowed it, and from nobody else.
TEST_F(LimitsTest, WhatIsOwedIsTakenBackFromWhoeverBorrowed) {
    two_projects();
    machine(4);
    quota("p-2", 2, 2, {});
    quota("p-3", 2, 2, {});
    const RunId fair = submit(3, 2, 120), borrower = submit(3, 2, 120);
    start(fair);
    start(borrower);
    const RunId owed = submit(2, 2);
    EXPECT_EQ(state_of(owed), RunState::queued);
    EXPECT_EQ(core_->state().find(fair)->attempts.back().notice, Cause::none);
    const Attempt& told = core_->state().find(borrower)->attempts.back();
    EXPECT_EQ(told.notice, Cause::preempted);
    EXPECT_EQ(told.deadline_us, now_us_ + kReclaimNoticeS * kSecondUs);
    end(borrower, Cause::user_error);
    tick(1);
    EXPECT_EQ(state_of(owed), RunState::starting);
    EXPECT_EQ(state_of(borrower), RunState::queued);  // and has lost none of its tries
    EXPECT_EQ(core_->state().find(borrower)->counted_failures, 0);
}

// A gang that would not fit even then costs nobody their work.
TEST_F(LimitsTest, NobodyIsStoppedForWhatWouldNotFitEvenThen) {
    two_projects();
    machine(4);
    quota("p-2", 4, 4, {});
    quota("p-3", 1, 1, {});
    const RunId fair = submit(3, 1), borrower = submit(3, 2);
    start(fair);
    start(borrower);
    submit(2, 4);  // the GPU that is fair to p-3 is owed to it
    EXPECT_EQ(core_->state().find(fair)->attempts.back().notice, Cause::none);
    EXPECT_EQ(core_->state().find(borrower)->attempts.back().notice, Cause::none);
}

// Work that cannot go in time would keep what is owed to others.
TEST_F(LimitsTest, WhatCannotGoInTimeDoesNotBorrow) {
    two_projects();
    machine(4);
    quota("p-2", 1, 1, {});
    const RunId endless = submit(2, 2, 0);
    EXPECT_EQ(state_of(endless), RunState::queued);
    EXPECT_THAT(why_of(endless).text, HasSubstr("it has no checkpoint folder, and no timeout as short as that"));
    EXPECT_EQ(state_of(submit(2, 2, 100)), RunState::starting);
}

// Who used little lately goes first, of two that wait equally long.
TEST_F(LimitsTest, WhoUsedLessThanTheirShareGoesFirst) {
    two_projects();
    machine(2);
    quota("p-2", {}, {}, 8);
    const RunId first = submit(2, 2, 7200);
    start(first);
    tick(3600);
    const RunId again = submit(2, 2), other = submit(3, 2);
    end(first);
    tick(2);
    EXPECT_EQ(state_of(other), RunState::starting);
    EXPECT_EQ(state_of(again), RunState::queued);
}

TEST_F(LimitsTest, ALevelIsLimitedFromAboveIt) {
    two_projects();
    const auto set = [&](const Actor& actor, const std::string& scope) {
        const auto ack = as(actor, SetQuota{{.scope = scope, .resource = "cpu", .limit_milli = 1000}});
        return ack.ok() ? std::string("ok") : std::string(to_string(ack.error().kind()));
    };
    EXPECT_EQ(set(in(2, Role::admin), "p-2/ben"), "ok");
    EXPECT_EQ(set(in(2, Role::admin), "p-2"), "denied");
    EXPECT_EQ(set(in(2, Role::admin, Level::organisation), "p-2"), "ok");
    EXPECT_EQ(set(in(2, Role::admin, Level::organisation), "o-2"), "denied");
    EXPECT_EQ(set(in(2, Role::admin, Level::organisation), "p-1"), "not_found");
    EXPECT_EQ(set(in(2, Role::admin), "p-3"), "not_found");
    EXPECT_EQ(set(in(2, Role::developer), "p-2/ben"), "denied");
    EXPECT_EQ(set(in(2, Role::admin, Level::provider), "o-1"), "ok");
}

// Told at 50 and 80 %, stopped before the limit is overrun by more than one notice, and let in again by the next month.
TEST_F(LimitsTest, ABudgetWarnsOnceAndStopsInTime) {
    machine(4);
    prices();  // a GPU costs 1,000 micro-dollars a second
    ASSERT_TRUE(tell(SetBudget{{.scope = "p-1", .limit_micro = 3'600'000}}).ok());  // an hour of one GPU
    const RunId run = submit(1, 1, 7200);
    start(run);
    for (int minute = 0; minute < 70 && state_of(run) == RunState::running; ++minute) {
        tick(60);
        if (minute == 20) {
            EXPECT_THAT(marks(), ElementsAre("forecast"));
        }
        if (minute == 40) {
            EXPECT_THAT(marks(), ElementsAre("forecast", "50"));
        }
    }
    EXPECT_EQ(state_of(run), RunState::checkpointing);
    EXPECT_THAT(marks(), ElementsAre("forecast", "50", "80", "stopping"));
    EXPECT_EQ(core_->state().find(run)->attempts.back().notice, Cause::budget);
    end(run, Cause::user_error);
    tick(1);
    const auto used =
        charged_micro(core_->state().charges, core_->state().tenants, month_of(now_us_), "p-1", BudgetUnit::usd);
    EXPECT_GT(used, 3'200'000);
    EXPECT_LT(used, 3'700'000);
    EXPECT_EQ(state_of(run), RunState::queued);
    EXPECT_EQ(why_of(run).code, Cause::budget);
    EXPECT_THAT(why_of(run).text, HasSubstr("project default/default has $3.60 for this month and used $3."));
    now_us_ = month_window(month_of(now_us_))->to_us;
    tick(1);
    EXPECT_EQ(state_of(run), RunState::starting);
}

// With a head start the spot run is told first, and does not come back on what is kept for the other.
TEST_F(LimitsTest, WhatStandsLowerIsStoppedFirst) {
    machine(4);
    prices();  // 3.6 dollars an hour and GPU
    ASSERT_TRUE(tell(SetLimits{{.lower_first_s = 1800}}).ok());
    ASSERT_TRUE(tell(SetBudget{{.scope = "p-1", .limit_micro = 7'200'000}}).ok());
    const RunId high = submit(1, 1, 0);
    RunSpec low = job(1);
    low.run_class = RunClass::spot;
    const auto second = as(in(1), Submit{.spec = low});
    ASSERT_TRUE(second.ok());
    start(high);
    start(second->run);
    // Two dollars a quarter of an hour and more: half an hour of the one is kept from 5.4 dollars on, after 45 minutes.
    int minute = 0;
    for (; minute < 60 && state_of(second->run) == RunState::running; ++minute) tick(60);
    EXPECT_GE(minute, 40);
    EXPECT_LE(minute, 45);
    EXPECT_EQ(state_of(high), RunState::running);
    end(second->run, Cause::user_error);
    tick(1);
    EXPECT_EQ(state_of(second->run), RunState::queued);
    EXPECT_EQ(why_of(second->run).code, Cause::budget);
    EXPECT_THAT(why_of(second->run).text, HasSubstr("$1.80 of it kept for what stands higher"));
    for (; minute < 200 && state_of(high) == RunState::running; ++minute) tick(60);
    EXPECT_GE(minute, 70) << "half an hour longer";
    EXPECT_LE(minute, 80);
}

// A charge that is lost with a crash, or written twice, is a wrong invoice.
TEST_F(LimitsTest, ChargesSurviveARestartAndSumToTheWhole) {
    machine(4);
    prices();
    const RunId run = submit(1, 2, 20'000);
    start(run);
    const std::int64_t began = core_->state().find(run)->attempts.back().created_us;
    for (int hour = 0; hour < 3; ++hour) tick(3600);
    const Charges before = core_->state().charges;
    EXPECT_FALSE(before.empty());
    open();
    EXPECT_EQ(core_->state().charges, before);
    EXPECT_EQ(decode_state(encode_state(core_->state()))->charges, before);
    prices();
    end(run);
    tick(6);
    const Attempt& attempt = core_->state().find(run)->attempts.back();
    ASSERT_EQ(attempt.state, AttemptState::ended);
    EXPECT_EQ(attempt.charged_us, attempt.ended_us);
    std::int64_t sum = 0;
    for (const auto& [key, each] : core_->state().charges) sum += each.microusd;
    EXPECT_EQ(sum, cost_until(3'600'000, 2000, began, attempt.ended_us));
}

// One ledger: whoever reads an invoice or sets a budget means machines and tokens. With either left out this fails.
TEST_F(LimitsTest, TokensAreChargedOnceWithTheirMarkUpAndCountInABudget) {
    machine(4);
    auto book = std::make_shared<PriceBook>();
    book->prices = {{.resource = PricedResource::gpu, .microusd_per_hour = 3'600'000}};
    book->markups = {{"default", 1000}};  // 10 %
    ASSERT_TRUE(tell(SetPrices{book, "book"}).ok());
    ASSERT_TRUE(tell(SetBudget{{.scope = "p-1", .limit_micro = 8'000'000}}).ok());
    const RunId run = submit(1, 1, 3600);
    start(run);
    tick(1800);
    end(run);
    tick(6);
    const auto used = [&] {
        return charged_micro(core_->state().charges, core_->state().tenants, month_of(now_us_), "p-1", BudgetUnit::usd);
    };
    const std::int64_t machines = used();
    EXPECT_GT(machines, 1'900'000);
    EXPECT_LT(machines, 2'100'000);
    ChargeTokens tokens{.account = "gateway/1", .after = 0, .up_to = 9};
    const auto line = [&](std::int64_t picousd) {
        TokensCharged::Line each;
        each.user = "bot";
        each.model = "demo";
        each.from_us = now_us_;
        each.to_us = now_us_ + 1;
        each.requests = 1;
        each.tokens_in = 2;
        each.tokens_out = 3;
        each.picousd = picousd;
        return each;
    };
    tokens.lines = {line(900'000), line(3'000'000'000'000)};
    ASSERT_TRUE(tell(tokens).ok());
    // 0.99 and 3,300,000 micro-dollars.
    EXPECT_EQ(used(), machines + 3'300'000);
    EXPECT_EQ(marks().front(), "50");
    EXPECT_EQ(tell(tokens).error().kind(), ErrorKind::conflict) << "once";
    const Charges charges = core_->state().charges;
    const TokenDays days = core_->state().token_days;
    EXPECT_EQ(days.begin()->second.tokens, 10);
    open();
    EXPECT_EQ(core_->state().charges, charges);
    EXPECT_EQ(core_->state().token_days, days);
    const auto again = decode_state(encode_state(core_->state()));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->charges, charges);
    EXPECT_EQ(again->token_days, days);
    EXPECT_EQ(again->token_cursors, core_->state().token_cursors);
    ASSERT_TRUE(tell(SetPrices{book, "book"}).ok());
    ChargeTokens more{.account = "gateway/1", .after = 9, .up_to = 10, .lines = {line(10'000)}};
    ASSERT_TRUE(tell(more).ok());
    EXPECT_EQ(used(), machines + 3'300'001) << "0.99 that were left, and 0.011";
    more = {.account = "gateway/1", .after = 10, .up_to = 11, .lines = {line(3'000'000'000'000)}};
    ASSERT_TRUE(tell(more).ok());
    EXPECT_THAT(marks(), Contains("100"));
    const RunId next = submit(1, 1, 60);
    EXPECT_EQ(state_of(next), RunState::queued);
    EXPECT_EQ(why_of(next).code, Cause::budget);
}

TEST_F(LimitsTest, ABudgetInDollarsNeedsPrices) {
    const auto refused = tell(SetBudget{{.scope = "p-1", .limit_micro = 1}});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().text(), HasSubstr("there are no prices"));
    EXPECT_TRUE(tell(SetBudget{{.scope = "p-1", .unit = BudgetUnit::gpu_hours, .limit_micro = 1}}).ok());
}

}  // namespace
}  // namespace stoker
