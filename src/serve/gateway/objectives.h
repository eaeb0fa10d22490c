// How far the service of each model is what its objective says, from the account of its requests: what was missed, what
// is left of the error budget, how fast it is spent; and alerts on that speed for Prometheus. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "govern/ledger/ledger_record.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

// Two of them are looked at together, so that an alert neither comes of a blip nor stays when it is over (Google, The
// Site Reliability Workbook, 2018, chapter 5, table 5-8): the long one says that it matters, the short one that it goes
// on.
struct BurnWindow {
    const char* word;        // "1h"
    const char* short_word;  // "5m"
    double hours;
    double budget_share;  // of the whole budget, spent in this window, is worth an alert
    bool page;            // somebody is called; else a ticket
};
inline constexpr std::array<BurnWindow, 3> kBurnWindows = {
    {{"1h", "5m", 1, 0.02, true}, {"6h", "30m", 6, 0.05, true}, {"3d", "6h", 72, 0.10, false}}};

struct KeptTimes {
    std::uint64_t count = 0;
    double p50_s = 0, p95_s = 0, p99_s = 0;
};
struct KeptBudget {
    double target = 0;  // share that has to be good; 0: nothing is asked
    std::uint64_t of = 0, missed = 0;
    double left = 1;                                      // of the budget; negative: overspent
    std::array<double, kBurnWindows.size()> burn{};       // 1: the budget lasts exactly as long as its window
    std::array<bool, kBurnWindows.size()> burns_alert{};  // faster than what is worth an alert
    double good_share() const { return of == 0 ? 1 : 1 - static_cast<double>(missed) / static_cast<double>(of); }
};
struct ObjectiveReport {
    std::string model;
    ServiceObjective objective;
    KeptBudget availability, times;
    KeptTimes first_token, answer;
    bool kept() const {
        return (availability.target == 0 || availability.left >= 0) && (times.target == 0 || times.left >= 0);
    }
};

class ObjectiveJudge {
public:
    ObjectiveJudge(const Setup& setup, std::int64_t now_unix_us);
    void take(const ReserveRecord& reserve, const SettleRecord& settle);
    std::vector<ObjectiveReport> reports();  // by name; once

private:
    struct Line {
        ObjectiveReport report;
        std::vector<float> first_s, answer_s;
        std::array<std::array<std::uint64_t, 2>, kBurnWindows.size()> unavailable{}, slow{};  // missed, of
    };
    const std::int64_t now_us_;
    std::map<std::uint64_t, Line> lines_;  // by model
};

enum class Judged : std::uint8_t { not_ours, good, slow, unavailable };
// not_ours: the client spoilt it itself, and it says nothing of the service.
Judged judge(const ServiceObjective& objective, LedgerOutcome outcome, int status, double first_token_s,
             double answer_s);

// Rules of Prometheus over the metrics of the gateway, for promtool and for whoever is called.
std::string objective_alerts(const Setup& setup);

}  // namespace stoker::gateway
