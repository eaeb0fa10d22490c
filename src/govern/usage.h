// Usage in money: allocation intervals times the price book. Pure.
//
// The cost of a piece of an interval is F(to) - F(from) with F(t) = floor(rate x milli x (t - start) / 3.6e12) in whole
// micro-dollars, so that pieces add up to the whole however they are cut.
#pragma once

#include <cstdint>
#include <string>

#include "govern/price_book.h"

namespace stoker {

// `milli` thousandths of something, held over [from, to), UTC microseconds.
struct UsageInterval {
    PricedResource resource = PricedResource::cpu;
    std::string node, model;
    std::int64_t milli = 1000;
    std::int64_t from_us = 0, to_us = 0;
    std::int64_t markup_bp = 0;  // on the price, of whoever held it
};
struct UsageWindow {
    std::int64_t from_us = 0, to_us = 0;
};

// F at `t`, of an interval that began at `start`; never negative, and at most 2^62.
std::int64_t cost_until(std::int64_t microusd_per_hour, std::int64_t milli, std::int64_t start_us, std::int64_t t_us);

// A rate with so many hundredths of a percent on top, in whole micro-dollars an hour: rounded once, so that pieces of
// an interval still add up to the whole.
std::int64_t marked_up(std::int64_t microusd_per_hour, std::int64_t basis_points);

struct Cost {
    std::int64_t microusd = 0;
    bool priced = true;  // false: no price was in force for a part of it
};
// The part of the interval that lies in the window. It is cut where the price changes.
Cost cost_of(const PriceBook& book, const UsageInterval& interval, const UsageWindow& window);
// Thousandths of an hour times thousandths of the resource, as hours.
double hours_of(const UsageInterval& interval, const UsageWindow& window);

}  // namespace stoker
