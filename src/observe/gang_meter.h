// Looks at the ranks of one gang that live on this machine: what their processes use, and the steps that they write.
// Whoever runs ranks has one, wherever that is: the driver of this machine, the host of a rank on a node of a cluster.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/measure.h"
#include "observe/gpu_source.h"
#include "observe/line_clock.h"
#include "observe/process_sample.h"
#include "observe/pulse.h"
#include "observe/step_file.h"

namespace stoker {

// JSON lines of a rank: `metrics_file` for rank 0, "metrics.rank-3.jsonl" beside "metrics.jsonl" for rank 3.
std::string rank_metrics_file(const std::string& metrics_file, int rank);

// The names of the series, with unit and meaning; programs add their own from their lines.
struct MeasureInfo {
    std::string_view name, unit, meaning;
};
const std::vector<MeasureInfo>& measures();
// What two samples say, by those names; `threads_before` is the sample of the last look at threads, `interface` what
// the environment names for collectives.
std::vector<std::pair<std::string_view, double>> measures_of(const ProcessSample& before, const ProcessSample& now,
                                                             const ProcessSample* threads_before,
                                                             std::string_view interface = {});

struct MeterOptions {
    ProcRoots roots;
    SampleOptions sample;
    double from_s = 0;  // as MeasureQuery::from_s
    // Whose children, and theirs, are the gang's: for whoever looks at one rank of several here. 0: those of the ranks.
    pid_t ours = 0;
    bool tells_machine = true;             // and does it for all that are here
    std::size_t most_lines = 16384;        // of one look; steps that find no room come with the next
    std::shared_ptr<GpuSource> gpus = {};  // none: nothing is told of GPUs
};

// One thread at a time.
class GangMeter {
public:
    // `log_folder`: rank-0.out and so on.
    GangMeter(MeasureSpec spec, std::string log_folder, MeterOptions options = {})
        : spec_(std::move(spec)), log_folder_(std::move(log_folder)), options_(std::move(options)) {}

    // Before the program of a rank is started, by whoever starts it: what its files hold now is of an earlier attempt.
    void begin(int rank);
    // What is new of those that live here; of those that have gone since, what they wrote last. The first look at a
    // process gives no rates. at_us: monotonic, of the table; two looks with the same one see no new sample.
    std::vector<MeasureLine> look(const ProcessTable& table, std::int64_t at_us, const std::vector<LiveRank>& live,
                                  double now_s);

private:
    struct Rank {
        LiveRank who;
        RankSampler sampler;
        std::vector<StepReader> readers;
        std::vector<MeasureLine> held;  // of steps that were counted in its output, until it is clear that nobody tells
        std::optional<ProcessSample> last, last_threads;
        std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES of its environment, once it was looked at
        bool first = true, gone = false;     // gone: its pid may become another's
        bool settled = false;                // what its output counts, or its tracker has written, are its steps
        double seen_s = 0;                   // since when it is looked at
        int looks = 0;
        bool has_steps = false;
        std::shared_ptr<Pulse> pulse;  // of one that shows none
        std::optional<StepSource::Kind> inferred_from;
    };
    std::vector<StepReader> readers_of(int rank);
    void read_steps(Rank& rank, bool gone, double now_s, std::vector<MeasureLine>& lines);
    static void read_losses(const Rank& rank, StepReader& reader, double now_s, std::vector<MeasureLine>& lines);
    void take_pulse(Rank& rank, const ProcessTable& table, double now_s, std::vector<MeasureLine>& lines) const;
    void look_for_tracker(Rank& rank, const ProcessTable& table, double now_s) const;
    void tell_machine(const ProcessTable& table, std::int64_t at_us, double used, MeasureLine* line);
    void tell_gpus(const ProcessTable& table, const std::vector<LiveRank>& live,
                   std::vector<std::pair<int, std::size_t>> told, std::vector<MeasureLine>& lines);
    std::int64_t ticks_of_ours(const ProcessTable& table) const;

    MeasureSpec spec_;
    std::string log_folder_;
    MeterOptions options_;
    std::map<int, Rank> ranks_;
    std::map<int, std::vector<StepReader>> begun_;
    std::shared_ptr<LineClock> clock_;
    bool told_ = false;                   // some rank tells its steps: none is inferred
    std::optional<MachineStat> machine_;  // at the last look
    std::optional<double> fabric_bytes_;  // of InfiniBand, alike
    std::int64_t machine_us_ = 0, our_ticks_ = 0;
};

}  // namespace stoker
