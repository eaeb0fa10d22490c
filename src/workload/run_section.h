// `run:` of the workload file: how the work is started, in the user's words and with their places. run/spec/compile.h
// makes a RunSpec of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/table.h"
#include "base/units.h"

namespace stoker {

inline constexpr int kMostRanks = 16'384;  // of a run
inline constexpr int kMostRanksOfNode = 512;

// A text with its place.
struct PlacedText {
    std::string text;
    SourcePos pos;
};

// One text is a script for a shell; a list is a program and its arguments, which no shell looks at.
struct CommandForm {
    std::vector<PlacedText> words;  // of a script: one
    bool script = false;
    // What runs a script: it follows these words as one argument.
    std::vector<std::string> interpreter = {"sh", "-e", "-c"};
    SourcePos pos;
    bool given() const { return !words.empty(); }
};

struct RunUploadForm {
    std::string to, tier;
    int keep = 3, every = 1;
    bool at_end = true;
    std::map<std::string, SourcePos> at;
};
struct RunCheckpointForm {
    std::string folder = "checkpoints";
    std::optional<Seconds> every;
    bool automatic = false;  // every: auto
    int keep = 3;
    std::string restore_from;
    std::optional<RunUploadForm> upload;
    std::map<std::string, SourcePos> at;
};

struct LeaseForm {
    std::optional<Seconds> stop_after, hard_max;
    std::map<std::string, SourcePos> at;
};

struct RequiresForm {
    std::vector<std::string> commands, python_modules, paths;
    std::string python, driver;
    std::optional<Bytes> disk;
    std::map<std::string, SourcePos> at;
};

// Where its steps are seen, of a program that writes no STOKER_METRICS_FILE.
struct ObserveForm {
    std::string step_pattern, heartbeat;
    std::map<std::string, SourcePos> at;
};

enum class TopologyWord : std::uint8_t { unsaid, prefer, require };

// What a run and a step of a run both have. What is absent in a step is taken from the run.
struct RunFields {
    CommandForm command;
    std::map<std::string, PlacedText> environment;
    std::string folder;  // relative to the file; empty: the file's own
    std::string image;
    std::optional<int> ranks, ranks_per_node, nodes;
    std::optional<double> cpus, gpus;  // of one rank
    std::optional<Bytes> memory;       // of one rank
    std::string gpu;
    TopologyWord topology = TopologyWord::unsaid;
    std::optional<int> restarts, attempts;
    std::optional<Seconds> timeout, grace;
    std::optional<std::vector<int>> transient_exit_codes;
    std::optional<RunCheckpointForm> checkpoint;
    std::optional<RequiresForm> needs;
    std::optional<ObserveForm> observe;
    std::map<std::string, SourcePos> at;

    SourcePos place(std::string_view key) const;
};

enum class StepFailure : std::uint8_t { fail, continue_others, ignore };
struct RunStepForm : RunFields {
    std::string name;
    std::vector<PlacedText> after;
    StepFailure on_failure = StepFailure::fail;
    std::optional<int> retries;
};

enum class RunClassWord : std::uint8_t { guaranteed, interactive, spot };
struct SweepParameter {
    std::string name;
    std::vector<std::string> values;  // as written: 1e-4
    SourcePos pos;
};
struct RunSection : RunFields {
    std::optional<LeaseForm> lease;
    std::optional<Seconds> queue_timeout;
    std::optional<std::string> engine;  // of several; none: any
    RunClassWord run_class = RunClassWord::guaranteed;
    int priority = 0;
    std::map<std::string, PlacedText> labels;
    std::vector<SweepParameter> sweep;      // all combinations; the last one varies fastest
    std::optional<std::vector<int>> array;  // its indices
    std::vector<RunStepForm> steps;         // a graph
    std::optional<int> parallel;            // of these at once
    bool foreign = false;                   // read from another tool's file: ${...} is what it is there
};

inline constexpr std::size_t kMaxPoints = 1000;        // of a sweep and an array together
inline constexpr std::size_t kMaxGraphSteps = 10'000;  // of all points together

const RecordTable<RunSection>& run_section_table();

// Values that are each fine but not together: no command, a cycle, a parameter that nothing uses.
void check_run_section(const RunSection& section, Problems& problems);

// How many runs the sweep and the array make; 1 when there is neither.
std::size_t points_of(const RunSection& section);

// "0-9", "1-7:2", "0,3,8-10", "10" (0 to 9), each with "%4" behind it: four of them at once.
struct ArrayIndices {
    std::vector<int> indices;
    std::optional<int> parallel;
};
Result<ArrayIndices> parse_array(std::string_view text);

// ${name} in a text. `names` has what may stand there; `values` of one point in the same order.
struct Placeholder {
    std::size_t begin = 0, end = 0;  // of the text, braces included
    std::string name;
    bool escaped = false;  // $${name}: stays, as ${name}
};
std::vector<Placeholder> placeholders_in(std::string_view text);

// A file with version, name and run and nothing to plan.
struct RunFile {
    std::string name;
    RunSection run;
};
// The mapping has `run` and no key that only planning needs.
bool is_run_file(const Node& root);
Result<RunFile> read_run_file_form(const Document& document);

}  // namespace stoker
