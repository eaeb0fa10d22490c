#include "app/client/spec_differences.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Who asks why today's run is slower than yesterday's sees what was asked for differently, down to the variable.
TEST(SpecDifferences, NamesThePathAndTheValues) {
    RunSpec before, after;
    before.name = "old";
    before.command = {"python3", "train.py"};
    before.environment = {{"LR", "1e-4"}, {"SEED", "7"}};
    before.source = SourceSpec{.file = "", .file_sha256 = "", .commit = "abc", .dirty_sha256 = ""};
    after = before;
    after.name = "new";
    after.environment = {{"LR", "3e-4"}, {"SEED", "7"}, {"MORE", "1"}};
    after.ranks = 2;
    after.source->commit = "def";
    after.labels["stoker/again_from"] = "r-1";
    after.prediction = PredictionSpec{};
    const auto found = spec_differences({&before, &after}, {"name"});
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found[0].path, "environment.LR");
    EXPECT_EQ(found[0].values, (std::vector<std::string>{"\"1e-4\"", "\"3e-4\""}));
    EXPECT_EQ(found[1].path, "environment.MORE");
    EXPECT_EQ(found[1].values.front(), "");
    EXPECT_EQ(found[2].path, "ranks");
    EXPECT_EQ(found[3].path, "source.commit");
    EXPECT_TRUE(spec_differences({&before, &before}).empty());
    EXPECT_EQ(spec_differences({&before, &after}, {"environment", "name", "source"}).size(), 1U);
}

}  // namespace
}  // namespace stoker
