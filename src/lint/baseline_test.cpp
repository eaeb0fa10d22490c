// A baseline that forgets lets a thousand old findings back in; one that matches too much hides new ones.
#include "lint/baseline.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::lint {
namespace {

const StablePath same_path = [](const std::string& path) { return path; };
bool all_judged(const std::string&) {
    return true;
}

Finding known_finding(std::string rule, std::string path, std::string address) {
    Finding finding;
    finding.rule = std::move(rule);
    finding.path = std::move(path);
    finding.address = std::move(address);
    finding.value = "x";
    return finding;
}
std::vector<Finding> with_prints(std::vector<Finding> findings) {
    set_fingerprints(findings, same_path);
    return findings;
}

TEST(Baselines, ReadBackWhatTheyWrote) {
    Baseline baseline = baseline_of(with_prints({known_finding("B", "z.tf", "1"), known_finding("A", "a.tf", "2")}),
                                    same_path, {}, "2026-11-20");
    baseline.entries[0].reason = "the lab's, \"until spring\"";
    const auto read = parse_baseline(baseline_text(baseline, "stoker 1"), "b.json");
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(read->entries.size(), 2u);
    EXPECT_EQ(read->entries[0].path, "a.tf");  // sorted, so that differences are easy to read
    EXPECT_EQ(read->entries[1].reason, "the lab's, \"until spring\"");
    EXPECT_EQ(baseline_text(*read, "stoker 1"), baseline_text(baseline, "stoker 1"));
}

TEST(Baselines, KnowFindingsAgainAndNameStaleEntries) {
    const Baseline baseline =
        baseline_of(with_prints({known_finding("A", "a", "1"), known_finding("B", "a", "2")}), same_path, {}, "");
    const auto outcome = apply_baseline(
        baseline, with_prints({known_finding("A", "a", "1"), known_finding("A", "a", "3")}), same_path, all_judged);
    ASSERT_EQ(outcome.known.size(), 1u);
    ASSERT_EQ(outcome.fresh.size(), 1u);
    EXPECT_EQ(outcome.fresh[0].address, "3");
    ASSERT_EQ(outcome.stale.size(), 1u);
    EXPECT_EQ(outcome.stale[0].rule, "B");
    // A run over a part of the tree knows nothing of the rest.
    EXPECT_TRUE(apply_baseline(baseline, {}, same_path, [](const std::string&) { return false; }).stale.empty());
}

TEST(Baselines, FollowAFileThatWasMoved) {
    const Baseline baseline = baseline_of(with_prints({known_finding("A", "old/a.tf", "1")}), same_path, {}, "");
    const auto outcome = apply_baseline(
        baseline, with_prints({known_finding("A", "new/a.tf", "1"), known_finding("A", "new/b.tf", "1")}), same_path,
        all_judged);
    ASSERT_EQ(outcome.known.size(), 1u);
    EXPECT_EQ(outcome.known[0].moved_from, "old/a.tf");
    EXPECT_EQ(outcome.fresh.size(), 1u);  // an entry hides one finding
    EXPECT_TRUE(outcome.stale.empty());
}

TEST(Baselines, KeepReasonsWhenWrittenAnew) {
    Baseline before = baseline_of(with_prints({known_finding("A", "old.tf", "1")}), same_path, {}, "");
    before.entries[0].reason = "agreed with the platform team";
    const Baseline after = baseline_of(with_prints({known_finding("A", "new.tf", "1"), known_finding("C", "c", "")}),
                                       same_path, before, "");
    ASSERT_EQ(after.entries.size(), 2u);
    EXPECT_TRUE(std::any_of(after.entries.begin(), after.entries.end(), [](const BaselineEntry& entry) {
        return entry.path == "new.tf" && entry.reason == "agreed with the platform team";
    }));
}

TEST(Baselines, RefuseWhatIsNone) {
    for (const char* text :
         {"{}", "[]", "{\"version\": 2, \"entries\": []}", "{\"version\": 1}",
          "{\"version\": 1, \"entries\": [{\"rule\": \"A\"}]}", "{\"version\": 1, \"entries\": [7]}"}) {
        const auto read = parse_baseline(text, "b.json");
        ASSERT_FALSE(read) << text;
        EXPECT_TRUE(read.error().problems()[0].pos.known()) << text;
    }
}

}  // namespace
}  // namespace stoker::lint
