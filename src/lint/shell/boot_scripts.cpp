// What a machine of AWS or Google runs when it starts, as root: a text, a file, a heredoc that was written before, or
// what a function prints; and texts for the shell of another user.
#include <algorithm>

#include "lint/shell/called_scripts.h"
#include "lint/shell/launch_finder.h"

namespace stoker::lint {

namespace {

constexpr std::string_view kStartupScript = "startup-script=";

const Kinds kBootKinds{Kind::launch, Kind::az, Kind::cloud_init};

}  // namespace

// su - ubuntu -c "...": as bash -c.
void LaunchFinder::as_user(const Words& words, std::size_t at, const Launch& launch) {
    for (std::size_t k = at + 1; k + 1 < words.size(); ++k)
        if (one_of(words[k].text, {"-c", "--command", "-lc"})) {
            guest_of_words(words, k + 1, launch, k + 2);
            return;
        }
}

void LaunchFinder::boots(const Words& words, std::size_t at, const Launch& launch) {
    if (!file_) return;
    for (std::size_t k = at + 1; k < words.size(); ++k) {
        WordOption option;
        if (!read_option(words, k, option, [](std::string_view name) {
                return one_of(name, {"user-data", "metadata", "metadata-from-file"});
            }))
            continue;
        if (!one_of(option.name, {"user-data", "metadata", "metadata-from-file"}) || !option.value.present()) continue;
        Value value = option.value;
        if (option.name != "user-data") {
            const std::size_t named = value.text.find(kStartupScript);
            if (named == std::string_view::npos) continue;
            value = part_of(value, named + kStartupScript.size());
        }
        std::string_view text = value.text;
        const bool file = option.name == "metadata-from-file" || text.starts_with("file://");
        if (text.starts_with("file://")) text.remove_prefix(7);
        if (text.find("$(") != std::string_view::npos || text.find("<(") != std::string_view::npos)
            boot_printed(value);
        else if (file)
            boot_file(text.substr(0, text.find(',')), launch.span);
        else if (value.known())
            boot_text(value, launch);
    }
}

void LaunchFinder::boot_text(const Value& text, const Launch& launch) {
    if (text.source != &file_->source() || text.text.find_first_of(" \n") == std::string_view::npos) return;
    std::vector<Piece> pieces;
    // Within its quotes it stands as it is.
    const std::string_view written = text.source->text(text.span);
    const std::size_t at = written.find(text.text);
    const auto size = static_cast<std::uint32_t>(text.text.size());
    if (at == std::string_view::npos) {
        pieces.push_back({0, size, text.span, Piece::Kind::changed});
    } else {
        const auto begin = text.span.begin + static_cast<std::uint32_t>(at);
        pieces.push_back({0, size, {begin, begin + size}, Piece::Kind::verbatim});
    }
    guest(std::string(text.text), std::move(pieces), kBootKinds, launch);
}

// A file that this script wrote, or one beside it.
void LaunchFinder::boot_file(std::string_view path, Span at) {
    for (const Command& command : file_->script.commands)
        for (const Redirect& to : command.redirects) {
            if (!to.op.starts_with('>') || to.target.text != path) continue;
            for (const Redirect& from : command.redirects)
                for (const auto& made : file_->guests)
                    if (!from.body.empty() && from.op.starts_with("<<") && made->source().outer() == &file_->source()) {
                        const Span outside = made->source().in_outermost({0, 1});
                        const Span body = file_->source().in_outermost(from.body);
                        if (body.begin <= outside.begin && outside.end <= body.end) made->kinds.add(Kind::cloud_init);
                    }
            return;
        }
    Value word;
    word.state = Value::State::known;
    word.text = path;
    auto made = script_beside(word, kRunByShell, file_->source().in_outermost(at));
    if (!made) return;
    made->kinds.add(Kind::cloud_init);
    std::vector<EnvVar> nothing;
    run_here(std::move(made), std::move(nothing), {});
}

// "$(boot)", <(boot), "$(cat <<EOF ...)".
void LaunchFinder::boot_printed(const Value& word) {
    const Source& source = file_->source();
    if (word.source != &source) return;
    const std::size_t open = word.text.find('(');
    std::string_view inside = word.text.substr(open + 1);
    inside = inside.substr(0, inside.find(')'));
    const std::string head = std::string(inside) + "()";
    const std::size_t function = env_name(inside) ? source.text().find(head) : std::string_view::npos;
    const auto& commands = file_->script.commands;
    for (std::size_t k = 0; k < commands.size(); ++k) {
        const Command& command = commands[k];
        const bool within = word.span.contains(command.span);
        const bool printed = function != std::string_view::npos && command.in_function && command.span.begin > function;
        if (!within && !printed) continue;
        for (const Redirect& redirect : command.redirects)
            if (redirect.op.starts_with("<<") && !redirect.body.empty()) {
                embed(redirect, "boot.sh", kBootKinds);
                return;
            }
        if (printed && k + 1 < commands.size() && !commands[k + 1].in_function) return;
    }
}

}  // namespace stoker::lint
