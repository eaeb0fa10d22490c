// A file that DeepSpeed or Azure reads and Stoker does not, or a place that is off, makes every finding in it useless.
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> read_as(Kind kind, std::string text) {
    ReadOptions options;
    options.kind = kind;
    return read_file("x.json", std::move(text), options);
}
const Node& root_of(const File& file) {
    return *file.tree.roots.at(0);
}

TEST(ReadJson, KeepsSpansOfKeysAndValues) {
    const auto file = read_as(Kind::deepspeed, "{\n  \"fp16\": {\"enabled\": true},\n  \"n\": [1, 2.5e3]\n}\n");
    ASSERT_TRUE(file->problems.empty());
    const Node* enabled = root_of(*file).at({"fp16", "enabled"});
    ASSERT_TRUE(enabled);
    EXPECT_EQ(enabled->shape, Shape::boolean);
    EXPECT_EQ(file->source().text(enabled->span), "true");
    EXPECT_EQ(file->source().text(enabled->key_span), "\"enabled\"");
    EXPECT_EQ(root_of(*file).find("n")->last->text, "2.5e3");
}

TEST(ReadJson, TakesCommentsAndTrailingCommas) {
    const auto file = read_as(Kind::arm, "// head\n{ \"a\": [1, /* two */ 2,], }\n");
    EXPECT_TRUE(file->problems.empty());
    ASSERT_EQ(file->comments.size(), 2u);
    EXPECT_TRUE(file->comments[0].own_line);
    EXPECT_FALSE(file->comments[1].own_line);
    EXPECT_EQ(root_of(*file).find("a")->count(), 2u);
}

TEST(ReadJson, DecodesEscapes) {
    const auto file = read_as(Kind::grafana, R"({"a": "x\n\"\u00e9\ud83d\ude00"})");
    EXPECT_EQ(root_of(*file).find("a")->text, "x\n\"\u00e9\U0001F600");
}

TEST(ReadJson, TellsDoubleKeysOnceEach) {
    for (const int others : {0, 20}) {  // few keys and many are compared in different ways
        std::string text = "{\"a\": 1, \"a\": 2";
        for (int i = 0; i < others; ++i) text += ", \"k" + std::to_string(i) + "\": 0";
        const auto file = read_as(Kind::k8s, text + "}");
        ASSERT_EQ(file->problems.size(), 1u);
        EXPECT_EQ(file->problems[0].rule, "SYN002");
        EXPECT_EQ(file->problems[0].span.begin, 9u);
        EXPECT_EQ(root_of(*file).find("a")->text, "2");
        EXPECT_EQ(root_of(*file).count(), 2u + static_cast<std::size_t>(others));
    }
}

// A file that was cut off inside of an escape: no place beyond its end is told.
TEST(ReadJson, EndsWithTheText) {
    const std::string text = "{\"zero_optimization\": {\"s\\";
    const auto file = read_as(Kind::deepspeed, text);
    const Node* zero = root_of(*file).find("zero_optimization");
    ASSERT_TRUE(zero);
    for (const Node& key : children(zero)) EXPECT_LE(key.key_span.end, text.size());
    EXPECT_FALSE(file->problems.empty());
}

TEST(ReadJson, ArmStringsMayHoldLinesAndExpressions) {
    const auto file = read_as(Kind::arm, "{\"a\": \"[concat('x',\n 'y')]\", \"b\": \"[[text]\"}");
    EXPECT_TRUE(file->problems.empty());
    EXPECT_FALSE(root_of(*file).find("a")->known);
    EXPECT_EQ(root_of(*file).find("b")->text, "[text]");
}

TEST(ReadJson, SaysWhereItEnds) {
    struct Case {
        const char *text, *part;
        std::uint32_t at;
    };
    for (const Case& wanted : {Case{"{\"a\": }", "expected a value", 6}, Case{"{\"a\" 1}", "\":\"", 5},
                               Case{"{\"a\": 1", "does not end", 0}, Case{"{\"a\": \"x}", "does not end", 6},
                               Case{"[1 2]", "expected \",\"", 2}, Case{"{} x", "end of the file", 3}}) {
        const auto file = read_as(Kind::grafana, wanted.text);
        ASSERT_EQ(file->problems.size(), 1u) << wanted.text;
        EXPECT_EQ(file->problems[0].rule, "SYN001");
        EXPECT_NE(file->problems[0].message.find(wanted.part), std::string::npos) << file->problems[0].message;
        EXPECT_EQ(file->problems[0].span.begin, wanted.at) << wanted.text;
    }
}

TEST(ReadJson, RefusesDepthBombs) {
    const auto file = read_as(Kind::arm, std::string(200'000, '['));
    ASSERT_EQ(file->problems.size(), 1u);
    EXPECT_EQ(file->problems[0].rule, "SYN005");
}

TEST(ReadJson, ReadsWhatHjsonReads) {
    const auto file =
        read_as(Kind::deepspeed, "{\n  # stage\n  \"zero_optimization\": {\"stage\": 2}\n  \"fp16\": {}\n}\n");
    EXPECT_TRUE(file->problems.empty());
    EXPECT_EQ(root_of(*file).at({"zero_optimization", "stage"})->text, "2");
}

}  // namespace
}  // namespace stoker::lint
