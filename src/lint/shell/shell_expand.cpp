// What a word expands to: its quotes, variables and substitutions, byte by byte with where each was written.
#include <algorithm>

#include "base/text.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr int kExpansionDepth = 60;

// A pattern of ${x%pattern} that can be followed: literal text with at most one '*'; -1 when it does not match.
bool matches_glob(std::string_view text, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return text == pattern;
    const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
    return text.size() >= head.size() + tail.size() && text.starts_with(head) && text.ends_with(tail);
}

}  // namespace

Span Expanded::host_of(std::uint32_t begin, std::uint32_t end, const Source** source) const {
    const ShellRun* run = nullptr;
    for (const ShellRun& each : runs) {
        if (each.at > begin) break;
        run = &each;
    }
    if (!run) return {};
    *source = run->source;
    if (!run->verbatim) return run->host;
    const std::uint32_t from = std::min(run->host.begin + (begin - run->at), run->host.end);
    return {from, std::min(from + (end - begin), run->host.end)};
}

void ShellValues::put(std::string_view bytes, Span host, bool verbatim, bool splits, bool known, Expanded& out) {
    if (out.text.size() + bytes.size() > kMostValue || !spend(bytes.size() + sizeof(ShellRun))) {
        out.known = false;
        return;
    }
    out.runs.push_back({static_cast<std::uint32_t>(out.text.size()), host, &source_, verbatim, splits, known});
    out.text += bytes;
    if (!known) out.known = false;
}

void ShellValues::put_unknown(Span span, Expanded& out) {
    const std::string_view raw = all_.substr(span.begin, span.size());
    // The lines of a substitution would be lines of the manifest that its value stands in.
    if (raw.find('\n') != std::string_view::npos) return put("$(...)", span, false, false, false, out);
    put(raw, span, true, false, false, out);
}

void ShellValues::join(const Expanded& value, bool quoted, Expanded& out) {
    const auto shift = static_cast<std::uint32_t>(out.text.size());
    for (ShellRun run : value.runs) {
        run.at += shift;
        run.splits = !quoted;
        out.runs.push_back(run);
    }
    out.text += value.text;
}

bool ShellValues::append(const Expanded& value, bool quoted, Expanded& out) {
    if (out.text.size() + value.text.size() > kMostValue ||
        !spend(value.text.size() + sizeof(ShellRun) * value.runs.size())) {
        out.known = false;
        return false;
    }
    join(value, quoted, out);
    out.known &= value.known;
    out.assumed |= value.assumed;
    return true;
}

void ShellValues::put_variable(Variable& variable, Span use, bool quoted, Expanded& out) {
    if (put_local(variable, use, quoted, out)) return;
    settle(variable);
    if (variable.array && variable.one == false && !variable.open && !variable.items.empty() &&
        variable.items.front().known() && variable.state == Variable::State::settled) {  // $array is its first element
        put(variable.items.front().text, use, false, !quoted, true, out);
        return;
    }
    if (variable.state == Variable::State::settling || !variable.one) {
        if (variable.state == Variable::State::settled && put_last(variable, use, quoted, out)) return;
        put_unknown(use, out);
        return;
    }
    if (!append(variable.value, quoted, out)) {
        put_unknown(use, out);
        return;
    }
    out.origin = variable.origin;
    out.origin_source = variable.source;
}

// Straight-line code: the last of several assignments counts where all of them stand before the use.
bool ShellValues::put_last(const Variable& variable, Span use, bool quoted, Expanded& out) {
    const std::vector<Assignment>& all = file_.script.assignments;
    if (!assigned_here(variable)) return false;
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k])
        if (k >= all.size() || all[k].in_condition || all[k].appends || all[k].array || all[k].span.end > use.begin ||
            all[k].value.span.empty() || function_at(all[k].span.begin))
            return false;
    const Assignment& last = all[variable.last];
    if (function_at(use.begin)) return false;
    const auto name = static_cast<std::uint32_t>(last.name.size()) + 1;
    Expanded value;
    text(std::min(last.span.begin + name, last.span.end), last.span.end, false, value, 10);
    if (!value.known || out.text.size() + value.text.size() > kMostValue) return false;
    join(value, quoted, out);
    return true;
}

// ${...}: `inside` is what the braces hold.
void ShellValues::parameter(Span inside, Span whole, bool quoted, Expanded& out, int depth) {
    std::uint32_t at = inside.begin;
    // ${!name}: what the variable is worth that `name` names.
    if (at + 1 < inside.end && all_[at] == '!') {
        const std::string_view names = all_.substr(at + 1, inside.end - at - 1);
        Variable* const pointer = std::all_of(names.begin(), names.end(), shell_name_char) ? find(names) : nullptr;
        if (pointer == nullptr || (settle(*pointer), pointer->state != Variable::State::settled) || !pointer->one ||
            !pointer->value.known)
            return put_unknown(whole, out);
        Variable* const meant = find(pointer->value.text);
        return meant == nullptr || meant == pointer ? put_unknown(whole, out)
                                                    : put_variable(*meant, whole, quoted, out);
    }
    while (at < inside.end && shell_name_char(all_[at])) ++at;
    const std::string_view name = all_.substr(inside.begin, at - inside.begin);
    if (name.empty()) return put_unknown(whole, out);
    std::string_view rest = all_.substr(at, inside.end - at);
    const bool positional = name[0] >= '0' && name[0] <= '9';
    Variable* variable = positional ? nullptr : find(name);
    if (positional && name.size() == 1) {
        const auto number = static_cast<std::size_t>(name[0] - '0');
        const bool or_else = rest.starts_with(":-") || rest.starts_with('-');
        if (rest.empty() || or_else || rest.starts_with(":?") || rest.starts_with('?')) {
            const Given given = put_given(whole, number, quoted, out, depth);
            if (given == Given::yes) return;
            if (given == Given::no && or_else)
                return text(inside.end - static_cast<std::uint32_t>(rest.size()) + (rest[0] == ':' ? 2 : 1), inside.end,
                            quoted, out, depth + 1);
            if (put_argument(inside.begin, number, quoted, out, depth)) return;
            const Function* function = or_else ? function_at(inside.begin) : nullptr;
            if (function && !arguments_of(*function, number, false).empty()) return put_unknown(whole, out);
        }
    }
    if (rest.empty()) {
        if (!variable) return put_unknown(whole, out);
        return put_variable(*variable, whole, quoted, out);
    }
    if (rest[0] == '[') {
        const std::size_t close = rest.find(']');
        if (!variable || close == std::string_view::npos || close + 1 != rest.size()) return put_unknown(whole, out);
        settle(*variable);
        const std::string_view index = rest.substr(1, close - 1);
        std::size_t number = 0;
        if (!index.empty() && shell_name_start(index[0]) && put_keyed(*variable, index, whole, quoted, out, depth))
            return;
        if (index.empty() || index.size() > 3) return put_unknown(whole, out);
        if (index == "@" || index == "*") {
            if (variable->open || variable->state != Variable::State::settled || !variable->array)
                return put_unknown(whole, out);
            bool first = true;
            for (const Value& item : variable->items) {
                if (!first) put(" ", whole, false, !quoted, true, out);
                put(item.text, item.source == &source_ && item.span.size() == item.text.size() ? item.span : whole,
                    item.source == &source_ && item.span.size() == item.text.size(), !quoted, item.known(), out);
                first = false;
            }
            return;
        }
        for (const char c : index) {
            if (c < '0' || c > '9') return put_unknown(whole, out);
            number = number * 10 + static_cast<std::size_t>(c - '0');
        }
        if (variable->open || number >= variable->items.size() || !variable->items[number].known())
            return put_unknown(whole, out);
        return put(variable->items[number].text, whole, false, !quoted, true, out);
    }
    const bool colon = rest[0] == ':';
    const char op = colon ? (rest.size() > 1 ? rest[1] : '\0') : rest[0];
    const std::uint32_t word = at + (colon ? 2 : 1);
    if (op == '-' || op == '=') {
        if (variable && (settle(*variable), variable->state == Variable::State::settled)) {
            if (variable->is_default && variable->one) {
                put_variable(*variable, whole, quoted, out);
                out.assumed = true;
                return;
            }
            if (variable->one && variable->value.known && (!colon || !variable->value.text.empty()))
                return put_variable(*variable, whole, quoted, out);
            if (!(variable->one && variable->value.known)) return put_unknown(whole, out);
        } else if (variable == nullptr && set_by_scheduler(name)) {
            return put_unknown(whole, out);
        }
        const auto before = static_cast<std::uint32_t>(out.runs.size());
        const std::size_t size = out.text.size();
        text(word, inside.end, quoted, out, depth + 1);
        for (std::size_t k = before; k < out.runs.size(); ++k) out.runs[k].splits = !quoted;
        out.assumed = true;
        if (size == 0 && out.runs.size() == 1 && before == 0) {
            out.origin = out.runs[0].host;
            out.origin_source = out.runs[0].source;
        }
        return;
    }
    if (!variable) return put_unknown(whole, out);
    if (op == '?') return put_variable(*variable, whole, quoted, out);
    if (!colon && (op == '/' || op == '^' || op == ',')) {
        settle(*variable);
        if (variable->one && variable->value.known && variable->state == Variable::State::settled)
            if (const auto changed = edited(variable->value.text, rest)) {
                out.assumed |= variable->value.assumed;
                return put(*changed, whole, false, !quoted, true, out);
            }
        return put_unknown(whole, out);
    }
    if ((op == '%' || op == '#') && !colon) {
        settle(*variable);
        const bool longest = rest.size() > 1 && rest[1] == op;
        const std::string_view pattern = rest.substr(longest ? 2 : 1);
        const std::string& value = variable->value.text;
        if (!variable->one || !variable->value.known || variable->state != Variable::State::settled ||
            pattern.find_first_of("$`\\'\"[?@!+") != std::string_view::npos ||
            std::count(pattern.begin(), pattern.end(), '*') > 1 || value.size() > 1024)
            return put_unknown(whole, out);
        std::string_view left = value;
        const std::size_t n = value.size();
        for (std::size_t k = 0; k <= n; ++k) {
            const std::size_t length = longest ? n - k : k;  // of what is taken away
            const std::string_view part =
                op == '%' ? std::string_view(value).substr(n - length) : std::string_view(value).substr(0, length);
            if (!matches_glob(part, pattern)) continue;
            left = op == '%' ? std::string_view(value).substr(0, n - length) : std::string_view(value).substr(length);
            break;
        }
        const std::string kept(left);
        out.assumed |= variable->value.assumed;
        return put(kept, whole, false, !quoted, true, out);
    }
    put_unknown(whole, out);
}

// At '$'; returns what is behind it.
std::uint32_t ShellValues::dollar(std::uint32_t at, std::uint32_t end, bool quoted, Expanded& out, int depth) {
    const char next = at + 1 < end ? all_[at + 1] : '\0';
    if (next == '{' && all_.substr(at, 3) == "${{") {  // ${{ env.SIZE }} of a workflow
        const std::size_t close = all_.find("}}", at);
        if (close != std::string_view::npos && close + 2 <= end) {
            const std::string_view inside = trim(all_.substr(at + 3, close - at - 3));
            const auto behind = static_cast<std::uint32_t>(close) + 2;
            Variable* variable =
                depth <= kExpansionDepth ? find(inside.starts_with("env.") ? inside.substr(4) : inside) : nullptr;
            if (variable)
                put_variable(*variable, {at, behind}, true, out);
            else
                put_unknown({at, behind}, out);
            return behind;
        }
    }
    if (next == '{') {
        int level = 0;
        std::uint32_t j = at + 1;
        for (; j < end; ++j) {
            if (all_[j] == '\\') {
                ++j;
            } else if (all_[j] == '{') {
                ++level;
            } else if (all_[j] == '}' && --level == 0) {
                break;
            }
        }
        if (j >= end) {
            put_unknown({at, end}, out);
            return end;
        }
        if (depth > kExpansionDepth)
            put_unknown({at, j + 1}, out);
        else
            parameter({at + 2, j}, {at, j + 1}, quoted, out, depth);
        return j + 1;
    }
    if (next == '(') {
        int level = 0;
        std::uint32_t j = at + 1;
        for (; j < end; ++j) {
            if (all_[j] == '\\')
                ++j;
            else if (all_[j] == '\'') {
                const std::size_t close = all_.find('\'', j + 1);
                if (close < end) j = static_cast<std::uint32_t>(close);
            } else if (all_[j] == '(') {
                ++level;
            } else if (all_[j] == ')' && --level == 0) {
                break;
            }
        }
        j = std::min(j + 1, end);
        if (at + 4 < j && all_[at + 2] == '(' && all_[j - 2] == ')')
            if (const auto number = calculated({at + 3, j - 2}, depth + 1)) {
                put(std::to_string(*number), {at, j}, false, false, true, out);
                return j;
            }
        const std::string_view inside = j > at + 3 ? all_.substr(at + 2, j - at - 3) : std::string_view();
        if (!inside.empty() && std::all_of(inside.begin(), inside.end(), shell_name_char) &&
            put_echo(inside, quoted, out, depth + 1))
            return j;
        // $(SIZE) of Azure Pipelines is one of its variables.
        if (file_.host && file_.host->kinds.has(Kind::workflow) && file_.host_container && depth <= kExpansionDepth &&
            file_.host_container->env(inside))
            if (Variable* variable = find(inside)) {
                put_variable(*variable, {at, j}, quoted, out);
                return j;
            }
        if (inside.starts_with("printf ") && put_printf({at + 2 + 7, j - 1}, quoted, out, depth + 1)) return j;
        put_unknown({at, j}, out);
        return j;
    }
    if (next == '\'' && !quoted) {
        std::uint32_t j = at + 2;
        std::string decoded;
        bool simple = true;
        for (; j < end && all_[j] != '\''; ++j) {
            char c = all_[j];
            if (c == '\\' && j + 1 < end) {
                c = all_[++j];
                if (c == 'n')
                    c = '\n';
                else if (c == 't')
                    c = '\t';
                else if (c != '\'' && c != '\\' && c != '"')
                    simple = false;
            }
            decoded += c;
        }
        put(decoded, {at, std::min(j + 1, end)}, false, false, simple, out);
        return std::min(j + 1, end);
    }
    std::uint32_t j = at + 1;
    if (j < end && shell_name_char(all_[j]) && !(all_[j] >= '0' && all_[j] <= '9')) {
        while (j < end && shell_name_char(all_[j])) ++j;
        Variable* variable = depth > kExpansionDepth ? nullptr : find(all_.substr(at + 1, j - at - 1));
        if (variable)
            put_variable(*variable, {at, j}, quoted, out);
        else
            put_unknown({at, j}, out);
        return j;
    }
    if (j < end && std::string_view("0123456789@*#?$!-").find(all_[j]) != std::string_view::npos) {
        if (all_[j] >= '1' && all_[j] <= '9' &&
            put_given({at, j + 1}, static_cast<std::size_t>(all_[j] - '0'), quoted, out, depth) == Given::yes)
            return j + 1;
        if (all_[j] >= '1' && all_[j] <= '9' &&
            put_argument(at, static_cast<std::size_t>(all_[j] - '0'), quoted, out, depth))
            return j + 1;
        put_unknown({at, j + 1}, out);
        return j + 1;
    }
    if (j < end && all_[j] == '"' && !quoted) return j;  // $"..." is a string
    put("$", {at, at + 1}, true, false, true, out);
    return at + 1;
}

void ShellValues::text(std::uint32_t begin, std::uint32_t end, bool quoted, Expanded& out, int depth) {
    std::uint32_t at = begin;
    bool inside = quoted;
    while (at < end) {
        std::uint32_t j = at;
        while (j < end && (kWordChars[static_cast<unsigned char>(all_[j])] != 2 || (all_[j] == '\'' && inside))) ++j;
        if (j > at) put(all_.substr(at, j - at), {at, j}, true, false, true, out);
        at = j;
        if (at >= end) break;
        const char c = all_[at];
        if (c == '"') {
            inside = !inside;
            ++at;
        } else if (c == '\'') {
            std::size_t close = all_.find('\'', at + 1);
            if (close >= end) close = end;
            const auto stop = static_cast<std::uint32_t>(close);
            put(all_.substr(at + 1, stop - at - 1), {at + 1, stop}, true, false, true, out);
            at = std::min(stop + 1, end);
        } else if (c == '\\') {
            if (at + 1 >= end) {
                put("\\", {at, at + 1}, true, false, true, out);
                break;
            }
            const char next = all_[at + 1];
            if (next == '\n') {
                at += 2;
            } else if (next == '\r' && at + 2 < end && all_[at + 2] == '\n') {
                at += 3;
            } else if (inside && next != '$' && next != '`' && next != '"' && next != '\\') {
                put(all_.substr(at, 2), {at, at + 2}, true, false, true, out);
                at += 2;
            } else {
                put(all_.substr(at + 1, 1), {at, at + 2}, false, false, true, out);
                at += 2;
            }
        } else if (c == '`') {
            std::uint32_t close = at + 1;
            while (close < end && all_[close] != '`') close += all_[close] == '\\' ? 2 : 1;
            close = std::min(close + 1, end);
            put_unknown({at, close}, out);
            at = close;
        } else {
            at = dollar(at, end, inside, out, depth);
        }
    }
}

Expanded ShellValues::expand(Span word) {
    Expanded out;
    expand_into(word, out);
    return out;
}

void ShellValues::expand_into(Span word, Expanded& out) {
    out.clear();
    if (word.end > all_.size() || word.begin > word.end) return;
    text(word.begin, word.end, false, out, 0);
    // Only a word that is one variable and nothing else has its origin elsewhere.
    std::uint32_t begin = word.begin, end = word.end;
    if (end - begin >= 2 && all_[begin] == '"' && all_[end - 1] == '"') {
        ++begin;
        --end;
    }
    bool whole = begin < end && all_[begin] == '$' && begin + 1 < end;
    if (whole && all_[begin + 1] == '{') {
        int level = 0;
        std::uint32_t j = begin + 1;
        for (; j < end; ++j)
            if (all_[j] == '{')
                ++level;
            else if (all_[j] == '}' && --level == 0)
                break;
        whole = j + 1 == end;
    } else if (whole) {
        for (std::uint32_t j = begin + 1; j < end; ++j) whole &= shell_name_char(all_[j]);
    }
    if (!whole) {
        out.origin = {};
        out.origin_source = nullptr;
    }
}

Expanded ShellValues::expand_body(Span body) {
    Expanded out;
    std::uint32_t at = body.begin;
    while (at < body.end) {
        std::uint32_t j = at;
        while (j < body.end && all_[j] != '$' && all_[j] != '\\') ++j;
        if (j > at) put(all_.substr(at, j - at), {at, j}, true, false, true, out);
        at = j;
        if (at >= body.end) break;
        if (all_[at] == '$') {
            at = dollar(at, body.end, true, out, 0);
        } else if (at + 1 < body.end && (all_[at + 1] == '$' || all_[at + 1] == '`' || all_[at + 1] == '\\')) {
            put(all_.substr(at + 1, 1), {at, at + 2}, false, false, true, out);
            at += 2;
        } else {
            put(all_.substr(at, 1), {at, at + 1}, true, false, true, out);
            ++at;
        }
    }
    out.origin = {};
    out.origin_source = nullptr;
    return out;
}

GuestText guest_of_runs(const Expanded& expanded, const Source& source, Span fallback) {
    GuestText guest;
    guest.text = expanded.text;
    for (std::size_t k = 0; k < expanded.runs.size(); ++k) {
        const ShellRun& run = expanded.runs[k];
        const std::uint32_t stop = expanded.end_of(k);
        if (stop == run.at) continue;
        Piece piece;
        piece.guest = run.at;
        piece.length = stop - run.at;
        const bool here = run.source == &source;
        piece.host = here ? run.host : fallback;
        piece.kind = here && run.verbatim ? Piece::Kind::verbatim : Piece::Kind::changed;
        guest.pieces.push_back(piece);
    }
    return guest;
}

}  // namespace stoker::lint
