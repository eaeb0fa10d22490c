#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/document.h"

namespace stoker {
namespace {

// Members keep their order; setting one again replaces its value in place.
TEST(Json, MembersKeepTheirOrder) {
    Json json = Json::object();
    json.set("b", 1).set("a", Json::array().push("x").push(true)).set("b", 2);
    EXPECT_EQ(json.dump(0), R"({"b":2,"a":["x",true]})");
    EXPECT_EQ(json.dump(2), "{\n  \"b\": 2,\n  \"a\": [\n    \"x\",\n    true\n  ]\n}");
    EXPECT_EQ(json.find("a")->dump(0), "[\"x\",true]");
    EXPECT_EQ(json.find("c"), nullptr);
    EXPECT_EQ(Json::array().dump(), "[]");
    EXPECT_EQ(Json::object().dump(), "{}");
}

// Doubles are as short as they can be, whole ones without a point or an exponent, and what is no number is null.
TEST(Json, NumbersAreShortAndExact) {
    EXPECT_EQ(Json(0.1).dump(), "0.1");
    EXPECT_EQ(Json(70e9).dump(), "70000000000");
    EXPECT_EQ(Json(1e300).dump(), "1e+300");
    EXPECT_EQ(Json(std::int64_t{-9007199254740993}).dump(), "-9007199254740993");
    EXPECT_EQ(Json(std::nan("")).dump(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(Json(-0.0).dump(), "0");
}

// Controls, line separators and bytes that are not UTF-8 cannot break what reads the output.
TEST(Json, TextIsEscaped) {
    EXPECT_EQ(Json("a\"\\\n\t\x01\x7F").dump(), R"("a\"\\\n\t\u0001\u007f")");
    EXPECT_EQ(Json("\xC3\xA9\xE2\x80\xA8\xC2\x85").dump(), "\"\xC3\xA9\\u2028\\u0085\"");
    EXPECT_EQ(Json("a\xFF"
                   "b")
                  .dump(),
              "\"a\xEF\xBF\xBD"
              "b\"");
}

// YAML is written in blocks; text that a reader of YAML 1.1 or 1.2 would take for something else is quoted.
TEST(Json, YamlIsWrittenInBlocks) {
    Json json = Json::object();
    json.set("kind", "training").set("model", Json::object().set("parameters", "70B").set("ids", Json::array()));
    json.set("list", Json::array().push(Json::object().set("a", 1).set("b", Json::array().push(2))).push("x"));
    EXPECT_EQ(json.dump_yaml(),
              "kind: training\nmodel:\n  parameters: 70B\n  ids: []\nlist:\n  - a: 1\n    b:\n      - 2\n  - x\n");
    for (const char* text : {"yes", "No",    "null",       "~",     "12",   "1e3", "0x10", "-x",  "a: b", "a #b", "",
                             " a",  "{{x}}", "2026-11-21", "12:30", "true", "*a",  "@x",   "a,b", "x:",   "\n"})
        EXPECT_EQ(Json(text).dump_yaml(), Json(text).dump() + "\n") << text;
    for (const char* text : {"70B", "14 days", "Standard_ND96isr_H100_v5", "a:b", "a#b", "80GB", "x.y/z"})
        EXPECT_EQ(Json(text).dump_yaml(), std::string(text) + "\n");
    EXPECT_EQ(Json().dump_yaml(), "null\n");
}

// Any text, as a key or a value, is read back from YAML and from JSON as it was.
TEST(Json, AnyTextIsReadBack) {
    for (char32_t c = 0; c < 0x3100; ++c) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        std::string text = "a";
        if (c < 0x80)
            text = std::string(1, static_cast<char>(c));
        else if (c < 0x800)
            text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
        else
            text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                    static_cast<char>(0x80 | (c & 0x3F))};
        if (c > 0x2100 && c < 0x3000) continue;
        for (const std::string& shape : {text, "x" + text, text + "x", "x " + text + " y"}) {
            const Json json = Json::object().set(shape, shape);
            const auto yaml = Document::parse_yaml(json.dump_yaml(), "y");
            ASSERT_TRUE(yaml.ok()) << json.dump_yaml() << yaml.error().text();
            ASSERT_EQ(yaml->root().members[0].key, shape) << json.dump_yaml();
            ASSERT_EQ(yaml->root().members[0].value->text, shape);
            ASSERT_EQ(yaml->root().members[0].value->kind, NodeKind::string) << json.dump_yaml();
            const auto read = Document::parse_json(json.dump(), "j");
            ASSERT_TRUE(read.ok()) << json.dump();
            ASSERT_EQ(read->root().members[0].value->text, shape);
        }
    }
    const std::string long_key(3000, 'k');
    const auto yaml = Document::parse_yaml(
        Json::array().push(Json::object().set(long_key, Json::object().set("a", 1))).dump_yaml(), "y");
    ASSERT_TRUE(yaml.ok()) << yaml.error().text();
    EXPECT_EQ(yaml->root().items[0]->find(long_key)->find("a")->number, 1);
}

}  // namespace
}  // namespace stoker
