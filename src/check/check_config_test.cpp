// A key that is misspelt and silently ignored switches off what a team relies on.
#include "check/check_config.h"

#include <gtest/gtest.h>

#include "check/test_folder.h"

namespace stoker {
namespace {

std::vector<std::string> problems_of(std::string_view text) {
    const auto config = parse_check_config(text, "stoker.toml");
    std::vector<std::string> list;
    if (config) return list;
    for (const Problem& problem : config.error().problems()) list.push_back(problem.pos.text() + " " + problem.message);
    return list;
}

TEST(CheckConfigs, AreReadWhole) {
    const auto config = parse_check_config(R"([check]
profile = "training"
select = ["SYN"]
ignore = ["SYN003"]
fail_on = "warning"
as_of = 2026-11-20
exclude = ["vendor/**"]
baseline = "base.json"
[check.severity]
SYN004 = "warning"
SYN002 = "off"
[check.thresholds]
liveness_budget_s = 60
cpus_per_gpu = 6.5
max_placement = 300
[check.targets]
kubernetes = "1.31"
slurm = "unknown"
azurerm = ">=4"
[check.fix]
promote = ["SYN004"]
[[check.suppress]]
path = "ds.json"
rule = "SYN002"
address = "ds:/a"
until = "2027-01-31"
)",
                                           "stoker.toml");
    ASSERT_TRUE(config) << config.error().text();
    EXPECT_EQ(config->profile, "training");
    EXPECT_EQ(config->as_of, "2026-11-20");
    EXPECT_EQ(config->severity.at("SYN004"), lint::Severity::warning);
    EXPECT_TRUE(config->switched_off.contains("SYN002"));
    EXPECT_EQ(config->options.liveness_budget_s, 60);
    EXPECT_EQ(config->options.cpus_per_gpu, 6.5);
    EXPECT_EQ(config->options.max_placement, 300);
    EXPECT_EQ(config->options.kubernetes, "1.31");
    EXPECT_EQ(config->options.slurm, "");
    EXPECT_EQ(config->options.azurerm_major, 4);
    EXPECT_TRUE(config->fix.promoted.contains("SYN004"));
    ASSERT_EQ(config->suppressions.size(), 1u);
    EXPECT_EQ(config->suppressions[0].until, "2027-01-31");
    EXPECT_EQ(config->suppressions[0].place.line, 22u);
    EXPECT_TRUE(parse_check_config("", "stoker.toml"));
}

TEST(CheckConfigs, TellAllThatIsWrongWithItsPlace) {
    const std::vector<std::string> problems = problems_of(
        "[check]\nprofil = 1\nselect = \"SYN\"\nignore = [1]\nfail_on = \"loud\"\nas_of = \"soon\"\n"
        "[check.severity]\nSYN04 = \"info\"\nSYN004 = 1\n[check.thresholds]\ncpus_per_gpu = 1e9\n"
        "[check.targets]\nkubernetes = \"new\"\nazurerm = \"x\"\n[check.fix]\npromote = [\"NOPE\"]\n"
        "[[check.suppress]]\npath = \"a\"\n[[check.suppress]]\nrule = \"SYN002\"\n[checks]\n");
    const char* expected[] = {"stoker.toml:2:1 ",   "stoker.toml:3:10 ",  "stoker.toml:4:11 ",  "stoker.toml:5:11 ",
                              "stoker.toml:6:9 ",   "stoker.toml:8:1 ",   "stoker.toml:9:10 ",  "stoker.toml:11:16 ",
                              "stoker.toml:13:14 ", "stoker.toml:14:11 ", "stoker.toml:16:11 ", "stoker.toml:17:1 ",
                              "stoker.toml:19:1 ",  "stoker.toml:21:2 "};
    std::string all;
    for (const std::string& problem : problems) all += problem + "\n";
    for (const char* place : expected) EXPECT_NE(all.find(place), std::string::npos) << place << "\n" << all;
    EXPECT_EQ(problems.size(), std::size(expected)) << all;
    EXPECT_EQ(problems_of("[check\n").size(), 1u);
    EXPECT_EQ(problems_of("check = 1\n").size(), 1u);
    EXPECT_EQ(problems_of("[check]\nsuppress = 1\n").size(), 1u);
}

TEST(CheckConfigs, AreFoundAboveButNotAboveTheRepository) {
    const TestFolder folder;
    folder.write("stoker.toml", "");
    folder.write("repo/.git/HEAD", "");
    folder.write("repo/a/b/x", "");
    EXPECT_FALSE(find_check_config(folder.path("repo/a/b")));
    folder.write("repo/stoker.toml", "");
    EXPECT_EQ(find_check_config(folder.path("repo/a/b")), folder.path("repo/stoker.toml"));
    EXPECT_EQ(find_check_config(folder.path("repo")), folder.path("repo/stoker.toml"));
}

TEST(RuleChoice, TakesIdsPrefixesAndSlugs) {
    const auto off = [](const std::vector<std::string>& select, const std::vector<std::string>& ignore,
                        const std::string& profile = "") { return *rules_off(select, ignore, profile); };
    EXPECT_TRUE(off({}, {}).contains("SYN003"));
    EXPECT_FALSE(off({}, {}).contains("SYN004"));
    EXPECT_FALSE(off({}, {}, "prod").contains("SYN003"));
    EXPECT_TRUE(off({}, {"SYN"}).contains("SYN004"));
    EXPECT_TRUE(off({"SYN002"}, {}).contains("SYN004"));
    EXPECT_FALSE(off({"SYN002"}, {}).contains("SYN001"));  // a file that was not read is always told
    EXPECT_TRUE(off({"SYN002"}, {"SYN001"}).contains("SYN001"));
    EXPECT_FALSE(off({"SYN003"}, {}).contains("SYN003"));  // named: on, whatever its default
    EXPECT_TRUE(off({"SYN0"}, {}).contains("SYN003"));     // as part of a group: as it is by default
    EXPECT_FALSE(off({"unused-suppression"}, {}).contains("SYN004"));
    EXPECT_FALSE(rules_off({"NOPE"}, {}, ""));
    EXPECT_FALSE(rules_off({}, {"SYN9"}, ""));
}

// A profile that names a rule which does not exist promotes nothing, and nobody notices.
TEST(RuleChoice, ProfilesAreThoseOfTheHelp) {
    EXPECT_EQ(check_profiles(), (std::vector<std::string>{"dev", "prod", "training", "inference"}));
    EXPECT_TRUE(in_profile("SYN003", "prod"));
    EXPECT_FALSE(in_profile("SYN003", "dev"));
    EXPECT_FALSE(in_profile("SYN00", "prod"));
}

}  // namespace
}  // namespace stoker
