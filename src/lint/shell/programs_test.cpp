// When this breaks, a launcher or what stands before it is not known by its name.
#include "lint/shell/programs.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

TEST(Programs, AreKnownByName) {
    EXPECT_EQ(program_of("torchrun"), Program::launcher);
    EXPECT_EQ(program_of("accelerate"), Program::maybe_launcher);
    EXPECT_EQ(program_of("python3.11"), Program::python);
    EXPECT_EQ(program_of("python_train.py"), Program::other);
    EXPECT_EQ(program_of("numactl"), Program::prefix);
    EXPECT_EQ(program_of("ls"), Program::other);
    EXPECT_EQ(program_of(""), Program::other);
}

TEST(Programs, EveryLauncherByNameHasItsKind) {
    for (const std::string_view name : {"torchrun", "deepspeed", "accelerate-launch", "mpirun", "horovodrun",
                                        "text-generation-launcher", "trtllm-serve", "tritonserver", "llama-server"}) {
        EXPECT_EQ(program_of(name), Program::launcher) << name;
        EXPECT_TRUE(launcher_of_program(name)) << name;
    }
    EXPECT_EQ(launcher_of_module("torch.distributed.run"), Launcher::torchrun);
    EXPECT_FALSE(launcher_of_module("http.server"));
}

TEST(Programs, KnowsWhichOptionsHaveValues) {
    EXPECT_TRUE(launcher_switch(Launcher::torchrun, "standalone"));
    EXPECT_FALSE(launcher_switch(Launcher::torchrun, "nnodes"));
    EXPECT_TRUE(srun_takes_value("N", false));
    EXPECT_FALSE(srun_takes_value("N2", false));
    EXPECT_TRUE(srun_takes_value("container-image", true));
    EXPECT_TRUE(docker_switch("rm", true));
    EXPECT_FALSE(docker_switch("gpus", true));
}

}  // namespace
}  // namespace stoker::lint
