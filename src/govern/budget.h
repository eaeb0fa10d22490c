// Budgets: how much of a month's money or GPU hours is gone, what will be, and when to warn, to let nothing more in and
// to stop. Pure.
//
// Stopping takes a notice, and what runs meanwhile costs: work is told to stop when what is used and one notice of all
// that runs reach the limit, so that the limit is overrun by less than what one notice costs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "govern/price_book.h"
#include "govern/tenants.h"

namespace stoker {

// Told so long before it is stopped for the sake of a budget; its own grace comes on top.
inline constexpr std::int64_t kBudgetNoticeS = 60;
inline constexpr std::size_t kMostBudgets = 10'000;

std::string month_of(std::int64_t at_us);  // "2026-11", UTC
// [begin, end) in microseconds; nothing for what is no month.
struct MonthWindow {
    std::int64_t from_us = 0, to_us = 0;
};
std::optional<MonthWindow> month_window(std::string_view month);

Status check_budget(const BudgetEntry& entry);

// What stands against a budget at a moment: micro-dollars, or millionths of a GPU hour.
struct BudgetLoad {
    std::int64_t used_micro = 0;        // of this month, up to now
    std::int64_t rate_micro_per_h = 0;  // of all that runs
    std::int64_t committed_micro = 0;   // what runs will still use, up to its known end or the end of the month
    std::int64_t notice_us = 0;         // the longest that anything takes to stop
    friend bool operator==(const BudgetLoad&, const BudgetLoad&) = default;
};

// Marks that are told once in a month each.
inline constexpr std::string_view kMarkHalf = "50", kMarkMost = "80", kMarkAll = "100", kMarkForecast = "forecast",
                                  kMarkStopping = "stopping";

struct BudgetStand {
    std::vector<std::string> marks;  // reached now and not told yet
    bool stop = false;               // what runs has to be told
    std::int64_t next_us = 0;        // look again by then; 0: when something changes
};
BudgetStand stand_of(const BudgetEntry& entry, const BudgetLoad& load, std::int64_t now_us);

// What a budget still lets in: kept by whoever admits, and brought up to date with each admission.
struct BudgetGate {
    std::string scope;
    BudgetUnit unit = BudgetUnit::usd;
    std::int64_t limit_micro = 0;
    bool reserve = false;
    std::int64_t ends_us = 0;  // of the month
    BudgetLoad load{};
    friend bool operator==(const BudgetGate&, const BudgetGate&) = default;

    // Of a run with this rate that lasts so long at most (0: nobody knows; to the end of the month).
    struct Request {
        std::int64_t rate_micro_per_h = 0, lasts_us = 0, notice_us = 0;
    };
    std::int64_t would_use_micro(const Request& request, std::int64_t now_us) const;
    bool lets_in(const Request& request, std::int64_t now_us) const {
        return would_use_micro(request, now_us) < limit_micro;
    }
    void take(const Request& request, std::int64_t now_us);
};

// rate x time, rounded down; at most 2^62.
std::int64_t micro_over(std::int64_t rate_micro_per_h, std::int64_t time_us);
// "$12.34", "3.5 GPU hours".
std::string budget_amount(BudgetUnit unit, std::int64_t micro);

// What was charged, summed: by month, project, person, and what it was for.
struct ChargeKey {
    std::string month;
    ProjectId project;
    std::string user;
    PricedResource resource = PricedResource::cpu;
    std::string model;
    friend auto operator<=>(const ChargeKey&, const ChargeKey&) = default;
};
struct ChargeSum {
    std::int64_t microusd = 0, micro_hours = 0, gpu_micro_hours = 0;
    bool priced = true;
    // Of tokens: how many, of how many requests, and what stays below a micro-dollar, in 1e-16 dollars.
    std::int64_t tokens = 0, requests = 0, left = 0;
    friend bool operator==(const ChargeSum&, const ChargeSum&) = default;
};
using Charges = std::map<ChargeKey, ChargeSum>;
inline constexpr int kMonthsOfCharges = 25;
// Adds, and lets go of months that are longer ago than kMonthsOfCharges.
void add_charge(Charges& charges, const ChargeKey& key, const ChargeSum& sum);
// Tokens that were charged, by day (its first microsecond, UTC); the newest kDaysOfTokens.
struct TokenDayKey {
    std::int64_t day_us = 0;
    ProjectId project;
    std::string user, model;
    friend auto operator<=>(const TokenDayKey&, const TokenDayKey&) = default;
};
using TokenDays = std::map<TokenDayKey, ChargeSum>;
inline constexpr int kDaysOfTokens = 92;
inline constexpr std::int64_t kDayUs = std::int64_t{86'400} * 1'000'000;
void add_token_day(TokenDays& days, const TokenDayKey& key, const ChargeSum& sum);
// What tokens of a level cost an hour lately: since yesterday began, or since there are any.
std::int64_t token_rate_micro_per_h(const TokenDays& days, const Tenants& tenants, std::string_view scope,
                                    std::int64_t now_us);
// Pico-dollars of a gateway with a mark-up, as whole micro-dollars; `left` goes on with the next piece, so that pieces
// add up to the whole however they are cut.
struct WholeMicro {
    std::int64_t microusd = 0, left = 0;
};
WholeMicro whole_micro(std::int64_t left, std::int64_t picousd, std::int64_t markup_bp);

// Of a month, of a level of the tree.
std::int64_t charged_micro(const Charges& charges, const Tenants& tenants, std::string_view month,
                           std::string_view scope, BudgetUnit unit);

}  // namespace stoker
