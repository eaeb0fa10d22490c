// A console that charts a run, and `stoker explain`, get what was measured; whoever asks wrongly is told so.
#include "io/process.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using testing::HasSubstr;
using testing::Not;

class ObserveApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        api_testing::ApiTest::SetUp();
        auto store = SeriesStore::open(folder_ + "/series");
        ASSERT_TRUE(store.ok());
        series_ = std::move(*store);
    }
    std::shared_ptr<SeriesStore> series_;
};

TEST_F(ObserveApiTest, SeriesAreThereWithAServerAndWithout) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    const HttpResponse none = ask("GET", "/api/v1/runs/r-1/series");
    EXPECT_EQ(none.status, 200) << none.body;
    EXPECT_THAT(none.body, HasSubstr("\"series\":[]"));
    const double now = static_cast<double>(wall_clock_us()) / 1e6;
    for (int i = 0; i < 3; ++i) {
        series_->add("r-1", 0, "cpu", now - i * 0.001, 0.5);
        series_->add("r-1", 1, "cpu", now, 1);
        series_->add("r-1", 0, "rss", now, 1000);
    }
    series_->flush("r-1");
    // This API has no store of its own: the folder's is read, as without a server.
    const HttpResponse all = ask("GET", "/api/v1/runs/r-1/series");
    EXPECT_THAT(all.body, HasSubstr("\"rss\""));
    const HttpResponse one = ask("GET", "/api/v1/runs/r-1/series", "", {{"metric", "cpu,swap"}, {"rank", "1"}});
    EXPECT_THAT(one.body, HasSubstr("\"cpu\""));
    EXPECT_THAT(one.body, Not(HasSubstr("\"rss\"")));
    EXPECT_THAT(one.body, Not(HasSubstr("\"rank\":0")));
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-1/series", "", {{"from", "2026-01-02"}, {"to", "2026-01-01"}}).status, 400);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-1/series", "", {{"max_points", "0"}}).status, 400);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-9/series").status, 404);
    // Before it was there.
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1/series", "", {{"to", "2001-01-01"}}).body, HasSubstr("\"series\":[]"));
    std::string many = "a";
    for (int i = 0; i < 100; ++i) many += ",a" + std::to_string(i);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-1/series", "", {{"metric", many}}).status, 400);
}

TEST_F(ObserveApiTest, ARunThatHasNotBegunIsExplainedAsFarAsItCanBe) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    const HttpResponse answer = ask("GET", "/api/v1/runs/r-1/explanation");
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("\"causes\":[]"));
    EXPECT_THAT(answer.body, HasSubstr("not_known"));
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-2/explanation").status, 404);
}

}  // namespace
}  // namespace stoker::api
