// Two readers of YAML and two of JSON stand in this tree: Document (base) for files that people write for Stoker, and
// the tree of lint, which has to read what kubectl, ARM and DeepSpeed read. What both read they read alike, or check
// calls a file right that plan and run understand otherwise. Where they differ on purpose, the reason stands here with
// an example.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/text.h"
#include "lint/nasty_texts_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

namespace fs = std::filesystem;

// A tree as text: kinds, texts and keys in their order; or why there is none.
struct Reading {
    std::string tree;     // empty: refused
    std::string refusal;  // what was said
};

std::string_view kind_name(NodeKind kind) {
    constexpr std::string_view names[] = {"null", "boolean", "number", "string", "array", "object"};
    return names[static_cast<int>(kind)];
}
std::string_view kind_name(Shape shape) {
    constexpr std::string_view names[] = {"null", "boolean", "number", "string", "array", "object"};
    return names[static_cast<int>(shape)];
}
void put_line(std::string& out, int depth, std::string_view key, std::string_view kind, std::string_view text) {
    out.append(static_cast<std::size_t>(depth), ' ').append(key).append("|").append(kind).append("|").append(text);
    out += '\x1e';
}
void dump(const stoker::Node& node, std::string_view key, int depth, std::string& out) {
    put_line(out, depth, key, kind_name(node.kind), node.text);
    for (const auto& item : node.items) dump(*item, "-", depth + 1, out);
    for (const Member& member : node.members) dump(*member.value, member.key, depth + 1, out);
}
void dump(const Node& node, std::string_view key, int depth, std::string& out) {
    put_line(out, depth, key, kind_name(node.shape), node.is_scalar() ? node.text : std::string_view());
    for (const Node& child : children(&node)) dump(child, node.is_array() ? "-" : child.key, depth + 1, out);
}

Reading by_base(const std::string& text, bool json) {
    const auto document = json ? Document::parse_json(text, "f.json") : Document::parse_yaml(text, "f.yaml");
    Reading reading;
    if (document)
        dump(document->root(), "", 0, reading.tree);
    else
        reading.refusal = document.error().message();
    return reading;
}
Reading by_lint(const std::string& text, bool json) {
    File file(json ? "f.json" : "f.yaml", text);
    json ? read_json(file) : read_yaml(file);
    Reading reading;
    if (!file.problems.empty()) {
        reading.refusal = file.problems.front().message;
        return reading;
    }
    if (file.tree.roots.empty()) reading.tree = "no document";
    for (const Node* root : file.tree.roots) dump(*root, "", 0, reading.tree);
    return reading;
}

// A difference that is meant. `base` or `lint`: a part of what that one says when it refuses and the other reads; both
// empty: both read it, and `kinds` says which kinds differ ("string boolean").
struct Reason {
    const char* why;
    bool json;
    std::string example;
    const char* base;
    const char* lint;
    const char* kinds = "";
};

const std::vector<Reason>& reasons() {
    static const std::vector<Reason> list = {
        {"a workload file is one document, a manifest may be many", false, "a: 1\n---\nb: 2\n",
         "one document is expected", ""},
        {"an empty file says nothing to lint, and is a mistake as a workload", false, "", "the file is empty", ""},
        {"so does one of comments", false, "# nothing\n", "only comments", ""},
        {"base refuses what two readers could understand differently; lint shows both (SYN002)", false, "a: 1\na: 2\n",
         "is already set", ""},
        {"one merge key of a list says the same without a question", false, "x: &x {b: 1}\ny:\n  <<: *x\n  <<: *x\n",
         "'<<' is already set", ""},
        {"what an application makes of its tags only it knows: !Ref, !secret", false, "a: !Ref b\n", "the tag", ""},
        {"the core tags say what a value is; base refuses one that lies, lint has no finding about it", false,
         "a: !!int x\n", "is not what its tag", ""},
        {"a list or a mapping as a key is what an unrendered {{ }} reads as; lint says so where it matters", false,
         "? [a, b]\n: 1\n", "a key must be plain text", ""},
        {"an empty key is one to libyaml, and a forgotten word to a person", false, "? \n: 1\n", "a key is missing",
         ""},
        {"an anchor on a key means nothing to a workload", false, "&k a: 1\n", "an anchor on a key", ""},
        {"a tag on a key neither", false, "!x a: 1\n", "the tag", ""},
        {"no quantity of a workload is infinite", false, "a: .inf\n", "not a finite number", ""},
        {"or out of range", false, "a: 1e999\n", "not a finite number", ""},
        {"YAML 1.1, which kubectl and compose read, has yes and off as booleans; ours is 1.2", false, "a: yes\n", "",
         "", "string boolean"},
        {"and underscores, binary and signed numbers of other bases", false, "a: 1_000\n", "", "", "string number"},
        {"libyaml's time grows with the square of open brackets: lint reads strangers' files, and stops at 64", false,
         nested_text("[", "", "]", 80), "", "brackets nest deeper"},
        {"nobody writes a workload 100 deep", false, nested_block(150), "nested deeper", ""},
        {"a merge of what is no mapping is dropped by lint: it says nothing about it", false, "a:\n  <<: 5\n  b: 1\n",
         "'<<' merges", ""},
        {"what is empty says nothing to lint", true, "", "the file is empty", ""},
        {"people write comments into JSON, and editors take them", true, "{\"a\": 1} // one\n", "JSON has no comments",
         ""},
        {"and commas behind the last", true, "[1, 2,]", "JSON allows no comma", ""},
        {"both of two keys are kept by lint for its finding", true, "{\"a\": 1, \"a\": 2}", "is already set", ""},
        {"readers put U+FFFD for half a surrogate; base refuses it", true, "[\"\\ud800\"]", "half of a surrogate", ""},
        {"out of range, as in YAML", true, "[1e999]", "out of range", ""},
        {"Go, which reads for kubectl, puts U+FFFD for a byte that is no UTF-8", true, "[\"\xff\"]",
         "is not valid UTF-8", ""},
        {"nobody writes JSON for us 100 deep", true, nested_text("[", "", "]", 150), "nested deeper", ""},
    };
    return list;
}

std::vector<std::string> lines_of_tree(const std::string& tree) {
    std::vector<std::string> lines;
    for (std::size_t at = 0, end; (end = tree.find('\x1e', at)) != std::string::npos; at = end + 1)
        lines.push_back(tree.substr(at, end - at));
    return lines;
}
// "string boolean" when the lines are alike but for their kinds; "" where they are not.
std::string kinds_that_differ(const std::string& a, const std::string& b) {
    const auto parts = [](const std::string& line) {
        const std::size_t first = line.find('|'), second = line.find('|', first + 1);
        return std::array<std::string, 3>{line.substr(0, first), line.substr(first + 1, second - first - 1),
                                          line.substr(second + 1)};
    };
    const auto x = parts(a), y = parts(b);
    return x[0] == y[0] && x[2] == y[2] ? x[1] + " " + y[1] : "";
}
bool is_word_of_yaml_1_1(std::string_view text) {
    for (const char* word : {"yes", "no", "on", "off"})
        if (equals_ignore_case(text, word)) return true;
    return false;
}
bool is_number_of_yaml_1_1(std::string_view text) {
    const std::string_view bare = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
    return text.find('_') != std::string_view::npos || bare.starts_with("0b") ||
           (bare.size() < text.size() && (bare.starts_with("0x") || bare.starts_with("0o")));
}

// Empty when they agree; the reason's `why` when one is known; else "DIFFER: ..." with what is different.
std::string difference(const std::string& text, bool json) {
    const Reading base = by_base(text, json), lint = by_lint(text, json);
    if (base.tree.empty() && lint.tree.empty()) return "";
    if (base.tree == lint.tree) return "";
    for (const Reason& reason : reasons()) {
        if (reason.json != json) continue;
        if (base.tree.empty() && *reason.base && base.refusal.find(reason.base) != std::string::npos) return reason.why;
        if (lint.tree.empty() && *reason.lint && lint.refusal.find(reason.lint) != std::string::npos) return reason.why;
    }
    if (base.tree.empty()) return "DIFFER: base says \"" + base.refusal + "\", lint reads it";
    if (lint.tree.empty()) return "DIFFER: lint says \"" + lint.refusal + "\", base reads it";
    const auto a = lines_of_tree(base.tree), b = lines_of_tree(lint.tree);
    std::string found;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i >= a.size() || i >= b.size()) return "DIFFER: one has more values than the other";
        if (a[i] == b[i]) continue;
        const std::string kinds = kinds_that_differ(a[i], b[i]);
        const std::string value = a[i].substr(a[i].rfind('|') + 1);
        const bool meant = (kinds == "string boolean" && is_word_of_yaml_1_1(value)) ||
                           (kinds == "string number" && is_number_of_yaml_1_1(value));
        if (!meant) return "DIFFER: base has " + a[i] + ", lint has " + b[i];
        found = kinds;
    }
    for (const Reason& reason : reasons())
        if (reason.kinds == found) return reason.why;
    return "DIFFER";
}

TEST(ReadersAgree, EveryReasonHasAnExampleThatStillDiffers) {
    for (const Reason& reason : reasons()) {
        const Reading base = by_base(reason.example, reason.json), lint = by_lint(reason.example, reason.json);
        if (*reason.base)
            EXPECT_NE(base.refusal.find(reason.base), std::string::npos)
                << reason.why << ": base says " << base.refusal;
        else
            EXPECT_FALSE(base.tree.empty()) << reason.why << ": base says " << base.refusal;
        if (*reason.lint)
            EXPECT_NE(lint.refusal.find(reason.lint), std::string::npos)
                << reason.why << ": lint says " << lint.refusal;
        else
            EXPECT_FALSE(lint.tree.empty()) << reason.why << ": lint says " << lint.refusal;
        EXPECT_NE(difference(reason.example, reason.json), "") << reason.why;
    }
}

TEST(ReadersAgree, OnNastyYaml) {
    for (const std::string& text : nasty_yaml()) {
        const std::string told = difference(text, false);
        EXPECT_FALSE(told.starts_with("DIFFER")) << text.substr(0, 200) << "\n" << told;
    }
}

TEST(ReadersAgree, OnNastyJson) {
    for (const std::string& text : nasty_json()) {
        const std::string told = difference(text, true);
        EXPECT_FALSE(told.starts_with("DIFFER")) << text.substr(0, 200) << "\n" << told;
    }
}

// Every file of the two languages that stands in the repository, and what the fuzzers have found worth keeping.
TEST(ReadersAgree, OnTheFilesOfTheTree) {
    std::map<std::string, int> told;
    int read = 0;
    const auto compare = [&](const fs::path& path, bool json) {
        std::ifstream in(path, std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        const std::string difference_of_file = difference(text, json);
        EXPECT_FALSE(difference_of_file.starts_with("DIFFER")) << path << ": " << difference_of_file;
        ++told[difference_of_file], ++read;
    };
    const fs::path root(STOKER_SOURCE_DIR);
    for (const char* folder : {"tests", "examples", "data"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            if (!entry.is_regular_file() || entry.file_size() > (4u << 20)) continue;
            const std::string name = entry.path().filename(), place = entry.path();
            const bool corpus = place.find("/fuzz/corpus/") != std::string::npos;
            if (name.ends_with(".json"))
                compare(entry.path(), true);
            else if (name.ends_with(".yaml") || name.ends_with(".yml"))
                compare(entry.path(), false);
            else if (corpus && place.find("/json_document/") != std::string::npos)
                compare(entry.path(), true);
            else if (corpus && (place.find("/yaml_document/") != std::string::npos ||
                                place.find("/workload/") != std::string::npos))
                compare(entry.path(), false);
        }
    EXPECT_GT(read, 100);
    EXPECT_GT(told[""], read / 2);
}

}  // namespace
}  // namespace stoker::lint
