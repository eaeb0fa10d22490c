// How far a program is and how long its steps take, from what it writes: JSON lines (STOKER_METRICS_FILE), a heartbeat
// file, or its output. All three read only what is new, and nothing that a program writes can make them grow or fail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

// One line: the numbers it held.
struct StepLine {
    std::optional<double> step;
    std::optional<double> time_s;                        // since 1970, when the line says ("time")
    std::optional<int> rank;                             // when the line says
    std::vector<std::pair<std::string, double>> values;  // without those three, and finite
    bool lost = false;                                   // its loss is not finite
};

struct TailLimits {
    std::size_t max_line = 16 << 10;
    std::size_t max_read = 1 << 20;     // at a time
    std::size_t max_behind = 16 << 20;  // more is passed over: what was meant is what happens now
    std::size_t max_values = 64;        // of a line
    bool returns_end = false;           // a carriage return ends a line as well: of progress bars
};

// The new whole lines of a file that another process appends to. A file that was replaced or cut begins anew.
class TailReader {
public:
    explicit TailReader(std::string path, TailLimits limits = {}) : path_(std::move(path)), limits_(limits) {}
    // Calls use(line) for each, without the line end.
    template <class Use>
    void poll(const Use& use) {
        for (const std::string& line : next()) use(line);
    }
    std::vector<std::string> next();
    // Of the lines of the last next(): how long the file was at the least when each had been written.
    const std::vector<std::int64_t>& written() const { return written_; }
    void skip_to_end();
    const std::string& path() const { return path_; }
    std::int64_t dropped_lines() const { return dropped_lines_; }  // longer than a line may be
    std::int64_t skipped_bytes() const { return skipped_bytes_; }
    bool more() const { return more_; }  // there was more than one poll reads

private:
    std::string path_;
    TailLimits limits_;
    std::uint64_t device_ = 0, inode_ = 0;
    std::int64_t offset_ = 0, dropped_lines_ = 0, skipped_bytes_ = 0;
    bool known_ = false, discarding_ = false, more_ = false;
    std::string part_;          // a line that is not whole yet
    std::int64_t part_at_ = 0;  // where it begins
    std::vector<std::int64_t> written_;
};

// A number at the front of `text`, "nan" and "inf" among them; its length, or 0.
std::size_t number_at(std::string_view text, double& value);
// What training minimises. That of an evaluation may have no value before the first one.
bool names_loss(std::string_view name);

// {"step": 12, "step_s": 0.2, "wait_s": 0.01, "rank": 0, "time": 1700000000.5, "loss": 2.3}; nothing: not such a line.
// NaN and Infinity, as Python writes them, and "nan" are a number that is not finite.
std::optional<StepLine> parse_step_line(std::string_view line, const TailLimits& limits = {});

// "step {step}/{} loss {loss} {step_s} s/step": {name} is a number of that name, {} any text without blanks, a blank
// any run of blanks; all else stands for itself. It may stand anywhere in a line.
class StepPattern {
public:
    static Result<StepPattern> parse(std::string_view text);
    std::optional<StepLine> match(std::string_view line) const;

private:
    struct Part {
        enum class Kind : std::uint8_t { text, number, anything, blanks } kind = Kind::text;
        std::string text;  // or the name
    };
    std::optional<StepLine> match_at(std::string_view line, std::size_t at) const;
    std::vector<Part> parts_;
};

// When the lines of an output were written, by how long its file was then (observe/line_clock.h).
class WrittenClock {
public:
    virtual ~WrittenClock() = default;
    virtual std::shared_ptr<void> watch(const std::string& path) = 0;  // as long as it is held; null: not yet
    virtual std::optional<double> when(const std::string& path, std::int64_t size) = 0;
};
class OutputSteps;

class TrackerFile;

// Which of them. counted: its output as it is, where no pattern is known (observe/output_steps.h); tracker: a file that
// a tracker of experiments writes (observe/tracker_file.h).
struct StepSource {
    enum class Kind : std::uint8_t { lines, heartbeat, output, counted, tracker } kind = Kind::lines;
    std::string path;
    std::optional<StepPattern> pattern;   // of output
    std::shared_ptr<WrittenClock> clock;  // of output and what is counted in it; none: lines came when they were read
};

// Lines of any source, with the step time worked out from when they came where they do not say it, and "not_finite",
// the number of the step, where the loss was not.
class StepReader {
public:
    StepReader(StepSource source, TailLimits limits = {});
    // now_s: wall clock. The value step_s is in every line that has a step, except the first.
    std::vector<StepLine> poll(double now_s);
    // The same of lines that somebody else has read: of a heartbeat, what the file holds each time.
    std::vector<StepLine> take(const std::vector<std::string>& lines, double now_s);
    void skip_to_end() { tail_.skip_to_end(); }
    // From now on it does not matter when lines were written.
    void forget_times() {
        watched_.reset();
        source_.clock.reset();
    }
    StepSource::Kind kind() const { return source_.kind; }
    std::int64_t bad_lines() const { return bad_lines_; }
    const TailReader& tail() const { return tail_; }  // of a tracker nothing

private:
    std::vector<StepLine> poll_heartbeat(double now_s);
    std::optional<StepLine> heartbeat(const std::string& text);
    std::optional<StepLine> read(const std::string& text);
    std::vector<StepLine> take_output(const std::vector<std::string>& texts, double now_s);
    void complete(std::vector<StepLine>& lines, double now_s);

    StepSource source_;
    TailLimits limits_;
    TailReader tail_;
    std::shared_ptr<OutputSteps> counted_;
    std::shared_ptr<TrackerFile> tracker_;
    std::shared_ptr<void> watched_;
    std::int64_t bad_lines_ = 0;
    std::optional<double> last_step_, last_s_;
    std::string last_heartbeat_;
};

}  // namespace stoker
