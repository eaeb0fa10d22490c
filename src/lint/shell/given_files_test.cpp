// A manifest that a script fills in is applied as it is then: what is read as written has no tag and no number in it.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"
#include "lint/shell/called_scripts.h"

namespace stoker::lint {
namespace {

std::string filled_with(std::string_view text, std::string_view only = {}) {
    static const File source("env", "abcdef");
    std::vector<EnvVar> environment = {{"A", Value::known_text("1", {0, 1}, source.source()), {0, 1}},
                                       {"LONG", Value::known_text("two", {1, 4}, source.source()), {1, 4}},
                                       {"OPEN", Value{}, {}}};
    std::vector<Piece> pieces;
    std::string out = with_variables(text, environment, only, pieces);
    std::uint32_t next = 0;
    for (const Piece& piece : pieces) {
        EXPECT_EQ(piece.guest, next) << "pieces stand one behind another";
        next += piece.length;
    }
    EXPECT_EQ(next, out.size());
    return out;
}

TEST(GivenFiles, KnownNamesAreFilledInAndOthersStay) {
    EXPECT_EQ(filled_with("a $A b ${LONG} c $OPEN $NONE"), "a 1 b two c $OPEN $NONE");
    EXPECT_EQ(filled_with("${A:=9} ${LONG:-9} ${NONE:=9}"), "1 two ${NONE:=9}");
    EXPECT_EQ(filled_with("${A#x} ${A} ${A"), "${A#x} 1 ${A");
    EXPECT_EQ(filled_with("$AB $A"), "$AB 1");
    EXPECT_EQ(filled_with("nothing here"), "") << "no piece: the text is as it was";
}

TEST(GivenFiles, OnlyTheNamesThatEnvsubstIsGiven) {
    EXPECT_EQ(filled_with("$A $LONG", "$LONG"), "$A two");
    EXPECT_EQ(filled_with("$A $LONG", "${A}"), "1 $LONG");
}

TEST(GivenFiles, ADockerfileIsBuiltWithTheArgumentsOfItsBuild) {
    CheckedTree tree{{{"Dockerfile", "ARG CUDA=12.6.3-base-ubuntu24.04\nFROM nvidia/cuda:${CUDA}\nRUN true\n"},
                      {"build.sh", "docker build --build-arg CUDA=10.2-base-ubuntu18.04 -t x .\n"}},
                     {}};
    EXPECT_EQ(tree.places("IMG004").size(), 1u);
    tree.texts[1].second = "docker build -t x .\n";
    EXPECT_EQ(tree.places("IMG004"), Places{});
}

}  // namespace
}  // namespace stoker::lint
