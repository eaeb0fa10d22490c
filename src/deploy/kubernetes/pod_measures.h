// What ranks in pods tell of themselves, as measures: from the words of the container beside them (look_script.h), and
// from lines of their own logs where a pattern finds steps in those. Kept in files for whoever asks
// (local/measure_file.h), also when the gang is gone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/measure.h"
#include "deploy/local/measure_file.h"
#include "observe/process_sample.h"
#include "observe/step_file.h"

namespace stoker::kubernetes {

// The ranks of one pod.
class PodMeasures {
public:
    PodMeasures(const MeasureSpec& spec, int first_rank, int ranks, std::string node);
    // A line of the container beside the ranks; at_s: when the kubelet had it.
    std::vector<MeasureLine> told(std::string_view line, double at_s);
    // A line of a rank's own log.
    std::vector<MeasureLine> printed(int rank, std::string_view line, double at_s);

private:
    struct Rank {
        StepReader lines, beats, output;
        std::optional<ProcessSample> last;
        std::int64_t peak_bytes = 0;
    };
    std::vector<MeasureLine> steps(int rank, std::vector<StepLine> found, double at_s) const;
    std::vector<MeasureLine> used(int rank, std::string_view words, double at_s);

    const int first_rank_;
    const std::string node_, interface_;
    std::vector<Rank> ranks_;
};

// The values of a sample in the words of look_script; nothing: they are none.
std::optional<ProcessSample> read_pod_sample(std::string_view words);

// Which container a line is of.
struct MeasuredContainer {
    OperationId operation;
    MeasureSpec measure;  // step_pattern and interface
    std::string log_folder, node;
    int first_rank = 0, ranks = 1;  // of its pod
    int rank = -1;                  // whose own log it is; less than 0: the container beside them
    int of_gang = 1;                // how many ranks that has
};
struct LogLine {
    std::string text, time;  // time: "2026-11-21T10:00:13.736746455", UTC
};
// All pods that are followed. From any thread.
class MeasureBook {
public:
    void add(const MeasuredContainer& from, const std::vector<LogLine>& lines);
    void forget(const OperationId& operation);

private:
    struct Gang {
        std::unique_ptr<MeasureFile> file;
        std::map<int, PodMeasures> pods;  // by their first rank
    };
    std::mutex mutex_;  // guards what follows
    std::map<OperationId, Gang> gangs_;
};

}  // namespace stoker::kubernetes
