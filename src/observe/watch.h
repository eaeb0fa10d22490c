// The observer: a thread that asks every second what was measured of the ranks that live, wherever they run, and writes
// it as series. It weighs less than 1 % of a processor for 64 ranks of this machine, and nothing that hangs where they
// run hangs the server: all it shares with others is behind a mutex that is never held while somebody is asked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/measure.h"
#include "io/worker.h"
#include "observe/gang_meter.h"
#include "observe/series.h"

namespace stoker {

// The ranks of an attempt that live. The same attempt goes on from where it was.
struct WatchedGang {
    std::string run;
    int attempt = 0;
    std::vector<LiveRank> live;
    // What is new; `live` is empty for the last question, when all have ended. An error is asked again, but for
    // `unsupported`.
    std::function<Result<Measures>(const std::vector<LiveRank>& live, const MeasureQuery& query)> read;
};

// The newest of a rank, for tables.
struct RankNow {
    std::string run;
    int attempt = 0;
    LiveRank rank;
    double at_s = 0;  // wall clock of what was told last, by the clock of where it runs
    std::optional<double> step;
    std::map<std::string, double> values;  // by the names of the series
};

struct ObserverOptions {
    double period_s = 1;
    std::shared_ptr<SeriesStore> series;  // none: nothing is kept
    double tidy_every_s = 60;
    std::function<double()> wall_s;     // empty: this machine's
    std::function<void()> before_look;  // on the observer's thread; may call watch()
    std::size_t max_ranks = 1024;       // gangs that would be over are not looked at
};

struct ObserverStats {
    std::uint64_t ticks = 0, skipped = 0;  // skipped: the look before took longer than the period
    double last_tick_s = 0, cpu_s = 0;     // processor time of the thread
    double worst_late_s = 0;               // how much later than planned a look began
    std::size_t ranks = 0, not_watched = 0;
    std::uint64_t gaps = 0;  // answers that could not go on where the last one ended
    double busy_for_s = 0;   // how long the look that is under way takes already: many seconds mean that it hangs
    std::string error;       // of the last gang that could not be asked; empty: of the last look none
};

class Observer {
public:
    static std::unique_ptr<Observer> start(ObserverOptions options);
    // Waits two seconds for a look that is under way; one that hangs is left behind, with what it holds.
    ~Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    // All that live now. A run without ranks any more is ended: its series are written out. Never waits for a look.
    void watch(std::vector<WatchedGang> gangs);
    std::vector<RankNow> latest(const std::string& run = "") const;
    ObserverStats stats() const;

private:
    struct Shared;
    explicit Observer(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    std::shared_ptr<Shared> shared_;
    WorkerPool thread_{{.name = "stoker-look"}};  // told apart by whoever measures what looking costs
};

}  // namespace stoker
