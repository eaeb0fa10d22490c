// When this breaks, images of a Dockerfile and what it runs are not seen, or at the wrong line.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(ReadDockerfile, FollowsArgumentsIntoImages) {
    const auto file = read_file(
        "Dockerfile",
        "ARG TAG=12.4.1\nFROM --platform=linux/amd64 nvidia/cuda:${TAG}-base AS build\nFROM build\nFROM $OTHER\n");
    ASSERT_EQ(file->services.size(), 2u);
    EXPECT_EQ(file->services[0].image.text, "nvidia/cuda:12.4.1-base");
    EXPECT_TRUE(file->services[1].image.unknown());
}

TEST(ReadDockerfile, ReadsRunLinesWithComments) {
    const auto file = read_file("Dockerfile",
                                "FROM x\nRUN --mount=type=cache,target=/c apt-get update && \\  \n    # why\n    "
                                "apt-get install -y cuda\nENV A=1 B=\"2 3\"\nENV OLD some value\n");
    ASSERT_EQ(file->guests.size(), 1u);
    const File& run = *file->guests.front();
    ASSERT_EQ(run.script.commands.size(), 2u);
    EXPECT_EQ(run.script.commands[1].words.back().text, "cuda");
    EXPECT_EQ(run.source().place(run.script.commands[1].span.begin).line, 4u);
    ASSERT_EQ(file->environment.size(), 3u);
    EXPECT_EQ(file->environment[1].value.text, "2 3");
    EXPECT_EQ(file->environment[2].value.text, "some value");
}

TEST(ReadDockerfile, ReadsHeredocsAndExecForm) {
    const auto file = read_file(
        "Dockerfile",
        "FROM x\nRUN <<EOF\nexport A=1\nEOF\nCMD [\"vllm\", \"serve\", \"m\", \"--tensor-parallel-size\", \"2\"]\n");
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_EQ(file->guests.front()->environment.size(), 1u);
    ASSERT_EQ(file->launches.size(), 1u);
    EXPECT_EQ(file->launches.front().per_node.text, "2");
}

// A script that is copied and run is as much of the build as a RUN line.
TEST(ReadDockerfile, ScriptsThatAreCopiedRunInTheBuild) {
    const auto tree = [](const std::string& copy, const std::string& run) {
        return CheckedTree{
            {{"docker/Dockerfile", "FROM nvidia/cuda:12.6.3-base-ubuntu24.04\n" + copy + "\nRUN " + run + "\n"},
             {"setup/tools.sh", "#!/bin/sh\ncurl -LsSf https://x.io/i.sh | sh\n"}},
            {}};
    };
    EXPECT_EQ(tree("COPY setup/ /tmp/s/", "chmod +x /tmp/s/*.sh && /tmp/s/tools.sh").places("SEC005"),
              Places{"setup/tools.sh:2"});
    EXPECT_EQ(tree("COPY setup/tools.sh /t.sh", "bash /t.sh").places("SEC005").size(), 1u);
    EXPECT_EQ(tree("COPY . .", "./setup/tools.sh").places("SEC005").size(), 1u);
    EXPECT_EQ(tree("COPY setup/ /tmp/s/", "true").places("SEC005"), Places{}) << "it is not run";
    EXPECT_EQ(tree("COPY --from=base /setup/ /tmp/s/", "/tmp/s/tools.sh").places("SEC005"), Places{});
}

}  // namespace
}  // namespace stoker::lint
