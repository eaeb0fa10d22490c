// What every driver keeps (src/deploy/driver.h, lines 1 to 10), as one suite: a harness makes drivers that really run
// programs, and each test is named after the line it checks. A harness has:
//   std::unique_ptr<Driver> make();   // a driver on the same engine; several after one another
//   std::string scratch() const;      // an empty folder that the work may write to
//   OperationId next();               // a fresh id
//   static Deadline soon();           // ample for this engine
// and of an engine that queues, what makes it wait, forget and lose (queue_harness.h).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deploy/driver.h"

namespace stoker::contract {

using Clock = std::chrono::steady_clock;

inline Deadline in(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Asks again, with short pauses, until it is true or the deadline.
inline bool eventually(const std::function<bool()>& condition, Deadline deadline) {
    while (!condition()) {
        if (Clock::now() >= deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

inline std::string content(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline bool shows(const std::string& path, const std::string& text, Deadline deadline) {
    return eventually([&] { return content(path).find(text) != std::string::npos; }, deadline);
}

// Reads facts until one of the operation has this kind; all that came, in order.
struct Facts {
    std::vector<Fact> all;
    std::uint64_t cursor = 0;

    const Fact* find(const OperationId& operation, FactKind kind, int rank = -1) const {
        for (const Fact& fact : all)
            if (fact.operation == operation && fact.kind == kind && (rank < 0 || fact.rank == rank)) return &fact;
        return nullptr;
    }
    const Fact* wait(Driver& driver, const OperationId& operation, FactKind kind, Deadline deadline, int rank = -1) {
        while (find(operation, kind, rank) == nullptr && Clock::now() < deadline) {
            auto more = driver.observe(cursor, deadline);
            EXPECT_TRUE(more.ok());
            if (!more) break;
            for (Fact& fact : *more) {
                EXPECT_GT(fact.cursor, cursor);
                cursor = fact.cursor;
                all.push_back(std::move(fact));
            }
        }
        return find(operation, kind, rank);
    }
    // Without what only an engine that queues tells.
    std::vector<FactKind> kinds() const {
        std::vector<FactKind> kinds;
        for (const Fact& fact : all)
            if (fact.kind != FactKind::waits) kinds.push_back(fact.kind);
        return kinds;
    }
};

// Engines that never queue have none of this to show.
template <typename Harness>
concept Queues = requires(Harness harness) {
    harness.hold_the_queue();
};

template <typename Harness>
class DriverContract : public ::testing::Test {
protected:
    // A gang whose ranks run this shell script.
    GangSpec gang(const std::string& script, std::size_t ranks = 1, std::uint64_t epoch = 1) {
        GangSpec spec{
            .attempt = {{1}, 1}, .epoch = epoch, .folder = harness.scratch(), .log_folder = harness.scratch()};
        auto nodes = driver->discover(Harness::soon());
        // A gang is on one of several engines. A cluster whose nodes are all cordoned shows none.
        std::erase_if(*nodes, [first = nodes->empty() ? "" : nodes->front().engine](const NodeInfo& node) {
            return node.engine != first;
        });
        for (std::size_t i = 0; i < ranks; ++i)
            spec.ranks.push_back(
                {.node = binds() ? "" : nodes->at(i % nodes->size()).name, .arguments = {"sh", "-c", script}});
        return spec;
    }
    void expect_launched(const OperationId& id, const GangSpec& spec) {
        const Outcome outcome = driver->launch(id, spec, Harness::soon());
        ASSERT_EQ(outcome.certainty, queues() ? Certainty::accepted : Certainty::confirmed) << outcome.detail;
    }
    // One that is refused at once, or as soon as the engine tries; with the words of either.
    std::string refusal_of(const OperationId& id, const GangSpec& spec, Cause cause) {
        const Outcome outcome = driver->launch(id, spec, Harness::soon());
        if (!queues() || outcome.certainty != Certainty::accepted) {
            EXPECT_EQ(outcome.certainty, Certainty::rejected);
            EXPECT_EQ(outcome.cause, cause);
            return outcome.detail;
        }
        Facts facts;
        const Fact* end = facts.wait(*driver, id, FactKind::gang_ended, Harness::soon());
        EXPECT_NE(end, nullptr);
        if (end == nullptr) return {};
        EXPECT_EQ(end->cause, cause);
        EXPECT_EQ(facts.find(id, FactKind::rank_started), nullptr);
        return end->detail;
    }
    bool queues() const { return driver->capabilities().queues; }
    bool binds() const { return driver->capabilities().binds; }
    void wait_until_it_runs(const OperationId& id) {
        Facts facts;
        ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, Harness::soon()), nullptr);
    }
    void expect_over(const OperationId& id) {
        EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
        EXPECT_EQ(driver->release(id, Harness::soon()).certainty, Certainty::confirmed);
    }

    Harness harness;
    std::unique_ptr<Driver> driver = harness.make();
};

TYPED_TEST_SUITE_P(DriverContract);

// 1. A call that cannot be done in time says so instead of hanging; without time left nothing is claimed.
TYPED_TEST_P(DriverContract, Line1_EveryCallEndsByItsDeadline) {
    const OperationId id = this->harness.next();
    this->expect_launched(id, this->gang("trap '' TERM; echo up > up; while :; do sleep 0.01; done"));
    ASSERT_TRUE(shows(this->harness.scratch() + "/up", "up", TypeParam::soon()));
    const Deadline ample = TypeParam::soon();
    const Outcome outcome = this->driver->cancel(id, 1, 60, in(0.3));
    EXPECT_EQ(outcome.certainty, Certainty::unknown) << outcome.detail;
    Facts facts;
    facts.wait(*this->driver, id, FactKind::rank_started, TypeParam::soon());
    EXPECT_TRUE(this->driver->observe(facts.cursor, in(0.2)).ok());
    EXPECT_LT(Clock::now(), ample) << "it waited for the end";
    this->expect_over(id);
}

// 2. Launching twice starts one gang; cancel and release twice are confirmed twice.
TYPED_TEST_P(DriverContract, Line2_TwiceIsOnce) {
    const OperationId id = this->harness.next();
    const GangSpec spec = this->gang("echo here >> started; sleep 60");
    this->expect_launched(id, spec);
    this->expect_launched(id, spec);
    ASSERT_TRUE(shows(this->harness.scratch() + "/started", "here\n", TypeParam::soon()));
    EXPECT_EQ(content(this->harness.scratch() + "/started"), "here\n");
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(this->driver->cancel(id, 1, 0, TypeParam::soon()).certainty, Certainty::confirmed);
    // Not a second time after its end either.
    this->expect_launched(id, spec);
    EXPECT_EQ(content(this->harness.scratch() + "/started"), "here\n");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);
}

// 3. A program that does not exist is a definite no, with a cause and a hint, and stays one; nothing of the gang ran.
TYPED_TEST_P(DriverContract, Line3_RejectedIsADefiniteNo) {
    const OperationId id = this->harness.next();
    GangSpec spec = this->gang("echo ran >> ran", 3);
    spec.ranks[1].arguments = {"no-such-program-anywhere"};
    for (int i = 0; i < 2; ++i) {
        const std::string why = this->refusal_of(id, spec, Cause::user_error);
        EXPECT_NE(why.find("no program named no-such-program-anywhere in PATH"), std::string::npos) << why;
    }
    EXPECT_EQ(content(this->harness.scratch() + "/ran"), "");
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);

    GangSpec nowhere = this->gang("true");
    nowhere.ranks[0].node = "no-such-node";
    EXPECT_EQ(this->driver->launch(this->harness.next(), nowhere, TypeParam::soon()).certainty, Certainty::rejected);
}

// 4. After a confirmed cancel no process of the operation runs, also none that left its group and its parents.
TYPED_TEST_P(DriverContract, Line4_ConfirmedCancelLeavesNothing) {
    const OperationId id = this->harness.next();
    const std::string scratch = this->harness.scratch();
    this->expect_launched(id,
                          this->gang("trap '' TERM\n"
                                     "setsid sh -c 'trap \"\" TERM; (while :; do date +%N > beat; sleep 0.01; done) & "
                                     "echo $! > stray' &\n"
                                     "while :; do sleep 0.01; done"));
    ASSERT_TRUE(shows(scratch + "/stray", "\n", TypeParam::soon()));
    EXPECT_EQ(this->driver->cancel(id, 1, 0.05, TypeParam::soon()).certainty, Certainty::confirmed);
    if (this->driver->capabilities().kills_trees) {
        const std::string last_beat = content(scratch + "/beat");
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        EXPECT_EQ(content(scratch + "/beat"), last_beat);
    }
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);
}

// 5. Facts of one operation come in order, and again for somebody who asks again; the next driver tells them too.
TYPED_TEST_P(DriverContract, Line5_FactsComeInOrderAndAgain) {
    const OperationId id = this->harness.next();
    this->expect_launched(id, this->gang("exit 0", 3));
    Facts facts;
    ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
    EXPECT_EQ(facts.kinds(),
              (std::vector{FactKind::rank_started, FactKind::rank_started, FactKind::rank_started, FactKind::rank_ended,
                           FactKind::rank_ended, FactKind::rank_ended, FactKind::gang_ended}));
    EXPECT_EQ(facts.all.back().cause, Cause::ok);

    auto again = this->driver->observe(0, TypeParam::soon());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->size(), facts.all.size());

    this->driver.reset();
    this->driver = this->harness.make();
    // With the cursor of the driver before: nothing may be skipped.
    Facts next{.all = {}, .cursor = facts.cursor};
    auto repeated = this->driver->observe(facts.cursor, TypeParam::soon());
    ASSERT_TRUE(repeated.ok());
    next.all = std::move(*repeated);
    EXPECT_EQ(next.kinds(), facts.kinds());
    this->expect_over(id);
}

// 6. The engine's words are bounded, and an end has a cause of ours: here the first rank that failed, not the others
// that were ended because of it.
TYPED_TEST_P(DriverContract, Line6_CausesAreOursAndDetailsBounded) {
    const OperationId id = this->harness.next();
    this->expect_launched(id, this->gang("trap 'exit 9' TERM; if [ $RANK = 1 ]; then exit 3; fi; "
                                         "while :; do sleep 0.01; done",
                                         3));
    Facts facts;
    const Fact* end = facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon());
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::user_error);
    EXPECT_NE(end->detail.find("rank 1: exit code 3"), std::string::npos) << end->detail;
    EXPECT_EQ(facts.find(id, FactKind::rank_ended, 1)->exit_code, 3);
    this->expect_over(id);

    GangSpec long_name = this->gang("true");
    long_name.ranks[0].arguments = {std::string(20000, 'x')};
    const OperationId other = this->harness.next();
    EXPECT_LE(this->refusal_of(other, long_name, Cause::user_error).size(), kMaxDetailBytes);
    this->expect_over(other);
}

// An order with an epoch lower than one that was obeyed is refused: the server that gave it has been replaced.
TYPED_TEST_P(DriverContract, OldEpochsAreRefused) {
    const OperationId id = this->harness.next();
    this->expect_launched(
        id, this->gang("trap 'echo told > notice' USR1; echo up > up; while :; do sleep 0.01; done", 1, 5));
    ASSERT_TRUE(shows(this->harness.scratch() + "/up", "up", TypeParam::soon()));
    EXPECT_EQ(this->driver->notify(id, 4, SIGUSR1, TypeParam::soon()).certainty, Certainty::rejected);
    EXPECT_EQ(this->driver->cancel(id, 4, 0, TypeParam::soon()).certainty, Certainty::rejected);
    EXPECT_EQ(this->driver->launch(this->harness.next(), this->gang("true", 1, 4), TypeParam::soon()).certainty,
              Certainty::rejected);
    EXPECT_EQ(this->driver->notify(id, 6, SIGUSR1, TypeParam::soon()).certainty, Certainty::confirmed);
    EXPECT_EQ(this->driver->notify(id, 5, SIGUSR1, TypeParam::soon()).certainty, Certainty::rejected);
    EXPECT_TRUE(shows(this->harness.scratch() + "/notice", "told", TypeParam::soon()));
    EXPECT_EQ(this->driver->cancel(id, 6, 0, TypeParam::soon()).certainty, Certainty::confirmed);
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);
}

// What is listed is what carries our mark, of this site, until it is released; what runs cannot be released.
TYPED_TEST_P(DriverContract, ListsOurs) {
    const OperationId id = this->harness.next();
    this->expect_launched(id, this->gang("sleep 60"));
    this->wait_until_it_runs(id);
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::rejected);
    auto listing = this->driver->list_ours(id.site, TypeParam::soon());
    ASSERT_TRUE(listing.ok());
    ASSERT_EQ(listing->items.size(), 1u);
    EXPECT_EQ(listing->items[0].operation, id);
    EXPECT_EQ(listing->items[0].epoch, 1u);
    EXPECT_FALSE(listing->items[0].ended);
    EXPECT_TRUE(this->driver->list_ours("zzzzz", TypeParam::soon())->items.empty());
    EXPECT_EQ(this->driver->cancel(id, 1, 0, TypeParam::soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(this->driver->list_ours(id.site, TypeParam::soon())->items[0].ended);
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(this->driver->list_ours(id.site, TypeParam::soon())->items.empty());
    // Nothing there is nothing running, and nothing to release.
    EXPECT_EQ(this->driver->cancel(id, 1, 0, TypeParam::soon()).certainty, Certainty::confirmed);
    EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::confirmed);
}

// 7. A check ends by its deadline, starts and ends nothing, and claims nothing that it could not measure.
TYPED_TEST_P(DriverContract, Line7_ACheckEndsByItsDeadlineAndDisturbsNothing) {
    const OperationId id = this->harness.next();
    this->expect_launched(id, this->gang("sleep 60"));
    const auto nodes = this->driver->discover(TypeParam::soon());
    ASSERT_TRUE(nodes.ok());
    for (const HealthLevel level : {HealthLevel::quick, HealthLevel::full}) {
        const Deadline ample = TypeParam::soon();
        const HealthReport none = this->driver->check(nodes->front().name, level, Clock::now());
        EXPECT_LT(Clock::now(), ample);
        // Also of an engine that would have answered at once.
        EXPECT_EQ(none.verdict(), HealthVerdict::skipped) << "nothing was measured in no time";
        for (const HealthCheck& check : none.checks) EXPECT_FALSE(check.name.empty());
    }
    EXPECT_EQ(this->driver->check("no such node", HealthLevel::quick, in(1)).verdict(), HealthVerdict::skipped);
    const auto listing = this->driver->list_ours(id.site, TypeParam::soon());
    ASSERT_TRUE(listing.ok());
    ASSERT_EQ(listing->items.size(), 1u);
    EXPECT_FALSE(listing->items[0].ended);
    this->expect_over(id);
}

// 8. What waits says why from the first on, is listed as waiting, and starts when the engine says so, with its node.
TYPED_TEST_P(DriverContract, Line8_WhatIsAcceptedWaitsAndSaysWhy) {
    if constexpr (Queues<TypeParam>) {
        this->harness.wait_for(3600);
        const OperationId id = this->harness.next();
        const Outcome outcome = this->driver->launch(id, this->gang("echo up > up", 2), TypeParam::soon());
        ASSERT_EQ(outcome.certainty, Certainty::accepted);
        EXPECT_NE(outcome.cause, Cause::none);
        Facts facts;
        const Fact* waits = facts.wait(*this->driver, id, FactKind::waits, TypeParam::soon());
        ASSERT_NE(waits, nullptr);
        EXPECT_NE(waits->cause, Cause::none);
        EXPECT_NE(waits->detail, "");
        this->harness.pass(3599);
        auto listing = this->driver->list_ours(id.site, TypeParam::soon());
        ASSERT_EQ(listing->items.size(), 1U);
        EXPECT_TRUE(listing->items[0].waits);
        EXPECT_EQ(this->driver->notify(id, 1, SIGUSR1, TypeParam::soon()).certainty, Certainty::rejected);
        EXPECT_EQ(this->driver->release(id, TypeParam::soon()).certainty, Certainty::rejected);
        EXPECT_EQ(content(this->harness.scratch() + "/up"), "");
        this->harness.pass(2);
        for (const int rank : {0, 1}) {
            const Fact* started = facts.wait(*this->driver, id, FactKind::rank_started, TypeParam::soon(), rank);
            ASSERT_NE(started, nullptr);
            EXPECT_NE(started->node, "");
        }
        EXPECT_EQ(facts.all.front().kind, FactKind::waits);
        ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
        listing = this->driver->list_ours(id.site, TypeParam::soon());
        EXPECT_FALSE(listing->items[0].waits);
        this->expect_over(id);
    } else {
        EXPECT_FALSE(this->queues());
    }
}

// 4 and 8. What is cancelled while it waits never starts.
TYPED_TEST_P(DriverContract, Line8_ACancelReachesWhatWaits) {
    if constexpr (Queues<TypeParam>) {
        this->harness.hold_the_queue();
        const OperationId id = this->harness.next(), later = this->harness.next();
        this->expect_launched(id, this->gang("echo ran > ran"));
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(this->driver->cancel(id, 1, 0, TypeParam::soon()).certainty, Certainty::confirmed);
        this->harness.let_it_start();
        this->expect_launched(later, this->gang("exit 0"));
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, later, FactKind::gang_ended, TypeParam::soon()), nullptr);
        EXPECT_EQ(content(this->harness.scratch() + "/ran"), "");
        this->expect_over(id);
        this->expect_over(later);
    }
}

// 8. A part of a gang is told rank by rank, and is not said to be the whole; it can be ended.
TYPED_TEST_P(DriverContract, Line8_APartOfAGangIsToldAsAPart) {
    if constexpr (requires { this->harness.start_only(1); }) {
        this->harness.start_only(1);
        const OperationId id = this->harness.next();
        this->expect_launched(id, this->gang("sleep 60", 3));
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, id, FactKind::rank_started, TypeParam::soon(), 0), nullptr);
        EXPECT_EQ(facts.find(id, FactKind::rank_started, 1), nullptr);
        const auto listing = this->driver->list_ours(id.site, TypeParam::soon());
        ASSERT_EQ(listing->items.size(), 1U);
        EXPECT_TRUE(listing->items[0].waits) << "not every rank has started";
        this->expect_over(id);
    } else {
        EXPECT_TRUE(this->driver->capabilities().gang) << "an engine that starts a part must be made to";
    }
}

// 2. An engine that lost an answer, or all memory of what it ran, still does it once.
TYPED_TEST_P(DriverContract, Line2_ForgettingIsNoReasonToRunItTwice) {
    if constexpr (Queues<TypeParam>) {
        const OperationId id = this->harness.next();
        const GangSpec spec = this->gang("echo here >> started");
        this->harness.lose_next_answer();
        EXPECT_EQ(this->driver->launch(id, spec, TypeParam::soon()).certainty, Certainty::unknown);
        this->expect_launched(id, spec);
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
        this->harness.forget_what_ended();
        this->expect_launched(id, spec);
        const OperationId other = this->harness.next();
        this->expect_launched(other, this->gang("exit 0"));
        ASSERT_NE(facts.wait(*this->driver, other, FactKind::gang_ended, TypeParam::soon()), nullptr);
        EXPECT_EQ(content(this->harness.scratch() + "/started"), "here\n");
        this->expect_over(id);
        this->expect_over(other);
    }
}

// 3. What the engine lost before it began is not listed, and the same operation may begin then.
TYPED_TEST_P(DriverContract, Line3_WhatTheEngineLostIsNotListed) {
    if constexpr (Queues<TypeParam>) {
        this->harness.hold_the_queue();
        const OperationId id = this->harness.next();
        const GangSpec spec = this->gang("echo here >> started");
        this->expect_launched(id, spec);
        this->harness.lose_what_waits();
        EXPECT_TRUE(this->driver->list_ours(id.site, TypeParam::soon())->items.empty());
        this->harness.let_it_start();
        this->expect_launched(id, spec);
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
        EXPECT_EQ(content(this->harness.scratch() + "/started"), "here\n");
        this->expect_over(id);
    }
}

// 5. How it ended is known also to a server that comes when the engine has forgotten it.
TYPED_TEST_P(DriverContract, Line5_AnEndOutlivesTheEnginesMemory) {
    if constexpr (Queues<TypeParam>) {
        const OperationId id = this->harness.next();
        this->expect_launched(id, this->gang("exit 3"));
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
        this->driver.reset();
        this->harness.forget_what_ended();
        this->driver = this->harness.make();
        Facts again;
        const Fact* end = again.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon());
        ASSERT_NE(end, nullptr);
        EXPECT_EQ(end->cause, Cause::user_error);
        EXPECT_TRUE(this->driver->list_ours(id.site, TypeParam::soon())->items.at(0).ended);
        this->expect_over(id);
    }
}

// 9. A number that comes back is another's: orders about the first do nothing to the second.
TYPED_TEST_P(DriverContract, Line9_ANumberThatComesBackIsAnothers) {
    if constexpr (Queues<TypeParam>) {
        const OperationId first = this->harness.next(), second = this->harness.next();
        this->expect_launched(first, this->gang("exit 0"));
        Facts facts;
        ASSERT_NE(facts.wait(*this->driver, first, FactKind::gang_ended, TypeParam::soon()), nullptr);
        this->harness.forget_what_ended();
        this->harness.number_again();
        this->expect_launched(second, this->gang("sleep 60"));
        ASSERT_NE(facts.wait(*this->driver, second, FactKind::rank_started, TypeParam::soon()), nullptr);
        this->expect_over(first);
        const auto listing = this->driver->list_ours(second.site, TypeParam::soon());
        ASSERT_EQ(listing->items.size(), 1U);
        EXPECT_EQ(listing->items[0].operation, second);
        EXPECT_FALSE(listing->items[0].ended);
        this->expect_over(second);
    }
}

// 10. Each question is answered, or said to be one that this engine cannot answer.
TYPED_TEST_P(DriverContract, Line10_AQuestionIsAnsweredOrUnsupported) {
    const OperationId id = this->harness.next();
    GangSpec spec = this->gang("echo a line; echo another; echo kept > kept");
    this->expect_launched(id, spec);
    Facts facts;
    ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
    this->expect_over(id);  // answers do not hang on the operation still being known
    const auto cannot = [](const auto& answer) { return !answer && answer.error().kind() == ErrorKind::unsupported; };
    const Questions& engine = *this->driver;
    const LogPlace log{.launched = id, .log_folder = spec.log_folder, .rank = 0};
    if (const auto piece = engine.read_log(log, "", 1000, TypeParam::soon()); !cannot(piece)) {
        ASSERT_TRUE(piece.ok());
        EXPECT_EQ(piece->text, "a line\nanother\n");
        EXPECT_EQ(engine.read_log(log, piece->next, 1000, TypeParam::soon())->text, "");
        EXPECT_EQ(engine.tail_log(log, 1, 1000, TypeParam::soon())->text, "another\n");
        EXPECT_EQ(engine.search_log(log, "another", 10, TypeParam::soon())->items.at(0).line, 2);
    }
    if (const auto files = engine.list_files(spec.folder, 100, TypeParam::soon()); !cannot(files)) {
        ASSERT_TRUE(files.ok());
        EXPECT_TRUE(std::any_of(files->items.begin(), files->items.end(),
                                [](const WorkFile& file) { return file.path == "kept" && file.bytes == 5; }));
        EXPECT_EQ(engine.read_file(spec.folder, "kept", 1, 3, TypeParam::soon())->bytes, "ept");
        for (const char* out : {"../work/kept", "/etc/passwd", "none"})
            EXPECT_EQ(engine.read_file(spec.folder, out, 0, 10, TypeParam::soon()).error().kind(), ErrorKind::not_found)
                << out;
    }
    const PrerequisitesPlace place{.folder = spec.folder, .disk_folder = "", .image = "", .environment = {}};
    if (const Status met = engine.look_for({.paths = {"kept"}}, place, TypeParam::soon()); !cannot(met)) {
        EXPECT_TRUE(met.ok());
        const Status missing = engine.look_for({.paths = {"kept", "lost", "gone"}}, place, TypeParam::soon());
        ASSERT_FALSE(missing.ok());
        EXPECT_EQ(missing.error().kind(), ErrorKind::infeasible);
        EXPECT_EQ(missing.error().problems().size(), 2U) << "all of it at once";
    }
    const auto pinned = engine.pin(spec.folder, {.folder = "/", .engine = {}}, TypeParam::soon());
    EXPECT_TRUE(cannot(pinned) || *pinned == spec.folder) << "a bundle stays as it is";
}

// 10. What ranks tell of their steps and use comes once after a cursor, from where they run, with rank and node; also
// what a rank wrote last before it ended.
TYPED_TEST_P(DriverContract, Line10_MeasuresComeOnceFromWhereTheRanksRun) {
    const OperationId id = this->harness.next();
    const std::string scratch = this->harness.scratch();
    GangSpec spec = this->gang(
        "file=metrics.jsonl; [ $RANK = 0 ] || file=metrics.rank-$RANK.jsonl\n"
        "echo '{\"step\": 1, \"step_s\": 0.5}' >> $file; while [ ! -e go ]; do sleep 0.02; done\n"
        "echo '{\"step\": 2, \"step_s\": 0.25}' >> $file",
        2);
    spec.measure.lines = scratch + "/metrics.jsonl";
    this->expect_launched(id, spec);
    Facts facts;
    MeasuredGang gang{.launched = id, .log_folder = spec.log_folder, .measure = spec.measure, .live = {}};
    for (int rank = 0; rank < 2; ++rank) {
        const Fact* start = facts.wait(*this->driver, id, FactKind::rank_started, TypeParam::soon(), rank);
        ASSERT_NE(start, nullptr);
        gang.live.push_back({.rank = rank, .pid = start->pid, .node = start->node});
    }
    const Questions& engine = *this->driver;
    std::string cursor;
    std::map<int, std::vector<double>> steps;
    std::map<int, double> memory;
    std::map<int, std::string> nodes;
    bool cannot = false;
    const auto read = [&] {
        for (bool more = true; more && !cannot;) {
            const auto answer = engine.read_measures(gang, {.cursor = cursor, .most = 1}, TypeParam::soon());
            cannot = !answer && answer.error().kind() == ErrorKind::unsupported;
            ASSERT_TRUE(answer.ok() || cannot);
            if (cannot) return;
            EXPECT_LE(answer->lines.size(), 1u);
            for (const MeasureLine& line : answer->lines) {
                if (line.step) steps[line.rank].push_back(*line.step);
                nodes[line.rank] = line.node;
                for (const auto& [name, value] : line.values)
                    if (name == "rss") memory[line.rank] = value;
            }
            cursor = answer->next;
            more = answer->more;
        }
    };
    EXPECT_TRUE(eventually(
        [&] {
            read();
            return cannot || (steps.size() == 2 && (memory.size() == 2));
        },
        TypeParam::soon()));
    std::ofstream(scratch + "/go") << "\n";
    ASSERT_NE(facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon()), nullptr);
    if (cannot) {
        this->expect_over(id);
        GTEST_SKIP() << "this engine cannot tell what its ranks use";
    }
    gang.live.clear();
    EXPECT_TRUE(eventually(
        [&] {
            read();
            return steps[0].size() == 2 && steps[1].size() == 2;
        },
        TypeParam::soon()));
    this->expect_over(id);
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(steps[rank], (std::vector<double>{1, 2})) << "rank " << rank;
        EXPECT_GT(memory[rank], 0);
        EXPECT_EQ(nodes[rank], facts.find(id, FactKind::rank_started, rank)->node);
    }
    EXPECT_EQ(engine.read_measures(gang, {.cursor = "no cursor"}, TypeParam::soon()).error().kind(),
              ErrorKind::invalid);
}

// A rank that takes more than its memory is killed and said to be out of memory.
TYPED_TEST_P(DriverContract, MemoryLimitIsSaid) {
    if (!this->driver->capabilities().limits_memory) GTEST_SKIP() << "this engine limits no memory";
    const OperationId id = this->harness.next();
    GangSpec spec = this->gang("sleep 60", 2);
    spec.ranks[1].memory_bytes = 32 << 20;
    spec.ranks[1].arguments = {"dd", "if=/dev/zero", "of=/dev/null", "bs=512M", "count=1"};
    this->expect_launched(id, spec);
    Facts facts;
    const Fact* end = facts.wait(*this->driver, id, FactKind::gang_ended, TypeParam::soon());
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::oom) << end->detail;
    EXPECT_EQ(facts.find(id, FactKind::rank_ended, 1)->cause, Cause::oom);
    EXPECT_NE(end->detail.find("32 MiB"), std::string::npos) << end->detail;
    this->expect_over(id);
}

REGISTER_TYPED_TEST_SUITE_P(DriverContract, Line1_EveryCallEndsByItsDeadline, Line2_TwiceIsOnce,
                            Line3_RejectedIsADefiniteNo, Line4_ConfirmedCancelLeavesNothing,
                            Line5_FactsComeInOrderAndAgain, Line6_CausesAreOursAndDetailsBounded, OldEpochsAreRefused,
                            ListsOurs, Line7_ACheckEndsByItsDeadlineAndDisturbsNothing,
                            Line8_WhatIsAcceptedWaitsAndSaysWhy, Line8_ACancelReachesWhatWaits,
                            Line8_APartOfAGangIsToldAsAPart, Line2_ForgettingIsNoReasonToRunItTwice,
                            Line3_WhatTheEngineLostIsNotListed, Line5_AnEndOutlivesTheEnginesMemory,
                            Line9_ANumberThatComesBackIsAnothers, Line10_AQuestionIsAnsweredOrUnsupported,
                            Line10_MeasuresComeOnceFromWhereTheRanksRun, MemoryLimitIsSaid);

}  // namespace stoker::contract
