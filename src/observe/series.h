// Series of measurements by run, rank and metric, on disk with a bound: every second for an hour, every minute for a
// day, every hour for a year. A point holds smallest, mean and largest, so that a spike stays visible however coarse
// the chart.
//
//     FOLDER/r-7/1s-1700000000.blk     blocks of 60 s of all ranks and metrics, a new file every 5 min
//     FOLDER/r-7/1m-...  1h-...        blocks of 60 min, of 24 h
//     FOLDER/r-7/explanation.json      what was judged from them when the run ended; goes with the last of them
//
// A block is a frame with a length and checksums (series_block.h). Files are only appended to; a block that was cut
// by a crash is cut off when the run is written again, and passed over by readers. After a crash the coarser points
// that were not on disk are made again from the finer ones; what is lost is the last minute.
// Means of minutes and hours are kept to 9 significant bits (0.2 %), seconds and the smallest and largest to 7 (0.8 %),
// or to the deviation from point to point of the same block where that is more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct SeriesPoint {
    std::int64_t at_s = 0;  // since 1970, the beginning of what the point covers
    float min = 0, mean = 0, max = 0;
    std::uint32_t count = 0;  // of measurements
};
struct RankSeries {
    int rank = 0;
    std::string metric;
    std::int64_t seconds = 1;  // that a point covers
    std::vector<SeriesPoint> points;
};
struct SeriesQuery {
    std::string run;
    std::vector<std::string> metrics;  // none: all
    std::optional<int> rank;
    std::int64_t from_s = 0, to_s = 0;  // to_s is not included
    std::size_t max_points = 500;       // of each series
};

// What may have series: a file is named after it.
bool is_series_name(std::string_view name);

inline constexpr std::size_t kMostKeptText = 64 << 10;

struct SeriesOptions {
    std::int64_t max_bytes = std::int64_t{2} << 30;  // of all runs; the finest and oldest goes first
    std::size_t max_columns = 32'768;                // ranks x metrics of a run
    std::size_t max_metrics = 96;                    // of a run
};

struct SeriesStats {
    std::int64_t added = 0, late = 0, refused = 0;  // refused: over a bound, or not a number
    std::int64_t blocks = 0, bytes_written = 0, cut_bytes = 0, damaged_blocks = 0;
    std::string error;  // of the last write that failed
};

// Any thread.
class SeriesStore {
public:
    static Result<std::unique_ptr<SeriesStore>> open(std::string folder, SeriesOptions options = {});
    ~SeriesStore();  // writes what is in memory
    SeriesStore(const SeriesStore&) = delete;
    SeriesStore& operator=(const SeriesStore&) = delete;

    // One measurement. Times of a run may come out of order within the block that is being filled; older is `late`.
    void add(const std::string& run, int rank, std::string_view metric, double at_s, double value);
    // Writes the points of the run that are in memory. A run that goes on afterwards is fine.
    void flush(const std::string& run);
    void end(const std::string& run);  // flush, and forget it
    // The time of the newest second on disk or in memory.
    std::optional<std::int64_t> newest(const std::string& run);
    // The finest points there are for the whole of the time that was asked for; several are put together where there
    // are more than max_points. By rank, then metric. Empty when nothing is known.
    Result<std::vector<RankSeries>> query(const SeriesQuery& query);
    // A text beside the series of a run, for as long as there are any; over kMostKeptText: invalid. A run without
    // series on disk: not_found, and nothing is kept.
    Status keep_text(const std::string& run, const std::string& text);
    Result<std::string> kept_text(const std::string& run) const;
    // Runs with seconds on disk, whose end was lately.
    std::vector<std::string> recent() const;
    // Removes what is older than its resolution is kept, and then whatever is over max_bytes.
    void tidy(std::int64_t now_s);
    SeriesStats stats() const;
    std::int64_t bytes() const;  // on disk

    class RunWriter;
    struct Shared;

private:
    SeriesStore(std::string folder, SeriesOptions options);
    std::shared_ptr<RunWriter> writer(const std::string& run, bool make);

    std::string folder_;
    std::shared_ptr<Shared> shared_;
    mutable std::mutex mutex_;  // guards writers_
    std::map<std::string, std::shared_ptr<RunWriter>, std::less<>> writers_;
};

}  // namespace stoker
