// The grammar of a shell, in one pass over the text. Nothing is run and control flow is ignored. Words stand in
// parse_words.cpp, commands in parse_commands.cpp, keywords in parse_keywords.cpp; what is a script at all, and what
// its errors mean, in read_shell.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lint/read.h"

namespace stoker::lint {

inline bool shell_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool shell_name_char(char c) {
    return shell_name_start(c) || (c >= '0' && c <= '9');
}
inline bool shell_blank(char c) {
    return c == ' ' || c == '\t';
}

// 1: ends a word; 2: the word is not plain.
inline constexpr std::array<std::uint8_t, 256> kWordChars = [] {
    std::array<std::uint8_t, 256> table{};
    for (const char c : {' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')', '\r'})
        table[static_cast<unsigned char>(c)] = 1;
    for (const char c : {'\'', '"', '$', '`', '\\'}) table[static_cast<unsigned char>(c)] = 2;
    return table;
}();

class ShellParser {
public:
    explicit ShellParser(File& file)
        : file_(file), script_(file.script), s_(file.source().text()), end_(static_cast<std::uint32_t>(s_.size())) {}

    void run();

private:
    // What is open in a list and waits for its end.
    enum class Open : std::uint8_t { paren, brace, if_, loop, case_pattern, case_body };
    struct Opened {
        Open what;
        std::uint32_t at;
        bool function;
        bool head = true;     // of if, for, while: 'then' or 'do' is still to come
        bool last = false;    // of if: behind 'else'
        bool counts = false;  // of a loop: for, select
    };
    // What stands before the cursor: what may follow, and what must not end here, depends on it.
    enum class After : std::uint8_t {
        nothing,    // the beginning of a list or of a line
        opening,    // if, then, do, {, ( ...: a command must follow
        joining,    // && || |: a command must follow
        separator,  // ; &
        head_done,  // for x in a b: ';' or a line end, then 'do'
        command,
        compound  // fi, done, }, ) ...: only redirections may follow
    };
    struct Context {
        bool function = false, condition = false, substitution = false;
    };
    // One list of commands: the script, or the inside of $( ) or ` `.
    struct Level {
        Context outside, context;  // where it stands; the same with what is open in it
        std::vector<Opened> open;
        bool next_is_function = false;
        After after = After::nothing;
        std::uint32_t joined_at = 0;  // the last operator
        int depth = 0;

        bool top_is(Open what) const { return !open.empty() && open.back().what == what; }
        void update();
    };
    struct Pending {  // a heredoc whose body begins behind the next line end
        std::uint32_t id = 0;
        std::string delimiter;
        bool strip = false;
    };
    enum class Keyword : std::uint8_t { none, ends_command, command_follows };

    // ---- read_shell.cpp
    void read_shebang();
    bool is_shell() const;
    void other_language();
    void comment(std::uint32_t begin, std::uint32_t stop);
    void skip_comment();
    void fail(Span at, std::string_view message);   // nothing behind it is read
    void stray(Span at, std::string_view message);  // refused by a shell; the rest can still be read
    bool too_deep(int depth);
    void stop_too_deep();
    void skip_blanks();

    // ---- parse_commands.cpp
    void newline();
    void skip_lines();
    void end_list();
    void list(char closer, Context outside, int depth);
    void tell_what_is_open(const Level& level, char closer, bool closed, std::uint32_t start);
    void open(Level& level, Open what, std::uint32_t at);
    void close(Level& level, Span at);
    void separator(Level& level, std::uint32_t size, After after);
    void command(Level& level);
    bool redirect(Command& command, int depth);
    Value process_substitution(int depth);
    void unknown_variable(std::string_view name, Span span);
    void note_setters(const Command& command);

    // ---- parse_keywords.cpp
    Keyword keyword(const Value& value, Level& level);
    Keyword closes(Level& level, Open what, Span at, std::string_view message);
    Keyword goes_on(Level& level, Open what, bool head, Span at, std::string_view message);
    void loop_head(Level& level, std::uint32_t at);
    void open_loop(Level& level, std::uint32_t at);
    void coproc_name();
    void case_head(Level& level, std::uint32_t at);
    void function_head(Level& level);
    void pattern(Level& level);
    void test_brackets(int depth);

    // ---- parse_words.cpp
    Value word(int depth);
    void part(bool& plain, int depth);
    void double_quoted(std::uint32_t at, int depth);
    void backticks(std::uint32_t at, int depth);
    void dollar(bool quoted, int depth);
    void braces(std::uint32_t at, bool quoted, int depth);
    void step(int depth);  // over an escaped character, a quoted part, or one character
    void skip_parens(int depth);
    bool arithmetic(std::uint32_t at);
    void broken_continuation(std::uint32_t at);
    bool assignment(std::vector<Assignment>& into, bool exported, bool condition, int depth);
    void array_items(std::vector<Value>& items, std::uint32_t open, int depth);

    char peek(std::uint32_t ahead = 0) const { return i_ + ahead < end_ ? s_[i_ + ahead] : '\0'; }
    bool at_line_end(std::uint32_t at) const {
        return at < end_ && (s_[at] == '\n' || (s_[at] == '\r' && at + 1 < end_ && s_[at + 1] == '\n'));
    }
    bool ends_word(std::uint32_t at) const { return at >= end_ || kWordChars[static_cast<unsigned char>(s_[at])] == 1; }

    File& file_;
    Script& script_;
    std::string_view s_;
    std::uint32_t i_ = 0, end_;
    std::vector<Value> words_;  // of the commands that are being read, the innermost last
    std::vector<Pending> pending_;
    std::vector<Span> bodies_;
    std::vector<std::string_view> exported_;
    int pipeline_ = 0, list_ = 0, next_pipeline_ = 0, next_list_ = 0;
    bool all_exported_ = false;  // set -a
    bool seen_code_ = false, deep_ = false, chained_ = false;
    bool strict_ = true;  // false: zsh, which has shorter forms of loops and conditions
};

}  // namespace stoker::lint
