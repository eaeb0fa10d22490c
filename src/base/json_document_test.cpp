#include <gtest/gtest.h>

#include "base/document.h"

namespace stoker {
namespace {

std::string error_of(std::string_view text, const ReadLimits& limits = {}) {
    const auto document = Document::parse_json(text, "a.json", limits);
    return document ? "no error" : document.error().text();
}

// Every key and value has its place, and numbers keep their digits.
TEST(JsonDocument, ReadsValuesWithTheirPlaces) {
    const auto document =
        Document::parse_json("\xEF\xBB\xBF{\"a\": [1, -2.50e1, true, null],\n \"b\": {\"c\": \"x\"}}\n", "a.json");
    ASSERT_TRUE(document.ok());
    const Node& a = *document->root().find("a");
    EXPECT_EQ(a.items[1]->number, -25);
    EXPECT_EQ(a.items[1]->text, "-2.50e1");
    EXPECT_EQ(a.items[1]->pos, (SourcePos{"a.json", 1, 11}));
    EXPECT_TRUE(a.items[2]->boolean);
    EXPECT_EQ(a.items[3]->kind, NodeKind::null);
    EXPECT_EQ(document->root().members[1].key_pos, (SourcePos{"a.json", 2, 2}));
    EXPECT_EQ(document->root().find("b")->find("c")->text, "x");
}

// Escapes are decoded, pairs of surrogates joined, halves of them refused.
TEST(JsonDocument, DecodesEscapes) {
    const auto document = Document::parse_json(R"("\u00e9\ud83d\ude80\"\\\/\b\f\n\r\t\u0000")", "a.json");
    ASSERT_TRUE(document.ok());
    EXPECT_EQ(document->root().text, std::string("\xC3\xA9\xF0\x9F\x9A\x80\"\\/\b\f\n\r\t\0", 15));
    for (const char* text : {R"("\ud83d")", R"("\ud83dx")", R"("\ude80")", R"("\ud83d\u0041")"})
        EXPECT_NE(error_of(text).find("surrogate"), std::string::npos) << text;
    EXPECT_EQ(error_of(R"("a\q")"),
              "error: unknown escape in text\n  at a.json:1:3\n  a backslash itself is written \\\\\n");
    EXPECT_NE(error_of(R"("\u12g4")").find("four hexadecimal digits"), std::string::npos);
}

// Each leniency of other readers is refused by its name and at its place.
TEST(JsonDocument, LenienciesAreRefusedByName) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "error: the file is empty\n  at a.json:1:1\n  a JSON value is expected, such as {}\n"},
        {"{\"a\":1, // x\n}",
         "error: JSON has no comments\n  at a.json:1:9\n  remove the comment, or write the file as YAML\n"},
        {"[1,\n2,\n]", "error: JSON allows no comma before ]\n  at a.json:2:2\n  remove this comma\n"},
        {"{\"a\":1,}", "error: JSON allows no comma before }\n  at a.json:1:7\n  remove this comma\n"},
        {"{'a':1}", "error: JSON text stands in double quotes, not in single ones\n  at a.json:1:2\n"},
        {"{a:1}",
         "error: found a where a key in double quotes is expected\n  at a.json:1:2\n  put text in double quotes\n"},
        {"[NaN]", "error: found NaN where a value is expected\n  at a.json:1:2\n  JSON has finite numbers only\n"},
        {"[True]", "error: found True where a value is expected\n  at a.json:1:2\n  write true\n"},
        {"[None]", "error: found None where a value is expected\n  at a.json:1:2\n  write null\n"},
        {"[1 2]", "error: found '2' where a comma or ] is expected\n  at a.json:1:4\n"},
        {"{\"a\" 1}", "error: found '1' where a colon behind the key is expected\n  at a.json:1:6\n"},
        {"{\"a\":1", "error: the file ends where a comma or } is expected\n  at a.json:1:7\n"},
        {"{} x",
         "error: found x where the end of the file is expected\n  at a.json:1:4\n  put text in double quotes\n"},
        {"\"a\nb\"",
         "error: the text that begins here has no closing quote on its line\n  at a.json:1:1\n  a line break inside "
         "text is written \\n\n"},
        {"\"a\tb\"", "error: the control character U+0009 must be written as an escape\n  at a.json:1:3\n"},
        {"[01]", "error: a JSON number has no leading zeros\n  at a.json:1:2\n"},
        {"[+1]", "error: a JSON number begins with a digit or a minus sign\n  at a.json:1:2\n"},
        {"[1.]", "error: a number needs digits behind its point\n  at a.json:1:2\n"},
        {"[1e]", "error: a number needs digits in its exponent\n  at a.json:1:2\n"},
        {"[-]", "error: a minus sign without a number behind it\n  at a.json:1:2\n"},
        {"[1e999]", "error: the number is out of range\n  at a.json:1:2\n"},
        {"[12GB]", "error: a number with letters behind it\n  at a.json:1:2\n  put text in double quotes\n"},
        {"{\"a\":1,\"b\":2,\"a\":3}",
         "error: the key 'a' is already set at 1:2\n  at a.json:1:14\n  keep one of the two\n"},
    };
    for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

// Depth, number of values and size are limited, each with a message that says so.
TEST(JsonDocument, LimitsAreKept) {
    EXPECT_EQ(error_of(std::string(100'000, '[')), "error: nested deeper than 100 levels\n  at a.json:1:101\n");
    EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')), "no error");
    EXPECT_NE(error_of("[1,2,3]", {.max_nodes = 3}).find("more than 3 values"), std::string::npos);
    EXPECT_NE(error_of("[1,2,3]", {.max_bytes = 6}).find("7 bytes"), std::string::npos);
    EXPECT_NE(error_of("[\"\xFF\"]").find("0xFF"), std::string::npos);
}

}  // namespace
}  // namespace stoker
