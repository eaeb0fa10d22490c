#include "deploy/local/box.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A rank is given the nodes of its own devices on its own node.
TEST(Box, DevicesBelongToRanks) {
    const std::vector<NodeInfo> nodes = {
        {.name = "a", .devices = {{.id = "0", .file = "/dev/x0"}, {.id = "1", .file = "/dev/x1"}, {.id = "2"}}},
        {.name = "b", .devices = {{.id = "1", .file = "/dev/y1"}}}};
    EXPECT_EQ(files_of_devices(nodes, {.node = "a", .devices = {"1", "2"}}), std::vector<std::string>{"/dev/x1"});
    EXPECT_EQ(files_of_devices(nodes, {.node = "b", .devices = {"1"}}), std::vector<std::string>{"/dev/y1"});
    EXPECT_TRUE(files_of_devices(nodes, {.node = "a"}).empty());
}

// Without what images need, the refusal says what it is.
TEST(Box, SaysWhyImagesDoNotRun) {
    EXPECT_NE(why_no_images(TreeKind::process_group), "");
    LaunchOrder order{.operation = {"aaaaa", 1}};
    EXPECT_EQ(box_id(order, 3), "stoker-" + order.operation.text() + "-3");
    remove_boxes("/nonexistent", order);  // nothing to do is fine
}

}  // namespace
}  // namespace stoker
