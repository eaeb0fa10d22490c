// When this breaks, a guest script or a heredoc loses its place: findings point at lines where nothing is.
#include "lint/shell/shell_values.h"

#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(ShellValues, MakesGuestsThatKnowWhereTheyStand) {
    const auto file = read_file(
        "run.sh", "#!/bin/bash\nARGS=\"--a 1\"\nbash -c \"export NCCL_DEBUG=INFO; torchrun \\\"x\\\" $ARGS\"\n");
    ASSERT_EQ(file->guests.size(), 1u);
    const File& guest = *file->guests.front();
    EXPECT_EQ(guest.source().text(), "export NCCL_DEBUG=INFO; torchrun \"x\" --a 1");
    ASSERT_EQ(guest.environment.size(), 1u);
    const Value& value = guest.environment.front().value;
    EXPECT_EQ(guest.source().place(value.span.begin).line, 3u);
    EXPECT_TRUE(guest.source().editable(value.span));
}

TEST(ShellValues, ExpandsHeredocsThatAreNotQuoted) {
    const auto file = read_file("run.sh", "N=4\nsbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=$N\necho \\$HOME\nEOF\n");
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_EQ(file->guests.front()->source().text(), "#!/bin/bash\n#SBATCH --nodes=4\necho $HOME\n");
    EXPECT_EQ(file->guests.front()->script.directives.at(0).value.text, "4");
}

// deploy-obs.sh of awsome-distributed-training was called broken YAML for the lines of a command whose output nobody
// knows.
TEST(ShellValues, WhatACommandOverLinesPrintsIsOneWord) {
    const auto file = read_file(
        "run.sh",
        "URL=$(aws x \\\n  --query 'a')\ncat <<EOF | kubectl apply -f -\nkind: Pod\nmetadata: {name: \"$URL\"}\nEOF\n");
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_EQ(file->guests.front()->source().text(), "kind: Pod\nmetadata: {name: \"$(...)\"}\n");
    EXPECT_TRUE(file->guests.front()->problems.empty());
}

TEST(ShellValues, LeavesHeredocsOfOtherProgramsAlone) {
    EXPECT_TRUE(read_file("run.sh", "python <<EOF\nimport os\nEOF\nmysql <<EOF\nexport X=1\nEOF\n")->guests.empty());
    EXPECT_EQ(read_file("run.sh", "cat <<EOF | kubectl apply -f -\nkind: Pod\nEOF\n")->guests.size(), 1u);
    EXPECT_EQ(read_file("run.sh", "cat > job.sbatch <<'EOF'\n#!/bin/bash\n#SBATCH -N 1\nEOF\n")->guests.size(), 1u);
}

}  // namespace
}  // namespace stoker::lint
