// The observer: a thread that looks at the live ranks of this machine every second and writes what it sees as series.
// It weighs less than 1 % of a processor for 64 ranks, and nothing that hangs in the kernel hangs the server: all it
// shares with others is behind a mutex that is never held while a file is read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/worker.h"
#include "observe/process_sample.h"
#include "observe/series.h"
#include "observe/step_file.h"

namespace stoker {

// A rank that lives. Equal ones (run, attempt, rank, pid) go on being looked at with what is known of them.
struct WatchedRank {
    std::string run;
    int attempt = 0, rank = 0;
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;  // 0: whatever process has the pid when it is first seen
    // Where its steps are. A line may name another rank of the run.
    std::vector<StepSource> sources;
    std::vector<std::string> folders;  // where it writes: the least room among them is kept
    std::string interface;             // that its environment names for collectives; empty: none
    bool operator==(const WatchedRank& other) const {
        return run == other.run && attempt == other.attempt && rank == other.rank && pid == other.pid;
    }
};

// JSON lines of a rank: `metrics_file` for rank 0, "metrics.rank-3.jsonl" beside "metrics.jsonl" for rank 3.
std::string rank_metrics_file(const std::string& metrics_file, int rank);

// The newest of a rank, for tables.
struct RankNow {
    WatchedRank rank;
    double at_s = 0;  // wall clock of the last look
    std::optional<double> step;
    std::map<std::string, double> values;  // by the names of the series
};

struct ObserverOptions {
    ProcRoots roots;
    double period_s = 1;
    SampleOptions sample;
    std::shared_ptr<SeriesStore> series;  // none: nothing is kept
    double tidy_every_s = 60;
    std::function<double()> wall_s;     // empty: this machine's
    std::function<void()> before_look;  // on the observer's thread; may call watch()
    std::size_t max_ranks = 1024;       // more are not looked at
};

struct ObserverStats {
    std::uint64_t ticks = 0, skipped = 0;  // skipped: the look before took longer than the period
    double last_tick_s = 0, cpu_s = 0;     // processor time of the thread
    double worst_late_s = 0;               // how much later than planned a look began
    std::size_t ranks = 0, not_watched = 0;
    double busy_for_s = 0;  // how long the look that is under way takes already: many seconds mean that it hangs
};

// The names of the series that the observer writes, with unit and meaning; programs add their own from their lines.
struct MeasureInfo {
    std::string_view name, unit, meaning;
};
const std::vector<MeasureInfo>& measures();
// What two samples say, by those names; `threads_before` is the sample of the last look at threads, `interface` what
// the environment names for collectives.
std::vector<std::pair<std::string_view, double>> measures_of(const ProcessSample& before, const ProcessSample& now,
                                                             const ProcessSample* threads_before,
                                                             std::string_view interface = {});

class Observer {
public:
    static std::unique_ptr<Observer> start(ObserverOptions options);
    // Waits two seconds for a look that is under way; one that hangs is left behind, with what it holds.
    ~Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    // All that live now. A run without ranks any more is ended: its series are written out. Never waits for a look.
    void watch(std::vector<WatchedRank> ranks);
    std::vector<RankNow> latest(const std::string& run = "") const;
    ObserverStats stats() const;

private:
    struct Shared;
    explicit Observer(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    std::shared_ptr<Shared> shared_;
    WorkerPool thread_{{.name = "stoker-look"}};  // told apart by whoever measures what looking costs
};

}  // namespace stoker
