// When this breaks, a batch is said to have other numbers of GPUs or ranks than Slurm would give it.
#include "lint/rules/common_layout.h"

#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

std::optional<std::int64_t> devices(const std::string& directives) {
    const auto file = read_file("x.sbatch", "#!/bin/bash\n" + directives + "\nsrun hostname\n");
    const auto found = batch_devices(*file);
    return found ? std::optional<std::int64_t>(found->count) : std::nullopt;
}

TEST(CommonLayout, CountsGpusInEverySpelling) {
    EXPECT_EQ(gpu_count("gpu:8", true), 8);
    EXPECT_EQ(gpu_count("gpu:a100:4(S:0-1)", true), 4);
    EXPECT_EQ(gpu_count("gpu", true), 1);
    EXPECT_EQ(gpu_count("lustre:1,gpu:2", true), 2);
    EXPECT_EQ(gpu_count("lustre:1", true), std::nullopt);
    EXPECT_EQ(gpu_count("h100:8", false), 8);
    EXPECT_EQ(gpu_count("8", false), 8);
}

TEST(CommonLayout, CountsDevicesOfANode) {
    EXPECT_EQ(devices("#SBATCH --gres=gpu:a100:8"), 8);
    EXPECT_EQ(devices("#SBATCH -N 2 -G 16"), 8);
    EXPECT_EQ(devices("#SBATCH --ntasks-per-node=4 --gpus-per-task=2"), 8);
    EXPECT_EQ(devices("#SBATCH -N 3 --gpus=16"), std::nullopt);
    EXPECT_EQ(devices("#SBATCH --gres=gpu:$N"), std::nullopt);
    EXPECT_EQ(devices("set -e\n#SBATCH --gres=gpu:8"), std::nullopt);  // too late
}

TEST(CommonLayout, CountsRanksOnlyWhenTheyAreWritten) {
    const auto world = [](const std::string& line) {
        const auto file = read_file("x.sh", "#!/bin/bash\n" + line + "\n");
        return file->launches.size() == 1 ? launch_world(*file, file->launches.front()) : std::nullopt;
    };
    EXPECT_EQ(world("torchrun --nnodes 2 --nproc_per_node 8 t.py"), 16);
    EXPECT_EQ(world("torchrun --nproc_per_node 8 t.py"), 8);
    EXPECT_EQ(world("torchrun --nnodes ${N:-2} --nproc_per_node 8 t.py"), std::nullopt);
    EXPECT_EQ(world("torchrun --nproc_per_node gpu t.py"), std::nullopt);
    EXPECT_EQ(world("torchrun $ARGS --nproc_per_node 8 t.py"), std::nullopt);
}

// What one part of a heterogeneous job asks for says nothing of the other.
TEST(CommonLayout, PartsOfAHeterogeneousJob) {
    const auto file =
        read_file("x.sbatch",
                  "#!/bin/bash\n#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=64\n#SBATCH hetjob\n"
                  "#SBATCH --nodes=4 --ntasks-per-node=8 --gpus-per-node=8\nsrun --het-group=0 python a.py &\n"
                  "srun --het-group 1 python b.py\nsrun --het-group=0,1 python c.py\npython d.py\n");
    ASSERT_EQ(file->script.commands.size(), 4u);
    const auto nodes = [&](std::size_t command) {
        const auto counted = batch_nodes(*file, component_of(*file, file->script.commands[command]));
        return counted ? counted->count : 0;
    };
    EXPECT_EQ(nodes(0), 1);
    EXPECT_EQ(nodes(1), 4);
    EXPECT_EQ(nodes(2), 4);  // both: the last that is said
    EXPECT_EQ(nodes(3), 1);
    EXPECT_FALSE(batch_devices(*file, 0));
    EXPECT_EQ(batch_devices(*file, 1)->count, 8);
}

}  // namespace
}  // namespace stoker::lint
