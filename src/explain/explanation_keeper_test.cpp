// Whoever asks the day after why a run was slow gets what was known when it ended, not what coarse points are left of.
#include "explain/explanation_keeper.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "explain/kept_explanation.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class KeeperTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = std::filesystem::temp_directory_path().string() + "/stoker-kept-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        auto opened = SeriesStore::open(folder_);
        ASSERT_TRUE(opened.ok());
        store_ = std::move(*opened);
        for (int second = 0; second < 30; ++second)
            for (int i = 0; i < 3; ++i)
                store_->add("r-7", 0, "step_s", static_cast<double>(kStart + second) + 0.3 * i, 0.3);
        store_->end("r-7");
        ended_.run = {.id = {7}, .state = RunState::succeeded, .used_us = 30'000'000};
        ended_.run.spec.prediction = PredictionSpec{.step_s = 0.2, .step_low_s = 0.18, .step_high_s = 0.25};
        ended_.run.attempts.push_back({.number = 1,
                                       .state = AttemptState::ended,
                                       .running_us = kStart * 1'000'000,
                                       .ended_us = (kStart + 30) * 1'000'000});
    }
    void TearDown() override {
        store_.reset();
        std::filesystem::remove_all(folder_);
    }
    KeeperOptions options() {
        return {.series = store_,
                .look = [this](RunId run) -> Result<std::optional<RunAsItStands>> {
                    if (run.number != 7) return Error(ErrorKind::not_found, "no such run");
                    if (asked_++ == 0) return std::optional<RunAsItStands>();  // its end is not on disk yet
                    return std::optional(ended_);
                },
                .settle_s = 0.01};
    }
    Result<std::string> wait_for_it() {
        for (int i = 0; i < 1000 && !store_->kept_text("r-7"); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return store_->kept_text("r-7");
    }

    static constexpr std::int64_t kStart = 1'700'006'400;
    std::string folder_;
    std::shared_ptr<SeriesStore> store_;
    RunAsItStands ended_;
    int asked_ = 0;
};

TEST_F(KeeperTest, ARunThatHasEndedIsJudgedOnceAndKept) {
    const auto keeper = ExplanationKeeper::start(options());
    keeper->offer({RunId{7}, RunId{8}});
    const auto kept = wait_for_it();
    ASSERT_TRUE(kept);
    const auto view = read_kept(*kept);
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_EQ(view->terms.at(0).verdict, PlanVerdict::above);
    EXPECT_EQ(view->point_s, 1);
    EXPECT_NE(view->kept_us, 0);
    EXPECT_LE(kept->size(), kMostKeptText);
}

TEST_F(KeeperTest, AServerThatGoesKeepsWhatIsOwedFirst) {
    asked_ = 1;
    KeeperOptions never = options();
    never.settle_s = 3600;
    ExplanationKeeper::start(never)->offer({RunId{7}});
    EXPECT_TRUE(store_->kept_text("r-7"));
}

TEST_F(KeeperTest, WithinTheHourItIsJudgedAgainAndAfterwardsTheKeptOneCounts) {
    asked_ = 1;
    ExplanationKeeper::start(options())->offer({RunId{7}});
    const auto kept = read_kept(*store_->kept_text("r-7"));
    ASSERT_TRUE(kept);
    const auto now = [&] {
        const ExplainedPart part = explained_part(ended_.run, kStart * 1'000'000);
        return explain_run(ended_, part, *series_of_part(*store_, ended_.run, part));
    };
    EXPECT_EQ(kept_or_now(*kept, now()).kept_us, 0);
    // Seconds are kept for an hour and some minutes.
    store_->tidy(kStart + 2 * 3600);
    EXPECT_EQ(now().point_s, 60);
    const ExplainedRun later = kept_or_now(*kept, now());
    EXPECT_NE(later.kept_us, 0);
    EXPECT_EQ(later.steps, kept->steps);
    EXPECT_EQ(kept_or_now(std::nullopt, now()).kept_us, 0);
    // It goes with the last of the series.
    store_->tidy(kStart + std::int64_t{3} * 365 * 86'400);
    EXPECT_FALSE(store_->kept_text("r-7"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/r-7"));
}

TEST_F(KeeperTest, WhatIsKeptHasABound) {
    ExplainedRun huge{.run = {7}, .attempt = {{7}, 1}, .point_s = 1};
    for (int i = 0; i < 3000; ++i) huge.ruled_out.push_back({"cause", std::string(50, 'x')});
    for (int i = 0; i < 2000; ++i)
        huge.diagnoses.push_back({.name = "c" + std::to_string(i), .what = std::string(60, 'y')});
    const std::string text = kept_form(huge);
    EXPECT_LE(text.size(), kMostKeptText);
    const auto back = read_kept(text);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->diagnoses.at(0).name, "c0");
    EXPECT_FALSE(store_->keep_text("r-7", std::string(kMostKeptText + 1, ' ')));
    EXPECT_FALSE(store_->keep_text("r-99", "{}"));  // nothing is known of it
    EXPECT_FALSE(read_kept("{\"run\":"));
}

// What a server of before kept is read by the one of today, and written again as it was: runs of years ago keep their
// explanation.
TEST(KeptExplanation, OfAnOlderServerIsReadAndWrittenAlike) {
    const std::string old = R"({"attempt":"a-7.2","cause":"ok","causes":[{"cause":"of-long-ago","cost_s":0.5,)"
                            R"("evidence":["e"],"expected_gain":0.25,"fix":"f","rank":1,"share_of_gap":1,)"
                            R"("stops":false,"what":"w"}],"from":"2026-11-21T10:00:10.000000Z","gap_s":0.125,)"
                            R"("kept_at":"2026-11-21T10:00:33.000001Z","not_known":[],"outside":true,"point_s":1,)"
                            R"("ruled_out":[{"cause":"disk-full","reason":"room"}],"run":"r-7","state":"succeeded",)"
                            R"("steps":30,"terms":[{"high":0.2,"low":0.1,"measured":0.25,"predicted":0.125,)"
                            R"("term":"step","unit":"s","verdict":"above"},{"note":"why","term":"memory",)"
                            R"("unit":"bytes"}],"to":"2026-11-21T10:00:30.000120Z","warm_up_steps":2})";
    const auto read = read_kept(old);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->attempt.text(), "a-7.2");
    EXPECT_EQ(read->from_us, 1'795'255'210'000'000);
    EXPECT_EQ(read->kept_us, 1'795'255'233'000'001);
    EXPECT_EQ(read->terms.at(1).kind, HeldTermKind::memory);
    EXPECT_EQ(read->diagnoses.at(0).name, "of-long-ago");
    std::string again = kept_form(*read);
    std::erase_if(again, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_EQ(again, old);
    // And one of a newer server as far as it goes.
    const auto newer = read_kept(R"({"of_next_year":1,"attempt":"a-7.2","run":"r-7","steps":30})");
    ASSERT_TRUE(newer) << newer.error().message();
    EXPECT_EQ(newer->steps, 30);
}

}  // namespace
}  // namespace stoker
