// Arithmetic of a script that is followed.
#include <charconv>
#include <functional>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"

namespace stoker::lint {

namespace {

constexpr int kMostCalculations = 60;

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
            const int of = op == "||"                            ? 0
                           : op == "&&"                          ? 1
                           : op == "+" || op == "-"              ? 3
                           : op == "**"                          ? 5
                           : op == "*" || op == "/" || op == "%" ? 4
                                                                 : 2;
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
        if (i_ < s_.size() && s_[i_] == '[' && i_ > from) i_ = std::min(s_.find(']', i_), s_.size() - 1) + 1;
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
    const bool here =
        expression.data() >= all().data() && expression.data() + expression.size() <= all().data() + all().size();
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
        if ((variable->open && !variable->list) || at >= variable->items.size() || !variable->items[at].known)
            return std::nullopt;
        const std::string& value = variable->items[at].text;
        std::int64_t result = 0;
        const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), result);
        if (error != std::errc{} || stop != value.data() + value.size() || result > 1'000'000'000'000)
            return std::nullopt;
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

}  // namespace stoker::lint
