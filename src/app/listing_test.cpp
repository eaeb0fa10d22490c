#include "app/listing.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(FactTable, TextAndJsonComeFromTheSameCells) {
    const FactTable listing{{{"size", "size"}, {"usd", "$/h", Align::right}}, {{"a", 3.2}, {"b", Json()}}};
    EXPECT_NE(listing.text({}).find("3.2"), std::string::npos);
    EXPECT_EQ(listing.json().dump(0), R"([{"size":"a","usd":3.2},{"size":"b","usd":null}])");
}

TEST(FactTable, RetirementIsJudgedOnTheDay) {
    EXPECT_EQ(retirement_text("2023-09-06", "2023-09-05"), "retires on 2023-09-06");
    EXPECT_EQ(retirement_text("2023-09-06", "2023-09-06"), "retired since 2023-09-06");
    EXPECT_EQ(retirement_text("", "2023-09-06"), "");
}

}  // namespace
}  // namespace stoker
