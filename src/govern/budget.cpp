#include "govern/budget.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "govern/quota.h"

namespace stoker {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kSecondsUs = 1'000'000, kHourUs = 3600 * kSecondsUs;
constexpr std::int64_t kMostMicro = std::int64_t{1} << 52;  // 4.5 thousand million dollars
constexpr std::int64_t kLookAtLeastUs = 3600 * kSecondsUs;

std::int64_t part(std::int64_t whole, std::int64_t percent) {
    return static_cast<std::int64_t>(static_cast<Wide>(whole) * percent / 100);
}

std::int64_t start_of_month(int year, int month) {  // month from 0
    std::tm tm{};
    tm.tm_year = year - 1900 + month / 12;
    tm.tm_mon = month % 12;
    tm.tm_mday = 1;
    return static_cast<std::int64_t>(::timegm(&tm)) * kSecondsUs;
}

int month_number(std::string_view month) {
    return 12 * ((month[0] - '0') * 1000 + (month[1] - '0') * 100 + (month[2] - '0') * 10 + (month[3] - '0')) +
           (month[5] - '0') * 10 + (month[6] - '0') - 1;
}

}  // namespace

std::string month_of(std::int64_t at_us) {
    const std::time_t seconds = static_cast<std::time_t>(at_us / kSecondsUs);
    std::tm tm{};
    ::gmtime_r(&seconds, &tm);
    return fmt::format("{:04}-{:02}", tm.tm_year + 1900, tm.tm_mon + 1);
}

std::optional<MonthWindow> month_window(std::string_view month) {
    const auto digit = [&](std::size_t at) { return month[at] >= '0' && month[at] <= '9'; };
    if (month.size() != 7 || month[4] != '-') return std::nullopt;
    for (const std::size_t at : {0, 1, 2, 3, 5, 6})
        if (!digit(at)) return std::nullopt;
    const int number = month_number(month), of_year = (month[5] - '0') * 10 + (month[6] - '0');
    if (of_year < 1 || of_year > 12 || number < 12 * 1970 || number >= 12 * 9000) return std::nullopt;
    return MonthWindow{start_of_month(number / 12, number % 12), start_of_month(number / 12, number % 12 + 1)};
}

Status check_budget(const BudgetEntry& entry) {
    if (entry.limit_micro >= 0 && entry.limit_micro <= kMostMicro) return done();
    return Error(ErrorKind::invalid,
                 fmt::format("a budget of {}, expected 0 to {}", budget_amount(entry.unit, entry.limit_micro),
                             budget_amount(entry.unit, kMostMicro)));
}

std::int64_t micro_over(std::int64_t rate_micro_per_h, std::int64_t time_us) {
    if (rate_micro_per_h <= 0 || time_us <= 0) return 0;
    return static_cast<std::int64_t>(
        std::min<Wide>(static_cast<Wide>(rate_micro_per_h) * time_us / kHourUs, Wide{1} << 62));
}

BudgetStand stand_of(const BudgetEntry& entry, const BudgetLoad& load, std::int64_t now_us) {
    BudgetStand stand;
    const std::string month = month_of(now_us);
    const auto told = [&](std::string_view mark) {
        return entry.month == month && std::find(entry.told.begin(), entry.told.end(), mark) != entry.told.end();
    };
    // When what is used reaches `micro` if all goes on as it does.
    const auto reached_at = [&](std::int64_t micro) -> std::int64_t {
        if (load.rate_micro_per_h <= 0) return 0;
        const Wide left = std::max<Wide>(0, static_cast<Wide>(micro) - load.used_micro);
        const Wide us = left * kHourUs / load.rate_micro_per_h + 1;
        return now_us + static_cast<std::int64_t>(std::min<Wide>(us, kLookAtLeastUs));
    };
    const auto sooner = [&](std::int64_t at_us) {
        if (at_us > 0 && (stand.next_us == 0 || at_us < stand.next_us)) stand.next_us = at_us;
    };
    for (const auto& [mark, percent] : {std::pair{kMarkHalf, 50}, {kMarkMost, 80}, {kMarkAll, 100}}) {
        if (told(mark)) continue;
        if (load.used_micro >= part(entry.limit_micro, percent))
            stand.marks.emplace_back(mark);
        else
            sooner(reached_at(part(entry.limit_micro, percent)));
    }
    if (!told(kMarkForecast) && static_cast<Wide>(load.used_micro) + load.committed_micro > entry.limit_micro)
        stand.marks.emplace_back(kMarkForecast);
    // One notice of all that runs is kept for stopping it.
    const std::int64_t notice = micro_over(load.rate_micro_per_h, load.notice_us), line = entry.limit_micro - notice;
    if (load.used_micro >= line && load.rate_micro_per_h > 0) {
        stand.stop = entry.on_exhausted == BudgetStop::stop_all;
        if (stand.stop && !told(kMarkStopping)) stand.marks.emplace_back(kMarkStopping);
    } else {
        sooner(reached_at(line));
    }
    if (const auto window = month_window(month)) sooner(window->to_us);
    return stand;
}

std::int64_t BudgetGate::would_use_micro(const Request& request, std::int64_t now_us) const {
    const std::int64_t notice_us = std::max(load.notice_us, request.notice_us);
    const Wide least =
        static_cast<Wide>(load.used_micro) + micro_over(load.rate_micro_per_h + request.rate_micro_per_h, notice_us);
    if (!reserve) return static_cast<std::int64_t>(std::min<Wide>(least, Wide{1} << 62));
    const std::int64_t to_end = std::max<std::int64_t>(0, ends_us - now_us),
                       lasts = request.lasts_us > 0 ? std::min(request.lasts_us, to_end) : to_end;
    const Wide whole =
        static_cast<Wide>(load.used_micro) + load.committed_micro + micro_over(request.rate_micro_per_h, lasts);
    return static_cast<std::int64_t>(std::min<Wide>(std::max(least, whole), Wide{1} << 62));
}

void BudgetGate::take(const Request& request, std::int64_t now_us) {
    const std::int64_t to_end = std::max<std::int64_t>(0, ends_us - now_us),
                       lasts = request.lasts_us > 0 ? std::min(request.lasts_us, to_end) : to_end;
    load.rate_micro_per_h += request.rate_micro_per_h;
    load.committed_micro += micro_over(request.rate_micro_per_h, lasts);
    load.notice_us = std::max(load.notice_us, request.notice_us);
}

std::string budget_amount(BudgetUnit unit, std::int64_t micro) {
    const char* sign = micro < 0 ? "-" : "";
    const std::int64_t whole = micro < 0 ? -micro : micro;
    if (unit == BudgetUnit::usd) return fmt::format("{}${}.{:02}", sign, whole / 1'000'000, whole % 1'000'000 / 10'000);
    return fmt::format("{}{:g} GPU hours", sign, static_cast<double>(whole / 1000) / 1000);
}

void add_charge(Charges& charges, const ChargeKey& key, const ChargeSum& sum) {
    ChargeSum& all = charges[key];
    all.microusd += sum.microusd;
    all.micro_hours += sum.micro_hours;
    all.gpu_micro_hours += sum.gpu_micro_hours;
    all.priced = all.priced && sum.priced;
    all.tokens += sum.tokens;
    all.requests += sum.requests;
    if (key.resource == PricedResource::tokens) all.left = sum.left;
    while (month_number(charges.begin()->first.month) + kMonthsOfCharges <= month_number(key.month))
        charges.erase(charges.begin());
}

void add_token_day(TokenDays& days, const TokenDayKey& key, const ChargeSum& sum) {
    ChargeSum& all = days[key];
    all.microusd += sum.microusd;
    all.tokens += sum.tokens;
    all.requests += sum.requests;
    const std::int64_t newest = days.rbegin()->first.day_us;
    while (days.begin()->first.day_us <= newest - kDaysOfTokens * kDayUs) days.erase(days.begin());
}

std::int64_t token_rate_micro_per_h(const TokenDays& days, const Tenants& tenants, std::string_view scope,
                                    std::int64_t now_us) {
    const std::int64_t yesterday = (now_us / kDayUs - 1) * kDayUs;
    Wide sum = 0;
    std::int64_t from = now_us;
    for (auto at = days.lower_bound(TokenDayKey{yesterday, {}, {}, {}}); at != days.end(); ++at) {
        const auto scopes = scopes_of({tenants.tenant_of(at->first.project), at->first.user});
        if (std::find(scopes.begin(), scopes.end(), scope) == scopes.end()) continue;
        from = std::min(from, at->first.day_us);
        sum += at->second.microusd;
    }
    return now_us <= from ? 0 : static_cast<std::int64_t>(sum * kHourUs / (now_us - from));
}

WholeMicro whole_micro(std::int64_t left, std::int64_t picousd, std::int64_t markup_bp) {
    constexpr std::int64_t kWhole = 10'000, kLeftOfMicro = 1'000'000 * kWhole;
    const Wide all = left + static_cast<Wide>(picousd) * (kWhole + markup_bp);
    return {static_cast<std::int64_t>(all / kLeftOfMicro), static_cast<std::int64_t>(all % kLeftOfMicro)};
}

std::int64_t charged_micro(const Charges& charges, const Tenants& tenants, std::string_view month,
                           std::string_view scope, BudgetUnit unit) {
    std::int64_t sum = 0;
    for (auto at = charges.lower_bound(ChargeKey{std::string(month), {}, {}, {}, {}});
         at != charges.end() && at->first.month == month; ++at) {
        const auto scopes = scopes_of({tenants.tenant_of(at->first.project), at->first.user});
        if (std::find(scopes.begin(), scopes.end(), scope) == scopes.end()) continue;
        sum += unit == BudgetUnit::usd ? at->second.microusd : at->second.gpu_micro_hours;
    }
    return sum;
}

}  // namespace stoker
