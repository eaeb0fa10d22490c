// When this breaks, a right directive is called wrong, or one that makes sbatch refuse the script is let through.
#include "formats/sbatch_values.h"

#include <gtest/gtest.h>

#include <limits>

namespace stoker::sbatch {
namespace {

bool taken(std::string_view option, std::string_view value) {
    const Found found = find_option(option);
    EXPECT_TRUE(found) << option;
    return found && expected_value(*found.option, value).empty();
}

TEST(SbatchValues, KnowsNumbersSizesAndTimes) {
    for (const std::string_view right : {"1", "+4", " 4"}) EXPECT_TRUE(taken("ntasks", right)) << right;
    for (const std::string_view wrong : {"0", "-1", "2x", "1.5", "", "4,4"})
        EXPECT_FALSE(taken("ntasks", wrong)) << wrong;
    for (const std::string_view right : {"4", "2-4", "1k", "0"}) EXPECT_TRUE(taken("nodes", right)) << right;
    for (const std::string_view wrong : {"4-2", "1-", "n1", "=1", "1;"}) EXPECT_FALSE(taken("nodes", wrong)) << wrong;
    for (const std::string_view right : {"4000", "4G", "4gb", "0"}) EXPECT_TRUE(taken("mem", right)) << right;
    for (const std::string_view wrong : {"4Gi", "1.5G", "-1", "4GG", ""}) EXPECT_FALSE(taken("mem", wrong)) << wrong;
    for (const std::string_view right : {"10", "1:00:00", "1-12:30", "UNLIMITED"})
        EXPECT_TRUE(taken("time", right)) << right;
    for (const std::string_view wrong : {"24h", "1:2:3:4", "1::2", ""}) EXPECT_FALSE(taken("time", wrong)) << wrong;
}

TEST(SbatchValues, KnowsListsAndWords) {
    for (const std::string_view right : {"gpu", "gpu:8", "gpu:a100:8", "gpu:4,nic:1", "none", "gpu:8(S:0)"})
        EXPECT_TRUE(taken("gres", right)) << right;
    for (const std::string_view wrong : {"gpu:", "gpu:a100:x", "gpu:a100:4:1", "4", "gpu:1.5"})
        EXPECT_FALSE(taken("gres", wrong)) << wrong;
    EXPECT_TRUE(taken("array", "1-10:2%3"));
    EXPECT_FALSE(taken("array", "3-1"));
    EXPECT_TRUE(taken("mail-type", "begin,END"));
    EXPECT_FALSE(taken("mail-type", "ERROR"));
    EXPECT_TRUE(taken("signal", "B:USR1@60"));
    EXPECT_FALSE(taken("signal", "B:USR1@99999"));
    EXPECT_TRUE(taken("comment", "x"));
}

TEST(SbatchValues, LeavesPlaceholdersAlone) {
    for (const std::string_view value : {"NNODES", "__NODES__", "@n@", "{n}", "your_nodes", "HH:MM:SS"})
        EXPECT_TRUE(taken("nodes", value)) << value;
}

// A run has the memory and the time that the job would have had.
TEST(SbatchValues, SizesAndTimesComeToWhatSlurmMakesOfThem) {
    EXPECT_EQ(bytes_of("4000"), 4000.0 * 1048576);
    EXPECT_EQ(bytes_of("64K"), 65536.0);
    EXPECT_EQ(bytes_of("64G"), 64.0 * 1073741824);
    EXPECT_EQ(bytes_of("+2tb"), 2.0 * 1099511627776);
    for (const std::string_view wrong : {"1.5G", "4Gi", "4 G", "G", "", "4096B", "-1"})
        EXPECT_FALSE(bytes_of(wrong)) << wrong;
    EXPECT_EQ(seconds_of("90"), 5400);
    EXPECT_EQ(seconds_of("90:30"), 5430);
    EXPECT_EQ(seconds_of("1:30:15"), 5415);
    EXPECT_EQ(seconds_of("2-6"), 194'400);
    EXPECT_EQ(seconds_of("1-02:03:04"), 86'400 + 7384);
    EXPECT_EQ(seconds_of("1-"), 86'400);
    EXPECT_EQ(seconds_of("UNLIMITED"), std::numeric_limits<double>::infinity());
    for (const std::string_view wrong : {"24h", "1:2:3:4", "1::2", "", "1-2:3:4:5", "4:00.5"})
        EXPECT_FALSE(seconds_of(wrong)) << wrong;
}

}  // namespace
}  // namespace stoker::sbatch
