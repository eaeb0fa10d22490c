// A file that is not walked is not checked, and nobody hears of it.
#include "check/walk.h"

#include <gtest/gtest.h>

#include "check/test_folder.h"

namespace stoker {
namespace {

std::vector<std::string> below(const TestFolder& folder, const Walk& walk) {
    std::vector<std::string> paths;
    for (const WalkedFile& file : walk.files) paths.push_back(file.path.substr(folder.path().size() + 1));
    return paths;
}
using Names = std::vector<std::string>;

TEST(Walk, IsSortedAndLeavesOutWhatIsNoConfiguration) {
    const TestFolder folder;
    for (const char* name : {"b.yaml", "a/z.tf", "a/b.sh", "model.safetensors", "photo.PNG", ".git/config",
                             "node_modules/x/a.yaml", ".github/workflow.yaml", "Dockerfile"})
        folder.write(name, "x");
    EXPECT_EQ(below(folder, walk_paths({folder.path()}, {})),
              (Names{".github/workflow.yaml", "Dockerfile", "a/b.sh", "a/z.tf", "b.yaml"}));
}

TEST(Walk, HonoursIgnoreFilesOfTheRepositoryAround) {
    const TestFolder folder;
    folder.write(".git/HEAD", "x");
    folder.write(".gitignore", "*.log.yaml\nout/\n");
    folder.write("sub/.gitignore", "!keep.log.yaml\n");
    for (const char* name : {"sub/a.log.yaml", "sub/keep.log.yaml", "sub/out/b.yaml", "sub/c.yaml"})
        folder.write(name, "x");
    const Walk walk = walk_paths({folder.path("sub")}, {});
    EXPECT_EQ(below(folder, walk), (Names{"sub/.gitignore", "sub/c.yaml", "sub/keep.log.yaml"}));
    EXPECT_EQ(walk.files[0].root, folder.path("sub"));
}

TEST(Walk, LeavesOutWhatIsExcludedButNotWhatIsNamed) {
    const TestFolder folder;
    for (const char* name : {"vendor/a.yaml", "x/gen/b.yaml", "x/c.yaml"}) folder.write(name, "x");
    WalkOptions options;
    options.exclude = {"vendor/**", "gen"};
    options.exclude_root = std::filesystem::canonical(folder.path()).string() + "/";
    EXPECT_EQ(below(folder, walk_paths({folder.path()}, options)), Names{"x/c.yaml"});
    const Walk named = walk_paths({folder.path("vendor/a.yaml"), folder.path()}, options);
    EXPECT_EQ(below(folder, named), (Names{"vendor/a.yaml", "x/c.yaml"}));
    EXPECT_TRUE(named.files[0].named);
}

TEST(Walk, SaysWhatWasNamedAndIsNotThere) {
    const TestFolder folder;
    folder.write("main.tf", "x");
    const Walk walk = walk_paths({folder.path("man.tf"), folder.path("main.tf")}, {});
    ASSERT_EQ(walk.unreadable.size(), 1u);
    EXPECT_NE(walk.unreadable[0].message.find("did you mean"), std::string::npos);
    EXPECT_EQ(walk.files.size(), 1u);
}

TEST(Walk, TidiesPaths) {
    EXPECT_EQ(tidy_path("./a//b/../c/"), "a/c");
    EXPECT_EQ(tidy_path("."), ".");
    EXPECT_EQ(tidy_path("../x"), "../x");
    EXPECT_TRUE(never_configuration("a.PT"));
    EXPECT_FALSE(never_configuration(".py"));
    EXPECT_FALSE(never_configuration("job.sbatch"));
}

}  // namespace
}  // namespace stoker
