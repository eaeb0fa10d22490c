// Reports are read by programs: a missing escape or an unescaped name breaks a build server, not a person.
#include "lint/outcome.h"

#include <gtest/gtest.h>

#include "base/document.h"

namespace stoker::lint {
namespace {

Outcome sample() {
    Outcome outcome;
    outcome.tool = "0.1.0";
    outcome.as_of = "2026-11-20";
    auto source = std::make_shared<const Source>("a b/ü,1.yaml", "x: 1\ny: \xF0\x9F\x98\x80 bad\n");
    outcome.sources.emplace("a b/ü,1.yaml", source);
    outcome.files = {"a b/ü,1.yaml", "clean.yaml"};
    outcome.skipped = {{"data.txt", "of no kind that is read"}};
    Finding finding;
    finding.rule = "SYN002";
    finding.slug = "duplicate-key";
    finding.severity = Severity::error;
    finding.path = "a b/ü,1.yaml";
    finding.span = {13, 16};  // bad, behind a character of two UTF-16 units
    finding.place = source->place(13, Columns::code_points);
    finding.end = source->place(16, Columns::code_points);
    finding.address = "k8s:/Pod/x";
    finding.message = "a \"double\" <key>: 100 %,\nsecond line";
    finding.advice = "keep one";
    finding.fingerprint = std::string(32, 'a');
    finding.related.push_back({"a b/ü,1.yaml", {0, 1}, {1, 1}, "the first"});
    finding.fix = Fix{FixClass::safe, "remove it", {{{13, 16}, "good"}}};
    outcome.findings.push_back(finding);
    Finding info = finding;
    info.rule = "SYN004";
    info.severity = Severity::info;
    info.fix.reset();
    info.span = {0, 1};
    outcome.suppressed.push_back({info, true, "why not", ""});
    outcome.evidence["a b/ü,1.yaml"].push_back({"nvidia.com/gpu", "a b/ü,1.yaml", {1, 1}});
    return outcome;
}

Document parsed(const std::string& text) {
    auto document = Document::parse_json(text, "report.json");
    EXPECT_TRUE(document) << (document ? "" : document.error().text());
    if (!document) document = Document::parse_json("{}", "");
    return std::move(document).value();
}

TEST(JsonReport, HoldsWhatItPromises) {
    const Document document = parsed(json_text(sample()));
    const auto& finding = *document.root().find("findings")->items.at(0);
    for (const char* key : {"path", "rule", "severity", "line", "column", "message", "fingerprint", "address"})
        EXPECT_TRUE(finding.find(key)) << key;
    EXPECT_EQ(finding.find("line")->number, 2);
    EXPECT_EQ(finding.find("column")->number, 6);  // code points
    EXPECT_EQ(finding.find("fix")->find("edits")->items.at(0)->find("end_column")->number, 9);
    EXPECT_EQ(document.root().find("skipped")->items.size(), 1u);
}

TEST(SarifReport, CountsColumnsInUtf16AndListsAllRules) {
    const Document document = parsed(sarif_text(sample()));
    const auto& run = *document.root().find("runs")->items.at(0);
    EXPECT_EQ(run.find("tool")->find("driver")->find("rules")->items.size(), rule_pages().size());
    const auto& result = *run.find("results")->items.at(0);
    const auto* physical = result.find("locations")->items.at(0)->find("physicalLocation");
    EXPECT_EQ(physical->find("region")->find("startColumn")->number, 7);
    EXPECT_EQ(physical->find("artifactLocation")->find("uri")->text, "a%20b/%C3%BC%2C1.yaml");
    const auto* index = result.find("ruleIndex");
    ASSERT_TRUE(index);
    EXPECT_EQ(rule_pages().at(static_cast<std::size_t>(index->number)).id, "SYN002");
    EXPECT_EQ(run.find("results")->items.at(1)->find("suppressions")->items.at(0)->find("justification")->text,
              "why not");
}

TEST(GithubReport, EscapesDataAndProperties) {
    const std::string text = github_text(sample());
    EXPECT_NE(text.find("::error file=a b/ü%2C1.yaml,line=2,col=6,"), std::string::npos) << text;
    EXPECT_NE(text.find("::a \"double\" <key>: 100 %25,%0Asecond line%0Akeep one\n"), std::string::npos) << text;
}

TEST(JunitReport, EscapesXmlAndPassesCleanFiles) {
    const std::string text = junit_text(sample());
    EXPECT_NE(text.find("message=\"a &quot;double&quot; &lt;key&gt;: 100 %,&#10;second line\""), std::string::npos);
    EXPECT_NE(text.find("<testcase classname=\"clean.yaml\" name=\"no findings\"/>"), std::string::npos);
    EXPECT_NE(text.find("tests=\"2\" failures=\"1\""), std::string::npos);
}

TEST(GitlabReport, KnowsThreeSeverities) {
    const Document document = parsed(gitlab_text(sample()));
    EXPECT_EQ(document.root().items.at(0)->find("severity")->text, "critical");
    EXPECT_EQ(document.root().items.at(0)->find("location")->find("lines")->find("begin")->number, 2);
}

TEST(TextReport, ShowsTheLineTheEvidenceAndTheCount) {
    const std::string text = text_of(sample(), {});
    EXPECT_TRUE(text.starts_with("a b/ü,1.yaml:2:6: E SYN002 a \"double\"")) << text;
    EXPECT_NE(text.find("    2 | y: "), std::string::npos) << text;
    EXPECT_NE(text.find("evidence: nvidia.com/gpu (a b/ü,1.yaml:1)"), std::string::npos) << text;
    EXPECT_NE(text.find("fix: remove it (--fix)"), std::string::npos) << text;
    EXPECT_NE(text.find("1 finding (1 error, 0 warnings, 0 info), 1 suppressed, in 2 files; 1 of no kind"),
              std::string::npos)
        << text;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        EXPECT_LE(rest.substr(0, end).size(), 104u) << rest.substr(0, end);  // bytes of some wide characters
        rest.remove_prefix(end + 1);
    }
}

// for_each and modules repeat a mistake of one line for each of their resources: people read it once, programs get
// each.
TEST(TextReport, SaysOnceWhatSeveralResourcesShare) {
    Outcome outcome = sample();
    outcome.findings[0].address = "tf:azurerm_linux_virtual_machine.gpu[a]";
    for (const char* name : {"b", "c", "d", "e", "f"}) {
        outcome.findings.push_back(outcome.findings[0]);
        outcome.findings.back().address = "tf:azurerm_linux_virtual_machine.gpu[" + std::string(name) + "]";
    }
    const std::string text = text_of(outcome, {.width = 200});
    EXPECT_EQ(text.find("SYN002"), text.rfind("SYN002")) << text;
    EXPECT_NE(text.find("each of: azurerm_linux_virtual_machine.gpu[a], azurerm_linux_virtual_machine.gpu[b], "
                        "azurerm_linux_virtual_machine.gpu[c], azurerm_linux_virtual_machine.gpu[d] and 2 more"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("1 finding (1 error, 0 warnings, 0 info)"), std::string::npos) << text;
    EXPECT_NE(concise_text(outcome, {.width = 200}).find("(6 resources)"), std::string::npos);
    EXPECT_EQ(parsed(json_text(outcome)).root().find("findings")->items.size(), 6u);
}

TEST(RuleLinks, AreTakenFromTheSource) {
    RulePage page;
    page.source = "learn.microsoft.com/azure/virtual-machines/sizes, section 2";
    EXPECT_EQ(rule_link(page), "https://learn.microsoft.com/azure/virtual-machines/sizes");
    page.source = "design of stoker check";
    EXPECT_EQ(rule_link(page), "");
    page.source = "see https://example.org/x.";
    EXPECT_EQ(rule_link(page), "https://example.org/x");
}

}  // namespace
}  // namespace stoker::lint
