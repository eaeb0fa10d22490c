#include "observe/gpu/kernel_xids.h"

#include <gtest/gtest.h>

#include <fstream>

#include "io/files.h"
#include "observe/gpu/gpu_view.h"
#include "observe/gpu/read_gpu.h"

namespace stoker {
namespace {

// Lines of several drivers, and what resembles them.
TEST(KernelXids, ReadsTheFormsThatDriversWrite) {
    const auto xid = parse_kernel_xid(
        "4,1,2,-;NVRM: Xid (PCI:0000:CB:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    ASSERT_TRUE(xid);
    EXPECT_EQ(xid->pci, "0000:cb:00.0");
    EXPECT_EQ(xid->code, 79);
    EXPECT_EQ(parse_kernel_xid("NVRM: Xid (0000:03:00): 14, Channel 00000001")->code, 14);
    for (const char* line : {"NVRM: Xid (PCI:0000:cb:00): x", "NVRM: Xid (PCI:0000:cb:00", "NVRM: Xid (): 5",
                             "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028", ""})
        EXPECT_FALSE(parse_kernel_xid(line)) << line;
}

// What was logged before is not counted; what comes in pieces is put together.
TEST(KernelXids, ReadsALogFromItsEnd) {
    auto folder = ScratchFolder::make("kmsg");
    ASSERT_TRUE(folder);
    const std::string path = folder->path() + "/kmsg";
    std::ofstream log(path);
    log << "NVRM: Xid (PCI:0000:cb:00): 31, old\n" << std::flush;
    KernelLog kernel(path);
    EXPECT_TRUE(kernel.poll().empty());
    log << "NVRM: Xid (PCI:0000:cb:0" << std::flush;
    EXPECT_TRUE(kernel.poll().empty());
    log << "0): 48, new\nanother\n" << std::flush;
    const auto found = kernel.poll();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].code, 48);
    EXPECT_FALSE(KernelLog(folder->path() + "/nothing").up());
}

// Each of the catalogue's 172 codes asks for something; one that is not in it is not passed over.
TEST(KernelXids, KnowsWhatEachCodeAsksFor) {
    EXPECT_EQ(known_xids().size(), 172u);
    EXPECT_EQ(xid_action(79).kind, XidClass::restart_machine);
    EXPECT_EQ(xid_action(31).kind, XidClass::restart_app);
    EXPECT_EQ(xid_action(9999).kind, XidClass::none);
    EXPECT_FALSE(xid_action(9999).action.empty());
}

// A counter goes on over a wrap of 32 bits and over a driver that begins anew, and never falls.
TEST(CounterKeeper, GoesOn) {
    CounterKeeper keeper;
    EXPECT_EQ(keeper.keep("a", GpuMetric::pcie_replays, 4294967290.0, 1).value, 4294967290.0);
    EXPECT_EQ(keeper.keep("a", GpuMetric::pcie_replays, 4, 2).value, 4294967300.0);
    EXPECT_EQ(keeper.keep("a", GpuMetric::energy, 1000, 3).since_s, 3);
    EXPECT_EQ(keeper.keep("a", GpuMetric::energy, 10, 4).value, 1010);
    EXPECT_EQ(keeper.keep("a", GpuMetric::energy, 20, 5).since_s, 4);
    EXPECT_EQ(keeper.keep("b", GpuMetric::energy, 7, 5).value, 7);
}

// Blanks and what no board can say are no figures.
TEST(PlausibleGpuValue, RefusesWhatCannotBe) {
    for (const double blank : {9223372036854775794.0, 140737488355328.0, 2147483632.0, 4294967295.0, -1.0})
        EXPECT_FALSE(plausible_gpu_value(GpuMetric::temperature_gpu, blank)) << blank;
    EXPECT_TRUE(plausible_gpu_value(GpuMetric::temperature_gpu, 91));
    EXPECT_FALSE(plausible_gpu_value(GpuMetric::utilization, 2));
    EXPECT_TRUE(plausible_gpu_value(GpuMetric::temperature_margin, -4));
    EXPECT_TRUE(plausible_gpu_value(GpuMetric::energy, 5e12));
    EXPECT_TRUE(plausible_gpu_value(GpuMetric::nvlink_active, 18));
}

}  // namespace
}  // namespace stoker
