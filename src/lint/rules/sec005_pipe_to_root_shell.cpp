#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

std::string_view sec005_program(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}
bool is_sec005_shell(std::string_view name) {
    return name == "sh" || name == "bash" || name == "zsh" || name == "dash";
}

// sudo bash -c "$(curl ...)", sudo bash <(curl ...).
bool shell_of_download(const Command& command, bool root) {
    std::size_t at = 0;
    const bool sudo = sec005_program(command.name()) == "sudo";
    while (sudo && ++at < command.words.size())
        if (!command.words[at].text.starts_with("-")) break;
    if (at >= command.words.size() || !is_sec005_shell(sec005_program(command.words[at].text)) || !(sudo || root))
        return false;
    for (const Value& word : command.words) {
        if (!word.unknown()) continue;
        for (const std::string_view start : {"$(curl", "$(wget", "<(curl", "<(wget", "`curl", "`wget"})
            if (word.text.find(start) != std::string_view::npos && word.text.find(start) <= 1) return true;
    }
    return false;
}

// A machine of another cloud with GPUs, made by the script itself.
bool sec005_rents_gpus(const File& file, const Knowledge& knowledge) {
    bool found = false;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            if (command.name() != "gcloud" && command.name() != "aws") continue;
            for (const Value& word : command.words) {
                const std::string_view type = word.text.substr(word.text.find('=') + 1);
                const KnownSize* size = word.known() ? knowledge.size(type) : nullptr;
                found = found || (size && size->gpu()) || word.text.starts_with("--accelerator") ||
                        contains_nocase(type, "highgpu") || contains_nocase(type, "megagpu");
            }
        }
    });
    return found;
}

}  // namespace

void check_sec005(const File& file, Report& report) {
    bool gpu = false, looked = false;
    for_each_part(file, [&](const File& part) {
        if (part.script.commands.empty()) return;
        // At boot and in the build of an image, the shell is root's.
        bool root = part.outermost().kinds.any({Kind::dockerfile, Kind::terraform, Kind::bicep, Kind::arm});
        for (const File* at = &part; at; at = at->host) root = root || at->kinds.has(Kind::cloud_init);
        const auto& commands = part.script.commands;
        for (std::size_t k = 0; k < commands.size(); ++k) {
            const Command& fetch = commands[k];
            const std::string_view name = sec005_program(fetch.name());
            const bool inside = shell_of_download(fetch, root);
            if (name != "curl" && name != "wget" && !inside) continue;
            const Command* shell = inside ? &fetch : nullptr;
            bool digest = false;
            for (std::size_t j = k + 1; j < commands.size() && commands[j].pipeline == fetch.pipeline; ++j) {
                const auto& words = commands[j].words;
                if (words.empty() || !words[0].known()) continue;
                std::size_t at = 0;
                bool sudo = false;
                if (sec005_program(words[0].text) == "sudo") {
                    sudo = true;
                    at = 1;
                    while (at < words.size() && words[at].known() &&
                           (words[at].text.starts_with("-") || words[at].text.find('=') != std::string_view::npos))
                        ++at;
                }
                if (at < words.size() && words[at].known() && is_sec005_shell(sec005_program(words[at].text)) &&
                    (sudo || root))
                    shell = &commands[j];
                if (words[0].text.find("sha256sum") != std::string_view::npos) digest = true;
            }
            if (!shell || digest) continue;
            if (!looked) {
                const File& image = file.call && file.kinds.has(Kind::dockerfile) ? *file.call->caller : file;
                gpu = work_of(image, report.knowledge()).gpu.has_value() || mentions(image, "nvidia") ||
                      mentions(image, "cuda") || sec005_rents_gpus(file, report.knowledge());
                looked = true;
            }
            if (!gpu) return;
            Finding* finding =
                report.add(part.source(), fetch.span, script_address(part) + "#pipe",
                           "what the network answers is run by root's shell: nothing checks that it is what "
                           "was meant");
            if (finding)
                finding->advice = "fetch to a file, compare its SHA-256 with one you have written down, then run it";
        }
    });
}

}  // namespace stoker::lint
