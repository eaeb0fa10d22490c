#include "app/render/held_table.h"

#include <fmt/format.h>

namespace stoker {

std::string held_table(const Style& style, const std::vector<HeldRow>& rows) {
    std::vector<std::vector<std::string>> cells;
    cells.reserve(rows.size());
    for (const HeldRow& row : rows)
        cells.push_back({row.name, row.planned, row.low + " to " + row.high, row.measured,
                         fmt::format("x{:.2f}", row.ratio), row.verdict});
    return table_text(style,
                      {{""},
                       {"planned", Align::right},
                       {"80 % interval", Align::right},
                       {"measured", Align::right},
                       {"ratio", Align::right},
                       {""}},
                      cells);
}

}  // namespace stoker
