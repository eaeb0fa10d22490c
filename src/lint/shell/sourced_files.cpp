// Files whose variables a script takes in: sourced, or read line by line and exported.
#include <algorithm>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostSourced = 8, kMostSourcedBytes = 256u << 10;

// The text that a script gives a name, where it does so once; empty: not known.
std::string_view only_text_of(const File& file, std::string_view name) {
    const Assignment* only = nullptr;
    for (const Assignment& each : file.script.assignments) {
        if (each.name != name) continue;
        if (only) return {};
        only = &each;
    }
    return only && only->value.known() && only->value.text.find_first_of("$`*") == std::string_view::npos
               ? only->value.text
               : std::string_view();
}

// ${1:-prod} and ${NAME:-prod} by what they say themselves, $NAME by what the script gives it.
std::string with_constants(std::string_view word, const File& file) {
    std::string out(word);
    for (std::size_t at = out.find('$'); at != std::string::npos; at = out.find('$', at)) {
        const bool braces = out.compare(at, 2, "${") == 0;
        std::size_t from = at + (braces ? 2 : 1), to = from;
        while (to < out.size() && shell_name_char(out[to])) ++to;
        const std::size_t end = braces ? out.find('}', to) : to;
        if (end == std::string::npos || to == from) return {};
        std::string value(only_text_of(file, std::string_view(out).substr(from, to - from)));
        if (value.empty() && braces && out.compare(to, 2, ":-") == 0) value = out.substr(to + 2, end - to - 2);
        if (value.empty()) return {};
        out.replace(at, end + (braces ? 1 : 0) - at, value);
    }
    return out;
}

// NAME=value on each line that is neither empty nor a comment.
bool holds_settings(std::string_view text) {
    bool any = false;
    for (std::string_view line : split(text, '\n')) {
        line = trim(line);
        if (line.empty() || line.starts_with('#')) continue;
        std::size_t end = 0;
        while (end < line.size() && shell_name_char(line[end])) ++end;
        if (end == 0 || end == line.size() || line[end] != '=') return false;
        any = true;
    }
    return any;
}

std::string_view without_quotes(std::string_view word) {
    while (word.size() > 1 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front())
        word = word.substr(1, word.size() - 2);
    return word;
}

// export $(grep -v '^#' .env | xargs), while read -r line; do export "$line"; done < .env: what may be such a file.
std::vector<std::string_view> read_and_exported(std::string_view all) {
    std::vector<std::string_view> found;
    for (std::size_t at = all.find("export"); at != std::string_view::npos && found.size() < 16;
         at = all.find("export", at + 1)) {
        const std::size_t line = all.rfind('\n', at) + 1;  // npos + 1: the first line
        std::string_view before = trim(all.substr(line, at - line));
        for (const std::string_view word : {"do", "set -a;", "&&", "then"})
            if (before.ends_with(word)) before = {};
        if (before.ends_with(';')) before = {};
        if (!before.empty() || at + 7 >= all.size() || all[at + 6] != ' ') continue;
        const std::size_t end = std::min(all.find('\n', at), all.size());
        std::string_view rest = trim(all.substr(at + 7, end - at - 7));
        if (rest.starts_with('"')) rest.remove_prefix(1);
        if (rest.starts_with("$(")) {
            const std::size_t close = rest.find(')');
            if (close == std::string_view::npos) continue;
            for (std::string_view piece : split(rest.substr(2, close - 2), ' ')) {
                if (piece.starts_with('<')) piece.remove_prefix(1);
                piece = without_quotes(trim(piece));
                if (!piece.empty() && !piece.starts_with('-') && piece.find_first_of("^|\\*") == piece.npos)
                    found.push_back(piece);
            }
        } else if (rest.starts_with('$')) {
            std::size_t done = all.find("done", at);
            while (done != std::string_view::npos &&
                   std::string_view(" ;\n\t").find(all[done - 1]) == std::string_view::npos)
                done = all.find("done", done + 1);
            if (done == std::string_view::npos) continue;
            const std::size_t stop = std::min(all.find('\n', done), all.size());
            std::string_view tail = trim(all.substr(done + 4, stop - done - 4));
            if (!tail.starts_with('<') || tail.starts_with("<<")) continue;
            tail = trim(tail.substr(1));
            if (tail.starts_with("<(")) {  // <(grep -v '^#' .env)
                for (std::string_view piece : split(tail.substr(2, tail.find(')') - 2), ' '))
                    if (piece = without_quotes(trim(piece)); !piece.empty() && !piece.starts_with('-'))
                        found.push_back(piece);
            } else {
                found.push_back(without_quotes(tail.substr(0, tail.find_first_of(" ;|#"))));
            }
        }
    }
    return found;
}

}  // namespace

// Files that the script sources, when they lie beside it, and settings that it reads and exports; their variables are
// known where the script has none.
void ShellValues::read_sourced(File& file, const ReadOptions& options) {
    if (!options.neighbour || file.host) return;
    std::size_t count = 0;
    bool exports_all = false;  // between set -a and set +a
    const auto take = [&](std::string_view word, bool exported, bool settings) {
        std::string_view name = path_beside(word);
        const std::string spelled = name.empty() ? with_constants(word, file) : std::string();
        if (name.empty()) name = path_beside(spelled);
        if (name.empty()) return;
        // Beside the script, or seen from the folder above it, from where it is run as often.
        std::string path(name);
        auto text = options.neighbour(path);
        if (!text) text = options.neighbour(path = "../" + path);
        if (!text || text->size() > kMostSourcedBytes || text->find('\0') != std::string::npos ||
            (settings && !holds_settings(*text)) || ++count > kMostSourced)
            return;
        file.neighbours.push_back(std::make_unique<File>(path_from(file.path(), path), std::move(*text)));
        File& read = *file.neighbours.back();
        if (read.path() == file.path()) return;
        read.kinds.add(Kind::launch);
        read_shell(read, ReadOptions{});
        if (exported)
            for (Assignment& each : read.script.assignments) each.exported = true;
        file.script.sourced.push_back(&read);
    };
    for (const Command& command : file.script.commands) {
        if (command.name() == "set" && command.words.size() == 2 &&
            (command.words[1].is("-a") || command.words[1].is("+a")))
            exports_all = command.words[1].is("-a");
        if ((command.name() == "source" || command.name() == ".") && command.words.size() > 1)
            take(command.words[1].text, exports_all, false);
    }
    for (const std::string_view word : read_and_exported(file.source().text())) take(word, true, true);
}

}  // namespace stoker::lint
