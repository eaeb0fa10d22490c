// Variables of a script that is followed: assignments, arithmetic, and tests.
#include <algorithm>
#include <charconv>
#include <functional>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

bool shell_pattern_matches(std::string_view text, std::string_view pattern);  // shell_trace_words.cpp

namespace {
constexpr int kMostCalculations = 60;
}

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
    if (std::any_of(frame.hidden.begin(), frame.hidden.end(), [&](const auto& each) { return each.first == name; })) return;
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

namespace {

// Whole numbers as a shell calculates them. A name is worth what its variable is; 0 where it has none.
class Calculation {
public:
    using Look = std::function<std::optional<std::int64_t>(std::string_view)>;
    using Store = std::function<void(std::string_view, std::optional<std::int64_t>)>;
    Calculation(std::string_view text, const Look& look, const Store& store) : s_(text), look_(look), store_(store) {}

    std::optional<std::int64_t> run() {
        auto result = choice();
        for (blanks(); i_ < s_.size() && s_[i_] == ','; blanks()) {
            ++i_;
            result = choice();
        }
        return i_ == s_.size() ? result : std::nullopt;
    }

private:
    void blanks() {
        while (i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '\t' || s_[i_] == '\n')) ++i_;
    }
    std::optional<std::int64_t> choice() {
        const auto condition = binary(0);
        blanks();
        if (i_ >= s_.size() || s_[i_] != '?') return condition;
        ++i_;
        const auto yes = choice();
        blanks();
        if (i_ >= s_.size() || s_[i_] != ':') return fail();
        ++i_;
        const auto no = choice();
        return !condition ? std::nullopt : *condition ? yes : no;
    }
    std::optional<std::int64_t> fail() {
        i_ = s_.size() + 1;
        return std::nullopt;
    }
    std::string_view operator_at(int rank) {
        blanks();
        static constexpr std::string_view kOperators[] = {"||", "&&", "==", "!=", "<=", ">=", "<<", ">>",
                                                          "<",  ">",  "+",  "-",  "**", "*",  "/",  "%"};
        for (const std::string_view op : kOperators) {
            if (!s_.substr(std::min(i_, s_.size())).starts_with(op)) continue;
            const int of = op == "||" ? 0 : op == "&&" ? 1 : op == "+" || op == "-" ? 3 : op == "**" ? 5 : op == "*" || op == "/" || op == "%" ? 4 : 2;
            return of == rank ? op : std::string_view();
        }
        return {};
    }
    std::optional<std::int64_t> binary(int rank) {
        if (rank == 6) return unary();
        auto left = binary(rank + 1);
        for (std::string_view op = operator_at(rank); !op.empty(); op = operator_at(rank)) {
            i_ += op.size();
            const auto right = binary(rank + 1);
            if (!left || !right) {
                left = std::nullopt;
                continue;
            }
            left = worked_out(op, *left, *right);
        }
        return left;
    }
    static std::optional<std::int64_t> worked_out(std::string_view op, std::int64_t a, std::int64_t b) {
        constexpr std::int64_t kMost = 1'000'000'000'000;
        if (op == "||") return a || b;
        if (op == "&&") return a && b;
        if (op == "==") return a == b;
        if (op == "!=") return a != b;
        if (op == "<=") return a <= b;
        if (op == ">=") return a >= b;
        if (op == "<") return a < b;
        if (op == ">") return a > b;
        if ((op == "/" || op == "%") && b == 0) return std::nullopt;
        if (op == "<<" || op == ">>") {
            if (b < 0 || b > 40 || a < 0) return std::nullopt;
            if (op == ">>") return a >> b;
            return a <= (kMost >> b) ? std::optional(a << b) : std::nullopt;
        }
        if (op == "**") {
            std::int64_t result = 1;
            if (b < 0 || b > 60) return std::nullopt;
            for (; b > 0; --b) {
                result *= a;
                if (result > kMost || result < -kMost) return std::nullopt;
                if (a > 1'000'000 || a < -1'000'000) return std::nullopt;
            }
            return result;
        }
        if (op == "*") {
            if (a > 1'000'000'000 || a < -1'000'000'000 || b > 1'000'000'000 || b < -1'000'000'000) return std::nullopt;
            a *= b;
        } else {
            a = op == "+" ? a + b : op == "-" ? a - b : op == "/" ? a / b : a % b;
        }
        return a > kMost || a < -kMost ? std::nullopt : std::optional(a);
    }
    std::optional<std::int64_t> unary() {
        blanks();
        if (i_ >= s_.size() || ++depth_ > 200) return fail();
        const char c = s_[i_];
        if (s_.substr(i_).starts_with("++") || s_.substr(i_).starts_with("--")) {
            i_ += 2;
            const std::string_view name = word();
            auto value = look_(name);
            if (value) value = *value + (c == '+' ? 1 : -1);
            store_(name, value);
            return value;
        }
        if (c == '-' || c == '+' || c == '!') {
            ++i_;
            const auto value = unary();
            return !value ? value : c == '-' ? -*value : c == '!' ? std::int64_t{*value == 0} : *value;
        }
        if (c == '(') {
            ++i_;
            const auto value = choice();
            blanks();
            if (i_ >= s_.size() || s_[i_] != ')') return fail();
            ++i_;
            return value;
        }
        const std::string_view name = word();
        if (name.empty()) return fail();
        if (name[0] >= '0' && name[0] <= '9') {
            std::int64_t value = 0;
            const std::size_t mark = name.find('#');
            const std::string_view digits = mark == std::string_view::npos ? name : name.substr(mark + 1);
            const int base = mark != std::string_view::npos && name.starts_with("10#") ? 10
                             : mark != std::string_view::npos                          ? 0
                                                                                       : 10;
            if (base == 0) return fail();
            const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
            return error == std::errc{} && stop == digits.data() + digits.size() && value <= 1'000'000'000'000
                       ? std::optional(value)
                       : fail();
        }
        blanks();
        const std::string_view rest = s_.substr(std::min(i_, s_.size()));
        if (rest.starts_with("++") || rest.starts_with("--")) {
            i_ += 2;
            const auto value = look_(name);
            store_(name, value ? std::optional(*value + (rest[0] == '+' ? 1 : -1)) : value);
            return value;
        }
        for (const std::string_view op : {"+=", "-=", "*=", "/=", "%="})
            if (rest.starts_with(op)) {
                i_ += 2;
                const auto right = choice(), left = look_(name);
                const auto value = left && right ? worked_out(op.substr(0, 1), *left, *right) : std::nullopt;
                store_(name, value);
                return value;
            }
        if (rest.starts_with('=') && !rest.starts_with("==")) {
            ++i_;
            const auto value = choice();
            store_(name, value);
            return value;
        }
        return look_(name);
    }
    std::string_view word() {
        blanks();
        const std::size_t from = i_;
        while (i_ < s_.size() && (shell_name_char(s_[i_]) || s_[i_] == '#')) ++i_;
        if (i_ < s_.size() && s_[i_] == '[' && i_ > from)
            i_ = std::min(s_.find(']', i_), s_.size() - 1) + 1;
        return s_.substr(from, i_ - from);
    }

    std::string_view s_;
    const Look& look_;
    const Store& store_;
    std::size_t i_ = 0;
    int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> ShellTrace::number(std::string_view expression) {
    if (expression.size() > 1000 || !spend(expression.size())) return std::nullopt;
    // Of the script's text: "$" and "${" first.
    std::string text(expression);
    const bool here = expression.data() >= all().data() && expression.data() + expression.size() <= all().data() + all().size();
    if (here && expression.find_first_of("$\"") != std::string_view::npos) {
        const auto from = static_cast<std::uint32_t>(expression.data() - all().data());
        // As between quotes: nothing is parted. Names that the scheduler sets stay names.
        std::string plain;
        for (std::size_t at = 0; at < expression.size(); ++at) {
            const char c = expression[at];
            if (c == '"') continue;
            if (c != '$') {
                plain += c;
                continue;
            }
            std::size_t end = at + 1;
            const bool brace = end < expression.size() && expression[end] == '{';
            if (brace) ++end;
            const std::size_t name = end;
            while (end < expression.size() && shell_name_char(expression[end])) ++end;
            const bool whole = end > name && !(expression[name] >= '0' && expression[name] <= '9') &&
                               (!brace || (end < expression.size() && expression[end] == '}'));
            if (whole) {
                plain += expression.substr(name, end - name);
                at = brace ? end : end - 1;
                continue;
            }
            const std::uint32_t first = from + static_cast<std::uint32_t>(at);
            std::uint32_t to = shell_word_end(all(), first, from + static_cast<std::uint32_t>(expression.size()));
            if (!brace && first + 2 < to && all()[first + 1] != '(') to = first + 2;
            const TracedText value = text_of({first, to});
            if (!value.known) return std::nullopt;
            plain += value.text;
            at = to - from - 1;
        }
        text = std::move(plain);
    }
    const Calculation::Look look = [&](std::string_view name) -> std::optional<std::int64_t> {
        std::string_view index;
        if (const std::size_t bracket = name.find('['); bracket != std::string_view::npos) {
            index = name.substr(bracket + 1, name.size() - bracket - 2);
            name = name.substr(0, bracket);
        }
        const Variable* const variable = find(name);
        if (variable == nullptr) {
            if (const auto it = scheduled_.find(name); it != scheduled_.end()) return it->second;
            return std::nullopt;  // the environment may have it
        }
        std::size_t at = 0;
        if (!index.empty()) {
            const auto value = depth_ < kMostCalculations ? (++depth_, number(std::string(index))) : std::nullopt;
            if (depth_ > 0) --depth_;
            if (!value || *value < 0) return std::nullopt;
            at = static_cast<std::size_t>(*value);
        }
        if ((variable->open && !variable->list) || at >= variable->items.size() || !variable->items[at].known) return std::nullopt;
        const std::string& value = variable->items[at].text;
        std::int64_t result = 0;
        const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), result);
        if (error != std::errc{} || stop != value.data() + value.size() || result > 1'000'000'000'000) return std::nullopt;
        return result;
    };
    const Calculation::Store store = [&](std::string_view name, std::optional<std::int64_t> value) {
        if (name.find('[') != std::string_view::npos || name.empty()) return;
        TracedText made;
        made.known = value.has_value();
        if (value) made.text = std::to_string(*value);
        set(name, std::move(made));
    };
    return Calculation(text, look, store).run();
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
    Status all_of = Status::yes, any_of = Status::no;
    for (std::size_t from = 1, at = 1; at <= end; ++at) {
        const bool ends = at == end, both = !ends && words[at].text == "-a", either = !ends && words[at].text == "-o";
        if (!ends && !both && !either) continue;
        const Status part = one(from, at);
        if (part == Status::no) all_of = Status::no;
        if (part == Status::unknown && all_of == Status::yes) all_of = Status::unknown;
        if (ends || either) {
            if (all_of == Status::yes) any_of = Status::yes;
            if (all_of == Status::unknown && any_of == Status::no) any_of = Status::unknown;
            all_of = Status::yes;
        }
        from = at + 1;
    }
    return any_of;
}

// [[ a == b && ! -z c ]]
ShellTrace::Status ShellTrace::tested(const std::vector<Span>& words) {
    Fields fields;
    const auto raw = [&](std::size_t k) { return all().substr(words[k].begin, words[k].size()); };
    Status all_of = Status::yes, any_of = Status::no;
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
            } else if (op != "=~") {
                Fields three(fields.begin() + static_cast<std::ptrdiff_t>(first) - 1, fields.end());
                part = test_command(three);
            }
        } else {
            Fields rest(fields.begin() + static_cast<std::ptrdiff_t>(first) - 1, fields.end());
            part = test_command(rest);
        }
        if (negated && part != Status::unknown) part = part == Status::yes ? Status::no : Status::yes;
        if (part == Status::no) all_of = Status::no;
        if (part == Status::unknown && all_of == Status::yes) all_of = Status::unknown;
        if (ends || either) {
            if (all_of == Status::yes) any_of = Status::yes;
            if (all_of == Status::unknown && any_of == Status::no) any_of = Status::unknown;
            all_of = Status::yes;
        }
        from = at + 1;
    }
    return any_of;
}

}  // namespace stoker::lint
