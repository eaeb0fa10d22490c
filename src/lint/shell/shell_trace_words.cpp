// What words come to in a script that is followed: quotes, parameters, substitutions, and the fields that they part
// into.
#include <algorithm>

#include "base/text.h"
#include "lint/shell/shell_fields.h"
#include "lint/shell/shell_parser.h"

namespace stoker::lint {

// *, ? and [abc] of a shell's pattern.
bool shell_pattern_matches(std::string_view text, std::string_view pattern) {
    std::size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
    const auto one = [&](std::size_t at, std::size_t& next) {  // does text[t] fit what stands at `at`?
        next = at + 1;
        if (pattern[at] == '?') return true;
        if (pattern[at] == '\\' && at + 1 < pattern.size()) {
            next = at + 2;
            return pattern[at + 1] == text[t];
        }
        if (pattern[at] != '[') return pattern[at] == text[t];
        std::size_t k = at + 1;
        const bool negated = k < pattern.size() && (pattern[k] == '!' || pattern[k] == '^');
        if (negated) ++k;
        bool found = false;
        const std::size_t first = k;
        for (; k < pattern.size() && (pattern[k] != ']' || k == first); ++k) {
            if (k + 2 < pattern.size() && pattern[k + 1] == '-' && pattern[k + 2] != ']') {
                found |= pattern[k] <= text[t] && text[t] <= pattern[k + 2];
                k += 2;
            } else {
                found |= pattern[k] == text[t];
            }
        }
        if (k >= pattern.size()) return text[t] == '[';
        next = k + 1;
        return found != negated;
    };
    while (t < text.size()) {
        std::size_t next = 0;
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && one(p, next)) {
            p = next;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

TracedText ShellTrace::written(Span span, bool known) const {
    TracedText piece;
    piece.text = all().substr(span.begin, span.size());
    piece.at = span;
    piece.source = unit_->source;
    piece.known = known;
    return piece;
}

void ShellTrace::expand(Span word, Fields& out) {
    const std::size_t before = out.size();
    const std::string_view raw = all().substr(word.begin, word.size());
    FieldMaker maker(out, separators_, true);
    text(word.begin, word.end, false, maker);
    maker.cut();
    // {a,b}: rare where it matters, and left alone. What is not known is told as it is written.
    for (std::size_t k = before; k < out.size(); ++k) {
        out[k].word = word;
        if (out[k].known && out[k].at.empty()) {
            out[k].at = word;
            out[k].source = unit_->source;
        }
        if (out[k].known) continue;
        out[k].text = raw;
        out[k].at = word;
        out[k].source = unit_->source;
    }
    spend(word.size());
}

TracedText ShellTrace::text_of(Span word) {
    Fields out;
    FieldMaker maker(out, {}, false);
    text(word.begin, word.end, false, maker);
    maker.cut();
    spend(word.size());
    return out.empty() ? TracedText{} : std::move(out[0]);
}

TracedText ShellTrace::body_of(const ShellFeed& feed) {
    std::string_view body = all().substr(feed.body.begin, feed.body.size());
    if (feed.literal || body.find_first_of("$`\\") == std::string_view::npos) {
        TracedText piece = written(feed.body, true);
        if (feed.strip) {
            std::string stripped;
            for (std::size_t at = 0; at < body.size();) {
                const std::size_t to = std::min(body.find('\n', at), body.size() - 1) + 1;
                std::size_t from = at;
                while (from < to && body[from] == '\t') ++from;
                stripped += body.substr(from, to - from);
                at = to;
            }
            if (stripped.size() != body.size()) piece.at = {};
            piece.text = std::move(stripped);
        }
        return piece;
    }
    Fields out;
    FieldMaker maker(out, {}, false);
    for (std::uint32_t at = feed.body.begin; at < feed.body.end && flow_ == Flow::on;) {
        const auto to =
            static_cast<std::uint32_t>(std::min<std::size_t>(all().find_first_of("$\\", at), feed.body.end));
        if (to > at) maker.put(written({at, to}, true), true);
        at = to;
        if (at >= feed.body.end) break;
        if (all()[at] == '$') {
            at = dollar(at, feed.body.end, true, maker);
        } else {
            const bool escape =
                at + 1 < feed.body.end && std::string_view("$`\\").find(all()[at + 1]) != std::string_view::npos;
            maker.put(written({escape ? at + 1 : at, at + (escape ? 2 : 1)}, true), true);
            at += escape ? 2 : 1;
        }
    }
    maker.cut();
    return out.empty() ? TracedText{} : std::move(out[0]);
}

void ShellTrace::text(std::uint32_t begin, std::uint32_t end, bool quoted, FieldMaker& out, bool parts) {
    bool inside = quoted;
    for (std::uint32_t at = begin; at < end;) {
        std::uint32_t j = at;
        while (j < end && (kWordChars[static_cast<unsigned char>(all()[j])] != 2 || (all()[j] == '\'' && inside))) ++j;
        if (j > at) out.put(written({at, j}, true), inside || !parts);
        at = j;
        if (at >= end) break;
        const char c = all()[at];
        if (c == '"') {
            inside = !inside;
            if (at + 1 < end && all()[at + 1] == '"') out.quote();  // "": a word, though nothing is in it
            ++at;
        } else if (c == '\'') {
            const auto close = static_cast<std::uint32_t>(std::min<std::size_t>(all().find('\'', at + 1), end));
            out.put(written({at + 1, close}, true), true);
            at = close + 1;
        } else if (c == '\\') {
            const char next = at + 1 < end ? all()[at + 1] : '\0';
            if (next == '\n') {
                at += 2;
            } else if (inside && next != '$' && next != '`' && next != '"' && next != '\\') {
                out.put(written({at, std::min(at + 2, end)}, true), true);
                at += 2;
            } else {
                out.put(written({std::min(at + 1, end), std::min(at + 2, end)}, true), true);
                at += 2;
            }
        } else if (c == '`') {
            std::uint32_t close = at + 1;
            while (close < end && all()[close] != '`') close += all()[close] == '\\' ? 2 : 1;
            close = std::min(close, end);
            out.put(substituted({at + 1, close}), inside);
            at = close + 1;
        } else {
            at = dollar(at, end, inside, out);
        }
    }
}

std::uint32_t ShellTrace::dollar(std::uint32_t at, std::uint32_t end, bool quoted, FieldMaker& out) {
    const std::string_view rest = all().substr(at, end - at);
    const char next = rest.size() > 1 ? rest[1] : '\0';
    const auto unknown = [&](std::uint32_t to) {
        out.put(written({at, to}, false), quoted);
        return to;
    };
    if (depth_ > 60 || flow_ == Flow::leave_script) return unknown(end);
    if (rest.starts_with("${{")) {
        const std::size_t close = rest.find("}}");
        if (close == std::string_view::npos) return unknown(end);
        std::string_view name = trim(rest.substr(3, close - 3));
        const auto to = at + static_cast<std::uint32_t>(close) + 2;
        if (name.starts_with("env.")) name.remove_prefix(4);
        const Variable* const variable = find(name);
        if (variable == nullptr || variable->items.empty()) return unknown(to);
        out.put(variable->items[0], true);
        return to;
    }
    if (next == '(' || next == '{') {
        const std::uint32_t to = shell_word_end(all(), at, end);
        std::uint32_t stop = to;
        // The word may go on behind the bracket.
        int level = 0;
        char mark = 0;
        for (std::uint32_t j = at + 1; j < to; ++j) {
            const char c = all()[j];
            if (c == '\\') {
                ++j;
            } else if (mark == '\'') {
                if (c == '\'') mark = 0;
            } else if (c == '\'' && mark == 0) {
                mark = '\'';
            } else if (c == '"') {
                mark = mark ? '\0' : '"';
            } else if (c == '(' || c == '{') {
                ++level;
            } else if ((c == ')' || c == '}') && --level == 0) {
                stop = j + 1;
                break;
            }
        }
        if (stop <= at + 2) return unknown(to);
        ++depth_;
        if (next == '{') {
            parameter({at + 2, stop - 1}, {at, stop}, quoted, out);
        } else if (rest.starts_with("$((") && all()[stop - 2] == ')') {
            const auto value = number(all().substr(at + 3, stop - at - 5));
            TracedText piece;
            piece.known = value.has_value();
            piece.text = value ? std::to_string(*value) : std::string(all().substr(at, stop - at));
            out.put(piece, true);
        } else {
            TracedText said = substituted({at + 2, stop - 1});
            if (!said.known) said = written({at, stop}, false);
            out.put(said, quoted);
        }
        --depth_;
        return stop;
    }
    if (next == '\'' && !quoted) {
        TracedText piece;
        std::size_t j = 2;
        for (; j < rest.size() && rest[j] != '\''; ++j) {
            char c = rest[j];
            if (c == '\\' && j + 1 < rest.size()) {
                c = rest[++j];
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
            }
            piece.text += c;
        }
        out.put(piece, true);
        return at + static_cast<std::uint32_t>(std::min(j + 1, rest.size()));
    }
    std::uint32_t j = at + 1;
    while (j < end && shell_name_char(all()[j])) ++j;
    if (j > at + 1 && !(next >= '0' && next <= '9')) {
        parameter({at + 1, j}, {at, j}, quoted, out);
        return j;
    }
    if (next != '\0' && std::string_view("0123456789@*#?$!-").find(next) != std::string_view::npos) {
        parameter({at + 1, at + 2}, {at, at + 2}, quoted, out);
        return at + 2;
    }
    if (next == '"' && !quoted) return at + 1;
    out.put(written({at, at + 1}, true), true);
    return at + 1;
}

// $( ... ): what its commands write.
TracedText ShellTrace::substituted(Span inside) {
    if (depth_ > 30 || inside.size() == 0) return written(inside, false);
    const std::string_view raw = trim(all().substr(inside.begin, inside.size()));
    if (raw.starts_with('<') && !raw.starts_with("<(") && !raw.starts_with("<<")) {  // $(<file)
        const auto text = file_text(trim(raw.substr(1)));
        TracedText piece;
        piece.known = text.has_value();
        if (text) piece.text = *text;
        while (piece.text.ends_with('\n')) piece.text.pop_back();
        return piece;
    }
    // $(SIZE) of Azure Pipelines is one of its variables.
    if (file_.host && file_.host->kinds.has(Kind::workflow) && file_.host_container && file_.host_container->env(raw))
        if (const Variable* variable = find(raw); variable != nullptr && !variable->items.empty())
            return variable->items[0];
    std::unique_ptr<Unit>& unit = substitutions_[{unit_->source, inside.begin}];
    if (!unit) {
        unit = std::make_unique<Unit>();
        unit->source = unit_->source;
        unit->tree = shell_tree(all(), inside);
        spend(inside.size());
    }
    if (unit->tree.root < 0) return written(inside, false);
    const Unit* const outer_unit = unit_;
    TracedText* const outer_output = output_;
    TracedText said;
    const Variables before = variables_;
    const auto arguments = arguments_;
    const std::size_t assigned = frames_.size();
    if (!spend(64 * before.size())) return written(inside, false);
    unit_ = unit.get();
    output_ = &said;
    ++depth_;
    run(unit_->tree.root);
    --depth_;
    unit_ = outer_unit;
    output_ = outer_output;
    frames_.resize(std::min(assigned, frames_.size()));
    variables_ = before;
    arguments_ = arguments;
    if (!spent() && flow_ != Flow::on) flow_ = Flow::on;
    const bool exact = said.source != nullptr && said.at.size() == said.text.size();
    while (said.text.ends_with('\n')) said.text.pop_back();
    if (exact) said.at.end = said.at.begin + static_cast<std::uint32_t>(said.text.size());
    return said;
}

}  // namespace stoker::lint
