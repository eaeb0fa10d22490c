// The answer that is read first: short, in one unit, nothing wider than the terminal but what is copied from it.
#include "app/render/short_answer.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker {
namespace {

ShortAnswer example() {
    return {.task = "Train llama-3-8b on 150B tokens within 14 d, cheapest",
            .machines = "9 x Standard_ND96asr_v4, eastus, spot",
            .hardware = "72 A100-SXM-40GB, HDR InfiniBand",
            .time = "8.5 days (6.8 - 13.2)",
            .money = "$6,960 ($4,380 - $13,100)",
            .chance = "92 % to make the deadline",
            .lines = {{"why", "cheapest of 118,114 candidates; next 8 x ND96amsr_A100_v4: 7 % more, as fast", ""},
                      {"first", "needs 864 vCPUs of lowPriorityCores quota in eastus: not checked (--usage)", ""},
                      {"next", "4 other choices, what was assumed", "stoker plan examples/llama-3-8b.yaml --full"}}};
}

TEST(ShortAnswer, OneUnitForAllThree) {
    EXPECT_EQ(duration_in_one_unit({6.8 * 24, 8.5 * 24, 13.2 * 24}), "8.5 days (6.8 - 13.2)");
    EXPECT_EQ(duration_in_one_unit({1.2, 1.35, 1.7}), "81 min (72 - 102)");
    EXPECT_EQ(duration_in_one_unit({22, 32, 50}), "32 h (22 - 50)");
    EXPECT_EQ(duration_in_one_unit({8, 8, 8}), "8 h");
    EXPECT_EQ(duration_in_one_unit({40.0 / 3600, 49.0 / 3600, 72.0 / 3600}), "49 s (40 - 72)");
    EXPECT_EQ(duration_in_one_unit({0.5 / 3600, 1.0 / 3600, 2.0 / 3600}), "1 s (0.5 - 2)");
}

TEST(ShortAnswer, ThreeDigitsOfMoney) {
    EXPECT_EQ(rounded_money(6959.6), "$6,960");
    EXPECT_EQ(rounded_money(1234567), "$1,230,000");
    EXPECT_EQ(rounded_money(105.28), "$105");
    EXPECT_EQ(rounded_money(95.457), "$95.46");
    EXPECT_EQ(rounded_money(0), "$0");
    EXPECT_EQ(rounded_money(0.000004), "under $0.01");
    EXPECT_EQ(rounded_money_range({5, 5, 5}), "$5.00");
}

TEST(ShortAnswer, FitsTheTerminalAndKeepsCommandsWhole) {
    for (const int width : {40, 60, 80, 100, 160}) {
        const std::string text = render_answer(example(), {.colour = false, .unicode = true, .width = width});
        bool command = false;
        for (const std::string_view line : split_lines(text)) {
            const std::size_t at = line.find("stoker plan examples/llama-3-8b.yaml --full");
            command |= at != std::string_view::npos;
            if (at == std::string_view::npos) {
                EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
            }
        }
        EXPECT_TRUE(command) << width;
    }
    const std::string wide = render_answer(example(), {.colour = false, .unicode = true, .width = 100});
    EXPECT_NE(wide.find("\n  9 x Standard_ND96asr_v4, eastus, spot   72 A100-SXM-40GB, HDR InfiniBand\n"),
              std::string::npos);
    EXPECT_NE(wide.find("\n  8.5 days (6.8 - 13.2)   $6,960 ($4,380 - $13,100)   92 % to make the deadline\n"),
              std::string::npos);
    EXPECT_LE(split_lines(wide).size(), 12U);
}

TEST(ShortAnswer, SaysThatThereIsNoPlan) {
    ShortAnswer answer{.task = "Train x on 1B tokens",
                       .machines = {},
                       .hardware = {},
                       .time = {},
                       .money = {},
                       .chance = {},
                       .lines = {}};
    answer.lines.push_back({"because", "the fastest takes 3 d", ""});
    EXPECT_EQ(render_answer(answer, {.colour = false, .unicode = true, .width = 100}),
              "Train x on 1B tokens: no plan\n\n  because  the fastest takes 3 d\n");
}

}  // namespace
}  // namespace stoker
