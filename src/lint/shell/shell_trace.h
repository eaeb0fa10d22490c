// What a script does when it runs, as far as its text tells: its lists, branches, loops and calls are followed with the
// values that variables have there, and each command is noted with the words that it is run with. A condition that is
// not known takes both ways; what they leave different is not known behind it. No program is run: a dozen that only
// change text are imitated (shell_trace_programs.cpp). Bounded in steps, in bytes and in depth; where a bound is met,
// what was seen up to there counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lint/file.h"
#include "lint/read.h"
#include "lint/shell/shell_tree.h"

namespace stoker::lint {

// Bounds of one script: commands and turns, bytes of values, bytes of a file, depth, turns of a loop.
inline constexpr std::size_t kMostTraceSteps = 20'000;
inline constexpr std::size_t kMostTracedBytes = 4u << 20;
inline constexpr std::size_t kMostTracedText = 256u << 10;
inline constexpr int kMostTraceDepth = 40, kMostTurns = 64;

// *, ? and [abc] of a shell's pattern.
bool shell_pattern_matches(std::string_view text, std::string_view pattern);

// A text, and where all of it is written when it is written in one piece.
struct TracedText {
    std::string text;
    Span at;
    const Source* source = nullptr;
    bool known = true, assumed = false;
    Span word;  // of the words of a command: the raw one that it came of
};

// By where the first word of a command begins.
using ShellRuns = std::unordered_map<std::uint32_t, std::vector<std::vector<TracedText>>>;

class ShellTrace {
public:
    ShellTrace(File& file, const ReadOptions& options);

    // The words of the command whose first word begins at `begin`, in each of its runs; each different one once.
    const std::vector<std::vector<TracedText>>* runs(std::uint32_t begin) const;
    // Those of the commands of a file that it sources, run here: functions of a library. Null: none is.
    const ShellRuns* runs_in(const Source& sourced) const;
    // The one value that the assignment at `begin` gives.
    const TracedText* assigned(std::uint32_t begin) const;

private:
    enum class Status : std::uint8_t { yes, no, unknown };
    struct Together;
    enum class Flow : std::uint8_t { on, break_loop, next_turn, leave_function, leave_script };
    struct Variable {
        bool list = false, keyed = false, set = true;
        bool open = false;  // elements may be missing, or it has no one value
        std::vector<TracedText> items;
        std::vector<std::string> keys;
        std::string refers;  // local -n
        bool operator==(const Variable& other) const;
    };
    using Variables = std::map<std::string, Variable, std::less<>>;
    struct Unit {
        const Source* source = nullptr;
        ShellTree tree;
    };
    struct Function {
        const Unit* unit = nullptr;
        int body = -1;
    };
    struct Feed {  // what a program reads
        TracedText text;
        std::size_t at = 0;
    };
    using Fields = std::vector<TracedText>;
    struct Frame {  // of a function: what its locals hide
        std::vector<std::pair<std::string, std::optional<Variable>>> hidden;
    };

    // ---- shell_trace.cpp: what runs
    Status run(int node);
    Status run_either(int node, Status left);
    Status choice(const ShellNode& node, std::size_t at);
    Status cases(const ShellNode& node);
    Status cases_from(const ShellNode& node, const TracedText& subject, std::size_t at);
    Status loop(const ShellNode& node);
    Status each(const ShellNode& node);
    Status counting(const ShellNode& node);
    Status pipeline(const ShellNode& node);
    Status simple(const ShellNode& node);
    Status call(const Function& function, Fields words);
    Status command(const Fields& words, const ShellNode& node);
    bool ended_turn();
    template <typename Yes, typename No>
    Status both_ways(Yes&& yes, No&& no);
    void merge(const Variables& other);
    bool feed_of(const ShellNode& node, Feed& out);
    void note(const ShellNode& node, const Fields& words);
    bool spend(std::size_t bytes);
    bool spent() const { return steps_ > kMostTraceSteps || bytes_ > kMostTracedBytes; }

    // ---- shell_trace_values.cpp: variables
    Variable* find(std::string_view name);
    Variable& made(std::string_view name);
    void set(std::string_view name, TracedText value);
    void set_unknown(std::string_view name);
    bool assign(Span word, bool local, std::string_view kind);
    void declare(const std::vector<Span>& words);
    void hide(std::string_view name);
    std::optional<std::int64_t> number(std::string_view expression);
    Status tested(const std::vector<Span>& words);
    Status test_command(const Fields& words);

    // ---- shell_trace_words.cpp: words
    class FieldMaker;
    std::string_view all() const { return unit_->source->text(); }
    void expand(Span word, Fields& out);
    TracedText text_of(Span word);
    TracedText body_of(const ShellFeed& feed);
    // `parts`: blanks outside of quotes part words, as in ${x:+--option value}.
    void text(std::uint32_t begin, std::uint32_t end, bool quoted, FieldMaker& out, bool parts = false);
    std::uint32_t dollar(std::uint32_t at, std::uint32_t end, bool quoted, FieldMaker& out);
    void parameter(Span inside, Span whole, bool quoted, FieldMaker& out);
    void put_value(Span whole, std::string_view name, std::string_view index, bool quoted, FieldMaker& out,
                   bool& is_set, bool& known);
    TracedText substituted(Span inside);
    TracedText changed(const TracedText& value, std::string_view op, Span word, Span whole);
    TracedText written(Span span, bool known) const;

    // ---- shell_trace_programs.cpp
    std::optional<TracedText> program(const Fields& words, const ShellNode& node);
    void calls_of_xargs(const Fields& words, const ShellNode& node, std::string_view input);
    static std::optional<std::string> formatted(const Fields& words, std::size_t at);
    std::optional<std::string> file_text(std::string_view name);
    void read_fields(const Fields& words, const ShellNode& node, std::string_view separators, Status& status);
    void read_lines(const Fields& words, const ShellNode& node);

    File& file_;
    const ReadOptions& options_;
    std::vector<std::unique_ptr<Unit>> units_;
    std::map<std::pair<const Source*, std::uint32_t>, std::unique_ptr<Unit>> substitutions_;
    const Unit* unit_ = nullptr;
    Variables variables_;
    std::map<std::string, Function, std::less<>> functions_;
    std::map<std::string, TracedText, std::less<>> written_;  // files
    std::map<std::string, std::int64_t, std::less<>> scheduled_;
    std::optional<Fields> arguments_;  // none: those of the script, which nobody knows
    std::vector<Frame> frames_;
    std::shared_ptr<Feed> input_;
    TracedText* output_ = nullptr;
    std::string separators_ = " \t\n";
    Flow flow_ = Flow::on;
    int depth_ = 0;
    std::size_t steps_ = 0, bytes_ = 0;
    ShellRuns runs_;
    std::map<const Source*, ShellRuns> elsewhere_;
    std::unordered_map<std::uint32_t, std::optional<TracedText>> assigned_;
};

}  // namespace stoker::lint
