// The run section reads what people write, and no more than it can keep.

#include "workload/run_section.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(RunSection, ArraysInAllTheirForms) {
    EXPECT_EQ(parse_array("3").value().indices, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(parse_array(" 0-9:4, 12 ").value().indices, (std::vector<int>{0, 4, 8, 12}));
    EXPECT_EQ(parse_array("0-3 %2").value().parallel, 2);
    EXPECT_EQ(parse_array("0-3").value().parallel, std::nullopt);
    for (const char* bad : {"", "0", "-1", "9-1", "1-2:0", "a", "1:2", "0-8:4-1", "abcde:12-3", "1--3", "0-2000",
                            "1001", "99999999999", "0-9%0", "0-9%", "0-9%x"})
        EXPECT_FALSE(parse_array(bad)) << bad;
}

TEST(RunSection, PlaceholdersAreBracedNamesOnly) {
    const auto found = placeholders_in("a ${lr} $HOME ${x:-1} ${} $${b_2} ${9} ${open");
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].name, "lr");
    EXPECT_EQ(found[0].begin, 2u);
    EXPECT_EQ(found[0].end, 7u);
    EXPECT_EQ(found[1].name, "b_2");
    EXPECT_TRUE(found[1].escaped);
}

TEST(RunSection, AFileThatPlansIsNoRunFile) {
    const auto is = [](const char* text) { return is_run_file(Document::parse_yaml(text, "f.yaml")->root()); };
    EXPECT_TRUE(is("version: 1\nname: x\nrun: {command: ls}\n"));
    EXPECT_TRUE(is("version: 1\nnmae: x\nrun: {command: ls}\n"));
    EXPECT_FALSE(is("version: 1\nkind: notebook\nrun: {command: ls}\n"));
    EXPECT_FALSE(is("version: 1\nmodel: llama-3-8b\nrun: {command: ls}\n"));
    EXPECT_FALSE(is("version: 1\nname: x\n"));
}

}  // namespace
}  // namespace stoker
