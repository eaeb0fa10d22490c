// A suppression that covers too much hides real findings; one that covers too little makes people switch the rule off.
#include "lint/suppress.h"

#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

using Form = SuppressionWords::Form;

TEST(SuppressionWords, AreReadInTheCommentsOfEveryLanguage) {
    for (const char* comment :
         {"# stoker: ignore[SYN002]", "// stoker: ignore[SYN002]", "/* stoker: ignore[SYN002] */",
          "<!-- stoker: ignore[SYN002] -->", "{{/* stoker: ignore[SYN002] */}}", "{{- /* stoker: ignore[SYN002] */ -}}",
          "; stoker: ignore[ syn002 ]", "## stoker:ignore[SYN002]"}) {
        const SuppressionWords words = parse_suppression(comment);
        EXPECT_EQ(words.form, Form::ignore) << comment;
        EXPECT_EQ(words.rules, std::vector<std::string>{"SYN002"}) << comment;
        EXPECT_EQ(words.problem, "") << comment;
    }
    const SuppressionWords words =
        parse_suppression("# stoker: ignore-file[SYN002,SYN003] until=2027-01-31 reason=\"lab, deleted nightly\"");
    EXPECT_EQ(words.form, Form::file);
    EXPECT_EQ(words.rules.size(), 2u);
    EXPECT_EQ(words.until, "2027-01-31");
    EXPECT_EQ(words.reason, "lab, deleted nightly");
    EXPECT_EQ(parse_suppression("# stoker: ignore-end").form, Form::end);
    EXPECT_EQ(parse_suppression("# stoker: ignore-begin[SYN002]").form, Form::begin);
}

TEST(SuppressionWords, AreNotSeenInOrdinaryComments) {
    for (const char* comment : {"# a stoker: ignore[SYN002]", "# stoker is fine", "# stoker: ignored[SYN002]",
                                "# stoker: ignore-me", "#", "", "# stoker:"})
        EXPECT_EQ(parse_suppression(comment).form, Form::none) << comment;
}

TEST(SuppressionWords, SayWhatIsWrongWithThem) {
    const std::pair<const char*, const char*> cases[] = {
        {"# stoker: ignore", "names no rule"},
        {"# stoker: ignore[]", "names no rule"},
        {"# stoker: ignore[SYN001]", "cannot be ignored"},
        {"# stoker: ignore[SYN002", "bracket"},
        {"# stoker: ignore[NOPE99]", "no rule has the id NOPE99"},
        {"# stoker: ignore[SYN002] until=tomorrow", "no day"},
        {"# stoker: ignore[SYN002] until=2027-13-01", "no day"},
        {"# stoker: ignore[SYN002] reason=\"open", "closing quote"},
        {"# stoker: ignore[SYN002] because of the lab", "not understood"}};
    for (const auto& [comment, problem] : cases)
        EXPECT_NE(parse_suppression(comment).problem.find(problem), std::string::npos)
            << comment << ": " << parse_suppression(comment).problem;
}

// A File as a front end leaves it: comments where '#' begins one, one mapping per `key:` by indentation of two.
struct TestFile {
    std::unique_ptr<File> file;
    explicit TestFile(std::string text, std::string path = "f.yaml") : file(std::make_unique<File>(path, text)) {
        file->kinds.add(Kind::compose);
        const std::string_view body = file->source().text();
        Node& root = file->tree.make(file->source(), Shape::object, {0, static_cast<std::uint32_t>(body.size())});
        file->tree.roots.push_back(&root);
        std::vector<std::pair<std::size_t, Node*>> open = {{0, &root}};
        for (std::size_t at = 0; at < body.size();) {
            const std::size_t end = std::min(body.find('\n', at), body.size());
            const std::string_view line = body.substr(at, end - at);
            const std::size_t hash = line.find('#'), first = line.find_first_not_of(' ');
            if (hash != std::string_view::npos)
                file->comments.push_back({{offset(at + hash), offset(end)}, hash == first});
            if (first != std::string_view::npos && first != hash) {
                const std::size_t colon = line.find(':');
                while (open.size() > 1 && open.back().first > first) open.pop_back();
                Node& node = file->tree.make(file->source(), Shape::object, {offset(at + colon + 1), offset(end)});
                node.key_span = {offset(at + first), offset(at + colon)};
                node.key = body.substr(at + first, colon - first);
                file->tree.append(*open.back().second, node);
                for (auto& [indent, parent] : open)
                    if (parent != &root) parent->span.end = offset(end);
                open.emplace_back(first + 1, &node);
            }
            at = end + 1;
        }
    }
    static std::uint32_t offset(std::size_t at) { return static_cast<std::uint32_t>(at); }

    Finding finding_at(std::string_view word, std::string rule = "SYN002") const {
        const std::size_t at = file->source().text().find(word);
        EXPECT_NE(at, std::string_view::npos) << word;
        Finding finding;
        finding.rule = std::move(rule);
        finding.path = file->path();
        finding.span = {offset(at), offset(at + word.size())};
        finding.place = file->source().place(offset(at), Columns::code_points);
        finding.address = word;
        finding.message = "wrong";
        return finding;
    }
    SuppressOutcome apply(std::vector<Finding> findings, std::string as_of = "2026-11-20", bool prod = false) const {
        CheckOptions options;
        options.as_of = std::move(as_of);
        return apply_suppressions({file.get()}, std::move(findings), options, {prod, true});
    }
};

std::vector<std::string> addresses(const std::vector<Finding>& findings) {
    std::vector<std::string> list;
    for (const Finding& finding : findings) list.push_back(finding.rule == "SYN004" ? "SYN004" : finding.address);
    return list;
}
using List = std::vector<std::string>;

TEST(Suppressions, AtTheEndOfALineCoverThatLine) {
    const TestFile f("one: 1  # stoker: ignore[SYN002]\ntwo: 2\n");
    const auto outcome = f.apply({f.finding_at("one"), f.finding_at("two")});
    EXPECT_EQ(addresses(outcome.findings), List{"two"});
    ASSERT_EQ(outcome.suppressed.size(), 1u);
    EXPECT_TRUE(outcome.suppressed[0].in_source);
}

TEST(Suppressions, OnTheirOwnLineCoverWhatFollowsWithAllInIt) {
    const TestFile f(
        "a:\n  # stoker: ignore[SYN002] reason=\"r\"\n  # and a word of explanation\n  b:\n    c: 1\n  d: 2\ne: 3\n");
    const auto outcome = f.apply({f.finding_at("b:"), f.finding_at("c:"), f.finding_at("d:"), f.finding_at("e:")});
    EXPECT_EQ(addresses(outcome.findings), (List{"d:", "e:"}));
    EXPECT_EQ(outcome.suppressed.at(1).reason, "r");
}

TEST(Suppressions, AboveTheFirstKeyDoNotCoverTheFile) {
    const TestFile f("# stoker: ignore[SYN002]\na: 1\nb: 2\n");
    EXPECT_EQ(addresses(f.apply({f.finding_at("a:"), f.finding_at("b:")}).findings), List{"b:"});
}

TEST(Suppressions, OfAFileStandInItsFirstComment) {
    const TestFile good("# licence\n# stoker: ignore-file[SYN002]\na: 1\nb: 2\n");
    EXPECT_TRUE(good.apply({good.finding_at("a:"), good.finding_at("b:")}).findings.empty());
    const TestFile late("a: 1\n# stoker: ignore-file[SYN002]\nb: 2\n");
    EXPECT_EQ(addresses(late.apply({late.finding_at("b:")}).findings), (List{"SYN004", "b:"}));
}

TEST(Suppressions, OfARangeCoverTheLinesBetween) {
    const TestFile f("a: 1\n# stoker: ignore-begin[SYN002]\nb: 2\nc: 3\n# stoker: ignore-end\nd: 4\n");
    EXPECT_EQ(
        addresses(f.apply({f.finding_at("a:"), f.finding_at("b:"), f.finding_at("c:"), f.finding_at("d:")}).findings),
        (List{"a:", "d:"}));
    const TestFile open("# stoker: ignore-begin[SYN002]\na: 1\n");
    EXPECT_EQ(addresses(open.apply({open.finding_at("a:")}).findings), (List{"SYN004", "a:"}));
    const TestFile alone("a: 1\n# stoker: ignore-end\n");
    EXPECT_EQ(addresses(alone.apply({}).findings), List{"SYN004"});
}

TEST(Suppressions, NameRulesAndOnlyThoseAreCovered) {
    const TestFile f("a: 1  # stoker: ignore[SYN003]\n");
    const auto outcome = f.apply({f.finding_at("a:")});
    EXPECT_EQ(addresses(outcome.findings), (List{"a:", "SYN004"}));
}

TEST(Suppressions, ThatAreNotNeededComeWithAFixThatRemovesThem) {
    const TestFile own("a: 1\n  # stoker: ignore[SYN002]\nb: 2\n");
    auto outcome = own.apply({});
    ASSERT_EQ(addresses(outcome.findings), List{"SYN004"});
    ASSERT_TRUE(outcome.findings[0].fix);
    EXPECT_EQ(outcome.findings[0].fix->edits[0].span, (Span{5, 5 + 2 + 24 + 1}));
    const TestFile half("a: 1 # stoker: ignore[SYN002,SYN003]\n");
    outcome = half.apply({half.finding_at("a:")});
    ASSERT_EQ(addresses(outcome.findings), List{"SYN004"});
    EXPECT_EQ(outcome.findings[0].fix->edits[0].replacement, "SYN002");
}

TEST(Suppressions, ThatHaveExpiredLetTheFindingThrough) {
    const TestFile f("a: 1  # stoker: ignore[SYN002] until=2026-10-31\n");
    const auto outcome = f.apply({f.finding_at("a:")});
    ASSERT_EQ(addresses(outcome.findings), (List{"a:", "SYN004"}));
    EXPECT_EQ(outcome.findings[0].message, "wrong; its suppression expired on 2026-10-31");
    EXPECT_FALSE(outcome.findings[1].fix);
    EXPECT_TRUE(f.apply({f.finding_at("a:")}, "2026-10-31").findings.empty());  // the last day counts
}

TEST(Suppressions, NeedAReasonInProduction) {
    const TestFile bare("a: 1  # stoker: ignore[SYN002]\n");
    EXPECT_EQ(addresses(bare.apply({bare.finding_at("a:")}, "2026-11-20", true).findings), (List{"a:", "SYN004"}));
    const TestFile told("a: 1  # stoker: ignore[SYN002] reason=\"x\"\n");
    EXPECT_TRUE(told.apply({told.finding_at("a:")}, "2026-11-20", true).findings.empty());
}

TEST(Suppressions, AreNotCalledUnusedWhenTheirRuleDidNotRun) {
    const TestFile f("a: 1  # stoker: ignore[SYN002]\n");
    CheckOptions options;
    options.off.insert("SYN002");
    EXPECT_TRUE(apply_suppressions({f.file.get()}, {}, options, {}).findings.empty());
}

TEST(Suppressions, InTextsThatNoFrontEndReads) {
    const auto file = read_file("notes.md", "text\n<!-- stoker: ignore[SYN002] -->\nmore\nlast\n");
    ASSERT_TRUE(file);
    Finding finding;
    finding.rule = "SYN002";
    finding.path = "notes.md";
    const std::size_t at = file->source().text().find("more");
    finding.span = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + 4)};
    Finding other = finding;
    other.span = {finding.span.begin + 5, finding.span.end + 5};
    other.address = "last";
    const auto outcome = apply_suppressions({file.get()}, {finding, other}, {}, {});
    EXPECT_EQ(addresses(outcome.findings), List{"last"});
}

TEST(Suppressions, AsAnnotationsCoverTheObject) {
    File file("pod.yaml",
              "metadata: {annotations: {stoker/ignore: \"SYN002\", stoker/ignore-reason: mirror}}\nspec: {x: 1}\n");
    file.kinds.add(Kind::k8s);
    const auto span_of = [&](std::string_view word) {
        const auto at = static_cast<std::uint32_t>(file.source().text().find(word));
        return Span{at, at + static_cast<std::uint32_t>(word.size())};
    };
    Node& root =
        file.tree.make(file.source(), Shape::object, {0, static_cast<std::uint32_t>(file.source().text().size())});
    file.tree.roots.push_back(&root);
    const auto add = [&](Node& parent, std::string_view key, Shape shape, Span span, std::string_view text) -> Node& {
        Node& node = file.tree.make(file.source(), shape, span);
        node.key = key;
        node.key_span = span_of(key);
        node.text = text;
        file.tree.append(parent, node);
        return node;
    };
    Node& metadata = add(root, "metadata", Shape::object, span_of("{annotations"), "");
    Node& annotations = add(metadata, "annotations", Shape::object, span_of("{stoker"), "");
    add(annotations, "stoker/ignore", Shape::string, span_of("\"SYN002\""), "SYN002");
    add(annotations, "stoker/ignore-reason", Shape::string, span_of("mirror"), "mirror");
    Finding finding;
    finding.rule = "SYN002";
    finding.path = "pod.yaml";
    finding.span = span_of("{x: 1}");
    const auto outcome = apply_suppressions({&file}, {finding}, {}, {});
    EXPECT_TRUE(outcome.findings.empty());
    EXPECT_EQ(outcome.suppressed.at(0).reason, "mirror");
}

TEST(ConfigSuppressions, MatchExactlyTheirAddress) {
    Finding finding;
    finding.rule = "SYN002";
    finding.path = "ds.json";
    finding.address = "ds:/fp16";
    Finding other = finding;
    other.address = "ds:/bf16";
    ConfigSuppression suppression{"ds.json", "SYN002", "ds:/fp16", "trial", "", "stoker.toml", {7, 1}};
    CheckOptions options;
    options.as_of = "2026-11-20";
    auto outcome = apply_config_suppressions({suppression}, {finding, other}, {"ds.json"}, options, {});
    EXPECT_EQ(addresses(outcome.findings), List{"ds:/bf16"});
    EXPECT_FALSE(outcome.suppressed.at(0).in_source);
    // Unused: told at its place in stoker.toml, but only when its file was looked at.
    outcome = apply_config_suppressions({suppression}, {}, {"ds.json"}, options, {});
    ASSERT_EQ(addresses(outcome.findings), List{"SYN004"});
    EXPECT_EQ(outcome.findings[0].path, "stoker.toml");
    EXPECT_EQ(outcome.findings[0].place.line, 7u);
    EXPECT_TRUE(apply_config_suppressions({suppression}, {}, {"other.json"}, options, {}).findings.empty());
    suppression.until = "2026-01-01";
    outcome = apply_config_suppressions({suppression}, {finding}, {"ds.json"}, options, {});
    EXPECT_EQ(outcome.findings.size(), 2u);
}

}  // namespace
}  // namespace stoker::lint
