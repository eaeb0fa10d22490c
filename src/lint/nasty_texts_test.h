// Texts that readers of YAML and JSON stumble over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::lint {

inline std::string nested_text(std::string_view open, std::string_view middle, std::string_view close, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += open;
    text += middle;
    for (int i = 0; i < times; ++i) text += close;
    return text;
}
inline std::string nested_block(int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    return text + std::string(static_cast<std::size_t>(times), ' ') + "b";
}

// clang-format off
// Anchors and merges, block scalars, plain scalars, quotes, tags, blanks and line ends, doubles and templates, depth, size.
inline std::vector<std::string> nasty_yaml() {
    return {
        "a: &x 1\nb: *x\n", "a: &x {p: 1, q: [2]}\nb: *x\nc: [*x, *x]\n", "a: &x 1\nb: &x 2\nc: *x\n",
        "a: *nowhere\n", "a: &x [*x]\n", "a: &x 1\nb: &x [*x]\n", "a: &x [1, *x]\n", "a: &x\nb: *x\n",
        "base: &b {p: 1, q: 2}\nd:\n  <<: *b\n  q: 3\n  r: 4\n",
        "p: &p {a: 1, b: 2}\nq: &q {b: 3, c: 4}\nr:\n  <<: [*p, *q]\n  z: 0\n", "p: &p {a: 1}\nr: {<<: *p, a: 2}\n",
        "a: {'<<': {b: 1}}\n", "p: &p {<<: {a: 1}, b: 2}\nq: {<<: *p}\n", "a: &b\n  c: *b\n", "*a : 1\n",
        "a: &x b\n*x : 1\n", "a: |\n  one\n   two\n\n  three\n", "a: |-\n  one\n\n\n", "a: |+\n  one\n\n\nb: 1\n",
        "a: >\n  one\n  two\n\n  three\n   four\n  five\n", "a: |2\n   one\n  two\n", "a: |1-\n one\n",
        "a: >-2\n    one\n", "a: |\n\n\n  late\n", "a: |\n", "a: >\n\n", "- |\n x\n- >+\n y\n\n",
        "a: |\n  tab\there\n\ttab\n", "a: | # comment\n  text # no comment\n", "a: |9\n  x\n", "a: |0\n  x\n",
        "--- |\nx\n", "--- >\n x\n y\n", "a: 0o17\nb: 0o8\nc: 0x1F\nd: 0xg\ne: 017\nf: 0b2\ng: 08\n",
        "- 1.\n- .5\n- .\n- -\n- +\n- 1e5\n- 1E+5\n- 1e\n- -1\n- +1\n- 1.2.3\n- 1:30\n",
        "- null\n- Null\n- NULL\n- nULL\n- ~\n-\n- ''\n- ' '\n",
        "- true\n- True\n- TRUE\n- tRUE\n- false\n- FALSE\n- y\n- n\n- 'true'\n", "a: yes\nb: off\n", "a: No\n",
        "- 123456789012345678901234567890\n- 0.1234567890123456789\n- -0\n- 1e308\n- 1e-400\n",
        "a: 2026-11-22\nb: 12:30:45\nc: 1_000\nd: +0x1F\n", "a: b c  d\n", "a: b # c\nd: e#f\n", "a: b\n c\n  d\n",
        "- - - a\n  - b\n- c\n", "a: -b\nc: ?d\ne: :f\n", "http://x: y\na:b: c\n", "a:\n- 1\n- 2\nb: 3\n",
        "? a\n: b\n", "? a\n? b\n", "a: [b, c, ]\n", "{a, b: c, d: }\n", "[a: b, c]\n", "[]\n", "{}\n",
        "a: []\nb: {}\n", "x", "'x'", "5", "- a\nb: c\n", "a: b: c\n", "a: @b\n", "a: `b\n", "a: %b\n",
        "%YAML 1.1\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "%YAML 3.0\n---\na: 1\n",
        "%TAG ! tag:x,2000:\n---\na: 1\n", "---\na: 1\n...\n", "---\n", "--- x\n", "...\n", "a: 'it''s'\n",
        "a: \"\\t\\x41\\u00e9\\U0001F600\\e\\0\\N\\_\\L\\P\\/\"\n", "a: \"\\q\"\n", "a: \"\\ud83d\\ude00\"\n",
        "a: \"\\ud800\"\n", "a: \"one\n  two\n\n  three\"\n", "a: 'one\n  two'\n", "a: \"one \\\n   two\"\n",
        "a: \"open\n", "a: 'open\n", "\"a b\": 1\n'c': 2\n", "\"\": 1\n", "a: \"\\u12\"\n",
        "a: !!str 5\nb: !!int 5\nc: !!int '5'\nd: !!float 1\ne: !!null ''\nf: !!bool true\ng: ! 5\n",
        "a: !!seq [1]\nb: !!map {c: 1}\n", "a: !!str\n", "a: !!set {b}\n", "a: !!binary aGk=\n",
        "a: !<tag:yaml.org,2002:int> 7\n", "a:\tb\n", "a: b\t\n", "\ta: b\n", "a:\n\tb: c\n", "- a\n-\tb\n",
        "a: 1\r\nb: 2\r\n", "a: |\r\n  x\r\n  y\r\n", "a: 1\rb: 2\r", "\xEF\xBB\xBF" "a: 1\n", "\xEF\xBB\xBF",
        "a: 1\n\xEF\xBB\xBF" "b: 2\n", "a: \xC2\x85x\n", "a: \xE2\x80\xA8x\n", "\xC3\xBC: \xF0\x9F\x98\x80\n",
        "a: \xFF\n", "a: \xC0\x80\n", "a: \xED\xA0\x80\n", std::string("a: b\0c\n", 7), "a: \x07\n", "a: \x7F\n",
        "\xFF\xFE" "a\0", "a: b   \n\n\n", "   \n", "\n\n# c\n", "  a: 1\n  b: 2\n", "a: 1\n b: 2\n",
        "a:\n  b: 1\n c: 2\n", "a: 1 # x\n# y\nb: 2", "a: 1\nb: 2\na: 3\n", "{a: 1, a: 1}\n", "a: {{ .Values.x }}\n",
        "a: \"{{ .Values.x }}\"\n", "{% if x %}\na: 1\n", "a: <b>\nc: ${D}\ne: @F@\n", nested_text("[", "1", "]", 60),
        nested_text("[", "1", "]", 99), nested_text("[", "1", "]", 101), nested_text("{a: ", "1", "}", 60), nested_block(90),
        nested_text("- ", "1", "", 90), nested_text("[", "", "", 30), "a: " + std::string(100'000, 'x') + "\n",
        std::string(2000, 'k') + ": 1\n", "? " + std::string(2000, 'k') + "\n: 1\n",
    };
}

inline std::vector<std::string> nasty_json() {
    return {
        "{}", "[]", "null", "true", "5", "\"x\"", " [ 1 , 2 ] \n",
        "{\"a\": {\"b\": [1, 2.5e3, -0, 1E-9, \"c\", null, true, false]}}", "{\"b\": 1, \"a\": 2, \"\": 3}", "[01]",
        "[1.]", "[.5]", "[+1]", "[-]", "[1e]", "[1e+]", "[0x10]", "[1abc]", "[NaN]", "[Infinity]", "[-Infinity]",
        "[1_000]", "[--1]", "[1.2.3]", "[-0.0]", "[0e0]", "[123456789012345678901234567890]", "[1e308]", "[1e-400]",
        "[tru]", "[truee]", "[True]", "[nul]", "[undefined]", "['a']", "{a: 1}", "{'a': 1}", "{\"a\" 1}", "{\"a\":}",
        "{\"a\"}", "{,}", "[,]", "[1 2]", "[1,,2]", "{\"a\": 1 \"b\": 2}", "[1", "{\"a\": 1", "[\"a", "[\"a\n\"]",
        "[\"a\tb\"]", "[\"a\\tb\"]", "[\"\x01\"]", "[\"\x7F\"]", "[\"\\q\"]", "[\"\\\"\"]",
        "[\"\\/\\b\\f\\n\\r\\t\\\\\"]", "[\"\\u00e9\\u20ac\\ud83d\\ude00\"]", "[\"\\u12\"]", "[\"\\u12G4\"]",
        "[\"\\u\"]", "[\"\\ud83d\"]", "[\"\\ude00\"]", "[\"\\ud83d\\u0041\"]", "[\"\\u0000\"]",
        "[\"\xC3\xBC\xF0\x9F\x98\x80\"]", "[\"\xFF\"]", "[\"\xC0\x80\"]", "[\"\xED\xA0\x80\"]",
        "\xEF\xBB\xBF{\"a\": 1}", "{\r\n\"a\": 1\r\n}\r\n", "[1] [2]", "[1]x", "{} // c", "/* c */ {}", "# c\n{}",
        "{\"a\": 1,}", "[1,]", "{\"a\": 1, \"a\": 2}", "\t{}", "\v{}", "\xC2\xA0{}", std::string("[1\0]", 4),
        nested_text("[", "1", "]", 99), nested_text("[", "1", "]", 101), nested_text("{\"a\": ", "1", "}", 99),
        nested_text("[", "", "", 500), "[\"" + std::string(100'000, 'x') + "\"]", "", "  ", "[\"a\\\nb\"]", "[1,\n2\n,3]",
        "\"a\": 1",
    };
}
// clang-format on

}  // namespace stoker::lint
