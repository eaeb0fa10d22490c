// sleep infinity with a GPU: billed by the hour, used by nobody.
#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_cloud.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

constexpr double kCost010Idle = 86400;  // one day

// Seconds of a sleep's arguments: 100h, 1d, 86400, infinity.
double cost010_seconds(std::string_view text) {
    if (text == "inf" || text == "infinity") return 1e18;
    double seconds = 0;
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
        seconds = seconds * 10 + (text[digits++] - '0');
    if (digits == 0) return 0;
    const std::string_view unit = text.substr(digits);
    if (unit.empty() || unit == "s") return seconds;
    if (unit == "m") return seconds * 60;
    if (unit == "h") return seconds * 3600;
    if (unit == "d") return seconds * 86400;
    return 0;
}

// The word that holds the container, when the command does nothing else.
const Value* cost010_holder(const std::vector<Value>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (!words[i].known() || !words[i + 1].known()) continue;
        const std::string_view program = program_name(words[i].text);
        if (program == "sleep") {
            double seconds = 0;
            for (std::size_t k = i + 1; k < words.size(); ++k) seconds += cost010_seconds(words[k].text);
            return seconds >= kCost010Idle ? &words[i] : nullptr;
        }
        if (program == "tail")
            for (std::size_t k = i + 1; k < words.size(); ++k)
                if (words[k].is("/dev/null")) return &words[i];
    }
    return nullptr;
}

// while true; do sleep 3600; done: as long as it takes, and nothing else in the loop.
const Value* cost010_loop(const std::vector<WordList>& commands) {
    if (commands.size() < 2) return nullptr;
    const std::vector<Value>&last = *commands.back().words, &asked = *commands[commands.size() - 2].words;
    if (last.size() != 2 || !last[0].is("sleep") || asked.size() != 1 || !(asked[0].is("true") || asked[0].is(":")))
        return nullptr;
    const Value& condition = asked.front();
    return condition.source && trim(condition.source->text().substr(0, condition.span.begin)).ends_with("while")
               ? &last[0]
               : nullptr;
}

// The size that the pod selects: the whole node is paid for, whatever part of it the pod holds.
const KnownSize* cost010_size(const Workload& workload, const Report& report) {
    const KnownSize* size = nullptr;
    if (workload.pod)
        each_selector(*workload.pod, [&](const Node& key, const Node& value) {
            const std::string_view label = key.key == "key" ? key.text : key.key;
            if (label.ends_with("/instance-type") && value.known) size = report.knowledge().size(value.text);
        });
    return size;
}

// Something beside it takes the work: ranks that a launcher starts through sshd.
bool cost010_served(const std::vector<WordList>& commands) {
    for (const WordList& command : commands)
        for (std::size_t i = 0; i < command.words->size(); ++i) {
            const Value& word = (*command.words)[i];
            if (!word.known()) continue;
            if (program_name(word.text) == "sshd") return true;
            const bool next = i + 1 < command.words->size() && (*command.words)[i + 1].known();
            if (next && (word.is("service") || program_name(word.text) == "systemctl"))
                for (std::size_t k = i + 1; k < command.words->size(); ++k)
                    if ((*command.words)[k].is("ssh") || (*command.words)[k].is("sshd")) return true;
        }
    return false;
}

void cost010_judge(const Container& container, const Workload* workload, Report& report) {
    if (container.init || !accelerator_of(container)) return;
    std::vector<WordList> commands = commands_of(container);
    // `sleep infinity & wait` waits for the sleep.
    while (!commands.empty() && commands.back().words->size() == 1 && commands.back().words->front().is("wait"))
        commands.pop_back();
    if (commands.empty()) return;
    const WordList& last = commands.back();
    if (last.words->empty() || last.words->size() > 12) return;
    const Value* word = cost010_holder(*last.words);
    if (!word) word = cost010_loop(commands);
    if (!word || cost010_served(commands)) return;
    Finding* finding = report.add(*word->source, word->span, container.address,
                                  "the container only waits and holds its GPU: it is billed and used by nobody");
    if (!finding) return;
    finding->advice = "end the container with its work; for a debug pod set a deadline (activeDeadlineSeconds)";
    if (const KnownSize* size = workload ? cost010_size(*workload, report) : nullptr)
        tell_idle_cost(report, finding, *size, 1);
    const Quantity* device = accelerator_of(container);
    report.relate(finding, *device->amount.source, device->key_span, "the accelerator that it holds");
}

}  // namespace

void check_cost010(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        if (!is_node_agent(workload)) cost010_judge(container, &workload, report);
    });
    each_service(file, [&](const Container& service) { cost010_judge(service, nullptr, report); });
}

}  // namespace stoker::lint
