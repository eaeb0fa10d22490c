// Words: quotes, substitutions, expansions, and assignments, which are words with a name in front.
#include "lint/shell/shell_parser.h"

namespace stoker::lint {

void ShellParser::step(int depth) {
    const char c = s_[i_];
    if (c == '\\') {
        i_ = std::min(i_ + 2, end_);
    } else if (c == '\'' || c == '"' || c == '$' || c == '`') {
        bool plain = true;
        part(plain, depth);
    } else {
        ++i_;
    }
}

// Balanced ( ), quotes respected.
void ShellParser::skip_parens(int depth) {
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
        } else {
            step(depth);
        }
    }
    fail({at, at + 1}, "a '(' that is not closed");
}

// (( ... )) with the parentheses at `at` and `at + 1`. False when it is something else: the one that closes the
// second must be followed by another. What opens more than this many is no arithmetic of anybody's, and would be looked
// through again at each of them.
bool ShellParser::arithmetic(std::uint32_t at) {
    constexpr int kDeepest = 100;
    int level = 0;
    for (std::uint32_t j = at; j < end_; ++j) {
        const char c = s_[j];
        if (c == '\'' || c == '"') {
            const std::size_t close = s_.find(c, j + 1);
            if (close == std::string_view::npos || close >= end_) return false;
            j = static_cast<std::uint32_t>(close);
        } else if (c == '(') {
            if (++level > kDeepest) return false;
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
void ShellParser::part(bool& plain, int depth) {
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

void ShellParser::broken_continuation(std::uint32_t at) {
    std::uint32_t j = at + 1;
    while (j < end_ && shell_blank(s_[j])) ++j;
    const bool word_begins = at == 0 || shell_blank(s_[at - 1]) || s_[at - 1] == '\n';
    if (at_line_end(j) || (j < end_ && s_[j] == '#' && word_begins)) {
        std::uint32_t stop = j;
        while (stop < end_ && s_[stop] != '\n' && s_[stop] != '\r') ++stop;
        script_.broken_continuations.push_back({at, stop});
    }
}

void ShellParser::double_quoted(std::uint32_t at, int depth) {
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

void ShellParser::backticks(std::uint32_t at, int depth) {
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
    list('\0', {false, false, true}, depth + 1);
    if (!had_error && !script_.error_message.empty()) {  // escapes inside are not undone: no verdict here
        script_.error_message = {};
        script_.error = {};
    }
    end_ = outer_end;
    i_ = close + 1;
}

// At '$'.
void ShellParser::dollar(bool quoted, int depth) {
    const std::uint32_t at = i_;
    const char next = peek(1);
    if (next == '(') {
        const bool double_paren = peek(2) == '(';
        if (double_paren && arithmetic(at + 1)) return;
        const bool had_error = !script_.error_message.empty();
        i_ += 2;
        list(')', {false, false, true}, depth + 1);
        if (double_paren && !had_error && i_ < end_) {  // neither the one nor the other: shells differ
            script_.error_message = {};
            script_.error = {};
        }
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
        if (i_ < end_ && shell_name_start(s_[i_])) {
            while (i_ < end_ && shell_name_char(s_[i_])) ++i_;
        } else if (i_ < end_ && std::string_view("0123456789@*#?$!-").find(s_[i_]) != std::string_view::npos) {
            ++i_;
        }
    }
}

// Inside ${ .
void ShellParser::braces(std::uint32_t at, bool quoted, int depth) {
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
Value ShellParser::word(int depth) {
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
bool ShellParser::assignment(std::vector<Assignment>& into, bool exported, bool condition, int depth) {
    if (!shell_name_start(peek())) return false;
    std::uint32_t j = i_;
    while (j < end_ && shell_name_char(s_[j])) ++j;
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
        result.items.shrink_to_fit();
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

void ShellParser::array_items(std::vector<Value>& items, std::uint32_t open, int depth) {
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
                    stray({i_, i_ + 1}, "an operator in a list of words");
                    ++i_;
                }
            } else {
                ++i_;
            }
        } else {
            const Value item = word(depth);
            // As with commands: no list has more words than its script can have commands.
            if (items.size() < s_.size() / 8 + 500) items.push_back(item);
        }
    }
    if (script_.error_message.empty()) fail({open, open + 1}, "a '(' that is not closed");
}

}  // namespace stoker::lint
