// Expressions: texts, lists and dicts with what their parts come to.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/text.h"
#include "lint/python/python_reader.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostSteps = 400'000;
constexpr std::size_t kMostItems = 4096, kMostTextPieces = 4096, kMostTextBytes = 256u << 10;
constexpr int kMostExpressionDepth = 40;

// How tightly a sign binds; 0: no sign between two values.
int level_of(std::string_view sign) {
    if (sign == "if") return 1;
    if (sign == "or") return 2;
    if (sign == "and") return 3;
    for (const std::string_view each : {"==", "!=", "<", ">", "<=", ">=", "in", "not", "is"})
        if (sign == each) return 4;
    for (const std::string_view each : {"|", "&", "^", "<<", ">>"})
        if (sign == each) return 5;
    if (sign == "+" || sign == "-") return 6;
    for (const std::string_view each : {"*", "/", "//", "%", "@"})
        if (sign == each) return 7;
    return sign == "**" ? 8 : 0;
}

PyValue py_truth(bool value, Span span) {
    PyValue made = PyValue::of(PyValue::Kind::truth, span);
    made.add_text(value ? "True" : "False", span);
    return made;
}

}  // namespace

std::string_view PythonReader::text_of(const Cursor& in) const {
    if (in.end()) return {};
    const PyToken& token = (*in.tokens)[in.at];
    return token.kind == PyToken::Kind::text ? std::string_view() : all_.substr(token.span.begin, token.span.size());
}

bool PythonReader::is(const Cursor& in, std::string_view word) const {
    return text_of(in) == word;
}

bool PythonReader::take(Cursor& in, std::string_view word) const {
    if (!is(in, word)) return false;
    ++in.at;
    return true;
}

bool PythonReader::spent(Cursor& in) {
    if (++steps_ <= kMostSteps) return false;
    in.at = in.last;
    return true;
}

// Behind the bracket that closes what is open here.
void PythonReader::skip_to(Cursor& in, std::string_view close) const {
    int depth = 0;
    for (; !in.end(); ++in.at) {
        const std::string_view text = text_of(in);
        if (text == "(" || text == "[" || text == "{") ++depth;
        if (text == ")" || text == "]" || text == "}") {
            if (depth == 0 && text == close) {
                ++in.at;
                return;
            }
            --depth;
        }
    }
}

PyValue PythonReader::expression(Cursor& in, int least, int depth) {
    if (in.end() || spent(in)) return {};
    if (depth > kMostExpressionDepth) {
        in.at = in.last;
        return {};
    }
    PyValue left = unary(in, depth);
    while (!in.end()) {
        const std::string sign(text_of(in));
        const int level = level_of(sign);
        if (level == 0 || level < least) break;
        ++in.at;
        if (sign == "not") take(in, "in");
        if (sign == "is") take(in, "not");
        if (sign == "if") {
            const PyValue condition = expression(in, 2, depth + 1);
            PyValue other = take(in, "else") ? expression(in, 1, depth + 1) : PyValue();
            if (condition.kind == PyValue::Kind::truth && condition.known() && !condition.assumed()) {
                if (!(condition.joined() == "True")) left = std::move(other);
            } else if (left.is_list() && other.is_list()) {
                left = PyValue::of(PyValue::Kind::list, left.span);
                left.open = true;
            } else if (!left.known() || !other.known() || left.joined() != other.joined()) {
                left = PyValue::unknown(left.span);
            }
            continue;
        }
        left = combined(sign, std::move(left), expression(in, level + 1, depth + 1));
    }
    return left;
}

PyValue PythonReader::combined(std::string_view sign, PyValue left, PyValue right) {
    using Sort = PyValue::Kind;
    if (sign == "or") {
        if (left.known() && !left.joined().empty()) return left;
        if (left.kind == Sort::unknown) right.assume();
        return right;
    }
    if ((sign == "==" || sign == "!=") && left.known() && right.known()) {
        PyValue made = py_truth((left.joined() == right.joined()) == (sign == "=="), left.span);
        if (left.assumed() || right.assumed()) made.assume();
        return made;
    }
    if (sign == "+" && left.is_list()) {
        if (right.is_list()) {
            if (left.items.size() + right.items.size() > kMostItems) return {};
            std::move(right.items.begin(), right.items.end(), std::back_inserter(left.items));
            left.open = left.open || right.open;
        } else {
            left.open = true;
        }
        return left;
    }
    if (sign == "+" && right.is_list()) {
        right.open = true;
        return right;
    }
    if (sign == "|" && left.is_dict() && right.is_dict()) {
        for (auto& [key, value] : right.entries) left.put(key, std::move(value));
        left.open = left.open || right.open;
        return left;
    }
    const auto a = left.number(), b = right.number();
    if (a && b && std::abs(*a) < 1'000'000 && std::abs(*b) < 1'000'000) {
        std::optional<long long> made;
        if (sign == "+") made = *a + *b;
        if (sign == "-") made = *a - *b;
        if (sign == "*") made = *a * *b;
        if ((sign == "//" || (sign == "/" && *b != 0 && *a % *b == 0)) && *b > 0 && *a >= 0) made = *a / *b;
        if (sign == "%" && *b > 0 && *a >= 0) made = *a % *b;
        if (!made) return {};
        PyValue value = PyValue::whole(*made, left.span);
        if (left.assumed() || right.assumed()) value.assume();
        return value;
    }
    // A text and what is joined to it; a path and what is below it.
    const bool path = sign == "/" && (left.is_text() || right.is_text());
    if ((sign == "+" && (left.is_text() || right.is_text())) || path) {
        PyValue made = PyValue::of(Sort::text, left.span);
        made.origin = left.is_text() ? left.origin : right.origin;
        append_text(made, left, "left");
        if (path) made.add_text("/", right.span);
        append_text(made, right, "right");
        if (made.pieces.size() > kMostTextPieces || made.bytes() > kMostTextBytes) return {};
        return made;
    }
    PyValue nothing = PyValue::unknown(left.span);
    return nothing;
}

PyValue PythonReader::unary(Cursor& in, int depth) {
    if (in.end()) return {};
    const Span span = (*in.tokens)[in.at].span;
    if (take(in, "not")) {
        PyValue value = expression(in, 4, depth + 1);
        if (value.kind == PyValue::Kind::truth && value.known() && !value.assumed())
            return py_truth(value.joined() != "True", span);
        return PyValue::unknown(span);
    }
    if (take(in, "-")) {
        const PyValue value = expression(in, 8, depth + 1);
        const auto number = value.number();
        return number ? PyValue::whole(-*number, span) : PyValue::unknown(span);
    }
    for (const std::string_view word : {"+", "~", "await", "yield", "from"})
        if (take(in, word)) return expression(in, 8, depth + 1);
    if (take(in, "lambda")) {
        int open = 0;
        for (; !in.end(); ++in.at) {
            const std::string_view text = text_of(in);
            if (open == 0 && (text == "," || text == ")" || text == "]" || text == "}")) break;
            if (text == "(" || text == "[" || text == "{") ++open;
            if (text == ")" || text == "]" || text == "}") --open;
        }
        return PyValue::unknown(span);
    }
    return primary(in, depth);
}

PyValue PythonReader::primary(Cursor& in, int depth) {
    const PyToken& token = (*in.tokens)[in.at];
    const std::string_view text = text_of(in);
    if (token.kind == PyToken::Kind::text) return postfix(in, texts(in, depth), "", depth);
    if (token.kind == PyToken::Kind::number) {
        PyValue value = PyValue::of(PyValue::Kind::number, token.span);
        value.pieces.push_back({std::string(text), token.span, true});
        ++in.at;
        return value;
    }
    if (text == "(" || text == "[") {
        ++in.at;
        PyValue value = bracket(in, text == "(" ? ")" : "]", depth);
        value.span.begin = token.span.begin;
        return postfix(in, std::move(value), "", depth);
    }
    if (text == "{") {
        ++in.at;
        return postfix(in, braces(in, depth), "", depth);
    }
    ++in.at;
    if (token.kind != PyToken::Kind::name) return PyValue::unknown(token.span);
    if (text == "True" || text == "False") return py_truth(text == "True", token.span);
    if (text == "None") return PyValue::of(PyValue::Kind::none, token.span);
    PyValue value = PyValue::unknown(token.span);
    if (const PyValue* variable = find(text)) {
        steps_ += variable->weight();
        value = *variable;
    }
    return postfix(in, std::move(value), std::string(text), depth);
}

PyValue PythonReader::postfix(Cursor& in, PyValue value, std::string path, int depth) {
    while (!in.end()) {
        const Span here = (*in.tokens)[in.at].span;
        if (is(in, ".") && in.at + 1 < in.last) {
            ++in.at;
            const std::string name(text_of(in));
            ++in.at;
            path += "." + name;
            if (is(in, "(")) continue;
            PyValue made = PyValue::unknown({value.span.begin, here.end});
            if (const PyValue* variable = find(path))
                made = *variable;
            else if (const PyValue* entry = value.is_dict() ? value.find(name) : nullptr)
                made = *entry;
            else if (path == "sys.executable")
                made = PyValue::of(PyValue::Kind::text, value.span), made.add_text("python", value.span);
            else if (const std::string_view root = std::string_view(path).substr(0, path.find('.'));
                     root == "args" || root == "opts" || root == "opt" || root == "options" || root == "cli_args")
                if (const auto it = arguments_.find(name); it != arguments_.end() && path.rfind('.') == root.size())
                    made = it->second;
            value = std::move(made);
        } else if (is(in, "(")) {
            ++in.at;
            Call call;
            call.path = std::move(path);
            call.receiver = &value;
            arguments(in, call, depth);
            call.span = {value.span.begin, in.at > 0 ? (*in.tokens)[in.at - 1].span.end : here.end};
            PyValue made = value_of_call(call, depth);
            if (made.bytes() > kMostTextBytes || made.pieces.size() > kMostTextPieces)
                made = PyValue::unknown(call.span);
            steps_ += made.weight();
            if (made.span.empty()) made.span = call.span;
            path = call.path + "()";
            value = std::move(made);
        } else if (is(in, "[")) {
            ++in.at;
            bool sliced = false;
            PyValue index = is(in, ":") ? PyValue() : expression(in, 1, depth + 1);
            while (!in.end() && !is(in, "]")) {
                sliced = true;
                const std::uint32_t before = in.at;
                if (is(in, ":") || is(in, ","))
                    ++in.at;
                else
                    expression(in, 1, depth + 1);
                if (in.at == before) ++in.at;
            }
            take(in, "]");
            if (sliced && value.is_list()) {
                value = PyValue::of(PyValue::Kind::list, value.span);
                value.open = true;
            } else {
                value = sliced ? PyValue::unknown(value.span) : indexed(value, index, value.span);
            }
            path += "[]";
        } else {
            break;
        }
    }
    return value;
}

PyValue PythonReader::indexed(const PyValue& value, const PyValue& index, Span span) const {
    if (value.is_dict() && index.known() && !index.assumed())
        if (const PyValue* entry = value.find(index.joined())) return *entry;
    if (value.is_list() && !value.open)
        if (const auto at = index.number(); at && !index.assumed()) {
            const long long size = static_cast<long long>(value.items.size());
            const long long place = *at < 0 ? *at + size : *at;
            if (place >= 0 && place < size) return value.items[static_cast<std::size_t>(place)];
        }
    return PyValue::unknown(span);
}

// What stands in ( ) or [ ]: a list, or in ( ) the one value.
PyValue PythonReader::bracket(Cursor& in, std::string_view close, int depth) {
    PyValue list = PyValue::of(PyValue::Kind::list, in.end() ? Span{} : (*in.tokens)[in.at].span);
    bool comma = false;
    while (!in.end() && !is(in, close)) {
        const std::uint32_t before = in.at;
        const bool spread = take(in, "*") || take(in, "**");
        PyValue item = expression(in, 1, depth + 1);
        if (is(in, "for") || is(in, "async")) {  // a comprehension
            skip_to(in, close);
            if (close == ")") return PyValue::unknown(list.span);
            list.open = true;
            list.items.clear();
            return list;
        }
        if (take(in, ":=")) item = expression(in, 1, depth + 1);
        if (!spread) {
            list.items.push_back(std::move(item));
        } else if (item.is_list()) {
            std::move(item.items.begin(), item.items.end(), std::back_inserter(list.items));
            list.open = list.open || item.open;
        } else {
            list.open = true;
        }
        if (list.items.size() > kMostItems) list.items.clear(), list.open = true;
        if (take(in, ","))
            comma = true;
        else if (!is(in, close) && in.at == before)
            ++in.at;
    }
    take(in, close);
    if (close == ")" && !comma && list.items.size() == 1) return std::move(list.items.front());
    if (!in.end() || in.at > 0) list.span.end = (*in.tokens)[in.at - 1].span.end;
    return list;
}

PyValue PythonReader::braces(Cursor& in, int depth) {
    PyValue dict = PyValue::of(PyValue::Kind::dict, in.at > 0 ? (*in.tokens)[in.at - 1].span : Span{});
    while (!in.end() && !is(in, "}")) {
        const std::uint32_t before = in.at;
        if (take(in, "**")) {
            const PyValue other = expression(in, 1, depth + 1);
            for (const auto& [key, value] : other.entries) dict.put(key, value);
            dict.open = dict.open || !other.is_dict() || other.open;
        } else {
            const PyValue key = expression(in, 1, depth + 1);
            if (is(in, "for")) {
                skip_to(in, "}");
                dict.open = true;
                return dict;
            }
            if (take(in, ":")) {
                PyValue value = expression(in, 1, depth + 1);
                if (is(in, "for")) {
                    skip_to(in, "}");
                    dict.open = true;
                    return dict;
                }
                if (key.known())
                    dict.put(key.joined(), std::move(value));
                else
                    dict.open = true;
            }
        }
        if (!take(in, ",") && !is(in, "}") && in.at == before) ++in.at;
        if (dict.entries.size() > kMostItems) break;
    }
    take(in, "}");
    if (in.at > 0) dict.span.end = (*in.tokens)[in.at - 1].span.end;
    settings(dict);
    return dict;
}

// "a" f"b{c}" "d": one text.
PyValue PythonReader::texts(Cursor& in, int depth) {
    PyValue value = PyValue::of(PyValue::Kind::text, (*in.tokens)[in.at].span);
    while (!in.end() && (*in.tokens)[in.at].kind == PyToken::Kind::text) {
        const PyToken& token = (*in.tokens)[in.at++];
        decode(token, value, depth);
        value.span.end = token.span.end;
    }
    return value;
}

void PythonReader::decode(const PyToken& token, PyValue& to, int depth) {
    std::uint32_t from = token.body.begin;
    const auto flush = [&](std::uint32_t until) {
        if (until > from) to.pieces.push_back({std::string(all_.substr(from, until - from)), {from, until}, true});
    };
    for (std::uint32_t at = token.body.begin; at < token.body.end && to.pieces.size() < kMostTextPieces;) {
        const char c = all_[at];
        const char next = at + 1 < token.body.end ? all_[at + 1] : '\0';
        if (c == '\\' && !token.raw && next != '\0') {
            flush(at);
            std::uint32_t size = 2;
            const Span host{at, at + 2};
            switch (next) {
                case 'n': to.add_text("\n", host); break;
                case 't': to.add_text("\t", host); break;
                case '\\':
                case '"':
                case '\'': to.add_text(std::string_view(&all_[at + 1], 1), host); break;
                case '\n': break;
                case '\r': size = at + 2 < token.body.end && all_[at + 2] == '\n' ? 3 : 2; break;
                default: to.add_text(all_.substr(at, 2), host);
            }
            from = at += size;
        } else if (token.formatted && (c == '{' || c == '}') && next == c) {
            flush(at);
            to.add_text(std::string_view(&c, 1), {at, at + 2});
            from = at += 2;
        } else if (token.formatted && c == '{') {
            flush(at);
            std::uint32_t stop = at + 1;
            for (int open = 1; stop < token.body.end; ++stop) {
                if (all_[stop] == '{') ++open;
                if (all_[stop] == '}' && --open == 0) break;
            }
            formatted({at + 1, stop}, to, depth);
            from = at = std::min(stop + 1, token.body.end);
        } else {
            ++at;
        }
    }
    flush(token.body.end);
}

// {name}, {a["b"]}, {n * 8}; with a format behind it only what it names is known.
void PythonReader::formatted(Span field, PyValue& to, int depth) {
    const PyTokens inside = python_tokens(all_, field);
    const std::string_view written = all_.substr(field.begin, field.size());
    Cursor in{&inside.all, 0, static_cast<std::uint32_t>(inside.all.size())};
    const PyValue value = depth > 8 ? PyValue() : expression(in, 1, depth + 8);
    if (to.bytes() + value.bytes() > kMostTextBytes) return to.add_unknown(written, field);
    if (in.end() || (is(in, "!") && (written.ends_with("!s") || written.ends_with("!r")))) {
        append_text(to, value, written);
        if (value.kind == PyValue::Kind::unknown) to.pieces.back().host = field;
    } else {
        to.add_unknown(written, field);
    }
}

// Behind the opening bracket.
void PythonReader::arguments(Cursor& in, Call& call, int depth) {
    while (!in.end() && !is(in, ")")) {
        const std::uint32_t before = in.at;
        if (take(in, "**")) {
            const PyValue more = expression(in, 1, depth + 1);
            for (const auto& [key, value] : more.entries) call.named.emplace_back(key, value);
        } else if (take(in, "*")) {
            const PyValue more = expression(in, 1, depth + 1);
            if (more.is_list() && !call.open)
                call.arguments.insert(call.arguments.end(), more.items.begin(), more.items.end());
            call.open = call.open || !more.is_list() || more.open;
        } else if ((*in.tokens)[in.at].kind == PyToken::Kind::name && in.at + 1 < in.last &&
                   text_of({in.tokens, in.at + 1, in.last}) == "=") {
            const std::string name(text_of(in));
            in.at += 2;
            call.named.emplace_back(name, expression(in, 1, depth + 1));
        } else {
            PyValue value = expression(in, 1, depth + 1);
            if (is(in, "for")) {
                skip_to(in, ")");
                call.open = true;
                return;
            }
            if (!call.open) call.arguments.push_back(std::move(value));
        }
        if (!take(in, ",") && !is(in, ")") && in.at == before) ++in.at;
    }
    take(in, ")");
}

}  // namespace stoker::lint
