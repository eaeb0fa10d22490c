// Runs that do nothing, over an engine whose ranks never do anything; what was measured of them is written by the test.
#include "server/idle_guard.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "io/clock.h"
#include "run/state/rules.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kMinute = 60;

class IdleGuardTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        auto store = SeriesStore::open(folder_ + "/series");
        ASSERT_TRUE(store.ok()) << store.error().text();
        series_ = std::move(*store);
    }
    RunId runs(const std::string& checkpoints, std::vector<NotifySpec> notify = {}) {
        RunSpec spec;
        spec.name = "lab";
        spec.command = {"true"};
        spec.per_rank.cpu_milli = 1000;
        spec.checkpoint.folder = checkpoints;
        spec.checkpoint.interval_s = 600;
        if (!notify.empty()) spec.notify = std::move(notify);
        const auto ack = call(*engine_, {.what = Submit{.spec = spec}, .actor = Actor::token("admin")});
        EXPECT_TRUE(ack.ok()) << ack.error().text();
        for (int i = 0; i < 2000; ++i) {
            bool running = false;
            EXPECT_TRUE(engine_->read([&](const EngineView& view) {
                const stoker::Run* run = view.state.find(ack->run);
                running = run != nullptr && run->state == RunState::running;
                if (running) began_s_ = run->attempts.back().running_us / kSecondUs;
            }));
            if (running) return ack->run;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ADD_FAILURE() << "it does not run";
        return ack->run;
    }
    // What was measured of it, a point every ten seconds, in minutes since it began.
    void measured(RunId run, std::int64_t from_min, std::int64_t to_min, double cores) {
        for (std::int64_t s = from_min * kMinute; s < to_min * kMinute; s += 10)
            series_->add(run.text(), 0, "cpu", static_cast<double>(began_s_ + s), cores);
    }
    std::unique_ptr<IdleGuard> guard(const std::string& rules) {
        auto made = std::make_unique<IdleGuard>(
            *engine_, IdleOptions{.series = series_,
                                  .tell =
                                      [this](std::vector<JournalNotice> all) {
                                          for (JournalNotice& each : all)
                                              told_.push_back(each.to + ": " + each.text + " " + each.see);
                                      },
                                  .mails = {"platform@example.org"},
                                  .wall_us = [this] { return (began_s_ + minute_ * kMinute) * kSecondUs; },
                                  .by_itself = false});
        const auto document = Document::parse_yaml(rules, "server.yaml");
        EXPECT_TRUE(document.ok());
        Problems problems;
        IdleRules read;
        for (const auto& item : document->root().items) read.push_back(idle_rule_table().read(*item, problems));
        EXPECT_THAT(problems, IsEmpty());
        made->use(std::move(read));
        return made;
    }
    void look(IdleGuard& guard, std::int64_t minute) {
        minute_ = minute;
        guard.look();
    }
    struct Seen {
        bool held = false;
        RunState state = RunState::queued;
        Cause notice = Cause::none;
    };
    Seen seen(RunId id) {
        Seen seen;
        EXPECT_TRUE(engine_->read([&](const EngineView& view) {
            const stoker::Run* run = view.state.find(id);
            ASSERT_NE(run, nullptr);
            seen = {run->held, run->state, run->attempts.back().notice};
        }));
        return seen;
    }
    std::shared_ptr<SeriesStore> series_;
    std::int64_t began_s_ = 0, minute_ = 0;
    std::vector<std::string> told_;
};

constexpr const char* kPark = "- {then: park, after: 30min, notice: 15min, longest_hold: 2d}\n";

// Work that was about to go on is taken away without a word, or GPUs stay with somebody who has gone home.
TEST_F(IdleGuardTest, TellsThenParksAndTheJournalSaysWho) {
    const RunId run = runs(folder_ + "/checkpoints", {{"mailto:anna@example.org", NotifyOn::failed}});
    const auto idle = guard(kPark);
    measured(run, 0, 60, 0.9);
    measured(run, 60, 89, 0.0);
    look(*idle, 89);
    EXPECT_THAT(told_, IsEmpty()) << "a pause of 29 minutes";
    measured(run, 89, 91, 0.0);
    look(*idle, 91);
    ASSERT_THAT(told_, SizeIs(2)) << "its owner, and who looks after the fleet";
    EXPECT_THAT(told_, Contains(HasSubstr("mailto:anna@example.org: r-1 lab of admin in default/default held 1 CPU: "
                                          "nothing moved for 3")));
    EXPECT_THAT(told_, Each(HasSubstr("In 15 min it may be parked")));
    EXPECT_THAT(told_[0], HasSubstr("stoker idle keep r-1 --for 8h"));
    measured(run, 91, 105, 0.0);
    look(*idle, 105);
    EXPECT_FALSE(seen(run).held) << "the notice is not over";
    EXPECT_THAT(idle->stands(), SizeIs(1));
    measured(run, 105, 107, 0.0);
    look(*idle, 107);
    EXPECT_TRUE(seen(run).held);
    EXPECT_EQ(seen(run).notice, Cause::preempted);
    EXPECT_THAT(told_, SizeIs(4));
    std::vector<std::string> who;
    std::promise<void> done;
    ASSERT_TRUE(engine_->read_journal([&](const EngineView& view) {
        EXPECT_TRUE(view.journal->read(0, [&](const JournalRecord& record) -> Result<bool> {
            if (record.kind == RunHeld::kKind || record.kind == NoticeGiven::kKind) who.push_back(record.actor);
            return true;
        }));
        done.set_value();
    }));
    done.get_future().wait();
    EXPECT_THAT(who, ElementsAre("idle", "idle"));
    look(*idle, 108);
    EXPECT_THAT(told_, SizeIs(4)) << "nobody is told again of what is on its way";
}

// A measurement that failed, or a run that moved, must not be held against its owner.
TEST_F(IdleGuardTest, WhatMovedOrWasNotMeasuredIsLeftAlone) {
    const RunId run = runs(folder_ + "/checkpoints");
    const auto idle = guard(kPark);
    look(*idle, 100);
    EXPECT_THAT(told_, IsEmpty()) << "nothing was measured";
    measured(run, 0, 40, 0.0);
    look(*idle, 41);
    EXPECT_THAT(told_, SizeIs(1));
    measured(run, 40, 41, 0.9);
    measured(run, 41, 60, 0.0);
    look(*idle, 60);
    EXPECT_FALSE(seen(run).held) << "it moved after its owner was told";
    EXPECT_THAT(told_, SizeIs(1));
    measured(run, 60, 72, 0.0);
    look(*idle, 72);
    EXPECT_THAT(told_, SizeIs(2)) << "told anew, of this stretch";
    look(*idle, 90);
    EXPECT_FALSE(seen(run).held) << "nobody measured anything for 18 minutes";
}

// Who asks that a run be left alone is heard, for as long as the rule allows, also by the next server.
TEST_F(IdleGuardTest, WhatIsKeptStaysAndAnotherServerKnows) {
    const RunId run = runs(folder_ + "/checkpoints");
    auto idle = guard(kPark);
    measured(run, 0, 50, 0.0);
    look(*idle, 40);
    EXPECT_THAT(told_, SizeIs(1));
    const Status long_one = idle->keep(run, 3 * 86'400, "user/anna");
    ASSERT_FALSE(long_one.ok());
    EXPECT_EQ(long_one.error().kind(), ErrorKind::invalid);
    EXPECT_THAT(long_one.error().text(), HasSubstr("may be kept for 2 d"));
    ASSERT_TRUE(idle->keep(run, 3600, "user/anna").ok());
    EXPECT_EQ(idle->stands().at(0).run.kept_by, "user/anna");
    idle = nullptr;
    idle = guard(kPark);
    measured(run, 50, 99, 0.0);
    look(*idle, 99);
    EXPECT_FALSE(seen(run).held);
    EXPECT_THAT(told_, SizeIs(1)) << "neither told twice nor before the hour is over";
    measured(run, 99, 130, 0.0);
    look(*idle, 101);
    EXPECT_THAT(told_, SizeIs(2)) << "the hour is over";
    look(*idle, 117);
    EXPECT_TRUE(seen(run).held);
    EXPECT_EQ(idle->keep(RunId{99}, 60, "user/anna").error().kind(), ErrorKind::conflict);
}

// What writes no checkpoints is ended only where that is said, and only where it pays.
TEST_F(IdleGuardTest, WhatCannotGoOnIsEndedWhereThatPays) {
    const RunId run = runs("");
    auto idle = guard(kPark);
    measured(run, 0, 10, 0.9);
    measured(run, 10, 200, 0.0);
    look(*idle, 45);
    look(*idle, 100);
    EXPECT_EQ(seen(run).state, RunState::running) << "parking would lose its work";
    EXPECT_THAT(told_.at(0), HasSubstr("Nothing is done to it."));
    idle = guard("- {then: stop, after: 30min, notice: 15min}\n");
    look(*idle, 101);
    EXPECT_THAT(seen(run).state, AnyOf(RunState::cancelling, RunState::cancelled));
}

// Over the API a team sees its own and keeps its own.
TEST_F(IdleGuardTest, TheApiTellsAndKeeps) {
    const RunId run = runs(folder_ + "/checkpoints");
    std::shared_ptr<IdleGuard> idle = guard(kPark);
    api_->stop();
    open({.idle = idle});
    measured(run, 0, 60, 0.0);
    look(*idle, 45);
    const HttpResponse list = ask("GET", "/api/v1/idle");
    EXPECT_EQ(list.status, 200);
    EXPECT_THAT(list.body, HasSubstr("\"state\":\"told\""));
    EXPECT_THAT(list.body, HasSubstr("all runs: told after 30 min, parked 15 min later at the earliest"));
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/keep", R"({"for_s":86400000})").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-9/keep", R"({"for_s":60})").status, 404);
    const HttpResponse kept = ask("POST", "/api/v1/runs/r-1/keep", R"({"for_s":3600})");
    EXPECT_EQ(kept.status, 200) << kept.body;
    EXPECT_THAT(kept.body, HasSubstr("\"state\":\"kept\""));
}

}  // namespace
}  // namespace stoker::api
