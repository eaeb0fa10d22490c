#include "lint/shell/shell_trace.h"

#include <algorithm>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostRuns = 32;

}  // namespace

ShellTrace::ShellTrace(File& file, const ReadOptions& options) : file_(file), options_(options) {
    if (file.source().text().size() > kMostTracedText) return;
    auto unit = std::make_unique<Unit>();
    unit->source = &file.source();
    const auto size = static_cast<std::uint32_t>(file.source().text().size());
    unit->tree = shell_tree(file.source().text(), {0, size});
    units_.push_back(std::move(unit));
    unit_ = units_.back().get();
    // What the scheduler will say, where the script asks it for a number.
    for (const Directive& directive : file.script.directives) {
        if (directive.malformed || directive.after_command || !directive.value.known()) continue;
        std::string_view text = directive.value.text;
        if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) text = text.substr(colon + 1);
        Value last = directive.value;
        last.text = text;
        const auto count = last.as_int();
        if (!count || *count < 0 || *count > 1'000'000) continue;
        const auto says = [&](std::initializer_list<std::string_view> names) {
            for (const std::string_view name : names) scheduled_.insert_or_assign(std::string(name), *count);
        };
        if (directive.option == "nodes") says({"SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
        if (directive.option == "ntasks") says({"SLURM_NTASKS", "SLURM_NPROCS"});
        if (directive.option == "ntasks-per-node") says({"SLURM_NTASKS_PER_NODE"});
        if (directive.option == "cpus-per-task") says({"SLURM_CPUS_PER_TASK"});
        if (directive.option == "gpus-per-node") says({"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"});
        if (directive.option == "gres" && directive.value.text.starts_with("gpu")) says({"SLURM_GPUS_ON_NODE"});
    }
    if (file.script.arguments) {
        arguments_.emplace();
        for (const Value& each : *file.script.arguments)
            arguments_->push_back({std::string(each.text), each.span, each.source, each.known(), each.assumed, {}});
    }
    if (unit_->tree.root >= 0) run(unit_->tree.root);
    variables_.clear();
    substitutions_.clear();
}

const std::vector<std::vector<TracedText>>* ShellTrace::runs(std::uint32_t begin) const {
    const auto it = runs_.find(begin);
    return it == runs_.end() ? nullptr : &it->second;
}

const ShellRuns* ShellTrace::runs_in(const Source& sourced) const {
    const auto it = elsewhere_.find(&sourced);
    return it == elsewhere_.end() ? nullptr : &it->second;
}

const TracedText* ShellTrace::assigned(std::uint32_t begin) const {
    const auto it = assigned_.find(begin);
    return it == assigned_.end() || !it->second ? nullptr : &*it->second;
}

bool ShellTrace::spend(std::size_t bytes) {
    bytes_ += bytes;
    ++steps_;
    if (spent()) flow_ = Flow::leave_script;
    return flow_ != Flow::leave_script;
}

bool ShellTrace::Variable::operator==(const Variable& other) const {
    const auto same = [](const TracedText& a, const TracedText& b) { return a.known && b.known && a.text == b.text; };
    return list == other.list && set == other.set && open == other.open && keys == other.keys &&
           std::equal(items.begin(), items.end(), other.items.begin(), other.items.end(), same);
}

// What `<`, `<<` and `<<<` give; false where nothing is read from there.
bool ShellTrace::feed_of(const ShellNode& node, Feed& out) {
    bool found = false;
    for (const ShellFeed& feed : node.feeds) {
        if (feed.op == "<<") {
            out.text = body_of(feed);
            found = true;
        } else if (feed.op == "<<<") {
            out.text = text_of(feed.target);
            out.text.text += '\n';
            found = true;
        } else if (feed.op == "<") {
            found = true;
            const std::string_view raw = all().substr(feed.target.begin, feed.target.size());
            if (raw.starts_with("<(") && raw.ends_with(')')) {
                out.text = substituted({feed.target.begin + 2, feed.target.end - 1});
                out.text.text += '\n';
                continue;
            }
            const TracedText name = text_of(feed.target);
            const auto text = name.known ? file_text(name.text) : std::nullopt;
            out.text = {};
            out.text.known = text.has_value();
            if (text) out.text.text = *text;
        }
    }
    return found;
}

void ShellTrace::note(const ShellNode& node, const Fields& words) {
    if (node.words.empty()) return;
    // Assignments may stand before the words.
    std::uint32_t begin = node.words[0].begin;
    for (const Span word : node.words) {
        begin = word.begin;
        const std::string_view raw = all().substr(word.begin, word.size());
        std::size_t name = 0;
        while (name < raw.size() && shell_name_char(raw[name])) ++name;
        if (name == 0 || name >= raw.size() || raw[name] != '=') break;
    }
    std::vector<Fields>& all_runs = (unit_->source == &file_.source() ? runs_ : elsewhere_[unit_->source])[begin];
    if (all_runs.size() >= kMostRuns) return;
    const auto same = [&](const Fields& other) {
        return std::equal(words.begin(), words.end(), other.begin(), other.end(),
                          [](const TracedText& a, const TracedText& b) {
                              return a.known == b.known && a.text == b.text && a.at == b.at;
                          });
    };
    if (std::any_of(all_runs.begin(), all_runs.end(), same)) return;
    for (const TracedText& word : words) spend(word.text.size());
    all_runs.push_back(words);
}

ShellTrace::Status ShellTrace::simple(const ShellNode& node) {
    std::size_t first = 0;
    for (; first < node.words.size(); ++first) {
        const Span word = node.words[first];
        std::uint32_t j = word.begin;
        while (j < word.end && shell_name_char(all()[j])) ++j;
        if (j == word.begin || !shell_name_start(all()[word.begin]) || j >= word.end) break;
        const std::string_view rest = all().substr(j, word.end - j);
        if (!rest.starts_with('=') && !rest.starts_with("+=") &&
            !(rest[0] == '[' && rest.find("]=") != std::string_view::npos) &&
            !(rest[0] == '[' && rest.find("]+=") != std::string_view::npos))
            break;
    }
    const std::string separators = separators_;
    if (first == node.words.size()) {
        for (std::size_t k = 0; k < first; ++k) assign(node.words[k], false, {});
        return Status::yes;
    }
    const std::string_view name = all().substr(node.words[first].begin, node.words[first].size());
    if (name == "declare" || name == "local" || name == "export" || name == "readonly" || name == "typeset") {
        declare({node.words.begin() + static_cast<std::ptrdiff_t>(first), node.words.end()});
        return Status::yes;
    }
    // X=1 command: for this command only.
    std::vector<std::pair<std::string, std::optional<Variable>>> hidden;
    for (std::size_t k = 0; k < first; ++k) {
        const std::string_view whole = all().substr(node.words[k].begin, node.words[k].size());
        const std::string_view variable = whole.substr(0, whole.find_first_of("=+["));
        const auto it = variables_.find(variable);
        hidden.emplace_back(variable, it == variables_.end() ? std::nullopt : std::optional<Variable>(it->second));
    }
    Fields words;
    for (std::size_t k = first; k < node.words.size(); ++k) expand(node.words[k], words);
    for (std::size_t k = 0; k < first; ++k) assign(node.words[k], false, {});
    Status status = Status::yes;
    if (!words.empty()) {
        note(node, words);
        status = command(words, node);
    }
    for (auto& [variable, value] : hidden) {
        if (value)
            variables_[variable] = std::move(*value);
        else
            variables_.erase(variable);
    }
    if (!hidden.empty()) separators_ = separators;
    return status;
}

ShellTrace::Status ShellTrace::call(const Function& function, Fields words) {
    if (frames_.size() >= 16) return Status::unknown;
    const Unit* const outer_unit = unit_;
    auto outer = arguments_;
    words.erase(words.begin());
    arguments_ = std::move(words);
    frames_.emplace_back();
    unit_ = function.unit;
    const Status status = run(function.body);
    unit_ = outer_unit;
    for (auto it = frames_.back().hidden.rbegin(); it != frames_.back().hidden.rend(); ++it) {
        if (it->second)
            variables_[it->first] = std::move(*it->second);
        else
            variables_.erase(it->first);
    }
    frames_.pop_back();
    arguments_ = std::move(outer);
    if (flow_ == Flow::leave_function) flow_ = Flow::on;
    return status;
}

ShellTrace::Status ShellTrace::command(const Fields& words, const ShellNode& node) {
    const TracedText& first = words[0];
    if (!first.known) {
        if (output_) output_->known = false;
        return Status::unknown;
    }
    const std::string_view name = first.text;
    if (const auto it = functions_.find(name); it != functions_.end()) {
        const Function function = it->second;
        return call(function, words);
    }
    if (name == "true" || name == ":") return Status::yes;
    if (name == "false") return Status::no;
    if (name == "exit" || name == "return" || name == "break" || name == "continue") {
        flow_ = name == "exit"     ? Flow::leave_script
                : name == "return" ? Flow::leave_function
                : name == "break"  ? Flow::break_loop
                                   : Flow::next_turn;
        const bool fails = words.size() > 1 && words[1].known && words[1].text != "0";
        return fails ? Status::no : Status::yes;
    }
    if (name == "[" || name == "test") return test_command(words);
    if (name == "shift") {
        if (!arguments_) return Status::unknown;
        std::size_t by = 1;
        if (words.size() > 1) by = words[1].text.size() == 1 ? static_cast<std::size_t>(words[1].text[0] - '0') : 1;
        if (by > arguments_->size()) return Status::no;
        arguments_->erase(arguments_->begin(), arguments_->begin() + static_cast<std::ptrdiff_t>(by));
        return Status::yes;
    }
    if (name == "set") {
        for (std::size_t k = 1; k < words.size(); ++k)
            if (words[k].text == "--") {
                arguments_ = Fields(words.begin() + static_cast<std::ptrdiff_t>(k) + 1, words.end());
                break;
            }
        return Status::yes;
    }
    if (name == "let") {
        Status status = Status::unknown;
        for (std::size_t k = 1; k < words.size(); ++k) {
            const auto value = number(words[k].text);
            status = !value ? Status::unknown : *value ? Status::yes : Status::no;
        }
        return status;
    }
    if (name == "unset") {
        for (std::size_t k = 1; k < words.size(); ++k) variables_.erase(words[k].text);
        return Status::yes;
    }
    if (name == "read") {
        Status status = Status::unknown;
        read_fields(words, node, separators_, status);
        return status;
    }
    if (name == "mapfile" || name == "readarray") {
        read_lines(words, node);
        return Status::yes;
    }
    if (name == "getopts" && words.size() > 2) {
        set_unknown(words[2].text);
        set_unknown("OPTARG");
        return Status::unknown;
    }
    if (name == "source" || name == ".") {
        if (words.size() < 2) return Status::unknown;
        // Beside the script, as far as anybody can tell.
        std::string_view path = words[1].text;
        path = path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
        while (path.ends_with('"')) path.remove_suffix(1);
        for (File* sourced : file_.script.sourced) {
            std::string_view theirs = sourced->path();
            theirs = theirs.substr(theirs.rfind('/') == std::string_view::npos ? 0 : theirs.rfind('/') + 1);
            if (theirs != path || units_.size() > 16) continue;
            auto unit = std::make_unique<Unit>();
            unit->source = &sourced->source();
            const auto size = static_cast<std::uint32_t>(sourced->source().text().size());
            unit->tree = shell_tree(sourced->source().text(), {0, size});
            units_.push_back(std::move(unit));
            const Unit* const outer = unit_;
            unit_ = units_.back().get();
            run(unit_->tree.root);
            unit_ = outer;
            return Status::yes;
        }
        return Status::unknown;
    }
    const auto said = program(words, node);
    const ShellFeed* to = nullptr;
    for (const ShellFeed& feed : node.feeds)
        if (feed.op.starts_with('>') || feed.op.starts_with("&>")) to = &feed;
    if (to != nullptr) {
        const TracedText path = text_of(to->target);
        if (!path.known || path.text.starts_with("/dev/") || to->op == ">&")
            return said ? Status::yes : Status::unknown;
        TracedText& file = written_[path.text];
        if (to->op != ">>") file = {};
        file.known &= said && said->known;
        if (said) file.text += said->text;
        return said ? Status::yes : Status::unknown;
    }
    if (output_) {
        if (!said) {
            output_->known = false;
        } else {
            if (output_->text.empty()) {
                output_->at = said->at;
                output_->source = said->source;
            } else {
                output_->at = {};
            }
            output_->known &= said->known;
            output_->assumed |= said->assumed;
            if (output_->text.size() + said->text.size() < kMostTracedText) output_->text += said->text;
            spend(said->text.size());
        }
    }
    return said ? Status::yes : Status::unknown;
}

}  // namespace stoker::lint
