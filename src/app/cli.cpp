#include "app/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/listing.h"
#include "app/session.h"
#include "base/table.h"
#include "base/text.h"
#include "base/version.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace stoker {

namespace {

int print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
        if (errno == EPIPE) return 0;  // stoker plan ... | head -1: the reader has what it wanted
        fmt::print(stderr, "error: stdout could not be written: {}\n", std::strerror(errno));
        return 3;
    }
    return 0;
}

int fail(const Error& error, const Session& session = {}) {
    const auto source = [&](FileName file) {
        const auto found = session.sources.find(file.view());
        return found == session.sources.end() ? std::string_view() : std::string_view(found->second);
    };
    fmt::print(stderr, "{}", error.text(source));
    return exit_code(error.kind());
}

int print_version(Session& session) {
    auto catalog = session.catalog();
    if (!catalog) return fail(catalog.error(), session);
    return print(fmt::format("stoker {} (commit {}, catalogue {} of {}, {})\n", version().number, version().commit,
                             (*catalog)->version, (*catalog)->as_of, version().compiler));
}

int unknown_command(const std::string& word) {
    std::vector<std::string> names;
    for (const CliCommand& command : all_commands()) names.push_back(command.name);
    const auto near = nearest(word, names);
    const auto is_common = [&](const OptionSpec& option) {
        const std::string name = word.substr(0, word.find('='));
        return name == "--" + option.name || (option.letter != 0 && name == fmt::format("-{}", option.letter));
    };
    if (std::any_of(common_options().begin(), common_options().end(), is_common)) {
        return fail(Error(ErrorKind::invalid, fmt::format("{} stands before the command", printable(word, 60)), {},
                          fmt::format("options stand behind it: stoker COMMAND {} ...", printable(word, 60))));
    }
    return fail(Error(ErrorKind::invalid,
                      fmt::format("stoker has no command '{}'{}", printable(word, 60),
                                  near ? fmt::format(" (did you mean {}?)", *near) : ""),
                      {}, "stoker --help lists the commands"));
}

void apply_common(const Args& args, Session& session) {
    const std::string when = args.get_or("color", "auto");
    session.style.colour = when == "always" || (when == "auto" && colour_allowed());
    session.style.unicode = unicode_allowed();
    session.style.width = std::min(100, terminal_width());
    session.interactive = stdin_is_terminal() && stdout_is_terminal();
    session.quiet = args.has("quiet");
    session.catalog_dir = args.get_or("catalog", "");
    session.stage = args.get_or("stage", "");
    session.today = today();
    const std::string format = args.get_or("output", "text");
    session.format = format == "json" ? Format::json : format == "yaml" ? Format::yaml : Format::text;
}

}  // namespace

int run_cli(const std::vector<std::string>& words) {
    Session session;
    if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
        if (words.size() > 1 && words[0] == "help") {
            const CliCommand* command = find_command(words[1]);
            return command ? print(help_text(*command)) : unknown_command(words[1]);
        }
        const int code = print(overview_text());
        return words.empty() && code == 0 ? 2 : code;
    }
    if (words[0] == "--version" || words[0] == "-V" || words[0] == "version") return print_version(session);
    const CliCommand* command = find_command(words[0]);
    if (command == nullptr) return unknown_command(words[0]);
    auto args = parse_args(*command, {words.begin() + 1, words.end()});
    if (!args) return fail(args.error());
    if (args->has("help")) return print(help_text(*command));
    apply_common(*args, session);
    auto output = command->run(session, *args);
    if (!output) return fail(output.error(), session);
    if (command->warns_stale) {
        if (const auto catalog = session.catalog())
            fmt::print(stderr, "{}", stale_warning(**catalog, args->get_or("as-of", session.today)));
    }
    const int code = print(output->out);
    return code != 0 ? code : output->exit;
}

}  // namespace stoker
