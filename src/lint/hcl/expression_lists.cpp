// Lists, objects and the loops that make them, of HCL and Bicep.
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;

}  // namespace

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
            // sensitive(...) as a key, in Terraform: its value is not known here.
            if (dialect_ == Dialect::hcl && peek() == '(') {
                at = key.begin;
                if (!primary(depth + 1)) return lines_ = outer, nullptr;
                key_known = false;
                name = text({key.begin, at});
            }
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
            body->labels = file_.tree.keep_labels(labels);
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
        if (starts("...")) e.op = '*', at += 3, skip(true);  // values of one key make a list
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

}  // namespace stoker::lint
