// What a launcher is told: its own options, the program, and the options of that.
#include <algorithm>

#include "lint/check.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

namespace {

std::string_view dashed(std::string_view name, std::string& buffer) {
    if (name.find('_') == std::string_view::npos) return name;
    buffer.assign(name);
    std::replace(buffer.begin(), buffer.end(), '_', '-');
    return buffer;
}

}  // namespace

// Of --nnodes=$N the value is where N gets it.
Value LaunchFinder::follow(Value part) {
    if (!file_ || !part.known() || part.source != &file_->source() || part.use_source) return part;
    const std::string_view raw = part.source->text(part.span);
    if (!raw.starts_with('$') && !raw.starts_with("\"$")) return part;
    const Value value = ShellValues::of(*file_).value(part.span);
    return value.known() && value.text == part.text ? value : part;
}

void LaunchFinder::add_option(std::vector<LaunchOption>& list, const File& file, const WordOption& option) {
    std::string_view name = option.name;
    if (name.find('_') != std::string_view::npos) {
        std::string changed(name);
        std::replace(changed.begin(), changed.end(), '_', '-');
        name = const_cast<File&>(file).tree.keep(std::move(changed));
    }
    list.push_back({name, follow(option.value), option.span});
}

// The options of the program from `at` on.
void LaunchFinder::program_options(const Words& words, std::size_t at, Launch& launch) {
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

void LaunchFinder::finish(Launch& launch) {
    launch.file = reading_;
    launch.command = command_;
    if (!launch.source) launch.source = &reading_->source();
}

bool LaunchFinder::launcher(const Words& words, std::size_t at, Program program, Launch& launch, int depth) {
    const Value& word = words[at];
    const std::string_view name = base_name_of(word.text);
    launch.word = word.span;
    launch.source = word.source;
    std::optional<Launcher> kind;
    if (program == Program::launcher) kind = launcher_of_program(name);
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
    } else if (!kind && (name == "swift" || name == "megatron")) {
        if (next >= words.size() || !words[next].known() || !one_of(words[next].text, {"sft", "pt", "rlhf"}))
            return false;
        kind = Launcher::python;
        ++next;
    } else if (!kind && program == Program::python) {
        return python(words, at, launch);
    } else if (!kind && word.text.ends_with(".py")) {
        return plain_program(words, at, launch);
    }
    if (!kind && next < words.size() && words[next].known() && depth < 4 &&
        (launch.under_srun || word.text.find('/') != std::string_view::npos)) {
        // A wrapper of the user's: nsys-exec torchrun ...
        const std::string_view inner = base_name_of(words[next].text);
        if (inner == "torchrun" || inner == "deepspeed" || inner == "accelerate-launch")
            return launcher(words, next, Program::launcher, launch, depth + 1);
    }
    if (!kind && launch.under_srun && depth < 4)
        // A container tool of the site in front of a shell: srun shifter --volume=/data bash -c "...".
        for (std::size_t k = next; k + 1 < words.size(); ++k)
            if (words[k].known() && words[k + 1].known() && program_of(base_name_of(words[k].text)) == Program::shell &&
                words[k + 1].text.starts_with('-') && !words[k + 1].text.starts_with("--") &&
                words[k + 1].text.ends_with('c'))
                return shell(words, k, launch);
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
    if (*kind == Launcher::python) told_by_environment(launch);
    finish(launch);
    return true;
}

// ms-swift and LLaMA-Factory start torchrun with what the environment says (swift/cli/main.py,
// llamafactory/launcher.py).
void LaunchFinder::told_by_environment(Launch& launch) {
    const auto value_of = [&](std::string_view name) {
        Value found;
        for (const EnvVar& each : reading_->environment)
            if (each.name == name) found = each.value;
        for (const EnvVar& each : launch.environment)
            if (each.name == name) found = each.value;
        return found;
    };
    launch.nodes = value_of("NNODES");
    launch.per_node = value_of("NPROC_PER_NODE");
    if (launch.nodes.present() || launch.per_node.present()) launch.launcher = Launcher::torchrun;
    launch.master = value_of("MASTER_ADDR");
    if (const Value rank = value_of("NODE_RANK"); rank.present())
        launch.launcher_options.push_back({"node-rank", rank, rank.span});
}

bool LaunchFinder::python(const Words& words, std::size_t at, Launch& launch) {
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
bool LaunchFinder::plain_program(const Words& words, std::size_t at, Launch& launch) {
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

bool LaunchFinder::mpirun(const Words& words, std::size_t at, Launch& launch, int depth) {
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
        } else if (name == "map-by" && option.value.known() && option.value.text.starts_with("ppr:")) {
            const std::string_view count = option.value.text.substr(4, option.value.text.find(':', 4) - 4);
            if (option.value.text.substr(std::min(option.value.text.size(), 4 + count.size())).starts_with(":node")) {
                launch.per_node = option.value;
                launch.per_node.text = count;
            }
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
        nccl |= name.ends_with("_perf") || program_of(name) == Program::python || name.ends_with(".py");
        if (program(words, k, inner, depth + 1)) nccl = true;
        if (name == "python" || program_of(name) == Program::python) {
            nccl = inner.file != nullptr;
            for (const LaunchOption& each : launch.options) nccl |= trains_by_option(each.name);
            for (const EnvVar& each : launch.environment) nccl |= each.name.starts_with("NCCL_");
        }
    }
    for (const EnvVar& each : launch.environment) nccl |= each.name.starts_with("NCCL_");
    // A program of the user's, in a script that tells NCCL what to do.
    if (k < words.size() && !nccl)
        for (const EnvVar& each : reading_->environment) nccl |= each.name.starts_with("NCCL_");
    if (!nccl) return false;
    finish(launch);
    return true;
}

// NNODES=$SLURM_NNODES; --nnodes=$NNODES: what stays open in the end is the scheduler's own variable.
Value LaunchFinder::spelled_out(Value number) {
    if (file_ == nullptr || !number.unknown() || number.source != &file_->source() || !number.text.starts_with('$'))
        return number;
    const Expanded all = ShellValues::of(*file_).expand(number.span);
    if (!all.text.empty()) number.text = file_->tree.keep(all.text);
    return number;
}

// host:$PORT is at that host, whatever the port is.
Value LaunchFinder::host_of_endpoint(Value endpoint) {
    if (file_ == nullptr || !endpoint.unknown() || endpoint.source != &file_->source()) return endpoint;
    const Expanded all = ShellValues::of(*file_).expand(endpoint.span);
    const std::size_t colon = all.text.find(':');
    std::string host = all.known || colon == std::string::npos ? std::string() : all.text.substr(0, colon);
    for (const ShellRun& run : all.runs)
        if (run.at < colon && !run.known) host.clear();
    if (const std::size_t own = endpoint.text.find(':'); host.empty() && own != std::string_view::npos)
        host = endpoint.text.substr(0, own);  // of a word that a variable was parted into
    if (host.empty() || host.find_first_of("$`\"'") != std::string::npos) return endpoint;
    endpoint.state = Value::State::known;
    endpoint.text = file_->tree.keep(host);
    return endpoint;
}

// The launcher's own options, the program, and its options.
void LaunchFinder::ranks(const Words& words, std::size_t at, Launch& launch) {
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
            launch.nodes = spelled_out(take({"nnodes"}));
            launch.per_node = take({"nproc-per-node"});
            launch.master = host_of_endpoint(take({"master-addr", "rdzv-endpoint"}));
            break;
        case Launcher::deepspeed:
            launch.nodes = take({"num-nodes"});
            launch.per_node = take({"num-gpus"});
            launch.master = take({"master-addr"});
            break;
        case Launcher::accelerate:
            launch.nodes = take({"num-machines"});
            launch.per_node = take({"num-processes"});
            // Of all machines together.
            if (const auto machines = launch.nodes.as_int(), all = launch.per_node.as_int();
                launch.nodes.present() && machines != std::optional<std::int64_t>(1)) {
                if (!machines || !all || *machines < 1 || *all % *machines != 0 || launch.nodes.assumed || !file_)
                    launch.per_node = {};
                else
                    launch.per_node.text = file_->tree.keep(std::to_string(*all / *machines));
            }
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

}  // namespace stoker::lint
