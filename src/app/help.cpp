// What the command tables say, for people, shells and man.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "app/args.h"
#include "app/explain_pages.h"
#include "app/help.h"
#include "base/embedded.h"
#include "base/text.h"
#include "base/version.h"
#include "catalog/catalog.h"
#include "lint/rule.h"
#include "workload/stages.h"
#include "workload/workload.h"

namespace stoker {

namespace {

constexpr std::size_t kHelpWidth = 100;

// Paragraphs to the width of a terminal; indented lines keep their shape.
std::string wrapped_lines(std::string_view text) {
    std::string out;
    for (const std::string_view line : split_lines(text)) {
        if (line.starts_with(' ')) {
            out += std::string(line) + "\n";
            continue;
        }
        for (const std::string& part : wrap(line, kHelpWidth)) out += part + "\n";
    }
    return out;
}

std::string option_line(const OptionSpec& option) {
    std::string left =
        option.letter ? fmt::format("-{}, --{}", option.letter, option.name) : fmt::format("    --{}", option.name);
    if (!option.value.empty()) left += " " + option.value;
    std::string right = option.help;
    if (!option.choices.empty()) right += fmt::format(" [{}]", fmt::join(option.choices, "|"));
    std::string text;
    for (const std::string& line : wrap(right, kHelpWidth - 29)) {
        text += fmt::format("  {:<26} {}\n", left, line);
        left.clear();
    }
    return text;
}

std::string words_of(const std::vector<OptionSpec>& options) {
    std::string words;
    for (const OptionSpec& option : options) words += "--" + option.name + " ";
    return words;
}

// What `completes` stands for, as words; files and folders are the shell's own to find.
std::string words_for(std::string_view what) {
    std::vector<std::string> words;
    const auto catalog = Catalog::embedded();
    const bool sizes = what == "size" || what == "compare", gpus = what == "compare";
    if (catalog && sizes)
        for (const NodeType& node : catalog->node_types()) words.push_back(node.name);
    if (catalog && gpus)
        for (const Accelerator& gpu : catalog->accelerators()) words.push_back(gpu.name);
    if (what == "topic") {
        for (const ExplainPage& page : explain_pages()) words.push_back(page.name);
        for (const lint::RulePage& page : lint::rule_pages()) words.push_back(page.id);
    }
    if (what == "template") {
        for (const EmbeddedFile& file : embedded_files()) {
            if (file.path.starts_with("templates/") && file.path.ends_with(".yaml"))
                words.push_back(std::filesystem::path(file.path).stem().string());
        }
    }
    std::erase_if(words, [](const std::string& word) { return word.find(' ') != std::string::npos; });
    return join(words, " ");
}

bool takes_files(std::string_view what) {
    return what == "file" || what == "dir" || what == "compare";
}

// Runs are not known beforehand: the shell asks for them, with a function that its script brings.
constexpr std::string_view kRunsOfShell = "$(_stoker_runs)", kRunsOfFish = "(_stoker_runs)";
constexpr std::string_view kListRuns =
    "stoker ps --all -o json 2>/dev/null | sed -n 's/.*\"id\": \"\\(r-[0-9]*\\)\".*/\\1/p'";

// Subcommands first; names of things from the second positional on, or at once where there are no subcommands.
struct Positionals {
    std::string first, rest;
    bool files = false;
};
Positionals positionals_of(const CliCommand& command) {
    std::string names = words_for(command.completes);
    if (command.name == "template") names = words_for("template");
    if (command.completes == "run") names = kRunsOfShell;
    const std::string subcommands = join(command.subcommands, " ");
    // Either a subcommand or a run stands first, and then nothing more.
    if (!subcommands.empty() && command.completes == "run")
        return {subcommands + " " + names, "", takes_files(command.completes)};
    return {subcommands.empty() ? names : subcommands, names, takes_files(command.completes)};
}

// Every option that takes one of a few words, once: shells look at the word before.
std::map<std::string, std::string> choices_by_option(bool files) {
    std::map<std::string, std::string> found;
    for (const CliCommand& command : all_commands()) {
        for (const auto* list : {&command.options, &common_options()}) {
            for (const OptionSpec& option : *list) {
                if (option.value.empty()) continue;
                if (files && takes_files(option.completes)) found["--" + option.name];
                if (!files && !option.choices.empty()) found["--" + option.name] = join(option.choices, " ");
                if (!files && option.completes == "run") found["--" + option.name] = kRunsOfShell;
            }
        }
    }
    return found;
}

std::string quoted_for_shell(std::string_view text) {
    return "'" + replace_all(text, "'", "'\\''") + "'";
}

std::string bash_script(const std::string& names) {
    std::string by_option, cases, files;
    for (const auto& [option, words] : choices_by_option(false))
        by_option +=
            fmt::format("        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return;;\n", option, words);
    for (const auto& [option, none] : choices_by_option(true)) files += (files.empty() ? "" : "|") + option;
    by_option += fmt::format("        {}) COMPREPLY=($(compgen -f -- \"$current\")); return;;\n", files);
    for (const CliCommand& command : all_commands()) {
        const Positionals p = positionals_of(command);
        cases += fmt::format(
            "        {})\n            options=\"{}{}\"\n            [ \"$COMP_CWORD\" -eq 2 ] && words=\"{}\" || "
            "words=\"{}\"\n"
            "            files={};;\n",
            command.name, words_of(command.options), words_of(common_options()), p.first, p.rest, p.files ? 1 : 0);
    }
    return fmt::format(
        "# bash completion of stoker; load it with: source <(stoker completion bash)\n"
        "_stoker_runs() {{ {}; }}\n"
        "_stoker() {{\n"
        "    local current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
        "    local words=\"{}\" options=\"--help --version\" files=0\n"
        "    COMPREPLY=()\n"
        "    case \"$before\" in\n{}    esac\n"
        "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
        "        words=\"\"\n"
        "        case \"${{COMP_WORDS[1]}}\" in\n{}        esac\n"
        "    fi\n"
        "    case \"$current\" in\n"
        "        -*) words=\"$options\"; files=0;;\n"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
        "    [ \"$files\" -eq 1 ] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
        "    return 0\n"
        "}}\n"
        "complete -o filenames -F _stoker stoker\n",
        kListRuns, names, by_option, cases);
}

std::string zsh_script() {
    std::string text = "#compdef stoker\n# zsh completion of stoker; put it into a folder of $fpath as _stoker\n" +
                       fmt::format("_stoker_runs() {{ {}; }}\n", kListRuns) +
                       "_stoker() {\n    local -a commands\n    commands=(\n";
    for (const CliCommand& command : all_commands())
        text += "        " + quoted_for_shell(command.name + ":" + replace_all(command.summary, ":", "\\:")) + "\n";
    text +=
        "    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    case ${words[CURRENT-1]} "
        "in\n";
    std::string files;
    for (const auto& [option, words] : choices_by_option(false))
        text += fmt::format("        {}) compadd -- {}; return;;\n", option, words);
    for (const auto& [option, none] : choices_by_option(true)) files += (files.empty() ? "" : "|") + option;
    text += fmt::format("        {}) _files; return;;\n    esac\n    case ${{words[2]}} in\n", files);
    for (const CliCommand& command : all_commands()) {
        const Positionals p = positionals_of(command);
        text += fmt::format("        {})\n            if [[ $PREFIX == -* ]]; then compadd -- {}{}; return; fi\n",
                            command.name, words_of(command.options), words_of(common_options()));
        if (p.first == p.rest) {
            if (!p.rest.empty()) text += fmt::format("            compadd -- {}\n", p.rest);
        } else {
            text += fmt::format("            if (( CURRENT == 3 )); then compadd -- {}{} fi\n", p.first,
                                p.rest.empty() ? ";" : fmt::format("; else compadd -- {};", p.rest));
        }
        text += p.files ? "            _files;;\n" : "            ;;\n";
    }
    return text + "    esac\n}\ncompdef _stoker stoker\n[[ ${funcstack[1]} == _stoker ]] && _stoker \"$@\"\n";
}

std::string fish_script() {
    std::string text =
        "# fish completion of stoker; put it into ~/.config/fish/completions/stoker.fish\n"
        "complete -c stoker -n __fish_use_subcommand -f\n" +
        fmt::format("function _stoker_runs; {}; end\n", kListRuns);
    for (const CliCommand& command : all_commands()) {
        text += fmt::format("complete -c stoker -n __fish_use_subcommand -a {} -d {}\n", command.name,
                            quoted_for_shell(command.summary));
        const std::string seen = fmt::format("complete -c stoker -n '__fish_seen_subcommand_from {}'", command.name);
        for (const auto* list : {&command.options, &common_options()}) {
            for (const OptionSpec& option : *list) {
                text += fmt::format("{} -l {}{}{}{} -d {}\n", seen, option.name,
                                    option.letter ? fmt::format(" -s {}", option.letter) : "",
                                    option.value.empty()            ? ""
                                    : takes_files(option.completes) ? " -r"
                                                                    : " -x",
                                    !option.choices.empty() ? fmt::format(" -a '{}'", fmt::join(option.choices, " "))
                                    : option.completes == "run" ? fmt::format(" -a '{}'", kRunsOfFish)
                                                                : "",
                                    quoted_for_shell(option.help));
            }
        }
        Positionals p = positionals_of(command);
        if (command.completes == "run" && command.subcommands.empty()) p.first = p.rest = kRunsOfFish;
        if (command.completes == "run" && !command.subcommands.empty())
            p.first = join(command.subcommands, " ") + " " + std::string(kRunsOfFish);
        if (!p.files) text += seen + " -f\n";
        if (!p.first.empty()) text += fmt::format("{} -a '{}'\n", seen, p.first);
        if (p.rest != p.first && !p.rest.empty()) text += fmt::format("{} -a '{}'\n", seen, p.rest);
    }
    return text;
}

// What a line of text needs so that roff takes it as text: no request at its start, no escape inside.
std::string roff(std::string_view text) {
    std::string out = replace_all(replace_all(text, "\\", "\\e"), "-", "\\-");
    if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
    return out;
}

std::string roff_head(std::string_view name, std::string_view summary) {
    const auto catalog = Catalog::embedded();
    const std::string as_of = catalog ? catalog->as_of : std::string();
    return fmt::format(".TH {} 1 \"{}\" \"stoker {}\" \"Stoker\"\n.SH NAME\n{} \\- {}\n", upper(name), as_of,
                       version().number, roff(name), roff(summary));
}

std::string roff_options(const std::vector<OptionSpec>& options) {
    std::string text;
    for (const OptionSpec& option : options) {
        std::string help = option.help;
        if (!option.choices.empty()) help += fmt::format(" One of: {}.", fmt::join(option.choices, ", "));
        text += fmt::format(".TP\n.B {}\\-\\-{}{}\n{}\n", option.letter ? fmt::format("\\-{}, ", option.letter) : "",
                            roff(option.name), option.value.empty() ? "" : " " + option.value, roff(help));
    }
    return text;
}

constexpr std::string_view kRoffExit =
    ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe answer is no\n.TP\n.B 2\nthe input or the usage is wrong\n"
    ".TP\n.B 3\nsomething outside is unavailable or denied\n.TP\n.B 4\na bug in stoker\n";

// Paragraphs as they are; lines that are indented keep their shape.
std::string roff_paragraphs(std::string_view text) {
    std::string out;
    bool shaped = false;
    for (const std::string_view line : split_lines(text)) {
        const bool indented = line.starts_with(' ');
        if (indented != shaped) out += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
        shaped = indented;
        out += roff(line) + "\n";
    }
    return out + (shaped ? ".fi\n" : "");
}

}  // namespace

std::string help_text(const CliCommand& command) {
    std::string text = fmt::format("{}\n\nusage: {}\n", command.summary, command.usage);
    if (!command.description.empty()) text += "\n" + wrapped_lines(command.description);
    if (!command.options.empty()) {
        text += "\noptions:\n";
        for (const OptionSpec& option : command.options) text += option_line(option);
    }
    text += "\noptions of every command:\n";
    for (const OptionSpec& option : common_options()) text += option_line(option);
    if (!command.examples.empty()) {
        text += "\nexamples:\n";
        for (const std::string& example : command.examples) text += "  " + example + "\n";
    }
    return text;
}

std::string overview_text() {
    std::string text =
        "stoker: from a workload to the compute that fits it, with the cost, the reasons and the error bars.\n\nusage: "
        "stoker COMMAND [...]\n";
    for (const CommandGroup& group : command_groups()) {
        text += fmt::format("\n{}\n", group.title);
        for (const CliCommand& command : group.commands)
            text += fmt::format("  {:<12} {}\n", command.name, command.summary);
    }
    text +=
        "\nstart with:\n"
        "  stoker plan                        answer a few questions; the answers become a workload file\n"
        "  stoker plan workload.yaml          plan what the file describes\n"
        "  stoker COMMAND --help              options and examples of one command\n"
        "  stoker --version                   version, commit, catalogue\n"
        "\nexit codes: 0 done; 1 the answer is no; 2 input or usage; 3 something outside; 4 a bug in stoker\n";
    return text;
}

std::string completion_script(std::string_view shell) {
    std::string names;
    for (const CliCommand& command : all_commands()) names += command.name + " ";
    if (shell == "bash") return bash_script(names);
    if (shell == "zsh") return zsh_script();
    if (shell == "fish") return fish_script();
    return {};
}

std::string man_page(const CliCommand& command) {
    std::string text = roff_head("stoker-" + command.name, command.summary) +
                       fmt::format(".SH SYNOPSIS\n.B {}\n", roff(command.usage));
    if (!command.description.empty()) text += ".SH DESCRIPTION\n" + roff_paragraphs(command.description);
    text += ".SH OPTIONS\n" + roff_options(command.options) + roff_options(common_options());
    if (!command.examples.empty()) {
        text += ".SH EXAMPLES\n.nf\n";
        for (const std::string& example : command.examples) text += roff(example) + "\n";
        text += ".fi\n";
    }
    return text + std::string(kRoffExit) + ".SH SEE ALSO\n.BR stoker (1)\n";
}

std::string man_overview() {
    std::string text =
        roff_head("stoker", "from a workload to the compute that fits it, with the cost and the reasons") +
        ".SH SYNOPSIS\n.B stoker\n.I COMMAND\n[...]\n.SH COMMANDS\n";
    for (const CliCommand& command : all_commands())
        text += fmt::format(".TP\n.BR stoker\\-{} (1)\n{}\n", command.name, roff(command.summary));
    return text + ".SH OPTIONS OF EVERY COMMAND\n" + roff_options(common_options()) + std::string(kRoffExit);
}

std::string reference_markdown() {
    std::string text =
        "# Commands\n\nGenerated by `stoker completion reference` from the command tables; do not edit.\n\n"
        "Exit codes of every command: 0 done; 1 the answer is no (infeasible, findings, the run failed); 2 the input "
        "or usage is wrong;\n"
        "3 something outside is unavailable or denied; 4 a bug in Stoker.\n\n## Options of every command\n\n```\n";
    for (const OptionSpec& option : common_options()) text += option_line(option);
    text += "```\n";
    for (const CliCommand& command : all_commands()) {
        text += fmt::format("\n## stoker {}\n\n{}\n\n```\n{}\n", command.name, command.summary, command.usage);
        for (const OptionSpec& option : command.options) text += option_line(option);
        for (const std::string& example : command.examples) text += "\n$ " + example;
        text += command.examples.empty() ? "```\n" : "\n```\n";
        if (command.description.find("\n  ") != std::string::npos)  // its shape matters
            text += "\n```\n" + command.description + "\n```\n";
        else if (!command.description.empty())
            text += "\n" + command.description + "\n";
    }
    return text;
}

std::string workload_reference() {
    return "# The workload file\n\nGenerated by `stoker schema workload-reference` from the tables that read the file; "
           "do not edit.\n"
           "`stoker schema workload` prints the same as JSON Schema, for editors.\n\n" +
           workload_record().reference_markdown() + "\n" + stages_reference();
}

}  // namespace stoker
