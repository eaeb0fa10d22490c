// The lines that figures are held against are those that are published for the size.
#include "readings/tool_size.h"

#include "readings/tool_test_help.h"

namespace stoker {
namespace {

TEST(ToolSize, PublishedLinesOfASize) {
    for (const char* name : {"Standard_ND96isr_H100_v5", "nd96isr-h100-v5"}) {
        const ToolSize size = tool_size(samples::of_size(name));
        EXPECT_EQ(size.name, "Standard_ND96isr_H100_v5");
        EXPECT_EQ(size.gpus, 8);
        EXPECT_EQ(size.ib_ports, 8);
        EXPECT_EQ(size.ib_min_gbps, 380);
        EXPECT_EQ(size.nccl_min_gb_s, 460);
        EXPECT_EQ(size.nccl_message_bytes, 16 * 1073741824.0);
        EXPECT_TRUE(size.has_nvlink());
        EXPECT_TRUE(size.has_infiniband());
        EXPECT_NE(size.ib_min_source.find("azurehpc-health-checks"), std::string::npos);
    }
    EXPECT_EQ(tool_size(samples::of_size("Standard_HB176rs_v4")).ib_min_gbps, 390);
}

TEST(ToolSize, SizesWithoutLinesKeepWhatTheCatalogueKnows) {
    const ToolSize size = tool_size(samples::of_size("Standard_NC4as_T4_v3"));
    EXPECT_EQ(size.gpus, 1);
    EXPECT_FALSE(size.ib_min_gbps.has_value());
    EXPECT_FALSE(size.has_infiniband());
    EXPECT_FALSE(size.has_nvlink());
    EXPECT_FALSE(tool_size({}).known());
}

}  // namespace
}  // namespace stoker
