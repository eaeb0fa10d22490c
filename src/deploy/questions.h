// What is asked of an engine beside starting and ending work: what lies where the work runs. Each answer comes by its
// deadline and changes nothing but what it says; `unsupported`, the answer of every default, means that this engine
// cannot tell, and then the run goes on without.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/measure.h"
#include "base/result.h"

namespace stoker {

using Deadline = std::chrono::steady_clock::time_point;

// What has to be there before anything is held. Looked at where the work will run.
struct PrerequisitesSpec {
    std::vector<std::string> commands;        // found in PATH
    std::vector<std::string> python_modules;  // "torch", found by `python`
    std::string python = "python3";
    std::vector<std::string> paths;  // readable files and folders: data, scripts
    std::int64_t disk_bytes = 0;     // free where the run's folder lies
    std::string driver;              // lowest version of the NVIDIA driver: "535.104"; empty: any or none
    friend bool operator==(const PrerequisitesSpec&, const PrerequisitesSpec&) = default;
};
struct PrerequisitesPlace {
    std::string folder;                              // working directory of the run; relative names begin here
    std::string disk_folder;                         // where its free space is counted; empty: `folder`
    std::string image;                               // empty: none
    std::map<std::string, std::string> environment;  // of the spec; PATH, when it is absent, is the engine's own
    std::string root = "/";                          // of proc; for tests
    std::string engine;                              // of several: which one; empty: any will do
};

// Where a name of an image is said.
struct ImagePlace {
    std::string folder;  // where relative names begin
    std::string engine;  // of several: which one; empty: any will do
};

// The log of a rank, also after the operation was released.
struct LogPlace {
    OperationId launched;
    std::string log_folder;  // GangSpec::log_folder
    int rank = 0;
};
struct LogPiece {
    std::string text;
    std::string next;     // cursor
    bool at_end = false;  // nothing more was there
    bool gap = false;     // what came between the cursor and this text is gone
};
struct LogMatch {
    std::int64_t line = 0;  // from 1, of what is kept
    std::string text;
};
struct LogMatches {
    std::vector<LogMatch> items;
    std::int64_t lines = 0;
    bool cut = false;  // more matched, or more is kept than was looked through
};

// What lies in a folder of a run, below it, by path.
struct WorkFile {
    std::string path;
    std::int64_t bytes = 0, modified_us = 0;
};
struct WorkFiles {
    std::vector<WorkFile> items;
    bool cut = false;  // there are more
};
struct FilePart {
    std::string bytes;
    std::int64_t size = 0;  // of the whole file
};

// A folder of one step.
struct Checkpoint {
    std::string folder;
    std::int64_t step = 0;
    bool complete = false;
    std::string fault;  // why it is torn
};
struct Checkpoints {
    std::vector<Checkpoint> items;  // highest step first
    bool done = false;              // the program left its marker: there is nothing more to do
};

// A gang whose ranks are measured.
struct MeasuredGang {
    OperationId launched;
    std::string log_folder;      // GangSpec::log_folder
    MeasureSpec measure;         // GangSpec::measure
    std::vector<LiveRank> live;  // none: all have ended, and what they said last is wanted
};

class Questions {
public:
    virtual ~Questions() = default;

    // infeasible: what is missing, all of it, each with what to do. timed_out: it could not be told in time.
    virtual Status look_for(const PrerequisitesSpec& wanted, const PrerequisitesPlace& place, Deadline deadline) const;
    // The same name with the digest that it has now (image_name.h), so that every attempt gets the same bytes; a pinned
    // name and a bundle stay as they are.
    virtual Result<std::string> pin(const std::string& image, const ImagePlace& place, Deadline deadline) const;

    // From the cursor, or from the oldest that is kept when it is empty. invalid: no cursor of this engine. No log yet
    // is an empty one.
    virtual Result<LogPiece> read_log(const LogPlace& log, const std::string& cursor, std::size_t most,
                                      Deadline deadline) const;
    // The last `lines` lines, at most `most` bytes.
    virtual Result<LogPiece> tail_log(const LogPlace& log, std::size_t lines, std::size_t most,
                                      Deadline deadline) const;
    virtual Result<LogMatches> search_log(const LogPlace& log, const std::string& wanted, std::size_t most,
                                          Deadline deadline) const;

    // Regular files only, without following a link; no folder holds none.
    virtual Result<WorkFiles> list_files(const std::string& folder, std::size_t most, Deadline deadline) const;
    // At most `most` bytes from `from` on; none, but the size, behind the end. not_found: also what only a link or a
    // path out of the folder would reach.
    virtual Result<FilePart> read_file(const std::string& folder, const std::string& path, std::int64_t from,
                                       std::size_t most, Deadline deadline) const;
    // What was measured of its ranks after the cursor, where they run: bounded, and kept for a while only, so that
    // whoever asks every second misses nothing. invalid: no cursor of this engine. An engine that looks only when it is
    // asked has nothing from before the first question but what the ranks wrote down.
    virtual Result<Measures> read_measures(const MeasuredGang& gang, const MeasureQuery& query,
                                           Deadline deadline) const;

    // An error: it cannot be read, which is not the same as being empty.
    virtual Result<Checkpoints> list_checkpoints(const std::string& folder, Deadline deadline) const;
};

}  // namespace stoker
