#include "govern/price_book.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

// A wrong price file is told with all that is wrong, where, and what to write, or the bill is wrong.
TEST(PriceBookTest, WrongRowsAreToldTogetherWithTheirPlaces) {
    const auto read = PriceBook::read(
        "currency: EUR\nsource: x\nprices:\n"
        "  - {resource: gpu, usd_per_hour: 1, valid_from: yesterday}\n"
        "  - {resource: cpu, model: H100, usd_per_hour: 1, valid_from: 2026-01-01}\n",
        "prices.yaml");
    ASSERT_FALSE(read.ok());
    const std::string text = read.error().text();
    for (const char* part : {"only USD", "prices.yaml:1:", "yesterday", "prices.yaml:4:", "no model", "prices.yaml:5:"})
        EXPECT_THAT(text, HasSubstr(part));
    const auto typo =
        PriceBook::read("source: x\nprices:\n  - {resource: gpu, usd_per_huor: 1, valid_from: 2026-01-01}\n", "p");
    ASSERT_FALSE(typo.ok());
    EXPECT_THAT(typo.error().text(), HasSubstr("usd_per_hour"));
}

// The most particular price holds, and the newest of these.
TEST(PriceBookTest, TheMostParticularPriceHolds) {
    const auto book = PriceBook::read(
        "source: x\nprices:\n"
        "  - {resource: gpu, usd_per_hour: 1, valid_from: 2026-01-01}\n"
        "  - {resource: gpu, model: H100, usd_per_hour: 2, valid_from: 2026-01-01}\n"
        "  - {resource: gpu, usd_per_hour: 3, valid_from: 2026-02-01}\n"
        "  - {resource: gpu, model: H100, node: n1, usd_per_hour: 5, valid_from: 2026-03-01}\n",
        "p.yaml");
    ASSERT_TRUE(book.ok()) << book.error().text();
    const auto h100 = book->rates(PricedResource::gpu, "n1", "h100");
    ASSERT_EQ(h100.size(), 2u);
    EXPECT_EQ(h100[0].microusd_per_hour, 2'000'000);
    EXPECT_EQ(h100[1].microusd_per_hour, 5'000'000);
    const auto other = book->rates(PricedResource::gpu, "n2", "A100");
    ASSERT_EQ(other.size(), 2u);
    EXPECT_EQ(other[1].microusd_per_hour, 3'000'000);
    EXPECT_TRUE(book->rates(PricedResource::cpu, "n1", "").empty());
}

}  // namespace
}  // namespace stoker
