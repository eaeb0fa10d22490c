// The disk that a workload names was read and then ignored: every plan priced a P10 and no disk was ever too slow.
#include "sizing/disk.h"

#include <gtest/gtest.h>

#include "sizing/training.h"

namespace stoker {
namespace {

const Catalog& catalog() {
    static const Catalog loaded = Catalog::embedded().value();
    return loaded;
}

Disk disk(std::optional<std::string> type, double gib, double mb_s = 0) {
    DiskSpec spec{.type = std::move(type), .size = {}, .throughput_per_second = {}};
    if (gib > 0) spec.size = Bytes(gib * kGiB);
    if (mb_s > 0) spec.throughput_per_second = Bytes(mb_s * 1e6);
    return disk_of(spec, catalog());
}

// A premium disk of 1 TiB is a P30 of 200 MB/s; a size between tiers is billed as the larger.
TEST(Disk, SizeDecidesTierAndThroughput) {
    EXPECT_EQ(disk("premium-ssd", 1024).tier, "P30");
    EXPECT_NEAR(disk("premium-ssd", 1024).bytes_per_s, 200e6, 1);
    EXPECT_EQ(disk("premium-ssd", 600).gib, 1024);
    EXPECT_EQ(disk({}, 0).tier, "P10");
}

// Standard costs less and delivers less than premium of the same size (R244).
TEST(Disk, StandardIsCheaperAndSlower) {
    EXPECT_LT(disk("standard-ssd", 1024).usd_per_month, disk("premium-ssd", 1024).usd_per_month);
    EXPECT_LT(disk("standard-ssd", 1024).bytes_per_s, disk("premium-ssd", 1024).bytes_per_s);
}

// A tier cannot be asked for more than it has; premium v2 delivers what is paid for, and its price is not known.
TEST(Disk, ThroughputIsCappedByTheTier) {
    EXPECT_NEAR(disk("premium-ssd", 1024, 900).bytes_per_s, 200e6, 1);
    EXPECT_NEAR(disk("premium-ssd-v2", 1024, 900).bytes_per_s, 900e6, 1);
    EXPECT_EQ(disk("premium-ssd-v2", 1024).usd_per_month, 0);
}

// Twice the nodes read twice as fast, each from its own disk.
TEST(Disk, EveryNodeReadsFromItsOwn) {
    TrainingSetup setup;
    setup.transformer = false;
    setup.sample_forward_flops = 1;
    setup.bytes_per_example = 1e6;
    setup.disk_bytes_per_s = 100e6;
    setup.device.matmul_flops.fill(1e15);
    setup.device.peak_flops.fill(1e15);
    setup.device.inside = setup.device.across = {1e15, 0, 1};
    setup.device.memory_bytes = 1e12;
    setup.device.memory_bytes_per_s = 1e12;
    TrainingEstimate one, two;
    ParallelLayout layout;
    layout.micro_batch = 64;
    evaluate(setup, layout, 1, one);
    layout.data = 2;
    layout.micro_batch = 32;
    evaluate(setup, layout, 2, two);
    const auto stall = static_cast<std::size_t>(TimeTerm::data_stall);
    EXPECT_GT(one.seconds[stall], 0.5);
    EXPECT_NEAR(two.seconds[stall] / one.seconds[stall], 0.5, 0.05);
}

}  // namespace
}  // namespace stoker
