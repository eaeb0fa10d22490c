// The command line: one table per command drives parsing, help, completions, the man page and "did you mean".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct OptionSpec {
    std::string name;   // without dashes: "output"
    char letter = 0;    // 'o', or 0
    std::string value;  // what it takes, for help: "FORMAT"; empty: a switch
    std::string help;
    std::vector<std::string> choices;  // empty: anything
    bool repeats = false;
    std::string completes;  // what completion offers: "file", "dir", "size", "topic", ...; empty: choices
    bool many = false;      // takes the words that follow too, up to the next option
};

struct Session;
class Args;
struct CommandOutput {
    std::string out;  // printed to stdout in one piece, after the command has succeeded
    int exit = 0;     // 0 done, 1 the answer is no
};

struct CliCommand {
    std::string name, summary;
    std::string usage;        // "stoker plan [FILE]"
    std::string description;  // paragraphs for --help and the man page
    std::vector<std::string> examples;
    std::vector<OptionSpec> options;
    std::size_t min_positional = 0, max_positional = 0;
    std::vector<std::string> subcommands;  // offered by completion and "did you mean" for the first positional
    Result<CommandOutput> (*run)(Session&, const Args&) = nullptr;
    std::string completes;       // for positionals
    bool takes_program = false;  // what stands behind -- is a program with its arguments: Args::program
    bool warns_stale = false;    // an old catalogue is told on stderr (plan tells it in its advice)
};

class Args {
public:
    std::vector<std::string> positional;
    std::vector<std::string> program;
    bool has(std::string_view name) const { return values_.contains(name); }
    std::optional<std::string> get(std::string_view name) const;  // the last one given
    std::vector<std::string> all(std::string_view name) const;
    std::string get_or(std::string_view name, std::string_view otherwise) const;
    // A number within bounds, written as in a workload file: 90, 1.5, 20k.
    Result<double> number(std::string_view name, double otherwise, double low, double high) const;
    Result<int> whole_number(std::string_view name, int otherwise, int low, int high) const;
    void add(std::string name, std::string value) { values_[std::move(name)].push_back(std::move(value)); }

private:
    std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// Options every command takes.
const std::vector<OptionSpec>& common_options();
// In the order of --help: what belongs together, under one title.
struct CommandGroup {
    std::string title;
    std::vector<CliCommand> commands;
};
const std::vector<CommandGroup>& command_groups();
const std::vector<CliCommand>& all_commands();
// What Stoker starts itself: found by name, and told to nobody.
const std::vector<CliCommand>& internal_commands();
const CliCommand* find_command(std::string_view name);

Result<Args> parse_args(const CliCommand& command, const std::vector<std::string>& words);
std::string help_text(const CliCommand& command);
std::string overview_text();
std::string completion_script(std::string_view shell);  // bash, zsh, fish; empty for another
std::string man_page(const CliCommand& command);        // roff
std::string reference_markdown();                       // docs/reference/commands.md
std::string workload_reference();                       // docs/reference/workload.md

}  // namespace stoker
