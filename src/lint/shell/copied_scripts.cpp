// Scripts that a Dockerfile copies into its image and runs there: what they do is done by root, in the build.
#include "lint/azure/local_modules.h"
#include "lint/read.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/programs.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostCopied = 8, kMostCopiedScriptBytes = 256u << 10;

struct CopiedPath {
    std::string_view from, to;
};

std::string_view without_ends(std::string_view path) {
    while (path.starts_with("./")) path.remove_prefix(2);
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return path == "." ? std::string_view() : path;
}

std::vector<CopiedPath> copies_of(const File& dockerfile) {
    std::vector<CopiedPath> copies;
    for (const Command& command : dockerfile.script.commands) {
        if (!equals_ignore_case(command.name(), "COPY") && !equals_ignore_case(command.name(), "ADD")) continue;
        std::vector<std::string_view> paths;
        bool from_stage = false;
        for (std::size_t k = 1; k < command.words.size(); ++k) {
            const std::string_view word = command.words[k].text;
            from_stage = from_stage || word.starts_with("--from");
            if (!word.starts_with("--")) paths.push_back(without_ends(word));
        }
        for (std::size_t k = 0; k + 1 < paths.size() && !from_stage; ++k) copies.push_back({paths[k], paths.back()});
    }
    return copies;
}

// Where a path of the image may have been copied from.
std::vector<std::string> copied_from(std::string_view path, const std::vector<CopiedPath>& copies) {
    std::vector<std::string> found;
    path = without_ends(path);
    for (const CopiedPath& copy : copies) {
        if (path == copy.to) found.emplace_back(copy.from);
        const bool inside =
            copy.to.empty() ? !path.starts_with('/')
                            : path.size() > copy.to.size() && path.starts_with(copy.to) && path[copy.to.size()] == '/';
        if (!inside) continue;
        const std::string_view rest = path.substr(copy.to.empty() ? 0 : copy.to.size() + 1);
        if (base_name_of(copy.from) == rest) found.emplace_back(copy.from);
        found.push_back(copy.from.empty() ? std::string(rest) : std::string(copy.from) + "/" + std::string(rest));
    }
    return found;
}

}  // namespace

void read_copied_scripts(File& dockerfile, const ReadOptions& options) {
    if (!options.neighbour || dockerfile.call || dockerfile.host) return;
    const std::vector<CopiedPath> copies = copies_of(dockerfile);
    if (copies.empty()) return;
    std::size_t count = 0;
    for (const auto& run : dockerfile.guests)
        for (const Command& command : run->script.commands) {
            std::size_t at = 0;
            if (program_of(base_name_of(command.name())) == Program::shell) ++at;
            if (at >= command.words.size() || !command.words[at].known()) continue;
            const std::string_view path = command.words[at].text;
            if (path.find('/') == std::string_view::npos && !path.ends_with(".sh")) continue;
            for (std::string from : copied_from(path, copies)) {
                // Paths count from the folder of the build, which is that of the Dockerfile or the one above it.
                auto text = options.neighbour(from);
                if (!text) text = options.neighbour(from = "../" + from);
                if (!text || text->size() > kMostCopiedScriptBytes || text->find('\0') != std::string::npos) continue;
                if (++count > kMostCopied) return;
                const auto size = static_cast<std::uint32_t>(text->size());
                auto made = file_of_call(dockerfile, path_from(dockerfile.path(), from), std::move(*text), kRunByShell,
                                         run->source().in_outermost(command.span));
                made->kinds.add(Kind::dockerfile);
                const File* guest = read_guest(*made, std::string(made->source().text()),
                                               {{0, size, {0, size}, Piece::Kind::verbatim}}, {Kind::launch}, {});
                if (guest && guest->problems.empty()) dockerfile.calls.push_back(std::move(made));
                break;
            }
        }
}

}  // namespace stoker::lint
