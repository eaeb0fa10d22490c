// Launches behind srun, docker run, apptainer exec, bash -c and their kin, and the texts that those are given.
#include <algorithm>

#include "formats/sbatch_options.h"
#include "lint/azure/local_modules.h"
#include "lint/check.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

namespace {

// About how much memory a guest takes, with its own guests.
std::size_t held_by(const File& file) {
    std::size_t bytes = sizeof(File) + 2 * file.source().text().size() + file.tree.size() * sizeof(Node) +
                        file.script.assignments.size() * sizeof(Assignment) + file.launches.size() * sizeof(Launch);
    for (const Command& command : file.script.commands) bytes += sizeof(Command) + command.words.size() * sizeof(Value);
    for (const auto& guest : file.guests) bytes += held_by(*guest);
    return bytes;
}

}  // namespace

std::size_t LaunchFinder::skip_prefix(const Words& words, std::size_t at, std::string_view name) {
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
std::size_t LaunchFinder::next_program(const Words& words, std::size_t at) {
    for (; at < words.size(); ++at) {
        if (!words[at].known()) continue;
        const std::string_view name = base_name_of(words[at].text);
        const Program program = program_of(name);
        if (program == Program::python || program == Program::launcher || program == Program::shell ||
            one_of(name, {"accelerate", "vllm", "env", "numactl", "srun"}))
            return at;
    }
    return at;
}

std::size_t LaunchFinder::srun(const Words& words, std::size_t at, Launch& launch) {
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
            const sbatch::Option* known = sbatch::find_letter(name[0]);
            if (name.size() > 1 && !option.value.present()) option.value = part_of(words[at], 2);
            if (known) name = known->name;
        } else if (const sbatch::Found known = sbatch::find_option(name)) {
            name = known.option->name;
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

// Its options are srun's; the program behind them runs on this machine.
std::size_t LaunchFinder::salloc(const Words& words, std::size_t at) {
    Launch none;
    LaunchFinder apart(*reading_);
    return apart.srun(words, at, none);
}

std::size_t LaunchFinder::docker(const Words& words, std::size_t at, Launch& launch) {
    ++at;
    while (at < words.size() && words[at].known() && words[at].text.starts_with("-")) ++at;
    if (at < words.size() && words[at].is("compose")) return words.size();
    if (at < words.size() && words[at].is("buildx")) ++at;
    if (at < words.size() && words[at].is("build")) {
        built(words, at);
        return words.size();
    }
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

std::size_t LaunchFinder::singularity(const Words& words, std::size_t at, Launch& launch) {
    ++at;
    while (at < words.size() && words[at].known() && words[at].text.starts_with("-")) ++at;
    if (at >= words.size() || !one_of(words[at].text, {"exec", "run", "start"})) return words.size();
    ++at;
    WordOption option;
    while (at < words.size()) {
        const bool dashed = words[at].text.starts_with("--");
        if (!read_option(words, at, option, [&](std::string_view name) { return !singularity_switch(name, dashed); }))
            return at + 1;  // the image
        if (option.name == "env") env_list(option.value, launch, ',');
        at = option.next;
    }
    return at;
}

// A text that ends with making a program needs no GPU, whatever its container is made for.
static bool only_builds(const File& script) {
    if (script.script.commands.empty()) return false;
    const std::string_view last = base_name_of(script.script.commands.back().name());
    return one_of(last, {"make", "cmake", "ninja", "gcc", "g++", "nvcc", "bazel", "meson"});
}

// bash -c "...": a text of its own.
bool LaunchFinder::shell(const Words& words, std::size_t at, Launch& launch) {
    bool command = false;
    std::size_t k = at + 1;
    for (; k < words.size() && words[k].known() && words[k].text.starts_with("-") && words[k].text.size() > 1; ++k) {
        if (words[k].text == "--") continue;
        if (!words[k].text.starts_with("--") && words[k].text.find('c') != std::string_view::npos) command = true;
        if (words[k].text == "-o" || words[k].text == "--rcfile") ++k;
    }
    if (!command && k < words.size()) called(words, k, launch);
    if (!command || k >= words.size()) {
        // A script in a container of the GPU kind under srun is GPU work; what it does is not seen.
        return launch.under_srun && k < words.size() && under_srun_script(words[k], launch);
    }
    const bool gpu = launch.under_srun && gpu_container(launch);
    if (file_) {
        File* guest = guest_of_words(words, k, launch, k + 1);
        const bool seen = guest && (!guest->launches.empty() || !guest->guests.empty());
        if (seen || (guest && only_builds(*guest))) return false;
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

bool LaunchFinder::in_container(const Launch& launch) {
    for (const LaunchOption& option : launch.launcher_options)
        if (option.name == "container-image") return true;
    return false;
}

bool LaunchFinder::gpu_container(const Launch& launch) {
    for (const LaunchOption& option : launch.launcher_options)
        if (option.name == "container-image" && option.value.known() && is_gpu_image(option.value.text)) return true;
    return false;
}

bool LaunchFinder::under_srun_script(const Value& script, Launch& launch) {
    if (!gpu_container(launch)) return false;
    launch.launcher = Launcher::srun;
    launch.program = script;
    launch.open = true;
    finish(launch);
    return true;
}

// The words from `at` on as a script: eval, bash -c.
File* LaunchFinder::guest_of_words(const Words& words, std::size_t at, const Launch& launch, std::size_t end) {
    if (!file_ || at >= words.size()) return nullptr;
    ShellValues& values = ShellValues::of(*file_);
    const Source& source = file_->source();
    std::string text;
    std::vector<Piece> pieces;
    Span last;
    for (; at < words.size() && at < end; ++at) {
        const Span raw = ShellValues::raw(words[at], source);
        if (raw == last || (words[at].source != &source && words[at].use_source != &source)) continue;
        last = raw;
        GuestText part = guest_of_runs(values.expand(raw), source, raw);
        // A script in a variable that a run alone fills, or with arithmetic of this shell in it.
        const bool open = part.text.find("$((") != std::string::npos ||
                          (part.text.starts_with('$') && part.text.find_first_of(" \n") == std::string::npos);
        if (open && words[at].use_source == &source && words[at].text.find("$((") == std::string_view::npos &&
            words[at].text.find_first_of(" \n") != std::string_view::npos) {
            part.text = words[at].text;
            part.pieces = {{0, static_cast<std::uint32_t>(part.text.size()), raw, Piece::Kind::changed}};
        }
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

File* LaunchFinder::guest(std::string text, std::vector<Piece> pieces, Kinds kinds, const Launch& launch) {
    // Variables can make guests larger than what they stand in, three levels deep: bounded by the size of the host, in
    // text and in what is held for it.
    const std::size_t size = file_->source().text().size();
    guest_bytes_ += text.size();
    if (guest_bytes_ > (file_->host ? 2 * size + 4096 : 4 * size + 16384)) return nullptr;
    if (guest_held_ > (file_->host ? 12 * size + (32u << 10) : 24 * size + (96u << 10))) return nullptr;
    File* made = read_guest(*file_, std::move(text), std::move(pieces), kinds, *options_);
    if (made) guest_held_ += held_by(*made);
    if (made)
        for (Launch& each : made->launches) each.host_command = command_;
    if (made) under(*made, launch);
    return made;
}

// What a text starts that srun runs in every task.
void LaunchFinder::under(File& made, const Launch& launch) {
    if (!launch.under_srun) return;
    for (Launch& each : made.launches) {
        each.under_srun = true;
        if (each.launcher == Launcher::python) {  // a rank per task
            each.launcher = Launcher::srun;
            if (each.nodes.absent()) each.nodes = launch.srun_nodes;
            if (each.per_node.absent()) each.per_node = launch.srun_tasks_per_node;
        }
        if (each.srun_nodes.absent()) each.srun_nodes = launch.srun_nodes;
        if (each.srun_tasks_per_node.absent()) each.srun_tasks_per_node = launch.srun_tasks_per_node;
    }
}

// ssh node "cd /work && torchrun ...": the words behind the host, for the shell of another machine.
void LaunchFinder::remote(const Words& words, std::size_t at, const Launch& launch) {
    ++at;
    WordOption option;
    const auto takes_value = [](std::string_view name) {
        return name.size() == 1 && std::string_view("BbcDEeFIiJLlmOopQRSWw").find(name[0]) != std::string_view::npos;
    };
    while (at < words.size() && read_option(words, at, option, takes_value)) at = option.next;
    if (++at >= words.size()) return;
    // Its variables are those of the other machine: in single quotes none may be followed here.
    for (std::size_t k = at; k < words.size(); ++k) {
        const std::string_view written = reading_->source().text(ShellValues::raw(words[k], reading_->source()));
        if (written.find('$') != std::string_view::npos && written.find('\'') < written.find('$')) return;
    }
    guest_of_words(words, at, launch);
}

// tmux new-session -d "...", tmux send-keys "..." Enter: a word with blanks in it is what a shell gets.
void LaunchFinder::typed(const Words& words, std::size_t at, const Launch& launch) {
    for (std::size_t k = at + 1; k < words.size(); ++k) {
        if (program_of(base_name_of(words[k].text)) == Program::shell && k + 1 < words.size()) {
            Launch inner = launch;
            shell(words, k, inner);
            return;
        }
        if (words[k].text.find(' ') == std::string_view::npos) continue;
        guest_of_words(words, k, launch, k + 1);
        return;
    }
}

// az vm run-command invoke --scripts "...": for root's shell on the machine.
void LaunchFinder::run_by_azure(const Words& words, std::size_t at, const Launch& launch) {
    for (std::size_t k = at + 1; k + 1 < words.size(); ++k) {
        if (!one_of(words[k].text, {"--scripts", "--script", "--command-to-execute"})) continue;
        if (words[k + 1].text.find_first_of(" \n") == std::string_view::npos || words[k + 1].text.starts_with('@'))
            continue;
        guest_of_words(words, k + 1, launch, k + 2);
    }
}

// sbatch with options, and a text or a script beside for it: read with what they say, which counts before the script's
// own.
void LaunchFinder::wrapped(const Words& words, std::size_t at, Launch& launch) {
    if (!file_) return;
    WordOption option;
    std::vector<Directive> directives;
    Launch with;
    File* text = nullptr;
    std::size_t k = at + 1;
    for (; k < words.size(); k = std::max(k + 1, option.next)) {
        option.next = 0;
        const bool dashed = words[k].text.starts_with("--") || words[k].text.starts_with("\"--");
        if (!read_option(words, k, option, [&](std::string_view name) { return srun_takes_value(name, dashed); })) {
            if (is_open_word(words[k])) continue;
            break;
        }
        std::string_view name = option.name;
        if (!option.dashes && !name.empty()) {
            const sbatch::Option* known = sbatch::find_letter(name[0]);
            if (name.size() > 1 && !option.value.present()) option.value = part_of(words[k], 2);
            if (known) name = known->name;
        } else if (const sbatch::Found known = sbatch::find_option(name)) {
            name = known.option->name;
        }
        if (name == "export") {
            env_list(option.value, with, ',');
        } else if (name == "wrap") {
            if (words[k].source != &reading_->source() && words[k].use_source != &reading_->source()) continue;
            const Source& source = file_->source();
            const Span raw = ShellValues::raw(words[k], source);
            const std::size_t equals = source.text(raw).find('=');
            if (words[k].text.find('=') == std::string_view::npos || equals == std::string_view::npos) {
                text = guest_of_words(words, k + 1, launch, k + 2);
                continue;
            }
            const Span value{raw.begin + static_cast<std::uint32_t>(equals) + 1, raw.end};
            GuestText part = guest_of_runs(ShellValues::of(*file_).expand(value), source, value);
            text = guest(std::move(part.text), std::move(part.pieces), {Kind::launch}, launch);
        } else if (option.value.present() && option.value.source) {
            Directive& made = directives.emplace_back();
            made.prefix = "#SBATCH";
            made.option = name;
            made.value = option.value;
            if (!made.value.known()) made.value.text = {};  // a variable is no mistake here, as it is in a directive
        }
    }
    if (text && !directives.empty()) {
        given(*text, directives);
        file_->kinds.add(Kind::slurm);
    }
    if (!text && k < words.size()) submitted(words, at, k, std::move(directives), std::move(with.environment));
}

}  // namespace stoker::lint
