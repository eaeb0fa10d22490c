// A narrow interval on a device that nobody has published a run of is a promise without ground.
#include "validate/unmeasured.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

TEST(UnmeasuredTest, OnlyDevicesWithoutRowsAreLessCertain) {
    const Catalog catalog = *Catalog::embedded();
    const Range own{0.8, 1, 1.25};
    const auto high = [&](const char* name, const char* kind) {
        return wider_where_unmeasured(own, catalog, *catalog.find_accelerator(name), kind).high;
    };
    EXPECT_EQ(high("H100-SXM", "serving"), own.high);
    EXPECT_GT(high("RTX-3060", "serving"), 1.5);
    EXPECT_GT(high("L4", "training"), own.high) << "five rows are not enough";
    EXPECT_EQ(wider_where_unmeasured(own, catalog, -1, "serving").high, own.high);
}

}  // namespace
}  // namespace stoker::validate
