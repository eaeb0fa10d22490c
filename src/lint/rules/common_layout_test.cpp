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

}  // namespace
}  // namespace stoker::lint
