#include "lint/kubernetes/container_parts.h"

#include <algorithm>

#include "lint/yaml/scalars.h"

namespace stoker::lint {

bool is_shell_program(std::string_view word) {
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
    return word == "sh" || word == "bash" || word == "dash" || word == "ash" || word == "zsh";
}

namespace {

// Index of the script behind `bash -c`, `sh -lc`, `bash -o pipefail -c`; npos: there is none.
std::size_t script_word(const std::vector<Value>& words) {
    constexpr std::size_t kNone = ~std::size_t{0};
    for (std::size_t shell = 0; shell < words.size(); ++shell) {
        if (!words[shell].known() || !is_shell_program(words[shell].text)) continue;
        for (std::size_t i = shell + 1; i + 1 < words.size(); ++i) {
            const std::string_view option = words[i].text;
            if (!words[i].known() || option.size() < 2 || (option[0] != '-' && option[0] != '+')) break;
            if (option[0] == '-' && option[1] != '-' && option.find('c') != std::string_view::npos) {
                std::size_t script = i + 1;
                while (script + 1 < words.size() && words[script].text.starts_with('-')) ++script;  // bash -c -- script
                return script;
            }
            if (option.ends_with('o')) ++i;  // -o pipefail
        }
    }
    return kNone;
}

}  // namespace

std::vector<Piece> pieces_within(const Node& node) {
    const auto size = static_cast<std::uint32_t>(node.text.size());
    if (node.source->text(node.span) == node.text) return {{0, size, node.span, Piece::Kind::verbatim}};
    std::vector<Piece> pieces = pieces_of(node);
    if (pieces.empty() && size > 0) pieces.push_back({0, size, node.span, Piece::Kind::changed});
    return pieces;
}

const File* read_text_guest(File& file, const Node& node, Kinds kinds, const ReadOptions& options,
                            const Container* container) {
    return read_guest(file, std::string(node.text), pieces_within(node), kinds, options, container, node.source);
}

void read_command(File& file, Container& container, const ReadOptions& options) {
    const std::size_t script = script_word(container.command);
    if (script < container.command.size()) {
        const Value& word = container.command[script];
        if (!word.known() || !word.source) return;
        std::vector<Piece> pieces;
        if (word.node) {
            pieces = pieces_within(*word.node);
            if (pieces.size() == 1 && pieces[0].length != word.text.size())
                pieces = {{0, static_cast<std::uint32_t>(word.text.size()), pieces[0].host, Piece::Kind::changed}};
        } else {  // a word of a command that is one string
            const bool same = word.source->text(word.span) == word.text;
            pieces.push_back({0, static_cast<std::uint32_t>(word.text.size()), word.span,
                              same ? Piece::Kind::verbatim : Piece::Kind::changed});
        }
        const File* guest = read_guest(file, std::string(word.text), std::move(pieces), {Kind::launch}, options,
                                       &container, word.node ? word.node->source : word.source);
        if (guest) container.scripts.push_back(guest);
        return;
    }
    if (container.command.empty()) return;
    const Value& first = container.command.front();
    const Value& last = container.command.back();
    Span span = first.span;
    if (last.source == first.source) span.end = std::max(span.end, last.span.end);
    if (auto launch = launch_of_words(file, container.command, span)) {
        container.launches.push_back(static_cast<int>(file.launches.size()));
        file.launches.push_back(std::move(*launch));
    }
}

}  // namespace stoker::lint
