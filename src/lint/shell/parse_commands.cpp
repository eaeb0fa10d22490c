// Lists of commands, simple commands with their redirections and heredocs.
#include <algorithm>

#include "lint/shell/shell_parser.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostDenseCommands = 500;  // and one for every eight bytes, or twelve

bool is_declaration(std::string_view word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" || word == "typeset";
}

// Behind these, too, a word may be X=(...).
bool takes_lists(std::string_view word) {
    return word == "eval" || word == "let" || word == "alias";
}

}  // namespace

void ShellParser::Level::update() {
    context = outside;
    for (const Opened& each : open) {
        if (each.function) context.function = true;
        if (each.what == Open::if_ || each.what == Open::loop || each.what == Open::case_body) context.condition = true;
    }
}

void ShellParser::open(Level& level, Open what, std::uint32_t at) {
    if (level.after == After::compound) stray({at, at + 1}, "a command behind another without ';' between them");
    if (level.open.size() > kMostDepth) {
        stop_too_deep();
        return;
    }
    level.open.push_back({what, at, level.next_is_function});
    level.next_is_function = false;
    level.after = After::opening;
    level.update();
}

// What ends here must hold a command.
void ShellParser::close(Level& level, Span at) {
    if (level.after == After::opening) stray(at, "no command stands between this and what it ends");
    if (level.after == After::joining) stray(at, "a command is missing before this");
    level.open.pop_back();
    level.after = After::compound;
    level.update();
}

// At '\n': the bodies of the heredocs of this line follow.
void ShellParser::newline() {
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
void ShellParser::skip_lines() {
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

void ShellParser::end_list() {
    pipeline_ = ++next_pipeline_;
    list_ = ++next_list_;
    chained_ = false;
}

// ; & && || |: a command must stand before them.
void ShellParser::separator(Level& level, std::uint32_t size, After after) {
    if (level.after != After::command && level.after != After::compound && level.after != After::head_done)
        stray({i_, i_ + size}, "a command is missing before this");
    i_ += size;
    level.after = after;
    level.joined_at = i_ - size;
}

// Commands until `closer` (0: the end; ')' of a substitution).
void ShellParser::list(char closer, Context outside, int depth) {
    if (too_deep(depth)) return;
    Level level;
    level.outside = level.context = outside;
    level.depth = depth;
    const int saved_pipeline = pipeline_, saved_list = list_;
    const bool saved_chained = chained_;
    const std::uint32_t start = i_;
    end_list();
    bool closed = closer == 0;
    while (i_ < end_) {
        skip_blanks();
        if (i_ >= end_) break;
        const char c = s_[i_];
        if (c == '\n') {
            newline();
            if (level.top_is(Open::case_pattern)) continue;
            end_list();
            if (level.after != After::joining && level.after != After::opening) level.after = After::nothing;
        } else if (c == '#') {
            skip_comment();
        } else if (level.top_is(Open::case_pattern)) {
            pattern(level);
        } else if (c == ';' && (peek(1) == ';' || peek(1) == '&')) {
            const std::uint32_t size = peek(1) == ';' && peek(2) == '&' ? 3 : 2;
            if (!level.top_is(Open::case_body))
                stray({i_, i_ + size}, "a ';;' outside of a 'case'");
            else if (level.after == After::joining)
                stray({i_, i_ + size}, "a command is missing before this");
            else
                level.open.back().what = Open::case_pattern;
            i_ += size;
            level.after = After::nothing;
            level.update();
            end_list();
        } else if (c == ';') {
            separator(level, 1, After::separator);
            end_list();
        } else if (c == '&' && peek(1) == '&') {
            separator(level, 2, After::joining);
            pipeline_ = ++next_pipeline_;
            chained_ = true;
            skip_lines();
        } else if (c == '&' && peek(1) != '>') {
            separator(level, 1, After::separator);
            if (!script_.commands.empty()) script_.commands.back().in_background = true;
            end_list();
        } else if (c == '|') {
            const bool either = peek(1) == '|';
            separator(level, either || peek(1) == '&' ? 2 : 1, After::joining);
            if (either) {
                pipeline_ = ++next_pipeline_;
                chained_ = true;
            }
            skip_lines();
        } else if (c == '(') {
            seen_code_ = true;
            const std::uint32_t at = i_;
            if (peek(1) == '(' && arithmetic(i_)) {
                if (level.after == After::compound)
                    stray({at, at + 2}, "a command behind another without ';' between them");
                level.after = After::compound;
                level.next_is_function = false;
                continue;
            }
            ++i_;
            open(level, Open::paren, at);
        } else if (c == ')') {
            if (level.top_is(Open::paren)) {
                close(level, {i_, i_ + 1});
                ++i_;
                continue;
            }
            if (closer == ')' && level.open.empty()) {
                closed = true;
                break;
            }
            stray({i_, i_ + 1}, "a ')' without its '('");
            ++i_;
        } else {
            command(level);
        }
    }
    tell_what_is_open(level, closer, closed, start);
    pipeline_ = saved_pipeline;
    list_ = saved_list;
    chained_ = saved_chained;
}

void ShellParser::tell_what_is_open(const Level& level, char closer, bool closed, std::uint32_t start) {
    if (!script_.error_message.empty() || deep_) return;
    if (!closed) {
        fail({start > 0 ? start - 1 : 0, start}, closer == ')' ? "a '$(' that is not closed" : "a '`' without its end");
    } else if (!level.open.empty()) {
        if (!strict_ && level.open.back().what != Open::paren) return;
        const Opened& last = level.open.back();
        const char* const message = last.what == Open::paren   ? "a '(' that is not closed"
                                    : last.what == Open::brace ? "a '{' that is not closed"
                                    : last.what == Open::if_   ? "an 'if' without 'fi'"
                                    : last.what == Open::loop  ? "a loop without 'done'"
                                                               : "a 'case' without 'esac'";
        fail({last.at, last.at + 1}, message);
    } else if (level.after == After::joining) {
        stray({level.joined_at, level.joined_at + 1}, "a command is missing behind this");
    } else if (level.after == After::opening) {
        stray({start, start}, "a function without its body");
    }
}

// <( list ), >( list )
Value ShellParser::process_substitution(int depth) {
    const std::uint32_t begin = i_;
    i_ += 2;
    list(')', {false, false, true}, depth + 1);
    if (i_ < end_) ++i_;
    Value value;
    value.state = Value::State::unknown;
    value.source = &file_.source();
    value.span = {begin, i_};
    value.text = s_.substr(begin, i_ - begin);
    return value;
}

// At '<' or '>' (a number before it was skipped). False: a process substitution, which is a word.
bool ShellParser::redirect(Command& command, int depth) {
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
    if ((peek() == '<' || peek() == '>') && peek(1) == '(') {
        result.target = process_substitution(depth);
        command.redirects.push_back(std::move(result));
        return true;
    }
    if (ends_word(i_) || s_[i_] == '#') {  // a placeholder <x>
        if (i_ >= end_ || std::string_view("\n;|&)#").find(s_[i_]) != std::string_view::npos)
            stray({begin, i_}, "a redirection without its target");
        return true;
    }
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

void ShellParser::unknown_variable(std::string_view name, Span span) {
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
void ShellParser::command(Level& level) {
    Command result;
    result.span.begin = i_;
    result.in_function = level.context.function;
    result.in_condition = level.context.condition;
    result.in_substitution = level.context.substitution;
    const bool condition = level.context.condition || chained_;
    const std::uint32_t began = i_;
    const std::size_t base = words_.size();  // its words are collected behind those of the commands around it
    const auto count = [&] { return words_.size() - base; };
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
            redirect(result, level.depth);
            continue;
        }
        if (c == '<' || c == '>') {
            seen_code_ = true;
            if (!redirect(result, level.depth)) {
                words_.push_back(process_substitution(level.depth));
                last = i_;
            }
            continue;
        }
        if (c == '(') {
            if (count() == 0 && result.assignments.empty()) break;  // ! ( list )
            if (count() == 1 && result.assignments.empty()) {       // name ()
                std::uint32_t j = i_ + 1;
                while (j < end_ && shell_blank(s_[j])) ++j;
                if (j < end_ && s_[j] == ')') {
                    i_ = j + 1;
                    words_.resize(base);
                    level.next_is_function = true;
                    level.after = After::opening;
                    return;
                }
            }
            if (count() == 0 || !takes_lists(words_[base].text)) stray({i_, i_ + 1}, "a '(' where none can stand");
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
        if (count() == 0) {
            if (assignment(result.assignments, false, condition, level.depth)) {
                last = i_;
                continue;
            }
        } else if (declares) {
            const std::size_t before = script_.assignments.size();
            if (assignment(script_.assignments, all_exported_ || words_[base].text == "export", condition,
                           level.depth)) {
                if (before < script_.assignments.size()) last = i_;
                continue;
            }
        }
        const std::uint32_t word_begin = i_;
        Value value = word(level.depth);
        if (i_ == word_begin) {
            ++i_;
            continue;
        }
        last = i_;
        if (count() == 0 && value.known() && result.assignments.empty()) {
            const Keyword found = keyword(value, level);
            if (found == Keyword::ends_command) return;
            if (found == Keyword::command_follows) {
                result.span.begin = i_;
                continue;
            }
            declares = is_declaration(value.text);
        } else if (declares && value.known() && words_[base].text == "export" && !value.text.starts_with("-")) {
            exported_.push_back(value.text);
        }
        words_.push_back(value);
    }
    if (i_ == began) {  // nothing that can be read: never stand still
        ++i_;
        return;
    }
    if ((level.after == After::compound || level.after == After::head_done) &&
        (count() > 0 || !result.assignments.empty()))
        stray({began, last}, "a command behind another without ';' between them");
    level.after = level.after == After::compound && count() == 0 ? After::compound : After::command;
    if (level.next_is_function) {
        stray({began, last}, "a function without its body");
        level.next_is_function = false;
    }
    result.pipeline = pipeline_;
    result.list = list_;
    result.span.end = std::max(last, result.span.begin);
    if (count() == 0 && result.redirects.empty()) {
        for (Assignment& each : result.assignments) {
            each.exported = each.exported || all_exported_;
            script_.assignments.push_back(std::move(each));
        }
        return;
    }
    result.words.assign(words_.begin() + static_cast<std::ptrdiff_t>(base), words_.end());
    words_.resize(base);
    note_setters(result);
    // So that a text of a few bytes a command cannot take many times its size: no script has that many.
    const std::size_t bytes = file_.host ? 12 : 8;  // a guest is held beside what it stands in
    if (script_.commands.size() > s_.size() / bytes + kMostDenseCommands) {
        if (!file_.host && !deep_)
            file_.problems.push_back({"SYN005", result.span, "more commands than can be read", &file_.source()});
        deep_ = true;
        i_ = end_;
        return;
    }
    script_.commands.push_back(std::move(result));
}

// read X, printf -v X ...: what they put there is not known. set -a: what is assigned from here on is exported.
void ShellParser::note_setters(const Command& command) {
    const std::string_view name = command.name();
    if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts" || name == "let") {
        for (std::size_t k = 1; k < command.words.size(); ++k)
            if (command.words[k].known() && !command.words[k].text.starts_with("-") &&
                std::all_of(command.words[k].text.begin(), command.words[k].text.end(), shell_name_char))
                unknown_variable(command.words[k].text, command.words[k].span);
    } else if (name == "printf" && command.words.size() > 2 && command.words[1].is("-v")) {
        if (command.words[2].known()) unknown_variable(command.words[2].text, command.words[2].span);
    } else if (name == "set" && command.words.size() > 1 && command.words[1].known()) {
        const std::string_view word = command.words[1].text;
        const bool named = word.ends_with('o') && command.words.size() > 2 && command.words[2].is("allexport");
        if (named || (word.size() < 10 && !word.starts_with("--") && word.find('a') != std::string_view::npos))
            all_exported_ = word.starts_with('-') || (all_exported_ && !word.starts_with('+'));
    }
}

}  // namespace stoker::lint
