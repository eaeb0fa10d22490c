// What breaks: a script that sets a size by a branch, a loop or a function is checked for nothing, or for what it never
// runs.
#include "lint/shell/shell_trace.h"

#include <gtest/gtest.h>

#include "lint/shell/shell_values.h"

namespace stoker::lint {
namespace {

// The words of each run of `show`, with blanks between them; what is not known is a "?".
std::vector<std::string> shown(const std::string& script, const ReadOptions& options = {}) {
    File file("a.sh", script);
    file.kinds.add(Kind::launch);
    read_shell(file, options);
    const ShellTrace trace(file, options);
    std::vector<std::string> lines;
    for (const Command& command : file.script.commands) {
        if (command.name() != "show") continue;
        const auto* runs = trace.runs(command.words[0].span.begin);
        if (!runs) continue;
        for (const auto& words : *runs) {
            std::string line;
            for (std::size_t k = 1; k < words.size(); ++k)
                line += (k > 1 ? " " : "") + (words[k].known ? words[k].text : std::string("?"));
            lines.push_back(line);
        }
    }
    return lines;
}
using Lines = std::vector<std::string>;

TEST(ShellTrace, OneWayOfAConditionThatIsKnown) {
    EXPECT_EQ(shown("E=prod\nif [ \"$E\" = prod ]; then S=a; else S=b; fi\nshow $S\n"), Lines{"a"});
    EXPECT_EQ(shown("E=prod\n[[ $E == p* && -n $E ]] && S=a || S=b\nshow $S\n"), Lines{"a"});
    EXPECT_EQ(shown("case gold in silver|bronze) S=a ;; g*) S=b ;; *) S=c ;; esac\nshow $S\n"), Lines{"b"});
}

TEST(ShellTrace, BothWaysOfOneThatIsNot) {
    EXPECT_EQ(shown("S=a\nif test -e /x; then S=b; fi\nshow $S\n"), Lines{"?"});
    EXPECT_EQ(shown("if test -e /x; then S=b; else exit 1; fi\nshow $S\n"), Lines{"b"});
    EXPECT_EQ(shown("if test -e /x; then show a; else show b; fi\n"), (Lines{"a", "b"}));
}

TEST(ShellTrace, LoopsByTheirWords) {
    EXPECT_EQ(shown("for s in a b; do show $s; done\n"), (Lines{"a", "b"}));
    EXPECT_EQ(shown("for ((i = 0; i < 2; i++)); do show $i; done\n"), (Lines{"0", "1"}));
    EXPECT_EQ(shown("while IFS=, read -r a b; do show $b; done <<X\n1,one\n2,two\nX\n"), (Lines{"one", "two"}));
    EXPECT_EQ(shown("mapfile -t l < <(printf '%s\\n' a b)\nshow \"${l[@]}\" ${#l[@]}\n"), Lines{"a b 2"});
}

TEST(ShellTrace, FunctionsWithTheirArguments) {
    EXPECT_EQ(shown("f() { local s=$1; shift; show $s \"$@\"; }\nf a b\nf c\n"), (Lines{"a b", "c"}));
    EXPECT_EQ(shown("f() { case $1 in a) echo \"x-$1\" ;; *) echo y ;; esac; }\nshow \"$(f a)\" $(f b)\n"),
              Lines{"x-a y"});
    EXPECT_EQ(shown("f() { local -n l=$1; show \"${l[@]}\"; }\nx=(a b)\nf x\n"), Lines{"a b"});
}

TEST(ShellTrace, TextsAsTheyAreChanged) {
    EXPECT_EQ(shown("printf -v s 'n%02d' 7\nshow $s ${s/n/m} ${s^^} ${s:1} ${s#n}\n"), Lines{"n07 m07 N07 07 07"});
    EXPECT_EQ(shown("show $(echo nc6 | tr a-z A-Z) $(echo a:b | cut -d: -f2) $(echo ab | sed 's/\\(a\\)b/\\1c/')\n"),
              Lines{"NC6 b ac"});
    EXPECT_EQ(shown("declare -A t=([a]=1 [b]=2)\nshow ${t[b]} ${t[c]:-${t[a]}} $((${t[b]} * 4))\n"), Lines{"2 1 8"});
    EXPECT_EQ(shown("a=(x)\na+=(y z)\nshow \"${a[@]}\" ${a[-1]} ${b:+--no}\n"), Lines{"x y z z"});
}

TEST(ShellTrace, WhatNobodySaysIsNotKnown) {
    EXPECT_EQ(shown("show $1 $UNSET $(date)\n"), Lines{"? ? ?"});
    EXPECT_EQ(shown("read -r s\nshow $s\n"), Lines{"?"});
}

TEST(ShellTrace, EndsWhateverItIsGiven) {
    EXPECT_EQ(shown("while true; do x=$x$x$x$x; done\nshow a\n").size(), 1u);
    EXPECT_LE(shown("f() { f; f; }\nf\nshow a\n").size(), 1u);
    EXPECT_TRUE(shown("for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4 5 6 7 8; do for c in 1 2 3 4 5 6 7 8; do for d in "
                      "1 2 3 4 5 6 7 8; do for e in "
                      "1 2 3 4 5 6 7 8; do for f in 1 2 3 4 5 6 7 8; do show $f; done; done; done; done; done; done\n")
                    .size() <= 32);
    std::string deep;
    for (int k = 0; k < 300; ++k) deep += "$(echo ";
    shown("x=" + deep + "\nshow $x\n");
    for (const char* broken :
         {"if", "case x in", "for", "while x; do", "f() {", "((", "[[", "${", "$((1/0))", "a[$((0-9))]=1", "<<X"})
        shown(std::string(broken) + "\nshow a\n");
}

}  // namespace
}  // namespace stoker::lint
