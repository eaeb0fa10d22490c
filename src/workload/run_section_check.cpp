// What a run section has to be beyond its single values.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/text.h"
#include "workload/run_section.h"

namespace stoker {
namespace {

constexpr const char* kArrayParameter = "array_index";
constexpr int kMostIndex = 1'000'000;

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word(char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
}

std::optional<int> index_from(std::string_view text) {
    int value = 0;
    text = trim(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostIndex)
        return std::nullopt;
    return value;
}

Error bad_array(std::string message) {
    return Error(ErrorKind::invalid, std::move(message), {},
                 "write a number of runs such as 10, or indices such as 0-9, 1-7:2 or 0,3,8");
}

// The script gives this variable a value itself: lr=..., `for lr in`, `read lr`.
bool assigned_in(std::string_view script, std::string_view name) {
    for (std::size_t at = script.find(name); at != std::string_view::npos; at = script.find(name, at + 1)) {
        const bool starts = at == 0 || (!is_word(script[at - 1]) && script[at - 1] != '{' && script[at - 1] != '$');
        const std::size_t end = at + name.size();
        if (starts && (end == script.size() || !is_word(script[end]))) return true;
    }
    return false;
}

class RunChecks {
public:
    RunChecks(const RunSection& section, Problems& problems) : run_(section), problems_(problems) {
        for (const SweepParameter& parameter : run_.sweep) parameters_.push_back(parameter.name);
        if (run_.array) parameters_.emplace_back(kArrayParameter);
    }

    void all() {
        sweep();
        lease();
        for (const auto& [key, value] : run_.environment) text(value, false, "environment." + key, run_);
        if (run_.steps.empty()) {
            if (!run_.command.given() && !run_.at.contains("command"))
                add(run_.place(""), "run: there is no command", "add for example command: python3 train.py");
            fields(run_, run_);
            return;
        }
        fields(run_, run_);
        steps();
    }

private:
    void add(SourcePos pos, std::string message, std::string remedy = {}) {
        if (problems_.size() < 100) problems_.push_back({std::move(message), std::move(remedy), pos});
    }

    void sweep() {
        if (run_.parallel && run_.sweep.empty() && !run_.array && run_.steps.empty())
            add(run_.place("parallel"), "parallel: there is neither a sweep, nor an array, nor steps");
        std::set<std::string> variables;
        for (const SweepParameter& parameter : run_.sweep) {
            if (!variables.insert(upper(parameter.name)).second)
                add(parameter.pos, fmt::format("sweep: {} differs from another parameter in upper and lower case only",
                                               parameter.name));
        }
        const std::size_t points = points_of(run_);
        const char* key = run_.sweep.empty() ? "array" : "sweep";
        if (points > kMaxPoints) {
            add(run_.place(key), fmt::format("{}: {} runs, at most {}", key, points, kMaxPoints),
                "split it over several files, or leave values out");
        } else if (points * run_.steps.size() > kMaxGraphSteps) {
            add(run_.place(key), fmt::format("{}: {} runs of {} steps each are more than {} steps", key, points,
                                             run_.steps.size(), kMaxGraphSteps));
        }
    }

    void lease() {
        if (!run_.lease || !run_.lease->hard_max || !run_.lease->stop_after) return;
        if (run_.lease->hard_max->v >= run_.lease->stop_after->v) return;
        const auto at = run_.lease->at.find("hard_max");
        add(at != run_.lease->at.end() ? at->second : run_.place("lease"),
            fmt::format("lease: hard_max {} comes before stop_after {}", format_seconds(*run_.lease->hard_max),
                        format_seconds(*run_.lease->stop_after)));
    }

    // What the run or the step says itself; `context` holds the environment that it sees.
    void fields(const RunFields& own, const RunFields& context) {
        for (std::size_t i = 0; i < own.command.words.size(); ++i)
            text(own.command.words[i], own.command.script, "command", context);
        ranks(own);
        if (own.gpus && *own.gpus > 1 && *own.gpus != std::floor(*own.gpus))
            add(own.place("gpus"), fmt::format("gpus: {:g} of one rank: a part is taken of one GPU only", *own.gpus),
                "write whole GPUs, or a part below 1");
        if (own.gpus && *own.gpus > 0 && *own.gpus < 0.001)
            add(own.place("gpus"), fmt::format("gpus: {:g} is less than a thousandth", *own.gpus));
        if (!own.gpu.empty() && own.gpus && *own.gpus == 0)
            add(own.place("gpu"), fmt::format("gpu: {} with gpus: 0", printable(own.gpu, 40)), "write gpus: 1");
        if (own.checkpoint && ("/" + own.checkpoint->folder + "/").find("/../") != std::string::npos)
            add(own.place("checkpoint"),
                fmt::format("checkpoint.folder: {} leads outside with ..", printable(own.checkpoint->folder, 60)));
        if (own.checkpoint && own.checkpoint->folder.empty())
            add(own.place("checkpoint"), "checkpoint.folder: it is empty");
        if (own.checkpoint && own.checkpoint->folder.starts_with('/') && !run_.foreign &&
            (!run_.sweep.empty() || run_.array) && placeholders_in(own.checkpoint->folder).empty())
            add(own.place("checkpoint"),
                fmt::format("checkpoint.folder: all runs of the {} would write to the same folder {}",
                            run_.sweep.empty() ? "array" : "sweep", printable(own.checkpoint->folder, 60)),
                fmt::format("write {}/${{{}}}, or a relative folder, which is below each run's own",
                            printable(own.checkpoint->folder, 60), parameters_.front()));
        if (own.folder.starts_with('~'))
            add(own.place("folder"), fmt::format("folder: nothing replaces ~ in {}", printable(own.folder, 60)),
                "write the whole path, or one relative to this file");
    }

    void ranks(const RunFields& own) {
        const int nodes = own.nodes.value_or(1);
        if (own.ranks_per_node) {
            const int per_node = *own.ranks_per_node;
            if (own.ranks && own.nodes && *own.ranks != per_node * nodes)
                add(own.place("ranks"),
                    fmt::format("ranks: {} is not ranks_per_node {} on {} nodes", *own.ranks, per_node, nodes),
                    "keep two of the three");
            else if (own.ranks && *own.ranks % per_node != 0)
                add(own.place("ranks"),
                    fmt::format("ranks: {} cannot be spread with {} on each node", *own.ranks, per_node));
            else if (!own.ranks && per_node * nodes > kMostRanks)
                add(own.place("ranks_per_node"), fmt::format("ranks_per_node: {} on {} nodes are {} ranks, at most {}",
                                                             per_node, nodes, per_node * nodes, kMostRanks));
        } else if (own.nodes && own.ranks && *own.ranks % nodes != 0) {
            add(own.place("ranks"), fmt::format("ranks: {} cannot be spread evenly over {} nodes", *own.ranks, nodes),
                "write a multiple of the nodes, or leave nodes out");
        }
    }

    // Every ${name} stands for a parameter, or for something that the shell knows.
    void text(const PlacedText& value, bool script, const std::string& where, const RunFields& context) {
        if (value.text.find('\0') != std::string::npos) add(value.pos, where + ": it holds a zero byte");
        if (run_.foreign) return;
        for (const Placeholder& each : placeholders_in(value.text)) {
            const bool known = std::find(parameters_.begin(), parameters_.end(), each.name) != parameters_.end();
            if (known || each.escaped) continue;
            const auto near = nearest(each.name, parameters_);
            const std::string hint = near ? fmt::format(" (did you mean ${{{}}}?)", *near) : "";
            if (script) {
                if (!near || context.environment.contains(each.name) || run_.environment.contains(each.name) ||
                    assigned_in(value.text, each.name))
                    continue;
                add(value.pos,
                    fmt::format("{}: there is no parameter ${{{}}}{}", where, printable(each.name, 60), hint),
                    fmt::format("the parameters of sweep are {}; a variable of the shell is written ${}",
                                join(parameters_, ", "), printable(each.name, 60)));
                continue;
            }
            std::string remedy = where == "command"
                                     ? "write the command as one text, so that the shell replaces its variables; "
                                     : "only parameters of sweep are replaced here; ";
            remedy += fmt::format("$${{{}}} stands for the letters themselves", printable(each.name, 60));
            add(value.pos, fmt::format("{}: nothing replaces ${{{}}}{}", where, printable(each.name, 60), hint),
                std::move(remedy));
        }
    }

    void steps() {
        std::map<std::string_view, std::size_t> index;
        std::vector<std::string> names;
        for (std::size_t i = 0; i < run_.steps.size(); ++i) {
            const RunStepForm& step = run_.steps[i];
            const std::string name = printable(step.name, 60);
            if (step.at.contains("name") &&
                (step.name.empty() || step.name.size() > 100 || step.name.find('/') != std::string::npos))
                add(step.place("name"), fmt::format("name: '{}' is no name of a step: 1 to 100 bytes without /", name));
            if (!step.name.empty() && !index.emplace(step.name, i).second)
                add(step.place("name"), fmt::format("name: two steps are named {}", name));
            names.push_back(step.name);
            if (!step.command.given() && !run_.command.given() && !step.at.contains("command"))
                add(step.place(""), fmt::format("step {}: there is no command", name),
                    "add for example command: python3 train.py");
            if (step.retries && step.restarts)
                add(step.place("restarts"), fmt::format("step {}: retries and restarts mean the same", name),
                    "keep one of the two");
            for (const auto& [key, value] : step.environment) text(value, false, "environment." + key, step);
            fields(step, step);
        }
        bool all_known = true;
        for (const RunStepForm& step : run_.steps) {
            for (const PlacedText& need : step.after) {
                if (index.contains(need.text)) continue;
                all_known = false;
                const auto near = nearest(need.text, names);
                add(need.pos, fmt::format("after: there is no step {}{}", printable(need.text, 60),
                                          near ? fmt::format(" (did you mean {}?)", *near) : ""));
            }
        }
        if (all_known) cycles(index);
    }

    // Takes away what depends on nothing until nothing can be taken; the rest holds a cycle.
    void cycles(const std::map<std::string_view, std::size_t>& index) {
        std::vector<std::size_t> missing(run_.steps.size());
        std::vector<std::vector<std::size_t>> followers(run_.steps.size());
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < run_.steps.size(); ++i) {
            missing[i] = run_.steps[i].after.size();
            for (const PlacedText& need : run_.steps[i].after) followers[index.at(need.text)].push_back(i);
            if (missing[i] == 0) ready.push_back(i);
        }
        std::size_t taken = 0;
        for (; taken < ready.size(); ++taken) {
            for (const std::size_t next : followers[ready[taken]])
                if (--missing[next] == 0) ready.push_back(next);
        }
        if (taken == run_.steps.size()) return;
        // Back along what is missing, from any step that is left, ends in the cycle.
        std::size_t at = 0;
        while (missing[at] == 0) ++at;
        std::vector<std::size_t> path;
        while (std::find(path.begin(), path.end(), at) == path.end()) {
            path.push_back(at);
            for (const PlacedText& need : run_.steps[at].after) {
                if (missing[index.at(need.text)] == 0) continue;
                at = index.at(need.text);
                break;
            }
        }
        std::string words = printable(run_.steps[at].name, 60);
        const RunStepForm& first = run_.steps[at];
        for (auto it = std::find(path.begin(), path.end(), at) + 1; it != path.end(); ++it)
            words += " after " + printable(run_.steps[*it].name, 60);
        add(first.place("after"),
            fmt::format("steps: they wait for each other: {} after {}", words, printable(first.name, 60)));
    }

    const RunSection& run_;
    Problems& problems_;
    std::vector<std::string> parameters_;
};

}  // namespace

std::vector<Placeholder> placeholders_in(std::string_view text) {
    std::vector<Placeholder> out;
    for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
        std::size_t end = at + 2;
        while (end < text.size() && is_word(text[end])) ++end;
        if (end == at + 2 || end == text.size() || text[end] != '}' || !is_letter(text[at + 2])) continue;
        const bool escaped = at > 0 && text[at - 1] == '$';
        out.push_back({.begin = at - (escaped ? 1 : 0),
                       .end = end + 1,
                       .name = std::string(text.substr(at + 2, end - at - 2)),
                       .escaped = escaped});
    }
    return out;
}

std::size_t points_of(const RunSection& section) {
    std::size_t points = section.array ? section.array->size() : 1;
    for (const SweepParameter& parameter : section.sweep) {
        points *= parameter.values.size();
        if (points > 1'000'000'000) break;
    }
    return points;
}

Result<ArrayIndices> parse_array(std::string_view text) {
    text = trim(text);
    const std::string shown = printable(text, 40);
    ArrayIndices array;
    if (const std::size_t percent = text.find('%'); percent != std::string_view::npos) {
        array.parallel = index_from(text.substr(percent + 1));
        if (!array.parallel || *array.parallel == 0)
            return bad_array(fmt::format("'{}': behind % stands how many run at once", shown));
        text = trim(text.substr(0, percent));
    }
    std::vector<int>& out = array.indices;
    if (const auto count = index_from(text)) {
        if (*count == 0 || static_cast<std::size_t>(*count) > kMaxPoints)
            return bad_array(fmt::format("{} runs, expected 1 to {}", *count, kMaxPoints));
        for (int i = 0; i < *count; ++i) out.push_back(i);
        return array;
    }
    for (const std::string_view part : split(text, ',')) {
        const std::size_t colon = part.find(':');
        const auto step = colon == std::string_view::npos ? 1 : index_from(part.substr(colon + 1));
        const std::string_view range = part.substr(0, colon);
        const std::size_t dash = range.find('-');
        const auto first = index_from(range.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : index_from(range.substr(dash + 1));
        const bool lone_step = colon != std::string_view::npos && dash == std::string_view::npos;
        if (!first || !last || !step || *step == 0 || *last < *first || lone_step)
            return bad_array(fmt::format("'{}' is no range of indices", shown));
        for (int i = *first; i <= *last; i += *step) {
            if (out.size() == kMaxPoints)
                return bad_array(fmt::format("'{}' has more than {} indices", shown, kMaxPoints));
            out.push_back(i);
        }
    }
    return array;
}

void check_run_section(const RunSection& section, Problems& problems) {
    RunChecks(section, problems).all();
}

}  // namespace stoker
