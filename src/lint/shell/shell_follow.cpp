// What variables come to by way of functions, loops and other files: arguments of the one call of a function, what a
// function echoes, files that are sourced, lists that a loop goes through.
#include <algorithm>
#include <charconv>
#include <functional>

#include "base/text.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

bool value_blank_of(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

constexpr std::size_t kMostAlternatives = 32;  // values of one variable

}  // namespace

// name() { ... } at the beginning of lines; a body ends with the "}" that begins a line like its head.
void ShellValues::learn_functions() {
    if (functions_read_) return;
    functions_read_ = true;
    for (std::size_t at = all_.find("()"); at != std::string_view::npos; at = all_.find("()", at + 2)) {
        std::size_t begin = at;
        while (begin > 0 && shell_blank(all_[begin - 1])) --begin;
        const std::size_t name_end = begin;
        while (begin > 0 && (shell_name_char(all_[begin - 1]) || all_[begin - 1] == '-')) --begin;
        const std::string_view name = all_.substr(begin, name_end - begin);
        const std::size_t line = begin == 0 ? 0 : all_.rfind('\n', begin - 1) + 1;
        const std::string_view before = trim(all_.substr(line, begin - line));
        if (name.empty() || !(before.empty() || before == "function")) continue;
        const std::size_t open = all_.find_first_not_of(" \t\r\n", at + 2);
        if (open == std::string_view::npos || all_[open] != '{') continue;
        int level = 0;
        bool closed = false;
        for (std::size_t j = open; j < all_.size() && !closed; ++j) {
            if (all_[j] == '{') ++level;
            if (all_[j] != '}' || --level > 0) continue;
            functions_.push_back({name, {static_cast<std::uint32_t>(open + 1), static_cast<std::uint32_t>(j)}});
            closed = true;
        }
        if (!closed) return;  // nor is what lies within it
        if (functions_.size() > 200) return;
    }
}

const ShellValues::Function* ShellValues::function_at(std::uint32_t at) {
    learn_functions();
    const Function* inner = nullptr;
    for (const Function& each : functions_)
        if (each.body.begin <= at && at < each.body.end && (!inner || inner->body.begin < each.body.begin))
            inner = &each;
    return inner;
}

// The raw words that calls give a function as its argument of that number; none where one gives none and all are asked.
std::vector<Span> ShellValues::arguments_of(const Function& function, std::size_t number, bool all) {
    std::vector<Span> found;
    for (const Command& command : file_.script.commands) {
        if (command.name() != function.name) continue;
        if (function.body.contains(command.span)) return {};
        if (command.words.size() <= number) {
            if (all) return {};
            continue;
        }
        const Span span = raw(command.words[number], source_);
        found.push_back(span);
        if (found.size() > kMostAlternatives) return {};
    }
    return found;
}

// "$1" within a function that is called once, or always with the same.
bool ShellValues::put_argument(std::uint32_t at, std::size_t number, bool quoted, Expanded& out, int depth) {
    const Function* function = function_at(at);
    if (!function || number == 0 || depth > 20) return false;
    const auto gone = shifted(*function, at);
    if (!gone) return false;
    Expanded all;
    bool first = true;
    for (const Span word : arguments_of(*function, number + *gone, true)) {
        Expanded value;
        text(word.begin, word.end, false, value, depth + 10);
        if (!value.known || (!first && value.text != all.text)) return false;
        all = std::move(value);
        first = false;
    }
    if (first || out.text.size() + all.text.size() > kMostValue || !spend(all.text.size() + sizeof(ShellRun)))
        return false;
    join(all, quoted, out);
    return true;
}

// $(name) where name is a function that echoes once and does nothing else.
bool ShellValues::put_echo(std::string_view name, bool quoted, Expanded& out, int depth) {
    learn_functions();
    const auto it =
        std::find_if(functions_.begin(), functions_.end(), [&](const Function& f) { return f.name == name; });
    if (it == functions_.end() && depth <= 20)
        for (File* sourced : file_.script.sourced) {
            Expanded there;
            if (!of(*sourced).put_echo(name, quoted, there, depth + 1) || !there.known) continue;
            append(there, quoted, out);
            return true;
        }
    if (it == functions_.end() || depth > 20) return false;
    const Command* only = nullptr;
    for (const Command& command : file_.script.commands)
        if (it->body.contains(command.span)) {
            if (only || command.name() != "echo") return false;
            only = &command;
        }
    if (!only || only->words.size() < 2) return false;
    bool first = true;
    for (std::size_t k = 1; k < only->words.size(); ++k) {
        const Span word = raw(only->words[k], source_);
        if (only->words[k].text.starts_with("-") && only->words[k].text.size() == 2) continue;
        if (!first) put(" ", word, false, !quoted, true, out);
        const std::size_t before = out.runs.size();
        text(word.begin, word.end, false, out, depth + 10);
        for (std::size_t r = before; r < out.runs.size(); ++r) out.runs[r].splits = !quoted;
        first = false;
    }
    return true;
}

// $(printf 'Standard_%s' "$FAMILY"): a format in quotes with %s and %d, and a word for each of them.
bool ShellValues::put_printf(Span words, bool quoted, Expanded& out, int depth) {
    if (depth > 20) return false;
    std::vector<Span> parts;
    for (std::uint32_t at = words.begin; at < words.end;) {
        if (value_blank_of(all_[at])) {
            ++at;
            continue;
        }
        const std::uint32_t begin = at;
        for (char quote = 0; at < words.end && (quote != 0 || !value_blank_of(all_[at])); ++at) {
            const char c = all_[at];
            if (std::string_view("|&;<>()`\\\n").find(c) != std::string_view::npos) return false;
            if (quote == 0 && (c == '\'' || c == '"'))
                quote = c;
            else if (c == quote)
                quote = 0;
        }
        parts.push_back({begin, at});
    }
    if (parts.size() < 2) return false;
    const Span format = parts[0];
    if (format.end - format.begin < 2) return false;
    const char quote = all_[format.begin];
    if ((quote != '\'' && quote != '"') || all_[format.end - 1] != quote) return false;
    const std::string_view text_of = all_.substr(format.begin + 1, format.end - format.begin - 2);
    if (text_of.find_first_of("$\\") != std::string_view::npos) return false;
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < text_of.size(); ++i)
        if (text_of[i] == '%') {
            if (i + 1 == text_of.size() || (text_of[i + 1] != 's' && text_of[i + 1] != 'd')) return false;
            ++wanted, ++i;
        }
    if (wanted != parts.size() - 1) return false;
    std::size_t next = 1, from = 0;
    const auto literal = [&](std::size_t to) {
        if (to > from) put(std::string(text_of.substr(from, to - from)), format, false, !quoted, true, out);
    };
    for (std::size_t i = 0; i < text_of.size(); ++i) {
        if (text_of[i] != '%') continue;
        literal(i);
        const std::size_t before = out.runs.size();
        text(parts[next].begin, parts[next].end, false, out, depth + 10);
        for (std::size_t r = before; r < out.runs.size(); ++r) out.runs[r].splits = !quoted;
        ++next;
        from = i + 2;
    }
    literal(text_of.size());
    return true;
}

// $((GPUS * 2)): whole numbers, names and the four operations; nothing where a name has no one value.
std::optional<std::int64_t> ShellValues::calculated(Span expression, int depth) {
    std::uint32_t at = expression.begin;
    int brackets = 0;
    const auto blanks = [&] {
        while (at < expression.end && value_blank_of(all_[at])) ++at;
    };
    const std::function<std::optional<std::int64_t>(int)> sum = [&](int rank) -> std::optional<std::int64_t> {
        if (rank == 2) {
            blanks();
            if (at < expression.end && all_[at] == '(') {
                if (++brackets > 30) return std::nullopt;
                ++at;
                const auto inner = sum(0);
                blanks();
                if (!inner || at >= expression.end || all_[at] != ')') return std::nullopt;
                ++at;
                return inner;
            }
            std::uint32_t end = at;
            const bool dollar_sign = end < expression.end && all_[end] == '$';
            if (dollar_sign) ++end;
            const bool brace = dollar_sign && end < expression.end && all_[end] == '{';
            if (brace) ++end;
            const std::uint32_t from = end;
            while (end < expression.end && shell_name_char(all_[end])) ++end;
            const std::string_view word = all_.substr(from, end - from);
            if (word.empty() || depth > 20) return std::nullopt;
            if (brace) {
                if (end >= expression.end || all_[end] != '}') return std::nullopt;
                ++end;
            }
            at = end;
            std::string text(word);
            if (!(word[0] >= '0' && word[0] <= '9')) {
                Variable* variable = find(word);
                if (!variable) return std::nullopt;
                Expanded value;
                put_variable(*variable, {from, from + static_cast<std::uint32_t>(word.size())}, true, value);
                if (!value.known || value.assumed) return std::nullopt;
                text = value.text;
            }
            std::int64_t number = 0;
            const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
            if (error != std::errc{} || stop != text.data() + text.size() || number > 1'000'000'000)
                return std::nullopt;
            return number;
        }
        auto left = sum(rank + 1);
        for (blanks(); left && at < expression.end; blanks()) {
            const char op = all_[at];
            if (rank == 0 ? op != '+' && op != '-' : op != '*' && op != '/' && op != '%') break;
            ++at;
            if (at < expression.end && all_[at] == '*') return std::nullopt;
            const auto right = sum(rank + 1);
            if (!right || ((op == '/' || op == '%') && *right == 0)) return std::nullopt;
            left = op == '+'   ? *left + *right
                   : op == '-' ? *left - *right
                   : op == '*' ? *left * *right
                   : op == '/' ? *left / *right
                               : *left % *right;
            if (*left > 1'000'000'000 || *left < -1'000'000'000) return std::nullopt;
        }
        return left;
    };
    const auto number = sum(0);
    blanks();
    return at == expression.end ? number : std::nullopt;
}

// ${name[key]} of name=([key]=value ...).
bool ShellValues::put_keyed(const Variable& variable, std::string_view key, Span whole, bool quoted, Expanded& out,
                            int depth) {
    if (variable.first >= file_.script.assignments.size() || variable.first != variable.last) return false;
    const auto own = variables_.find(file_.script.assignments[variable.first].name);
    if (own == variables_.end() || &own->second != &variable) return false;
    const Span list = file_.script.assignments[variable.first].span;
    for (const std::string& mark :
         {"[" + std::string(key) + "]=", "[\"" + std::string(key) + "\"]=", "['" + std::string(key) + "']="}) {
        const std::size_t at = all_.substr(list.begin, list.size()).find(mark);
        if (at == std::string_view::npos) continue;
        const auto from = static_cast<std::uint32_t>(list.begin + at + mark.size());
        std::uint32_t to = from;
        const char quote = to < list.end && (all_[to] == '"' || all_[to] == '\'') ? all_[to] : '\0';
        if (quote) {
            const std::size_t close = all_.find(quote, to + 1);
            if (close >= list.end) return false;
            to = static_cast<std::uint32_t>(close + 1);
        } else {
            while (to < list.end && kWordChars[static_cast<unsigned char>(all_[to])] != 1) ++to;
        }
        const std::size_t before = out.runs.size();
        text(from, to, false, out, depth + 1);
        for (std::size_t r = before; r < out.runs.size(); ++r) out.runs[r].splits = !quoted;
        (void)whole;
        return true;
    }
    return false;
}

// The raw words of name=([key]=value ...).
std::vector<Span> ShellValues::keyed_values(const Assignment& assignment) const {
    std::vector<Span> found;
    const Span list = assignment.span;
    for (std::size_t at = list.begin; found.size() <= kMostAlternatives;) {
        at = all_.find("]=", at);
        if (at == std::string_view::npos || at + 2 >= list.end) break;
        const auto from = static_cast<std::uint32_t>(at + 2);
        std::uint32_t to = from;
        for (char quote = 0; to < list.end; ++to) {
            const char c = all_[to];
            if (quote == 0 && (c == '"' || c == '\''))
                quote = c;
            else if (c == quote)
                quote = 0;
            else if (quote == 0 && (value_blank_of(c) || c == ')'))
                break;
        }
        if (to > from) found.push_back({from, to});
        at = to;
    }
    return found;
}

// ${x/a/b}, ${x//a/b}, ${x^^}, ${x,,}: of literal text.
std::optional<std::string> ShellValues::edited(std::string_view value, std::string_view rest) {
    if (rest == "^^") return upper(value);
    if (rest == ",,") return lower(value);
    if (!rest.starts_with('/') || value.size() > 1024) return std::nullopt;
    const bool all = rest.starts_with("//");
    rest.remove_prefix(all ? 2 : 1);
    const std::size_t slash = rest.find('/');
    const std::string_view from = rest.substr(0, slash);
    const std::string_view to = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (from.empty() || (std::string(from) + std::string(to)).find_first_of("$`\\'\"[?*@!+#%") != std::string::npos)
        return std::nullopt;
    if (all) return replace_all(value, from, to);
    std::string out(value);
    if (const std::size_t at = out.find(from); at != std::string::npos) out.replace(at, from.size(), to);
    return out;
}

// while read -r a b; do ... done <<LIST: the fields of the list's lines that go into a variable.
std::vector<Span> ShellValues::fields_read_into(std::string_view name) const {
    std::vector<Span> found;
    for (const Command& command : file_.script.commands) {
        if (command.name() != "read" || command.words.size() < 2) continue;
        std::size_t field = 0, index = std::string_view::npos;
        for (std::size_t k = 1; k < command.words.size(); ++k) {
            const std::string_view word = command.words[k].text;
            if (word.starts_with('-')) {
                if (word.find_first_not_of("-rs") != std::string_view::npos) return {};  // an option with a value
                continue;
            }
            if (word == name) index = field;
            ++field;
        }
        const std::size_t line = all_.substr(0, command.span.begin).rfind('\n');
        const std::string_view before =
            all_.substr(line == std::string_view::npos ? 0 : line + 1, command.span.begin - (line + 1));
        const std::size_t close = all_.find("\ndone", command.span.end);
        if (index == std::string_view::npos || close == std::string_view::npos ||
            before.find("IFS=") != std::string_view::npos || command.span.size() > 200)
            continue;
        const std::size_t end = std::min(all_.find('\n', close + 1), all_.size());
        const std::string_view tail = trim(all_.substr(close + 5, end - close - 5));
        if (!tail.starts_with("<<") || tail.starts_with("<<<")) continue;
        std::string_view mark = tail.substr(tail.starts_with("<<-") ? 3 : 2);
        mark = trim(mark);
        if (mark.size() > 2 && (mark.front() == '\'' || mark.front() == '"')) mark = mark.substr(1, mark.size() - 2);
        for (std::size_t at = end + 1; at < all_.size() && found.size() <= kMostAlternatives;) {
            const std::size_t stop = std::min(all_.find('\n', at), all_.size());
            const std::string_view text = all_.substr(at, stop - at);
            if (trim(text) == mark) return found;
            std::size_t from = at, number = 0;
            while (from < stop) {
                while (from < stop && value_blank_of(all_[from])) ++from;
                std::size_t to = from;
                while (to < stop && !value_blank_of(all_[to])) ++to;
                if (to > from && number++ == index)
                    found.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
                from = to;
            }
            at = stop + 1;
        }
    }
    return found;
}

// All that a word of one variable may be, where that is written: other assignments, lists of loops, arguments of calls.
std::vector<Value> ShellValues::alternatives(Span word) {
    std::vector<Value> found;
    std::vector<std::string_view> seen;
    collect(word, found, seen, 0);
    return found;
}

void ShellValues::collect(Span word, std::vector<Value>& found, std::vector<std::string_view>& seen, int depth) {
    if (depth > 4 || found.size() > kMostAlternatives || word.end > all_.size()) return;
    std::string_view inside = all_.substr(word.begin, word.size());
    if (inside.size() > 2 && inside.front() == '"' && inside.back() == '"')
        inside = inside.substr(1, inside.size() - 2);
    std::string_view name = inside;
    if (name.starts_with("${") && name.ends_with('}'))
        name = name.substr(2, name.size() - 3);
    else if (name.starts_with('$'))
        name = name.substr(1);
    else
        name = {};
    const auto known = [&](Span span) {
        Value value = this->value(span);
        if (value.known()) found.push_back(value);
        return value.known();
    };
    if (name.empty()) {
        known(word);
        return;
    }
    // ${SIZES[$s]}: one of what the list has, where the key is another one each time.
    if (const std::size_t open = name.find('['); open != std::string_view::npos && name.ends_with(']')) {
        if (known(word)) return;
        for (const Assignment& each : file_.script.assignments) {
            if (each.name != name.substr(0, open) || !each.array) continue;
            for (const Value& item : each.items)
                if (item.known() && !item.text.starts_with('[')) found.push_back(item);
            for (const Span value : keyed_values(each)) known(value);
        }
        return;
    }
    if (name.size() == 1 && name[0] >= '1' && name[0] <= '9') {
        const Function* function = function_at(word.begin);
        if (!function) return;
        for (const Span argument : arguments_of(*function, static_cast<std::size_t>(name[0] - '0'), false))
            collect(argument, found, seen, depth + 1);
        return;
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return;
    seen.push_back(name);
    for (const Span field : fields_read_into(name)) known(field);
    for (const Assignment& each : file_.script.assignments) {
        if (each.name != name) continue;
        if (!each.array && !each.items.empty()) {  // of a loop
            for (const Value& item : each.items) {
                std::vector<Value> words;
                append_words(raw(item, source_), words);
                for (const Value& value : words)
                    if (value.known()) found.push_back(value);
            }
        } else if (!each.array && !each.appends && each.value.present()) {
            const Span span = raw(each.value, source_);
            if (!span.empty()) collect(span, found, seen, depth + 1);
        }
    }
}

}  // namespace stoker::lint
