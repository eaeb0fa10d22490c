// Shell scripts, in one pass: commands with their words, assignments, heredocs, directives. Nothing is run and control
// flow is ignored. Longer than 500 lines because the grammar of a shell is one thing and cannot be cut in two.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "lint/read.h"
#include "lint/shell/directives.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr int kShellDepth = 100;  // of $( ) inside $( )

bool name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool name_char(char c) {
    return name_start(c) || (c >= '0' && c <= '9');
}
bool shell_blank(char c) {
    return c == ' ' || c == '\t';
}
bool is_declaration(std::string_view word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" || word == "typeset";
}

// 1: ends a word; 2: the word is not plain.
constexpr std::array<std::uint8_t, 256> kWordChars = [] {
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

    void run() {
        if (s_.starts_with("\xEF\xBB\xBF")) i_ = 3;
        read_shebang();
        if (!is_shell()) {
            other_language();
            return;
        }
        list(0, false, false, false, 0);
        for (Command& command : script_.commands)
            for (Redirect& redirect : command.redirects)
                if (redirect.op.starts_with("<<") && redirect.op != "<<<") {
                    const std::uint32_t id = redirect.body.begin;
                    redirect.body = id < bodies_.size() ? bodies_[id] : Span{};
                }
        if (exported_.empty()) return;
        const std::unordered_set<std::string_view> exported(exported_.begin(), exported_.end());
        for (Assignment& assignment : script_.assignments)
            if (!assignment.exported && exported.contains(assignment.name)) assignment.exported = true;
    }

private:
    enum class Open : std::uint8_t { paren, brace, if_, loop, case_pattern, case_body };
    struct Opened {
        Open what;
        std::uint32_t at;
        bool function;
    };

    char peek(std::uint32_t ahead = 0) const { return i_ + ahead < end_ ? s_[i_ + ahead] : '\0'; }
    bool at_line_end(std::uint32_t at) const {
        return at < end_ && (s_[at] == '\n' || (s_[at] == '\r' && at + 1 < end_ && s_[at + 1] == '\n'));
    }

    void read_shebang() {
        if (!s_.substr(i_).starts_with("#!")) return;
        const std::size_t stop = std::min(s_.find('\n', i_), s_.size());
        std::string_view line = s_.substr(i_, stop - i_);
        if (line.ends_with('\r')) line.remove_suffix(1);
        script_.shebang = {i_, i_ + static_cast<std::uint32_t>(line.size())};
        line.remove_prefix(2);
        while (!line.empty()) {
            const std::size_t begin = line.find_first_not_of(" \t");
            if (begin == std::string_view::npos) break;
            line.remove_prefix(begin);
            std::string_view word = line.substr(0, line.find_first_of(" \t"));
            line.remove_prefix(word.size());
            if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos)
                word = word.substr(slash + 1);
            if (word == "env" || word.starts_with("-") || word.find('=') != std::string_view::npos) continue;
            script_.interpreter = word;
            break;
        }
    }
    bool is_shell() const {
        const std::string_view name = script_.interpreter;
        for (const std::string_view shell : {"", "bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "busybox"})
            if (name == shell) return true;
        return name.starts_with("bash") || name.starts_with("ksh");
    }

    // Python, csh ...: the scheduler reads the directives above the first line of the program.
    void other_language() {
        while (i_ < end_) {
            const std::uint32_t stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
            std::uint32_t at = i_;
            while (at < stop && (shell_blank(s_[at]) || s_[at] == '\r')) ++at;
            if (at < stop && s_[at] != '#') seen_code_ = true;
            if (s_[i_] == '#' && i_ < stop) comment(i_, stop);
            i_ = stop + 1;
        }
        i_ = end_;
    }

    void comment(std::uint32_t begin, std::uint32_t stop) {
        if (stop > begin && s_[stop - 1] == '\r') --stop;
        const bool own_line = [&] {
            std::uint32_t at = begin;
            while (at > 0 && shell_blank(s_[at - 1])) --at;
            return at == 0 || s_[at - 1] == '\n';
        }();
        file_.comments.push_back({{begin, stop}, own_line});
        if (begin == 0 || s_[begin - 1] == '\n') read_directive(file_.source(), {begin, stop}, seen_code_, script_);
    }
    void skip_comment() {
        const std::uint32_t stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
        comment(i_, stop);
        i_ = stop;
    }

    void fail(Span at, std::string_view message) {
        if (script_.error_message.empty()) {
            script_.error = at;
            script_.error_message = message;
        }
        i_ = end_;
    }
    // Refused by a shell; the rest can still be read.
    void stray(Span at, std::string_view message) {
        const std::uint32_t here = i_;
        fail(at, message);
        i_ = here;
    }
    bool too_deep(int depth) {
        if (depth < kShellDepth) return false;
        if (!deep_) file_.problems.push_back({"SYN005", {i_, i_}, "commands are nested too deeply", &file_.source()});
        deep_ = true;
        i_ = end_;
        return true;
    }

    // Blanks and line continuations.
    void skip_blanks() {
        while (i_ < end_) {
            const char c = s_[i_];
            if (shell_blank(c) || (c == '\r' && peek(1) == '\n'))
                ++i_;
            else if (c == '\\' && at_line_end(i_ + 1))
                i_ += s_[i_ + 1] == '\r' ? 3 : 2;
            else
                break;
        }
    }

    // At '\n': the bodies of the heredocs of this line follow.
    void newline() {
        ++i_;
        for (const Pending& pending : pending_) {
            const std::uint32_t begin = i_;
            std::uint32_t body_end = end_;
            bool found = false;
            while (i_ < end_ && !found) {
                const std::uint32_t line = i_;
                std::uint32_t stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
                i_ = std::min(stop + 1, end_);
                if (stop > line && s_[stop - 1] == '\r') --stop;
                std::uint32_t at = line;
                while (pending.strip && at < stop && s_[at] == '\t') ++at;
                if (s_.substr(at, stop - at) == pending.delimiter) {
                    found = true;
                    body_end = line;
                }
            }
            bodies_[pending.id] = {begin, body_end};
        }
        pending_.clear();
    }

    // Behind && || | and the variable of a loop: it goes on in the next line.
    void skip_lines() {
        while (i_ < end_) {
            skip_blanks();
            if (peek() == '\n')
                newline();
            else if (peek() == '#')
                skip_comment();
            else
                break;
        }
    }

    void end_list() {
        pipeline_ = ++next_pipeline_;
        list_ = ++next_list_;
        chained_ = false;
    }

    // Commands until `closer` (0: the end; ')' of a substitution; '`').
    void list(char closer, bool function, bool condition, bool substitution, int depth) {
        if (too_deep(depth)) return;
        std::vector<Opened> open;
        const int saved_pipeline = pipeline_, saved_list = list_;
        const bool saved_chained = chained_;
        const std::uint32_t start = i_;
        end_list();
        bool next_is_function = false;
        Context context{function, condition, substitution};
        const auto update = [&] {
            context = {function, condition, substitution};
            for (const Opened& each : open) {
                if (each.function) context.function = true;
                if (each.what == Open::if_ || each.what == Open::loop || each.what == Open::case_body)
                    context.condition = true;
            }
        };
        const auto push = [&](Open what, std::uint32_t at) {
            if (open.size() > kMostDepth) {
                too_deep(kShellDepth);
                return;
            }
            open.push_back({what, at, next_is_function});
            next_is_function = false;
            update();
        };
        const auto top_is = [&](Open what) { return !open.empty() && open.back().what == what; };
        const auto pop = [&] {
            open.pop_back();
            update();
        };

        bool closed = closer == 0;
        while (i_ < end_) {
            skip_blanks();
            if (i_ >= end_) break;
            const char c = s_[i_];
            if (c == '\n') {
                newline();
                if (!top_is(Open::case_pattern)) end_list();
                continue;
            }
            if (c == '#') {
                skip_comment();
                continue;
            }
            if (top_is(Open::case_pattern)) {
                pattern(open, depth);
                update();
                continue;
            }
            if (c == closer && c == '`') {
                closed = true;
                break;
            }
            if (c == ';') {
                if (peek(1) == ';' || peek(1) == '&') {
                    i_ += peek(1) == ';' && peek(2) == '&' ? 3 : 2;
                    if (top_is(Open::case_body)) open.back().what = Open::case_pattern;
                    update();
                } else {
                    ++i_;
                }
                end_list();
                continue;
            }
            if (c == '&' && peek(1) != '>') {
                if (peek(1) == '&') {
                    i_ += 2;
                    pipeline_ = ++next_pipeline_;
                    chained_ = true;
                    skip_lines();
                } else {
                    ++i_;
                    if (!script_.commands.empty()) script_.commands.back().in_background = true;
                    end_list();
                }
                continue;
            }
            if (c == '|') {
                if (peek(1) == '|') {
                    i_ += 2;
                    pipeline_ = ++next_pipeline_;
                    chained_ = true;
                } else {
                    i_ += peek(1) == '&' ? 2 : 1;
                }
                skip_lines();
                continue;
            }
            if (c == '(') {
                seen_code_ = true;
                if (peek(1) == '(' && arithmetic(i_)) continue;
                const std::uint32_t at = i_++;
                push(Open::paren, at);
                continue;
            }
            if (c == ')') {
                if (top_is(Open::paren)) {
                    ++i_;
                    pop();
                    continue;
                }
                if (closer == ')' && open.empty()) {
                    closed = true;
                    break;
                }
                stray({i_, i_ + 1}, "a ')' without its '('");
                ++i_;
                continue;
            }
            command(context, open, push, pop, next_is_function, depth);
        }
        if (!closed && script_.error_message.empty() && !deep_) {
            fail({start > 0 ? start - 1 : 0, start},
                 closer == ')' ? "a '$(' that is not closed" : "a '`' without its end");
        } else if (script_.error_message.empty() && !open.empty() && !deep_) {
            const Opened& last = open.back();
            const char* const message = last.what == Open::paren   ? "a '(' that is not closed"
                                        : last.what == Open::brace ? "a '{' that is not closed"
                                        : last.what == Open::if_   ? "an 'if' without 'fi'"
                                        : last.what == Open::loop  ? "a loop without 'done'"
                                                                   : "a 'case' without 'esac'";
            fail({last.at, last.at + 1}, message);
        }
        pipeline_ = saved_pipeline;
        list_ = saved_list;
        chained_ = saved_chained;
    }

    struct Context {
        bool function, condition, substitution;
    };

    // One pattern of a case, through its ')'; or esac.
    void pattern(std::vector<Opened>& open, int depth) {
        if (s_.substr(i_, 4) == "esac" && (i_ + 4 >= end_ || kWordChars[static_cast<unsigned char>(s_[i_ + 4])] == 1)) {
            i_ += 4;
            open.pop_back();
            return;
        }
        if (peek() == '(') ++i_;
        while (i_ < end_ && peek() != ')') {
            const char c = peek();
            if (c == '\n') {
                newline();
            } else if (c == '\\') {
                i_ = std::min(i_ + 2, end_);
            } else if (c == '\'' || c == '"' || c == '$' || c == '`') {
                bool plain = true;
                part(plain, depth);
            } else if ((c == '@' || c == '!' || c == '+' || c == '?' || c == '*') && peek(1) == '(') {
                ++i_;
                skip_parens(depth);
            } else {
                ++i_;
            }
        }
        if (i_ < end_) {
            ++i_;
            open.back().what = Open::case_body;
            end_list();
        }
    }

    // Balanced ( ), quotes respected.
    void skip_parens(int depth) {
        const std::uint32_t at = i_;
        int level = 0;
        while (i_ < end_) {
            const char c = s_[i_];
            if (c == '(') {
                ++level;
                ++i_;
            } else if (c == ')') {
                ++i_;
                if (--level == 0) return;
            } else if (c == '\\') {
                i_ = std::min(i_ + 2, end_);
            } else if (c == '\'' || c == '"' || c == '$' || c == '`') {
                bool plain = true;
                part(plain, depth);
            } else {
                ++i_;
            }
        }
        fail({at, at + 1}, "a '(' that is not closed");
    }

    // (( ... )) with the parentheses at `at` and `at + 1`. False when it is something else: the one that closes the
    // second must be followed by another.
    bool arithmetic(std::uint32_t at) {
        int level = 0;
        for (std::uint32_t j = at; j < end_; ++j) {
            const char c = s_[j];
            if (c == '\'' || c == '"') {
                const std::size_t close = s_.find(c, j + 1);
                if (close == std::string_view::npos || close >= end_) return false;
                j = static_cast<std::uint32_t>(close);
            } else if (c == '(') {
                ++level;
            } else if (c == ')') {
                if (--level != 1) continue;
                if (j + 1 >= end_ || s_[j + 1] != ')') return false;
                i_ = j + 2;
                return true;
            }
        }
        return false;
    }

    // At one of ' " $ ` \ inside a word.
    void part(bool& plain, int depth) {
        const char c = s_[i_];
        const std::uint32_t at = i_;
        plain = false;
        if (c == '\\') {
            if (at_line_end(i_ + 1)) {
                i_ += s_[i_ + 1] == '\r' ? 3 : 2;
                return;
            }
            if (i_ + 1 < end_ && shell_blank(s_[i_ + 1])) broken_continuation(at);
            i_ = std::min(i_ + 2, end_);
        } else if (c == '\'') {
            const std::size_t close = s_.find('\'', i_ + 1);
            if (close == std::string_view::npos || close >= end_)
                fail({at, at + 1}, "a single quote that is not closed");
            else
                i_ = static_cast<std::uint32_t>(close) + 1;
        } else if (c == '"') {
            ++i_;
            double_quoted(at, depth);
        } else if (c == '`') {
            ++i_;
            backticks(at, depth);
        } else {
            dollar(false, depth);
        }
    }

    void broken_continuation(std::uint32_t at) {
        std::uint32_t j = at + 1;
        while (j < end_ && shell_blank(s_[j])) ++j;
        const bool word_begins = at == 0 || shell_blank(s_[at - 1]) || s_[at - 1] == '\n';
        if (at_line_end(j) || (j < end_ && s_[j] == '#' && word_begins)) {
            std::uint32_t stop = j;
            while (stop < end_ && s_[stop] != '\n' && s_[stop] != '\r') ++stop;
            script_.broken_continuations.push_back({at, stop});
        }
    }

    void double_quoted(std::uint32_t at, int depth) {
        while (i_ < end_) {
            const char c = s_[i_];
            if (c == '"') {
                ++i_;
                return;
            }
            if (c == '\\') {
                i_ = std::min(i_ + 2, end_);
            } else if (c == '$') {
                dollar(true, depth);
            } else if (c == '`') {
                const std::uint32_t tick = i_++;
                backticks(tick, depth);
            } else {
                ++i_;
            }
        }
        fail({at, at + 1}, "a double quote that is not closed");
    }

    void backticks(std::uint32_t at, int depth) {
        std::uint32_t close = i_;
        while (close < end_ && s_[close] != '`') close += s_[close] == '\\' ? 2 : 1;
        if (close >= end_) {
            fail({at, at + 1}, "a '`' without its end");
            return;
        }
        // Its own range: quotes cannot reach out of it.
        const std::uint32_t outer_end = end_;
        const bool had_error = !script_.error_message.empty();
        end_ = close;
        list(0, false, false, true, depth + 1);
        if (!had_error && !script_.error_message.empty()) {  // escapes inside are not undone: no verdict here
            script_.error_message = {};
            script_.error = {};
        }
        end_ = outer_end;
        i_ = close + 1;
    }

    // At '$'.
    void dollar(bool quoted, int depth) {
        const std::uint32_t at = i_;
        const char next = peek(1);
        if (next == '(') {
            if (peek(2) == '(') {
                if (arithmetic(at + 1)) return;
            }
            i_ += 2;
            list(')', false, false, true, depth + 1);
            if (i_ < end_) ++i_;
        } else if (next == '{') {
            i_ += 2;
            braces(at, quoted, depth);
        } else if (next == '\'' && !quoted) {
            i_ += 2;
            while (i_ < end_ && s_[i_] != '\'') i_ += s_[i_] == '\\' ? 2 : 1;
            if (i_ >= end_)
                fail({at, at + 2}, "a single quote that is not closed");
            else
                ++i_;
        } else if (next == '[') {
            ++i_;
        } else {
            ++i_;
            if (i_ < end_ && name_start(s_[i_])) {
                while (i_ < end_ && name_char(s_[i_])) ++i_;
            } else if (i_ < end_ && std::string_view("0123456789@*#?$!-").find(s_[i_]) != std::string_view::npos) {
                ++i_;
            }
        }
    }

    // Inside ${ .
    void braces(std::uint32_t at, bool quoted, int depth) {
        if (too_deep(depth)) return;
        if (peek() == '{') {  // ${{ input }} of a workflow or of Azure ML
            const std::size_t close = s_.find("}}", i_);
            if (close == std::string_view::npos || close + 2 > end_)
                fail({at, at + 2}, "a '${' that is not closed");
            else
                i_ = static_cast<std::uint32_t>(close) + 2;
            return;
        }
        if (peek() == '#' || peek() == '!') ++i_;
        while (i_ < end_) {
            const char c = s_[i_];
            if (c == '}') {
                ++i_;
                return;
            }
            bool plain = true;
            if (c == '\\') {
                i_ = std::min(i_ + 2, end_);
            } else if (c == '$') {
                dollar(quoted, depth + 1);
            } else if (c == '"' || c == '`' || (c == '\'' && !quoted)) {
                part(plain, depth + 1);
            } else {
                ++i_;
            }
        }
        fail({at, at + 2}, "a '${' that is not closed");
    }

    // A word as the parser leaves it: known when it is plain, else unknown with what is written.
    Value word(int depth) {
        const std::uint32_t begin = i_;
        bool plain = true;
        seen_code_ = true;
        while (i_ < end_) {
            const char c = s_[i_];
            const std::uint8_t kind = kWordChars[static_cast<unsigned char>(c)];
            if (kind == 0) {
                ++i_;
            } else if (kind == 2) {
                part(plain, depth);
            } else if (c == '(' && i_ > begin && std::string_view("@!+?*").find(s_[i_ - 1]) != std::string_view::npos) {
                skip_parens(depth);
                plain = false;
            } else if (c == '\r' && peek(1) != '\n') {
                ++i_;
            } else {
                break;
            }
        }
        i_ = std::min(i_, end_);
        Value value;
        value.state = plain ? Value::State::known : Value::State::unknown;
        value.span = {begin, i_};
        value.text = s_.substr(begin, i_ - begin);
        value.source = &file_.source();
        return value;
    }

    // NAME=, NAME+=, NAME[x]= at the cursor. False: no assignment; nothing is moved.
    bool assignment(std::vector<Assignment>& into, bool exported, bool condition, int depth) {
        if (!name_start(peek())) return false;
        std::uint32_t j = i_;
        while (j < end_ && name_char(s_[j])) ++j;
        const std::uint32_t name_end = j;
        bool indexed = false;
        if (j < end_ && s_[j] == '[') {
            const std::size_t stop = s_.find_first_of("]\n", j);
            if (stop == std::string_view::npos || stop >= end_ || s_[stop] != ']') return false;
            j = static_cast<std::uint32_t>(stop) + 1;
            indexed = true;
        }
        const bool appends = j + 1 < end_ && s_[j] == '+' && s_[j + 1] == '=';
        if (appends) ++j;
        if (j >= end_ || s_[j] != '=') return false;
        seen_code_ = true;
        Assignment result;
        result.name = s_.substr(i_, name_end - i_);
        result.appends = appends;
        result.exported = exported;
        result.in_condition = condition;
        const std::uint32_t begin = i_;
        i_ = j + 1;
        if (peek() == '(' && !indexed) {
            result.array = true;
            const std::uint32_t open = i_++;
            array_items(result.items, open, depth);
            if (!result.items.empty()) result.value = result.items.front();
            if (result.items.empty()) result.value = Value::known_text("", {i_, i_}, file_.source());
        } else {
            result.value = word(depth);
            if (indexed) result.value.state = Value::State::unknown, result.array = true;
        }
        result.span = {begin, i_};
        into.push_back(std::move(result));
        return true;
    }

    void array_items(std::vector<Value>& items, std::uint32_t open, int depth) {
        while (true) {
            skip_blanks();
            if (i_ >= end_) break;
            const char c = s_[i_];
            if (c == ')') {
                ++i_;
                return;
            }
            if (c == '\n') {
                newline();
            } else if (c == '#') {
                skip_comment();
            } else if (kWordChars[static_cast<unsigned char>(c)] == 1) {
                if (c == '<' || c == '>' || c == '&' || c == '|' || c == ';' || c == '(') {
                    if ((c == '<' || c == '>') && peek(1) == '(') {
                        ++i_;
                        skip_parens(depth);
                    } else {
                        ++i_;
                    }
                } else {
                    ++i_;
                }
            } else {
                items.push_back(word(depth));
            }
        }
        if (script_.error_message.empty()) fail({open, open + 1}, "a '(' that is not closed");
    }

    // At '<' or '>' (a number before it was skipped). False: a process substitution, which is a word.
    bool redirect(Command& command, int depth) {
        const char c = peek(), next = peek(1);
        if ((c == '<' || c == '>') && next == '(') return false;
        const std::uint32_t begin = i_;
        if (c == '&') {  // &> &>>
            i_ += peek(2) == '>' ? 3 : 2;
        } else if (c == '<' && next == '<') {
            i_ += peek(2) == '<' || peek(2) == '-' ? 3 : 2;
        } else if (next == '>' || next == '&' || next == '|') {
            i_ += 2;
        } else {
            ++i_;
        }
        Redirect result;
        result.op = s_.substr(begin, i_ - begin);
        skip_blanks();
        if (i_ >= end_ || kWordChars[static_cast<unsigned char>(peek())] == 1) return true;  // a placeholder <x>
        result.target = word(depth);
        if (result.op == "<<" || result.op == "<<-") {
            Pending pending;
            pending.id = static_cast<std::uint32_t>(bodies_.size());
            pending.strip = result.op == "<<-";
            for (std::size_t k = 0; k < result.target.text.size(); ++k) {
                const char each = result.target.text[k];
                if (each == '\'' || each == '"' || each == '\\')
                    result.literal = true;
                else
                    pending.delimiter += each;
            }
            result.body = {pending.id, pending.id};
            bodies_.push_back({});
            pending_.push_back(std::move(pending));
        }
        command.redirects.push_back(std::move(result));
        return true;
    }

    void test_brackets(int depth) {  // behind [[
        const std::uint32_t at = i_;
        while (i_ < end_) {
            const char c = s_[i_];
            if (c == '\n') {
                newline();
            } else if (c == ']' && peek(1) == ']' && shell_blank(s_[i_ - 1]) &&
                       (i_ + 2 >= end_ || kWordChars[static_cast<unsigned char>(s_[i_ + 2])] == 1)) {
                i_ += 2;
                return;
            } else if (c == '\\') {
                i_ = std::min(i_ + 2, end_);
            } else if (c == '\'' || c == '"' || c == '$' || c == '`') {
                bool plain = true;
                part(plain, depth);
            } else {
                ++i_;
            }
        }
        if (script_.error_message.empty()) fail({at - 2, at}, "a '[[' without ']]'");
    }

    void unknown_variable(std::string_view name, Span span) {
        Assignment assignment;
        assignment.name = name;
        assignment.value.state = Value::State::unknown;
        assignment.value.source = &file_.source();
        assignment.value.span = {span.end, span.end};
        assignment.span = span;
        assignment.in_condition = true;
        script_.assignments.push_back(std::move(assignment));
    }

    // One simple command, or a keyword.
    template <typename Push, typename Pop>
    void command(const Context& context, std::vector<Opened>& open, Push&& push, Pop&& pop, bool& next_is_function,
                 int depth) {
        Command result;
        result.span.begin = i_;
        result.in_function = context.function;
        result.in_condition = context.condition;
        result.in_substitution = context.substitution;
        const bool condition = context.condition || chained_;
        const std::uint32_t began = i_;
        bool declares = false;
        std::uint32_t last = i_;
        while (i_ < end_) {
            skip_blanks();
            if (i_ >= end_) break;
            const char c = s_[i_];
            if (c == '\n' || c == ';' || c == '|' || c == ')') break;
            if (c == '#') {
                skip_comment();
                break;
            }
            if (c == '&') {
                if (peek(1) != '>') break;
                redirect(result, depth);
                continue;
            }
            if (c == '<' || c == '>') {
                seen_code_ = true;
                if (!redirect(result, depth)) {
                    const std::uint32_t begin = i_++;
                    ++i_;
                    list(')', false, false, true, depth + 1);
                    if (i_ < end_) ++i_;
                    Value value;
                    value.state = Value::State::unknown;
                    value.source = &file_.source();
                    value.span = {begin, i_};
                    value.text = s_.substr(begin, i_ - begin);
                    result.words.push_back(value);
                    last = i_;
                }
                continue;
            }
            if (c == '(') {
                if (result.words.empty() && result.assignments.empty()) break;  // ! ( list )
                if (result.words.size() == 1 && result.assignments.empty()) {   // name ()
                    std::uint32_t j = i_ + 1;
                    while (j < end_ && shell_blank(s_[j])) ++j;
                    if (j < end_ && s_[j] == ')') {
                        i_ = j + 1;
                        next_is_function = true;
                        return;
                    }
                }
                ++i_;
                continue;
            }
            if (c >= '0' && c <= '9') {  // 2>&1
                std::uint32_t j = i_;
                while (j < end_ && s_[j] >= '0' && s_[j] <= '9') ++j;
                if (j < end_ && (s_[j] == '<' || s_[j] == '>') && j - i_ <= 2) {
                    i_ = j;
                    continue;
                }
            }
            if (result.words.empty()) {
                if (assignment(result.assignments, false, condition, depth)) {
                    last = i_;
                    continue;
                }
            } else if (declares) {
                const std::size_t before = script_.assignments.size();
                if (assignment(script_.assignments, result.words[0].text == "export", condition, depth)) {
                    if (before < script_.assignments.size()) last = i_;
                    continue;
                }
            }
            const std::uint32_t word_begin = i_;
            Value value = word(depth);
            if (i_ == word_begin) {
                ++i_;
                continue;
            }
            last = i_;
            if (result.words.empty() && value.known() && result.assignments.empty()) {
                const int keyword = reserved(value, open, push, pop, next_is_function, depth);
                if (keyword == 1) return;
                if (keyword == 2) {
                    result.span.begin = i_;
                    continue;
                }
                declares = is_declaration(value.text);
            } else if (declares && value.known() && result.words[0].text == "export" && !value.text.starts_with("-")) {
                exported_.push_back(value.text);
            }
            result.words.push_back(std::move(value));
        }
        if (i_ == began) {  // nothing that can be read: never stand still
            ++i_;
            return;
        }
        result.pipeline = pipeline_;
        result.list = list_;
        result.span.end = std::max(last, result.span.begin);
        if (result.words.empty() && result.redirects.empty()) {
            for (Assignment& each : result.assignments) script_.assignments.push_back(std::move(each));
            return;
        }
        note_setters(result);
        script_.commands.push_back(std::move(result));
    }

    // read X, printf -v X ...: what they put there is not known.
    void note_setters(const Command& command) {
        const std::string_view name = command.name();
        if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts" || name == "let") {
            for (std::size_t k = 1; k < command.words.size(); ++k)
                if (command.words[k].known() && !command.words[k].text.starts_with("-") &&
                    std::all_of(command.words[k].text.begin(), command.words[k].text.end(), name_char))
                    unknown_variable(command.words[k].text, command.words[k].span);
        } else if (name == "printf" && command.words.size() > 2 && command.words[1].is("-v")) {
            if (command.words[2].known()) unknown_variable(command.words[2].text, command.words[2].span);
        }
    }

    // 0: an ordinary word; 1: a keyword that ends this command; 2: a keyword, a command may follow on the spot.
    template <typename Push, typename Pop>
    int reserved(const Value& value, std::vector<Opened>& open, Push&& push, Pop&& pop, bool& next_is_function,
                 int depth) {
        const std::string_view text = value.text;
        if (text.size() > 8) return 0;
        const std::uint32_t at = value.span.begin;
        const auto close = [&](Open what, std::string_view message) {
            if (!open.empty() && open.back().what == what)
                pop();
            else
                stray(value.span, message);
            return 1;
        };
        switch (text[0]) {
            case 'i':
                if (text == "if") {
                    push(Open::if_, at);
                    return 1;
                }
                return 0;
            case 't':
                if (text == "then") return 1;
                if (text == "time") {
                    skip_blanks();
                    if (s_.substr(i_, 3) == "-p ") i_ += 3;
                    return 1;
                }
                return 0;
            case 'e':
                if (text == "else" || text == "elif") return 1;
                if (text == "esac") return close(Open::case_body, "an 'esac' without its 'case'");
                return 0;
            case 'f':
                if (text == "fi") return close(Open::if_, "a 'fi' without its 'if'");
                if (text == "for") {
                    loop_head(at, push, depth);
                    return 1;
                }
                if (text == "function") {
                    skip_blanks();
                    word(depth);
                    skip_blanks();
                    if (peek() == '(') {
                        ++i_;
                        skip_blanks();
                        if (peek() == ')') ++i_;
                    }
                    next_is_function = true;
                    return 1;
                }
                return 0;
            case 's':
                if (text == "select") {
                    loop_head(at, push, depth);
                    return 1;
                }
                return 0;
            case 'w':
            case 'u':
                if (text == "while" || text == "until") {
                    push(Open::loop, at);
                    return 1;
                }
                return 0;
            case 'd':
                if (text == "do") return 1;
                if (text == "done") return close(Open::loop, "a 'done' without its loop");
                return 0;
            case 'c':
                if (text == "case") {
                    skip_blanks();
                    word(depth);
                    while (i_ < end_) {
                        skip_blanks();
                        if (peek() == '\n')
                            newline();
                        else
                            break;
                    }
                    if (s_.substr(i_, 2) == "in") i_ += 2;
                    push(Open::case_pattern, at);
                    return 1;
                }
                return text == "coproc" ? 2 : 0;
            case '{':
                if (text == "{") {
                    push(Open::brace, at);
                    return 1;
                }
                return 0;
            case '}': return text == "}" ? close(Open::brace, "a '}' without its '{'") : 0;
            case '!': return text == "!" ? 2 : 0;
            case '[':
                if (text == "[[") {
                    test_brackets(depth);
                    return 1;
                }
                return 0;
            default: return 0;
        }
    }

    template <typename Push>
    void loop_head(std::uint32_t at, Push&& push, int depth) {
        skip_blanks();
        if (peek() == '(' && peek(1) == '(' && arithmetic(i_)) {
            push(Open::loop, at);
            return;
        }
        const Value name = word(depth);
        Assignment assignment;
        assignment.name = name.text;
        assignment.span = name.span;
        assignment.value.state = Value::State::unknown;
        assignment.value.source = &file_.source();
        assignment.value.span = {name.span.end, name.span.end};
        skip_lines();
        if (s_.substr(i_, 3) == "in " || s_.substr(i_, 3) == "in\t" || s_.substr(i_, 3) == "in\n" ||
            s_.substr(i_, 3) == "in;") {
            i_ += 2;
            while (i_ < end_) {
                skip_blanks();
                const char c = peek();
                if (c == '\n' || c == ';' || i_ >= end_) break;
                if (c == '#') {
                    skip_comment();
                    break;
                }
                if (kWordChars[static_cast<unsigned char>(c)] == 1) {
                    ++i_;
                    continue;
                }
                word(depth);
            }
        }
        script_.assignments.push_back(std::move(assignment));
        push(Open::loop, at);
    }

    struct Pending {
        std::uint32_t id = 0;
        std::string delimiter;
        bool strip = false;
    };

    File& file_;
    Script& script_;
    std::string_view s_;
    std::uint32_t i_ = 0, end_;
    std::vector<Pending> pending_;
    std::vector<Span> bodies_;
    std::vector<std::string_view> exported_;
    int pipeline_ = 0, list_ = 0, next_pipeline_ = 0, next_list_ = 0;
    bool seen_code_ = false, deep_ = false, chained_ = false;
};

// Jinja, Go, ERB: what makes no sense now may make sense once it is rendered.
bool is_template_text(std::string_view text) {
    for (const std::string_view mark : {"{{", "{%", "<%", "@@{"})
        if (text.find(mark) != std::string_view::npos) return true;
    return false;
}

// <PATH_TO_CHECKPOINT>: to be filled in before it is a script.
bool has_placeholder(std::string_view text) {
    for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
        std::size_t j = at + 1;
        while (j < text.size() && (name_char(text[j]) || text[j] == ' ' || text[j] == '-')) ++j;
        if (j > at + 2 && j < text.size() && text[j] == '>' && name_start(text[at + 1]) && text[j - 1] != ' ')
            return true;
    }
    return false;
}

}  // namespace

void read_shell(File& file) {
    ShellParser(file).run();
    ShellValues(file).finish();
    if (file.script.error_message.empty()) return;
    const std::string_view text = file.source().text();
    const bool rendered_later = is_template_text(text) || has_placeholder(text) || file.host;
    file.problems.push_back({rendered_later ? "SYN003" : "SYN001", file.script.error,
                             std::string(file.script.error_message), &file.source()});
}

}  // namespace stoker::lint
