#include <gtest/gtest.h>

#include "base/document.h"

namespace stoker {
namespace {

Document read(std::string_view text, const ReadLimits& limits = {}) {
    auto document = Document::parse_yaml(text, "w.yaml", limits);
    if (document) return std::move(*document);
    ADD_FAILURE() << document.error().text();
    return Document(std::make_unique<Node>());
}

std::string error_of(std::string_view text, const ReadLimits& limits = {}) {
    const auto document = Document::parse_yaml(text, "w.yaml", limits);
    return document ? "no error" : document.error().text();
}

const Node& at(const Document& document, std::string_view key) {
    static const Node none;
    const Node* node = document.root().find(key);
    if (node == nullptr) ADD_FAILURE() << "no key " << key;
    return node == nullptr ? none : *node;
}

// Every key and every value knows its line and its column, in bytes, from 1.
TEST(Yaml, KeysAndValuesKnowTheirPlaces) {
    const Document document = read("kind: training\nmodel: {family: llama,\n  size: 70B}\nlist:\n  - a\n  - b: 1\n");
    const Node& model = at(document, "model");
    EXPECT_EQ(document.root().members[0].key_pos, (SourcePos{"w.yaml", 1, 1}));
    EXPECT_EQ(at(document, "kind").pos, (SourcePos{"w.yaml", 1, 7}));
    EXPECT_EQ(model.pos, (SourcePos{"w.yaml", 2, 8}));
    EXPECT_EQ(model.members[1].key_pos, (SourcePos{"w.yaml", 3, 3}));
    EXPECT_EQ(model.find("size")->pos, (SourcePos{"w.yaml", 3, 9}));
    EXPECT_EQ(at(document, "list").items[1]->pos, (SourcePos{"w.yaml", 6, 5}));
}

// Columns count bytes also behind letters that take several, with Windows line ends and a byte order mark.
TEST(Yaml, PlacesAreRightBehindOtherAlphabets) {
    std::string text = "\xEF\xBB\xBF# \xE4\xBD\xA0\xE5\xA5\xBD\r\n";
    for (int i = 0; i < 200; ++i) text += "k\xC3\xA9" + std::to_string(i) + ": \"\xF0\x9F\x9A\x80\" # \xC3\xA9\r\n";
    text += "\xC3\xA9t\xC3\xA9: x\r\n";
    const Document document = read(text);
    EXPECT_EQ(at(document, "\xC3\xA9t\xC3\xA9").pos, (SourcePos{"w.yaml", 202, 8}));
    EXPECT_EQ(document.root().members[199].key_pos, (SourcePos{"w.yaml", 201, 1}));
}

// Scalars follow the core schema of YAML 1.2: yes is text, 0o17 is octal, a quoted number is text.
TEST(Yaml, ScalarsFollowTheCoreSchema) {
    const Document document = read(
        "[true, yes, ~, null, 12, -1.5e3, .5, 0x1F, 0o17, 1_000, '12', \"a\\u00e9\", 70B, 007, +3, '', !!str 12, "
        "!!float 1]");
    const auto& items = document.root().items;
    const std::pair<NodeKind, double> expected[] = {
        {NodeKind::boolean, 0}, {NodeKind::string, 0},     {NodeKind::null, 0},    {NodeKind::null, 0},
        {NodeKind::number, 12}, {NodeKind::number, -1500}, {NodeKind::number, .5}, {NodeKind::number, 31},
        {NodeKind::number, 15}, {NodeKind::string, 0},     {NodeKind::string, 0},  {NodeKind::string, 0},
        {NodeKind::string, 0},  {NodeKind::number, 7},     {NodeKind::number, 3},  {NodeKind::string, 0},
        {NodeKind::string, 0},  {NodeKind::number, 1},
    };
    ASSERT_EQ(items.size(), std::size(expected));
    for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_EQ(items[i]->kind, expected[i].first) << i << " " << items[i]->text;
        EXPECT_EQ(items[i]->number, expected[i].second) << i;
    }
    EXPECT_EQ(items[11]->text, "a\xC3\xA9");
    EXPECT_TRUE(items[10]->quoted);
    EXPECT_EQ(at(read("a: |\n  x\n  y\nb: >-\n  x\n  y\n"), "a").text, "x\ny\n");
}

// A key that is set twice is refused with both places, in small mappings and in large ones.
TEST(Yaml, DuplicateKeysAreRefusedWithBothPlaces) {
    EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"),
              "error: the key 'a' is already set at 1:1\n  at w.yaml:3:1\n  keep one of the two\n");
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "key" + std::to_string(i) + ": 1\n";
    EXPECT_EQ(error_of(text), "no error");
    EXPECT_EQ(error_of(text + "key7: 2\nkey3: 2\n"),
              "error: the key 'key7' is already set at 8:1\n  at w.yaml:1001:1\n  keep one of the two\n");
}

// Aliases are copies that keep the place where the value was written.
TEST(Yaml, AliasesAreCopiesOfTheirAnchor) {
    const Document document = read("base: &b {gpus: 8}\nother: *b\nagain: &b 5\nlast: *b\n");
    EXPECT_EQ(at(document, "other").find("gpus")->number, 8);
    EXPECT_EQ(at(document, "other").find("gpus")->pos, (SourcePos{"w.yaml", 1, 17}));
    EXPECT_EQ(at(document, "last").number, 5);
    EXPECT_EQ(error_of("a: *nobody\n"), "error: the alias *nobody has no anchor &nobody before it\n  at w.yaml:1:4\n");
    EXPECT_EQ(error_of("a: &x [1, *x]\n"), "error: the alias *x stands inside the value it names\n  at w.yaml:1:11\n");
}

// Merge keys bring in what is not set, the first source first; anchors inside a merged value stay usable.
TEST(Yaml, MergeKeysFillInWhatIsNotSet) {
    const Document document = read(
        "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\nd:\n  <<: &m {p: &q 7}\ne: *q\nf: *m\n");
    const Node& c = at(document, "c");
    EXPECT_EQ(c.find("x")->number, 3);
    EXPECT_EQ(c.find("y")->number, 1);
    EXPECT_EQ(c.find("z")->number, 2);
    EXPECT_EQ(c.find("<<"), nullptr);
    EXPECT_EQ(at(document, "e").number, 7);
    EXPECT_EQ(at(document, "f").find("p")->number, 7);
    EXPECT_EQ(at(read("'<<': 1\n"), "<<").number, 1);
    EXPECT_NE(error_of("a: {<<: 5}\n").find("merges a mapping"), std::string::npos);
    EXPECT_NE(error_of("a: {<<: [5]}\n").find("merges a mapping"), std::string::npos);
    EXPECT_NE(error_of("x: &x {a: 1}\nb: {<<: *x, <<: *x}\n").find("already set"), std::string::npos);
}

// A few hundred bytes cannot grow into gigabytes, by number, by length or by depth.
TEST(Yaml, AliasesCannotExplode) {
    std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 10; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
        for (int k = 0; k < 8; ++k) bomb += "," + before;
        bomb += "]\n";
    }
    EXPECT_NE(error_of(bomb, {.max_nodes = 10'000}).find("more than 10000 values"), std::string::npos);
    std::string large = "a: &a " + std::string(100'000, 'x') + "\nb: [*a";
    for (int i = 0; i < 500; ++i) large += ",*a";
    EXPECT_NE(error_of(large + "]\n").find("aliases expand"), std::string::npos);
    EXPECT_NE(error_of("a: &a 1\nb: [*a, *a, *a]\n", {.max_aliases = 2}).find("more than 2 aliases"),
              std::string::npos);
    std::string deep = "a0: &a0 [x]\n";
    for (int i = 1; i < 120; ++i)
        deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
    EXPECT_NE(error_of(deep).find("nested deeper than 100 levels"), std::string::npos);
}

// Half a megabyte of brackets ends at the depth limit at once.
TEST(Yaml, DeepNestingEndsAtTheLimit) {
    EXPECT_EQ(error_of(std::string(500'000, '[')), "error: nested deeper than 100 levels\n  at w.yaml:1:101\n");
    std::string dashes;
    for (int i = 0; i < 100'000; ++i) dashes += "- ";
    EXPECT_NE(error_of(dashes).find("nested deeper"), std::string::npos);
    EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')), "no error");
}

// Size, encoding and UTF-8 are checked before anything is parsed.
TEST(Yaml, SizeAndEncodingAreCheckedFirst) {
    EXPECT_EQ(error_of("a: 12345", {.max_bytes = 4}),
              "error: the file has 8 bytes, more than the 4 that are read\n  at w.yaml\n");
    using namespace std::string_view_literals;
    EXPECT_NE(error_of("\xFF\xFE"
                       "a\0"sv)
                  .find("UTF-16"),
              std::string::npos);
    EXPECT_NE(error_of("a\0:\0"sv).find("UTF-16"), std::string::npos);
    EXPECT_EQ(error_of("a: 1\nb: \xC3(\n"),
              "error: the byte 0xC3 is not valid UTF-8 here\n  at w.yaml:2:4\n  save the file as UTF-8\n");
    EXPECT_EQ(error_of("\xC3\xA9: 1\nab: \x01\n"),
              "error: the character U+0001 is not allowed in YAML\n  at w.yaml:2:5\n");
}

// What is not one document of plain data is refused: nothing, several documents, foreign tags, keys that are
// collections.
TEST(Yaml, OnlyOneDocumentOfPlainDataIsRead) {
    EXPECT_EQ(error_of(""), "error: the file is empty\n  at w.yaml:1:1\n");
    EXPECT_EQ(error_of(" \n\n"), "error: the file is empty\n  at w.yaml:1:1\n");
    EXPECT_EQ(error_of("# nothing\n"), "error: the file holds no value, only comments\n  at w.yaml:1:1\n");
    EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"),
              "error: one document is expected, and a second one starts at line 2\n  at w.yaml:2:1\n  keep one "
              "document per file\n");
    EXPECT_EQ(error_of("---\na: 1\n...\n"), "no error");
    EXPECT_EQ(error_of("a: !Secret x\n"),
              "error: the tag !Secret is not supported\n  at w.yaml:1:4\n  write the value without a tag\n");
    EXPECT_NE(error_of("a: !!set {x}\n").find("not supported"), std::string::npos);
    EXPECT_NE(error_of("a: !!int x\n").find("is not what its tag"), std::string::npos);
    EXPECT_NE(error_of("{{ .Values.gpus }}: 1\n").find("render it first"), std::string::npos);
    EXPECT_NE(error_of("? [a]\n: 1\n").find("a key must be plain text"), std::string::npos);
    EXPECT_NE(error_of("?\n: 1\n").find("a key is missing"), std::string::npos);
}

// Numbers that are none, or too large for a double, are errors with a place rather than infinities.
TEST(Yaml, NumbersOutOfRangeAreErrors) {
    EXPECT_EQ(error_of("a:\n  b: .nan\n"),
              "error: '.nan' is not a finite number in range\n  at w.yaml:2:6\n  put it in quotes if text is meant\n");
    EXPECT_NE(error_of("a: -.inf\n").find("not a finite number"), std::string::npos);
    EXPECT_NE(error_of("a: 1e999\n").find("not a finite number"), std::string::npos);
    EXPECT_EQ(error_of("a: '1e999'\n"), "no error");
}

// The mistakes that people make most are told in words that do not need a knowledge of YAML's grammar.
TEST(Yaml, CommonMistakesAreToldPlainly) {
    EXPECT_EQ(error_of("a:\n\tb: 1\n"),
              "error: a tab stands where YAML allows only blanks\n  at w.yaml:2:1\n  indent with blanks\n");
    EXPECT_EQ(error_of("a: b: c\n"),
              "error: a ':' is not expected here\n  at w.yaml:1:5\n  check the indentation, or put the value before it "
              "in quotes\n");
    EXPECT_EQ(error_of("a: 'x\nb: 1\n"), "error: the quote that opens here is not closed\n  at w.yaml:1:4\n");
    EXPECT_EQ(error_of("a: @x\n"),
              "error: a value cannot begin with '@'\n  at w.yaml:1:4\n  put the value in quotes\n");
    EXPECT_EQ(error_of("a: [1, 2\nb: 3\n"),
              "error: a comma or ] is expected here, inside the [ that opens at 1:4\n  at w.yaml:2:2\n");
    EXPECT_EQ(error_of("a: 1\n b: 2\n"),
              "error: a ':' is not expected here\n  at w.yaml:2:3\n  check the indentation, or put the value before it "
              "in quotes\n");
    EXPECT_EQ(error_of("a: 1\nb\n"),
              "error: a ':' is missing behind the key that begins here\n  at w.yaml:2:1\n  write key: value\n");
    EXPECT_EQ(error_of("  a: 1\n b: 2\n"),
              "error: this does not belong to the value above it, which has ended\n  at w.yaml:2:2\n  check the "
              "indentation\n");
    EXPECT_EQ(error_of("a:\n  - 1\n  b: 2\n"),
              "error: an item with '-' is expected here, inside the list that begins at 2:3\n  at w.yaml:3:3\n  check "
              "the indentation\n");
    EXPECT_EQ(error_of("a:\n  b: 1\n - c\n"),
              "error: a key is expected here, inside the mapping that begins at 1:1\n  at w.yaml:3:2\n  check the "
              "indentation\n");
}

// The reader is chosen by the name of the file; everything but .json is YAML.
TEST(Yaml, TheNameOfTheFileChoosesTheReader) {
    EXPECT_TRUE(Document::parse("a: 1", "x.yml").ok());
    EXPECT_FALSE(Document::parse("a: 1", "x.JSON").ok());
    EXPECT_TRUE(Document::parse("{\"a\": 1}", "stdin").ok());
}

// What people forget most: the blank behind a colon, and to close what they opened. The place is where it belongs.
TEST(YamlDocument, CommonSlipsAreNamedWhereTheyAre) {
    const auto said = [](const char* text) {
        const auto document = Document::parse_yaml(text, "w.yaml");
        return document ? std::string() : document.error().text();
    };
    EXPECT_EQ(said("version:1\nkind: training\n"),
              "error: a blank is missing behind this ':'\n  at w.yaml:1:8\n  write key: value\n");
    EXPECT_EQ(said("a: 1\nb: [1, 2\n"),
              "error: a comma or ] is expected here, inside the [ that opens at 2:4\n  at w.yaml:2:4\n");
    EXPECT_EQ(said("a: [*]\n"),
              "error: a name is expected behind '*'\n  at w.yaml:1:5\n  put the value in quotes if text is meant\n");
    EXPECT_EQ(said("a: \"C:\\data\"\n"),
              "error: a backslash in double quotes begins an escape, and there is none of this letter\n"
              "  at w.yaml:1:7\n  write two backslashes, or use single quotes\n");
}

}  // namespace
}  // namespace stoker
