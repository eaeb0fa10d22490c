#include "observe/health_lines.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace stoker {
namespace {

// A line that passes what warns, or has no source, would judge nodes by nothing.
TEST(HealthLines, EveryLineIsWhole) {
    ASSERT_GE(health_lines().size(), 10U);
    for (const HealthLine& line : health_lines()) {
        EXPECT_TRUE(line.kind == "*" || line.kind == "floor" || line.kind == "pool") << line.name;
        EXPECT_EQ(line.kind == "*", line.unit == "of the expected") << line.name;
        // Of what should never be there, none is the line.
        const bool none = line.lower_is_better && line.unit == "count";
        EXPECT_TRUE(line.warn > 0 || (none && line.warn == 0)) << line.name;
        EXPECT_TRUE(line.lower_is_better ? line.pass <= line.warn : line.pass >= line.warn) << line.name;
        EXPECT_FALSE(line.source.empty()) << line.name;
        EXPECT_EQ(line.as_of.size(), 10U) << line.name;
    }
    EXPECT_TRUE(lower_is_better("link-latency"));
    EXPECT_FALSE(lower_is_better("link-bandwidth"));
    EXPECT_EQ(health_line("link-bandwidth", "floor"), nullptr);
}

// What Azure publishes for a size is found under the name as people write it, in units of the checks.
TEST(HealthLines, SizesHaveTheirPublishedThresholds) {
    for (const char* name : {"Standard_ND96isr_H100_v5", "nd96isr-h100-v5", "STANDARD_ND96ISR_H100_V5"}) {
        const auto facts = facts_of_size(name);
        ASSERT_TRUE(facts.ok()) << name;
        const auto value = [&](std::string_view check) {
            for (const SizeFact& fact : *facts)
                if (fact.name == check) return fact.value;
            return 0.0;
        };
        EXPECT_EQ(value("gpu-count"), 8);
        EXPECT_EQ(value("ib-ports"), 8);
        EXPECT_EQ(value("ib-rate"), 400e9 / 8);
        EXPECT_EQ(value("nvme-disks"), 8);
        EXPECT_EQ(value("memory-present"), 1915071 * kMiB);
    }
    const auto hpc = facts_of_size("HB120rs_v3");
    ASSERT_TRUE(hpc.ok());
    EXPECT_EQ(hpc->back().name, "memory-bandwidth");
    EXPECT_EQ(hpc->back().value, 320e9);
    EXPECT_TRUE(hpc->back().is_line);
    const auto none = facts_of_size("Standard_ND96isr_H100_v6");
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().text().find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace stoker
