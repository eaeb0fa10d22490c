// Reads expressions of the three dialects.
// Longer than 500 lines because the three differ only in places, and a reader for each would say most of it twice.
#include "lint/hcl/expression.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;

bool starts_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool digit(char c) {
    return c >= '0' && c <= '9';
}

struct Operator {
    std::string_view text;
    char op;
    int rank;
};
// Longer ones first.
constexpr Operator kOperators[] = {{"??", '?', 1}, {"||", '|', 2}, {"&&", '&', 3}, {"==", '=', 4},
                                   {"!=", '!', 4}, {"=~", '~', 4}, {"!~", '~', 4}, {"<=", 'l', 5},
                                   {">=", 'g', 5}, {"<", '<', 5},  {">", '>', 5},  {"+", '+', 6},
                                   {"-", '-', 6},  {"*", '*', 7},  {"/", '/', 7},  {"%", '%', 7}};

}  // namespace

void ExpressionReader::fail(std::string message, Span span) {
    if (faulty_) return;
    faulty_ = true;
    fault_ = {span, std::move(message), false};
}

bool ExpressionReader::too_deep(int depth) {
    if (depth < kExpressionDepth) return false;
    if (!faulty_) {
        fail("nested too deeply: it is not read");
        fault_.depth = true;
    }
    return true;
}

Node& ExpressionReader::node(Shape shape, Span span) {
    return file_.tree.make(file_.source(), shape, is_fixed_ ? fixed_ : span);
}

void ExpressionReader::skip(bool lines) {
    while (at < size()) {
        const char c = text_[at];
        if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
            ++at;
        } else if (dialect_ != Dialect::arm && (c == '#' || (c == '/' && peek(1) == '/'))) {
            const std::uint32_t begin = at;
            const std::size_t end = text_.find('\n', at);
            at = end == std::string_view::npos ? size() : static_cast<std::uint32_t>(end);
            const bool own = begin == 0 || text_.substr(0, begin).find_last_not_of(" \t") == std::string_view::npos ||
                             text_[text_.substr(0, begin).find_last_not_of(" \t")] == '\n';
            // A blank that was looked over before is looked over again after a step back.
            if (file_.comments.empty() || file_.comments.back().span.begin < begin)
                file_.comments.push_back({{begin, at}, own});
        } else if (dialect_ != Dialect::arm && c == '/' && peek(1) == '*') {
            const std::uint32_t begin = at;
            const std::size_t end = text_.find("*/", at + 2);
            at = end == std::string_view::npos ? size() : static_cast<std::uint32_t>(end + 2);
            if (file_.comments.empty() || file_.comments.back().span.begin < begin)
                file_.comments.push_back({{begin, at}, false});
        } else if (c == '\\' && dialect_ == Dialect::bicep && peek(1) == '\n') {
            at += 2;
        } else {
            return;
        }
    }
}

std::string_view ExpressionReader::identifier() {
    if (at >= size() || !starts_word(text_[at])) return {};
    const std::uint32_t begin = at;
    while (at < size() &&
           (starts_word(text_[at]) || digit(text_[at]) || (text_[at] == '-' && dialect_ == Dialect::hcl)))
        ++at;
    return text_.substr(begin, at - begin);
}

bool ExpressionReader::word_is(std::string_view word) const {
    if (!starts(word)) return false;
    const char after = peek(static_cast<std::uint32_t>(word.size()));
    return !starts_word(after) && !digit(after);
}

const Expression* ExpressionReader::literal(Node& made) {
    Expression& e = expressions_.make(Part::value, made.span);
    e.node = &made;
    return &e;
}

Node* ExpressionReader::node_of(const Expression* e) {
    if (!e) return nullptr;
    if (e->kind == Part::value) {
        Node* made = e->node;
        expressions_.drop(e);
        return made;
    }
    Node& made = node(Shape::string, e->span);
    made.known = false;
    made.text = text(e->span);
    expressions_.pending.emplace(&made, Expressions::Pending{e});
    return &made;
}

Node* ExpressionReader::value(int depth) {
    return node_of(expression(depth));
}

const Expression* ExpressionReader::expression(int depth) {
    if (too_deep(depth)) return nullptr;
    blanks();
    const std::uint32_t begin = at;
    if (dialect_ == Dialect::bicep && lambda_ahead()) {  // x => ..., (x, y) => ...
        while (at < size() && !starts("=>")) ++at;
        at += 2;
        skip(true);
        if (!expression(depth + 1)) return nullptr;
        return &expressions_.make(Part::unknown, {begin, at});
    }
    const Expression* condition = binary(depth, 1);
    if (!condition) return nullptr;
    const std::uint32_t after = at;
    skip(dialect_ != Dialect::hcl || lines_);
    if (peek() != '?' || peek(1) == '?') {
        at = after;
        return condition;
    }
    ++at;
    skip(true);
    const Expression* yes = expression(depth + 1);
    if (!yes) return nullptr;
    skip(true);
    if (peek() != ':') {
        fail("expected \":\" and the value for the other case");
        return nullptr;
    }
    ++at;
    skip(true);
    const Expression* no = expression(depth + 1);
    if (!no) return nullptr;
    Expression& e = expressions_.make(Part::choice, {begin, no->span.end});
    e.a = condition, e.b = yes, e.c = no;
    return &e;
}

// From `at`: a word and "=>", or a list of words in parentheses and "=>".
bool ExpressionReader::lambda_ahead() const {
    std::uint32_t i = at;
    const auto blank = [&] {
        while (i < size() && (text_[i] == ' ' || text_[i] == '\t' || text_[i] == '\n' || text_[i] == '\r')) ++i;
    };
    const auto word = [&] {
        const std::uint32_t begin = i;
        while (i < size() && (starts_word(text_[i]) || digit(text_[i]))) ++i;
        return i > begin;
    };
    const std::uint32_t most = std::min(size(), at + 200);
    if (i < size() && text_[i] == '(') {
        ++i;
        blank();
        while (i < most && word()) {
            blank();
            if (i < size() && text_[i] == ',') ++i;
            blank();
        }
        if (i >= size() || text_[i] != ')') return false;
        ++i;
    } else if (!word()) {
        return false;
    }
    while (i < size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
    return text_.substr(i, 2) == "=>";
}

const Expression* ExpressionReader::binary(int depth, int least) {
    if (too_deep(depth)) return nullptr;
    const Expression* left = unary(depth + 1);
    if (!left || dialect_ == Dialect::arm) return left;
    for (;;) {
        const std::uint32_t before = at;
        skip(lines_ || dialect_ == Dialect::bicep);
        const Operator* found = nullptr;
        for (const Operator& each : kOperators)
            if (starts(each.text)) {
                found = &each;
                break;
            }
        // In Bicep a line may begin with an operator, but "-" and "/" there begin something else.
        const bool next_line = text_.substr(before, at - before).find('\n') != std::string_view::npos;
        if (!found || found->rank < least || (next_line && !lines_ && found->rank > 5) ||
            (found->text == "=~" && dialect_ == Dialect::hcl) ||
            ((found->op == '>' || found->op == '=') && text_.substr(at, 2) == "=>")) {
            at = before;
            return left;
        }
        at += static_cast<std::uint32_t>(found->text.size());
        skip(true);
        const Expression* right = binary(depth + 1, found->rank + 1);
        if (!right) return nullptr;
        Expression& e = expressions_.make(Part::binary, {left->span.begin, right->span.end});
        e.op = found->op;
        e.a = left, e.b = right;
        left = &e;
    }
}

const Expression* ExpressionReader::unary(int depth) {
    if (too_deep(depth)) return nullptr;
    blanks();
    const char c = peek();
    if (dialect_ != Dialect::arm && (c == '!' || c == '-') && peek(1) != '=') {
        const std::uint32_t begin = at++;
        if (c == '-' && digit(peek())) {
            --at;
            return postfix(depth + 1);
        }
        const Expression* inner = unary(depth + 1);
        if (!inner) return nullptr;
        Expression& e = expressions_.make(Part::unary, {begin, inner->span.end});
        e.op = c;
        e.a = inner;
        return &e;
    }
    return postfix(depth + 1);
}

const Expression* ExpressionReader::arguments(int depth, Expression& call, char close) {
    const bool outer = lines_;
    lines_ = true;
    ++at;
    const Expression* last = nullptr;
    for (;;) {
        skip(true);
        if (peek() == close) break;
        if (done()) {
            lines_ = outer;
            fail("the arguments do not end: \")\" is missing");
            return nullptr;
        }
        const Expression* argument = expression(depth + 1);
        if (!argument) {
            lines_ = outer;
            return nullptr;
        }
        // A list of arguments: each expression is in one list only, since it was just made.
        if (last)
            const_cast<Expression*>(last)->next = argument;
        else
            call.first = argument;
        last = argument;
        skip(true);
        if (starts("...")) at += 3, skip(true);
        if (peek() == ',') {
            ++at;
        } else if (peek() != close) {
            lines_ = outer;
            fail("expected \",\" or the end of the arguments");
            return nullptr;
        }
    }
    ++at;
    lines_ = outer;
    call.span.end = at;
    return &call;
}

const Expression* ExpressionReader::postfix(int depth) {
    const Expression* e = primary(depth);
    if (!e) return nullptr;
    for (int links = 0;; ++links) {
        const char c = peek();
        const std::uint32_t before = at;
        if (c == '.' || (c == '?' && peek(1) == '.') || (c == ':' && peek(1) == ':' && dialect_ != Dialect::arm)) {
            if (starts("...")) return e;
            at += c == '.' ? 1 : 2;
            if (peek() == '?' && dialect_ == Dialect::bicep) ++at;
            if (peek() == '*') {
                ++at;
                Expression& all = expressions_.make(Part::unknown, {e->span.begin, at});
                e = &all;
                continue;
            }
            skip(lines_);
            std::uint32_t begin = at;
            std::string_view name = identifier();
            if (name.empty() && digit(peek())) {
                while (digit(peek())) ++at;
                name = text_.substr(begin, at - begin);
            }
            if (name.empty()) {
                fail("expected a name behind \".\"");
                return nullptr;
            }
            if (peek() == '(' && dialect_ == Dialect::bicep) {  // a.f(x): a namespace or a function of a resource
                Expression& call = expressions_.make(Part::call, {e->span.begin, at});
                call.name = name;
                call.a = e;
                if (!arguments(depth + 1, call, ')')) return nullptr;
                e = &call;
                continue;
            }
            if (c == ':' && peek() == '(') {  // provider::name::function()
                Expression& call = expressions_.make(Part::call, {e->span.begin, at});
                if (!arguments(depth + 1, call, ')')) return nullptr;
                e = &call;
                continue;
            }
            Expression& member = expressions_.make(Part::member, {e->span.begin, at});
            member.name = name;
            member.a = e;
            e = &member;
        } else if (c == '[') {
            ++at;
            const bool outer = lines_;
            lines_ = true;
            skip(true);
            if (peek() == '?' && dialect_ == Dialect::bicep) ++at;
            if (peek() == '^' && dialect_ == Dialect::bicep) ++at;
            const Expression* inner = nullptr;
            if (peek() == '*') {
                ++at;
            } else if (!(inner = expression(depth + 1))) {
                lines_ = outer;
                return nullptr;
            }
            skip(true);
            lines_ = outer;
            if (peek() != ']') {
                fail("expected \"]\"");
                return nullptr;
            }
            ++at;
            Expression& index = expressions_.make(inner ? Part::index : Part::unknown, {e->span.begin, at});
            index.a = e, index.b = inner;
            e = &index;
        } else if (c == '!' && dialect_ == Dialect::bicep && peek(1) != '=' && peek(1) != '~') {
            ++at;  // "not null"
        } else if (lines_ && (c == '\n' || c == ' ' || c == '\r' || c == '\t') && dialect_ == Dialect::hcl) {
            skip(true);  // a chain that goes on in the next line, inside brackets
            if (peek() != '.' || peek(1) == '.') {
                at = before;
                return e;
            }
        } else {
            return e;
        }
    }
}

const Expression* ExpressionReader::number() {
    const std::uint32_t begin = at;
    if (peek() == '-') ++at;
    while (digit(peek()) || (peek() == '.' && digit(peek(1))) ||
           ((peek() == 'e' || peek() == 'E') &&
            (digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && digit(peek(2))))) ||
           ((peek() == '-' || peek() == '+') && at > begin && (text_[at - 1] == 'e' || text_[at - 1] == 'E')))
        ++at;
    Node& made = node(Shape::number, {begin, at});
    made.text = text({begin, at});
    return literal(made);
}

const Expression* ExpressionReader::primary(int depth) {
    if (too_deep(depth)) return nullptr;
    blanks();
    const std::uint32_t begin = at;
    const char c = peek();
    if (digit(c) || (c == '-' && digit(peek(1)))) return number();
    if (c == '\'' && dialect_ == Dialect::bicep) return bicep_string(depth);
    if (c == '$' && dialect_ == Dialect::bicep && peek(1) == '\'') return ++at, bicep_string(depth);
    if (c == '\'' && dialect_ == Dialect::arm) return arm_string();
    if (c == '"' && dialect_ == Dialect::hcl) return quoted(depth);
    if (c == '<' && peek(1) == '<' && dialect_ == Dialect::hcl) return heredoc(depth);
    if (c == '(') {
        ++at;
        const bool outer = lines_;
        lines_ = true;
        const Expression* inner = expression(depth + 1);
        if (!inner) {
            lines_ = outer;
            return nullptr;
        }
        skip(true);
        lines_ = outer;
        if (peek() != ')') {
            fail("expected \")\"");
            return nullptr;
        }
        ++at;
        return inner;
    }
    if (c == '[' && dialect_ != Dialect::arm) return list(depth + 1);
    if (c == '{' && dialect_ != Dialect::arm) return object_or_loop(depth + 1);
    const std::string_view word = identifier();
    if (word.empty()) {
        fail(done() ? "expected a value" : "expected a value, not \"" + printable(text_.substr(at, 1)) + "\"");
        return nullptr;
    }
    if (word == "true" || word == "false") {
        if (peek() == '(') {  // ARM has them as functions
            ++at;
            skip(true);
            if (peek() == ')') ++at;
        }
        Node& made = node(Shape::boolean, {begin, at});
        made.text = word;
        return literal(made);
    }
    if (word == "null" && peek() != '(') {
        Node& made = node(Shape::null, {begin, at});
        return literal(made);
    }
    if (word == "if" && dialect_ == Dialect::bicep) {  // if (condition) { ... } as the body of a resource or a loop
        skip(true);
        if (peek() == '(' && !expression(depth + 1)) return nullptr;
        skip(true);
        return expression(depth + 1);
    }
    if (peek() == '(' || (dialect_ == Dialect::arm && peek() == ' ' && peek(1) == '(')) {
        if (peek() == ' ') ++at;
        Expression& call = expressions_.make(Part::call, {begin, at});
        call.name = word;
        return arguments(depth + 1, call, ')');
    }
    Expression& e = expressions_.make(Part::name, {begin, at});
    e.name = word;
    return &e;
}

const Expression* ExpressionReader::list(int depth) {
    if (too_deep(depth)) return nullptr;
    const std::uint32_t begin = at++;
    const bool outer = lines_;
    lines_ = true;
    skip(true);
    if (word_is("for")) {
        const Expression* made = loop(depth + 1, false, begin);
        lines_ = outer;
        return made;
    }
    Node& made = node(Shape::array, {begin, begin});
    if (dialect_ == Dialect::bicep) lines_ = false;  // a line end parts the items
    for (;;) {
        skip(true);
        if (peek() == ']') break;
        if (done()) {
            lines_ = outer;
            fail("the list does not end: \"]\" is missing", {begin, begin + 1});
            return nullptr;
        }
        if (starts("...")) at += 3;
        Node* item = value(depth + 1);
        if (!item) {
            lines_ = outer;
            return nullptr;
        }
        file_.tree.append(made, *item);
        skip(true);
        if (peek() == ',') {
            ++at;
        } else if (peek() != ']' && dialect_ == Dialect::hcl) {
            lines_ = outer;
            fail("expected \",\" or \"]\"");
            return nullptr;
        }
    }
    ++at;
    lines_ = outer;
    if (!is_fixed_) made.span.end = at;
    return literal(made);
}

const Expression* ExpressionReader::object_or_loop(int depth) {
    if (too_deep(depth)) return nullptr;
    const std::uint32_t begin = at;
    std::uint32_t mark = at + 1;
    std::swap(at, mark);
    skip(true);
    if (word_is("for") && dialect_ == Dialect::hcl) {
        const bool outer = lines_;
        lines_ = true;
        const std::uint32_t here = at;
        at += 3;
        skip(true);
        // "for" can be a key too.
        const bool key = peek() == '=' || peek() == ':';
        at = here;
        if (!key) {
            const Expression* made = loop(depth + 1, true, begin);
            lines_ = outer;
            return made;
        }
        lines_ = outer;
    }
    at = begin;
    Node* made = object(depth);
    return made ? literal(*made) : nullptr;
}

Node* ExpressionReader::object(int depth) {
    if (too_deep(depth)) return nullptr;
    const std::uint32_t begin = at++;
    const bool outer = lines_;
    lines_ = false;
    Node& made = node(Shape::object, {begin, begin});
    const auto stop = [&](std::string message) -> Node* {
        lines_ = outer;
        fail(std::move(message));
        return nullptr;
    };
    for (;;) {
        skip(true);
        if (peek() == '}') break;
        if (done()) return at = begin, stop("the object does not end: \"}\" is missing");
        if (starts("...")) {  // spread: what it brings is not known, and what is written wins
            at += 3;
            Node* item = value(depth + 1);
            if (!item) return lines_ = outer, nullptr;
            item->key = "...";
            file_.tree.append(made, *item);
            skip(true);
            if (peek() == ',') ++at;
            continue;
        }
        if (peek() == '@' && dialect_ == Dialect::bicep) {  // a decorator of a nested resource
            ++at;
            if (!expression(depth + 1)) return lines_ = outer, nullptr;
            continue;
        }
        Span key{at, at};
        std::string_view name;
        bool key_known = true;
        if (peek() == '"' || peek() == '\'') {
            Node* written = string_node(depth + 1);
            if (!written) return lines_ = outer, nullptr;
            name = written->text;
            key_known = written->known;
        } else if (peek() == '(' || peek() == '[') {
            const Expression* computed = primary(depth + 1);
            if (!computed) return lines_ = outer, nullptr;
            name = text({key.begin, at});
            key_known = false;
        } else {
            name = identifier();
            if (name.empty() && digit(peek())) {
                while (digit(peek())) ++at;
                name = text({key.begin, at});
            }
            if (name.empty()) return stop("expected a key");
            // a.b as a key: an expression
            while (peek() == '.' || peek() == '[') {
                key_known = false;
                while (!done() && peek() != '=' && peek() != ':' && peek() != '\n' && peek() != ' ') ++at;
                name = text({key.begin, at});
            }
        }
        key.end = at;
        // Bicep: a resource inside a resource, or a decorator before it.
        skip(dialect_ != Dialect::bicep);
        if (dialect_ == Dialect::bicep && name == "resource" && starts_word(peek())) {
            std::vector<std::string_view> labels{identifier()};
            skip(false);
            if (peek() == '\'') {
                Node* type = string_node(depth + 1);
                if (!type) return lines_ = outer, nullptr;
                labels.push_back(type->text);
            }
            skip(false);
            if (word_is("existing")) at += 8, labels.push_back("existing"), skip(false);
            if (peek() != '=') return stop("expected \"=\" and the body of the resource");
            ++at;
            skip(true);
            Node* body = value(depth + 1);
            if (!body) return lines_ = outer, nullptr;
            body->key = "resource", body->key_span = key;
            body->labels = file_.tree.keep_labels(std::move(labels));
            file_.tree.append(made, *body);
            continue;
        }
        if (peek() != ':' && (peek() != '=' || dialect_ == Dialect::bicep))
            return stop(dialect_ == Dialect::bicep ? "expected \":\" and a value" : "expected \"=\" and a value");
        ++at;
        skip(true);
        Node* item = value(depth + 1);
        if (!item) return lines_ = outer, nullptr;
        item->key = key_known ? name : file_.tree.keep("(" + std::string(name) + ")");
        item->key_span = is_fixed_ ? fixed_ : key;
        file_.tree.append(made, *item);
        skip(false);
        if (peek() == ',') {
            ++at;
        } else if (peek() != '\n' && peek() != '}' && !done()) {
            return stop("expected the end of the line or \"}\"");
        }
    }
    ++at;
    lines_ = outer;
    if (!is_fixed_) made.span.end = at;
    return &made;
}

// At "for": [for x in xs: body], [for (x, i) in xs: if (c) body], {for k, v in m : k => v if c}.
const Expression* ExpressionReader::loop(int depth, bool makes_object, std::uint32_t begin) {
    if (too_deep(depth)) return nullptr;
    Expression& e = expressions_.make(Part::loop, {begin, begin});
    e.object = makes_object;
    at += 3;
    skip(true);
    const bool pair = peek() == '(';
    if (pair) ++at, skip(true);
    e.name = identifier();
    skip(true);
    if (peek() == ',') {
        ++at;
        skip(true);
        e.other = e.name;
        e.name = identifier();
        skip(true);
        if (pair) std::swap(e.name, e.other);  // Bicep has the item first, then the number
    }
    if (pair && peek() == ')') ++at, skip(true);
    if (!word_is("in")) {
        fail("expected \"in\" and a list");
        return nullptr;
    }
    at += 2;
    skip(true);
    if (!(e.a = expression(depth + 1))) return nullptr;
    skip(true);
    if (peek() != ':') {
        fail("expected \":\" and the value of an item");
        return nullptr;
    }
    ++at;
    skip(true);
    if (dialect_ == Dialect::bicep && word_is("if")) {
        at += 2;
        skip(true);
        if (!(e.c = primary(depth + 1))) return nullptr;
        skip(true);
    }
    if (!(e.b = expression(depth + 1))) return nullptr;
    skip(true);
    if (makes_object) {
        if (!starts("=>")) {
            fail("expected \"=>\" and a value");
            return nullptr;
        }
        at += 2;
        skip(true);
        e.key = e.b;
        if (!(e.b = expression(depth + 1))) return nullptr;
        skip(true);
        if (starts("...")) at += 3, skip(true);
    }
    if (word_is("if")) {
        at += 2;
        if (!(e.c = expression(depth + 1))) return nullptr;
        skip(true);
    }
    if (peek() != (makes_object ? '}' : ']')) {
        fail("the loop does not end");
        return nullptr;
    }
    ++at;
    e.span.end = at;
    return &e;
}

void ExpressionReader::add_text_part(std::vector<const Expression*>& parts, std::string part, Span span, Style style) {
    if (part.empty()) return;
    Node& made = node(Shape::string, span);
    made.style = style;
    // Most strings have no escapes: their text is the file's own.
    made.text = part == text(span) ? text(span) : file_.tree.keep(std::move(part));
    parts.push_back(literal(made));
}

const Expression* ExpressionReader::joined(std::vector<const Expression*> parts, Span span, Style style) {
    if (parts.empty()) {
        Node& made = node(Shape::string, span);
        made.style = style;
        return literal(made);
    }
    if (parts.size() == 1 && parts[0]->kind == Part::value && parts[0]->node->shape == Shape::string) {
        const_cast<Expression*>(parts[0])->span = span;
        if (!is_fixed_) parts[0]->node->span = span;
        parts[0]->node->style = style;
        return parts[0];
    }
    Expression& e = expressions_.make(Part::text, span);
    const Expression* last = nullptr;
    for (const Expression* part : parts) {
        Expression& link = expressions_.make(Part::text, part->span);  // a link of its own: one expression, one list
        link.a = part;
        if (last)
            const_cast<Expression*>(last)->next = &link;
        else
            e.first = &link;
        last = &link;
    }
    return &e;
}

// At the first byte behind "${"; leaves `at` behind the closing brace. A hole that cannot be read is unknown, not a
// fault: the string around it is well formed.
bool ExpressionReader::hole(int depth, std::vector<const Expression*>& parts, char close) {
    const std::uint32_t begin = at;
    const bool outer = lines_;
    lines_ = true;
    skip(true);
    if (peek() == '~') ++at;
    const Expression* inner = faulty_ ? nullptr : expression(depth + 1);
    skip(true);
    if (peek() == '~') ++at;
    lines_ = outer;
    if (inner && peek() == close) {
        ++at;
        parts.push_back(inner);
        return true;
    }
    if (faulty_ && fault_.depth) return false;
    clear();
    at = begin;
    for (int open = 1; at < size(); ++at) {
        if (text_[at] == '{') ++open;
        if (text_[at] == close && --open == 0) break;
        if (text_[at] == '\n' && dialect_ == Dialect::bicep) break;
    }
    if (peek() != close) {
        fail("\"${\" does not end", {begin - 2, begin});
        return false;
    }
    ++at;
    parts.push_back(&expressions_.make(Part::unknown, {begin, at}));
    return true;
}

const Expression* ExpressionReader::quoted(int depth) {
    const std::uint32_t begin = at++;
    std::vector<const Expression*> parts;
    std::string part;
    std::uint32_t part_begin = at;
    for (;;) {
        const std::size_t stop = text_.find_first_of("\"\\$%\n", at);
        if (stop == std::string_view::npos || text_[stop] == '\n') {
            fail("the string does not end: a closing quote is missing", {begin, begin + 1});
            return nullptr;
        }
        part.append(text_.substr(at, stop - at));
        at = static_cast<std::uint32_t>(stop);
        const char c = text_[at];
        if (c == '"') break;
        if (c == '\\') {
            const char next = peek(1);
            part += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
            at = std::min(at + 2, size());
        } else if (peek(1) == c && peek(2) == '{') {  // $${ and %%{
            part += c;
            part += '{';
            at += 3;
        } else if (peek(1) == '{') {
            add_text_part(parts, std::move(part), {part_begin, at}, Style::double_quoted);
            part.clear();
            at += 2;
            if (c == '%') {  // a directive: what it yields is not followed
                const std::size_t end = text_.find('}', at);
                if (end == std::string_view::npos) {
                    fail("\"%{\" does not end");
                    return nullptr;
                }
                at = static_cast<std::uint32_t>(end + 1);
                parts.push_back(&expressions_.make(Part::unknown, {part_begin, at}));
            } else if (!hole(depth + 1, parts, '}')) {
                return nullptr;
            }
            part_begin = at;
        } else {
            part += c;
            ++at;
        }
    }
    add_text_part(parts, std::move(part), {part_begin, at}, Style::double_quoted);
    ++at;
    return joined(std::move(parts), {begin, at}, Style::double_quoted);
}

const Expression* ExpressionReader::heredoc(int depth) {
    const std::uint32_t begin = at;
    at += 2;
    const bool indented = peek() == '-';
    if (indented) ++at;
    const std::string_view word = identifier();
    const std::size_t line = text_.find('\n', at);
    if (word.empty() || line == std::string_view::npos) {
        fail("expected a word and a line end behind \"<<\"", {begin, at});
        return nullptr;
    }
    at = static_cast<std::uint32_t>(line + 1);
    const std::uint32_t body = at;
    std::uint32_t end = body;
    bool holes = false;
    for (;;) {  // to the line that is the word
        if (end >= size()) {
            fail("the heredoc does not end: no line is \"" + std::string(word) + "\"", {begin, begin + 2});
            return nullptr;
        }
        const std::size_t stop = std::min<std::size_t>(text_.find('\n', end), size());
        const std::string_view row = text_.substr(end, stop - end);
        if (trim(row) == word) {
            at = static_cast<std::uint32_t>(stop);
            if (at > end && text_[at - 1] == '\r') --at;
            break;
        }
        if (row.find("${") != std::string_view::npos || row.find("%{") != std::string_view::npos) holes = true;
        end = static_cast<std::uint32_t>(std::min<std::size_t>(stop + 1, size()));
    }
    (void)depth;
    Node& made = node(Shape::string, {begin, at});
    made.style = Style::heredoc;
    const std::string_view raw = text({body, end});
    made.text = indented ? file_.tree.keep([&] {
        std::size_t least = std::string_view::npos;
        for (const std::string_view row : split_lines(raw))
            if (const std::size_t first = row.find_first_not_of(" \t"); first != std::string_view::npos)
                least = std::min(least, first);
        if (least == std::string_view::npos) least = 0;
        std::string out;
        for (const std::string_view row : split_lines(raw)) {
            out += row.size() > least ? row.substr(least) : std::string_view();
            out += '\n';
        }
        return out;
    }())
                         : raw;
    made.known = !holes;
    return literal(made);
}

const Expression* ExpressionReader::bicep_string(int depth) {
    const std::uint32_t begin = at;
    std::vector<const Expression*> parts;
    if (starts("'''")) {
        at += 3;
        if (peek() == '\r') ++at;
        if (peek() == '\n') ++at;
        std::size_t end = text_.find("'''", at);
        if (end == std::string_view::npos) {
            fail("the string does not end: ''' is missing", {begin, begin + 3});
            return nullptr;
        }
        while (end + 3 < size() && text_[end + 3] == '\'') ++end;
        Node& made = node(Shape::string, {begin, static_cast<std::uint32_t>(end + 3)});
        made.style = Style::literal;
        made.text = text_.substr(at, end - at);
        at = static_cast<std::uint32_t>(end + 3);
        // $''' ... ''' interpolates
        if (begin > 0 && text_[begin - 1] == '$' && made.text.find("${") != std::string_view::npos) made.known = false;
        return literal(made);
    }
    ++at;
    std::string part;
    std::uint32_t part_begin = at;
    for (;;) {
        const std::size_t stop = text_.find_first_of("'\\$\n", at);
        if (stop == std::string_view::npos || text_[stop] == '\n') {
            fail("the string does not end: a closing quote is missing", {begin, begin + 1});
            return nullptr;
        }
        part.append(text_.substr(at, stop - at));
        at = static_cast<std::uint32_t>(stop);
        const char c = text_[at];
        if (c == '\'') break;
        if (c == '\\') {
            const char next = peek(1);
            if (next == 'u') {
                const std::size_t end = text_.find_first_of("}\n'", at);
                part += '?';
                at = end == std::string_view::npos ? size() : static_cast<std::uint32_t>(end + (text_[end] == '}'));
                continue;
            }
            part += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
            at = std::min(at + 2, size());
        } else if (peek(1) == '{') {
            add_text_part(parts, std::move(part), {part_begin, at}, Style::single_quoted);
            part.clear();
            at += 2;
            if (!hole(depth + 1, parts, '}')) return nullptr;
            part_begin = at;
        } else {
            part += c;
            ++at;
        }
    }
    add_text_part(parts, std::move(part), {part_begin, at}, Style::single_quoted);
    ++at;
    return joined(std::move(parts), {begin, at}, Style::single_quoted);
}

const Expression* ExpressionReader::arm_string() {
    const std::uint32_t begin = at++;
    std::string part;
    bool doubled = false;
    for (;;) {
        const std::size_t stop = text_.find('\'', at);
        if (stop == std::string_view::npos) {
            fail("the string does not end: a closing quote is missing", {begin, begin + 1});
            return nullptr;
        }
        part.append(text_.substr(at, stop - at));
        at = static_cast<std::uint32_t>(stop + 1);
        if (peek() != '\'') break;
        part += '\'';
        doubled = true;
        ++at;
    }
    Node& made = node(Shape::string, {begin, at});
    made.text = doubled ? file_.tree.keep(std::move(part)) : text({begin + 1, at - 1});
    Expression& e = expressions_.make(Part::value, {begin, at});
    e.node = &made;
    return &e;
}

Node* ExpressionReader::string_node(int depth) {
    return node_of(dialect_ == Dialect::bicep ? bicep_string(depth) : quoted(depth));
}

}  // namespace stoker::lint
