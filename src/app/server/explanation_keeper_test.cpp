// Whoever asks the day after why a run was slow gets what was known when it ended, not what coarse points are left of.
#include "app/server/explanation_keeper.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "app/server/api_time.h"

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
        ended_.run = {.id = {7}, .state = RunState::succeeded, .ranks = 1, .used_s = 30};
        ended_.spec.prediction = PredictionSpec{.step_s = 0.2, .step_low_s = 0.18, .step_high_s = 0.25};
        ended_.attempts.push_back({.id = {{7}, 1},
                                   .running_at = rfc3339(kStart * 1'000'000),
                                   .ended_at = rfc3339((kStart + 30) * 1'000'000)});
    }
    void TearDown() override {
        store_.reset();
        std::filesystem::remove_all(folder_);
    }
    KeeperOptions options() {
        return {.series = store_,
                .look = [this](RunId run) -> Result<std::optional<api::RunView>> {
                    if (run.number != 7) return Error(ErrorKind::not_found, "no such run");
                    if (asked_++ == 0) return std::optional<api::RunView>();  // its end is not on disk yet
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
    api::RunView ended_;
    int asked_ = 0;
};

TEST_F(KeeperTest, ARunThatHasEndedIsJudgedOnceAndKept) {
    const auto keeper = ExplanationKeeper::start(options());
    keeper->offer({RunId{7}, RunId{8}});
    const auto kept = wait_for_it();
    ASSERT_TRUE(kept);
    const auto view = api::read_kept(*kept);
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_EQ(view->terms.at(0).verdict, "above");
    EXPECT_EQ(view->point_s, 1);
    EXPECT_FALSE(view->kept_at.empty());
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
    const auto kept = api::read_kept(*store_->kept_text("r-7"));
    ASSERT_TRUE(kept);
    const auto now = [&] {
        const api::ExplainedPart part = api::explained_part(ended_, kStart * 1'000'000);
        return api::explain_run(ended_, part, *api::series_of_part(*store_, ended_, part));
    };
    EXPECT_TRUE(api::kept_or_now(*kept, now()).kept_at.empty());
    // Seconds are kept for an hour and some minutes.
    store_->tidy(kStart + 2 * 3600);
    EXPECT_EQ(now().point_s, 60);
    const api::ExplanationView later = api::kept_or_now(*kept, now());
    EXPECT_FALSE(later.kept_at.empty());
    EXPECT_EQ(later.steps, kept->steps);
    EXPECT_TRUE(api::kept_or_now(std::nullopt, now()).kept_at.empty());
    // It goes with the last of the series.
    store_->tidy(kStart + std::int64_t{3} * 365 * 86'400);
    EXPECT_FALSE(store_->kept_text("r-7"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/r-7"));
}

TEST_F(KeeperTest, WhatIsKeptHasABound) {
    api::ExplanationView huge{.run = {7}, .attempt = "a-7.1", .point_s = 1};
    for (int i = 0; i < 3000; ++i) huge.ruled_out.push_back({"cause", std::string(50, 'x')});
    for (int i = 0; i < 2000; ++i)
        huge.causes.push_back({.cause = "c" + std::to_string(i), .what = std::string(60, 'y')});
    const std::string text = api::kept_form(huge);
    EXPECT_LE(text.size(), kMostKeptText);
    const auto back = api::read_kept(text);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->causes.at(0).cause, "c0");
    EXPECT_FALSE(store_->keep_text("r-7", std::string(kMostKeptText + 1, ' ')));
    EXPECT_FALSE(store_->keep_text("r-99", "{}"));  // nothing is known of it
    EXPECT_FALSE(api::read_kept("{\"run\":"));
}

}  // namespace
}  // namespace stoker
