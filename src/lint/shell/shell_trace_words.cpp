// What words come to in a script that is followed: quotes, parameters, substitutions, and the fields that they part into.
#include <algorithm>

#include "base/text.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"
#include "lint/shell/shell_values.h"

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

// Puts pieces together to fields.
class ShellTrace::FieldMaker {
public:
    FieldMaker(Fields& out, std::string_view separators, bool splits)
        : out_(out), separators_(separators), splits_(splits) {}

    void put(const TracedText& piece, bool quoted) {
        if (quoted || !splits_ || !piece.known || piece.text.find_first_of(separators_) == std::string::npos) {
            add(piece);
            any_ |= quoted || !piece.text.empty();
            return;
        }
        const bool whole = piece.source != nullptr && piece.at.size() == piece.text.size();
        std::size_t at = 0;
        while (at < piece.text.size()) {
            const std::size_t to = std::min(piece.text.find_first_of(separators_, at), piece.text.size());
            if (to > at) {
                TracedText part;
                part.text = piece.text.substr(at, to - at);
                part.assumed = piece.assumed;
                part.source = piece.source;
                part.at = piece.at;
                if (whole)
                    part.at = {piece.at.begin + static_cast<std::uint32_t>(at),
                               piece.at.begin + static_cast<std::uint32_t>(to)};
                add(part);
                any_ = true;
            }
            if (to < piece.text.size()) cut();
            at = to + 1;
        }
    }
    void quote() { any_ = true; }
    void cut() {
        if (any_ || !now_.text.empty() || !now_.known) out_.push_back(std::move(now_));
        now_ = {};
        any_ = begun_ = false;
    }

private:
    void add(const TracedText& piece) {
        if (!begun_) {
            now_ = piece;
            begun_ = true;
            return;
        }
        if (piece.text.empty() && piece.known) return;
        if (now_.text.empty() && now_.known) {
            const bool assumed = now_.assumed;
            now_ = piece;
            now_.assumed |= assumed;
            return;
        }
        const auto exact = [](const TracedText& t) { return t.source != nullptr && t.at.size() == t.text.size(); };
        if (exact(now_) && exact(piece) && now_.source == piece.source && now_.at.end == piece.at.begin)
            now_.at.end = piece.at.end;
        else
            now_.at = {};
        now_.text += piece.text;
        now_.known &= piece.known;
        now_.assumed |= piece.assumed;
    }

    Fields& out_;
    std::string_view separators_;
    TracedText now_;
    bool splits_, any_ = false, begun_ = false;
};

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
        const auto to = static_cast<std::uint32_t>(
            std::min<std::size_t>(all().find_first_of("$\\", at), feed.body.end));
        if (to > at) maker.put(written({at, to}, true), true);
        at = to;
        if (at >= feed.body.end) break;
        if (all()[at] == '$') {
            at = dollar(at, feed.body.end, true, maker);
        } else {
            const bool escape = at + 1 < feed.body.end && std::string_view("$`\\").find(all()[at + 1]) != std::string_view::npos;
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

namespace {

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ${x#p}, ${x##p}, ${x%p}, ${x%%p}
std::string without(std::string_view value, std::string_view pattern, bool head, bool longest) {
    const std::size_t n = value.size();
    for (std::size_t k = 0; k <= n; ++k) {
        const std::size_t length = longest ? n - k : k;
        const std::string_view part = head ? value.substr(0, length) : value.substr(n - length);
        if (shell_pattern_matches(part, pattern)) return std::string(head ? value.substr(length) : value.substr(0, n - length));
    }
    return std::string(value);
}

}  // namespace

// The value behind an operator such as '##', '/' or ':'.
TracedText ShellTrace::changed(const TracedText& value, std::string_view op, Span word, Span whole) {
    TracedText result;
    result.assumed = value.assumed;
    if (!value.known || value.text.size() > 4096 || !spend(value.text.size())) return written(whole, false);
    if (op == "^^") result.text = upper(value.text);
    else if (op == ",,") result.text = lower(value.text);
    else if (op == "^" || op == ",") {
        result.text = value.text;
        if (!result.text.empty())
            result.text.replace(0, 1, op == "^" ? upper(result.text.substr(0, 1)) : lower(result.text.substr(0, 1)));
    } else if (op == "#" || op == "##" || op == "%" || op == "%%") {
        const TracedText pattern = text_of(word);
        if (!pattern.known || !spend(value.text.size() * value.text.size())) return written(whole, false);
        result.text = without(value.text, pattern.text, op[0] == '#', op.size() == 2);
    } else if (op == "/" || op == "//") {
        const std::string_view raw = all().substr(word.begin, word.size());
        std::size_t slash = 0;
        for (; slash < raw.size() && raw[slash] != '/'; ++slash)
            if (raw[slash] == '\\') ++slash;
        slash = std::min(slash, raw.size());
        const auto middle = word.begin + static_cast<std::uint32_t>(slash);
        TracedText pattern = text_of({word.begin, middle});
        const TracedText with = middle < word.end ? text_of({middle + 1, word.end}) : TracedText{};
        if (!pattern.known || !with.known || pattern.text.empty() || !spend(value.text.size() * value.text.size()))
            return written(whole, false);
        const bool head = pattern.text[0] == '#' && op == "/", tail = pattern.text[0] == '%' && op == "/";
        if (head || tail) pattern.text.erase(0, 1);
        const std::string& s = value.text;
        for (std::size_t at = 0; at < s.size();) {
            std::size_t found = 0;
            if ((!head || at == 0))
                for (std::size_t length = s.size() - at; length > 0; --length) {
                    if (tail && at + length != s.size()) break;
                    if (!shell_pattern_matches(std::string_view(s).substr(at, length), pattern.text)) continue;
                    found = length;
                    break;
                }
            if (found == 0) {
                result.text += s[at++];
                continue;
            }
            result.text += with.text;
            at += found;
            if (op == "/") {
                result.text += s.substr(at);
                break;
            }
        }
    } else {  // ${x:from:length}
        const std::string_view raw = all().substr(word.begin, word.size());
        const std::size_t colon = raw.find(':');
        const auto from = number(raw.substr(0, colon));
        auto length = colon == std::string_view::npos ? std::optional<std::int64_t>(1 << 20) : number(raw.substr(colon + 1));
        if (!from || !length) return written(whole, false);
        const auto size = static_cast<std::int64_t>(value.text.size());
        std::int64_t begin = *from < 0 ? size + *from : *from;
        begin = std::clamp<std::int64_t>(begin, 0, size);
        const std::int64_t end = *length < 0 ? size + *length : std::min(size, begin + *length);
        if (end > begin) result.text = value.text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    }
    return result;
}

void ShellTrace::parameter(Span inside, Span whole, bool quoted, FieldMaker& out) {
    const auto unknown = [&] { out.put(written(whole, false), true); };
    std::uint32_t at = inside.begin;
    const auto peek = [&] { return at < inside.end ? all()[at] : '\0'; };
    const bool counts = peek() == '#' && inside.size() > 1, points = peek() == '!' && inside.size() > 1;
    if (counts || points) ++at;
    const std::uint32_t from = at;
    if (at < inside.end && std::string_view("@*#?$!-").find(all()[at]) != std::string_view::npos) {
        ++at;
    } else {
        while (at < inside.end && shell_name_char(all()[at])) ++at;
    }
    std::string_view name = all().substr(from, at - from);
    if (name.empty()) return unknown();
    std::string_view index;
    Span index_at;
    bool indexed = false;
    if (peek() == '[') {
        int level = 0;
        std::uint32_t close = at;
        for (; close < inside.end; ++close) {
            if (all()[close] == '[') ++level;
            if (all()[close] == ']' && --level == 0) break;
        }
        if (close >= inside.end) return unknown();
        index_at = {at + 1, close};
        index = all().substr(at + 1, close - at - 1);
        at = close + 1;
        indexed = true;
    }
    std::string_view op = all().substr(at, inside.end - at);
    // What there is: nothing, one text, or several.
    Fields found;
    bool is_set = true, open = false;
    const bool several = name == "@" || name == "*" || index == "@" || index == "*";
    const bool positional = is_number(name) || name == "@" || name == "*" || name == "#";
    std::string pointed;
    if (positional) {
        if (name == "#") {
            if (!arguments_) return unknown();
            found.push_back({});
            found[0].text = std::to_string(arguments_->size());
        } else if (!arguments_) {
            // Of the script itself: a default counts, as what is done without arguments.
            if (several || op.empty() || name == "0") return unknown();
            is_set = false;
        } else if (several) {
            found = *arguments_;
        } else if (name.size() < 3 && name != "0") {
            const auto k = static_cast<std::size_t>(std::stoul(std::string(name)));
            is_set = k <= arguments_->size();
            if (is_set) found.push_back((*arguments_)[k - 1]);
        } else {
            return unknown();
        }
    } else if (!shell_name_start(name[0])) {
        return unknown();
    } else {
        const Variable* variable = find(name);
        if (points && !indexed && variable != nullptr && op.empty()) {  // ${!name}
            if (variable->open || variable->items.empty() || !variable->items[0].known) return unknown();
            pointed = variable->items[0].text;
            if (const std::size_t bracket = pointed.find("[@]"); bracket != std::string::npos) {
                const Variable* const meant = find(std::string_view(pointed).substr(0, bracket));
                if (meant == nullptr || meant->open) return unknown();
                found = meant->items;
                for (std::size_t k = 0; k < found.size(); ++k) {
                    if (k > 0) out.cut();
                    out.put(found[k], quoted);
                }
                return;
            }
            variable = find(pointed);
        }
        if (variable == nullptr) {
            is_set = false;
            if (set_by_scheduler(name) || op.empty()) return unknown();
        } else if (several) {
            open = variable->open;
            if (points) {
                for (std::size_t k = 0; k < variable->items.size(); ++k) {
                    TracedText key;
                    key.text = variable->keyed && k < variable->keys.size() ? variable->keys[k] : std::to_string(k);
                    found.push_back(std::move(key));
                }
            } else {
                found = variable->items;
            }
        } else if (indexed) {
            std::optional<std::size_t> which;
            if (variable->keyed) {
                const TracedText key = text_of(index_at);
                if (!key.known) return unknown();
                for (std::size_t k = 0; k < variable->keys.size(); ++k)
                    if (variable->keys[k] == key.text) which = k;
                if (!which && variable->open) return unknown();
            } else {
                auto value = number(index);
                if (value && *value < 0 && !variable->open) *value += static_cast<std::int64_t>(variable->items.size());
                if (!value || *value < 0) return unknown();
                which = static_cast<std::size_t>(*value);
                if (*which >= variable->items.size() && variable->open) return unknown();
            }
            is_set = which && *which < variable->items.size();
            if (is_set) found.push_back(variable->items[*which]);
        } else {
            if (variable->items.empty()) {
                if (variable->open) return unknown();
                is_set = variable->set && !variable->list;
                if (is_set) found.push_back({});
            } else {
                if (variable->open && !variable->list) return unknown();
                found.push_back(variable->items[0]);
            }
        }
    }
    if (counts) {
        TracedText piece;
        if (open) return unknown();
        if (several) {
            piece.text = std::to_string(found.size());
        } else {
            if (found.empty() || !found[0].known) return unknown();
            piece.text = std::to_string(found[0].text.size());
        }
        return out.put(piece, true);
    }
    const auto put_all = [&] {
        for (std::size_t k = 0; k < found.size(); ++k) {
            if (k > 0) {
                if (quoted && (name == "*" || index == "*")) {
                    TracedText blank;
                    blank.text = separators_.substr(0, 1);
                    out.put(blank, true);
                } else {
                    out.cut();
                }
            }
            TracedText item = found[k];
            if (!item.known) item.text = all().substr(whole.begin, whole.size());
            out.put(item, quoted);
        }
        if (open) {
            if (!found.empty()) out.cut();
            out.put(written(whole, false), quoted);
        }
    };
    if (op.empty()) return put_all();
    const bool colon = op[0] == ':' && op.size() > 1 && std::string_view("-=+?").find(op[1]) != std::string_view::npos;
    const char what = colon ? op[1] : op[0];
    if (colon || what == '-' || what == '=' || what == '+' || what == '?') {
        const Span word{at + (colon ? 2 : 1), inside.end};
        const bool sure = found.empty() || found[0].known || !colon;
        const bool there = is_set && (!colon || (several ? !found.empty() : !found.empty() && !found[0].text.empty()));
        if (!sure) return unknown();
        if (what == '+') {
            if (there) text(word.begin, word.end, quoted, out, true);
            return;
        }
        if (there || what == '?') return there ? put_all() : unknown();
        TracedText value = text_of(word);
        value.assumed = true;
        if (what == '=' && !positional && !indexed) set(name, value);
        // Nothing but what the script says decides: a variable that it left empty.
        if (!positional && find(name) != nullptr && what == '-') value.assumed = false;
        return out.put(value, quoted);
    }
    if (!is_set) return unknown();
    if (several && op[0] == ':') {  // ${list[@]:1:2}
        const std::string_view raw = op.substr(1);
        const std::size_t second = raw.find(':');
        const auto first = number(raw.substr(0, second));
        const auto length = second == std::string_view::npos ? std::optional<std::int64_t>(1 << 20) : number(raw.substr(second + 1));
        if (!first || !length || *first < 0 || *length < 0 || open) return unknown();
        auto skip = static_cast<std::size_t>(*first);
        if (positional && skip > 0) --skip;
        found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(skip, found.size())));
        if (found.size() > static_cast<std::size_t>(*length)) found.resize(static_cast<std::size_t>(*length));
        return put_all();
    }
    std::size_t size = 1;
    if (op.size() > 1 && op[1] == op[0] && std::string_view("#%/^,").find(op[0]) != std::string_view::npos) size = 2;
    if (std::string_view("#%/^,:").find(op[0]) == std::string_view::npos) return unknown();
    for (TracedText& item : found)
        item = changed(item, op.substr(0, size), {at + static_cast<std::uint32_t>(size), inside.end}, whole);
    put_all();
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
        if (const Variable* variable = find(raw); variable != nullptr && !variable->items.empty()) return variable->items[0];
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
    if (steps_ <= 20'000 && bytes_ <= (4u << 20) && flow_ != Flow::on) flow_ = Flow::on;
    const bool exact = said.source != nullptr && said.at.size() == said.text.size();
    while (said.text.ends_with('\n')) said.text.pop_back();
    if (exact) said.at.end = said.at.begin + static_cast<std::uint32_t>(said.text.size());
    return said;
}

}  // namespace stoker::lint
