// A span that is one byte off makes a fix destroy a manifest; a document that is lost is one that nobody checked.
#include <gtest/gtest.h>

#include "lint/read.h"
#include "lint/yaml/scalars.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> read_yaml_text(std::string text, Kind kind = Kind::k8s) {
    auto file = std::make_unique<File>("a.yaml", std::move(text));
    file->kinds.add(kind);
    read_yaml(*file);
    return file;
}
std::string_view yaml_as_written(const Node* node) {
    return node ? node->source->text(node->span) : std::string_view("(none)");
}

// Spans of all five styles, also behind characters of several bytes and a byte order mark.
TEST(ReadYaml, SpansAreBytesOfTheFile) {
    for (const std::string bom : {"", "\xEF\xBB\xBF"}) {
        const auto file =
            read_yaml_text(bom +
                           "a: plain  # größe\nb: 'it''s'\nü: \"x\\ty\"\nd: |  # c\n  one\n  two\n\ne: >-\n"
                           "  f\n  g\nlast: &x !!str 7\nempty:\n");
        ASSERT_EQ(file->tree.roots.size(), 1u);
        const Node& root = *file->tree.roots[0];
        EXPECT_EQ(yaml_as_written(root.find("a")), "plain");
        EXPECT_EQ(yaml_as_written(root.find("b")), "'it''s'");
        EXPECT_EQ(root.find("b")->text, "it's");
        EXPECT_EQ(yaml_as_written(root.find("\xC3\xBC")), "\"x\\ty\"");
        EXPECT_EQ(root.find("\xC3\xBC")->text, "x\ty");
        EXPECT_EQ(root.find("d")->text, "one\ntwo\n");
        EXPECT_EQ(yaml_as_written(root.find("d")), "|  # c\n  one\n  two");
        EXPECT_EQ(root.find("e")->text, "f g");
        EXPECT_EQ(yaml_as_written(root.find("last")), "7");
        EXPECT_EQ(root.find("last")->shape, Shape::string);
        EXPECT_EQ(root.find("empty")->shape, Shape::null);
        EXPECT_EQ(file->source().text(root.find("last")->key_span), "last");
        ASSERT_EQ(file->comments.size(), 2u);
        EXPECT_EQ(file->source().text(file->comments[0].span),
                  "# gr\xC3\xB6\xC3\x9F"
                  "e");
        EXPECT_EQ(file->source().text(file->comments[1].span), "# c");
        EXPECT_EQ(root.span.end, file->source().text().find("empty:") + 6);
    }
}

// '#' inside scalars is no comment; one after a blank is.
TEST(ReadYaml, FindsCommentsOnly) {
    const auto file = read_yaml_text("# top\na: b#c\nb: \"x # y\"\nc: |\n  # in the text\nd: [1, 2] # end\n");
    ASSERT_EQ(file->comments.size(), 2u);
    EXPECT_TRUE(file->comments[0].own_line);
    EXPECT_FALSE(file->comments[1].own_line);
    EXPECT_EQ(file->source().text(file->comments[1].span), "# end");
}

TEST(ReadYaml, KeepsMergedChildrenWhereTheyWereWritten) {
    const auto file = read_yaml_text("base: &b\n  image: x\n  n: 1\nuse:\n  <<: *b\n  n: 2\nsame: *b\n", Kind::compose);
    const Node& root = *file->tree.roots[0];
    const Node* use = root.find("use");
    ASSERT_TRUE(use->find("image"));
    EXPECT_TRUE(use->find("image")->merged);
    EXPECT_EQ(use->find("image")->span, root.at({"base", "image"})->span);
    EXPECT_EQ(use->find("n")->text, "2");
    EXPECT_EQ(use->count(), 2u);
    EXPECT_TRUE(root.find("same")->merged);
    EXPECT_EQ(root.at({"same", "n"})->text, "1");
    EXPECT_TRUE(file->problems.empty());
}

TEST(ReadYaml, KeepsBothOfTwoEqualKeysAndSaysSo) {
    const auto file = read_yaml_text("a: 1\nb: 2\na: 3\n");
    EXPECT_EQ(file->tree.roots[0]->count(), 3u);
    EXPECT_EQ(file->tree.roots[0]->find("a")->text, "3");
    ASSERT_EQ(file->problems.size(), 1u);
    EXPECT_EQ(file->problems[0].rule, "SYN002");
    EXPECT_EQ(file->source().place(file->problems[0].span.begin).line, 3u);
    std::string many;
    for (int i = 0; i < 100; ++i) many += "k" + std::to_string(i) + ": 1\n";
    EXPECT_EQ(read_yaml_text(many + "k3: 1\n")->problems.size(), 1u);
    EXPECT_TRUE(read_yaml_text(many)->problems.empty());
}

// One broken document is one finding; those before and behind it are read.
TEST(ReadYaml, ReadsTheDocumentsAroundABrokenOne) {
    const auto file = read_yaml_text("a: 1\n---\nb: [1\nc: 2\n---\nd: 4\n");
    ASSERT_EQ(file->problems.size(), 1u);
    EXPECT_EQ(file->problems[0].rule, "SYN001");
    ASSERT_EQ(file->tree.roots.size(), 2u);
    EXPECT_EQ(file->tree.roots[1]->find("d")->text, "4");
    EXPECT_EQ(yaml_as_written(file->tree.roots[1]->find("d")), "4");
}

TEST(ReadYaml, TellsATemplateFromAMistake) {
    EXPECT_EQ(read_yaml_text("a: {{ .Values.x }}\nb: [\n")->problems.at(0).rule, "SYN003");
    EXPECT_EQ(read_yaml_text("{% if x %}\na: b\n")->problems.at(0).rule, "SYN003");
    EXPECT_EQ(read_yaml_text("a: @IMAGE@\n")->problems.at(0).rule, "SYN003");
    EXPECT_EQ(read_yaml_text("a: @b\n")->problems.at(0).rule, "SYN001");
    EXPECT_EQ(read_yaml_text("a: *nothing\n")->problems.at(0).rule, "SYN001");
}

// Inputs made to exhaust a parser are refused, not read.
TEST(ReadYaml, RefusesBombs) {
    EXPECT_EQ(read_yaml_text(std::string(100000, '['))->problems.at(0).rule, "SYN005");
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += "- ";
    EXPECT_EQ(read_yaml_text(deep + "x\n")->problems.at(0).rule, "SYN005");
    std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
        for (int k = 0; k < 9; ++k) laughs += ", " + before;
        laughs += "]\n";
    }
    const auto file = read_yaml_text(laughs);
    EXPECT_EQ(file->problems.at(0).rule, "SYN005");
    EXPECT_LT(file->tree.size(), 1000u);
}

TEST(ReadYaml, TypesPlainScalarsAsKubernetesDoes) {
    EXPECT_EQ(shape_of_plain("off"), Shape::boolean);
    EXPECT_EQ(shape_of_plain("8"), Shape::number);
    EXPECT_EQ(shape_of_plain("-1.5e3"), Shape::number);
    EXPECT_EQ(shape_of_plain("500m"), Shape::string);
    EXPECT_EQ(shape_of_plain("~"), Shape::null);
    EXPECT_EQ(shape_of_plain("1.2.3"), Shape::string);
}

TEST(ReadYaml, KnowsPlaceholders) {
    for (const char* text : {"$N", "${GPUS}", "<gpus>", "{{ n }}", "@N@", "repo/x:$TAG", "$(HOST):80"})
        EXPECT_TRUE(is_placeholder(text)) << text;
    for (const char* text : {"8", "a $x b", "costs $5", "a<b", "x@y"}) EXPECT_FALSE(is_placeholder(text)) << text;
}

void expect_yaml_pieces(const Node& node) {
    std::uint32_t at = 0;
    for (const Piece& piece : pieces_of(node)) {
        EXPECT_EQ(piece.guest, at);
        at += piece.length;
        if (piece.kind == Piece::Kind::verbatim) {
            EXPECT_EQ(node.source->text(piece.host), node.text.substr(piece.guest, piece.length));
        }
    }
    EXPECT_EQ(at, node.text.size());
}

// A finding inside a script must point at its own byte of the manifest.
TEST(ReadYaml, PiecesLeadBackToTheFile) {
    for (const std::string end : {"\n", "\r\n"}) {
        std::string text =
            "a: |\n    one\n      two\n\n    three\nb: >\n  one\n  two\n\n  three\n   more\nc: \"x\\ty\\\n   z \\u00e9 "
            "end\"\nd: "
            "'it''s\n  folded'\ne: plain words\n  go on\nf: |2-\n   x\ng: simple\n";
        for (std::size_t at = 0; end.size() > 1 && (at = text.find('\n', at)) != std::string::npos; at += 2)
            text.replace(at, 1, end);
        const auto file = read_yaml_text(text);
        ASSERT_EQ(file->tree.roots.size(), 1u);
        for (const Node& node : children(file->tree.roots[0])) {
            SCOPED_TRACE(node.key);
            expect_yaml_pieces(node);
        }
        const Node& literal = *file->tree.roots[0]->find("a");
        const Source guest(file->source(), std::string(literal.text), pieces_of(literal));
        const auto three = static_cast<std::uint32_t>(literal.text.find("three"));
        EXPECT_EQ(guest.place(three).line, 5u);
        EXPECT_EQ(guest.place(three).column, 5u);
        EXPECT_TRUE(guest.editable({three, three + 5}));
    }
}

}  // namespace
}  // namespace stoker::lint
