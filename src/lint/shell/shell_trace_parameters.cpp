// ${x}, ${x:-d}, ${list[@]} and their kin in a script that is followed.
#include <algorithm>

#include "base/text.h"
#include "lint/shell/shell_fields.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

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
        if (shell_pattern_matches(part, pattern))
            return std::string(head ? value.substr(length) : value.substr(0, n - length));
    }
    return std::string(value);
}

}  // namespace

// The value behind an operator such as '##', '/' or ':'.
TracedText ShellTrace::changed(const TracedText& value, std::string_view op, Span word, Span whole) {
    TracedText result;
    result.assumed = value.assumed;
    if (!value.known || value.text.size() > 4096 || !spend(value.text.size())) return written(whole, false);
    if (op == "^^")
        result.text = upper(value.text);
    else if (op == ",,")
        result.text = lower(value.text);
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
        auto length =
            colon == std::string_view::npos ? std::optional<std::int64_t>(1 << 20) : number(raw.substr(colon + 1));
        if (!from || !length) return written(whole, false);
        const auto size = static_cast<std::int64_t>(value.text.size());
        std::int64_t begin = *from < 0 ? size + *from : *from;
        begin = std::clamp<std::int64_t>(begin, 0, size);
        const std::int64_t end = *length < 0 ? size + *length : std::min(size, begin + *length);
        if (end > begin)
            result.text = value.text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
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
        const auto length =
            second == std::string_view::npos ? std::optional<std::int64_t>(1 << 20) : number(raw.substr(second + 1));
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

}  // namespace stoker::lint
