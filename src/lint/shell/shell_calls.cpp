// One function, several calls: what its words are in each of them. A variable that is set from an argument has as many
// values as there are calls, and each command of the body is then as many commands.
#include <algorithm>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostCalls = 16;
constexpr int kMostCallDepth = 20;

bool is_known_word(const Value& word) {
    return word.known();
}
bool is_known_word(const TracedText& word) {
    return word.known;
}

}  // namespace

// A variable of a script around this one may have the number of one that this script assigns.
bool ShellValues::assigned_here(const Variable& variable) const {
    const std::vector<Assignment>& all = file_.script.assignments;
    if (variable.array || variable.first >= all.size()) return false;
    const auto own = variables_.find(all[variable.first].name);
    return own != variables_.end() && &own->second == &variable;
}

// How many arguments of a function are gone where `at` stands; nothing where that depends.
std::optional<std::size_t> ShellValues::shifted(const Function& function, std::uint32_t at) const {
    std::size_t gone = 0;
    for (const Command& command : file_.script.commands) {
        if (command.name() != "shift" || !function.body.contains(command.span) || command.span.begin > at) continue;
        const std::string_view by = command.words.size() > 1 ? command.words[1].text : std::string_view("1");
        if (command.in_condition || by.size() != 1 || by[0] < '0' || by[0] > '9') return std::nullopt;
        gone += static_cast<std::size_t>(by[0] - '0');
    }
    return gone;
}

// "$2" in the call that is looked at: what it gives, or that it gives nothing.
ShellValues::Given ShellValues::put_given(Span use, std::size_t number, bool quoted, Expanded& out, int depth) {
    const Function* function = function_at(use.begin);
    if (call_ == nullptr || function == nullptr || function->body != called_ || depth > kMostCallDepth)
        return Given::unknown;
    const auto gone = shifted(*function, use.begin);
    if (!gone) return Given::unknown;
    const Command& call = *call_;
    // "$@" among the words of the call: how many there are, and which, is not known.
    for (const Value& word : call.words)
        if (word.unknown() && word.text.find('@') != std::string_view::npos) return Given::unknown;
    if (number + *gone >= call.words.size()) return Given::no;
    const Span word = raw(call.words[number + *gone], source_);
    call_ = nullptr;  // the words of a call are of the place it stands in
    Expanded value;
    text(word.begin, word.end, false, value, depth + 10);
    call_ = &call;
    if (!value.known) return Given::unknown;
    append(value, quoted, out);
    out.origin = word;
    out.origin_source = &source_;
    return value.text.empty() ? Given::no : Given::yes;
}

// A variable that the body sets before the use, in the call that is looked at.
bool ShellValues::put_local(const Variable& variable, Span use, bool quoted, Expanded& out) {
    if (call_ == nullptr || !called_.contains(use)) return false;
    const std::vector<Assignment>& all = file_.script.assignments;
    if (!assigned_here(variable)) return false;
    const Assignment* last = nullptr;
    for (std::uint32_t k = variable.first; k != kNone; k = next_write_[k]) {
        if (!called_.contains(all[k].span) || all[k].span.end > use.begin) continue;
        if (all[k].in_condition || all[k].appends || all[k].value.span.empty()) return false;
        last = &all[k];
    }
    if (last == nullptr) return false;
    const auto name = static_cast<std::uint32_t>(last->name.size()) + 1;
    Expanded value;
    const Span written{std::min(last->span.begin + name, last->span.end), last->span.end};
    text(written.begin, written.end, false, value, 10);
    if (!value.known) return false;
    const bool whole = value.runs.size() == 1 && value.origin_source != nullptr;
    append(value, quoted, out);
    out.origin = whole ? value.origin : written;
    out.origin_source = whole ? value.origin_source : &source_;
    return true;
}

// "$@" within the function that is called.
bool ShellValues::arguments_of_call(Span word, std::vector<Value>& words) {
    const Function* function = function_at(word.begin);
    if (call_ == nullptr || function == nullptr || function->body != called_) return false;
    const auto gone = shifted(*function, word.begin);
    if (!gone || !spend(call_->words.size() * sizeof(Value))) return false;
    for (std::size_t k = 1 + *gone; k < call_->words.size(); ++k) words.push_back(call_->words[k]);
    return true;
}

// "$@" behind `set -- a b`, in straight-line code.
bool ShellValues::arguments_that_were_set(Span word, std::vector<Value>& words) {
    const Command* last = nullptr;
    for (const Command& command : file_.script.commands) {
        if (command.span.end > word.begin) break;
        const std::string_view name = command.name();
        if (name == "shift") last = nullptr;
        if (name != "set" || command.words.size() < 2 || !command.words[1].is("--")) continue;
        last = command.in_function || command.in_condition || command.in_substitution ? nullptr : &command;
    }
    if (last == nullptr || function_at(word.begin) || !spend(last->words.size() * sizeof(Value))) return false;
    for (std::size_t k = 2; k < last->words.size(); ++k) {
        Value item = last->words[k];
        if (item.use.empty()) {
            item.use = word;
            item.use_source = &source_;
        }
        words.push_back(item);
    }
    return true;
}

// mapfile -t NAME <<LIST: a word for each line of the list.
bool ShellValues::lines_read_into(std::string_view name, Span word, std::vector<Value>& words) {
    const Redirect* list = nullptr;
    for (const Command& command : file_.script.commands) {
        if ((command.name() != "mapfile" && command.name() != "readarray") || !command.words.back().is(name)) continue;
        if (list != nullptr || command.words.size() != 3 || !command.words[1].is("-t")) return false;
        for (const Redirect& redirect : command.redirects)
            if (redirect.op == "<<") list = &redirect;
        if (list == nullptr) return false;
    }
    if (list == nullptr || list->body.end > all_.size()) return false;
    if (!list->literal &&
        all_.substr(list->body.begin, list->body.size()).find_first_of("$`") != std::string_view::npos)
        return false;
    for (std::uint32_t at = list->body.begin; at < list->body.end;) {
        const auto stop = static_cast<std::uint32_t>(std::min<std::size_t>(all_.find('\n', at), list->body.end));
        if (!spend(sizeof(Value))) return false;
        Value line = Value::known_text(all_.substr(at, stop - at), {at, stop}, source_);
        line.use = word;
        line.use_source = &source_;
        words.push_back(line);
        at = stop + 1;
    }
    return true;
}

std::vector<std::vector<Value>> ShellValues::words_in_calls(const Command& command) {
    std::vector<std::vector<Value>> found;
    if (call_ != nullptr || command.words.empty() || command.words[0].source != &source_) return found;
    const bool open = std::any_of(command.words.begin(), command.words.end(), [](const Value& word) {
        return word.unknown() && word.text.find('$') != std::string_view::npos;
    });
    const Function* function = open ? function_at(command.span.begin) : nullptr;
    if (function == nullptr) return found;
    const Span body = function->body;
    const std::string_view name = function->name;
    std::vector<const Command*> calls;
    for (const Command& each : file_.script.commands)
        if (each.name() == name && !body.contains(each.span)) calls.push_back(&each);
    if (calls.empty() || calls.size() > kMostCalls) return found;
    for (const Command* call : calls) {
        call_ = call;
        called_ = body;
        std::vector<Value> words;
        Span last;
        for (const Value& word : command.words) {
            const Span written = raw(word, source_);
            if (word.known() && word.use.empty())
                words.push_back(word);
            else if (written != last)
                append_words(written, words);
            last = written;
        }
        call_ = nullptr;
        if (!words.empty()) found.push_back(std::move(words));
    }
    return found;
}

const ShellTrace& ShellValues::trace(const ReadOptions& options) {
    if (!trace_) trace_ = std::make_unique<ShellTrace>(file_, options);
    return *trace_;
}

Value ShellValues::value_of_traced(const TracedText& word) {
    Value result;
    result.state = word.known ? Value::State::known : Value::State::unknown;
    result.assumed = word.assumed;
    result.text = file_.tree.keep(word.text);
    result.span = word.at.empty() ? word.word : word.at;
    result.source = word.source ? word.source : &source_;
    if (!word.word.empty() && (result.span != word.word || result.source != &source_)) {
        result.use = word.word;
        result.use_source = &source_;
    }
    return result;
}

std::vector<std::vector<Value>> ShellValues::words_in_runs(const Command& command, const ReadOptions& options) {
    std::vector<std::vector<Value>> found = words_in_calls(command);
    const auto open = [](const Value& word) {
        return word.unknown() && word.text.find_first_of("$`") != std::string_view::npos;
    };
    const auto unknown_in = [&](const std::vector<Value>& words) {
        return std::count_if(words.begin(), words.end(), open);
    };
    auto before = unknown_in(command.words);
    if (!found.empty()) {
        before = 0;
        for (const auto& words : found) before += unknown_in(words);
    }
    // xargs makes words that stand nowhere in the command.
    const bool fed = !command.words.empty() && command.words[0].is("xargs");
    if ((before == 0 && !fed) || command.words[0].source != &source_) return found;
    const std::uint32_t begin = raw(command.words[0], source_).begin;
    const std::vector<std::vector<TracedText>>* runs = nullptr;
    if (run_by_ == nullptr)
        runs = trace(options).runs(begin);
    else if (const auto it = run_by_->find(begin); it != run_by_->end())
        runs = &it->second;
    if (runs == nullptr || runs->empty()) return found;
    // Words that are known in part are parted as far as they are: nothing of that may be lost.
    const auto known_in = [](const auto& words) {
        return std::count_if(words.begin(), words.end(), [](const auto& word) { return is_known_word(word); });
    };
    std::ptrdiff_t after = 0, known_after = 0, known_before = found.empty() ? known_in(command.words) : 0;
    for (const auto& words : found) known_before += known_in(words);
    for (const auto& words : *runs) {
        known_after += known_in(words);
        after += static_cast<std::ptrdiff_t>(words.size()) - known_in(words);
    }
    const auto ways = static_cast<std::ptrdiff_t>(std::max<std::size_t>(found.size(), 1));
    const auto seen = static_cast<std::ptrdiff_t>(runs->size());
    if (!fed && (after * ways >= before * seen || known_after * ways < known_before * seen)) return found;
    found.clear();
    for (const auto& words : *runs) {
        if (!spend(words.size() * sizeof(Value))) break;
        std::vector<Value>& one = found.emplace_back();
        for (const TracedText& word : words) one.push_back(value_of_traced(word));
    }
    return found;
}

const ShellRuns* ShellValues::runs_in(const Source& sourced, const ReadOptions& options) {
    return trace(options).runs_in(sourced);
}

Value ShellValues::value_in_runs(const Assignment& assignment, const ReadOptions& options) {
    const TracedText* const value = trace(options).assigned(assignment.span.begin);
    return value == nullptr || !value->known ? assignment.value : value_of_traced(*value);
}

Value ShellValues::outside(std::string_view name) {
    if (const auto own = variables_.find(name); own != variables_.end() && own->second.first != kNone) return {};
    Variable* const variable = find(name);
    if (variable == nullptr) return {};
    settle(*variable);
    if (variable->state != Variable::State::settled || !variable->one || !variable->value.known) return {};
    Value result = Value::known_text(file_.tree.keep(variable->value.text), {}, source_);
    result.assumed = variable->value.assumed;
    return result;
}

// True where the word rests on a substitution or on a variable that nothing sets, and has no variable that could bring
// in blanks: it stays as it is written.
bool ShellValues::never_known(std::string_view word) {
    const auto begin = static_cast<std::uint32_t>(word.data() - all_.data());
    const auto end = static_cast<std::uint32_t>(begin + word.size());
    // Words nest: what was met in the one that was looked at last, within this one or around it, is met again.
    if (looked_.refused < looked_.end && begin <= looked_.refused && looked_.refused < end) return false;
    if (looked_.begin <= begin && end <= looked_.end && end <= looked_.refused)
        return word.back() == '`' || word.substr(0, word.size() - 1).find_first_of("$`") != std::string_view::npos;
    bool unknown = false, positional = false;
    const std::size_t refused = refused_in(word, unknown, positional);
    // A numbered one depends on the function that its word stands in.
    if (!positional) looked_ = {begin, end, begin + static_cast<std::uint32_t>(refused), unknown};
    return refused == word.size() && unknown;
}

// Where the word has what might be known; its size: nowhere.
std::size_t ShellValues::refused_in(std::string_view word, bool& unknown, bool& positional) {
    const auto start = static_cast<std::size_t>(word.data() - all_.data());
    const bool behind = looked_.begin < looked_.end && looked_.refused == looked_.end && looked_.begin >= start &&
                        looked_.end <= start + word.size();
    for (std::size_t at = 0; at < word.size(); ++at) {
        if (behind && start + at == looked_.begin) {
            unknown |= looked_.unknown;
            at = looked_.end - start - 1;
            continue;
        }
        const char c = word[at];
        if (c == '\\' || c == '\'') return at;
        if (c == '`') unknown = true;
        if (c != '$' || at + 1 == word.size()) continue;
        const std::size_t dollar = at++;
        if (word[at] == '(') {
            learn_functions();
            if (!functions_.empty() || !file_.script.sourced.empty() || file_.host_container ||
                (at + 1 < word.size() && word[at + 1] == '('))
                return dollar;  // what one of them echoes may be known
            unknown = true;
            continue;
        }
        const bool braced = word[at] == '{';
        const std::size_t begin = at + braced;
        std::size_t end = begin;
        while (end < word.size() && shell_name_char(word[end])) ++end;
        if (end == begin || (braced && (end == word.size() || word[end] != '}'))) return dollar;
        const bool numbered = word[begin] >= '0' && word[begin] <= '9';
        positional |= numbered;
        if (!numbered && find(word.substr(begin, end - begin))) return dollar;
        if (numbered && function_at(static_cast<std::uint32_t>(word.data() - all_.data()))) return dollar;
        unknown = true;
        at = numbered && !braced ? begin : end - 1;
    }
    return word.size();
}

}  // namespace stoker::lint
