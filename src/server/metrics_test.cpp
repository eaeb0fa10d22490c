#include "server/metrics.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace stoker::api {
namespace {

// A rule or a dashboard is written against the name and its unit: one that does not say what it counts in, or a counter
// that promtool refuses, is found here and not by whoever is woken at night.
TEST(MetricsTableTest, NamesFollowTheRulesOfPrometheus) {
    std::set<std::string_view> names;
    for (const MetricInfo& info : kMetrics) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name << " is declared twice";
        EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
        EXPECT_TRUE(info.name.starts_with("stoker_") || info.name.starts_with("process_")) << info.name;
        EXPECT_EQ(info.name.ends_with("_total"), info.type == MetricType::counter) << info.name;
        for (const std::string_view reserved : {"_count", "_sum", "_bucket", "_created"})
            EXPECT_FALSE(info.name.ends_with(reserved)) << info.name;
        std::string_view stem = info.name;
        if (stem.ends_with("_total")) stem.remove_suffix(6);
        // A base unit stands in the name, and what stands there is the unit.
        for (const std::string_view unit : {"seconds", "bytes"})
            EXPECT_EQ(stem.ends_with("_" + std::string(unit)), info.unit == unit) << info.name;
        for (const std::string_view wrong : {"_ms", "_us", "_milliseconds", "_kb", "_mib", "_percent"})
            EXPECT_FALSE(stem.ends_with(wrong)) << info.name;
        EXPECT_TRUE(info.help.ends_with('.')) << info.name;
        EXPECT_EQ(info.help.find('\n'), std::string_view::npos);
    }
}

// A scrape in which a family comes twice, or a label ends its line early, is dropped whole.
TEST(MetricsTextTest, WritesEachFamilyOnceAndWhole) {
    MetricsText out;
    out.set(metric("stoker_runs"), "state", "queued", 2);
    out.set(metric("stoker_epoch"), 3);
    out.set(metric("stoker_runs"), "state", "a\"b\\c\nd", 1);
    out.add(metric("stoker_commit_seconds"), "_sum", {}, 0.5);
    EXPECT_EQ(out.text(),
              "# HELP stoker_runs Runs by state.\n# TYPE stoker_runs gauge\n"
              "stoker_runs{state=\"queued\"} 2\nstoker_runs{state=\"a\\\"b\\\\c\\nd\"} 1\n"
              "# HELP stoker_epoch Starts of the server on this journal.\n# TYPE stoker_epoch gauge\nstoker_epoch 3\n"
              "# HELP stoker_commit_seconds Time of a commit; the quantiles are of the last 1,024.\n"
              "# TYPE stoker_commit_seconds summary\nstoker_commit_seconds_sum 0.5\n");
}

}  // namespace
}  // namespace stoker::api
