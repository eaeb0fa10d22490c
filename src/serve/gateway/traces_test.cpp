#include "serve/gateway/traces.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker::gateway {
namespace {

// Else a trace is torn in two at the gateway, or a header that anybody may send makes one up.
TEST(TraceParent, IsReadStrictlyAndWrittenAsItWas) {
    const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const auto read = TraceParent::read(good);
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->sampled);
    EXPECT_EQ(read->header(), good);
    EXPECT_FALSE(TraceParent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
    EXPECT_TRUE(TraceParent::read("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more")->sampled);
    for (const char* bad : {"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"})
        EXPECT_FALSE(TraceParent::read(bad)) << bad;
}

// Else a gateway whose collector is away grows until it is killed, or its end waits for the collector.
TEST(TraceExporter, KeepsABoundedNumberForACollectorThatIsAway) {
    auto made = TraceExporter::make({.to = "http://127.0.0.1:1"}, 1);
    ASSERT_TRUE(made);
    constexpr std::uint64_t kMany = 20'000;
    for (std::uint64_t i = 0; i < kMany; ++i) (*made)->record({.operation = "chat", .model = "demo"});
    EXPECT_GE((*made)->figures().dropped, kMany - 4096 - 512);
    EXPECT_EQ((*made)->figures().sent, 0u);
}

// Else a caller that traces nothing pays for it, or one of many requests is not one of many.
TEST(TraceExporter, TheCallerDecidesAndElseTheShare) {
    auto made = TraceExporter::make({.to = "http://127.0.0.1:1", .share = 0.25}, 1);
    ASSERT_TRUE(made);
    SplitMix random(5);
    const auto caller = TraceParent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    std::set<std::string> spans;
    for (int i = 0; i < 100; ++i) {
        const auto own = (*made)->begin(caller, random);
        ASSERT_TRUE(own);
        EXPECT_EQ(own->trace, caller->trace);
        EXPECT_TRUE(TraceParent::read(own->header()));
        spans.insert(own->span);
    }
    EXPECT_EQ(spans.size(), 100u);
    TraceParent silent = *caller;
    silent.sampled = false;
    EXPECT_FALSE((*made)->begin(silent, random));
    int recorded = 0;
    for (int i = 0; i < 4000; ++i) recorded += (*made)->begin(std::nullopt, random) ? 1 : 0;
    EXPECT_NEAR(recorded, 1000, 150);
}

}  // namespace
}  // namespace stoker::gateway
