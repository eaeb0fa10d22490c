// docs/reference/rules are what people find by searching: a page that lags behind its rule misleads them.
#include "app/rule_view.h"

#include <gtest/gtest.h>

#include "check/test_folder.h"
#include "lint/outcome.h"

namespace stoker {
namespace {

TEST(RuleViews, FindByIdAndBySlug) {
    ASSERT_TRUE(find_rule("syn004"));
    EXPECT_EQ(find_rule("syn004"), find_rule("unused-suppression"));
    EXPECT_FALSE(find_rule("SYN"));
    EXPECT_FALSE(find_rule("quota"));
}

TEST(RuleViews, FitATerminal) {
    for (const lint::RulePage& page : lint::rule_pages()) {
        const std::string text = rule_text(page, Style{});
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            const std::string line = text.substr(at, end - at);
            // What people wrote stands as it is, and an address that is broken cannot be followed.
            if (!line.starts_with("      ") && !line.starts_with("  https://")) {
                EXPECT_LE(line.size(), 110u) << page.id << ": " << line;
            }
            at = end + 1;
        }
        EXPECT_NE(text.find(page.title.substr(0, 30)), std::string::npos) << page.id;
    }
}

TEST(RuleViews, WriteAPagePerRule) {
    const TestFolder folder;
    const auto written = write_rules_reference(folder.path());
    ASSERT_TRUE(written) << written.error().text();
    const auto index = read_file(folder.path("rules.md"), 1u << 20);
    ASSERT_TRUE(index);
    for (const lint::RulePage& page : lint::rule_pages()) {
        EXPECT_NE(index->find("(rules/" + page.id + ".md)"), std::string::npos) << page.id;
        const auto text = read_file(folder.path("rules/" + page.id + ".md"), 1u << 20);
        ASSERT_TRUE(text) << page.id;
        EXPECT_TRUE(text->starts_with("# " + page.id)) << page.id;
    }
}

}  // namespace
}  // namespace stoker
