// Launches, environments and the texts inside a script: what starts ranks or a model server, behind srun, docker run,
// env, numactl and their kin. Longer than 500 lines because the options of each starter are a table of their own.
#include <algorithm>

#include "lint/check.h"
#include "lint/read.h"
#include "lint/shell/directives.h"
#include "lint/shell/shell_values.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

using Words = std::vector<Value>;

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}
bool has_part(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::any_of(list.begin(), list.end(), [&](std::string_view part) { return contains_nocase(text, part); });
}
bool env_name(std::string_view text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

bool is_python(std::string_view name) {
    return name.starts_with("python") && name.size() <= 12 && name.find(".py") == std::string_view::npos;
}
bool starts_shell(std::string_view name) {
    return one_of(name, {"bash", "sh", "zsh", "dash", "ksh"});
}

// What a program does when its name says so.
std::optional<Launcher> launcher_of_program(std::string_view name) {
    if (name == "torchrun") return Launcher::torchrun;
    if (name == "deepspeed" || name == "ds" || name == "deepspeed.py") return Launcher::deepspeed;
    if (name == "accelerate-launch") return Launcher::accelerate;
    if (one_of(name, {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "horovodrun", "mpirun.openmpi", "prun"}))
        return Launcher::mpirun;
    if (name == "text-generation-launcher") return Launcher::tgi;
    if (name == "trtllm-serve") return Launcher::trtllm;
    if (name == "tritonserver") return Launcher::triton;
    if (one_of(name, {"llama-server", "aphrodite"})) return Launcher::other_server;
    return std::nullopt;
}
std::optional<Launcher> launcher_of_module(std::string_view name) {
    if (name == "torch.distributed.run" || name == "torch.distributed.elastic.run") return Launcher::torchrun;
    if (name == "torch.distributed.launch") return Launcher::torch_launch;
    if (name == "deepspeed" || name == "deepspeed.launcher.runner") return Launcher::deepspeed;
    if (name == "accelerate.commands.launch") return Launcher::accelerate;
    if (name == "vllm.entrypoints.openai.api_server" || name == "vllm.entrypoints.api_server" ||
        name == "vllm.entrypoints.cli.main")
        return Launcher::vllm;
    if (name == "sglang.launch_server") return Launcher::sglang;
    if (name.starts_with("dynamo.") || name.starts_with("fastchat.serve") || name.starts_with("lmdeploy.serve"))
        return Launcher::other_server;
    return std::nullopt;
}

bool trains_by_name(std::string_view program) {
    return has_part(base_name_of(program),
                    {"train", "finetun", "fine_tun", "fine-tun", "_sft", "sft_", "grpo", "rlhf"});
}
bool trains_by_option(std::string_view name) {
    return one_of(name, {"deepspeed", "fsdp", "fp16", "bf16", "tensor-model-parallel-size",
                         "pipeline-model-parallel-size", "micro-batch-size", "per-device-train-batch-size",
                         "mixed-precision", "deepspeed-config", "dist-backend", "world-size"});
}

// Options of the launcher itself that have no value.
bool launcher_switch(Launcher launcher, std::string_view name) {
    switch (launcher) {
        case Launcher::torchrun:
        case Launcher::torch_launch:
            return one_of(name, {"standalone", "no-python", "run-path", "use-env", "m", "module", "h", "help"});
        case Launcher::deepspeed:
            return one_of(name,
                          {"no-local-rank", "no-ssh-check", "no-ssh", "force-multi", "save-pid", "module", "no-python",
                           "bind-cores-to-rank", "elastic-training", "h", "help", "enable-elastic-training", "m"});
        case Launcher::accelerate:
            return one_of(name, {"multi-gpu",
                                 "use-deepspeed",
                                 "use-fsdp",
                                 "cpu",
                                 "tpu",
                                 "use-megatron-lm",
                                 "mps",
                                 "quiet",
                                 "q",
                                 "m",
                                 "module",
                                 "no-python",
                                 "same-network",
                                 "debug",
                                 "ipex",
                                 "downcast-bf16",
                                 "h",
                                 "help",
                                 "use-xpu",
                                 "tpu-use-cluster",
                                 "fp16",
                                 "mpirun-ccl",
                                 "enable-cpu-affinity"});
        default: return false;
    }
}
bool mpi_switch(std::string_view name) {
    return one_of(name, {"allow-run-as-root",
                         "oversubscribe",
                         "bind-to-none",
                         "tag-output",
                         "report-bindings",
                         "v",
                         "verbose",
                         "display-map",
                         "display-allocation",
                         "nooversubscribe",
                         "use-hwthread-cpus",
                         "q",
                         "bynode",
                         "byslot",
                         "help",
                         "h",
                         "V",
                         "version",
                         "l",
                         "merge-stderr-to-stdout",
                         "nolocal",
                         "do-not-launch",
                         "timestamp-output",
                         "prepend-rank",
                         "pernode",
                         "hybrid"});
}
bool srun_takes_value(std::string_view name, bool dashes) {
    if (!dashes) {
        if (name.size() > 1) return false;  // -N2
        return std::string_view("ABbCcDdeFGgiJLMmNnopqrSTtWwxa").find(name[0]) != std::string_view::npos;
    }
    if (const BatchOption* option = sbatch_option(name)) return option->value == 'y';
    if (name.starts_with("container-"))
        return one_of(name, {"container-image", "container-mounts", "container-workdir", "container-name",
                             "container-save", "container-env", "container-id"});
    return one_of(name,
                  {"mpi",     "cpu-bind",         "cpu_bind",    "mem-bind",   "mem_bind",     "epilog",
                   "prolog",  "task-prolog",      "task-epilog", "jobid",      "het-group",    "relative",
                   "threads", "max-exit-timeout", "gpu-bind",    "accel-bind", "slurmd-debug", "kill-on-invalid-dep",
                   "multi",   "pack-group",       "wait"});
}
bool docker_switch(std::string_view name, bool dashes) {
    if (!dashes) return name.find_first_not_of("itdPq") == std::string_view::npos;
    return one_of(name, {"rm", "privileged", "init", "read-only", "no-healthcheck", "oom-kill-disable", "publish-all",
                         "detach", "interactive", "tty", "sig-proxy", "quiet", "help"});
}
bool singularity_switch(std::string_view name, bool dashes) {
    if (!dashes) return name.find_first_not_of("cCefipu") == std::string_view::npos;
    return one_of(name, {"nv",         "rocm",     "writable", "writable-tmpfs", "contain",
                         "containall", "cleanenv", "no-home",  "fakeroot",       "userns",
                         "ipc",        "pid",      "net",      "nvccli",         "no-privs",
                         "keep-privs", "compat",   "unsquash", "no-init",        "disable-cache",
                         "no-eval",    "uts"});
}

class LaunchFinder {
public:
    LaunchFinder(File& file, const ReadOptions& options) : file_(&file), reading_(&file), options_(&options) {}
    // For words that do not stand in a script; nothing is written into the file.
    explicit LaunchFinder(const File& file) : reading_(&file) {}

    void run() {
        Script& script = file_->script;
        for (const Assignment& each : script.assignments)
            if (each.exported && !each.array) environment(each.name, each.value, each.span);
        for (std::size_t k = 0; k < script.commands.size(); ++k) {
            const Command& command = script.commands[k];
            if (!command.redirects.empty()) heredocs(k);
            if (command.words.empty()) continue;
            command_ = static_cast<int>(k);
            Launch launch;
            for (const Assignment& each : command.assignments) {
                if (each.array) continue;
                environment(each.name, each.value, each.span);
                launch.environment.push_back({each.name, each.value, each.span});
            }
            launch.span = command.span;
            if (program(command.words, 0, launch, 0)) file_->launches.push_back(std::move(launch));
        }
    }

    // The program at `at`; true when it is a launch.
    bool program(const Words& words, std::size_t at, Launch& launch, int depth) {
        if (depth > 8) return false;
        while (at < words.size()) {
            const Value& word = words[at];
            // X=1 before a program: behind env, sudo, or in a word that eval reads.
            if (const std::size_t equals = word.text.find('=');
                equals != std::string_view::npos && equals > 0 && env_name(word.text.substr(0, equals)) && at > 0) {
                env_word(word, equals, launch);
                ++at;
                continue;
            }
            if (!word.known()) return false;
            const std::string_view name = base_name_of(word.text);
            if (name.empty()) return false;
            if (one_of(name, {"nohup",     "exec", "command", "stdbuf", "unbuffer", "setsid",    "builtin",
                              "catchsegv", "sudo", "doas",    "nice",   "ionice",   "timeout",   "taskset",
                              "numactl",   "env",  "time",    "chrt",   "tini",     "dumb-init", "prlimit"})) {
                at = skip_prefix(words, at, name);
                continue;
            }
            if ((name == "nsys" || name == "ncu" || name == "nv-nsight-cu-cli" || name == "compute-sanitizer" ||
                 name == "dlprof" || name == "rocprof" || name == "nvprof" || name == "py-spy" || name == "strace")) {
                const std::size_t next = next_program(words, at + 1);
                if (next == words.size()) return false;
                at = next;
                continue;
            }
            if (name == "conda" || name == "mamba" || name == "micromamba" || name == "uv" || name == "poetry" ||
                name == "pipenv" || name == "pixi") {
                if (at + 1 >= words.size() || !words[at + 1].is("run")) return false;
                const std::size_t next = next_program(words, at + 2);
                if (next == words.size()) return false;
                at = next;
                continue;
            }
            if (name == "srun") {
                at = srun(words, at, launch);
                continue;
            }
            if (name == "docker" || name == "podman" || name == "nerdctl") {
                at = docker(words, at, launch);
                continue;
            }
            if (name == "singularity" || name == "apptainer") {
                at = singularity(words, at, launch);
                continue;
            }
            if (starts_shell(name)) return shell(words, at, launch);
            if (name == "eval") {
                guest_of_words(words, at + 1, launch);
                return false;
            }
            if (name == "sbatch") {
                wrapped(words, at, launch);
                return false;
            }
            return launcher(words, at, launch, depth);
        }
        return false;
    }

private:
    void environment(std::string_view name, const Value& value, Span span) {
        if (file_) file_->environment.push_back({name, value, span});
    }
    void env_word(const Value& word, std::size_t equals, Launch& launch) {
        EnvVar variable{word.text.substr(0, equals), part_of(word, equals + 1), word.span};
        environment(variable.name, variable.value, variable.span);
        launch.environment.push_back(std::move(variable));
    }
    // A text with NAME=value, or several with commas between them: -x, -e, --export.
    void env_list(const Value& value, Launch& launch, char separator) {
        std::size_t from = 0;
        while (from < value.text.size()) {
            std::size_t stop = separator == 0 ? value.text.size() : value.text.find(separator, from);
            stop = std::min(stop, value.text.size());
            const std::string_view item = value.text.substr(from, stop - from);
            const std::size_t equals = item.find('=');
            if (equals != std::string_view::npos && env_name(item.substr(0, equals))) {
                Value part = part_of(value, from + equals + 1);
                const std::size_t left = stop - from - equals - 1;
                if (part.text.size() > left) {
                    part.text = part.text.substr(0, left);
                    part.span.end = std::min(part.span.end, part.span.begin + static_cast<std::uint32_t>(left));
                }
                EnvVar variable{item.substr(0, equals), part, part.span};
                environment(variable.name, variable.value, variable.span);
                launch.environment.push_back(std::move(variable));
            }
            from = stop + 1;
        }
    }

    static std::size_t skip_prefix(const Words& words, std::size_t at, std::string_view name) {
        std::string_view with_value;  // letters of options that have a value
        int positional = 0;
        if (name == "sudo" || name == "doas")
            with_value = "ugChpTrt";
        else if (name == "nice" || name == "ionice")
            with_value = "ncp";
        else if (name == "timeout")
            with_value = "ks", positional = 1;
        else if (name == "taskset")
            positional = 1;
        else if (name == "numactl")
            with_value = "NCmilp";
        else if (name == "env")
            with_value = "uCS";
        else if (name == "stdbuf")
            with_value = "ioe";
        else if (name == "chrt")
            positional = 1;
        else if (name == "exec")
            with_value = "a";
        ++at;
        while (at < words.size()) {
            const std::string_view text = words[at].text;
            if (text == "--") return at + 1;
            if (text.size() > 1 && text[0] == '-') {
                const bool value = text.size() == 2 && with_value.find(text[1]) != std::string_view::npos;
                const bool long_value = name == "numactl" && text.starts_with("--") &&
                                        text.find('=') == std::string_view::npos && text != "--all" &&
                                        text != "--localalloc" && text != "--strict";
                at += value || long_value ? 2 : 1;
                continue;
            }
            if (positional == 0) break;
            --positional;
            ++at;
        }
        return at;
    }
    // Behind a profiler or "conda run", whose options are many: the first word that names a program we know.
    static std::size_t next_program(const Words& words, std::size_t at) {
        for (; at < words.size(); ++at) {
            if (!words[at].known()) continue;
            const std::string_view name = base_name_of(words[at].text);
            if (is_python(name) || launcher_of_program(name) || starts_shell(name) ||
                one_of(name, {"accelerate", "vllm", "env", "numactl", "srun"}))
                return at;
        }
        return at;
    }

    std::size_t srun(const Words& words, std::size_t at, Launch& launch) {
        launch.under_srun = true;
        launch.word = words[at].span;
        launch.source = words[at].source;
        ++at;
        WordOption option;
        while (at < words.size()) {
            const bool dashed = words[at].text.starts_with("--") || words[at].text.starts_with("\"--");
            if (is_open_word(words[at])) {
                // srun $OPTIONS program: options while a program that can be read follows.
                launch.open = true;
                ++at;
                continue;
            }
            if (!read_option(words, at, option, [&](std::string_view name) { return srun_takes_value(name, dashed); }))
                break;
            std::string_view name = option.name;
            if (!option.dashes && !name.empty()) {
                const BatchOption* known = sbatch_letter(name[0]);
                if (name.size() > 1 && !option.value.present()) option.value = part_of(words[at], 2);
                if (known) name = known->name;
            } else if (const BatchOption* known = sbatch_option(name)) {
                name = known->name;
            }
            launch.launcher_options.push_back({name, option.value, option.span});
            if (name == "ntasks-per-node")
                launch.srun_tasks_per_node = option.value;
            else if (name == "nodes")
                launch.srun_nodes = option.value;
            else if (name == "export")
                env_list(option.value, launch, ',');
            else if (name == "container-env")
                env_list(option.value, launch, ',');
            at = option.next;
        }
        // -n 8 -N 1 is eight per node too.
        return at;
    }

    std::size_t docker(const Words& words, std::size_t at, Launch& launch) {
        ++at;
        while (at < words.size() && words[at].known() && words[at].text.starts_with("-")) ++at;
        if (at < words.size() && words[at].is("compose")) return words.size();
        if (at >= words.size() || !one_of(words[at].text, {"run", "exec", "create"})) return words.size();
        ++at;
        WordOption option;
        while (at < words.size()) {
            if (is_open_word(words[at])) {
                launch.open = true;
                ++at;
                // "$IMAGE" behind the options: what follows is the program.
                continue;
            }
            const bool dashed = words[at].text.starts_with("--");
            if (!read_option(words, at, option, [&](std::string_view name) { return !docker_switch(name, dashed); })) {
                if (launch.open && next_program(words, at) == at) return at;
                return at + 1;  // the image
            }
            if (option.name == "e" || option.name == "env") env_list(option.value, launch, 0);
            at = option.next;
        }
        return at;
    }

    std::size_t singularity(const Words& words, std::size_t at, Launch& launch) {
        ++at;
        while (at < words.size() && words[at].known() && words[at].text.starts_with("-")) ++at;
        if (at >= words.size() || !one_of(words[at].text, {"exec", "run"})) return words.size();
        ++at;
        WordOption option;
        while (at < words.size()) {
            const bool dashed = words[at].text.starts_with("--");
            if (!read_option(words, at, option,
                             [&](std::string_view name) { return !singularity_switch(name, dashed); }))
                return at + 1;  // the image
            if (option.name == "env") env_list(option.value, launch, ',');
            at = option.next;
        }
        return at;
    }

    // bash -c "...": a text of its own.
    bool shell(const Words& words, std::size_t at, Launch& launch) {
        bool command = false;
        std::size_t k = at + 1;
        for (; k < words.size() && words[k].known() && words[k].text.starts_with("-") && words[k].text.size() > 1;
             ++k) {
            if (words[k].text == "--") continue;
            if (!words[k].text.starts_with("--") && words[k].text.find('c') != std::string_view::npos) command = true;
            if (words[k].text == "-o" || words[k].text == "--rcfile") ++k;
        }
        if (!command || k >= words.size()) {
            // A script in a container of the GPU kind under srun is GPU work; what it does is not seen.
            return launch.under_srun && k < words.size() && under_srun_script(words[k], launch);
        }
        const bool gpu = launch.under_srun && gpu_container(launch);
        if (file_) {
            File* guest = guest_of_words(words, k, launch, k + 1);
            const bool seen = guest && (!guest->launches.empty() || !guest->guests.empty());
            if (seen) return false;
            // What trains inside a container is a script whose name alone can be seen.
            bool trains = false;
            if (guest && launch.under_srun && in_container(launch))
                for (const Command& each : guest->script.commands)
                    trains |= each.name().ends_with(".sh") && trains_by_name(each.name());
            if (!gpu && !trains) return false;
        } else if (!gpu) {
            return false;
        }
        launch.launcher = Launcher::srun;
        launch.program = words[k];
        launch.open = true;
        finish(launch);
        return true;
    }
    static bool in_container(const Launch& launch) {
        for (const LaunchOption& option : launch.launcher_options)
            if (option.name == "container-image") return true;
        return false;
    }
    static bool gpu_container(const Launch& launch) {
        for (const LaunchOption& option : launch.launcher_options)
            if (option.name == "container-image" && option.value.known() && is_gpu_image(option.value.text))
                return true;
        return false;
    }
    bool under_srun_script(const Value& script, Launch& launch) {
        if (!gpu_container(launch)) return false;
        launch.launcher = Launcher::srun;
        launch.program = script;
        launch.open = true;
        finish(launch);
        return true;
    }

    // The words from `at` on as a script: eval, bash -c.
    File* guest_of_words(const Words& words, std::size_t at, const Launch& launch, std::size_t end = 1u << 20) {
        if (!file_ || at >= words.size()) return nullptr;
        if (!values_) values_ = std::make_unique<ShellValues>(*file_);
        const Source& source = file_->source();
        std::string text;
        std::vector<Piece> pieces;
        Span last;
        for (; at < words.size() && at < end; ++at) {
            const Span raw = ShellValues::raw(words[at], source);
            if (raw == last || (words[at].source != &source && words[at].use_source != &source)) continue;
            last = raw;
            GuestText part = guest_of_runs(values_->expand(raw), source, raw);
            if (!text.empty() && !part.text.empty()) {
                pieces.push_back(
                    {static_cast<std::uint32_t>(text.size()), 1, {raw.begin, raw.begin}, Piece::Kind::changed});
                text += ' ';
            }
            for (Piece piece : part.pieces) {
                piece.guest += static_cast<std::uint32_t>(text.size());
                pieces.push_back(piece);
            }
            text += part.text;
        }
        return guest(std::move(text), std::move(pieces), {Kind::launch}, launch);
    }
    File* guest(std::string text, std::vector<Piece> pieces, Kinds kinds, const Launch& launch) {
        // Variables can make a guest larger than what it stands in, three levels deep: bounded by the size of the host.
        const std::size_t size = file_->source().text().size();
        guest_bytes_ += text.size();
        if (guest_bytes_ > (file_->host ? 2 * size + 4096 : 4 * size + 16384)) return nullptr;
        File* made = read_guest(*file_, std::move(text), std::move(pieces), kinds, *options_);
        if (made)
            for (Launch& each : made->launches) each.host_command = command_;
        if (made && launch.under_srun)
            for (Launch& each : made->launches) {
                each.under_srun = true;
                if (each.launcher == Launcher::python) {  // a rank per task
                    each.launcher = Launcher::srun;
                    if (each.nodes.absent()) each.nodes = launch.srun_nodes;
                    if (each.per_node.absent()) each.per_node = launch.srun_tasks_per_node;
                }
                if (each.srun_nodes.absent()) each.srun_nodes = launch.srun_nodes;
                if (each.srun_tasks_per_node.absent()) each.srun_tasks_per_node = launch.srun_tasks_per_node;
            }
        return made;
    }

    void wrapped(const Words& words, std::size_t at, Launch& launch) {
        WordOption option;
        for (std::size_t k = at + 1; k < words.size(); k = std::max(k + 1, option.next)) {
            option.next = 0;
            if (!read_option(words, k, option, [&](std::string_view name) { return srun_takes_value(name, true); }))
                continue;
            if (option.name == "wrap" && words[k].source == &reading_->source() && file_) {
                if (words[k].text.find('=') == std::string_view::npos) {
                    guest_of_words(words, k + 1, launch, k + 2);
                } else if (option.value.known() && option.value.span.size() == option.value.text.size()) {
                    const Span span = option.value.span;
                    guest(std::string(option.value.text), {{0, span.size(), span, Piece::Kind::verbatim}},
                          {Kind::launch}, launch);
                }
            }
        }
    }

    // Of --nnodes=$N the value is where N gets it.
    Value follow(Value part) {
        if (!file_ || !part.known() || part.source != &file_->source() || part.use_source) return part;
        const std::string_view raw = part.source->text(part.span);
        if (!raw.starts_with('$') && !raw.starts_with("\"$")) return part;
        if (!values_) values_ = std::make_unique<ShellValues>(*file_);
        Value value = values_->value(part.span);
        return value.known() && value.text == part.text ? value : part;
    }

    void add_option(std::vector<LaunchOption>& list, const File& file, const WordOption& option) {
        std::string_view name = option.name;
        if (name.find('_') != std::string_view::npos) {
            std::string changed(name);
            std::replace(changed.begin(), changed.end(), '_', '-');
            name = const_cast<File&>(file).tree.keep(std::move(changed));
        }
        list.push_back({name, follow(option.value), option.span});
    }

    // The options of the program from `at` on.
    void program_options(const Words& words, std::size_t at, Launch& launch) {
        WordOption option;
        while (at < words.size()) {
            const Value& word = words[at];
            if (read_option(words, at, option, [&](std::string_view) {
                    if (at + 1 >= words.size()) return false;
                    const std::string_view next = words[at + 1].text;
                    if (is_open_word(words[at + 1])) return true;
                    return next.size() < 2 || next[0] != '-' || (next[1] >= '0' && next[1] <= '9') || next[1] == '.';
                })) {
                add_option(launch.options, *reading_, option);
                at = option.next;
                continue;
            }
            if (is_open_word(word)) launch.open = true;
            // model.tensor_model_parallel_size=8 of Hydra
            const std::size_t equals = word.text.find('=');
            if (equals != std::string_view::npos && equals > 0 && word.text.find_first_of("$\"' /") > equals) {
                option.name = word.text.substr(0, equals);
                while (option.name.starts_with('+')) option.name.remove_prefix(1);
                option.value = part_of(word, equals + 1);
                option.span = word.span;
                add_option(launch.options, *reading_, option);
            }
            ++at;
        }
    }

    void finish(Launch& launch) {
        launch.file = reading_;
        launch.command = command_;
        if (!launch.source) launch.source = &reading_->source();
    }

    bool launcher(const Words& words, std::size_t at, Launch& launch, int depth) {
        const Value& word = words[at];
        const std::string_view name = base_name_of(word.text);
        launch.word = word.span;
        launch.source = word.source;
        std::optional<Launcher> kind = launcher_of_program(name);
        std::size_t next = at + 1;
        if (kind == Launcher::mpirun) return mpirun(words, at, launch, depth);
        if (!kind && name == "accelerate") {
            if (next >= words.size() || !words[next].is("launch")) return false;
            kind = Launcher::accelerate;
            ++next;
        } else if (!kind && name == "vllm") {
            if (next >= words.size() || !words[next].is("serve")) return false;
            kind = Launcher::vllm;
            ++next;
        } else if (!kind && (name == "ollama" || name == "lmdeploy" || name == "sglang")) {
            if (next >= words.size() || !words[next].is("serve")) return false;
            kind = name == "sglang" ? Launcher::sglang : Launcher::other_server;
            ++next;
        } else if (!kind && (name == "llamafactory-cli" || name == "axolotl")) {
            if (next >= words.size() || !words[next].is("train")) return false;
            kind = Launcher::python;
            ++next;
        } else if (!kind && is_python(name)) {
            return python(words, at, launch);
        } else if (!kind && word.text.ends_with(".py")) {
            return plain_program(words, at, launch);
        }
        if (!kind && next < words.size() && words[next].known() && depth < 4 &&
            (launch.under_srun || word.text.find('/') != std::string_view::npos)) {
            // A wrapper of the user's: nsys-exec torchrun ...
            const std::string_view inner = base_name_of(words[next].text);
            if (inner == "torchrun" || inner == "deepspeed" || inner == "accelerate-launch")
                return launcher(words, next, launch, depth + 1);
        }
        if (!kind) {
            if (launch.under_srun && (gpu_container(launch) || name.ends_with("_perf"))) {
                launch.launcher = Launcher::srun;
                launch.program = word;
                program_options(words, next, launch);
                finish(launch);
                return true;
            }
            return false;
        }
        launch.launcher = *kind;
        ranks(words, next, launch);
        finish(launch);
        return true;
    }

    bool python(const Words& words, std::size_t at, Launch& launch) {
        std::size_t k = at + 1;
        for (; k < words.size(); ++k) {
            const std::string_view text = words[k].text;
            if (!words[k].known() || text.size() < 2 || text[0] != '-') break;
            if (text == "-m" || text == "-c") break;
            if (text == "-X" || text == "-W") ++k;
        }
        if (k >= words.size() || words[k].is("-c")) return false;
        if (words[k].is("-m")) {
            if (++k >= words.size() || !words[k].known()) return false;
            if (const auto kind = launcher_of_module(words[k].text)) {
                launch.launcher = *kind;
                launch.word = words[k].span;
                launch.source = words[k].source;
                ranks(words, k + 1, launch);
                finish(launch);
                return true;
            }
        } else if (words[k].known() && base_name_of(words[k].text) == "launch.py" &&
                   words[k].text.find("torch/distributed") != std::string_view::npos) {
            launch.launcher = Launcher::torch_launch;
            launch.word = words[k].span;
            launch.source = words[k].source;
            ranks(words, k + 1, launch);
            finish(launch);
            return true;
        }
        return plain_program(words, k, launch);
    }

    // A program without a launcher: of interest when it trains, or when srun makes a rank of each task.
    bool plain_program(const Words& words, std::size_t at, Launch& launch) {
        launch.program = words[at];
        launch.launcher = launch.under_srun ? Launcher::srun : Launcher::python;
        launch.options = launch.launcher_options;
        const std::size_t own = launch.options.size();
        program_options(words, at + 1, launch);
        bool trains = false;
        for (std::size_t k = own; k < launch.options.size(); ++k) trains |= trains_by_option(launch.options[k].name);
        const bool by_name = launch.program.known() && trains_by_name(launch.program.text);
        trains |= by_name && (launch.under_srun || has_part(launch.program.text, {"pretrain", "finetun"}));
        trains |= launch.under_srun && gpu_container(launch);
        if (!trains) {
            launch.options.clear();
            return false;
        }
        if (launch.under_srun) {
            launch.nodes = launch.srun_nodes;
            launch.per_node = launch.srun_tasks_per_node;
        }
        finish(launch);
        return true;
    }

    bool mpirun(const Words& words, std::size_t at, Launch& launch, int depth) {
        launch.launcher = Launcher::mpirun;
        std::size_t k = at + 1;
        bool nccl = false;
        WordOption option;
        while (k < words.size()) {
            if (is_open_word(words[k])) {
                launch.open = true;
                ++k;
                continue;
            }
            if (!read_option(words, k, option, [&](std::string_view name) { return !mpi_switch(name); })) break;
            std::string_view name = option.name;
            if ((name == "mca" || name == "gmca" || name == "genv" || name == "env" || name == "prtemca") &&
                option.next < words.size()) {  // two words
                if (name == "genv" || name == "env") {
                    const Value& key = words[k + 1];
                    if (key.known() && env_name(key.text)) {
                        environment(key.text, words[option.next], words[option.next].span);
                        launch.environment.push_back({key.text, words[option.next], words[option.next].span});
                    }
                }
                ++option.next;
            } else if (name == "x") {
                env_list(option.value, launch, 0);
                nccl |= option.value.text.starts_with("NCCL_");
            } else if (name == "npernode" || name == "ppn" || name == "perhost" || name == "N") {
                launch.per_node = option.value;
            }
            add_option(launch.launcher_options, *reading_, option);
            k = option.next;
        }
        launch.options = launch.launcher_options;
        Launch inner;
        inner.under_srun = false;
        if (k < words.size()) {
            launch.program = words[k];
            program_options(words, k + 1, launch);
            const std::string_view name = words[k].known() ? base_name_of(words[k].text) : std::string_view();
            nccl |= name.ends_with("_perf") || is_python(name) || name.ends_with(".py");
            if (program(words, k, inner, depth + 1)) nccl = true;
            if (name == "python" || is_python(name)) {
                nccl = inner.file != nullptr;
                for (const LaunchOption& each : launch.options) nccl |= trains_by_option(each.name);
                for (const EnvVar& each : launch.environment) nccl |= each.name.starts_with("NCCL_");
            }
        }
        for (const EnvVar& each : launch.environment) nccl |= each.name.starts_with("NCCL_");
        if (!nccl) return false;
        finish(launch);
        return true;
    }

    static std::string_view dashed(std::string_view name, std::string& buffer) {
        if (name.find('_') == std::string_view::npos) return name;
        buffer.assign(name);
        std::replace(buffer.begin(), buffer.end(), '_', '-');
        return buffer;
    }

    // The launcher's own options, the program, and its options.
    void ranks(const Words& words, std::size_t at, Launch& launch) {
        const Launcher kind = launch.launcher;
        std::string buffer;
        const bool server = is_server(kind);
        launch.launcher_options.clear();  // those of an srun in front stay in its own words
        if (!server && kind != Launcher::python) {
            WordOption option;
            bool module = false;
            while (at < words.size()) {
                if (is_open_word(words[at])) {
                    // $DISTRIBUTED_ARGS: options as a rule; a script when nothing else can be one.
                    launch.open = true;
                    launch.program = words[at];
                    ++at;
                    continue;
                }
                if (!read_option(words, at, option,
                                 [&](std::string_view name) { return !launcher_switch(kind, dashed(name, buffer)); })) {
                    if (words[at].is("\\") || words[at].text.empty()) {
                        ++at;
                        continue;
                    }
                    break;
                }
                add_option(launch.launcher_options, *reading_, option);
                const std::string_view name = launch.launcher_options.back().name;
                at = option.next;
                if (name == "m" || name == "module") {
                    module = true;
                    if (option.value.present()) {
                        launch.program = option.value;
                        break;
                    }
                }
            }
            if (at < words.size() && !(module && launch.program.known())) launch.program = words[at++];
        } else if (server && at < words.size() && words[at].known() && !words[at].text.starts_with("-")) {
            launch.program = words[at++];  // the model
        }
        launch.options = launch.launcher_options;
        program_options(words, at, launch);
        const auto take = [&](std::initializer_list<std::string_view> names) -> Value {
            Value found;
            const auto& list = server ? launch.options : launch.launcher_options;
            for (const LaunchOption& option : list)
                if (one_of(option.name, names) && option.value.present()) found = option.value;
            return found;
        };
        switch (kind) {
            case Launcher::torchrun:
            case Launcher::torch_launch:
                launch.nodes = take({"nnodes"});
                launch.per_node = take({"nproc-per-node"});
                launch.master = take({"master-addr", "rdzv-endpoint"});
                break;
            case Launcher::deepspeed:
                launch.nodes = take({"num-nodes"});
                launch.per_node = take({"num-gpus"});
                launch.master = take({"master-addr"});
                break;
            case Launcher::accelerate:
                launch.nodes = take({"num-machines"});
                if (launch.nodes.absent() || launch.nodes.is("1")) launch.per_node = take({"num-processes"});
                launch.master = take({"main-process-ip"});
                break;
            case Launcher::vllm: launch.per_node = take({"tensor-parallel-size", "tp"}); break;
            case Launcher::sglang:
                launch.per_node = take({"tp", "tp-size", "tensor-parallel-size"});
                launch.nodes = take({"nnodes"});
                break;
            case Launcher::tgi: launch.per_node = take({"num-shard"}); break;
            case Launcher::trtllm: launch.per_node = take({"tp-size", "tp"}); break;
            default: break;
        }
        if (launch.program.absent() && server) launch.program = take({"model", "model-id", "model-path"});
    }

    // ---- Heredocs: only where another program reads them as code ------------------------------------------------
    void heredocs(std::size_t k) {
        const Command& command = file_->script.commands[k];
        for (const Redirect& redirect : command.redirects) {
            if ((redirect.op != "<<" && redirect.op != "<<-") || redirect.body.empty()) continue;
            std::string_view path;
            Kinds kinds;
            if (!reader(k, path, kinds)) continue;
            embed(redirect, path, kinds);
        }
    }
    // Who reads the body of command `k`: false when it is no code.
    bool reader(std::size_t k, std::string_view& path, Kinds& kinds) const {
        const auto& commands = file_->script.commands;
        const Command& command = commands[k];
        std::string_view name = command.words.empty() ? std::string_view() : command.name();
        std::size_t first = 0;
        if (name == "sudo" && command.words.size() > 1) {
            first = 1;
            while (first < command.words.size() && command.words[first].text.starts_with("-")) ++first;
            name = first < command.words.size() ? command.words[first].text : std::string_view();
        }
        name = base_name_of(name);
        if (name == "cat" || name == "tee" || name.empty()) {
            for (const Redirect& redirect : command.redirects)
                if ((redirect.op == ">" || redirect.op == ">>" || redirect.op == ">|") && redirect.target.present()) {
                    path = redirect.target.text;
                    return true;
                }
            if (name == "tee")
                for (std::size_t j = first + 1; j < command.words.size(); ++j)
                    if (!command.words[j].text.starts_with("-")) {
                        path = command.words[j].text;
                        return true;
                    }
            for (std::size_t j = k + 1; j < commands.size() && commands[j].pipeline == command.pipeline; ++j)
                if (reads_code(commands[j], kinds, path)) return true;
            return false;
        }
        return reads_code(command, kinds, path);
    }
    static bool reads_code(const Command& command, Kinds& kinds, std::string_view& path) {
        std::string_view name = base_name_of(command.name());
        std::size_t at = 0;
        if (name == "sudo" && command.words.size() > 1) name = base_name_of(command.words[at = 1].text);
        if (one_of(name, {"kubectl", "oc", "k3s", "microk8s"})) {
            for (const Value& word : command.words)
                if (word.is("-") || word.is("-f-")) {
                    kinds = {Kind::k8s};
                    return true;
                }
            return false;
        }
        if (name == "sbatch") {
            kinds = {Kind::slurm, Kind::launch};
            return true;
        }
        if (starts_shell(name)) {
            for (std::size_t k = at + 1; k < command.words.size(); ++k)
                if (!command.words[k].text.starts_with("-")) return false;
            kinds = {Kind::launch};
            return true;
        }
        if (name == "tee")
            for (std::size_t k = at + 1; k < command.words.size(); ++k)
                if (!command.words[k].text.starts_with("-")) {
                    path = command.words[k].text;
                    return true;
                }
        return false;
    }
    void embed(const Redirect& redirect, std::string_view path, Kinds kinds) {
        const Source& source = file_->source();
        const Span body = redirect.body;
        std::string text;
        std::vector<Piece> pieces;
        bool unknown = false;
        const std::string_view written = source.text(body);
        if (redirect.literal || written.find_first_of("$`\\") == std::string_view::npos) {
            text = written;
            pieces.push_back({0, body.size(), body, Piece::Kind::verbatim});
        } else {
            if (!values_) values_ = std::make_unique<ShellValues>(*file_);
            const Expanded expanded = values_->expand_body(body);
            unknown = !expanded.known;
            GuestText guest = guest_of_runs(expanded, source, body);
            text = std::move(guest.text);
            pieces = std::move(guest.pieces);
        }
        if (redirect.op == "<<-") {  // leading tabs go: keep the text as it is where that matters little
            if (text.find("\n\t") != std::string::npos && !kinds.any({Kind::launch, Kind::slurm})) return;
        }
        if (!path.empty() && path.find('$') != std::string_view::npos && path.rfind('.') == std::string_view::npos)
            path = {};
        if (kinds.empty()) kinds = classify(base_name_of(path), text);
        if (kinds.empty()) return;
        // A gap in JSON or HCL is no JSON any more.
        if (unknown && kinds.any({Kind::deepspeed, Kind::arm, Kind::grafana, Kind::terraform, Kind::bicep})) return;
        Launch none;
        guest(std::move(text), std::move(pieces), kinds, none);
    }

    File* file_ = nullptr;
    const File* reading_;
    const ReadOptions* options_ = nullptr;
    std::unique_ptr<ShellValues> values_;
    int command_ = -1;
    std::size_t guest_bytes_ = 0;
};

}  // namespace

void find_launches(File& file, const ReadOptions& options) {
    if (file.script.commands.empty() && file.script.assignments.empty()) return;
    LaunchFinder(file, options).run();
}

std::optional<Launch> launch_of_words(const File& file, const std::vector<Value>& words, Span span) {
    Launch launch;
    launch.span = span;
    LaunchFinder finder(file);
    if (words.empty() || !finder.program(words, 0, launch, 0)) return std::nullopt;
    launch.command = -1;
    return launch;
}

}  // namespace stoker::lint
