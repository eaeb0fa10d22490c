#include "plan/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/embedded.h"
#include "base/tsv.h"
#include "sizing/nearness.h"

namespace stoker {

Result<Intervals> Intervals::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t metric, table.column("metric"));
    TRY(const std::size_t low, table.column("low"));
    TRY(const std::size_t high, table.column("high"));
    TRY(const std::size_t per, table.column("per_assumption"));
    Intervals out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Default d;
        TRY(d.low, table.number(row, low));
        TRY(d.high, table.number(row, high));
        TRY(d.per_assumption, table.number(row, per));
        if (!(d.low > 0 && d.low < 1)) return table.error(row, low, "a factor between 0 and 1 is wanted");
        if (!(d.high > 1)) return table.error(row, high, "a factor above 1 is wanted");
        if (!(d.per_assumption >= 0)) return table.error(row, per, "a share of 0 or more is wanted");
        out.defaults_.emplace(std::string(table.at(row, metric)), d);
    }
    return out;
}

Result<Intervals> Intervals::embedded() {
    return read(embedded_bytes("calibration/intervals.tsv"), "data/calibration/intervals.tsv");
}

const Intervals& calibrated_intervals() {
    static const Intervals* const all = [] {
        auto read = Intervals::embedded();
        CHECK(read.ok());
        return new Intervals(std::move(read).value());
    }();
    return *all;
}

Range Intervals::factors(std::string_view metric, const Range& own, std::size_t assumptions, double growth) const {
    const auto found = defaults_.find(metric);
    const Default d = found == defaults_.end() ? Default{1, 1, 0.1} : found->second;
    const double wider = 1 + d.per_assumption * static_cast<double>(assumptions);
    const Range table = grown({d.low, 1, d.high}, growth);
    const double low = std::min(own.low > 0 ? own.low : 1, table.low), high = std::max(own.high, table.high);
    return {std::exp(wider * std::log(low)), 1, std::exp(wider * std::log(high))};
}

}  // namespace stoker
