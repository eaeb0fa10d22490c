// What the words of a script come to: quotes taken away, variables followed where one value is known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lint/file.h"
#include "lint/read.h"

namespace stoker::lint {

class ShellTrace;
struct TracedText;
using ShellRuns = std::unordered_map<std::uint32_t, std::vector<std::vector<TracedText>>>;

// A run of bytes of an expanded word, and where they were written.
struct ShellRun {
    std::uint32_t at = 0;  // offset in Expanded::text
    Span host;
    const Source* source = nullptr;
    bool verbatim = true;  // byte for byte
    bool splits = false;   // came in by an unquoted variable: blanks in it part words
    bool known = true;     // false: as written, "$X"
};

struct Expanded {
    std::string text;
    std::vector<ShellRun> runs;
    bool known = true, assumed = false;
    // Where the one variable that the word consists of got its value.
    Span origin;
    const Source* origin_source = nullptr;

    Span host_of(std::uint32_t begin, std::uint32_t end, const Source** source) const;
    std::uint32_t end_of(std::size_t run) const {
        return run + 1 < runs.size() ? runs[run + 1].at : static_cast<std::uint32_t>(text.size());
    }
    void clear() {
        text.clear();
        runs.clear();
        known = true, assumed = false;
        origin = {};
        origin_source = nullptr;
    }
};

// Set by the scheduler or the launcher: a default for such a variable says nothing about the job.
bool set_by_scheduler(std::string_view name);

// Follows the variables of one script and of the scripts that it stands in. Bounded: what grows beyond a few times the
// size of the text stays unknown.
class ShellValues {
public:
    // The assignments of `file.script` may still be as the parser leaves them: values unknown with the raw word as
    // span.
    explicit ShellValues(File& file);
    ~ShellValues();

    // Those of the file, made at the first question; they go with drop() or the file.
    static ShellValues& of(const File& file);
    static void drop(File& file);

    Expanded expand(Span word);
    Expanded expand_body(Span body);  // of a heredoc whose delimiter is not quoted
    // The words that one raw word comes to (none for an empty array); appended to `words`.
    void append_words(Span word, std::vector<Value>& words);
    Value value(Span word);  // without splitting
    // What a word of one variable may be where it has no one value.
    std::vector<Value> alternatives(Span word);
    // A command of a function that calls give different arguments: its words in each of them; none elsewhere.
    std::vector<std::vector<Value>> words_in_calls(const Command& command);
    // The words of a command in each of its runs, where following the script tells more of them than looking at its
    // words does; none elsewhere.
    std::vector<std::vector<Value>> words_in_runs(const Command& command, const ReadOptions& options);
    // The runs of the commands of a file that the script sources; null: none of them runs.
    const ShellRuns* runs_in(const Source& sourced, const ReadOptions& options);
    // Of a file that is sourced: how whoever sources it runs its commands, in place of what the file alone tells.
    void run_by(const ShellRuns& runs) { run_by_ = &runs; }
    // What an assignment gives, where following the script tells.
    Value value_in_runs(const Assignment& assignment, const ReadOptions& options);
    // What stands around the script under that name: the environment of a container or a step, a script that holds it.
    Value outside(std::string_view name);
    // The files that a script sources, read as far as they lie beside it; before finish().
    static void read_sourced(File& file, const ReadOptions& options);
    // Puts values in place of what the parser left in the script.
    void finish();
    // The raw word that a Value of this script was made of.
    static Span raw(const Value& value, const Source& source);

private:
    static constexpr std::uint32_t kNone = ~0u;
    static constexpr std::size_t kMostValue = 64u << 10;
    struct Variable {
        std::uint32_t first = kNone, last = kNone;  // its assignments; next_write_ joins them
        enum class State : std::uint8_t { raw, settling, settled } state = State::raw;
        bool one = false;                  // a single text; else nothing is known
        bool array = false, open = false;  // open: elements may be missing
        bool is_default = false;           // ${X:=d}
        Expanded value;
        std::vector<Value> items;
        Span origin;
        const Source* source = nullptr;
    };
    struct Function {
        std::string_view name;
        Span body;
    };
    const ShellTrace& trace(const ReadOptions& options);
    Value value_of_traced(const TracedText& word);
    void learn_functions();
    const Function* function_at(std::uint32_t at);
    std::vector<Span> arguments_of(const Function& function, std::size_t number, bool all);
    bool put_argument(std::uint32_t at, std::size_t number, bool quoted, Expanded& out, int depth);
    enum class Given : std::uint8_t { unknown, yes, no };
    Given put_given(Span use, std::size_t number, bool quoted, Expanded& out, int depth);
    bool put_local(const Variable& variable, Span use, bool quoted, Expanded& out);
    bool arguments_of_call(Span word, std::vector<Value>& words);
    std::optional<std::size_t> shifted(const Function& function, std::uint32_t at) const;
    bool assigned_here(const Variable& variable) const;
    // The text of a value behind what is there; append: within the bound, and with what is known of it.
    static void join(const Expanded& value, bool quoted, Expanded& out);
    bool append(const Expanded& value, bool quoted, Expanded& out);
    std::optional<std::int64_t> calculated(Span expression, int depth);
    bool put_echo(std::string_view name, bool quoted, Expanded& out, int depth);
    bool put_printf(Span words, bool quoted, Expanded& out, int depth);
    bool put_keyed(const Variable& variable, std::string_view key, Span whole, bool quoted, Expanded& out, int depth);
    std::vector<Span> fields_read_into(std::string_view name) const;
    bool lines_read_into(std::string_view name, Span word, std::vector<Value>& words);
    static std::optional<std::string> edited(std::string_view value, std::string_view rest);
    void collect(Span word, std::vector<Value>& found, std::vector<std::string_view>& seen, int depth);
    bool put_last(const Variable& variable, Span use, bool quoted, Expanded& out);
    Variable& made(std::string_view name);
    Variable* find(std::string_view name);
    void settle_array(Variable& variable);
    void settle(Variable& variable);
    void text(std::uint32_t begin, std::uint32_t end, bool quoted, Expanded& out, int depth);
    std::uint32_t dollar(std::uint32_t at, std::uint32_t end, bool quoted, Expanded& out, int depth);
    void parameter(Span inside, Span whole, bool quoted, Expanded& out, int depth);
    void put(std::string_view bytes, Span host, bool verbatim, bool splits, bool known, Expanded& out);
    void put_unknown(Span span, Expanded& out);
    void put_variable(Variable& variable, Span use, bool quoted, Expanded& out);
    void expand_into(Span word, Expanded& out);
    bool array_of(Span word, std::vector<Value>& words);
    bool arguments_that_were_set(Span word, std::vector<Value>& words);
    std::vector<Span> keyed_values(const Assignment& assignment) const;
    bool plain_value(Span word, Value& result);
    bool never_known(std::string_view word);
    std::size_t refused_in(std::string_view word, bool& unknown, bool& positional);
    Value value_of(Span word, const Expanded& expanded);
    void split(Span word, const Expanded& expanded, std::vector<Value>& words);
    void settle_words(Command& command);
    void settle_assignment(Assignment& assignment);
    void take_default(std::string_view raw, Span word);
    bool spend(std::size_t bytes);

    File& file_;
    const Source& source_;
    std::string_view all_;
    std::unordered_map<std::string_view, Variable> variables_;
    std::vector<std::uint32_t> next_write_;  // of each assignment: the next one of the same name
    std::size_t budget_;
    std::vector<Function> functions_;
    bool functions_read_ = false;
    // While words are worked out for one call of a function.
    const Command* call_ = nullptr;
    Span called_;  // its body
    std::unique_ptr<ShellTrace> trace_;
    const ShellRuns* run_by_ = nullptr;
    // The word that never_known() looked at last, and where in it something might be known: words nest, and each is
    // asked about.
    struct Looked {
        std::uint32_t begin = 0, end = 0, refused = 0;
        bool unknown = false;
    };
    Looked looked_;
    // Kept for their memory.
    Expanded scratch_;
    std::vector<Value> collected_;
};

// The text of a word as a script of its own (bash -c "..."): variables of this script stay as they are written, so that
// the guest follows them; escapes are undone.
struct GuestText {
    std::string text;
    std::vector<Piece> pieces;
};
GuestText guest_of_runs(const Expanded& expanded, const Source& source, Span fallback);

}  // namespace stoker::lint
