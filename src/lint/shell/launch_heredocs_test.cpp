// When this breaks, a script or a manifest that a script writes is not read, or a text that is none is.
#include "lint/shell/launch_test.h"

namespace stoker::lint {
namespace {

TEST(LaunchHeredocs, ReadsWhatIsWrittenForAnotherProgram) {
    for (const std::string head :
         {"sbatch <<'EOF'", "cat > job.sbatch <<EOF", "cat <<EOF | sbatch", "sudo tee job.sh <<EOF", "bash -s <<EOF"}) {
        const auto file =
            read_file("run.sh", "#!/bin/bash\n" + head + "\n#!/bin/bash\ntorchrun --nproc_per_node 8 t.py\nEOF\n");
        ASSERT_EQ(launches(*file).size(), 1u) << head;
        EXPECT_EQ(launches(*file)[0]->source->place(launches(*file)[0]->word.begin).line, 4u) << head;
    }
    for (const std::string head : {"python <<EOF", "cat <<EOF", "mysql <<EOF"})
        EXPECT_TRUE(launches(*read_file("run.sh", "#!/bin/bash\n" + head + "\ntorchrun t.py\nEOF\n")).empty()) << head;
}

TEST(LaunchHeredocs, AreNotBrokenByTheQuotesOfAVariable) {
    // What stands behind the variable is the shell's: its quotes never reach the manifest.
    const auto file = read_file("run.sh",
                                "#!/bin/bash\nexport V=\"$(aws ssm get --name \"/a/b\" | sed 's/^.*(v)$/x/')\"\n"
                                "cat <<EOF | kubectl apply -f -\napiVersion: v1\nkind: Pod\nspec:\n"
                                "  nodeSelector: {a: \"al2023@${V}\"}\nEOF\n");
    for (const auto& guest : file->guests) EXPECT_TRUE(guest->problems.empty());
}

}  // namespace
}  // namespace stoker::lint
