// The sentences that stand where a table should be, and the judgement that all three outputs share.
#include "readings/smi_gpus.h"

#include "readings/tool_test_help.h"

namespace stoker {
namespace {

TEST(SmiGpus, TroubleIsFoundWithItsPlace) {
    const ToolLines lines("$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n");
    const auto trouble = smi_trouble(lines);
    ASSERT_TRUE(trouble.has_value());
    EXPECT_EQ(trouble->place.line, 2U);
    EXPECT_NE(trouble->what.find("different versions"), std::string::npos);
    const ToolLines well("all is well\n");
    EXPECT_FALSE(smi_trouble(well).has_value());
}

// A vGPU's share of memory is its own, not the card's; a name that nobody knows is not judged.
TEST(SmiGpus, PartsOfAGpuAndUnknownNamesAreNotFailed) {
    const auto judged = [](const char* name, double mib, const char* size) {
        ReadingBuilder out(Tool::nvidia_smi, "file");
        SmiSheet sheet;
        sheet.gpus.push_back({.place = {}, .index = "0", .name = name, .memory_total_mib = mib});
        return judge_smi(out, sheet, samples::of_size(size));
    };
    EXPECT_EQ(judged("NVIDIA A10-4Q", 4096, "Standard_NV6ads_A10_v5").verdict(), HealthVerdict::pass);
    EXPECT_EQ(judged("Graphics Device", 15360, "Standard_NC4as_T4_v3").verdict(), HealthVerdict::pass);
    EXPECT_EQ(judged("NVIDIA A10", 23028, "Standard_NC4as_T4_v3").verdict(), HealthVerdict::fail);
}

}  // namespace
}  // namespace stoker
