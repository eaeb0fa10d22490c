#include "lint/shell/shell_values.h"

#include <algorithm>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"

namespace stoker::lint {

namespace {

// <( ) stays as it is written.
bool is_process(const Value& value) {
    return value.text.starts_with("<(") || value.text.starts_with(">(");
}
bool value_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

bool set_by_scheduler(std::string_view name) {
    for (const std::string_view start : {"SLURM_", "PBS_", "LSB_", "OMPI_", "PMI_", "PMIX_", "SGE_", "FLUX_",
                                         "AZ_BATCH", "AZUREML_", "KUBERNETES_", "COBALT_", "MPI_LOCAL"})
        if (name.starts_with(start)) return true;
    for (const std::string_view whole : {"RANK", "LOCAL_RANK", "NODE_RANK", "HOSTNAME", "PBS", "RANDOM", "PWD", "HOME",
                                         "USER", "SECONDS", "JOB_ID", "TASK_ID", "PET_NNODES", "WORLD_SIZE"})
        if (name == whole) return true;
    return false;
}

ShellValues::ShellValues(File& file)
    : file_(file),
      source_(file.source()),
      all_(file.source().text()),
      budget_((file.host ? 16u << 10 : 64u << 10) + (file.host ? 4 : 8) * file.source().text().size()) {
    std::vector<Assignment>& all = file.script.assignments;
    variables_.reserve(all.size());
    next_write_.resize(all.size(), kNone);
    for (std::uint32_t k = 0; k < all.size(); ++k) {
        Variable& variable = made(all[k].name);
        if (variable.first == kNone)
            variable.first = k;
        else
            next_write_[variable.last] = k;
        variable.last = k;
    }
}
ShellValues::~ShellValues() = default;

ShellValues::Variable& ShellValues::made(std::string_view name) {
    looked_ = {};  // a name that is there now may have been missing
    return variables_[name];
}

bool ShellValues::spend(std::size_t bytes) {
    if (bytes > budget_) {
        budget_ = 0;
        return false;
    }
    budget_ -= bytes;
    return true;
}

ShellValues& ShellValues::of(const File& file) {
    File& own = const_cast<File&>(file);  // what is kept there is no part of what the file says
    if (!own.script.values) own.script.values = std::make_shared<ShellValues>(own);
    return *own.script.values;
}

void ShellValues::drop(File& file) {
    file.script.values.reset();
}

ShellValues::Variable* ShellValues::find(std::string_view name) {
    if (const auto it = variables_.find(name); it != variables_.end()) return &it->second;
    for (File* sourced : file_.script.sourced) {
        ShellValues& there = of(*sourced);
        if (const auto it = there.variables_.find(name); it != there.variables_.end()) {
            there.settle(it->second);
            return &it->second;
        }
    }
    if (const Container* container = file_.host_container) {
        if (const EnvVar* given = container->env(name); given && !set_by_scheduler(name)) {
            Variable& variable = made(given->name);
            variable.state = Variable::State::settled;
            if (!given->value.known()) return &variable;  // there, and nobody knows what it says
            variable.one = true;
            variable.value.text = given->value.text;
            variable.value.runs.push_back({0, {0, 0}, &source_, false, false, true});
            return &variable;
        }
    }
    for (const File* host = file_.host; host; host = host->host) {
        if (host->script.assignments.empty()) continue;
        ShellValues& outside = of(*host);
        Variable* found = outside.find(name);
        if (found) outside.settle(*found);
        return found;
    }
    return nullptr;
}

// The span of the value of an assignment as it is written.
static Span raw_value_span(const Assignment& assignment) {
    const auto name = static_cast<std::uint32_t>(assignment.name.size()) + (assignment.appends ? 2 : 1);
    return {std::min(assignment.span.begin + name, assignment.span.end), assignment.span.end};
}

// The lists that are written one after the other, unless a second one takes the place of the first.
void ShellValues::settle_array(Variable& variable) {
    bool based = false, same = true;
    std::size_t count = 0;
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k])
        count += file_.script.assignments[k].items.size();
    variable.items.reserve(count);
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k]) {
        const Assignment& each = file_.script.assignments[k];
        if (!each.array || each.value.span.size() == each.span.size()) {
            variable.open = true;
            continue;
        }
        const bool indexed = each.items.empty() && each.value.unknown();
        if (indexed || (!each.appends && based)) {  // a second, different list
            variable.open = true;
            if (!indexed) {
                variable.items.clear();
                same = false;
            }
            continue;
        }
        if (each.appends && each.in_condition) {
            variable.open = true;
            continue;
        }
        based |= !each.appends;
        Span last;  // words that one raw word was spread into come once
        for (const Value& item : each.items) {
            const Span written = raw(item, source_);
            if (item.known() && item.span.size() == item.text.size() && item.use.empty())
                variable.items.push_back(item);
            else if (written != last)
                append_words(written, variable.items);
            last = written;
        }
    }
    if (!same) variable.items.clear();
}

void ShellValues::settle(Variable& variable) {
    if (variable.state != Variable::State::raw) return;
    variable.state = Variable::State::settling;
    bool first = true, same = true;
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k])
        variable.array |= file_.script.assignments[k].array;
    if (variable.array) {
        settle_array(variable);
        variable.state = Variable::State::settled;
        return;
    }
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k]) {
        const Assignment& each = file_.script.assignments[k];
        const Span span = raw_value_span(each);
        if (each.value.unknown() && each.value.span.empty() && span.empty()) {  // read X, for X in
            same = false;
            continue;
        }
        Expanded value = expand(span);
        if (each.appends) {
            if (first || each.in_condition) {
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

bool ShellValues::array_of(Span word, std::vector<Value>& words) {
    std::string_view raw = all_.substr(word.begin, word.size());
    if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') raw = raw.substr(1, raw.size() - 2);
    if (raw == "$@" || raw == "$*") return arguments_of_call(word, words) || arguments_that_were_set(word, words);
    if (!raw.starts_with("${") || !(raw.ends_with("[@]}") || raw.ends_with("[*]}"))) return false;
    const std::string_view name = raw.substr(2, raw.size() - 6);
    if (name.empty() || !std::all_of(name.begin(), name.end(), shell_name_char)) return false;
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
    if (!variable->array && lines_read_into(name, word, words)) return true;
    if (!variable->array || variable->state != Variable::State::settled) {
        words.push_back(unknown);
        return true;
    }
    if (!spend(variable->items.size() * sizeof(Value))) {
        words.push_back(unknown);
        return true;
    }
    for (Value item : variable->items) {
        if (call_ != nullptr && item.unknown() && item.source == &source_ && called_.contains(item.span)) {
            append_words(ShellValues::raw(item, source_), words);
            continue;
        }
        if (item.use.empty()) {
            item.use = word;
            item.use_source = &source_;
        }
        words.push_back(item);
    }
    if (variable->open) words.push_back(unknown);  // elements may be missing
    return true;
}

// Words that need no expansion: one quoted string without escapes, or one variable that nothing sets.
bool ShellValues::plain_value(Span word, Value& result) {
    std::string_view inner = all_.substr(word.begin, word.size());
    result.source = &source_;
    result.span = word;
    result.text = inner;
    if (inner.empty()) return false;
    const char quote = inner[0];
    if ((quote == '\'' || quote == '"') && inner.size() >= 2 && inner.back() == quote) {
        inner = inner.substr(1, inner.size() - 2);
        if (inner.find_first_of(quote == '\'' ? "'" : "\"$`\\") == std::string_view::npos) {
            result.state = Value::State::known;
            result.text = inner;
            return true;
        }
    }
    if (!never_known(inner)) return false;
    result.state = Value::State::unknown;
    return true;
}

Value ShellValues::value_of(Span word, const Expanded& expanded) {
    const std::string_view written = all_.substr(word.begin, word.size());
    Value result;
    result.source = &source_;
    result.span = word;
    result.assumed = expanded.assumed;
    if (!expanded.known) {
        result.state = Value::State::unknown;
        result.text = written;
        return result;
    }
    result.state = Value::State::known;
    if (expanded.origin_source) {
        result.span = expanded.origin;
        result.source = expanded.origin_source;
        result.use = word;
        result.use_source = &source_;
    }
    result.text = expanded.text == written ? written : file_.tree.keep(expanded.text);
    return result;
}

Value ShellValues::value(Span word) {
    Value result;
    if (plain_value(word, result)) return result;
    Expanded expanded = std::move(scratch_);  // what is called from here may need one, too
    expand_into(word, expanded);
    result = value_of(word, expanded);
    scratch_ = std::move(expanded);
    return result;
}

void ShellValues::append_words(Span word, std::vector<Value>& words) {
    if (array_of(word, words)) return;
    Value plain;
    if (plain_value(word, plain)) {
        words.push_back(plain);
        return;
    }
    Expanded expanded = std::move(scratch_);
    expand_into(word, expanded);
    bool splits = false, quoted = expanded.runs.empty();
    for (std::size_t k = 0; k < expanded.runs.size() && !splits; ++k) {
        quoted |= !expanded.runs[k].splits;
        if (!expanded.runs[k].splits || !expanded.runs[k].known) continue;
        const auto begin = expanded.text.begin() + expanded.runs[k].at;
        splits = std::any_of(begin, expanded.text.begin() + expanded.end_of(k), value_blank);
    }
    if (splits)
        split(word, expanded, words);
    else if (!expanded.text.empty() || quoted)  // an empty variable is no word
        words.push_back(value_of(word, expanded));
    scratch_ = std::move(expanded);
}

// Parted at the blanks that unquoted variables brought in.
void ShellValues::split(Span word, const Expanded& expanded, std::vector<Value>& words) {
    const std::string_view kept = file_.tree.keep(expanded.text);
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
        for (std::size_t k = 0; k < expanded.runs.size() && expanded.runs[k].at < end; ++k)
            if (expanded.end_of(k) > begin && !expanded.runs[k].known) item.state = Value::State::unknown;
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

Span ShellValues::raw(const Value& value, const Source& source) {
    return value.use_source == &source ? value.use : value.span;
}

// ${X:=d} gives X its value when nothing else does.
void ShellValues::take_default(std::string_view raw, Span word) {
    if (raw.starts_with('"')) raw.remove_prefix(1);
    const std::size_t equals = raw.find('=');
    if (!raw.starts_with("${") || equals == std::string_view::npos || equals < 3) return;
    std::string_view name = raw.substr(2, equals - 2);
    if (name.ends_with(':')) name.remove_suffix(1);
    if (name.empty() || !std::all_of(name.begin(), name.end(), shell_name_char) || variables_.contains(name)) return;
    Variable& variable = made(name);
    variable.is_default = true;
    variable.state = Variable::State::settled;
    const auto from = static_cast<std::uint32_t>(raw.data() - all_.data() + static_cast<long>(equals) + 1);
    std::uint32_t to = word.end;
    if (to > from && all_[to - 1] == '"') --to;
    if (to > from && all_[to - 1] == '}') --to;
    variable.value = expand({from, to});
    variable.value.assumed = true;
    variable.origin = {from, to};
    variable.source = &source_;
    variable.one = variable.value.known && !set_by_scheduler(name);
}

void ShellValues::settle_words(Command& command) {
    if (std::all_of(command.words.begin(), command.words.end(), [](const Value& word) { return word.known(); })) return;
    collected_.clear();
    for (const Value& word : command.words) {
        if (word.known() || is_process(word))
            collected_.push_back(word);
        else
            append_words(word.span, collected_);
    }
    command.words.assign(collected_.begin(), collected_.end());
}

void ShellValues::settle_assignment(Assignment& assignment) {
    if (assignment.array) {
        if (std::all_of(assignment.items.begin(), assignment.items.end(),
                        [](const Value& each) { return each.known(); }))
            return;
        std::vector<Value> items;
        items.reserve(assignment.items.size());
        for (const Value& item : assignment.items) {
            if (item.known())
                items.push_back(item);
            else
                append_words(item.span, items);
        }
        assignment.items = std::move(items);
        if (!assignment.items.empty()) assignment.value = assignment.items.front();
        return;
    }
    if (!assignment.value.unknown() || assignment.value.span.empty()) return;
    const Span word = assignment.value.span;
    if (plain_value(word, assignment.value)) return;
    // The only one of its name: it is worked out once.
    Variable& variable = made(assignment.name);
    if (variable.first == variable.last && variable.first != kNone && !assignment.appends) {
        settle(variable);
        if (variable.one) {
            assignment.value = value_of(word, variable.value);
            return;
        }
    }
    assignment.value = value(word);
}

void ShellValues::finish() {
    Script& script = file_.script;
    for (const Command& command : script.commands) {
        if (command.name() != ":") continue;
        for (std::size_t k = 1; k < command.words.size(); ++k)
            take_default(command.words[k].text, command.words[k].span);
    }
    const auto settle_value = [&](Value& each) {
        if (!each.unknown() || each.span.empty() || is_process(each)) return;
        each = value(each.span);
    };
    // Words first: assignments must still be raw while variables are settled.
    for (Command& command : script.commands) {
        settle_words(command);
        for (Redirect& redirect : command.redirects) settle_value(redirect.target);
        for (Assignment& assignment : command.assignments)
            if (!assignment.array) settle_value(assignment.value);
    }
    for (Assignment& assignment : script.assignments)
        if (assignment.array) settle(made(assignment.name));
    for (Assignment& assignment : script.assignments) settle_assignment(assignment);
}

}  // namespace stoker::lint
