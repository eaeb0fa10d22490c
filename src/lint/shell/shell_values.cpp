// Longer than 500 lines because expansion, splitting and the settling of variables call each other.
#include "lint/shell/shell_values.h"

#include <algorithm>

namespace stoker::lint {

namespace {

constexpr int kExpansionDepth = 60;
constexpr std::size_t kMostValue = 64u << 10;

bool value_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}
bool value_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Set by the scheduler or the launcher: a default for them says nothing about the job.
bool set_by_scheduler(std::string_view name) {
    for (const std::string_view start : {"SLURM_", "PBS_", "LSB_", "OMPI_", "PMI_", "PMIX_", "SGE_", "FLUX_",
                                         "AZ_BATCH", "AZUREML_", "KUBERNETES_", "COBALT_", "MPI_LOCAL"})
        if (name.starts_with(start)) return true;
    for (const std::string_view whole : {"RANK", "LOCAL_RANK", "NODE_RANK", "HOSTNAME", "PBS", "RANDOM", "PWD", "HOME",
                                         "USER", "SECONDS", "JOB_ID", "TASK_ID", "PET_NNODES", "WORLD_SIZE"})
        if (name == whole) return true;
    return false;
}

// A pattern of ${x%pattern} that can be followed: literal text with at most one '*'; -1 when it does not match.
bool matches_glob(std::string_view text, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return text == pattern;
    const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
    return text.size() >= head.size() + tail.size() && text.starts_with(head) && text.ends_with(tail);
}

}  // namespace

struct ShellValues::Variable {
    std::string_view name;
    std::vector<Assignment*> writes;
    enum class State : std::uint8_t { raw, settling, settled } state = State::raw;
    bool one = false;                  // a single text; else nothing is known
    bool array = false, open = false;  // open: elements may be missing
    bool is_default = false;           // ${X:=d}
    Expanded value;
    std::vector<Value> items;
    Span origin;
    const Source* source = nullptr;
};

ShellValues::ShellValues(File& file)
    : file_(file),
      source_(file.source()),
      all_(file.source().text()),
      budget_((file.host ? 16u << 10 : 64u << 10) + (file.host ? 4 : 8) * file.source().text().size()) {
    for (Assignment& assignment : file.script.assignments) {
        auto& slot = variables_[assignment.name];
        if (!slot) {
            slot = std::make_unique<Variable>();
            slot->name = assignment.name;
        }
        slot->writes.push_back(&assignment);
    }
    if (file.host && !file.host->script.assignments.empty())
        hosts_.push_back(std::make_unique<ShellValues>(const_cast<File&>(*file.host)));
}
ShellValues::~ShellValues() = default;

bool ShellValues::spend(std::size_t bytes) {
    if (bytes > budget_) {
        budget_ = 0;
        return false;
    }
    budget_ -= bytes;
    return true;
}

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
    put(all_.substr(span.begin, span.size()), span, true, false, false, out);
}

ShellValues::Variable* ShellValues::find(std::string_view name) {
    if (const auto it = variables_.find(name); it != variables_.end()) return it->second.get();
    for (auto& host : hosts_)
        if (Variable* found = host->find(name)) {
            host->settle(*found);
            return found;
        }
    return nullptr;
}

// The span of the value of an assignment as it is written.
static Span raw_value_span(const Assignment& assignment) {
    const auto name = static_cast<std::uint32_t>(assignment.name.size()) + (assignment.appends ? 2 : 1);
    return {std::min(assignment.span.begin + name, assignment.span.end), assignment.span.end};
}

void ShellValues::settle(Variable& variable) {
    if (variable.state != Variable::State::raw) return;
    variable.state = Variable::State::settling;
    bool first = true, same = true;
    for (const Assignment* each : variable.writes) variable.array |= each->array;
    if (variable.array) {
        bool based = false;
        for (const Assignment* each : variable.writes) {
            if (!each->array || each->value.span.size() == each->span.size()) {
                variable.open = true;
                continue;
            }
            const bool indexed = each->items.empty() && each->value.unknown();
            if (indexed || (!each->appends && based)) {  // a second, different list
                variable.open = true;
                if (!indexed) {
                    variable.items.clear();
                    same = false;
                }
                continue;
            }
            if (each->appends && each->in_condition) {
                variable.open = true;
                continue;
            }
            based |= !each->appends;
            Span last;  // words that one raw word was spread into come once
            for (const Value& item : each->items) {
                const Span written = raw(item, source_);
                if (item.known() && item.span.size() == item.text.size() && item.use.empty())
                    variable.items.push_back(item);
                else if (written != last)
                    append_words(written, variable.items);
                last = written;
            }
        }
        if (!same) variable.items.clear();
        variable.one = false;
        variable.state = Variable::State::settled;
        return;
    }
    for (const Assignment* each : variable.writes) {
        const Span span = raw_value_span(*each);
        Expanded value;
        if (each->value.unknown() && each->value.span.empty() && span.empty()) {  // read X, for X in
            same = false;
            continue;
        }
        value = expand(span);
        if (each->appends) {
            if (first || each->in_condition) {
                same = false;
            } else {
                const auto shift = static_cast<std::uint32_t>(variable.value.text.size());
                if (shift + value.text.size() > kMostValue || !spend(value.text.size())) {
                    same = false;
                    continue;
                }
                for (ShellRun run : value.runs) {
                    run.at += shift;
                    variable.value.runs.push_back(run);
                }
                variable.value.text += value.text;
                variable.value.known &= value.known;
                variable.value.assumed |= value.assumed;
            }
            continue;
        }
        if (first) {
            variable.value = std::move(value);
            variable.origin = variable.value.origin.empty() ? span : variable.value.origin;
            variable.source = variable.value.origin_source ? variable.value.origin_source : &source_;
            first = false;
        } else if (!value.known || !variable.value.known || value.text != variable.value.text) {
            same = false;
        } else {
            variable.value.assumed |= value.assumed;
        }
    }
    variable.one = same && !first;
    variable.state = Variable::State::settled;
}

void ShellValues::put_variable(Variable& variable, Span use, bool quoted, Expanded& out) {
    settle(variable);
    if (variable.array && variable.one == false && !variable.open && !variable.items.empty() &&
        variable.items.front().known() && variable.state == Variable::State::settled) {  // $array is its first element
        put(variable.items.front().text, use, false, !quoted, true, out);
        return;
    }
    if (variable.state == Variable::State::settling || !variable.one) {
        put_unknown(use, out);
        return;
    }
    const Expanded& value = variable.value;
    if (out.text.size() + value.text.size() > kMostValue ||
        !spend(value.text.size() + sizeof(ShellRun) * value.runs.size())) {
        put_unknown(use, out);
        return;
    }
    const auto shift = static_cast<std::uint32_t>(out.text.size());
    for (ShellRun run : value.runs) {
        run.at += shift;
        run.splits = !quoted;
        out.runs.push_back(run);
    }
    out.text += value.text;
    out.known &= value.known;
    out.assumed |= value.assumed;
    out.origin = variable.origin;
    out.origin_source = variable.source;
}

// ${...}: `inside` is what the braces hold.
void ShellValues::parameter(Span inside, Span whole, bool quoted, Expanded& out, int depth) {
    std::uint32_t at = inside.begin;
    while (at < inside.end && value_name_char(all_[at])) ++at;
    const std::string_view name = all_.substr(inside.begin, at - inside.begin);
    if (name.empty()) return put_unknown(whole, out);
    std::string_view rest = all_.substr(at, inside.end - at);
    const bool positional = name[0] >= '0' && name[0] <= '9';
    Variable* variable = positional ? nullptr : find(name);
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
    if (j < end && value_name_char(all_[j]) && !(all_[j] >= '0' && all_[j] <= '9')) {
        while (j < end && value_name_char(all_[j])) ++j;
        Variable* variable = depth > kExpansionDepth ? nullptr : find(all_.substr(at + 1, j - at - 1));
        if (variable)
            put_variable(*variable, {at, j}, quoted, out);
        else
            put_unknown({at, j}, out);
        return j;
    }
    if (j < end && std::string_view("0123456789@*#?$!-").find(all_[j]) != std::string_view::npos) {
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
        while (j < end && all_[j] != '\\' && all_[j] != '"' && all_[j] != '$' && all_[j] != '`' &&
               (all_[j] != '\'' || inside))
            ++j;
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
    if (word.end > all_.size() || word.begin > word.end) return out;
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
        for (std::uint32_t j = begin + 1; j < end; ++j) whole &= value_name_char(all_[j]);
    }
    if (!whole) {
        out.origin = {};
        out.origin_source = nullptr;
    }
    return out;
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

bool ShellValues::array_of(Span word, std::vector<Value>& words) {
    std::string_view raw = all_.substr(word.begin, word.size());
    if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') raw = raw.substr(1, raw.size() - 2);
    if (!raw.starts_with("${") || !(raw.ends_with("[@]}") || raw.ends_with("[*]}"))) return false;
    const std::string_view name = raw.substr(2, raw.size() - 6);
    if (name.empty() || !std::all_of(name.begin(), name.end(), value_name_char)) return false;
    Variable* variable = find(name);
    Value unknown;
    unknown.state = Value::State::unknown;
    unknown.text = all_.substr(word.begin, word.size());
    unknown.span = word;
    unknown.source = &source_;
    if (!variable) {
        words.push_back(unknown);
        return true;
    }
    settle(*variable);
    if (!variable->array || variable->state != Variable::State::settled) {
        words.push_back(unknown);
        return true;
    }
    if (!spend(variable->items.size() * sizeof(Value))) {
        words.push_back(unknown);
        return true;
    }
    for (Value item : variable->items) {
        if (item.use.empty()) {
            item.use = word;
            item.use_source = &source_;
        }
        words.push_back(item);
    }
    if (variable->open) words.push_back(unknown);  // elements may be missing
    return true;
}

void ShellValues::append_words(Span word, std::vector<Value>& words) {
    if (array_of(word, words)) return;
    Expanded expanded = expand(word);
    bool splits = false;
    for (std::size_t k = 0; k < expanded.runs.size() && !splits; ++k) {
        if (!expanded.runs[k].splits || !expanded.runs[k].known) continue;
        const std::size_t stop = k + 1 < expanded.runs.size() ? expanded.runs[k + 1].at : expanded.text.size();
        const std::string_view part =
            std::string_view(expanded.text).substr(expanded.runs[k].at, stop - expanded.runs[k].at);
        splits = std::any_of(part.begin(), part.end(), value_blank);
    }
    if (expanded.text.empty() && !expanded.runs.empty()) {
        bool quoted = false;
        for (const ShellRun& run : expanded.runs) quoted |= !run.splits;
        if (!quoted) return;  // an empty variable is no word
    }
    if (!splits) {
        words.push_back(value(word));
        return;
    }
    // Parted at the blanks that unquoted variables brought in.
    const std::string_view kept = file_.tree.keep(std::move(expanded.text));
    std::size_t run = 0;
    std::uint32_t begin = 0;
    bool in_word = false;
    const auto flush = [&](std::uint32_t end) {
        if (!in_word) return;
        in_word = false;
        if (!spend(sizeof(Value))) return;
        Value item;
        item.text = kept.substr(begin, end - begin);
        item.state = Value::State::known;
        item.assumed = expanded.assumed;
        for (std::size_t k = 0; k < expanded.runs.size(); ++k) {
            const std::uint32_t stop =
                k + 1 < expanded.runs.size() ? expanded.runs[k + 1].at : static_cast<std::uint32_t>(kept.size());
            if (expanded.runs[k].at < end && stop > begin && !expanded.runs[k].known)
                item.state = Value::State::unknown;
            if (expanded.runs[k].at >= end) break;
        }
        item.source = &source_;
        item.span = expanded.host_of(begin, end, &item.source);
        if (item.span.empty() || (item.source == &source_ && word.contains(item.span) && item.span == word)) {
            item.span = word;
            item.source = &source_;
        } else if (item.source != &source_ || !word.contains(item.span)) {
            item.use = word;
            item.use_source = &source_;
        }
        words.push_back(item);
    };
    for (std::uint32_t at = 0; at < kept.size(); ++at) {
        while (run + 1 < expanded.runs.size() && expanded.runs[run + 1].at <= at) ++run;
        const bool parts = expanded.runs[run].splits && expanded.runs[run].known && value_blank(kept[at]);
        if (parts) {
            flush(at);
        } else if (!in_word) {
            begin = at;
            in_word = true;
        }
        if (words.size() > 100'000) return;
    }
    flush(static_cast<std::uint32_t>(kept.size()));
}

Value ShellValues::value(Span word) {
    Value result;
    result.source = &source_;
    result.span = word;
    const std::string_view raw = all_.substr(word.begin, word.size());
    // One quoted string without escapes: a view is enough.
    if (raw.size() >= 2 && (raw[0] == '\'' || raw[0] == '"') && raw.back() == raw[0]) {
        const std::string_view inner = raw.substr(1, raw.size() - 2);
        if (inner.find_first_of(raw[0] == '\'' ? "'" : "\"$`\\") == std::string_view::npos) {
            result.state = Value::State::known;
            result.text = inner;
            return result;
        }
    }
    Expanded expanded = expand(word);
    result.state = expanded.known ? Value::State::known : Value::State::unknown;
    result.assumed = expanded.assumed;
    if (!expanded.known) {
        result.text = raw;
        return result;
    }
    if (expanded.origin_source) {
        result.span = expanded.origin;
        result.source = expanded.origin_source;
        result.use = word;
        result.use_source = &source_;
    }
    result.text = expanded.text == raw ? raw : file_.tree.keep(std::move(expanded.text));
    return result;
}

Span ShellValues::raw(const Value& value, const Source& source) {
    return value.use_source == &source ? value.use : value.span;
}

void ShellValues::finish() {
    // ${X:=d} gives X its value when nothing else does.
    Script& script = file_.script;
    for (Command& command : script.commands) {
        if (command.name() != ":") continue;
        for (std::size_t k = 1; k < command.words.size(); ++k) {
            std::string_view raw = command.words[k].text;
            if (raw.starts_with('"')) raw.remove_prefix(1);
            const std::size_t equals = raw.find('=');
            if (!raw.starts_with("${") || equals == std::string_view::npos || equals < 3) continue;
            std::string_view name = raw.substr(2, equals - 2);
            if (name.ends_with(':')) name.remove_suffix(1);
            if (!std::all_of(name.begin(), name.end(), value_name_char) || name.empty()) continue;
            auto& slot = variables_[name];
            if (slot) continue;
            slot = std::make_unique<Variable>();
            slot->name = name;
            slot->is_default = true;
            slot->state = Variable::State::settled;
            const auto from = static_cast<std::uint32_t>(raw.data() - all_.data() + static_cast<long>(equals) + 1);
            std::uint32_t to = command.words[k].span.end;
            if (to > from && all_[to - 1] == '"') --to;
            if (to > from && all_[to - 1] == '}') --to;
            slot->value = expand({from, to});
            slot->value.assumed = true;
            slot->origin = {from, to};
            slot->source = &source_;
            slot->one = slot->value.known && !set_by_scheduler(name);
        }
    }
    const auto settle_value = [&](Value& each) {
        if (!each.unknown() || each.span.empty()) return;
        each = value(each.span);
    };
    // Words first: assignments must still be raw while variables are settled.
    for (Command& command : script.commands) {
        bool plain = true;
        for (const Value& word : command.words) plain &= word.known();
        if (!plain) {
            std::vector<Value> words;
            words.reserve(command.words.size());
            for (const Value& word : command.words) {
                if (word.known() || all_.substr(word.span.begin, 2) == "<(" || all_.substr(word.span.begin, 2) == ">(")
                    words.push_back(word);
                else
                    append_words(word.span, words);
            }
            command.words = std::move(words);
        }
        for (Redirect& redirect : command.redirects) settle_value(redirect.target);
        for (Assignment& assignment : command.assignments)
            if (!assignment.array) settle_value(assignment.value);
    }
    for (auto& [name, variable] : variables_) settle(*variable);
    for (Assignment& assignment : script.assignments) {
        if (!assignment.array) {
            settle_value(assignment.value);
            continue;
        }
        std::vector<Value> items;
        for (const Value& item : assignment.items) {
            if (item.known())
                items.push_back(item);
            else
                append_words(item.span, items);
        }
        assignment.items = std::move(items);
        if (!assignment.items.empty()) assignment.value = assignment.items.front();
    }
}

GuestText guest_of_runs(const Expanded& expanded, const Source& source, Span fallback) {
    GuestText guest;
    guest.text = expanded.text;
    for (std::size_t k = 0; k < expanded.runs.size(); ++k) {
        const ShellRun& run = expanded.runs[k];
        const std::uint32_t stop =
            k + 1 < expanded.runs.size() ? expanded.runs[k + 1].at : static_cast<std::uint32_t>(expanded.text.size());
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
