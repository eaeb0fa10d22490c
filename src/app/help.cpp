// What the command tables say, for people, shells and man.
#include <fmt/format.h>

#include <algorithm>

#include "app/args.h"
#include "base/text.h"
#include "sizing/workload.h"

namespace stoker {

namespace {

std::string option_line(const OptionSpec& option) {
    std::string left =
        option.letter ? fmt::format("-{}, --{}", option.letter, option.name) : fmt::format("    --{}", option.name);
    if (!option.value.empty()) left += " " + option.value;
    std::string right = option.help;
    if (!option.choices.empty()) right += fmt::format(" [{}]", fmt::join(option.choices, "|"));
    return fmt::format("  {:<26} {}\n", left, right);
}

std::string words_of(const std::vector<OptionSpec>& options) {
    std::string words;
    for (const OptionSpec& option : options) words += "--" + option.name + " ";
    return words;
}

}  // namespace

std::string help_text(const Command& command) {
    std::string text = fmt::format("{}\n\nusage: {}\n", command.summary, command.usage);
    if (!command.description.empty()) text += "\n" + command.description + "\n";
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
        "stoker COMMAND [...]\n\n";
    for (const Command& command : all_commands()) text += fmt::format("  {:<12} {}\n", command.name, command.summary);
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
    for (const Command& command : all_commands()) names += command.name + " ";
    if (shell == "bash") {
        std::string cases;
        for (const Command& command : all_commands()) {
            cases += fmt::format("        {}) words=\"{}{}{}\";;\n", command.name, words_of(command.options),
                                 words_of(common_options()), fmt::join(command.subcommands, " "));
        }
        return fmt::format(
            "# bash completion of stoker; load it with: source <(stoker completion bash)\n"
            "_stoker() {{\n"
            "    local current=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"{}\"\n"
            "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
            "        case \"${{COMP_WORDS[1]}}\" in\n{}        esac\n"
            "    fi\n"
            "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
            "    [ \"$COMP_CWORD\" -gt 1 ] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
            "}}\n"
            "complete -o filenames -F _stoker stoker\n",
            names, cases);
    }
    if (shell == "zsh") {
        std::string text =
            "#compdef stoker\n# zsh completion of stoker; put it into a folder of $fpath as _stoker\n_stoker() {\n    "
            "local -a commands\n    commands=(\n";
        for (const Command& command : all_commands())
            text += fmt::format("        '{}:{}'\n", command.name, command.summary);
        text +=
            "    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    case ${words[2]} in\n";
        for (const Command& command : all_commands()) {
            text += fmt::format("        {}) compadd -- {}{}{}; _files;;\n", command.name, words_of(command.options),
                                words_of(common_options()), fmt::join(command.subcommands, " "));
        }
        return text + "    esac\n}\n_stoker \"$@\"\n";
    }
    if (shell == "fish") {
        std::string text = "# fish completion of stoker; put it into ~/.config/fish/completions/stoker.fish\n";
        for (const Command& command : all_commands()) {
            text += fmt::format("complete -c stoker -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                                command.summary);
            for (const auto* list : {&command.options, &common_options()}) {
                for (const OptionSpec& option : *list) {
                    text += fmt::format(
                        "complete -c stoker -n '__fish_seen_subcommand_from {}' -l {}{}{}{}\n", command.name,
                        option.name, option.letter ? fmt::format(" -s {}", option.letter) : "",
                        option.value.empty() ? "" : " -r",
                        option.choices.empty() ? "" : fmt::format(" -a '{}'", fmt::join(option.choices, " ")));
                }
            }
            if (!command.subcommands.empty()) {
                text += fmt::format("complete -c stoker -n '__fish_seen_subcommand_from {}' -a '{}'\n", command.name,
                                    fmt::join(command.subcommands, " "));
            }
        }
        return text;
    }
    return {};
}

std::string man_page(const Command& command) {
    std::string text = fmt::format(".TH STOKER-{} 1\n.SH NAME\nstoker-{} \\- {}\n.SH SYNOPSIS\n.B {}\n",
                                   upper(command.name), command.name, command.summary, command.usage);
    if (!command.description.empty()) text += ".SH DESCRIPTION\n" + command.description + "\n";
    text += ".SH OPTIONS\n";
    for (const auto* list : {&command.options, &common_options()}) {
        for (const OptionSpec& option : *list) {
            text += fmt::format(".TP\n.B \\-\\-{}{}\n{}\n", option.name, option.value.empty() ? "" : " " + option.value,
                                option.help);
        }
    }
    if (!command.examples.empty()) {
        text += ".SH EXAMPLES\n.nf\n";
        for (const std::string& example : command.examples) text += example + "\n";
        text += ".fi\n";
    }
    return text + ".SH EXIT STATUS\n0 done; 1 the answer is no; 2 input or usage; 3 something outside; 4 a bug.\n";
}

std::string reference_markdown() {
    std::string text =
        "# Commands\n\nGenerated by `stoker completion reference` from the command tables; do not edit.\n\n"
        "Exit codes of every command: 0 done; 1 the answer is no (infeasible, findings, the run failed); 2 the input "
        "or usage is wrong;\n"
        "3 something outside is unavailable or denied; 4 a bug in Stoker.\n\n## Options of every command\n\n```\n";
    for (const OptionSpec& option : common_options()) text += option_line(option);
    text += "```\n";
    for (const Command& command : all_commands()) {
        text += fmt::format("\n## stoker {}\n\n{}\n\n```\n{}\n", command.name, command.summary, command.usage);
        for (const OptionSpec& option : command.options) text += option_line(option);
        for (const std::string& example : command.examples) text += "\n$ " + example;
        text += command.examples.empty() ? "```\n" : "\n```\n";
        if (!command.description.empty()) text += "\n" + command.description + "\n";
    }
    return text;
}

std::string workload_reference() {
    return "# The workload file\n\nGenerated by `stoker schema workload-reference` from the tables that read the file; "
           "do not edit.\n"
           "`stoker schema workload` prints the same as JSON Schema, for editors.\n\n" +
           workload_record().reference_markdown();
}

}  // namespace stoker
