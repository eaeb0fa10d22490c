// The short answer to a plan: what to rent, how long, how much, how sure, what can stop you, what to type next. Built
// once from the plan; text, JSON and HTML show the same lines. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/style.h"
#include "plan/plan.h"

namespace stoker {

inline constexpr double kHoursOfMonth = 730;  // 365 x 24 / 12, as the price pages of the clouds count

struct AnswerLine {
    std::string
        label;  // why, how, first, watch, sure?, cost, next; because, nearest, or of a plan that is not possible
    std::string text;
    std::string command;  // to be typed; text then says what for
};

struct ShortAnswer {
    std::string task;      // "Train llama-3-8b on 150B tokens within 14 d, cheapest"
    std::string machines;  // "8 x Standard_ND96amsr_A100_v4, eastus, on demand"; empty: no plan
    std::string hardware;  // "64 A100-SXM-80GB, HDR InfiniBand"
    std::string time;      // "8.6 days (7.1 - 11.9)"; of a service what a user waits for: "first token 85 ms (p95)"
    std::string money;     // "$54,100 ($44,600 - $74,900)"; of a service by the hour and by the month of 730 hours
    std::string chance;    // "93 % to make the deadline, 96 % to fit in memory"
    std::vector<AnswerLine> lines;
};

// `file`: the workload file as it was typed, for the commands under "next"; "FILE" where there is none.
ShortAnswer short_answer(const Plan& plan, const Catalog& catalog, std::string_view file);

// At most twelve lines where they are wide enough (about 90 columns); one column below the other in a narrow terminal.
std::string render_answer(const ShortAnswer& answer, const Style& style);

// "8.6 days (7.1 - 11.9)": one unit for all three, chosen by the middle.
std::string duration_in_one_unit(const Range& hours);
// "$54,100 ($44,600 - $74,900)": three digits, as a prediction deserves.
std::string rounded_money(double usd);
std::string rounded_money_range(const Range& usd);

}  // namespace stoker
