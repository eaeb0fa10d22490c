// Strings of the three dialects: quoted ones, heredocs, and the expressions within them.
#include <algorithm>

#include "base/text.h"
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;

}  // namespace

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

// Up to the next of `stops`, of which the end of the line is one that must not come before the closing quote.
bool ExpressionReader::plain_text(const char* stops, std::uint32_t begin, std::string& part) {
    const std::size_t stop = text_.find_first_of(stops, at);
    if (stop == std::string_view::npos || text_[stop] == '\n') {
        fail("the string does not end: a closing quote is missing", {begin, begin + 1});
        return false;
    }
    part.append(text_.substr(at, stop - at));
    at = static_cast<std::uint32_t>(stop);
    return true;
}

void ExpressionReader::escaped(std::string& part) {
    const char next = peek(1);
    part += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
    at = std::min(at + 2, size());
}

const Expression* ExpressionReader::quoted(int depth) {
    const std::uint32_t begin = at++;
    std::vector<const Expression*> parts;
    std::string part;
    std::uint32_t part_begin = at;
    for (;;) {
        if (!plain_text("\"\\$%\n", begin, part)) return nullptr;
        const char c = text_[at];
        if (c == '"') break;
        if (c == '\\') {
            escaped(part);
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

const Expression* ExpressionReader::bare_template(int depth) {
    std::vector<const Expression*> parts;
    std::string part;
    const std::uint32_t begin = at;
    std::uint32_t part_begin = at;
    while (!done()) {
        const std::size_t stop = std::min<std::size_t>(text_.find_first_of("$%", at), size());
        part.append(text_.substr(at, stop - at));
        at = static_cast<std::uint32_t>(stop);
        if (done()) break;
        const char c = text_[at];
        if (peek(1) == c && peek(2) == '{') {  // $${ and %%{
            part += c;
            part += '{';
            at += 3;
        } else if (peek(1) == '{') {
            add_text_part(parts, std::move(part), {part_begin, at}, Style::double_quoted);
            part.clear();
            at += 2;
            if (c == '%') {
                parts.push_back(&expressions_.make(Part::unknown, {at, at}));
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
    if (!holes) return literal(made);
    Expression& e = expressions_.make(Part::text, made.span);
    e.node = &made;
    return &e;
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
        if (!plain_text("'\\$\n", begin, part)) return nullptr;
        const char c = text_[at];
        if (c == '\'') break;
        if (c == '\\') {
            if (peek(1) == 'u') {
                const std::size_t end = text_.find_first_of("}\n'", at);
                part += '?';
                at = end == std::string_view::npos ? size() : static_cast<std::uint32_t>(end + (text_[end] == '}'));
                continue;
            }
            escaped(part);
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
