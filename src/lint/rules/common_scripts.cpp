#include "lint/rules/common_scripts.h"

#include <algorithm>

namespace stoker::lint {

std::string_view file_name_of(const File& file) {
    const std::string& path = file.path();
    return std::string_view(path).substr(path.rfind('/') + 1);
}

std::string script_address(const File& part) {
    for (const File* at = &part; at; at = at->host) {
        if (at->host_container) return at->host_container->address;
        if (!at->host) break;
    }
    const File& outermost = part.outermost();
    return std::string(outermost.kinds.has(Kind::slurm) ? "slurm:" : "script:") + std::string(file_name_of(outermost));
}

const File* batch_part(const File& file) {
    const File* found = nullptr;
    for_each_part(file, [&](const File& part) {
        if (!found && !part.script.directives.empty() && part.script.directives.front().prefix.ends_with("SBATCH"))
            found = &part;
    });
    return found;
}

const Directive* batch_option(const File& batch, std::string_view option, int component) {
    const Directive* found = nullptr;
    int part = 0;
    for (const Directive& directive : batch.script.directives) {
        if (directive.after_command || directive.prefix != "#SBATCH") continue;
        part += directive.separator;
        if (!directive.malformed && directive.option == option && (component == kAnyComponent || component == part))
            found = &directive;
    }
    return found;
}

// srun goes to the first part of a job unless --het-group names another; so does what no srun starts.
int component_of(const File& batch, const Command& command) {
    const auto& all = batch.script.directives;
    if (std::none_of(all.begin(), all.end(), [](const Directive& each) { return each.separator; }))
        return kAnyComponent;
    for (std::size_t k = 0; k < command.words.size(); ++k) {
        std::string_view text = command.words[k].text;
        if (!text.starts_with("--het-group") && !text.starts_with("--pack-group")) continue;
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos)
            text.remove_prefix(equals + 1);
        else if (k + 1 < command.words.size())
            text = command.words[k + 1].text;
        if (text.size() != 1 || text[0] < '0' || text[0] > '9') return kAnyComponent;  // several of them
        return text[0] - '0';
    }
    return 0;
}

int component_of(const File& batch, const Launch& launch) {
    const auto& commands = batch.script.commands;
    const int own = launch.file == &batch ? launch.command : launch.host_command;
    if (own < 0 || static_cast<std::size_t>(own) >= commands.size()) return kAnyComponent;
    return component_of(batch, commands[static_cast<std::size_t>(own)]);
}

bool option_is_on(const LaunchOption* option) {
    if (!option) return false;
    return option->value.absent() || option->value.as_bool().value_or(false) ||
           (option->value.known() && option->value.text.starts_with("-"));
}

std::optional<std::int64_t> option_int(const Launch& launch, std::string_view name) {
    const LaunchOption* option = launch.option(name);
    return option ? option->value.as_int() : std::nullopt;
}

std::optional<std::int64_t> literal_int(const Value& value) {
    return value.assumed ? std::nullopt : value.as_int();
}

bool is_loopback(std::string_view host) {
    if (const std::size_t colon = host.find(':');
        colon != std::string_view::npos && host.find(':', colon + 1) == std::string_view::npos)
        host = host.substr(0, colon);
    return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "0.0.0.0";
}

bool mentions(const File& file, std::string_view word) {
    const File& outermost = file.outermost();
    return contains_nocase(outermost.path(), word) || contains_nocase(outermost.source().text(), word);
}

bool brings_driver(std::string_view word) {
    const std::string_view name = word.substr(word.rfind('/') + 1);
    return name == "cuda" || name.starts_with("cuda-drivers") || name.starts_with("nvidia-driver-") ||
           name.starts_with("nvidia-open") || name == "nvidia-driver" || name.starts_with("nvidia-headless-") ||
           (name.starts_with("NVIDIA-Linux-") && name.ends_with(".run")) ||
           (name.starts_with("cuda_") && name.find("_linux") != std::string_view::npos);
}

const Value* driver_install(const Command& command) {
    std::size_t at = 0;
    while (at < command.words.size() && command.words[at].known() &&
           (command.words[at].text == "sudo" || command.words[at].text.starts_with("-") ||
            command.words[at].text.find('=') != std::string_view::npos))
        ++at;
    if (at >= command.words.size()) return nullptr;
    const std::string_view name = command.words[at].text;
    bool install = name.ends_with(".run") && brings_driver(name);
    const Value* what = install ? &command.words[at] : nullptr;
    const bool package = name == "apt-get" || name == "apt" || name == "dnf" || name == "yum";
    if (package || name == "sh" || name == "bash") {
        bool verb = !package;
        for (std::size_t j = at + 1; j < command.words.size(); ++j) {
            if (command.words[j].is("install")) verb = true;
            if (verb && !what && command.words[j].known() && brings_driver(command.words[j].text)) {
                what = &command.words[j];
                install = true;
            }
        }
        install &= verb;
    }
    return install ? what : nullptr;
}

}  // namespace stoker::lint
