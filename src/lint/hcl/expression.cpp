// Reads expressions of the three dialects: operators, calls, members, numbers. Lists, objects and loops are in
// expression_lists.cpp, strings in expression_text.cpp.
#include "lint/hcl/expression.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;

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
            if (!is_fixed_ && (file_.comments.empty() || file_.comments.back().span.begin < begin))
                file_.comments.push_back({{begin, at}, own});
        } else if (dialect_ != Dialect::arm && c == '/' && peek(1) == '*') {
            const std::uint32_t begin = at;
            const std::size_t end = text_.find("*/", at + 2);
            at = end == std::string_view::npos ? size() : static_cast<std::uint32_t>(end + 2);
            if (!is_fixed_ && (file_.comments.empty() || file_.comments.back().span.begin < begin))
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
    made.known = false, made.text = e->node ? e->node->text : text(e->span);
    made.style = e->node ? e->node->style : made.style;
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
        return lambda(depth + 1);
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

// x => ..., (x, y) => ...
const Expression* ExpressionReader::lambda(int depth) {
    Expression& e = expressions_.make(Part::lambda, {at, at});
    const Expression* last = nullptr;
    while (at < size() && !starts("=>")) {
        const std::uint32_t begin = at;
        const std::string_view word = identifier();
        if (word.empty()) {
            ++at;
            continue;
        }
        Expression& parameter = expressions_.make(Part::name, {begin, at});
        parameter.name = word;
        if (last)
            const_cast<Expression*>(last)->next = &parameter;
        else
            e.first = &parameter;
        last = &parameter;
    }
    at += 2;
    skip(true);
    if (!(e.b = expression(depth + 1))) return nullptr;
    e.span.end = at;
    return &e;
}

bool ExpressionReader::function(std::string name) {
    Expressions::Function made;
    int open = 0;
    bool expected = true;  // a name: first, and behind a comma; what follows it is its type
    while (!done() && !starts("=>")) {
        const char c = peek();
        if (c == '(' || c == '{' || c == '[') ++open;
        if (c == ')' || c == '}' || c == ']') --open;
        if (c == ',' && open == 1) expected = true;
        if (const std::string_view word = identifier(); !word.empty()) {
            if (expected && open == 1) made.parameters.push_back(word);
            expected = false;
        } else {
            ++at;
        }
    }
    if (done()) return fail("expected \"=>\""), false;
    at += 2;
    skip(true);
    if (!(made.body = expression(0))) return false;
    expressions_.functions.emplace(std::move(name), std::move(made));
    return true;
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
        if (starts("...")) call.op = '*', at += 3, skip(true);  // the last one is a list of arguments
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
    const Expression* each = nullptr;  // of x[*].y, which is [for item in x : item.y]
    const auto whole = [&]() -> const Expression* {
        if (!each) return e;
        Expression& loop = expressions_.make(Part::loop, {each->span.begin, at});
        loop.a = each, loop.b = e;
        loop.name = "*";
        return &loop;
    };
    const auto splat = [&] {
        const bool first = !each && dialect_ == Dialect::hcl;
        if (first) each = e;
        Expression& item = expressions_.make(first ? Part::name : Part::unknown, {e->span.begin, at});
        item.name = "*";
        e = &item;
    };
    for (int links = 0;; ++links) {
        const char c = peek();
        const std::uint32_t before = at;
        if (c == '.' || (c == '?' && peek(1) == '.') || (c == ':' && peek(1) == ':' && dialect_ != Dialect::arm)) {
            if (starts("...")) return whole();
            at += c == '.' ? 1 : 2;
            if (peek() == '?' && dialect_ == Dialect::bicep) ++at;
            if (peek() == '*') {
                ++at;
                splat();
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
            if (peek() == '(' && dialect_ != Dialect::hcl) {  // a.f(x): a namespace or a function of a resource
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
            if (!inner) {
                splat();
                continue;
            }
            Expression& index = expressions_.make(Part::index, {e->span.begin, at});
            index.a = e, index.b = inner;
            e = &index;
        } else if (c == '!' && dialect_ == Dialect::bicep && peek(1) != '=' && peek(1) != '~') {
            ++at;  // "not null"
        } else if (lines_ && (c == '\n' || c == ' ' || c == '\r' || c == '\t') && dialect_ == Dialect::hcl) {
            skip(true);  // a chain that goes on in the next line, inside brackets
            if (peek() != '.' || peek(1) == '.') {
                at = before;
                return whole();
            }
        } else {
            return whole();
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
            ++at, skip(true);
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
        if (skip(true), peek() == '(' && !expression(depth + 1)) return nullptr;
        skip(true);
        return expression(depth + 1);
    }
    // Blanks may stand before the arguments: merge ({ ... }).
    std::uint32_t blanks = 0;
    while (peek(blanks) == ' ' || peek(blanks) == '\t') ++blanks;
    if (peek(blanks) == '(') {
        at += blanks;
        Expression& call = expressions_.make(Part::call, {begin, at});
        call.name = word;
        return arguments(depth + 1, call, ')');
    }
    Expression& e = expressions_.make(Part::name, {begin, at});
    e.name = word;
    return &e;
}

}  // namespace stoker::lint
