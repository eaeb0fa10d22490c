// Bytes of strangers come in here: what is no text must not be parsed, what names other files must not read any.
#include "check/input.h"

#include <gtest/gtest.h>

#include "check/test_folder.h"

namespace stoker {
namespace {

constexpr const char* kPod = "apiVersion: v1\nkind: Pod\n";

TEST(Inputs, ReadWhatHasAKind) {
    const TestFolder folder;
    const auto input = read_input({folder.write("a.yaml", kPod), folder.path(), false}, std::nullopt);
    ASSERT_TRUE(input.file);
    EXPECT_TRUE(input.file->kinds.has(lint::Kind::k8s));
    EXPECT_EQ(input.file->source().text(), kPod);
}

TEST(Inputs, SkipWhatHasNoneAndWhatIsNoText) {
    const TestFolder folder;
    EXPECT_EQ(read_input({folder.write("a.txt", "words"), folder.path(), true}, std::nullopt).skipped,
              "of no kind that is read");
    EXPECT_EQ(
        read_input({folder.write("b.yaml", std::string_view("a: \0", 4)), folder.path(), false}, std::nullopt).skipped,
        "not a text");
    EXPECT_TRUE(read_input({folder.path("none.yaml"), folder.path(), true}, std::nullopt).unreadable);
}

TEST(Inputs, TellUtf16FromItsContent) {
    const TestFolder folder;
    std::string text = "\xFF\xFE";
    for (const char* c = kPod; *c != 0; ++c) text += *c, text += '\0';
    const auto input = read_input({folder.write("a.yaml", text), folder.path(), false}, std::nullopt);
    ASSERT_TRUE(input.file);
    ASSERT_EQ(input.file->problems.size(), 1u);
    EXPECT_EQ(input.file->problems[0].rule, "SYN001");
}

TEST(Inputs, RefuseWhatIsTooLarge) {
    const TestFolder folder;
    const std::string text = kPod + std::string((17u << 20), '#');
    const auto input = read_input({folder.write("a.yaml", text), folder.path(), false}, std::nullopt);
    ASSERT_TRUE(input.file);
    ASSERT_EQ(input.file->problems.size(), 1u);
    EXPECT_EQ(input.file->problems[0].rule, "SYN005");
    // One that has no kind is nobody's business, however large.
    EXPECT_FALSE(
        read_input({folder.write("b.txt", std::string(17u << 20, 'x')), folder.path(), false}, std::nullopt).file);
}

TEST(Neighbours, AreReadWithinTheTreeOnly) {
    const TestFolder folder;
    folder.write("tree/a/main.tf", "x");
    folder.write("tree/modules/m.tf", "module");
    folder.write("tree/a/init.yaml", "beside");
    folder.write("secret", "outside");
    std::filesystem::create_symlink(folder.path("secret"), folder.path("tree/a/link"));
    const auto read = neighbour_reader(folder.path("tree/a/main.tf"), folder.path("tree"));
    EXPECT_EQ(read("init.yaml"), "beside");
    EXPECT_EQ(read("../modules/m.tf"), "module");
    for (const char* path : {"../../secret", "link", "/etc/passwd", "none", "", "..", "../a"})
        EXPECT_FALSE(read(path)) << path;
    EXPECT_FALSE(neighbour_reader("-", ""));
    // A file that was named by itself sees its own folder.
    const auto alone = neighbour_reader(folder.path("tree/a/main.tf"), folder.path("tree/a"));
    EXPECT_EQ(alone("init.yaml"), "beside");
    EXPECT_FALSE(alone("../modules/m.tf"));
}

TEST(Neighbours, AreListedWithinTheTreeOnly) {
    const TestFolder folder;
    folder.write("tree/a/main.tf", "x");
    folder.write("tree/modules/b.tf", "");
    folder.write("tree/modules/a.tf", "");
    folder.write("tree/modules/deeper/c.tf", "");
    folder.write("other/d.tf", "");
    const auto list = folder_lister(folder.path("tree/a/main.tf"), folder.path("tree"));
    EXPECT_EQ(list("../modules"), (std::vector<std::string>{"a.tf", "b.tf"}));
    for (const char* path : {"../../other", "/etc", "none", "", "main.tf"}) EXPECT_TRUE(list(path).empty()) << path;
    EXPECT_FALSE(folder_lister("-", ""));
}

}  // namespace
}  // namespace stoker
