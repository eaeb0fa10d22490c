// Variables of a script that is followed: assignments and tests.
#include <algorithm>

#include "lint/pattern.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

// Parts of a test in their order: "and" binds tighter than "or". What is not known keeps both from being sure.
struct ShellTrace::Together {
    Status all_of = Status::yes, any_of = Status::no;

    // `ends`: an "or" stands behind it, or nothing.
    void add(Status part, bool ends) {
        if (part == Status::no) all_of = Status::no;
        if (part == Status::unknown && all_of == Status::yes) all_of = Status::unknown;
        if (!ends) return;
        if (all_of == Status::yes) any_of = Status::yes;
        if (all_of == Status::unknown && any_of == Status::no) any_of = Status::unknown;
        all_of = Status::yes;
    }
};

ShellTrace::Variable* ShellTrace::find(std::string_view name) {
    for (int hops = 0; hops < 8; ++hops) {
        const auto it = variables_.find(name);
        if (it == variables_.end()) break;
        if (it->second.refers.empty()) return &it->second;
        name = it->second.refers;
    }
    if (const auto it = variables_.find(name); it != variables_.end()) return &it->second;
    // What stands around the script: the environment of a container, of a step.
    const Value outside = ShellValues::of(file_).outside(name);
    if (!outside.known()) return nullptr;
    Variable& variable = variables_[std::string(name)];
    TracedText value;
    value.text = outside.text;
    value.assumed = outside.assumed;
    variable.items = {std::move(value)};
    return &variable;
}

ShellTrace::Variable& ShellTrace::made(std::string_view name) {
    Variable* const there = find(name);
    return there ? *there : variables_[std::string(name)];
}

void ShellTrace::set(std::string_view name, TracedText value) {
    Variable& variable = made(name);
    variable.open = !value.known;
    if (variable.list && !variable.items.empty()) {
        variable.items[0] = std::move(value);
        return;
    }
    variable.items.clear();
    spend(value.text.size());
    if (value.known) variable.items.push_back(std::move(value));
}

void ShellTrace::set_unknown(std::string_view name) {
    set(name, written({}, false));
}

void ShellTrace::hide(std::string_view name) {
    if (frames_.empty()) return;
    Frame& frame = frames_.back();
    if (std::any_of(frame.hidden.begin(), frame.hidden.end(), [&](const auto& each) { return each.first == name; }))
        return;
    const auto it = variables_.find(name);
    frame.hidden.emplace_back(std::string(name),
                              it == variables_.end() ? std::nullopt : std::optional<Variable>(it->second));
    if (it != variables_.end()) variables_.erase(it);
}

// NAME=value, NAME+=value, NAME[x]=value, NAME=( words ).
bool ShellTrace::assign(Span word, bool local, std::string_view kind) {
    const std::string_view raw = all().substr(word.begin, word.size());
    std::size_t at = 0;
    while (at < raw.size() && shell_name_char(raw[at])) ++at;
    const std::string_view name = raw.substr(0, at);
    if (name.empty()) return false;
    std::string_view index;
    std::size_t index_at = 0;
    if (at < raw.size() && raw[at] == '[') {
        const std::size_t close = raw.find("]", at);
        if (close == std::string_view::npos) return false;
        index = raw.substr(at + 1, close - at - 1);
        index_at = at + 1;
        at = close + 1;
    }
    const bool appends = raw.substr(at).starts_with("+=");
    if (!appends && !raw.substr(at).starts_with("=")) return false;
    at += appends ? 2 : 1;
    const auto from = static_cast<std::uint32_t>(word.begin + at);
    const auto settled_before = [&](Variable& variable) {
        if (kind.find('A') != std::string_view::npos) variable.keyed = variable.list = true;
        if (kind.find('a') != std::string_view::npos) variable.list = true;
    };
    if (index.empty() && raw.substr(at).starts_with('(') && raw.ends_with(')')) {
        Fields items;
        std::vector<std::string> keys;
        bool keyed = false;
        for (std::uint32_t j = from + 1; j + 1 < word.end;) {
            const char c = all()[j];
            if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
                ++j;
                continue;
            }
            if (c == '#') {
                j = static_cast<std::uint32_t>(std::min<std::size_t>(all().find('\n', j), word.end));
                continue;
            }
            const std::uint32_t to = std::max(j + 1, shell_word_end(all(), j, word.end - 1));
            const std::string_view item = all().substr(j, to - j);
            const std::size_t mark = item.find("]=");
            if (item.starts_with('[') && mark != std::string_view::npos) {
                keyed = true;
                const TracedText key = text_of({j + 1, j + static_cast<std::uint32_t>(mark)});
                items.push_back(text_of({j + static_cast<std::uint32_t>(mark) + 2, to}));
                keys.push_back(key.known ? key.text : std::string("\x01"));
            } else {
                expand({j, to}, items);
            }
            j = to;
            if (!spend(items.size())) break;
        }
        if (local) hide(name);
        Variable& variable = made(name);
        variable.refers.clear();
        settled_before(variable);
        if (!appends) {
            variable.items.clear();
            variable.keys.clear();
            variable.open = false;
        }
        variable.list = true;
        variable.keyed |= keyed && kind.find('a') == std::string_view::npos;
        for (std::size_t k = 0; k < items.size(); ++k) {
            spend(items[k].text.size());
            variable.items.push_back(std::move(items[k]));
            if (keyed) variable.keys.push_back(k < keys.size() ? keys[k] : std::to_string(k));
        }
        return true;
    }
    TracedText value = text_of({from, word.end});
    if (value.known && kind.find('i') != std::string_view::npos)
        if (const auto count = number(value.text)) value.text = std::to_string(*count);
    if (value.at.empty()) {
        value.at = {from, word.end};
        value.source = unit_->source;
    }
    const std::string plain(name);
    if (!index.empty()) {
        const auto first = static_cast<std::uint32_t>(word.begin + index_at);
        TracedText key = text_of({first, first + static_cast<std::uint32_t>(index.size())});
        Variable& variable = made(name);
        variable.list = true;
        if (!variable.keyed)
            if (const auto count = number(key.text)) key.text = std::to_string(*count);
        if (!key.known || (!variable.keyed && number(key.text) != static_cast<std::int64_t>(variable.items.size()))) {
            variable.open = true;
            if (!variable.keyed) return true;
        }
        if (variable.keyed) {
            for (std::size_t k = 0; k < variable.keys.size() && k < variable.items.size(); ++k)
                if (variable.keys[k] == key.text) {
                    variable.items[k] = std::move(value);
                    return true;
                }
            variable.keys.push_back(key.text);
        }
        spend(value.text.size() + 32);
        variable.items.push_back(std::move(value));
        return true;
    }
    if (separators_ != " \t\n" || name == "IFS")
        if (name == "IFS") separators_ = value.known ? value.text : std::string(" \t\n");
    std::optional<TracedText>& noted = assigned_.try_emplace(word.begin, value).first->second;
    if (unit_->source != &file_.source() || (noted && (!noted->known || !value.known || noted->text != value.text)))
        noted.reset();
    if (local) hide(name);
    if (kind.find('n') != std::string_view::npos && value.known) {
        Variable& variable = variables_[plain];
        variable = {};
        if (value.text != plain) variable.refers = value.text;
        return true;
    }
    settled_before(made(name));
    if (!appends) {
        set(name, std::move(value));
        return true;
    }
    Variable& variable = made(name);
    if (variable.items.empty() || variable.open || !value.known) {
        const bool fresh = variable.items.empty() && !variable.open;
        if (fresh)
            set(name, std::move(value));
        else
            variable.open = true;
        return true;
    }
    if (!spend(variable.items[0].text.size() + value.text.size())) return true;
    variable.items[0].text += value.text;
    variable.items[0].at = {};
    return true;
}

// declare, local, export, readonly.
void ShellTrace::declare(const std::vector<Span>& words) {
    const std::string_view name = all().substr(words[0].begin, words[0].size());
    std::string kind;
    for (std::size_t k = 1; k < words.size(); ++k) {
        const std::string_view raw = all().substr(words[k].begin, words[k].size());
        if (raw.starts_with('-')) {
            kind += raw.substr(1);
            continue;
        }
        const bool local = (name == "local" || name == "declare" || name == "typeset") &&
                           kind.find('g') == std::string::npos && !frames_.empty();
        if (assign(words[k], local, kind) || !std::all_of(raw.begin(), raw.end(), shell_name_char)) continue;
        if (local) hide(raw);
        if (name == "export" || name == "readonly") continue;
        Variable& variable = made(raw);
        if (kind.find('A') != std::string::npos) variable.keyed = variable.list = true;
        if (kind.find('a') != std::string::npos) variable.list = true;
    }
}

// [ a = b ]: its words as fields.
ShellTrace::Status ShellTrace::test_command(const Fields& words) {
    std::size_t end = words.size();
    if (words[0].text == "[" && end > 1 && words[end - 1].text == "]") --end;
    const auto yes = [](bool value) { return value ? Status::yes : Status::no; };
    const auto one = [&](std::size_t from, std::size_t to) {
        bool negated = false;
        while (from < to && words[from].known && words[from].text == "!") {
            negated = !negated;
            ++from;
        }
        Status result = Status::unknown;
        if (to - from == 1 && words[from].known) result = yes(!words[from].text.empty());
        if (to - from == 2 && words[from + 1].known) {
            if (words[from].text == "-z") result = yes(words[from + 1].text.empty());
            if (words[from].text == "-n") result = yes(!words[from + 1].text.empty());
        }
        if (to - from == 3 && words[from].known && words[from + 2].known) {
            const std::string &a = words[from].text, &op = words[from + 1].text, &b = words[from + 2].text;
            if (op == "=" || op == "==") result = yes(a == b);
            if (op == "!=") result = yes(a != b);
            const auto x = number(std::string(a)), y = number(std::string(b));
            if (x && y && op.size() == 3 && op[0] == '-')
                result = op == "-eq"   ? yes(*x == *y)
                         : op == "-ne" ? yes(*x != *y)
                         : op == "-lt" ? yes(*x < *y)
                         : op == "-le" ? yes(*x <= *y)
                         : op == "-gt" ? yes(*x > *y)
                         : op == "-ge" ? yes(*x >= *y)
                                       : Status::unknown;
        }
        if (to == from) result = Status::no;
        return negated && result != Status::unknown ? yes(result == Status::no) : result;
    };
    // a -a b, a -o b
    Together told;
    for (std::size_t from = 1, at = 1; at <= end; ++at) {
        const bool ends = at == end, both = !ends && words[at].text == "-a", either = !ends && words[at].text == "-o";
        if (!ends && !both && !either) continue;
        const Status part = one(from, at);
        told.add(part, ends || either);
        from = at + 1;
    }
    return told.any_of;
}

// [[ a == b && ! -z c ]]
ShellTrace::Status ShellTrace::tested(const std::vector<Span>& words) {
    Fields fields;
    const auto raw = [&](std::size_t k) { return all().substr(words[k].begin, words[k].size()); };
    Together told;
    for (std::size_t from = 0, at = 0; at <= words.size(); ++at) {
        const bool ends = at == words.size(), both = !ends && raw(at) == "&&", either = !ends && raw(at) == "||";
        if (!ends && (raw(at) == "(" || raw(at) == ")")) return Status::unknown;
        if (!ends && !both && !either) continue;
        fields.clear();
        fields.push_back({});
        for (std::size_t k = from; k < at; ++k) fields.push_back(text_of(words[k]));
        Status part = Status::unknown;
        const bool negated = fields.size() > 1 && from < at && raw(from) == "!";
        const std::size_t first = negated ? 2 : 1;
        if (fields.size() == first + 3) {
            const std::string_view op = raw(from + first);
            const TracedText &a = fields[first], &b = fields[first + 2];
            if ((op == "==" || op == "=" || op == "!=") && a.known && b.known) {
                const bool quoted = raw(from + first + 1).find_first_of("\"'") != std::string_view::npos;
                const bool same = quoted ? a.text == b.text : shell_pattern_matches(a.text, b.text);
                part = same == (op != "!=") ? Status::yes : Status::no;
            } else if (op == "=~" && a.known && b.known) {
                if (const auto pattern = TextPattern::read(b.text)) {
                    const auto groups = pattern->match(a.text);
                    Variable& found = made("BASH_REMATCH");
                    found = {};
                    found.list = true;
                    for (const TextPattern::Group& group : groups) {
                        TracedText piece;
                        piece.text = a.text.substr(group.begin, group.end - group.begin);
                        found.items.push_back(std::move(piece));
                    }
                    part = groups.empty() ? Status::no : Status::yes;
                }
            } else if (op != "=~") {
                Fields three(fields.begin() + static_cast<std::ptrdiff_t>(first) - 1, fields.end());
                part = test_command(three);
            }
        } else {
            Fields rest(fields.begin() + static_cast<std::ptrdiff_t>(first) - 1, fields.end());
            part = test_command(rest);
        }
        if (negated && part != Status::unknown) part = part == Status::yes ? Status::no : Status::yes;
        told.add(part, ends || either);
        from = at + 1;
    }
    return told.any_of;
}

}  // namespace stoker::lint
