// Network interfaces as Azure says them: az network nic show or list, and what the ARM API itself answers.
#include <fmt/format.h>

#include "base/text.h"
#include "readings/tool_reader.h"

namespace stoker {

Result<ToolReading> read_azure_nic(std::string_view text, const std::string& file, const ToolContext&) {
    ReadingBuilder out(Tool::azure_nic, file);
    TRY(const Document document, tool_json(text, file));
    const Node* root = &document.root();
    if (const Node* value = root->find("value"); value != nullptr && value->is_sequence()) root = value;
    std::vector<const Node*> nics;
    if (root->is_sequence())
        for (const auto& each : root->items) nics.push_back(each.get());
    else
        nics.push_back(root);
    std::size_t without = 0, seen = 0;
    std::string first;
    for (const Node* nic : nics) {
        const Node* on = node_at(nic, {"enableAcceleratedNetworking"});
        if (on == nullptr) on = node_at(nic, {"properties", "enableAcceleratedNetworking"});
        const std::string name = printable(text_at(nic, {"name"}), 80);
        if (on == nullptr || on->kind != NodeKind::boolean)
            return out.broken(place_of(nic->pos), "no enableAcceleratedNetworking, which says true or false",
                              "az network nic show -g GROUP -n NIC -o json");
        ++seen;
        std::string_view machine = text_at(nic, {"virtualMachine", "id"});
        if (machine.empty()) machine = text_at(nic, {"properties", "virtualMachine", "id"});
        machine = machine.substr(machine.rfind('/') + 1);
        const std::string of = name + (machine.empty() ? "" : " of " + printable(machine, 80));
        ToolFinding finding{.layer = HealthLayer::network,
                            .verdict = on->boolean ? HealthVerdict::pass : HealthVerdict::fail,
                            .message = fmt::format("{}: accelerated networking is {}", of, on->boolean ? "on" : "off"),
                            .peer = name};
        if (!on->boolean) {
            finding.message += ": each packet goes through the host's virtual switch";
            finding.fix = fmt::format(
                "az vm deallocate, then az network nic update -g GROUP -n {} --accelerated-networking true; a scale "
                "set "
                "takes it from its model (enableAcceleratedNetworking: true)",
                name.empty() ? "NIC" : name);
            if (without++ == 0) first = finding.message;
        }
        out.check("accelerated-networking", place_of(on->pos), std::move(finding));
    }
    if (seen == 0)
        return out.broken({1, 1}, "an empty list: there is no network interface",
                          "az network nic list -g GROUP -o json");
    return out.finish(without > 0 ? first
                                  : fmt::format("accelerated networking is on ({})", counted(seen, "interface")));
}

}  // namespace stoker
