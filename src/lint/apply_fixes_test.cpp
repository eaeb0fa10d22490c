// A fix that breaks a file, or never comes to an end, is worse than the finding.
#include "lint/apply_fixes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace stoker::lint {
namespace {

// A rule of three letters over plain text: every `from` is found and replaced by `to`.
struct ToyRule {
    std::string id, from, to;
    FixClass safety = FixClass::safe;
    Severity severity = Severity::warning;
};

CheckTexts toy_check(std::vector<ToyRule> rules) {
    return [rules = std::move(rules)](const Texts& texts) {
        std::vector<Finding> findings;
        for (const auto& [path, text] : texts) {
            for (const ToyRule& rule : rules) {
                std::size_t number = 0;
                for (std::size_t at = text.find(rule.from); at != std::string::npos;
                     at = text.find(rule.from, at + rule.from.size())) {
                    Finding finding;
                    finding.rule = rule.id;
                    finding.path = path;
                    finding.severity = rule.severity;
                    finding.address = std::to_string(number++);
                    finding.value = rule.from;
                    finding.span = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + rule.from.size())};
                    if (rule.id != "SYN001") finding.fix = Fix{rule.safety, "replace", {{finding.span, rule.to}}};
                    findings.push_back(std::move(finding));
                }
            }
        }
        return findings;
    };
}

TEST(ApplyFixes, MendsAllAndSaysSo) {
    const auto run = apply_fixes({{"a", "x foo y foo z"}, {"b", "clean"}}, toy_check({{"A01", "foo", "quux"}}), {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->texts.at("a"), "x quux y quux z");
    EXPECT_EQ(run->texts.at("b"), "clean");
    EXPECT_EQ(run->applied.size(), 2u);
    EXPECT_TRUE(run->left.empty());
    EXPECT_TRUE(run->dropped.empty());
}

TEST(ApplyFixes, LeavesUnsafeOnesUnlessAskedOrPromoted) {
    const std::vector<ToyRule> rules = {{"U01", "foo", "bar", FixClass::unsafe}};
    EXPECT_EQ(apply_fixes({{"a", "foo"}}, toy_check(rules), {})->texts.at("a"), "foo");
    FixPolicy policy;
    policy.unsafe = true;
    EXPECT_EQ(apply_fixes({{"a", "foo"}}, toy_check(rules), policy)->texts.at("a"), "bar");
    policy = {};
    policy.promoted.insert("U01");
    EXPECT_EQ(apply_fixes({{"a", "foo"}}, toy_check(rules), policy)->texts.at("a"), "bar");
    policy = {};
    policy.demoted.insert("S01");
    EXPECT_EQ(apply_fixes({{"a", "foo"}}, toy_check({{"S01", "foo", "bar"}}), policy)->texts.at("a"), "foo");
}

TEST(ApplyFixes, OfTwoThatOverlapTakesTheLowerIdFirst) {
    const auto run = apply_fixes({{"a", "abc"}}, toy_check({{"B02", "bc", "X"}, {"A01", "ab", "ybc"}}), {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->texts.at("a"), "yXc");  // ab -> ybc, so that bc stands there for the second round
    EXPECT_EQ(run->rounds, 2);
}

TEST(ApplyFixes, DropsWhatBreaksTheFileAndKeepsTheRest) {
    const auto run = apply_fixes(
        {{"a", "foo bar"}}, toy_check({{"A01", "foo", "BROKEN"}, {"B02", "bar", "baz"}, {"SYN001", "BROKEN", ""}}), {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->texts.at("a"), "foo baz");
    ASSERT_EQ(run->dropped.size(), 1u);
    EXPECT_EQ(run->dropped[0].rule, "A01");
    EXPECT_NE(run->dropped[0].why.find("no longer parses"), std::string::npos);
}

TEST(ApplyFixes, DropsWhatMendsNothingOrBringsAnError) {
    auto run = apply_fixes({{"a", "foo"}}, toy_check({{"A01", "foo", "foo"}}), {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->dropped.size(), 1u);
    run =
        apply_fixes({{"a", "foo"}},
                    toy_check({{"A01", "foo", "evil"}, {"E01", "evil", "evil", FixClass::safe, Severity::error}}), {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->texts.at("a"), "foo");
    EXPECT_NE(run->dropped.at(0).why.find("E01"), std::string::npos);
}

TEST(ApplyFixes, EndsWhenTwoRulesUndoEachOther) {
    const auto run = apply_fixes({{"a", "foo"}}, toy_check({{"A01", "foo", "bar"}, {"B02", "bar", "foo"}}), {});
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().kind(), ErrorKind::internal);
}

// Whatever is fixed, bytes outside the edits stay, and a second run has nothing to do.
RC_GTEST_PROP(ApplyFixes, AreIdempotentAndTouchNothingElse, ()) {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c', '\n'));
    const std::vector<ToyRule> rules = {{"A01", "ab", "X"}, {"B02", "bc", "YY"}, {"C03", "ca", "Z"}};
    const auto once = apply_fixes({{"f", text}}, toy_check(rules), {});
    RC_ASSERT(bool(once));
    const auto twice = apply_fixes(once->texts, toy_check(rules), {});
    RC_ASSERT(bool(twice));
    RC_ASSERT(twice->texts.at("f") == once->texts.at("f"));
    RC_ASSERT(twice->applied.empty());
    RC_ASSERT(std::count(once->texts.at("f").begin(), once->texts.at("f").end(), '\n') ==
              std::count(text.begin(), text.end(), '\n'));
}

}  // namespace
}  // namespace stoker::lint
