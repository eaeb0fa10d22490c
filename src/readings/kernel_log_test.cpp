// What a kernel log and a DCGM exporter tell of a GPU that is failing: the person on call has nothing else at night.
#include <gtest/gtest.h>

#include "readings/gpu_limits.h"
#include "readings/tool_output.h"

namespace stoker {
namespace {

// A text without a line of the kernel's is none that we read; one with errors names each GPU and code once, with what
// to do.
TEST(KernelLog, NamesEachXidOnceWithItsAction) {
    const std::string log =
        "[ 10.1] usb 1-1: new device\n"
        "[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "[ 12.6] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "Nov 22 18:29:55 n kernel: NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000\n"
        "[ 13.0] NVRM: Xid (PCI:0000:01:00): 999, something new\n";
    EXPECT_EQ(recognise(log), Tool::kernel_log);
    const auto reading = read_tool_output(Tool::kernel_log, log, "dmesg.txt", {});
    ASSERT_TRUE(reading);
    ASSERT_EQ(reading->checks.size(), 3u);
    EXPECT_EQ(reading->verdict(), HealthVerdict::fail);
    EXPECT_FALSE(read_tool_output(Tool::kernel_log, "[ 1.0] usb 1-1: new device\n", "dmesg.txt", {}));
}

TEST(DcgmMetrics, TellsHeatFullMemoryAndErrors) {
    const std::string text =
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
        "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"Tesla T4\",Hostname=\"n1\"} 91\n"
        "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-2\",device=\"nvidia1\",modelName=\"Tesla T4\",Hostname=\"n1\"} 45\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"n1\"} 14900\n"
        "DCGM_FI_DEV_FB_FREE{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"n1\"} 100\n"
        "DCGM_FI_DEV_XID_ERRORS{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"n1\"} 0\n";
    EXPECT_EQ(recognise(text), Tool::dcgm_metrics);
    const auto reading = read_tool_output(Tool::dcgm_metrics, text, "metrics.txt", {});
    ASSERT_TRUE(reading);
    ASSERT_EQ(reading->checks.size(), 2u);
    EXPECT_EQ(reading->checks[0].verdict, HealthVerdict::fail);
    EXPECT_EQ(reading->checks[1].verdict, HealthVerdict::warn);
}

TEST(Xid, HasAnActionForEachPublishedCode) {
    for (const int code : {13, 31, 43, 45, 48, 61, 62, 63, 64, 69, 74, 79, 92, 94, 95, 119, 120}) {
        const auto meaning = xid_meaning(code);
        ASSERT_TRUE(meaning) << code;
        EXPECT_FALSE(meaning->what.empty() || meaning->action.empty()) << code;
    }
    EXPECT_FALSE(xid_meaning(4711));
}

}  // namespace
}  // namespace stoker
