// #SBATCH scripts. Options as `man sbatch` of Slurm 24.05 describes them.
// Longer than 500 lines because it is one reader: what a script asks for decides what its own words come to.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "formats/sbatch_line.h"
#include "formats/sbatch_values.h"
#include "workload/import/import_report.h"
#include "workload/import/sbatch_fates.h"

namespace stoker {
namespace {

using sbatch::kSrunFunction;
using sbatch::SbatchKey;

constexpr std::size_t kLongestScript = 31'000;  // a program's argument holds it

const sbatch::Fate& fate_of(const sbatch::Option& option) {
    const auto at = std::find_if(std::begin(sbatch::kFates), std::end(sbatch::kFates),
                                 [&](const sbatch::Fate& fate) { return fate.option == option.name; });
    CHECK(at != std::end(sbatch::kFates));  // a test goes through all options
    return *at;
}
// The option of sbatch that was meant, perhaps.
std::string did_you_mean(std::string_view name) {
    std::vector<std::string> known;
    for (const sbatch::Option& option : sbatch::options()) known.push_back("--" + std::string(option.name));
    const auto near = nearest("--" + std::string(name.substr(0, name.find('='))), known);
    return near ? fmt::format("did you mean {}?", *near) : std::string("see sbatch(1) for the name");
}

// A script line with srun as its command, also after `exec`, a variable or a pipe.
bool calls_srun(std::string_view line) {
    line = trim(line);
    if (line.starts_with('#')) return false;
    for (std::size_t at = line.find("srun"); at != std::string_view::npos; at = line.find("srun", at + 4)) {
        const bool starts = at == 0 || std::string_view(" \t;|&(`$").find(line[at - 1]) != std::string_view::npos;
        const bool ends = at + 4 == line.size() || line[at + 4] == ' ' || line[at + 4] == '\t' || line[at + 4] == '\\';
        if (starts && ends) return true;
    }
    return false;
}

// A line with those that its backslashes go on to.
std::string whole_line(const std::vector<std::string_view>& lines, std::size_t at) {
    std::string text(lines[at]);
    while (text.ends_with('\\') && at + 1 < lines.size() && text.size() < 20'000) {
        text.pop_back();
        text += lines[++at];
    }
    return text;
}

// The value of --container-image, which Pyxis gives to srun; nothing where it is not there.
std::optional<std::string> image_of_srun(const std::string& line) {
    constexpr std::string_view option = "--container-image";
    for (std::size_t at = line.find(option); at != std::string::npos; at = line.find(option, at + 1)) {
        std::string_view rest = std::string_view(line).substr(at + option.size());
        if (rest.empty() || (rest[0] != '=' && rest[0] != ' ')) continue;
        rest = trim(rest.substr(1));
        const char quote = !rest.empty() && (rest[0] == '"' || rest[0] == '\'') ? rest[0] : ' ';
        if (quote != ' ') rest.remove_prefix(1);
        return std::string(rest.substr(0, rest.find(quote)));
    }
    return std::nullopt;
}

class SbatchReader {
public:
    SbatchReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    Result<ImportedRun> read() {
        out_.report.tool = "Slurm";
        out_.from_current_folder = true;
        out_.run.foreign = true;
        if (text_.find('\0') != std::string_view::npos || find_invalid_utf8(text_) != std::string_view::npos)
            return Error(ErrorKind::invalid, "the script is not UTF-8 text", {file_, 1, 1});
        if (text_.size() > kLongestScript)
            return Error(ErrorKind::invalid,
                         fmt::format("the script has {} bytes, at most {} are taken", text_.size(), kLongestScript),
                         {file_, 1, 1}, "call the long part from a short script");
        directives();
        places();
        command();
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        return std::move(out_);
    }

private:
    void wrong(SourcePos pos, std::string message, std::string remedy = {}) {
        if (problems_.size() < 100) problems_.push_back({std::move(message), std::move(remedy), pos});
    }

    void directives() {
        bool body = false;  // Slurm reads no directive after the first command
        const std::vector<std::string_view> lines = split_lines(text_);
        std::uint32_t number = 0;
        for (const std::string_view line : lines) {
            ++number;
            const SourcePos pos{file_, number, 1};
            if (const std::string_view prefix = sbatch::directive_prefix(line); !prefix.empty()) {
                if (body)
                    out_.report.drop(pos, printable(line, 60),
                                     "it comes after the first command, where Slurm ignores it too");
                else
                    directive(line, prefix.size(), pos);
                continue;
            }
            body = body || (!trim(line).empty() && trim(line).front() != '#');
            if (const std::size_t equals = line.find('='); equals != std::string_view::npos)
                assigned(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
            if (!calls_srun(line) || srun_lines_.size() >= 100) continue;
            srun_lines_.push_back(pos);
            if (const auto image = image_of_srun(whole_line(lines, number - 1))) container(*image, pos);
        }
    }

    // ${IMAGE:-registry.example/x:1}: the caller's environment is not taken along, so the default it is.
    static std::string_view default_of(std::string_view value) {
        const std::size_t at = value.find(":-");
        if (!value.starts_with("${") || !value.ends_with('}') || at == std::string_view::npos) return value;
        return value.substr(at + 2, value.size() - at - 3);
    }

    // IMAGE=..., export IMAGE="...": what stands behind it, where that is plain.
    void assigned(std::string_view name, std::string_view value) {
        if (name.starts_with("export ")) name = trim(name.substr(7));
        if (name.empty() || name.find_first_of(" \t$(\"'") != std::string_view::npos) return;
        if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0])
            value = value.substr(1, value.size() - 2);
        value = default_of(value);
        variables_[std::string(name)] = value.find_first_of("$`\"' ") == std::string_view::npos ? value : "";
    }

    // A program that was to run in a container must not run outside of it.
    void container(const std::string& written, SourcePos pos) {
        std::string image(default_of(written));
        if (image.starts_with('$')) {
            std::string name = image.substr(1);
            if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
            const auto known = variables_.find(name);
            image = known == variables_.end() ? "" : known->second;
        }
        if (image.empty() || image.find('$') != std::string::npos)
            return wrong(pos,
                         fmt::format("which image --container-image={} is cannot be told before the script runs",
                                     printable(written, 60)),
                         "write the image's name there");
        image = replace_all(image, "#", "/");
        if (!out_.run.image.empty() && out_.run.image != image)
            return wrong(pos,
                         fmt::format("{} here, and {} above: a run is in one image", printable(image, 100),
                                     printable(out_.run.image, 100)),
                         "write a script for each; steps of one file run one after the other");
        if (out_.run.image.empty()) out_.report.take(pos, "--container-image", "image: all of the script runs in it");
        out_.run.image = image;
    }

    void directive(std::string_view line, std::size_t from, SourcePos pos) {
        sbatch::LineReader reader(line, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(line.size()));
        for (sbatch::Argument argument; reader.next(argument);) {
            pos.column = argument.begin + 1;
            const std::string written = written_of(argument);
            if (argument.separator)
                wrong(
                    pos,
                    fmt::format("'{}' begins another part of a heterogeneous job, and the ranks of a run are all alike",
                                argument.name),
                    "write a script for each part, or leave all but one out; steps of one file run beside each other");
            else if (refused(argument, pos))
                continue;
            else if (argument.found)
                take(argument, pos, written);
            else
                plugin(argument, pos, written);
        }
    }

    static std::string written_of(const sbatch::Argument& argument) {
        std::string text;
        if (argument.fault != sbatch::Fault::no_option && !argument.separator) text = argument.letter ? "-" : "--";
        text += argument.name;
        if (!argument.has_value) return printable(text, 60);
        text += argument.spaced ? " " : argument.letter ? "" : "=";
        return printable(text + std::string(argument.value), 60);
    }

    // In the words of SLM007: what check calls wrong, run does not start.
    bool refused(const sbatch::Argument& argument, SourcePos pos) {
        const std::string_view option = argument.found ? argument.found.option->name : argument.name;
        std::string_view expected;
        switch (argument.fault) {
            case sbatch::Fault::no_option:
            case sbatch::Fault::unknown:
                wrong(pos, sbatch::no_such_option(argument.name), did_you_mean(argument.name));
                return true;
            case sbatch::Fault::no_value: wrong(pos, sbatch::missing_value(option), "it takes a value"); return true;
            case sbatch::Fault::surplus_value: expected = "no value"; break;
            case sbatch::Fault::open_quote: expected = "a closing quote"; break;
            case sbatch::Fault::none:
                if (argument.found && argument.has_value)
                    expected = sbatch::expected_value(*argument.found.option, argument.value);
                break;
        }
        if (expected.empty()) return false;
        wrong(pos, argument.has_value ? sbatch::refused_value(option, argument.value) : sbatch::missing_value(option),
              fmt::format("it takes {}", expected));
        return true;
    }

    void take(const sbatch::Argument& argument, SourcePos pos, const std::string& written) {
        const sbatch::Option& option = *argument.found.option;
        const sbatch::Fate& fate = fate_of(option);
        // Slurm 18.08 had --tasks for --ntasks, and people go on writing it.
        if (!argument.letter && std::string_view("tasks").starts_with(argument.name) &&
            fate.key == SbatchKey::ntasks_per_node)
            out_.report.drop(pos, written,
                             "sbatch takes it for --tasks-per-node since Slurm 19.05: --ntasks is the number of all");
        const Given given{&option, std::string(argument.value), written, pos};
        if (fate.key != SbatchKey::ignored) {
            for (const Given& earlier : given_)
                if (earlier.option == given.option && earlier.value != given.value)
                    out_.report.drop(earlier.pos, earlier.written,
                                     fmt::format("overruled by {} on line {}", written, pos.line));
            if (given_.size() < 200) given_.push_back(given);
        }
        apply(fate, std::string(argument.value), pos, written);
    }

    void plugin(const sbatch::Argument& argument, SourcePos pos, const std::string& written) {
        if (argument.name == "container-image" && argument.has_value) {
            out_.run.image = replace_all(argument.value, "#", "/");  // enroot separates the registry with #
            return out_.report.take(pos, written, "image");
        }
        const bool folders = argument.name == "container-mounts" || argument.name == "container-workdir";
        out_.report.drop(pos, written,
                         folders ? "folders of the host are not shown to a container by this" : sbatch::kPlugin);
    }

    std::optional<int> whole(std::string_view text, SourcePos pos, const std::string& written, int most) {
        int value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most) return value;
        wrong(pos, fmt::format("{}: expected a whole number from 1 to {}", written, most));
        return std::nullopt;
    }

    std::optional<double> memory(std::string_view text, SourcePos pos, const std::string& written) {
        const auto bytes = sbatch::bytes_of(text);
        if (bytes && *bytes <= 1e15) return bytes;
        wrong(pos, fmt::format("{}: expected an amount of memory such as 16G", written));
        return std::nullopt;
    }

    // "4", "a100:4", "a100": of all, of a node or of a task.
    void gpus(std::string_view text, SourcePos pos, const std::string& written, std::optional<int>& count) {
        const std::string_view first = text.substr(0, text.find(','));
        if (first.size() != text.size())
            out_.report.drop(pos, written, "one kind of GPU can be asked for: the first is taken");
        std::string_view model, number = first;
        if (const std::size_t colon = first.rfind(':'); colon != std::string_view::npos) {
            model = first.substr(0, colon), number = first.substr(colon + 1);
        } else if (first.find_first_not_of("0123456789") != std::string_view::npos) {
            model = first, number = "1";
        }
        if (number == "0") return;
        count = whole(number, pos, written, 8192);
        if (!model.empty()) out_.run.gpu = model;
        gpu_pos_ = pos;
    }

    void apply(const sbatch::Fate& fate, const std::string& value, SourcePos pos, const std::string& written) {
        RunSection& run = out_.run;
        const auto took = [&](std::string became) { out_.report.take(pos, written, std::move(became)); };
        switch (fate.key) {
            case SbatchKey::name: out_.name = value; return took("name");
            case SbatchKey::nodes: {
                const std::size_t dash = value.find('-');
                nodes_ = whole(std::string_view(value).substr(0, dash), pos, written, kMostRanks);
                nodes_pos_ = pos, nodes_text_ = written;
                if (dash != std::string::npos) out_.report.drop(pos, written, "the least number of nodes is taken");
                return;
            }
            case SbatchKey::ntasks: ntasks_ = whole(value, pos, written, kMostRanks); return took("ranks");
            case SbatchKey::ntasks_per_node:
                per_node_ = whole(value, pos, written, kMostRanksOfNode);
                return took("ranks_per_node");
            case SbatchKey::cpus_per_gpu: cpus_per_gpu_ = whole(value, pos, written, 100'000); return took("cpus");
            case SbatchKey::cpus_per_task: cpus_ = whole(value, pos, written, 100'000); return took("cpus");
            case SbatchKey::mem:
                mem_ = memory(value, pos, written);
                return took("memory, shared by the ranks of a node");
            case SbatchKey::mem_per_cpu: mem_per_cpu_ = memory(value, pos, written); return took("memory");
            case SbatchKey::mem_per_gpu: mem_per_gpu_ = memory(value, pos, written); return took("memory");
            case SbatchKey::gres:
                for (const std::string_view part : split(value, ',')) {
                    if (part == "gpu" || part.starts_with("gpu:")) {
                        gpus(part == "gpu" ? "1" : part.substr(4), pos, written, gpus_node_);
                        took("gpus");
                    } else {
                        out_.report.drop(pos, written, fmt::format("{} is no GPU", printable(part, 40)));
                    }
                }
                return;
            case SbatchKey::gpus: gpus(value, pos, written, gpus_all_); return took("gpus");
            case SbatchKey::gpus_per_node: gpus(value, pos, written, gpus_node_); return took("gpus");
            case SbatchKey::gpus_per_task: gpus(value, pos, written, gpus_task_); return took("gpus");
            case SbatchKey::time: {
                const auto limit = sbatch::seconds_of(value);
                if (!limit)
                    return wrong(pos, fmt::format("{}: no time of Slurm", written),
                                 "expected minutes, hours:minutes:seconds or days-hours:minutes:seconds");
                if (*limit == 0 || std::isinf(*limit)) return took("no timeout");
                run.timeout = Seconds(*limit);
                run.at["timeout"] = pos;
                return took("timeout: " + format_seconds(*run.timeout));
            }
            case SbatchKey::chdir:
                run.folder = value;
                run.at["folder"] = pos;
                return took("folder");
            case SbatchKey::array: {
                const std::string range = value.substr(0, value.find('%')), limit = value.substr(range.size());
                // --array=5 is index 5, not five runs.
                auto array = parse_array(
                    (range.find_first_not_of("0123456789") == std::string::npos ? range + "-" + range : range) + limit);
                if (!array) return wrong(pos, fmt::format("{}: {}", written, array.error().message()));
                run.array = std::move(array->indices);
                run.parallel = array->parallel;
                run.at["array"] = pos;
                return took("array");
            }
            case SbatchKey::signal: return signal(value, pos, written);
            case SbatchKey::requeue: return took("attempts, as by default");
            case SbatchKey::no_requeue: run.attempts = 1; return took("attempts: 1");
            case SbatchKey::exports: return exports(value, pos, written);
            case SbatchKey::tmp:
                if (const auto bytes = memory(value, pos, written)) {
                    run.needs.emplace().disk = Bytes(*bytes);
                    took("requires.disk");
                }
                return;
            case SbatchKey::dependency:
                // Too early is not a little wrong: it would read what is not there yet.
                if (value.starts_with("after"))
                    return wrong(pos, written + " names jobs of a Slurm, and this run would not wait for them",
                                 "take it out, and name runs: stoker submit --after r-5:ok; or steps with `after` in "
                                 "one file");
                return out_.report.drop(pos, written, fate.why);
            case SbatchKey::ignored: return out_.report.drop(pos, written, fate.why);
        }
    }

    // [R:|B:]USR1@120: a signal so many seconds before the end.
    void signal(std::string_view value, SourcePos pos, const std::string& written) {
        while (value.starts_with("B:") || value.starts_with("R:")) value.remove_prefix(2);
        const std::size_t at = value.find('@');
        std::string name = upper(value.substr(0, at));
        if (name.starts_with("SIG")) name.erase(0, 3);
        const auto before =
            at == std::string_view::npos ? std::optional(60) : whole(value.substr(at + 1), pos, written, 65'535);
        if (!before) return;
        out_.run.grace = Seconds(*before);
        out_.report.take(pos, written, fmt::format("grace: {}s", *before));
        if (name != "TERM" && name != "15")
            out_.report.drop(pos, written,
                             fmt::format("the signal before the end is TERM, not {}; USR1 asks for a checkpoint",
                                         printable(name, 20)));
    }

    void exports(std::string_view value, SourcePos pos, const std::string& written) {
        for (const std::string_view part : split(value, ',')) {
            const std::string word = upper(part);
            if (word == "ALL" || word == "NONE" || word == "NIL" || part.empty()) {
                if (word == "ALL")
                    out_.report.drop(pos, "--export=" + std::string(part),
                                     "of the caller's environment the ranks see PATH, HOME and the like only");
                continue;
            }
            const std::size_t equals = part.find('=');
            if (equals == std::string_view::npos || equals == 0) {
                out_.report.drop(pos, std::string(part), "it has no value in the file; --env NAME=VALUE gives one");
                continue;
            }
            out_.run.environment[std::string(part.substr(0, equals))] = {std::string(part.substr(equals + 1)), pos};
            out_.report.take(pos, written, "environment");
        }
    }

    // Slurm starts the script once; srun starts the tasks. Here every rank is a task and runs the script when it calls
    // srun; without srun it is one rank with all that one node was asked for.
    void places() {
        RunSection& run = out_.run;
        const int nodes = nodes_.value_or(1);
        const int tasks = ntasks_.value_or(per_node_.value_or(1) * nodes);
        const int on_node = std::max(1, per_node_ ? *per_node_ : (tasks + nodes - 1) / nodes);
        const bool gang = !srun_lines_.empty();
        if (gang) {
            run.ranks = tasks;
            if (nodes_) {
                if (tasks % nodes == 0) {
                    run.nodes = nodes;
                    out_.report.take(nodes_pos_, nodes_text_, fmt::format("nodes: {}", nodes));
                } else {
                    out_.report.drop(
                        nodes_pos_, nodes_text_,
                        fmt::format("{} ranks cannot be spread evenly over {} nodes: as few as possible are taken",
                                    tasks, nodes));
                }
            }
            for (const SourcePos& pos : srun_lines_)
                out_.report.take(
                    pos, "srun",
                    tasks > 1
                        ? fmt::format("each of the {} ranks runs the script, and srun in it the command only", tasks)
                        : std::string("the command only: the rank runs it"));
        } else if (nodes > 1) {
            out_.report.drop(nodes_pos_, nodes_text_,
                             "the script calls no srun, so it would run on the first node only");
        } else if (nodes_) {
            out_.report.take(nodes_pos_, nodes_text_, "one node");
        }
        const int shared_by = gang ? on_node : 1;  // ranks that share a node's part
        const int tasks_in_rank = gang ? 1 : on_node;
        int cpus = cpus_.value_or(1) * tasks_in_rank;
        ntasks_in_script_ = tasks;
        if (cpus_) run.environment["SLURM_CPUS_PER_TASK"] = {std::to_string(*cpus_), {}};
        double gpus = 0;
        if (gpus_task_)
            gpus = static_cast<double>(*gpus_task_) * tasks_in_rank;
        else if (gpus_node_)
            gpus = static_cast<double>(*gpus_node_) / shared_by;
        else if (gpus_all_)
            gpus = gang ? static_cast<double>(*gpus_all_) / tasks : std::ceil(static_cast<double>(*gpus_all_) / nodes);
        if (gpus > 1 && gpus != std::floor(gpus)) {
            wrong(gpu_pos_, fmt::format("{:g} GPUs for each of the ranks: they cannot be shared out evenly", gpus));
        } else if (gpus > 16) {
            wrong(gpu_pos_, fmt::format("{:g} GPUs on one node, at most 16", gpus));
        } else if (gpus > 0) {
            run.gpus = gpus;
            run.at["gpus"] = gpu_pos_;
        }
        std::optional<double> bytes;
        if (cpus_per_gpu_ && !cpus_ && gpus > 0) cpus = static_cast<int>(std::ceil(*cpus_per_gpu_ * gpus));
        run.cpus = cpus;
        if (mem_ && *mem_ > 0) bytes = *mem_ / shared_by;
        if (mem_per_cpu_ && *mem_per_cpu_ > 0) bytes = *mem_per_cpu_ * cpus;
        if (mem_per_gpu_ && gpus > 0) bytes = *mem_per_gpu_ * gpus;
        if (bytes) run.memory = Bytes(*bytes);
    }

    // What Slurm tells a job beside what every rank is told anyway.
    std::string variables_of_job() const {
        std::string name = out_.name.empty() ? file_.substr(file_.rfind('/') + 1) : out_.name;
        name = replace_all(name, "'", "'\\''");
        std::string text = fmt::format(
            "export SLURM_JOB_ID=\"${{STOKER_RUN#r-}}\" SLURM_JOBID=\"${{STOKER_RUN#r-}}\" SLURM_JOB_NAME='{}' "
            "SLURM_SUBMIT_DIR=\"$PWD\" SLURM_JOB_PARTITION=stoker SLURM_NODELIST=\"$SLURM_JOB_NODELIST\" "
            "SLURMD_NODENAME=\"${{HOSTNAME:-localhost}}\" SLURM_CPUS_ON_NODE={:g}",
            name, out_.run.cpus.value_or(1));
        if (srun_lines_.empty() && ntasks_in_script_ > 1) text += fmt::format(" SLURM_NTASKS={}", ntasks_in_script_);
        if (per_node_) text += fmt::format(" SLURM_NTASKS_PER_NODE={}", *per_node_);
        if (gpus_node_) text += fmt::format(" SLURM_GPUS_PER_NODE={}", *gpus_node_);
        if (out_.run.gpus) text += fmt::format(" SLURM_GPUS_ON_NODE={:g}", *out_.run.gpus);
        if (out_.run.array) text += " SLURM_ARRAY_JOB_ID=\"${SLURM_ARRAY_JOB_ID:-${STOKER_RUN#r-}}\"";
        return text + "; export SLURM_NPROCS=\"$SLURM_NTASKS\"; ";
    }

    void command() {
        const SourcePos start{file_, 1, 1};
        std::vector<std::string> interpreter;
        if (text_.starts_with("#!")) {
            const std::string_view line = text_.substr(
                2, text_.find('\n') == std::string_view::npos ? std::string_view::npos : text_.find('\n') - 2);
            for (const std::string_view word : split_words(line)) interpreter.emplace_back(word);
        }
        if (interpreter.empty()) interpreter = {"/bin/sh"};
        const std::string last =
            interpreter.size() > 1 && !interpreter.back().starts_with('-') ? interpreter.back() : interpreter.front();
        const std::string program = last.substr(last.rfind('/') == std::string::npos ? 0 : last.rfind('/') + 1);
        const bool shell =
            program == "sh" || program == "bash" || program == "dash" || program == "zsh" || program == "ksh";
        if (!shell && !program.starts_with("python"))
            return wrong(start, fmt::format("a script for {} is not read", printable(program, 40)),
                         "scripts for sh, bash, dash, zsh, ksh and python are");
        interpreter.emplace_back("-c");
        std::string script(text_);
        if (shell) {
            // In place of the first line, so that the line numbers of the shell's messages stay those of the file.
            std::string first = variables_of_job();
            if (!srun_lines_.empty()) first += replace_all(kSrunFunction, "\n", " ");
            if (script.starts_with("#!"))
                script.replace(0, std::min(script.find('\n'), script.size()), first);
            else
                script.insert(0, first + "\n");
        }
        out_.run.command.script = true;
        out_.run.command.interpreter = std::move(interpreter);
        out_.run.command.words = {{std::move(script), start}};
        out_.run.command.pos = start;
        out_.run.at["command"] = out_.run.at[""] = start;
    }

    std::string_view text_;
    std::string file_;
    ImportedRun out_;
    Problems problems_;
    struct Given {
        const sbatch::Option* option;
        std::string value, written;
        SourcePos pos;
    };
    std::vector<Given> given_;
    std::vector<SourcePos> srun_lines_;
    std::map<std::string, std::string, std::less<>> variables_;  // of the script, where they are plain
    std::optional<int> nodes_, ntasks_, per_node_, cpus_, cpus_per_gpu_, gpus_all_, gpus_node_, gpus_task_;
    std::optional<double> mem_, mem_per_cpu_, mem_per_gpu_;
    SourcePos nodes_pos_, gpu_pos_;
    std::string nodes_text_;
    int ntasks_in_script_ = 1;
};

}  // namespace

Result<ImportedRun> import_sbatch(std::string_view text, const std::string& file) {
    // As it is after a way through Windows: a shell would take the carriage returns for words.
    const std::string plain = replace_all(text, "\r\n", "\n");
    return SbatchReader(plain, file).read();
}

}  // namespace stoker
