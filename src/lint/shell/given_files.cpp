// Files that a command of a script fills in: a manifest through envsubst, a Dockerfile with arguments of the build.
// Each is read once more with what it gets there.
#include <algorithm>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/launch_finder.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_trace.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostGiven = 12, kMostGivenBytes = 256u << 10;

}  // namespace

std::string with_variables(std::string_view text, const std::vector<EnvVar>& environment, std::string_view only,
                           std::vector<Piece>& pieces) {
    std::string out;
    const auto add = [&](std::string_view part, std::size_t from, std::size_t to, Piece::Kind kind) {
        if (part.empty()) return;
        pieces.push_back({static_cast<std::uint32_t>(out.size()),
                          static_cast<std::uint32_t>(part.size()),
                          {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)},
                          kind});
        out += part;
    };
    std::size_t plain = 0;
    for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
        const bool braces = text.substr(at + 1, 1) == "{";
        const std::size_t from = at + 1 + (braces ? 1 : 0);
        std::size_t to = from;
        while (to < text.size() && shell_name_char(text[to])) ++to;
        const std::string_view name = text.substr(from, to - from);
        const std::size_t close = braces ? text.find('}', to) : to;
        if (close == std::string_view::npos) continue;
        if (braces && close != to && text.substr(to, 2) != ":=" && text.substr(to, 2) != ":-") continue;
        const auto given = std::find_if(environment.begin(), environment.end(),
                                        [&](const EnvVar& each) { return each.name == name && each.value.known(); });
        if (name.empty() || given == environment.end()) continue;
        if (!only.empty() && only.find("$" + std::string(name)) == std::string_view::npos &&
            only.find("${" + std::string(name) + "}") == std::string_view::npos)
            continue;
        add(text.substr(plain, at - plain), plain, at, Piece::Kind::verbatim);
        plain = close + (braces ? 1 : 0);
        add(given->value.text, at, plain, Piece::Kind::changed);
    }
    if (plain > 0) add(text.substr(plain), plain, text.size(), Piece::Kind::verbatim);
    return out;
}

// A call in the outermost file, with what its name says.
std::unique_ptr<File> LaunchFinder::given_file(std::string path, std::string_view name_of_call, Span at) {
    File& root = const_cast<File&>(file_->outermost());
    if (!options_->neighbour || root.call || root.calls.size() >= kMostGiven ||
        (file_->host && !root.kinds.has(Kind::workflow)))
        return nullptr;
    auto text = options_->neighbour(path);
    if (!text && !root.kinds.has(Kind::workflow)) text = options_->neighbour(path.insert(0, "../"));  // run from there
    if (!text || text->size() > kMostGivenBytes || text->find('\0') != std::string::npos) return nullptr;
    return file_of_call(root, path_from(root.path(), path), std::move(*text), name_of_call,
                        file_->source().in_outermost(at));
}

// envsubst < pod.yaml: the manifest as kubectl gets it.
void LaunchFinder::substituted(const Command& command) {
    const Redirect* from = nullptr;
    for (const Redirect& each : command.redirects)
        if (each.op == "<") from = &each;
    if (!from) return;
    std::vector<Value> names;
    if (from->target.known())
        names.push_back(from->target);
    else
        names = ShellValues::of(*file_).alternatives(ShellValues::raw(from->target, file_->source()));
    std::vector<EnvVar> environment;
    exported(environment);
    const std::string_view only = command.words.size() > 1 ? command.words[1].text : std::string_view();
    std::vector<std::string> paths;
    for (const Value& name : names) {
        const std::string path = to_the_top(file_->outermost()) + std::string(name.text);
        const std::size_t slash = path.rfind('/');
        const std::size_t star = path.find('*');
        if (star == std::string::npos) {
            paths.push_back(path);
        } else if (options_->list && (slash == std::string::npos || star > slash)) {
            const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
            for (const std::string& each : options_->list(folder))
                if (shell_pattern_matches(each, std::string_view(path).substr(slash + 1)))
                    paths.push_back(path.substr(0, slash + 1) + each);
        }
    }
    for (const std::string& path : paths) {
        auto made = given_file(path, "envsubst", command.span);
        if (!made) continue;
        std::vector<Piece> pieces;
        std::string text = with_variables(made->source().text(), environment, only, pieces);
        if (pieces.empty() || !classify("", text).has(Kind::k8s)) continue;
        made->kinds.add(Kind::helm);  // a text that is filled in
        made->call->overlay = true;
        const File* guest = read_guest(*made, std::move(text), std::move(pieces), {Kind::k8s}, *options_);
        if (guest && guest->problems.empty()) const_cast<File&>(file_->outermost()).calls.push_back(std::move(made));
    }
}

// docker build --build-arg NAME=value: the Dockerfile as it is built here.
void LaunchFinder::built(const Words& words, std::size_t at) {
    if (!file_) return;
    std::vector<std::pair<std::string_view, Value>> arguments;
    std::string file, folder = ".";
    for (std::size_t k = at + 1; k < words.size(); ++k) {
        const std::string_view word = words[k].text;
        const bool apart = word == "--build-arg" || word == "-f" || word == "--file";
        if (apart && k + 1 == words.size()) break;
        const Value& value = words[apart ? k + 1 : k];
        std::size_t skip = 0;
        if (word.starts_with("--build-arg=")) skip = 12;
        if (word.starts_with("--file=")) skip = 7;
        const std::string_view text = value.text.substr(skip);
        if (word.starts_with("--build-arg")) {
            const std::size_t equals = text.find('=');
            if (equals != std::string_view::npos) {
                Value given = part_of(value, skip + equals + 1);
                arguments.emplace_back(file_->tree.keep(std::string(text.substr(0, equals))), given);
            }
        } else if (word == "-f" || word.starts_with("--file")) {
            if (value.known()) file = text;
        } else if (!word.starts_with('-') && k + 1 == words.size() && value.known()) {
            folder = text;
        }
        if (apart) ++k;
    }
    std::erase_if(arguments, [](const auto& each) { return !each.second.known(); });
    if (arguments.empty()) return;
    while (folder.ends_with('/')) folder.pop_back();
    if (file.empty()) file = folder == "." ? "Dockerfile" : folder + "/Dockerfile";
    auto made = given_file(to_the_top(file_->outermost()) + file, "docker build", words[at].span);
    if (!made) return;
    made->kinds.add(Kind::dockerfile);
    for (const auto& [name, value] : arguments) {
        Node& node = made->tree.make(*value.source, Shape::string, value.span);
        node.text = value.text;
        made->call->inputs.emplace_back(name, &node);
    }
    read_dockerfile(*made, {});
    const_cast<File&>(file_->outermost()).calls.push_back(std::move(made));
}

}  // namespace stoker::lint
