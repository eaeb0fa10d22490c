// What is known of the runs that rules of idleness are about: who they are, what they hold and what was measured of
// them. What is done to them stands in idle_guard.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "govern/idle.h"
#include "observe/series.h"
#include "run/engine/engine.h"
#include "run/state/rules.h"

namespace stoker {

inline constexpr std::int64_t kLongestPieceUs = 60 * kSecondUs;
// So much of the samples is judged at once: a heartbeat within it is no work.
std::int64_t piece_us(const IdleRule& rule);

// Of a run with an attempt, what judging and telling need.
struct WatchedRun {
    RunId run;
    std::uint32_t attempt = 0;
    IdleRule rule;
    std::string name{}, user{}, project{};  // project: ORGANISATION/PROJECT
    ProjectId project_id{};
    WasteSubject subject{};  // without samples
    int gpus_of_rank = 0;
    bool goes_on = false;
    std::int64_t checkpoint_us = 0, ends_us = 0, microusd_per_hour = 0;
    std::vector<std::string> notify{};
};
struct IdleScene {
    std::int64_t now_us = 0;
    std::vector<WatchedRun> live;
    std::map<RunId, WatchedRun> parked;  // held, and without a place
    std::set<RunId> there;               // all that have not ended
};

// As it is now; `remembered`: of those that do not run, too. Nothing: the engine ends.
std::optional<IdleScene> idle_scene(Engine& engine, const IdleRules& rules, const std::set<RunId>& remembered,
                                    const PriceBook& prices);
// What was measured of a run; without a store nothing.
std::vector<WasteSample> samples_of_run(SeriesStore* store, const WatchedRun& watched, std::int64_t from_us,
                                        std::int64_t now_us);

}  // namespace stoker
