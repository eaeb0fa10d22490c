// Every page of data/lint: its bad examples are found where it says, its good ones are not, and each rule has one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/embedded.h"
#include "catalog/catalog.h"
#include "lint/apply_fixes.h"
#include "lint/check.h"
#include "lint/read.h"
#include "lint/rule.h"
#include "lint/suppress.h"
#include "workload/workload.h"

namespace stoker::lint {
namespace {

std::vector<std::string> page_ids() {
    std::vector<std::string> ids;
    for (const EmbeddedFile& file : embedded_files())
        if (file.path.starts_with("lint/") && file.path.ends_with(".md"))
            ids.emplace_back(file.path.substr(5, file.path.size() - 8));
    return ids;
}

struct Checked {
    std::vector<std::unique_ptr<File>> files;
    std::vector<Finding> findings;
};

Checked check_example(const RuleExample& example, const std::string& as_of) {
    Checked result;
    ReadOptions read;
    read.neighbour = [&](const std::string& path) -> std::optional<std::string> {
        for (const auto& [name, text] : example.files)
            if (name == (path.starts_with("./") ? path.substr(2) : path)) return text;
        return std::nullopt;
    };
    read.list = [&](const std::string& folder) {
        std::vector<std::string> names;
        const std::string start = (folder.starts_with("./") ? folder.substr(2) : folder) + "/";
        for (const auto& [name, text] : example.files)
            if (name.starts_with(start) && name.find('/', start.size()) == std::string::npos)
                names.push_back(name.substr(start.size()));
        return names;
    };
    read.workload_problems = [](const std::string& path, std::string_view text) -> std::vector<Problem> {
        static const Result<Catalog> catalog = Catalog::embedded();
        const auto document = Document::parse(text, path);
        if (!document) return document.error().problems();
        const auto none = [](const std::string& name) -> Result<Document> {
            return Error(ErrorKind::not_found, name + " is not there");
        };
        const auto workload = read_workload(*document, *catalog, none);
        return workload ? std::vector<Problem>{} : workload.error().problems();
    };
    Bundle bundle;
    for (const auto& [path, text] : example.files) {
        auto file = read_file(path, text, read);
        if (file) bundle.files.push_back(file.get());
        if (file) result.files.push_back(std::move(file));
    }
    std::sort(bundle.files.begin(), bundle.files.end(),
              [](const File* a, const File* b) { return a->path() < b->path(); });
    CheckOptions options;
    options.as_of = as_of;
    result.findings =
        apply_suppressions(bundle.files, check_bundle(bundle, options, Knowledge::embedded()), options, {}).findings;
    return result;
}

// What `--fix --unsafe-fixes` would do to an example.
Texts texts_of(const RuleExample& example) {
    Texts texts;
    for (const auto& [path, text] : example.files) texts[path] = text;
    return texts;
}
std::vector<Finding> check_texts(const Texts& texts, const std::string& as_of, const std::string& only) {
    RuleExample example;
    for (const auto& [path, text] : texts) example.files.emplace_back(path, text);
    std::vector<Finding> findings = check_example(example, as_of).findings;
    // Fixes of other rules are tested on their own pages.
    for (Finding& finding : findings)
        if (finding.rule != only) finding.fix.reset();
    return findings;
}

std::string listed(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& f : findings)
        text +=
            fmt::format("  {}:{}:{} {} [{}] {}\n", f.path, f.place.line, f.place.column, f.rule, f.address, f.message);
    return text;
}

class RulePages : public testing::TestWithParam<std::string> {};

// A user who copies a bad example gets the finding, at its line; one who copies the good one gets none of it.
TEST_P(RulePages, ExamplesAreWhatTheySay) {
    const std::string path = "lint/" + GetParam() + ".md";
    const auto page = parse_rule_page(embedded_bytes(path), path);
    ASSERT_TRUE(page) << page.error().text();
    EXPECT_EQ(page->id, GetParam());
    EXPECT_FALSE(page->title.empty() || page->source.empty() || page->as_of.empty() || page->text.empty() ||
                 page->cost.empty() || page->kinds.empty());
    bool bad = false, good = false;
    for (const RuleExample& example : page->examples) {
        (example.bad ? bad : good) = true;
        const Checked checked = check_example(example, "2026-11-20");
        std::vector<const Finding*> ours;
        for (const Finding& finding : checked.findings)
            if (finding.rule == page->id) ours.push_back(&finding);
        if (!example.bad) {
            EXPECT_TRUE(ours.empty()) << "good: " << example.title << "\n" << listed(checked.findings);
            continue;
        }
        const std::string where = example.path.empty() ? example.files.front().first : example.path;
        const bool found = std::any_of(ours.begin(), ours.end(), [&](const Finding* finding) {
            return finding->path == where && (example.line == 0 || finding->place.line == example.line);
        });
        EXPECT_TRUE(found) << "bad: " << example.title << ": expected " << where << ":" << example.line << ", found\n"
                           << listed(checked.findings);
        EXPECT_EQ(ours.size(), 1u) << "bad: " << example.title << "\n" << listed(checked.findings);
    }
    EXPECT_TRUE(bad && good) << "a page has at least one bad and one good example";
}

// A fix that is offered on a page mends what the page shows: the text still parses, the finding is gone, nothing else
// has changed, and a second run has nothing left to do.
TEST_P(RulePages, FixesDoWhatTheyPromise) {
    const std::string path = "lint/" + GetParam() + ".md";
    const auto page = parse_rule_page(embedded_bytes(path), path);
    ASSERT_TRUE(page) << page.error().text();
    const std::string as_of = "2026-11-20";
    for (const RuleExample& example : page->examples) {
        if (!example.bad) continue;
        const Texts before = texts_of(example);
        const CheckTexts check = [&](const Texts& texts) { return check_texts(texts, as_of, page->id); };
        std::vector<Finding> fixable = check(before);
        std::erase_if(fixable, [](const Finding& finding) { return !finding.fix; });
        if (fixable.empty()) continue;
        for (const Finding& finding : fixable)
            EXPECT_TRUE(page->fix != FixClass::none) << finding.fix->title << ": the page says that there is no fix";
        FixPolicy policy;
        policy.unsafe = true;
        const auto run = apply_fixes(before, check, policy);
        ASSERT_TRUE(run) << run.error().text();
        for (const DroppedFix& dropped : run->dropped)
            ADD_FAILURE() << example.title << ": the fix at line " << dropped.line << " was dropped: " << dropped.why;
        EXPECT_TRUE(std::none_of(run->left.begin(), run->left.end(), [&](const Finding& finding) {
            return finding.rule == page->id && finding.fix;
        })) << example.title;
        const auto again = apply_fixes(run->texts, check, policy);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->texts, run->texts) << example.title << ": a second run changes the text again";
        if (fixable.size() == 1 && run->rounds == 1) {
            const std::string& file = fixable[0].path;
            EXPECT_EQ(with_edits(before.at(file), fixable[0].fix->edits), run->texts.at(file));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Pages, RulePages, testing::ValuesIn(page_ids()), [](const auto& page) { return page.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RulePages);

// A rule without a page would never run, and one that is listed twice would report twice.
TEST(RuleList, HasAPageForEach) {
    std::string before;
    for (const Rule& rule : all_rules()) {
        EXPECT_TRUE(find_rule_page(rule.id)) << rule.id;
        EXPECT_NE(before, rule.id);
        before = rule.id;
    }
    for (const RulePage& page : rule_pages()) {
        if (page.id.starts_with("SYN")) continue;  // told by the readers and by suppressions
        EXPECT_TRUE(std::any_of(all_rules().begin(), all_rules().end(), [&](const Rule& r) { return r.id == page.id; }))
            << page.id;
    }
}

// Without an address nobody can look up what a rule rests on; a mark within another's is no source of its own.
TEST(RulePage, NamesWhereItsSourceCanBeRead) {
    using All = std::vector<std::string>;
    const std::string aks = "https://github.com/MicrosoftDocs/azure-aks-docs/blob/main/articles/aks/";
    EXPECT_EQ(addresses_of_source("azure-aks-docs best-practices-gpu.md (a key), faq.yml; use-nvidia-gpu.md"),
              (All{aks + "best-practices-gpu.md", aks + "faq.yml", aks + "use-nvidia-gpu.md"}));
    EXPECT_EQ(addresses_of_source("azure-aks-docs use-trusted-launch.md"), All{aks + "use-trusted-launch.md"});
    EXPECT_EQ(addresses_of_source("seed text of this project"), All{});
}

}  // namespace
}  // namespace stoker::lint
