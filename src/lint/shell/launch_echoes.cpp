// Batch scripts that a script writes line by line: { echo '#!/bin/bash'; echo '#SBATCH -N 2'; } > job, echo ... >> job.
#include <optional>

#include "lint/check.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

namespace {

// Where the words that are said begin; nothing: the command says none, or undoes escapes in them.
std::optional<std::size_t> says_line(const Command& command) {
    if (command.name() == "echo") {
        if (command.words.size() > 1 && command.words[1].text.starts_with('-') && command.words[1].text.size() < 4)
            return std::nullopt;
        return 1;
    }
    if (command.name() == "printf" && command.words.size() == 3 &&
        (command.words[1].text == "%s\\n" || command.words[1].text == "%s\n"))
        return 2;
    return std::nullopt;
}

// $(...) as a variable that nothing sets: what it comes to is one word where it stands, whatever its own words are.
bool without_substitutions(std::string& text) {
    bool changed = false;
    for (std::size_t at = text.find("$("); at != std::string::npos; at = text.find("$(", at + 1)) {
        std::size_t end = at + 2;
        for (int open = 1; end < text.size() && open > 0; ++end)
            open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
        text.replace(at, end - at, "${echoed}");
        changed = true;
    }
    return changed;
}

}  // namespace

void LaunchFinder::echoed() {
    const auto& commands = file_->script.commands;
    const Source& source = file_->source();
    for (std::size_t k = 0; k < commands.size(); ++k) {
        const auto first = says_line(commands[k]);
        if (!first || commands[k].words.size() != *first + 1 || !commands[k].words[*first].text.starts_with("#!"))
            continue;
        std::string text;
        std::vector<Piece> pieces;
        const auto plain = [&](char c, std::uint32_t at) {
            pieces.push_back({static_cast<std::uint32_t>(text.size()), 1, {at, at}, Piece::Kind::changed});
            text += c;
        };
        std::size_t end = k;
        for (; end < commands.size(); ++end) {
            const Command& command = commands[end];
            if (command.in_substitution) continue;  // within a word of the next one
            const auto from = says_line(command);
            if (!from || text.size() > (64u << 10)) break;
            for (std::size_t word = *from; word < command.words.size(); ++word) {
                if (word > *from) plain(' ', command.words[word].span.begin);
                const Span raw = ShellValues::raw(command.words[word], source);
                GuestText part = guest_of_runs(ShellValues::of(*file_).expand(raw), source, raw);
                if (without_substitutions(part.text))
                    part.pieces = {{0, static_cast<std::uint32_t>(part.text.size()), raw, Piece::Kind::changed}};
                for (Piece piece : part.pieces) {
                    piece.guest += static_cast<std::uint32_t>(text.size());
                    pieces.push_back(piece);
                }
                text += part.text;
            }
            plain('\n', command.span.end);
        }
        if (text.find("\n#SBATCH") != std::string::npos) {
            const File* made = guest(std::move(text), std::move(pieces), {Kind::slurm, Kind::launch}, Launch{});
            if (made) file_->kinds.add(Kind::slurm);
        }
        k = end - 1;
    }
}

}  // namespace stoker::lint
