#include "io/machine/device_program.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A rule that is misread would open a device to everybody. What the programs do is shown in cgroup_test.cpp.
TEST(DeviceProgram, WrongRulesAreRefused) {
    for (const char* rule : {"", "c", "c 1:3", "x 1:3 rwm", "c 1 rwm", "c 1:x rwm", "c -1:3 rwm", "c 1:3:4 rwm"}) {
        const Status attached = attach_device_program("/nonexistent", {rule});
        ASSERT_FALSE(attached) << rule;
        EXPECT_EQ(attached.error().kind(), ErrorKind::invalid) << rule << ": " << attached.error().message();
    }
    EXPECT_FALSE(attach_device_program("/nonexistent", {"c 1:3 rwm"}));
}

}  // namespace
}  // namespace stoker
