// What the words of a script come to: quotes taken away, variables followed where one value is known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lint/file.h"

namespace stoker::lint {

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
};

// Follows the variables of one script and of the scripts that it stands in. Bounded: what grows beyond a few times the
// size of the text stays unknown.
class ShellValues {
public:
    // The assignments of `file.script` may still be as the parser leaves them: values unknown with the raw word as
    // span.
    explicit ShellValues(File& file);
    ~ShellValues();

    Expanded expand(Span word);
    Expanded expand_body(Span body);  // of a heredoc whose delimiter is not quoted
    // The words that one raw word comes to (none for an empty array); appended to `words`.
    void append_words(Span word, std::vector<Value>& words);
    Value value(Span word);  // without splitting
    // Puts values in place of what the parser left in the script.
    void finish();
    // The raw word that a Value of this script was made of.
    static Span raw(const Value& value, const Source& source);

private:
    struct Variable;
    Variable* find(std::string_view name);
    void settle(Variable& variable);
    void text(std::uint32_t begin, std::uint32_t end, bool quoted, Expanded& out, int depth);
    std::uint32_t dollar(std::uint32_t at, std::uint32_t end, bool quoted, Expanded& out, int depth);
    void parameter(Span inside, Span whole, bool quoted, Expanded& out, int depth);
    void put(std::string_view bytes, Span host, bool verbatim, bool splits, bool known, Expanded& out);
    void put_unknown(Span span, Expanded& out);
    void put_variable(Variable& variable, Span use, bool quoted, Expanded& out);
    bool array_of(Span word, std::vector<Value>& words);
    bool spend(std::size_t bytes);

    File& file_;
    const Source& source_;
    std::string_view all_;
    std::unordered_map<std::string_view, std::unique_ptr<Variable>> variables_;
    std::size_t budget_;
    std::vector<std::unique_ptr<ShellValues>> hosts_;  // of the script outside, when there is one
};

// The text of a word as a script of its own (bash -c "..."): variables of this script stay as they are written, so that
// the guest follows them; escapes are undone.
struct GuestText {
    std::string text;
    std::vector<Piece> pieces;
};
GuestText guest_of_runs(const Expanded& expanded, const Source& source, Span fallback);

}  // namespace stoker::lint
