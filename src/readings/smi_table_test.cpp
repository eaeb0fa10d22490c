// Nodes whose nvidia-smi is of another driver generation are read as well; a node of the wrong size is not taken.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

TEST(SmiTable, TheTableOfOldDriversIsRead) {
    const ToolReading reading = read(samples::kSmiOld, of_size("Standard_NC4as_T4_v3"));
    ASSERT_NE(reading.fact("driver"), nullptr);
    EXPECT_EQ(reading.fact("driver")->value, "418.87.01");
    EXPECT_EQ(reading.fact("cuda")->value, "10.1");
    EXPECT_EQ(reading.fact("model")->value, "Tesla T4");
    EXPECT_EQ(reading.verdict(), HealthVerdict::pass);
    EXPECT_EQ(verdict_of(reading, "gpu-memory"), HealthVerdict::pass);
}

// Drivers from 610 on say KMD for the kernel module and UMD for the libraries.
TEST(SmiTable, TheBannerOfNewDriversIsRead) {
    const std::string banner = replaced(samples::kSmiMig, "Driver Version: 570.133.20     CUDA Version: 12.8     ",
                                        "KMD Version: 610.43.02        CUDA UMD Version: 13.3 ");
    EXPECT_EQ(recognise(banner), Tool::nvidia_smi);
    EXPECT_EQ(read(banner).fact("driver")->value, "610.43.02");
    EXPECT_EQ(read(banner).fact("cuda")->value, "13.3");
}

// The requirement of the seeds: count, model and memory are those of the size, or the node is not ready.
TEST(SmiTable, AnotherModelCountOrMemoryFails) {
    EXPECT_EQ(verdict_of(read(samples::kSmiOld, of_size("Standard_NC64as_T4_v3")), "gpu-count"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(samples::kSmiOld, of_size("Standard_NC24ads_A100_v4")), "gpu-model"),
              HealthVerdict::fail);
    const std::string half = replaced(samples::kSmiOld, "15109MiB", " 7680MiB");
    EXPECT_EQ(verdict_of(read(half, of_size("Standard_NC4as_T4_v3")), "gpu-memory"), HealthVerdict::fail);
    // Nobody said what it should be: told, and not judged.
    EXPECT_EQ(verdict_of(read(samples::kSmiOld), "gpu-count"), HealthVerdict::skipped);
}

TEST(SmiTable, UncorrectedErrorsNameTheirGpuAndLine) {
    const ToolReading reading = read(samples::kSmiNew);
    const HealthCheck* ecc = worst(reading, "gpu-ecc");
    ASSERT_NE(ecc, nullptr);
    EXPECT_EQ(ecc->verdict, HealthVerdict::fail);
    EXPECT_EQ(ecc->peer, "GPU 1");
    EXPECT_EQ(ecc->measured, 17);
    for (const ToolNote& note : reading.notes)
        if (note.message == ecc->detail) {
            EXPECT_EQ(note.line, 13U);
        }
}

TEST(SmiTable, MigWithoutADeviceIsTold) {
    const ToolReading reading = read(samples::kSmiMig);
    const HealthCheck* mig = worst(reading, "gpu-mig");
    ASSERT_NE(mig, nullptr);
    EXPECT_EQ(mig->peer, "GPU 1");
    EXPECT_EQ(mig->verdict, HealthVerdict::warn);
    const std::string pending = replaced(samples::kSmiNew, "             Disabled |", "            Disabled* |");
    EXPECT_EQ(verdict_of(read(pending), "gpu-mig"), HealthVerdict::warn);
}

TEST(SmiTable, ALostGpuFails) {
    const std::string lost = replaced(
        samples::kSmiNew, "| N/A   33C    P0              64W / 400W |  61440MiB / 81920MiB |     99%      Default |",
        "|ERR!  ERR! ERR!            ERR! / ERR!   |      ERR!            |     ERR!     ERR!    |");
    EXPECT_EQ(verdict_of(read(lost), "gpu-answers"), HealthVerdict::fail);
}

// What stands there instead of a table says what to do.
TEST(SmiTable, NoDriverIsACauseAndNoError) {
    for (const char* text :
         {"bash: nvidia-smi: command not found\n",
          "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n",
          "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
          "NVIDIA driver is installed and running.\n",
          "No devices were found\n"}) {
        const ToolReading reading = read(text);
        EXPECT_EQ(verdict_of(reading, "gpu-driver"), HealthVerdict::fail) << text;
        EXPECT_FALSE(worst(reading, "gpu-driver")->fix.empty()) << text;
    }
}

TEST(SmiTable, ATableThatBreaksOffIsAnErrorWithItsPlace) {
    const std::string_view text = samples::kSmiNew;
    EXPECT_NE(error_of(text.substr(0, text.find("|   0  NVIDIA")), Tool::nvidia_smi).find("before the first GPU"),
              std::string::npos);
    EXPECT_NE(error_of(text.substr(0, text.find("| N/A   33C")), Tool::nvidia_smi).find("file:13:1"),
              std::string::npos);
}

}  // namespace
}  // namespace stoker
