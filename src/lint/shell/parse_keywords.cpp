// if, for, case, [[ and their kin.
#include <algorithm>

#include "lint/shell/shell_parser.h"

namespace stoker::lint {

// Closes what is open; anything else at the top is an error.
ShellParser::Keyword ShellParser::closes(Level& level, Open what, Span at, std::string_view message) {
    if (!level.top_is(what)) {
        stray(at, message);
    } else {
        if (level.open.back().head && what == Open::if_) stray(at, "an 'if' without 'then'");
        if (level.open.back().head && what == Open::loop) stray(at, "a loop without 'do'");
        close(level, at);
    }
    level.after = After::compound;
    return Keyword::ends_command;
}

// then, else, elif, do: in the middle of what is open. `head`: they end its condition.
ShellParser::Keyword ShellParser::goes_on(Level& level, Open what, bool head, Span at, std::string_view message) {
    if (!level.top_is(what) || level.open.back().head != head || level.open.back().last)
        stray(at, message);
    else if (level.after == After::opening)
        stray(at, "no command stands between this and what it ends");
    else if (level.after == After::joining)
        stray(at, "a command is missing before this");
    level.after = After::opening;
    return Keyword::ends_command;
}

ShellParser::Keyword ShellParser::keyword(const Value& value, Level& level) {
    const std::string_view text = value.text;
    if (text.size() > 8) return Keyword::none;
    const std::uint32_t at = value.span.begin;
    const auto opens = [&](Open what) {
        open(level, what, at);
        return Keyword::ends_command;
    };
    switch (text[0]) {
        case 'i': return text == "if" ? opens(Open::if_) : Keyword::none;
        case 't':
            if (text == "then") {
                goes_on(level, Open::if_, true, value.span, "a 'then' without its 'if'");
                if (level.top_is(Open::if_)) level.open.back().head = false;
                return Keyword::ends_command;
            }
            if (text == "time") {
                skip_blanks();
                if (s_.substr(i_, 3) == "-p ") i_ += 3;
                level.after = After::nothing;
                return Keyword::ends_command;
            }
            return Keyword::none;
        case 'e':
            if (text == "else" || text == "elif") {
                goes_on(level, Open::if_, false, value.span, "an 'else' without its 'if'");
                if (level.top_is(Open::if_)) (text == "else" ? level.open.back().last : level.open.back().head) = true;
                return Keyword::ends_command;
            }
            return text == "esac" ? closes(level, Open::case_body, value.span, "an 'esac' without its 'case'")
                                  : Keyword::none;
        case 'f':
            if (text == "fi") return closes(level, Open::if_, value.span, "a 'fi' without its 'if'");
            if (text == "for") {
                loop_head(level, at);
                return Keyword::ends_command;
            }
            if (text == "function") {
                function_head(level);
                return Keyword::ends_command;
            }
            return Keyword::none;
        case 's':
            if (text != "select") return Keyword::none;
            loop_head(level, at);
            return Keyword::ends_command;
        case 'w':
        case 'u': return text == "while" || text == "until" ? opens(Open::loop) : Keyword::none;
        case 'd':
            if (text == "do") {
                goes_on(level, Open::loop, true, value.span, "a 'do' without its loop");
                if (level.top_is(Open::loop)) level.open.back().head = false;
                return Keyword::ends_command;
            }
            return text == "done" ? closes(level, Open::loop, value.span, "a 'done' without its loop") : Keyword::none;
        case 'c':
            if (text == "case") {
                case_head(level, at);
                return Keyword::ends_command;
            }
            if (text != "coproc") return Keyword::none;
            coproc_name();
            return Keyword::command_follows;
        case '{':
            if (text != "{") return Keyword::none;
            // for ((...)) { ... }
            if (level.top_is(Open::loop) && level.open.back().head && level.open.back().counts) {
                level.open.back().what = Open::brace;
                level.after = After::opening;
                level.update();
                return Keyword::ends_command;
            }
            return opens(Open::brace);
        case '}': return text == "}" ? closes(level, Open::brace, value.span, "a '}' without its '{'") : Keyword::none;
        case '!':
            if (text != "!") return Keyword::none;
            return Keyword::command_follows;
        case '[':
            if (text != "[[") return Keyword::none;
            if (level.after == After::compound) stray(value.span, "a command behind another without ';' between them");
            test_brackets(level.depth);
            level.after = After::compound;
            level.next_is_function = false;
            return Keyword::ends_command;
        default: return Keyword::none;
    }
}

// coproc NAME { ...
void ShellParser::coproc_name() {
    skip_blanks();
    std::uint32_t j = i_;
    while (j < end_ && shell_name_char(s_[j])) ++j;
    const std::uint32_t name_end = j;
    while (j < end_ && shell_blank(s_[j])) ++j;
    if (j > name_end && j < end_ && (s_[j] == '{' || s_[j] == '(')) i_ = j;
}

void ShellParser::open_loop(Level& level, std::uint32_t at) {
    open(level, Open::loop, at);
    if (level.open.empty()) return;
    level.open.back().counts = true;
    level.after = After::head_done;
}

// function name () ...
void ShellParser::function_head(Level& level) {
    skip_blanks();
    word(level.depth);
    skip_blanks();
    if (peek() == '(') {
        ++i_;
        skip_blanks();
        if (peek() == ')') ++i_;
    }
    level.next_is_function = true;
    level.after = After::opening;
}

void ShellParser::case_head(Level& level, std::uint32_t at) {
    skip_blanks();
    word(level.depth);
    while (i_ < end_) {
        skip_blanks();
        if (peek() == '\n')
            newline();
        else
            break;
    }
    if (s_.substr(i_, 2) == "in" && ends_word(i_ + 2))
        i_ += 2;
    else
        stray({at, at + 4}, "a 'case' without 'in'");
    open(level, Open::case_pattern, at);
}

// for name in words; for ((...; ...; ...)).
void ShellParser::loop_head(Level& level, std::uint32_t at) {
    skip_blanks();
    const std::uint32_t head = i_;
    if (peek() == '(' && peek(1) == '(' && arithmetic(i_)) {
        const std::string_view parts = s_.substr(head, i_ - head);
        if (std::count(parts.begin(), parts.end(), ';') < 2) stray({at, i_}, "a 'for' without its three parts");
        open_loop(level, at);
        return;
    }
    const Value name = word(level.depth);
    if (name.text.empty()) stray({at, i_}, "a loop without a variable");
    Assignment assignment;
    assignment.name = name.text;
    assignment.span = name.span;
    assignment.value.state = Value::State::unknown;
    assignment.value.source = &file_.source();
    assignment.value.span = {name.span.end, name.span.end};
    skip_lines();
    if (s_.substr(i_, 2) == "in" && ends_word(i_ + 2)) {
        i_ += 2;
        while (i_ < end_) {
            skip_blanks();
            const char c = peek();
            if (c == '\n' || c == ';' || i_ >= end_) break;
            if (c == '#') {
                skip_comment();
                break;
            }
            if ((c == '<' || c == '>') && peek(1) == '(') {
                process_substitution(level.depth);
            } else if (kWordChars[static_cast<unsigned char>(c)] == 1) {
                if (c != '\r') stray({i_, i_ + 1}, "an operator in the list of a loop");
                ++i_;
            } else {
                assignment.items.push_back(word(level.depth));
            }
        }
    }
    script_.assignments.push_back(std::move(assignment));
    open_loop(level, at);
}

// One pattern of a case, through its ')'; or esac.
void ShellParser::pattern(Level& level) {
    if (s_.substr(i_, 4) == "esac" && ends_word(i_ + 4)) {
        i_ += 4;
        level.open.pop_back();
        level.after = After::compound;
        level.update();
        return;
    }
    if (peek() == '(') ++i_;
    while (i_ < end_ && peek() != ')') {
        const char c = peek();
        if (c == '\n' || c == ';') {
            stray({i_, i_ + 1}, "a pattern of a 'case' without its ')'");
            if (c == '\n')
                newline();
            else
                ++i_;
        } else if ((c == '@' || c == '!' || c == '+' || c == '?' || c == '*') && peek(1) == '(') {
            ++i_;
            skip_parens(level.depth);
        } else {
            step(level.depth);
        }
    }
    if (i_ < end_) {
        ++i_;
        level.open.back().what = Open::case_body;
        level.after = After::nothing;
        level.update();
        end_list();
    }
}

void ShellParser::test_brackets(int depth) {  // behind [[
    const std::uint32_t at = i_;
    while (i_ < end_) {
        const char c = s_[i_];
        if (c == '\n') {
            newline();
        } else if (c == ']' && peek(1) == ']' && (shell_blank(s_[i_ - 1]) || s_[i_ - 1] == ')') && ends_word(i_ + 2)) {
            i_ += 2;
            return;
        } else {
            step(depth);
        }
    }
    if (script_.error_message.empty()) fail({at - 2, at}, "a '[[' without ']]'");
}

}  // namespace stoker::lint
