// Colour, bars and tables for a terminal of 100 columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct Style {
    bool colour = false;
    bool unicode = true;
    int width = 100;

    std::string bold(std::string_view text) const { return paint("1", text); }
    std::string dim(std::string_view text) const { return paint("2", text); }
    std::string good(std::string_view text) const { return paint("32", text); }
    std::string warn(std::string_view text) const { return paint("33", text); }
    std::string bad(std::string_view text) const { return paint("31", text); }
    std::string paint(std::string_view code, std::string_view text) const;
};

struct BarPart {
    std::string name;
    double value = 0;
    std::string label;  // after the name: "3.9"
};
// ▕██████ matmul 3.9 │█ attention 0.5 ▏ scaled so that the blocks share `cells`; parts under one cell are named but get
// a thin block.
std::string stacked_bar(const Style& style, const std::vector<BarPart>& parts, int cells);

enum class Align : std::uint8_t { left, right };
struct Column {
    std::string head;
    Align align = Align::left;
};
// Pads by display width; the last column is wrapped to the style's width.
std::string table_text(const Style& style, const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows, int indent = 2);

}  // namespace stoker
