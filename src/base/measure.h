// What is measured of the ranks of a gang where they run: how far they say they are, and what they use. Looked at by
// observe/gang_meter, carried by drivers (deploy/questions.h), kept as series by the observer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

// What is looked at beside the processes of the ranks.
struct MeasureSpec {
    std::string lines;                 // JSON lines of rank 0; rank 3 has "metrics.rank-3.jsonl" beside "metrics.jsonl"
    std::string heartbeat;             // a file of rank 0; of rank 3 with ".rank-3" behind it
    std::string step_pattern;          // of a line of a rank's log (observe/step_file.h)
    std::vector<std::string> folders;  // where the ranks write: the least room among them is told
    std::string interface;             // that their environment names for collectives
    friend bool operator==(const MeasureSpec&, const MeasureSpec&) = default;
};

struct LiveRank {
    int rank = 0;
    std::int64_t pid = 0;  // as its engine told
    std::string node;      // empty: nobody has said
    friend bool operator==(const LiveRank&, const LiveRank&) = default;
};

// Of one rank at one moment, by the names of the series (observe/gang_meter.h) and those that its program chose.
struct MeasureLine {
    int rank = 0;
    std::string node;
    double at_s = 0;  // wall clock of where it runs
    std::optional<double> step;
    std::vector<std::pair<std::string, double>> values;
};

struct MeasureQuery {
    std::string cursor;       // empty: from `from_s` on
    double from_s = 0;        // over 0: what is older is known, and what does not say when it was is too
    std::size_t most = 4096;  // lines
};
struct Measures {
    std::vector<MeasureLine> lines;  // of each rank the oldest first
    std::string next;                // cursor
    bool more = false;               // there is more now
    bool gap = false;                // what came between the cursor and these is gone
};

}  // namespace stoker
