#include "app/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ids.h"
#include "base/table.h"
#include "base/text.h"

namespace stoker {

std::optional<std::string> Args::get(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second.back();
}

std::vector<std::string> Args::all(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::string Args::get_or(std::string_view name, std::string_view otherwise) const {
    return get(name).value_or(std::string(otherwise));
}

Result<double> Args::number(std::string_view name, double otherwise, double low, double high) const {
    const auto text = get(name);
    if (!text) return otherwise;
    const auto value = parse_count(*text);
    if (!value || *value < low || *value > high) {
        return Error(ErrorKind::invalid, fmt::format("--{} takes a number from {:.10g} to {:.10g}, not '{}'", name, low,
                                                     high, printable(*text, 40)));
    }
    return *value;
}

Result<int> Args::whole_number(std::string_view name, int otherwise, int low, int high) const {
    TRY(const double value, number(name, otherwise, low, high));
    if (value != std::floor(value)) {
        return Error(ErrorKind::invalid, fmt::format("--{} takes a whole number from {} to {}, not '{}'", name, low,
                                                     high, printable(get_or(name, ""), 40)));
    }
    return static_cast<int>(value);
}

const std::vector<OptionSpec>& common_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "output",
         .letter = 'o',
         .value = "FORMAT",
         .help = "text for people, json or yaml for programs",
         .choices = {"text", "json", "yaml"}},
        {.name = "catalog",
         .value = "DIR",
         .help = "use this folder (laid out as data/) instead of the built-in catalogue",
         .completes = "dir"},
        {.name = "color",
         .value = "WHEN",
         .help = "colour: auto, always, never (NO_COLOR is honoured)",
         .choices = {"auto", "always", "never"}},
        {.name = "quiet", .letter = 'q', .help = "no progress on stderr"},
        {.name = "help", .letter = 'h', .help = "this text"},
    };
    return options;
}

const CliCommand* find_command(std::string_view name) {
    const auto find = [&](const std::vector<CliCommand>& commands) {
        const auto found =
            std::find_if(commands.begin(), commands.end(), [&](const CliCommand& each) { return each.name == name; });
        return found == commands.end() ? nullptr : &*found;
    };
    // First what runs by the hundred beside the work: it has no use for the words of all others.
    if (const CliCommand* internal = find(internal_commands())) return internal;
    for (const CommandGroup& group : command_groups())
        if (const CliCommand* command = find(group.commands)) return command;
    return nullptr;
}

namespace {

const OptionSpec* find_option(const CliCommand& command, std::string_view name) {
    for (const auto* list : {&command.options, &common_options()}) {
        for (const OptionSpec& option : *list) {
            if (option.name == name || (name.size() == 1 && option.letter == name[0])) return &option;
        }
    }
    return nullptr;
}

std::vector<std::string> option_names(const CliCommand& command) {
    std::vector<std::string> names;
    for (const auto* list : {&command.options, &common_options()}) {
        for (const OptionSpec& option : *list) names.push_back("--" + option.name);
    }
    return names;
}

Error usage_error(const CliCommand& command, std::string message) {
    return Error(ErrorKind::invalid, std::move(message), {},
                 fmt::format("usage: {}   (stoker {} --help)", command.usage, command.name));
}

Error unknown_option(const CliCommand& command, std::string_view word) {
    const auto near = nearest(word, option_names(command));
    return usage_error(command, fmt::format("stoker {} has no option {}{}", command.name, printable(word, 60),
                                            near ? fmt::format(" (did you mean {}?)", *near) : std::string()));
}

Status check_choice(const CliCommand& command, const OptionSpec& option, const std::string& value) {
    if (option.choices.empty() ||
        std::find(option.choices.begin(), option.choices.end(), value) != option.choices.end())
        return done();
    const auto near = nearest(value, option.choices);
    return usage_error(
        command, fmt::format("--{} takes {}, not '{}'{}", option.name, fmt::join(option.choices, ", "),
                             printable(value, 60), near ? fmt::format(" (did you mean {}?)", *near) : std::string()));
}

// One option word with what follows it; `next` moves past what was used. Switches of one letter may share a dash with
// what follows them, as in -qo json.
Status parse_option(const CliCommand& command, const std::vector<std::string>& words, std::size_t& next, Args& args) {
    std::string word = words[next++];
    for (;;) {
        const OptionSpec* letter =
            word[1] == '-' || word.size() < 3 ? nullptr : find_option(command, word.substr(1, 1));
        if (letter == nullptr || !letter->value.empty()) break;
        args.add(letter->name, "");
        word.erase(1, 1);
    }
    std::string name, value;
    bool has_value = false;
    if (word.starts_with("--")) {
        const auto equals = word.find('=');
        name = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
        if (equals != std::string::npos) {
            value = word.substr(equals + 1);
            has_value = true;
        }
        if (name.size() < 2) return unknown_option(command, word);
    } else {
        name = word.substr(1, 1);
        if (word.size() > 2) {
            value = word.substr(2);
            has_value = true;
        }
    }
    const OptionSpec* option = find_option(command, name);
    if (option == nullptr) return unknown_option(command, word);
    if (option->value.empty()) {
        if (has_value) return usage_error(command, fmt::format("--{} takes no value", option->name));
        args.add(option->name, "");
        return done();
    }
    if (!has_value) {
        if (next >= words.size())
            return usage_error(command, fmt::format("--{} needs a {}", option->name, option->value));
        value = words[next++];
    }
    if (!option->repeats && args.has(option->name))
        return usage_error(command, fmt::format("--{} was given twice", option->name));
    TRY_VOID(check_choice(command, *option, value));
    args.add(option->name, value);
    while (option->many && next < words.size() && (words[next] == "-" || !words[next].starts_with('-')))
        args.add(option->name, words[next++]);
    return done();
}

// What the usage line names behind the command, such as FILE or "gpus|sizes [NAME]".
std::string missing_word(const CliCommand& command) {
    const std::vector<std::string_view> words = split_words(command.usage);
    return words.size() > 2 ? std::string(words[2]) : "more to go on";
}

}  // namespace

Result<Args> parse_args(const CliCommand& command, const std::vector<std::string>& words) {
    Args args;
    bool only_positional = false;
    for (std::size_t next = 0; next < words.size();) {
        const std::string& word = words[next];
        if (!only_positional && word == "--" && command.takes_program) {
            args.program.assign(words.begin() + static_cast<std::ptrdiff_t>(next) + 1, words.end());
            if (args.program.empty()) return usage_error(command, "no program behind --");
            break;
        }
        if (!only_positional && word == "--") {
            only_positional = true;
            ++next;
        } else if (!only_positional && word.size() > 1 && word[0] == '-') {
            TRY_VOID(parse_option(command, words, next, args));
        } else {
            args.positional.push_back(word);
            ++next;
        }
    }
    if (args.has("help")) return args;
    if (args.positional.size() < command.min_positional)
        return usage_error(command, fmt::format("stoker {} needs {}", command.name, missing_word(command)));
    if (args.positional.size() > command.max_positional) {
        return usage_error(command, fmt::format("stoker {} does not know what to do with '{}'", command.name,
                                                printable(args.positional[command.max_positional], 60)));
    }
    if (!command.subcommands.empty() && !args.positional.empty()) {
        const std::string& word = args.positional[0];
        const bool run = command.completes == "run" && RunId::parse(word);
        if (!run &&
            std::find(command.subcommands.begin(), command.subcommands.end(), word) == command.subcommands.end()) {
            const auto near = nearest(word, command.subcommands);
            return usage_error(command,
                               fmt::format("stoker {} has no '{}'{}; it has {}{}", command.name, printable(word, 60),
                                           near ? fmt::format(" (did you mean {}?)", *near) : std::string(),
                                           fmt::join(command.subcommands, ", "),
                                           command.completes == "run" ? ", and takes a run such as r-7" : ""));
        }
    }
    return args;
}

}  // namespace stoker
