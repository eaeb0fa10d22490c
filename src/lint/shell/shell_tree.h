// The structure of a script: its lists, branches, loops and functions as a tree over ranges of the text, for whoever
// follows what happens when it runs (shell_trace.h). It holds no value of a word, only where each stands.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lint/source.h"

namespace stoker::lint {

struct ShellFeed {        // a redirection
    std::string_view op;  // "<", "<<", "<<<", ">", ">>", ...
    Span target;
    Span body;  // of a heredoc
    bool literal = false, strip = false;
};

struct ShellNode {
    enum class Kind : std::uint8_t {
        simple,
        sequence,
        pipeline,
        both,        // a && b
        either,      // a || b
        negated,     // ! a
        choice,      // if: condition, list, condition, list ... else
        loop,        // while: condition, body
        each,        // for name in words: body
        counting,    // for ((a; b; c)): body
        cases,       // case words[0]: a body for each of `patterns`
        function,    // body
        group,       // { }
        subshell,    // ( )
        test,        // [[ words ]]
        arithmetic,  // (( words[0] ))
    };
    Kind kind = Kind::simple;
    bool until = false, listed = false;  // a loop that ends when its condition holds; a `for` with `in`
    std::string_view name;
    std::vector<int> kids;
    std::vector<Span> words;
    std::vector<ShellFeed> feeds;
    std::vector<std::vector<Span>> patterns;
};

// Nodes by index, so that a script with a million of them needs no recursion to be let go.
struct ShellTree {
    std::vector<ShellNode> nodes;
    int root = -1;  // none: it is no script that can be followed
};

ShellTree shell_tree(std::string_view text, Span range);
// Where the word ends that begins at `at`.
std::uint32_t shell_word_end(std::string_view text, std::uint32_t at, std::uint32_t end);

}  // namespace stoker::lint
