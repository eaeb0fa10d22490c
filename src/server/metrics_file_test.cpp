#include "server/metrics_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace stoker::api {
namespace {

// A spike in a million points has to be seen; a broken line must not hide the rest.
TEST(MetricsFileTest, SpikesStayAndBrokenLinesAreCounted) {
    const std::string file = testing::TempDir() + "metrics.jsonl";
    {
        std::ofstream out(file);
        for (int i = 0; i < 5000; ++i)
            out << "{\"step\": " << i << ", \"loss\": " << (i == 3333 ? 99.5 : 1.0 / (i + 1)) << "}\n";
        out << "not json\n[1]\n{\"step\": 5000, \"loss\": 0.25, \"note\": \"x\"}\n{\"step\": 5001, \"lo";
    }
    const MetricsView view = read_metrics(file, "", 100);
    ASSERT_EQ(view.series.size(), 1u);
    EXPECT_EQ(view.bad_lines, 2);
    EXPECT_EQ(view.series[0].points_seen, 5001);
    EXPECT_LE(view.series[0].points.size(), 100u);
    bool spike = false;
    for (std::size_t i = 0; i < view.series[0].points.size(); ++i) {
        spike = spike || view.series[0].points[i][1] == 99.5;
        if (i > 0) {
            EXPECT_LT(view.series[0].points[i - 1][0], view.series[0].points[i][0]);
        }
    }
    EXPECT_TRUE(spike);
    EXPECT_EQ(last_metrics(file).at("loss"), 0.25);
    EXPECT_EQ(last_metrics(file).at("step"), 5000);
    EXPECT_TRUE(read_metrics(file, "other", 100).series.empty());
    EXPECT_EQ(read_metrics(file + ".none", "", 100).lines, 0);
    std::remove(file.c_str());
}

}  // namespace
}  // namespace stoker::api
