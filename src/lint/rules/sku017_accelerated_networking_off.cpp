#include "lint/rules/common_cloud.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include <fmt/format.h>

namespace stoker::lint {

namespace {

constexpr std::string_view kSku017Type = "azurerm_network_interface.";

// "azurerm_network_interface.main" of tf:azurerm_network_interface.main["a"], "nic" of bicep:nic[0].
std::string_view sku017_symbol(std::string_view address) {
    address.remove_prefix(std::min(address.find(':') + 1, address.size()));
    return address.substr(0, address.find('['));
}

// "module.a" of what a call of that module makes.
std::string_view sku017_module(const Resource& resource) {
    const auto& call = resource.file->outermost().call;
    return call && !call->overlay ? std::string_view(call->name) : std::string_view();
}

// "module.nic" of module.nic.id, as it is written where the machine stands.
std::string sku017_called(const Value& id, const Resource& machine) {
    const std::string_view text = id.use_source ? id.use_source->text(id.use) : id.text;
    const std::size_t at = text.find("module.");
    if (at == std::string_view::npos || !machine.address.starts_with("tf:")) return {};
    std::size_t end = at + 7;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '-'))
        ++end;
    if (end == text.size() || text[end] != '.') return {};
    const std::string_view own = sku017_module(machine), called = text.substr(at, end - at);
    return own.empty() ? std::string(called) : fmt::format("{}.{}", own, called);
}

// Interfaces by the symbol they are referred to; those of ARM, which are found by their names.
struct Sku017Interfaces {
    std::unordered_multimap<std::string_view, const Resource*> by_symbol;
    std::vector<const Resource*> of_arm;

    void add(const Resource& nic) {
        if (nic.address.starts_with("arm:"))
            of_arm.push_back(&nic);
        else
            by_symbol.emplace(sku017_symbol(nic.address), &nic);
    }
    template <typename F>
    void each_of(const Resource& machine, F&& use) const {
        for (const Value* id : machine.all(Attr::network_interface)) {
            if (machine.address.starts_with("arm:")) {
                for (const Resource* nic : of_arm)
                    if (names(*id, *nic)) use(*nic);
                continue;
            }
            std::string_view text = id->text;
            const std::size_t type = text.find(kSku017Type);
            if (type != std::string_view::npos) text.remove_prefix(type);
            std::size_t end = type == std::string_view::npos ? 0 : kSku017Type.size();
            while (end < text.size() &&
                   (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '-'))
                ++end;
            const auto [first, last] = by_symbol.equal_range(text.substr(0, end));
            for (auto it = first; it != last; ++it)
                if (sku017_module(*it->second) == sku017_module(machine)) use(*it->second);
            // The output of a module that makes one interface.
            const std::string called = sku017_called(*id, machine);
            const Resource* given = nullptr;
            bool several = false;
            for (const auto& [symbol, nic] : by_symbol) {
                if (called.empty() || sku017_module(*nic) != called) continue;
                several = several || given;
                given = nic;
            }
            if (given && !several) use(*given);
        }
    }
    // [resourceId('Microsoft.Network/networkInterfaces', NAME)]
    static bool names(const Value& id, const Resource& nic) {
        const Node* name = nic.node ? nic.node->find("name") : nullptr;
        if (!name || !name->source) return false;
        std::string_view raw = name->source->text(name->span);
        if (raw.size() > 2) raw = raw.substr(1, raw.size() - 2);
        if (raw.size() > 2 && raw.front() == '[') raw = raw.substr(1, raw.size() - 2);
        return !raw.empty() && id.text.find(raw) != std::string_view::npos;
    }
};

void sku017_tell(Report& report, const Resource& holder, const Resource& machine, const KnownSize& size) {
    const Value& on = holder.get(Attr::accelerated_networking);
    if (on.unknown() || says_yes(on) || (on.absent() && is_az(holder))) return;  // az turns it on where it can
    const std::string message =
        fmt::format("accelerated networking is off for {}: all its traffic goes through the host", size.name);
    Finding* finding = on.present() ? report.add(on, holder.address, message) : add_at_header(report, holder, message);
    if (!finding) return;
    report.relate(finding, *machine.get(Attr::size).source, machine.get(Attr::size).span, "the size");
    if (on.present()) fix_value(report, finding, on, FixClass::safe, "turn it on", "true");
    // Absent: beside the name of the interface, in the words of the language.
    const bool terraform = holder.address.starts_with("tf:"), bicep = holder.address.starts_with("bicep:");
    if (on.present() || !holder.node || (!terraform && !bicep)) return;
    const bool set = holder.type == ResourceType::scale_set;
    const Node* block = holder.node;
    if (terraform && set) block = block->find("network_interface");
    if (bicep) block = set ? nullptr : block->find("properties");
    const Node* first = block ? block->first : nullptr;
    if (!first || !first->source) return;
    const Span line = first->source->line_at(first->key_span.begin);
    const std::string_view indent = first->source->text({line.begin, first->key_span.begin});
    if (indent.find_first_not_of(" \t") != std::string_view::npos) return;
    // The argument of azurerm_network_interface was renamed in version 4; that of a scale set was not.
    const std::string_view text = first->source->text(block->span);
    const bool old_name =
        set || report.options().azurerm_major == 3 || text.find("enable_ip_forwarding") != std::string_view::npos;
    const std::string line_text = bicep      ? "enableAcceleratedNetworking: true"
                                  : old_name ? "enable_accelerated_networking = true"
                                             : "accelerated_networking_enabled = true";
    const bool sure = bicep || set || report.options().azurerm_major >= 4;
    report.fix(finding, *first->source, sure ? FixClass::safe : FixClass::unsafe, "turn it on",
               {{{line.begin, line.begin}, fmt::format("{}{}{}", indent, line_text, first->source->line_end())}});
}

}  // namespace

void check_sku017(const Bundle& bundle, Report& report) {
    Sku017Interfaces interfaces;
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type == ResourceType::nic) interfaces.add(resource);
    });
    each_resource(bundle, [&](const Resource& machine) {
        const KnownSize* size = size_of(machine, report);
        if (!size || !size->gpu() || size->accelerated_networking != std::optional(true) ||
            !size->name.starts_with("Standard_"))
            return;
        if (machine.type == ResourceType::scale_set) {
            bool known_part = is_az(machine) || machine.get(Attr::accelerated_networking).present();
            if (machine.node && !known_part) {
                const Node* profile = machine.node->at(
                    {"properties", "virtualMachineProfile", "networkProfile", "networkInterfaceConfigurations"});
                known_part =
                    machine.node->find("network_interface") || (profile && profile->is_array() && profile->first);
            }
            if (known_part) sku017_tell(report, machine, machine, *size);
        } else if (machine.type == ResourceType::vm) {
            if (is_az(machine)) sku017_tell(report, machine, machine, *size);
            interfaces.each_of(machine, [&](const Resource& nic) {
                const bool own = sku017_module(nic) == sku017_module(machine);
                if (!own || same_folder(nic.file->outermost(), machine.file->outermost()))
                    sku017_tell(report, nic, machine, *size);
            });
        }
    });
}

}  // namespace stoker::lint
