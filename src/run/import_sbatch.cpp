// #SBATCH scripts. Options as `man sbatch` of Slurm 24.05 describes them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "run/import_report.h"
#include "run/sbatch_options.h"

namespace stoker {
namespace {

using sbatch::kSbatchOptions;
using sbatch::kSrunFunction;
using sbatch::SbatchKey;
using sbatch::SbatchOption;

constexpr std::size_t kLongestScript = 31'000;  // a program's argument holds it
constexpr double kSlurmMiB = 1048576;

struct SbatchWord {
    std::string text;
    SourcePos pos;
};

// The words of one #SBATCH line: quotes group, a backslash takes the next letter as it is, # ends the line.
std::vector<SbatchWord> words_of(std::string_view line, std::size_t from, SourcePos pos) {
    std::vector<SbatchWord> words;
    std::size_t i = from;
    while (i < line.size()) {
        if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
            ++i;
            continue;
        }
        if (line[i] == '#') break;
        SbatchWord word{{}, pos};
        word.pos.column = static_cast<std::uint32_t>(i + 1);
        char quote = 0;
        for (; i < line.size(); ++i) {
            const char c = line[i];
            if (quote == 0 && (c == ' ' || c == '\t' || c == '\r')) break;
            if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else if (c == quote) {
                quote = 0;
            } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
                word.text += line[++i];
            } else {
                word.text += c;
            }
        }
        words.push_back(std::move(word));
    }
    return words;
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
        std::uint32_t number = 0;
        for (const std::string_view line : split_lines(text_)) {
            ++number;
            const SourcePos pos{file_, number, 1};
            if (line.starts_with("#SBATCH")) {
                if (body)
                    out_.report.drop(pos, printable(line, 60),
                                     "it comes after the first command, where Slurm ignores it too");
                else
                    directive(words_of(line, 7, pos));
                continue;
            }
            body = body || (!trim(line).empty() && trim(line).front() != '#');
            if (calls_srun(line) && srun_lines_.size() < 100) srun_lines_.push_back(pos);
        }
    }

    const SbatchOption* find_option(std::string_view name) {
        const SbatchOption* found = nullptr;
        for (const SbatchOption& option : kSbatchOptions) {
            if (name == option.name) return &option;
            if (!std::string_view(option.name).starts_with(name)) continue;
            if (found != nullptr && found->key != option.key) return nullptr;  // getopt calls that ambiguous
            found = &option;
        }
        return name.size() >= 3 ? found : nullptr;
    }

    void directive(const std::vector<SbatchWord>& words) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            const SbatchWord& word = words[i];
            if (word.text == "hetjob" || word.text == "packjob") {
                out_.report.drop(word.pos, word.text, "the parts of a heterogeneous job are read as one");
                continue;
            }
            if (word.text.size() < 2 || word.text[0] != '-') {
                out_.report.drop(word.pos, printable(word.text, 60), "no option");
                continue;
            }
            const SbatchOption* option = nullptr;
            std::optional<std::string> value;
            if (word.text[1] == '-') {
                const std::size_t equals = word.text.find('=');
                option = find_option(
                    std::string_view(word.text).substr(2, equals == std::string::npos ? equals : equals - 2));
                if (equals != std::string::npos) value = word.text.substr(equals + 1);
            } else {
                for (const SbatchOption& each : kSbatchOptions)
                    if (each.letter == word.text[1]) option = &each;
                if (word.text.size() > 2) value = word.text.substr(word.text[2] == '=' ? 3 : 2);
            }
            if (option == nullptr) {
                std::vector<std::string> known;
                for (const SbatchOption& each : kSbatchOptions) known.push_back(std::string("--") + each.name);
                const auto near = nearest(word.text.substr(0, word.text.find('=')), known);
                out_.report.drop(
                    word.pos, printable(word.text, 60),
                    near ? fmt::format("no option of sbatch (did you mean {}?)", *near) : "no option of sbatch");
                continue;
            }
            std::string written = word.text;
            if (option->argument == 'y' && !value) {
                if (i + 1 == words.size()) {
                    wrong(word.pos, fmt::format("{}: its value is missing", word.text));
                    continue;
                }
                value = words[++i].text;
                written += " " + *value;
            }
            apply(*option, value.value_or(""), word.pos, printable(written, 60));
        }
    }

    std::optional<int> whole(std::string_view text, SourcePos pos, const std::string& written, int most) {
        int value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most) return value;
        wrong(pos, fmt::format("{}: expected a whole number from 1 to {}", written, most));
        return std::nullopt;
    }

    // 4096 is MiB; K, M, G and T follow powers of 1024. 0 means all of a node.
    std::optional<double> memory(std::string_view text, SourcePos pos, const std::string& written) {
        double unit = kSlurmMiB;
        if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
        const std::string letters = upper(text.empty() ? "" : text.substr(text.size() - 1));
        if (letters == "K") unit = 1024;
        if (letters == "G") unit = 1024 * kSlurmMiB;
        if (letters == "T") unit = kSlurmMiB * kSlurmMiB;
        if (letters == "K" || letters == "M" || letters == "G" || letters == "T") text.remove_suffix(1);
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value * unit <= 1e15)
            return value * unit;
        wrong(pos, fmt::format("{}: expected an amount of memory such as 16G", written));
        return std::nullopt;
    }

    // minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]
    std::optional<double> seconds(std::string_view text) {
        double days = 0;
        const std::size_t dash = text.find('-');
        const auto number = [](std::string_view part) -> std::optional<double> {
            unsigned value = 0;
            const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
            if (error != std::errc() || end != part.data() + part.size() || value > 10'000'000) return std::nullopt;
            return value;
        };
        if (dash != std::string_view::npos) {
            const auto given = number(text.substr(0, dash));
            if (!given) return std::nullopt;
            days = *given;
            text = text.substr(dash + 1);
        }
        std::vector<double> parts;
        for (const std::string_view part : split(text, ':')) {
            const auto value = number(part);
            if (!value || parts.size() == 3) return std::nullopt;
            parts.push_back(*value);
        }
        if (dash != std::string_view::npos) {
            parts.resize(3);  // hours, minutes, seconds
            return days * 86'400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
        }
        if (parts.size() == 3) return parts[0] * 3600 + parts[1] * 60 + parts[2];
        return parts[0] * 60 + (parts.size() == 2 ? parts[1] : 0);
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

    void apply(const SbatchOption& option, const std::string& value, SourcePos pos, const std::string& written) {
        RunSection& run = out_.run;
        const auto took = [&](std::string became) { out_.report.take(pos, written, std::move(became)); };
        switch (option.key) {
            case SbatchKey::name: out_.name = value; return took("name");
            case SbatchKey::nodes: {
                const std::size_t dash = value.find('-');
                nodes_ = whole(std::string_view(value).substr(0, dash), pos, written, 512);
                nodes_pos_ = pos, nodes_text_ = written;
                if (dash != std::string::npos) out_.report.drop(pos, written, "the least number of nodes is taken");
                return;
            }
            case SbatchKey::ntasks: ntasks_ = whole(value, pos, written, 512); return took("ranks");
            case SbatchKey::ntasks_per_node: per_node_ = whole(value, pos, written, 512); return took("ranks_per_node");
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
                const std::string word = lower(value);
                if (word == "unlimited" || word == "infinite" || word == "-1" || word == "0") return took("no timeout");
                const auto limit = seconds(value);
                if (!limit || *limit <= 0)
                    return wrong(pos, fmt::format("{}: no time of Slurm", written),
                                 "expected minutes, hours:minutes:seconds or days-hours:minutes:seconds");
                run.timeout = Seconds(*limit);
                run.at["timeout"] = pos;
                return took("timeout: " + format_seconds(*run.timeout));
            }
            case SbatchKey::chdir:
                run.folder = value;
                run.at["folder"] = pos;
                return took("folder");
            case SbatchKey::array: {
                const std::size_t percent = value.find('%');
                if (percent != std::string::npos)
                    out_.report.drop(pos, written, "how many run at once is not limited: they start as there is room");
                const std::string range = value.substr(0, percent);
                // --array=5 is index 5, not five runs.
                auto indices = parse_array(
                    range.find_first_not_of("0123456789") == std::string::npos ? range + "-" + range : range);
                if (!indices) return wrong(pos, fmt::format("{}: {}", written, indices.error().message()));
                run.array = std::move(*indices);
                run.at["array"] = pos;
                return took("array");
            }
            case SbatchKey::signal: return signal(value, pos, written);
            case SbatchKey::requeue: return took("attempts, as by default");
            case SbatchKey::no_requeue: run.attempts = 1; return took("attempts: 1");
            case SbatchKey::exports: return exports(value, pos, written);
            case SbatchKey::image:
                run.image = replace_all(value, "#", "/");  // enroot separates the registry with #
                return took("image");
            case SbatchKey::tmp:
                if (const auto bytes = memory(value, pos, written)) {
                    run.needs.emplace().disk = Bytes(*bytes);
                    took("requires.disk");
                }
                return;
            case SbatchKey::ignored: return out_.report.drop(pos, written, option.why);
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
                    out_.report.drop(pos, written,
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
        if (out_.run.array) text += " SLURM_ARRAY_JOB_ID=\"${STOKER_RUN#r-}\"";
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
    std::vector<SourcePos> srun_lines_;
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
