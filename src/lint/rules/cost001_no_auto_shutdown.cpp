#include "lint/rules/common_cloud.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker::lint {

namespace {

bool cost001_alone(const Resource& machine) {
    return machine.node && !machine.get(Attr::count).present() && machine.source == machine.node->source;
}

// Behind the resource, named after its symbol.
std::vector<Edit> cost001_bicep(const Resource& machine) {
    constexpr std::string_view kPrefix = "bicep:";
    const std::string_view address = machine.address, n = machine.source->line_end();
    if (!address.starts_with(kPrefix) || !cost001_alone(machine)) return {};
    const std::string_view symbol = address.substr(kPrefix.size());
    const std::string_view text = machine.source->text();
    const std::uint32_t end = machine.whole.end;
    const std::string_view header = machine.source->text(machine.header);
    const bool plain =
        std::all_of(symbol.begin(), symbol.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    // One of a loop, or one that may not be there, has no such name.
    if (!plain || symbol.empty() || end == 0 || end > text.size() || text[end - 1] != '}' ||
        header.find("[for") != std::string_view::npos || header.find("if ") != std::string_view::npos ||
        header.find("if(") != std::string_view::npos)
        return {};
    return {{{end, end},
             fmt::format("{1}{1}resource {0}Shutdown 'Microsoft.DevTestLab/schedules@2018-09-15' = {{{1}"
                         "  name: 'shutdown-computevm-${{{0}.name}}'{1}  location: {0}.location{1}  properties: {{{1}"
                         "    status: 'Enabled'{1}    taskType: 'ComputeVmShutdownTask'{1}"
                         "    dailyRecurrence: {{{1}      time: '1900'{1}    }}{1}    timeZoneId: 'UTC'{1}"
                         "    targetResourceId: {0}.id{1}  }}{1}}}",
                         symbol, n)}};
}

// Beside the machine in the template's list. A name that is computed is computed again.
std::vector<Edit> cost001_arm(const Resource& machine) {
    if (!machine.address.starts_with("arm:") || !cost001_alone(machine) || !machine.node->is_object()) return {};
    const Node* name = machine.node->find("name");
    const Node* location = machine.node->find("location");
    const Source& source = *machine.source;
    if (!name || !location || name->source != &source || location->source != &source || machine.node->find("copy") ||
        machine.node->find("condition"))
        return {};
    const auto written = [&](const Node& node) {
        std::string_view raw = source.text(node.span);
        if (raw.size() >= 2 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
        return raw;
    };
    const std::string_view raw = written(*name);
    const bool computed = raw.starts_with('[') && raw.ends_with(']') && !raw.starts_with("[[");
    const std::string expression = computed ? std::string(raw.substr(1, raw.size() - 2)) : "'" + std::string(raw) + "'";
    if (raw.empty() || raw.find('\\') != std::string_view::npos) return {};
    const std::uint32_t end = machine.node->span.end;
    const Span line = source.line_at(machine.node->span.begin);
    const std::string_view before = source.text({line.begin, machine.node->span.begin});
    const std::string i(before.find_first_not_of(" \t") == std::string_view::npos ? before : "");
    const std::string id = fmt::format("[resourceId('Microsoft.Compute/virtualMachines', {})]", expression);
    return {{{end, end},
             fmt::format(",{2}{3}{{{2}{3}  \"type\": \"Microsoft.DevTestLab/schedules\",{2}{3}  \"apiVersion\": "
                         "\"2018-09-15\",{2}{3}  \"name\": \"[concat('shutdown-computevm-', {0})]\",{2}{3}  "
                         "\"location\": \"{4}\",{2}{3}  \"dependsOn\": [ \"{1}\" ],{2}{3}  \"properties\": {{{2}{3}    "
                         "\"status\": \"Enabled\",{2}{3}    \"taskType\": \"ComputeVmShutdownTask\",{2}{3}    "
                         "\"dailyRecurrence\": {{ \"time\": \"1900\" }},{2}{3}    \"timeZoneId\": \"UTC\",{2}{3}    "
                         "\"targetResourceId\": \"{1}\"{2}{3}  }}{2}{3}}}",
                         expression, id, source.line_end(), i, written(*location))}};
}

// The line behind the command, with its own words for name and group.
std::vector<Edit> cost001_az(const Resource& machine) {
    if (!machine.address.starts_with("az:vm create") || machine.get(Attr::count).present()) return {};
    const Source& source = *machine.source;
    const std::string_view text = source.text(), command = source.text(machine.whole);
    const auto words = split_words(command);
    std::string name, group;
    for (std::size_t i = 0; i < words.size(); ++i)
        for (const auto& [option, into] : {std::pair<std::string_view, std::string*>{"--name", &name},
                                           {"-n", &name},
                                           {"--resource-group", &group},
                                           {"-g", &group}}) {
            if (words[i] == option && i + 1 < words.size()) *into = words[i + 1];
            if (words[i].size() > option.size() && words[i].starts_with(option) && words[i][option.size()] == '=')
                *into = words[i].substr(option.size() + 1);
        }
    const Span line = source.line_at(machine.whole.begin);
    const std::string_view before = source.text({line.begin, machine.whole.begin});
    const std::size_t end = text.find('\n', machine.whole.end);
    const std::string_view behind = text.substr(machine.whole.end, std::min(end, text.size()) - machine.whole.end);
    // A command of its own on its lines: not of a condition, a pipe or a list.
    if (name.empty() || name.front() == '-' || before.find_first_not_of(" \t") != std::string_view::npos ||
        behind.find_first_not_of(" \t") != std::string_view::npos)
        return {};
    const auto at = static_cast<std::uint32_t>(machine.whole.end);
    return {{{at, at},
             fmt::format("{}{}az vm auto-shutdown{} --name {} --time 1900", source.line_end(), before,
                         group.empty() ? "" : " --resource-group " + group, name)}};
}

std::vector<Edit> cost001_schedule(const Resource& machine) {
    for (const auto& edits : {cost001_bicep(machine), cost001_arm(machine), cost001_az(machine)})
        if (!edits.empty()) return edits;
    if (!machine.address.starts_with("tf:azurerm_") || !machine.node || machine.get(Attr::count).present() ||
        machine.node->find("for_each") || machine.node->labels.size() != 2 || machine.source != machine.node->source)
        return {};
    const auto end = machine.node->span.end;
    const std::string_view type = machine.node->labels[0], name = machine.node->labels[1],
                           n = machine.source->line_end();
    return {{{end, end},
             fmt::format("{3}{3}resource \"azurerm_dev_test_global_vm_shutdown_schedule\" \"{1}\" {{{3}"
                         "  virtual_machine_id    = {0}.{1}.id{3}  location              = {0}.{1}.location{3}"
                         "  enabled               = true{3}  daily_recurrence_time = \"{2}\"{3}  timezone              "
                         "= \"UTC\"{3}{3}"
                         "  notification_settings {{{3}    enabled = false{3}  }}{3}}}",
                         type, name, "1900", n)}};
}

}  // namespace

void check_cost001(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& machine) {
        if (machine.type != ResourceType::vm || machine.get(Attr::scale_set).present() || !has_gpu(machine, report))
            return;
        if (machine.written.starts_with("aws_")) return;
        const bool scheduled =
            beside.any(machine, [](const Resource& other) { return other.type == ResourceType::shutdown_schedule; });
        // Scripts that take the machine down again, and other ways to stop it at hours.
        if (scheduled || beside.says(machine, {"auto-shutdown", "vm deallocate", "vm delete", "group delete",
                                               "autoShutdown", "start-stop", "azurerm_automation_"}))
            return;
        const KnownSize* size = size_of(machine, report);
        const std::string price = size && size->usd_per_hour > 0
                                      ? fmt::format(": a forgotten weekend costs {:.0f} USD at the lowest list price",
                                                    60 * size->usd_per_hour)
                                      : "";
        Finding* finding =
            add_at_header(report, machine, fmt::format("a GPU machine without a shutdown schedule{}", price));
        tell_idle_cost(report, finding, machine, machine.get(Attr::count).absent() ? 1 : count_of(machine));
        report.fix(finding, *machine.source, FixClass::safe, "stop it at 19:00 UTC", cost001_schedule(machine));
    });
}

}  // namespace stoker::lint
