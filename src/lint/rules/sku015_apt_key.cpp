#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_sku015(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        const auto& commands = part.script.commands;
        for (std::size_t k = 0; k < commands.size(); ++k) {
            const Command& command = commands[k];
            std::size_t at = 0;
            while (at < command.words.size() && command.words[at].known() &&
                   (command.words[at].text == "sudo" || command.words[at].text.starts_with("-")))
                ++at;
            if (at >= command.words.size() || !command.words[at].known()) continue;
            const std::string_view name = command.words[at].text;
            if (name == "echo" || name == "printf") continue;
            bool nvidia = false, key = false, fetch = false, adds = false;
            const Value* where = &command.words[at];
            for (std::size_t j = at; j < command.words.size(); ++j) {
                const std::string_view text = command.words[j].text;
                if (contains_nocase(text, "nvidia.com") || contains_nocase(text, "cuda/repos")) nvidia = true;
                if (contains_nocase(text, "7fa2af80")) {
                    key = true;
                    where = &command.words[j];
                }
                if (text == "--fetch-keys" || text == "--recv-keys") fetch = true;
                if (text == "add") adds = true;
            }
            const bool apt_key = name == "apt-key" || name.ends_with("/apt-key");
            if (apt_key && adds && !nvidia)  // curl ... | apt-key add -
                for (std::size_t j = k; j-- > 0 && commands[j].pipeline == command.pipeline;)
                    for (const Value& word : commands[j].words) nvidia |= contains_nocase(word.text, "nvidia");
            if (!(key && name != "apt-key") && !(apt_key && (fetch || adds) && (nvidia || key))) continue;
            if (key && name.ends_with("del")) continue;
            if (key)
                for (std::size_t j = at; j < command.words.size(); ++j)
                    if (command.words[j].is("del")) return;  // taking the old key away is right
            Finding* finding =
                report.add(*where, script_address(part) + "#apt-key",
                           key ? "the signing key 7fa2af80 of NVIDIA's repository was replaced in April 2022: "
                                 "apt refuses the packages"
                               : "apt-key puts NVIDIA's key into the ring that all repositories are checked "
                                 "with, and is gone from current Ubuntu and Debian");
            if (finding) finding->advice = "install the cuda-keyring package of the repository instead";
        }
    });
}

}  // namespace stoker::lint
