// Scripts that a script runs: read as they are run there, with the words, the options and the environment that they
// get.
#include <algorithm>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostCalled = 8, kMostCalledBytes = 256u << 10;
constexpr int kMostCalledDepth = 2;

}  // namespace

std::string_view path_beside(std::string_view word) {
    if (word.size() > 2 && word.front() == '"' && word.back() == '"') word = word.substr(1, word.size() - 2);
    if (const std::size_t last = word.find_last_of("$})"); last != std::string_view::npos) {
        const std::size_t slash = word.find('/', last);
        if (slash == std::string_view::npos) return {};
        word.remove_prefix(slash + 1);
    }
    while (word.starts_with("./")) word.remove_prefix(2);
    return word.starts_with('/') || word.find_first_of("~*? \"'`") != std::string_view::npos ? std::string_view()
                                                                                             : word;
}

std::string to_the_top(const File& file) {
    const std::string& path = file.path();
    const std::size_t github = path.rfind(".github/");
    std::string up;
    if (github != std::string::npos)
        for (std::size_t at = path.find('/', github); at != std::string::npos; at = path.find('/', at + 1)) up += "../";
    return up;
}

// Options of the command line take the place of the script's own; their values keep the place where they stand.
void LaunchFinder::given(File& script, std::vector<Directive>& directives) {
    std::vector<Directive>& all = script.script.directives;
    std::erase_if(all, [&](const Directive& own) {
        return std::any_of(directives.begin(), directives.end(),
                           [&](const Directive& over) { return over.option == own.option; });
    });
    for (Directive& each : directives) each.span = each.line = script.script.shebang;
    all.insert(all.end(), directives.begin(), directives.end());
}

// Those that count for whatever this batch script runs.
std::vector<Directive> LaunchFinder::own_directives() const {
    std::vector<Directive> directives;
    for (const Directive& each : file_->script.directives)
        if (!each.malformed && !each.after_command) directives.push_back(each);
    return directives;
}

// The environment that a program gets here: what is exported, and what stands before it.
void LaunchFinder::exported(std::vector<EnvVar>& environment) const {
    const auto add = [&](std::string_view name, const Value& value, Span span) {
        if (std::none_of(environment.begin(), environment.end(), [&](const EnvVar& own) { return own.name == name; }))
            environment.push_back({name, value, span});
    };
    const std::size_t own = environment.size();
    std::vector<const Assignment*> all;
    for (const Assignment& each : file_->script.assignments) all.push_back(&each);
    for (auto it = all.rbegin(); it != all.rend(); ++it)
        if ((*it)->exported && !(*it)->array) {
            Value value = ShellValues::of(*file_).value_in_runs(**it, *options_);
            if ((*it)->in_condition) value.state = Value::State::unknown;
            add((*it)->name, value, (*it)->span);
        }
    std::reverse(environment.begin() + static_cast<std::ptrdiff_t>(own), environment.end());
    for (const File* sourced : file_->script.sourced)
        for (const Assignment& each : sourced->script.assignments)
            if (each.exported && !each.array && !each.in_condition) add(each.name, each.value, each.span);
    for (const File* around = file_; around; around = around->host)
        if (around->host_container)
            for (const EnvVar& each : around->host_container->environment) add(each.name, each.value, each.span);
}

// The script of that name as it is run here, not yet read for what it starts; null where there is none, or it is read
// often enough.
std::unique_ptr<File> LaunchFinder::script_beside(const Value& word, std::string_view name_of_call, Span at) {
    const std::string_view name = path_beside(word.text);
    const bool steps = file_->outermost().kinds.has(Kind::workflow);
    File& root = const_cast<File&>(file_->outermost());
    int depth = 1;
    for (const File* caller = &root; caller->call; caller = caller->call->caller) ++depth;
    if (name.empty() || !options_->neighbour || (file_->host && !steps) || depth > kMostCalledDepth ||
        root.calls.size() >= kMostCalled)
        return nullptr;
    // Beside the script, or seen from the folder above it, from where it is run as often.
    std::string path = to_the_top(root) + std::string(name);
    auto text = options_->neighbour(path);
    if (!text && (!steps || root.path().ends_with(".py"))) text = options_->neighbour(path = "../" + path);
    if (!text || text->size() > kMostCalledBytes || text->find('\0') != std::string::npos) return nullptr;
    const std::string where = path_from(root.path(), path);
    if (where == root.path()) return nullptr;
    const Kinds kinds = classify(where, *text);
    if (!kinds.any({Kind::launch, Kind::az, Kind::slurm})) return nullptr;
    auto made = file_of_call(root, where, std::move(*text), name_of_call, at);
    made->kinds = kinds;
    made->call->depth = depth;
    return made;
}

// Reads it with what it gets, and puts it among the calls.
File& LaunchFinder::run_here(std::unique_ptr<File> made, std::vector<EnvVar> environment,
                             std::vector<Directive> directives, const ShellRuns* runs) {
    // Apart from the script: it is none of its containers.
    made->neighbours.push_back(std::make_unique<File>(made->path(), ""));
    Container& around = made->neighbours.back()->services.emplace_back();
    around.address = "sh:" + made->path();
    around.environment = std::move(environment);
    made->host_container = &around;
    ReadOptions inside;
    const std::string& own = made->path();
    const std::string& from = file_->outermost().path();
    // Where its folder lies, seen from here: what the reader takes paths to be relative to.
    const std::size_t top = from.rfind('/');
    std::string folder = own.substr(0, own.rfind('/') == std::string::npos ? 0 : own.rfind('/') + 1);
    std::string up;
    std::string_view base = std::string_view(from).substr(0, top == std::string::npos ? 0 : top + 1);
    while (!base.empty() && !folder.starts_with(base)) {
        base.remove_suffix(1);
        base = base.substr(0, base.rfind('/') == std::string_view::npos ? 0 : base.rfind('/') + 1);
        up += "../";
    }
    folder = up + folder.substr(base.size());
    inside.size = options_->size;
    inside.neighbour = [outer = options_->neighbour, folder](const std::string& path) { return outer(folder + path); };
    read_shell(*made, inside);
    if (runs) ShellValues::of(*made).run_by(*runs);
    if (!directives.empty()) given(*made, directives);
    find_az(*made, inside);
    find_az_files(*made, inside);
    find_launches(*made, inside);
    File& root = const_cast<File&>(file_->outermost());
    root.calls.push_back(std::move(made));
    return *root.calls.back();
}

// What functions of a file that it sources run here, with the words of their calls.
void LaunchFinder::ran_elsewhere(const File& library) {
    if (file_->host || file_->call || file_->calls.size() >= kMostCalled) return;
    const Kinds kinds = classify(library.path(), library.source().text());
    if (!kinds.any({Kind::az, Kind::launch})) return;
    const ShellRuns* runs = ShellValues::of(*file_).runs_in(library.source(), *options_);
    if (!runs) return;
    auto made = file_of_call(*file_, library.path(), std::string(library.source().text()), kRunByShell);
    made->kinds = kinds;
    std::vector<EnvVar> environment;
    exported(environment);
    std::vector<Directive> directives = own_directives();
    if (!directives.empty()) made->kinds.add(Kind::slurm);
    run_here(std::move(made), std::move(environment), std::move(directives), runs);
}

// The script that sbatch is given, with the options and the environment that it gets here.
void LaunchFinder::submitted(const Words& words, std::size_t at, std::size_t script, std::vector<Directive> directives,
                             std::vector<EnvVar> environment) {
    exported(environment);
    std::erase_if(environment, [](const EnvVar& each) { return !each.value.known(); });
    if (directives.empty() && environment.empty()) return;  // as it stands
    const Span here = words[at].source == &file_->source() ? file_->source().in_outermost(words[at].span) : Span{};
    auto made = script_beside(words[script], "sbatch", here);
    if (!made || !made->source().text().starts_with("#!")) return;
    made->kinds.add(Kind::slurm);
    run_here(std::move(made), std::move(environment), std::move(directives));
}

// A script that a command runs, with the words behind it.
void LaunchFinder::called(const Words& words, std::size_t at, const Launch& launch) {
    if (!file_ || in_container(launch)) return;
    for (std::size_t k = 0; k < at; ++k)  // a path of the image
        if (const Program before = program_of(base_name_of(words[k].text));
            before == Program::docker || before == Program::singularity)
            return;
    const Value& word = words[at];
    if (word.text.find('/') == std::string_view::npos && !word.text.ends_with(".sh")) return;
    auto made =
        script_beside(word, launch.under_srun ? kRunBySrun : kRunByShell, file_->source().in_outermost(launch.span));
    if (!made) return;
    std::vector<EnvVar> environment;
    for (const EnvVar& each : launch.environment) environment.push_back(each);
    exported(environment);
    std::vector<Value> arguments;
    bool counted = true;  // "$@" is any number of words
    for (std::size_t k = at + 1; k < words.size(); ++k) {
        counted = counted && (words[k].known() || !is_open_word(words[k]));
        arguments.push_back(words[k]);
    }
    if (counted) made->script.arguments = std::move(arguments);
    std::vector<Directive> directives = own_directives();
    if (!directives.empty()) made->kinds.add(Kind::slurm);
    File& read = run_here(std::move(made), std::move(environment), std::move(directives));
    under(read, launch);
}

}  // namespace stoker::lint
