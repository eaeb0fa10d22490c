// Heredocs as texts of their own: only where another program reads them as code.
#include <algorithm>

#include "lint/check.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

void LaunchFinder::heredocs(std::size_t k) {
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
bool LaunchFinder::reader(std::size_t k, std::string_view& path, Kinds& kinds) const {
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
        // A function may write it for whoever submits it: what begins as a batch script is one.
        for (const Redirect& redirect : command.redirects) {
            const std::string_view body = file_->source().text(redirect.body);
            if (redirect.op.starts_with("<<") && body.starts_with("#!") &&
                body.find("\n#SBATCH") != std::string_view::npos) {
                kinds = {Kind::slurm, Kind::launch};
                return true;
            }
        }
        return false;
    }
    return reads_code(command, kinds, path);
}

bool LaunchFinder::reads_code(const Command& command, Kinds& kinds, std::string_view& path) {
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
    if (name == "ssh") {  // the shell of the other machine, unless a program there is named
        std::string_view last;
        for (std::size_t k = at + 1; k < command.words.size(); ++k) last = command.words[k].text;
        const bool named = last.find(' ') != std::string_view::npos;
        if (named && last.find("sh") == std::string_view::npos) return false;
        kinds = {Kind::launch, Kind::az};
        return true;
    }
    if (name == "sbatch") {
        kinds = {Kind::slurm, Kind::launch};
        return true;
    }
    if (program_of(name) == Program::shell) {
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

// A variable where YAML's own structure should stand: at the beginning of a line, or behind a key without a blank.
bool LaunchFinder::writes_structure(std::string_view body) {
    for (std::size_t at = body.find('$'); at != std::string_view::npos; at = body.find('$', at + 1)) {
        std::size_t before = at;
        while (before > 0 && (body[before - 1] == ' ' || body[before - 1] == '\t')) --before;
        if (before == 0 || body[before - 1] == '\n' || (before == at && body[before - 1] == ':')) return true;
    }
    return false;
}

void LaunchFinder::embed(const Redirect& redirect, std::string_view path, Kinds kinds) {
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
        const Expanded expanded = ShellValues::of(*file_).expand_body(body);
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
    if (kinds.empty()) kinds = classify_guest(base_name_of(path), text);
    if (kinds.empty()) return;
    // A gap in JSON or HCL is no JSON any more.
    if (unknown && kinds.any({Kind::deepspeed, Kind::arm, Kind::grafana, Kind::terraform, Kind::bicep})) return;
    Launch none;
    File* made = guest(std::move(text), std::move(pieces), kinds, none);
    if (made) made->verbatim = redirect.literal;
    // Where a variable stands for lines of YAML, what does not parse is not what will be applied.
    if (!made || !kinds.has(Kind::k8s) || redirect.literal || made->problems.empty()) return;
    if (writes_structure(written)) {
        made->problems.clear();
        return;
    }
    // Nor what only the text of a variable breaks, whose quotes are the shell's: "$(aws ... --name "/x")".
    File plain{std::string(path), std::string(written)};
    plain.kinds = kinds;
    read_yaml(plain);
    if (plain.problems.empty()) made->problems.clear();
}

}  // namespace stoker::lint
