// When this breaks, a script is read other than a shell reads it: rules speak of words that nobody wrote.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lint/shell/shell_test.h"

namespace stoker::lint {
namespace {

TEST(ReadShell, PartsUnquotedVariablesIntoWords) {
    EXPECT_EQ(read_script("A=\"--x 1 \\\n --y 2\"\nrun $A z").words(0), "run|--x|1|--y|2|z");
    EXPECT_EQ(read_script("A=\"--x 1\"\nrun \"$A\"").words(0), "run|--x 1");
    EXPECT_EQ(read_script("A=\"--x $(f a b)\"\nrun $A").words(1), "run|--x|?$(f a b)");
    const ReadScript read = read_script("A=\"--x 1\"\nrun $A");
    const Value& one = read.script().commands[0].words[2];
    EXPECT_EQ(read.file->source().text(one.span), "1");  // where it is written, not where it is used
    EXPECT_EQ(one.source->place(one.span.begin).line, 1u);
}

TEST(ReadShell, SpreadsArrays) {
    EXPECT_EQ(read_script("a=(run --x 1  # why\n 'y z')\n\"${a[@]}\" end").words(0), "run|--x|1|y z|end");
    EXPECT_EQ(read_script("a=(1 2)\na+=(3)\nrun \"${a[@]}\" ${a[1]}").words(0), "run|1|2|3|2");
    // What is added under a condition may be missing or there.
    EXPECT_EQ(read_script("a=(1)\nif [ $X ]; then a+=(2); fi\nrun \"${a[@]}\"").words(1), "run|1|?\"${a[@]}\"");
}

TEST(ReadShell, ReadsDirectives) {
    const ReadScript read = read_script(
        "#!/bin/bash\n#SBATCH -N2 --gres=gpu:8  # two\n#SBATCH -c 12\n##SBATCH -t 1\n# SBATCH --time=1\nrun\n#SBATCH "
        "--qos=x");
    const auto& all = read.script().directives;
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[0].option, "nodes");
    EXPECT_EQ(all[0].value.text, "2");
    EXPECT_EQ(all[1].value.text, "gpu:8");
    EXPECT_EQ(all[2].option, "cpus-per-task");
    EXPECT_TRUE(all[3].malformed);
    EXPECT_TRUE(all[4].after_command);
}

TEST(ReadShell, ReadsOnlyDirectivesOfOtherLanguages) {
    const ReadScript read =
        read_script("#!/usr/bin/env python3\n#SBATCH --nodes=2\nimport os\nx = 'a\"b'\n#SBATCH --late\n");
    EXPECT_TRUE(read.script().commands.empty());
    ASSERT_EQ(read.script().directives.size(), 2u);
    EXPECT_TRUE(read.script().directives[1].after_command);
    EXPECT_TRUE(read.file->problems.empty());
}

TEST(ReadShell, TellsWhatAShellRefuses) {
    EXPECT_EQ(script_problem("echo \"a"), "SYN001 a double quote that is not closed");
    EXPECT_EQ(script_problem("echo $(a"), "SYN001 a '$(' that is not closed");
    EXPECT_EQ(script_problem("if a; then b"), "SYN001 an 'if' without 'fi'");
    EXPECT_EQ(script_problem("a)"), "SYN001 a ')' without its '('");
    EXPECT_EQ(script_problem("if ! (. /x && [[ $a =~ (x|y) ]]) 2>/dev/null; then :; fi; time (a); ! ! (b)"), "");
    EXPECT_EQ(script_problem("cat <<EOF\nx"), "");  // a warning of bash, no more
    EXPECT_EQ(script_problem("X=<PATH> (e.g. x)\n"), "SYN003 a '(' where none can stand");
    EXPECT_EQ(script_problem("echo \"{{ name }}"), "SYN003 a double quote that is not closed");
    EXPECT_EQ(script_problem(
                  "case x in a|b) c;; (*) d;; esac; [[ a =~ ^(x|y)$ ]] && ((i++)); for ((i=0;i<3;i++)); do :; done"),
              "");
    EXPECT_EQ(script_problem("x=$((1+(2*3))) y=$( (a) ) z=${a:-$(b \"c\")} w=`d \"e\"`"), "");
}

TEST(ReadShell, StopsAtDepthAndAtBombs) {
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += "$(";
    EXPECT_EQ(script_problem(deep).substr(0, 6), "SYN005");
    // Every word within another is looked at by many rules: what nobody writes must not cost its depth times its size.
    const auto nested = [](int depth) {
        std::string text = "x";
        for (int i = 0; i < depth; ++i) text = "echo $(" + text + ")";
        return script_problem(text).substr(0, 6);
    };
    EXPECT_EQ(nested(29), "");
    EXPECT_EQ(nested(31), "SYN005");
    std::string bomb = "a0=xxxxxxxxxx\n";
    for (int i = 1; i < 40; ++i)
        bomb += "a" + std::to_string(i) + "=\"$a" + std::to_string(i - 1) + "$a" + std::to_string(i - 1) + "\"\n";
    const ReadScript read = read_script(bomb + "run $a39\n");
    EXPECT_TRUE(read.script().commands[0].words.at(1).unknown());
}

// Every span lies in the text, whatever the text is.
RC_GTEST_PROP(ReadShell, SpansLieInTheText, ()) {
    const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "a", " ", "\n", "'", "\"", "$", "$(", ")", "`", "${", "}", "X=", "$X", "\\", "<<E\n", "E\n", "if ", "fi\n", "(",
        "=(", "#", "#SBATCH -N 2\n", "|", "&&", ";", "[[ ", "]] ", "case x in", "esac", "\r\n"));
    std::string text;
    for (const std::string& part : parts) text += part;
    const ReadScript read = read_script(text);
    for (const Command& command : read.script().commands) {
        RC_ASSERT(command.span.begin <= command.span.end && command.span.end <= text.size());
        for (const Value& word : command.words)
            RC_ASSERT(word.source && word.span.begin <= word.span.end && word.span.end <= text.size());
        for (const Redirect& redirect : command.redirects) RC_ASSERT(redirect.body.end <= text.size());
    }
    for (const Assignment& assignment : read.script().assignments) RC_ASSERT(assignment.span.end <= text.size());
}

// A script that bash refuses for an open quote or parenthesis, or takes, is told so; skipped where bash is missing.
TEST(ReadShell, AgreesWithBash) {
    if (std::system("bash -c true > /dev/null 2>&1") != 0) GTEST_SKIP() << "no bash";
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / ("stoker_shell_" + std::to_string(::getpid()) + ".sh");
    for (const std::string text :
         {"a=(1 2\n)\nrun \"${a[@]}\"\n", "f() (x; y)\n", "while read -r l; do x; done < <(cat f)\n",
          "x \"$(y \"z\")\"\n", "if a; then b; elif c; then d; else e; fi\n", "cat <<'E'\n\"\nE\n",
          "case $x in a) ;; b) y ;; esac\n", "x=${y:-'z'}\n", "echo \"a\n", "f() { x\n", "for i in 1; do x\n",
          "x | \n y\n", "a && # c\n b\n", "[[ a < b ]]\n", "x $'a\\'b'\n", "((a = 1 << 2))\n",
          "echo ${#a[@]} ${a[*]:1:2}\n", "if x; then\n", "x='a\n"}) {
        std::ofstream(file) << text;
        const bool accepted = std::system(("bash -n " + file.string() + " > /dev/null 2>&1").c_str()) == 0;
        EXPECT_EQ(script_problem(text).empty(), accepted) << text;
    }
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace stoker::lint
