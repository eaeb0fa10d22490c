// Who looks at what runs now sees each rank beside its plan, and no numbers where nothing is known.
#include "app/client/top_text.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

api::RankSeriesView series(int rank, const char* metric, double value) {
    return {
        .rank = rank, .metric = metric, .seconds = 1, .points = {{100, 0, 99, 0, 0}, {101, value, value, value, 2}}};
}

TEST(TopText, ShowsEachRankBesideItsPlan) {
    api::RunView view;
    view.run = {.id = {7}, .name = "tiny"};
    view.metrics = {{"step", 741}};
    view.spec.prediction = PredictionSpec{.step_s = 0.2, .step_low_s = 0.18, .step_high_s = 0.25};
    const auto rows = top_rows(view, {.run = {7},
                                      .from = "",
                                      .to = "",
                                      .series = {series(0, "step_s", 0.3), series(0, "wait_s", 0.03),
                                                 series(1, "step_s", 0.3), series(1, "cpu", 0.97)}});
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].step, 741);
    EXPECT_NEAR(*rows[0].input_share, 0.1, 1e-9);
    EXPECT_FALSE(rows[1].input_share);
    const std::string text = top_text(rows, Style{});
    for (const char* part : {"r-7", "tiny", "741", "300 ms", "1.50 x", "10 %", "0.97"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(top_json(rows).dump(0), HasSubstr("\"plan_step_s\":0.2"));
}

TEST(TopText, ARunWithoutMeasurementsIsThere) {
    api::RunView view;
    view.run = {.id = {8}, .name = "quiet"};
    const auto rows = top_rows(view, {});
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_THAT(top_text(rows, Style{}), HasSubstr("quiet"));
    EXPECT_THAT(top_text({}, Style{}), HasSubstr("no run is running"));
    EXPECT_EQ(top_json(rows).dump(0), R"([{"run":"r-8","name":"quiet","rank":0}])");
}

}  // namespace
}  // namespace stoker
