// Launches and environments of a script: each command, followed to the program that it runs in the end.
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

// False for most commands of a script: nothing that starts another program, no launcher, no program of Python.
static bool may_launch(const LaunchFinder::Words& words) {
    const Value& word = words.front();
    if (!word.known()) return false;
    if (word.text.ends_with(".py")) return true;
    const std::size_t slash = word.text.rfind('/');
    if (program_of(slash == std::string_view::npos ? word.text : word.text.substr(slash + 1)) != Program::other)
        return true;
    return word.text.ends_with(".sh") ||
           (slash != std::string_view::npos && words.size() > 1);  // a script or wrapper of the user's
}

void LaunchFinder::run() {
    Script& script = file_->script;
    const auto value_of = [&](const Assignment& each) {
        // What joins the elements of a list is known from the script alone.
        const bool open = (each.value.unknown() && each.value.text.find('$') != std::string_view::npos) ||
                          file_->source().text(each.span).find("[*]}") != std::string_view::npos;
        return open ? ShellValues::of(*file_).value_in_runs(each, *options_) : each.value;
    };
    for (const Assignment& each : script.assignments)
        if (each.exported && !each.array) environment(each.name, value_of(each), each.span);
    for (const File* sourced : script.sourced)
        for (const Assignment& each : sourced->script.assignments)
            if (each.exported && !each.array) environment(each.name, each.value, each.span);
    for (std::size_t k = 0; k < script.commands.size(); ++k) {
        const Command& command = script.commands[k];
        if (!command.redirects.empty()) heredocs(k);
        if (command.words.empty()) continue;
        if (command.name() == "envsubst") substituted(command);
        if (command.assignments.empty() && !may_launch(command.words)) continue;
        command_ = static_cast<int>(k);
        Launch launch;
        for (const Assignment& each : command.assignments) {
            if (each.array) continue;
            environment(each.name, value_of(each), each.span);
            launch.environment.push_back({each.name, value_of(each), each.span});
        }
        launch.span = command.span;
        const auto calls = ShellValues::of(*file_).words_in_runs(command, *options_);
        for (const Words& words : calls) {
            Launch one = launch;
            if (program(words, 0, one, 0)) file_->launches.push_back(std::move(one));
        }
        if (calls.empty() && program(command.words, 0, launch, 0)) file_->launches.push_back(std::move(launch));
    }
    echoed();
    for (const File* sourced : script.sourced) ran_elsewhere(*sourced);
    as_they_run();
}

// Words of programs that rules look at, where they hang on variables and following the script tells them.
void LaunchFinder::as_they_run() {
    static constexpr std::string_view kLookedAt[] = {"docker",      "podman",           "nerdctl",           "jupyter",
                                                     "jupyter-lab", "jupyter-notebook", "start-notebook.sh", "exec",
                                                     "sudo"};
    constexpr std::size_t kMostFollowed = 40;
    std::size_t count = 0;
    for (const Command& command : file_->script.commands) {
        // What a step of a workflow hands on.
        const bool hands_on = command.name() == "echo" &&
                              std::any_of(command.redirects.begin(), command.redirects.end(), [](const Redirect& each) {
                                  return each.target.text.find("GITHUB_") != std::string_view::npos;
                              });
        if (!hands_on && std::find(std::begin(kLookedAt), std::end(kLookedAt), command.name()) == std::end(kLookedAt))
            continue;
        if (++count > kMostFollowed) return;
        auto runs = ShellValues::of(*file_).words_in_runs(command, *options_);
        if (runs.size() == 1 && !runs[0].empty()) const_cast<Command&>(command).words = std::move(runs[0]);
    }
}

// The program at `at`; true when it is a launch.
bool LaunchFinder::program(const Words& words, std::size_t at, Launch& launch, int depth) {
    if (depth > 8) return false;
    while (at < words.size()) {
        const Value& word = words[at];
        // X=1 before a program: behind env, sudo, or in a word that eval reads.
        if (at > 0)
            if (const std::size_t equals = word.text.find('=');
                equals != std::string_view::npos && equals > 0 && env_name(word.text.substr(0, equals))) {
                env_word(word, equals, launch);
                ++at;
                continue;
            }
        if (!word.known()) return false;
        const std::string_view name = base_name_of(word.text);
        if (name.empty()) return false;
        const Program program_of_word = program_of(name);
        switch (program_of_word) {
            case Program::prefix: at = skip_prefix(words, at, name); break;
            case Program::profiler:
                at = next_program(words, at + 1);
                if (at == words.size()) return false;
                break;
            case Program::environment:
                if (at + 1 >= words.size() || !words[at + 1].is("run")) return false;
                at = next_program(words, at + 2);
                if (at == words.size()) return false;
                break;
            case Program::srun: at = srun(words, at, launch); break;
            case Program::salloc: at = salloc(words, at); break;
            case Program::docker: at = docker(words, at, launch); break;
            case Program::singularity: at = singularity(words, at, launch); break;
            case Program::shell: return shell(words, at, launch);
            case Program::eval: guest_of_words(words, at + 1, launch); return false;
            case Program::remote: remote(words, at, launch); return false;
            case Program::terminal: typed(words, at, launch); return false;
            case Program::user: as_user(words, at, launch); return false;
            case Program::cloud: boots(words, at, launch); return false;
            case Program::azure: run_by_azure(words, at, launch); return false;
            case Program::sbatch: wrapped(words, at, launch); return false;
            default:
                if (program_of_word == Program::other && depth == 0) called(words, at, launch);
                return launcher(words, at, program_of_word, launch, depth);
        }
    }
    return false;
}

void LaunchFinder::environment(std::string_view name, const Value& value, Span span) {
    if (file_) file_->environment.push_back({name, value, span});
}

void LaunchFinder::env_word(const Value& word, std::size_t equals, Launch& launch) {
    EnvVar variable{word.text.substr(0, equals), part_of(word, equals + 1), word.span};
    environment(variable.name, variable.value, variable.span);
    launch.environment.push_back(std::move(variable));
}

// A text with NAME=value, or several with commas between them: -x, -e, --export.
void LaunchFinder::env_list(const Value& value, Launch& launch, char separator) {
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

void find_launches(File& file, const ReadOptions& options) {
    if (!file.script.commands.empty() || !file.script.assignments.empty()) LaunchFinder(file, options).run();
    ShellValues::drop(file);
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
