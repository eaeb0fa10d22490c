#include <algorithm>

#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

bool is_trust_word(std::string_view text, bool& has_value) {
    while (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::size_t equals = text.find('=');
    std::string_view name = text.substr(0, equals);
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name = name.substr(dot + 1);
    if (name != "trust-remote-code" && name != "trust_remote_code") return false;
    has_value = equals != std::string_view::npos;
    return true;
}
bool is_false_word(std::string_view text) {
    return equals_ignore_case(text, "false") || text == "0" || equals_ignore_case(text, "no");
}

// The first word that trusts; null when there is none, or a revision is pinned.
const Value* trusting_word(const std::vector<Value>& words) {
    const Value* found = nullptr;
    for (std::size_t k = 0; k < words.size(); ++k) {
        if (!words[k].known()) continue;
        const std::string_view text = words[k].text;
        if (text.starts_with("--revision") || text.starts_with("--code-revision") ||
            text.starts_with("--code_revision"))
            return nullptr;
        bool has_value = false;
        if (found || !is_trust_word(text, has_value)) continue;
        if (has_value) {
            const std::string_view value = text.substr(text.find('=') + 1);
            if (!equals_ignore_case(value, "true") && value != "1") continue;
        } else {
            if (!text.starts_with("--")) continue;
            if (k + 1 < words.size() && words[k + 1].known() && is_false_word(words[k + 1].text)) continue;
            // --trust_remote_code ${trust_remote_code}: whether it does is not known.
            if (k + 1 < words.size() && words[k + 1].unknown() && words[k + 1].source &&
                contains_nocase(words[k + 1].source->text(words[k + 1].span), "trust"))
                continue;
        }
        found = &words[k];
    }
    return found;
}

}  // namespace

void check_sec008(const File& file, Report& report) {
    const auto tell = [&](const Value& word, const std::string& address) {
        Finding* finding =
            report.add(word, address + "#trust",
                       "trust-remote-code runs the Python files of the model's repository, as they are on "
                       "the day of the start");
        if (finding)
            finding->advice = "take it out where the architecture is built in; else pin --revision to a commit";
    };
    for_each_part(file, [&](const File& part) {
        for (const Workload& workload : part.workloads)
            for (const Container& each : workload.containers)
                if (const Value* word = trusting_word(each.command)) tell(*word, each.address);
        for (const Container& each : part.services)
            if (const Value* word = trusting_word(each.command)) tell(*word, each.address);
        for (const Command& command : part.script.commands) {
            const std::string_view name = command.name();
            if (name == "echo" || name == "printf" || name == "grep" || name == "sed") continue;
            if (const Value* word = trusting_word(command.words)) tell(*word, script_address(part));
        }
        // Arguments that are collected in an array and handed to a program that is not seen.
        for (const Assignment& assignment : part.script.assignments)
            if (const Value* word = trusting_word(assignment.items)) tell(*word, script_address(part));
    });
}

}  // namespace stoker::lint
