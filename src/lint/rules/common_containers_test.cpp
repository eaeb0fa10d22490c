// The helpers of the container rules: a wrong sum or a wrong tag misfires in forty rules at once.
#include "lint/rules/common_containers.h"

#include <gtest/gtest.h>

#include "lint/read.h"
#include "lint/rules/common_pools.h"

namespace stoker::lint {
namespace {

TEST(CommonContainers, ReadsQuantities) {
    EXPECT_EQ(quantity_of("16Gi"), 16.0 * 1024 * 1024 * 1024);
    EXPECT_EQ(quantity_of("512M"), 512e6);
    EXPECT_EQ(quantity_of("500m"), 0.5);
    EXPECT_EQ(quantity_of("1e3"), 1000.0);
    EXPECT_EQ(quantity_of("8"), 8.0);
    for (const char* text : {"", "x", "-1", "5Q", "1GiB"}) EXPECT_FALSE(quantity_of(text)) << text;
}

TEST(CommonContainers, TakesImageReferencesApart) {
    EXPECT_EQ(tag_of("a/b:c").tag, "c");
    EXPECT_EQ(tag_of("host:5000/b").tag, "");
    EXPECT_EQ(tag_of("host:5000/b:1").name, "host:5000/b");
    EXPECT_TRUE(tag_of("b:1@sha256:00").digest);
    EXPECT_EQ(tag_of("b:1@sha256:00").tag, "1");
}

TEST(CommonContainers, FindsOptionsInEverySpelling) {
    const Source source("x", "");
    const auto words = [&](std::initializer_list<std::string_view> list) {
        std::vector<Value> result;
        for (const std::string_view each : list) result.push_back(Value::known_text(each, {0, 0}, source));
        return result;
    };
    EXPECT_TRUE(option_of(words({"--a-b", "1"}), {"--a-b"}).is("1"));
    EXPECT_TRUE(option_of(words({"--a_b=2"}), {"--a-b"}).is("2"));
    EXPECT_TRUE(option_of(words({"-x", "1", "-x", "3"}), {"-x"}).is("3"));
    EXPECT_TRUE(option_of(words({"--other", "1"}), {"--a-b"}).absent());
}

TEST(CommonContainers, ReadsTaints) {
    EXPECT_EQ(taint_of("sku=gpu:NoSchedule")->value, "gpu");
    EXPECT_EQ(taint_of("nvidia.com/gpu:NoExecute")->key, "nvidia.com/gpu");
    EXPECT_EQ(taint_of("a=:NoSchedule")->value, "");
    EXPECT_EQ(taint_of("a=b:NO_SCHEDULE")->effect, "NoSchedule");
    EXPECT_FALSE(taint_of("a"));
}

// A line that is put in keeps the dash of a list in its place, and the line ends of the file.
TEST(CommonContainers, InsertsLinesAsTheirNeighbourIsWritten) {
    const auto file = read_file("a.yaml", "apiVersion: v1\r\nkind: Pod\r\nl:\r\n- b: 1\r\n  c: 2\r\nf: {g: 1}\r\n");
    const Node& root = *file->tree.roots.at(0);
    const Node& item = *root.find("l")->first;
    const auto before_b = line_before(*item.find("b"), "x:\n  y");
    ASSERT_TRUE(before_b);
    EXPECT_EQ(before_b->replacement, "x:\r\n    y\r\n  ");
    const auto before_c = line_before(*item.find("c"), "x: 1");
    ASSERT_TRUE(before_c);
    EXPECT_EQ(before_c->replacement, "  x: 1\r\n");
    EXPECT_FALSE(line_before(*root.at({"f", "g"}), "x: 1"));
}

}  // namespace
}  // namespace stoker::lint
