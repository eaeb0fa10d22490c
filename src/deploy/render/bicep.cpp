// bicep: the resources of the ARM template in Bicep's words, with names for each other instead of resourceId(), and the
// reasons beside them.
#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/json.h"
#include "base/text.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/kube_cluster.h"
#include "deploy/render/private_endpoints.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

struct BicepReason {
    std::string_view key, reason;
};
constexpr auto kReasons = std::to_array<BicepReason>({
    {"addressSpace", "Not 172.16.0.0/16: InfiniBand sizes keep it for themselves."},
    {"singlePlacementGroup", "InfiniBand joins the VMs of one scale set with one placement group only."},
    {"proximityPlacementGroup", "Ranks wait for each other in each step: one datacenter. It is no InfiniBand."},
    {"proximityPlacementGroupID", "Ranks wait for each other in each step: one datacenter. It is no InfiniBand."},
    {"overprovision", "VMs beyond the number would be in the placement group, and ranks on them."},
    {"securityRules", "SSH from your addresses only; everything else from outside is refused by default."},
    {"taskType", "A forgotten GPU costs as much as a busy one: off every evening, and the disk stays."},
    {"nodeTaints", "Pods that need no GPU stay off the GPU nodes."},
    {"minCount", "Idle GPU nodes go, down to none."},
    {"priority", "Spot: taken back with 30 s of notice; -1 pays up to the list price."},
    {"priorityMixPolicy", "So many are on demand, and stay when the others are taken."},
    {"authorizedIPRanges", "The API server answers your addresses only."},
    {"notifications", "It tells the owners, and stops nothing."},
    {"natGateway",
     "Machines without a public address reach nothing by themselves (default outbound access ended 2026-03-31)."},
    {"routeTable", "What leaves goes through the firewall."},
    {"targetFqdns", "Packages, images and weights; everything else stays inside."},
    {"enablePrivateCluster", "The data is sensitive: the API server has no public address."},
    {"privateLinkServiceConnections",
     "The registry gets an address in this network, and its names are answered with it."},
    {"metricTrigger", "How busy the GPUs are, as the machines send it (gpu-load): CPUs say nothing of them."},
    {"identity", "No key lies on the machine: it signs in as itself."},
});

// "Microsoft.Compute/virtualMachineScaleSets" -> "virtualMachineScaleSet": what the resource is called in the file.
std::string symbol_of(std::string_view type) {
    std::string out(type.substr(type.rfind('/') + 1));
    if (out.ends_with("sses"))
        out.erase(out.size() - 2);
    else if (out.ends_with("ies"))
        out.replace(out.size() - 3, 3, "y");
    else if (out.ends_with("s"))
        out.pop_back();
    return out;
}

// "... 'x-fw-mgmt-ip')" -> "FwMgmt": what tells addresses apart; empty of the one that the machine has.
std::string own_end(std::string_view name) {
    if (name.ends_with("/front")) return "Front";
    if (name.find("-fw-mgmt-ip") != std::string_view::npos) return "FirewallManagement";
    if (name.find("-nat-ip") != std::string_view::npos) return "Nat";
    return name.find("-fw-ip") != std::string_view::npos ? "Firewall" : "";
}

class BicepText {
public:
    explicit BicepText(const Json& resources) : resources_(std::get<Json::Array>(resources.value())) {}

    std::string text() {
        for (const Json& each : resources_) resource(each);
        return std::move(out_);
    }

private:
    static std::string literal(std::string_view text) {
        std::string out = "'";
        for (const char c : text) {
            if (c == '\'' || c == '\\') out += '\\';
            if (c == '\n') {
                out += "\\n";
                continue;
            }
            out += c;
        }
        return out + "'";
    }

    static bool is_name(std::string_view key) {
        for (const char c : key)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
        return !key.empty() && std::isdigit(static_cast<unsigned char>(key.front())) == 0;
    }

    // What ARM writes in brackets.
    static std::string expression(std::string_view text) {
        const std::string_view inner = text.substr(1, text.size() - 2);
        if (inner.starts_with("parameters('")) return std::string(inner.substr(12, inner.size() - 14));
        // The same function in both languages.
        if (inner.starts_with("guid(") || inner.starts_with("subscriptionResourceId(")) return std::string(inner);
        if (constexpr std::string_view kOf = "reference("; inner.starts_with(kOf)) {
            const std::size_t end = inner.rfind(").");
            std::string id = expression(fmt::format("[{}]", inner.substr(kOf.size(), end - kOf.size())));
            id.resize(id.size() - std::string_view("id").size());
            return fmt::format("{}properties.{}", id, inner.substr(end + 2));
        }
        if (inner == "base64(variables('cloudInit'))") return "loadFileAsBase64('cloud-init.yaml')";
        const auto type = inner.substr(12, inner.find('\'', 12) - 12);
        const std::string_view names = inner.substr(inner.find('\'', 12) + 1);
        if (type == "Microsoft.Network/virtualNetworks/subnets") {
            const int at = names.find("AzureFirewallSubnet") != std::string_view::npos             ? 1
                           : names.find("AzureFirewallManagementSubnet") != std::string_view::npos ? 2
                                                                                                   : 0;
            return fmt::format("virtualNetwork.properties.subnets[{}].id", at);
        }
        // Of several of a type each is called by the end of its name.
        return symbol_of(type) + own_end(names) + ".id";
    }

    void value(const Json& json, const std::string& indent) {
        if (const auto* object = std::get_if<Json::Object>(&json.value())) {
            out_ += "{\n";
            for (const auto& [key, each] : *object) member(key, each, indent + "  ");
            out_ += indent + "}";
        } else if (const auto* array = std::get_if<Json::Array>(&json.value())) {
            out_ += "[\n";
            for (const Json& each : *array) {
                out_ += indent + "  ";
                value(each, indent + "  ");
                out_ += "\n";
            }
            out_ += indent + "]";
        } else if (const auto* text = std::get_if<std::string>(&json.value())) {
            out_ += text->starts_with('[') ? expression(*text) : literal(*text);
        } else {
            out_ += json.dump();
        }
    }

    void member(const std::string& key, const Json& json, const std::string& indent) {
        const auto* text = std::get_if<std::string>(&json.value());
        const bool spot = text != nullptr && *text == "Spot";
        // Its least is what stands without load, where it is more than none.
        const bool idle = key != "minCount" || json.dump() == "0";
        for (const BicepReason& each : kReasons)
            if (each.key == key && (key != "priority" || spot) && idle)
                out_ += fmt::format("{}// {}\n", indent, each.reason);
        if (key == "scope") {  // a resource, where ARM has its id
            const std::string id = expression(*text);
            out_ += fmt::format("{}scope: {}\n", indent, id.substr(0, id.rfind('.')));
            return;
        }
        out_ += fmt::format("{}{}: ", indent,
                            is_name(key)           ? key
                            : key.starts_with('[') ? fmt::format("'${{{}}}'", expression(key))
                                                   : literal(key));
        value(json, indent);
        out_ += "\n";
    }

    void resource(const Json& json) {
        const auto& object = std::get<Json::Object>(json.value());
        std::string type, version, name, comments;
        for (const auto& [key, each] : object) {
            if (key == "type") type = std::get<std::string>(each.value());
            if (key == "apiVersion") version = std::get<std::string>(each.value());
            if (key == "comments") comments = std::get<std::string>(each.value());
            if (key == "name") name = std::get<std::string>(each.value());
        }
        out_ += "\n";
        if (!comments.empty()) out_ += fmt::format("// {}\n", comments);
        out_ += fmt::format("resource {}{} '{}@{}' = {{\n", symbol_of(type), own_end(name), type, version);
        if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
            const std::string_view parent = std::string_view(type).substr(0, type.rfind('/'));
            out_ += fmt::format("  parent: {}\n  name: {}\n", symbol_of(parent), literal(name.substr(slash + 1)));
        } else {
            out_ += fmt::format("  name: {}\n", name.starts_with('[') ? expression(name) : literal(name));
        }
        // Names of other resources say what has to be there first.
        for (const auto& [key, each] : object)
            if (key != "type" && key != "apiVersion" && key != "name" && key != "comments" && key != "dependsOn")
                member(key, each, "  ");
        out_ += "}\n";
    }

    const Json::Array& resources_;
    std::string out_;
};

}  // namespace

std::vector<FileToWrite> bicep_files(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = fmt::format("// {}\n", heading(d));
    for (const std::string& note : d.notes) out += fmt::format("// {}\n", note);
    const bool keyed = s.kind != AzureKind::cluster;
    out += fmt::format(
        "//   az deployment group create -g GROUP -f {}.bicep{}{}\n", d.name,
        keyed || !s.guarded ? " -p from=203.0.113.0/24" : "",
        std::string(keyed ? " sshKey=\"$(cat ~/.ssh/id_ed25519.pub)\"" : "") +
            (asks_for_registry(s) ? " registryId=\"$(az acr show -n " + s.registry + " --query id -o tsv)\"" : ""));
    if (!keyed) out += cluster_hint(d, "//", "GROUP");
    out += fmt::format("\n@description('Region of all resources')\nparam location string = '{}'\n\n", s.location);
    out += fmt::format("@description('{}')\nparam tags object = {{\n  'managed-by': 'stoker'\n  workload: '{}'\n}}\n\n",
                       kTagsMean, s.name);
    if (keyed || !s.guarded) out += "@description('CIDR of the addresses that may reach it')\nparam from string\n";
    if (keyed) out += "\n@description('Your public SSH key')\nparam sshKey string\n";
    if (asks_for_registry(s)) out += fmt::format("\n@description('{}')\nparam registryId string\n", kRegistryIdMeans);
    if (s.budget_usd > 0)
        out +=
            "\n@description('First day of the first month of the budget')\nparam budgetStart string = "
            "utcNow('yyyy-MM-01')\n";
    const Json resources = azure_resources(d);
    out += BicepText(resources).text();
    std::vector<FileToWrite> files{{d.name + ".bicep", out}};
    if (keyed)
        files.push_back({"cloud-init.yaml", cloud_config(d)});
    else
        for (FileToWrite& file : cluster_plugin_files(d)) files.push_back(std::move(file));
    return files;
}

}  // namespace stoker
