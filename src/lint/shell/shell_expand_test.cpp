// When this breaks, a rule speaks of a number that the script never has, or misses the one it has.
#include <gtest/gtest.h>

#include "lint/shell/shell_test.h"

namespace stoker::lint {
namespace {

TEST(ShellExpand, FollowsVariablesWithOneValueAndDefaults) {
    EXPECT_EQ(read_script("N=8\nrun --n=$N ${N} \"${N}x\"").words(0), "run|--n=8|8|8x");
    EXPECT_EQ(read_script("run ${M:-4} ${M-5} $M").words(0), "run|4|5|?$M");
    EXPECT_EQ(read_script("N=${N:-8}\nrun $N").words(0), "run|8");
    // Straight-line code: the last one counts; in a branch, or before it is written, nobody knows.
    EXPECT_EQ(read_script("N=1\nN=2\nrun $N").words(0), "run|2");
    EXPECT_EQ(read_script("N=1\nif x; then N=2; fi\nrun $N").words(1), "run|?$N");
    EXPECT_EQ(read_script("N=1\nrun $N\nN=2").words(0), "run|?$N");
    EXPECT_EQ(read_script("f() {\n  run $1\n}\nf a").words(0), "run|a");
    EXPECT_EQ(read_script("f() {\n  run $1\n}\nf a\nf b").words(0), "run|?$1");
    EXPECT_EQ(read_script("N=a-b\nrun ${N//-/_} ${N^^}").words(0), "run|a_b|A-B");
    EXPECT_EQ(read_script("N=2\nN=2\nrun $N").words(0), "run|2");
    EXPECT_EQ(read_script("F=a.tar.gz\nrun ${F%.gz} ${F##*.} ${F%%.*}").words(0), "run|a.tar|gz|a");
    EXPECT_EQ(read_script("A=1\nA+=2\nrun $A").words(0), "run|12");
    EXPECT_EQ(read_script("for N in 1 2; do run $N; done").words(0), "run|?$N");
    EXPECT_EQ(read_script("read N\nrun $N").words(1), "run|?$N");
    EXPECT_EQ(read_script("N=$(nproc)\nrun $N").words(1), "run|?$N");
    // What the scheduler sets says nothing about the job when it is a default.
    EXPECT_EQ(read_script("run ${SLURM_NNODES:-1}").words(0), "run|?${SLURM_NNODES:-1}");
    EXPECT_TRUE(read_script("run ${M:-4}").script().commands[0].words[1].assumed);
}

// What a script gives itself as its arguments is known; what it was called with is not.
TEST(ShellExpand, ArgumentsThatAScriptSetsItself) {
    EXPECT_EQ(read_script("set -- a b\nrun \"$@\" c").words(1), "run|a|b|c");
    EXPECT_EQ(read_script("N=8\nset -- --n \"$N\"\nrun $@").words(1), "run|--n|8");
    EXPECT_EQ(read_script("run \"$@\"").words(0), "run|?\"$@\"");
    EXPECT_EQ(read_script("set -- \"$@\" a\nrun \"$@\"").words(1), "run|?\"$@\"|a");
    EXPECT_EQ(read_script("if x; then set -- a; fi\nrun \"$@\"").words(2), "run|?\"$@\"");
    EXPECT_EQ(read_script("set -- a b\nshift\nrun \"$@\"").words(2), "run|?\"$@\"");
    EXPECT_EQ(read_script("set -- a\nf() {\n  run \"$@\"\n}\nf b").words(1), "run|?\"$@\"");
}

// A function that is called once, or always alike, has the arguments of its calls; a default counts where none is
// given.
TEST(ShellExpand, ArgumentsOfAFunction) {
    EXPECT_EQ(read_script("f() {\n  run ${1}\n}\nf a").words(0), "run|a");
    EXPECT_EQ(read_script("f() {\n  run ${1:-x}\n}\nf a").words(0), "run|a");
    EXPECT_EQ(read_script("f() {\n  run ${2:-x}\n}\nf a").words(0), "run|x");
    EXPECT_EQ(read_script("f() {\n  run ${1:-x}\n}\nf a\nf").words(0), "run|?${1:-x}");
    EXPECT_EQ(read_script("f() {\n  shift\n  run $1\n}\nf a b").words(1), "run|b");
    EXPECT_EQ(read_script("run ${1:-x}").words(0), "run|x");
}

// set -a: what is assigned behind it is seen by programs.
TEST(ShellExpand, SetDashAExports) {
    const auto read = read_script("A=1\nset -a\nB=2\nset +a\nC=3\nset -o allexport\nD=4\nset -e\nE=5");
    std::string exported;
    for (const Assignment& each : read.script().assignments)
        if (each.exported) exported += each.name;
    EXPECT_EQ(exported, "BDE");
}

TEST(ShellExpand, EndsWhereItKnowsNoMore) {
    EXPECT_EQ(read_script("A=$A\nrun $A").words(0), "run|?$A");
    EXPECT_EQ(read_script("A=$B\nB=$A\nrun \"x$A\"").words(0), "run|?\"x$A\"");
    EXPECT_EQ(read_script("run ${A:?} ${!A} ${A^^} ${A/x/y} $'\\x41'").words(0),
              "run|?${A:?}|?${!A}|?${A^^}|?${A/x/y}|?$'\\x41'");
    EXPECT_EQ(read_script(": ${N:=8}\nrun $N").words(1), "run|8");
}

}  // namespace
}  // namespace stoker::lint
