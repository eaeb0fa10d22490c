#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace stoker::lint {

namespace {

struct Npl012Name {
    std::string_view old_name, new_name;
};
constexpr Npl012Name kNpl012Names[] = {{"enable_auto_scaling", "auto_scaling_enabled"},
                                       {"enable_node_public_ip", "node_public_ip_enabled"},
                                       {"enable_host_encryption", "host_encryption_enabled"},
                                       {"enable_accelerated_networking", "accelerated_networking_enabled"},
                                       {"enable_ip_forwarding", "ip_forwarding_enabled"}};

// The smallest major version that a constraint allows; 0: it does not say.
int npl012_least_major(std::string_view constraint) {
    int least = 0;
    for (std::string_view part : split(constraint, ',')) {
        part = trim(part);
        const bool upper = part.starts_with('<') || part.starts_with('!');
        const std::size_t digit = part.find_first_of("0123456789");
        if (upper || digit == std::string_view::npos) continue;
        int major = 0;
        std::from_chars(part.data() + digit, part.data() + part.size(), major);
        least = std::max(least, major);
    }
    return least;
}

int npl012_pinned(const File& file) {
    int least = 0;
    for (const Node* root : file.tree.roots)
        for (const Node& block : children(root)) {
            if (block.key != "terraform") continue;
            for (const Node& providers : children(&block)) {
                const Node* provider = providers.key == "required_providers" ? providers.find("azurerm") : nullptr;
                const Node* version = provider && provider->is_object() ? provider->find("version") : provider;
                if (version && version->known && version->is_scalar())
                    least = std::max(least, npl012_least_major(version->text));
            }
        }
    return least;
}

}  // namespace

void check_npl012(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) {
        if (!file->kinds.has(Kind::terraform)) continue;
        int major = 0;
        for (const File* beside : bundle.files)
            if (same_folder(*file, *beside) && beside->kinds.has(Kind::terraform))
                major = std::max(major, npl012_pinned(*beside));
        if (major == 0) major = report.options().azurerm_major;
        if (major < 4) continue;
        for (const Resource& resource : file->resources) {
            const bool pool = resource.type == ResourceType::node_pool, nic = resource.type == ResourceType::nic;
            if ((!pool && !nic) || !resource.node || !resource.written.starts_with("azurerm_")) continue;
            std::vector<Edit> edits;
            Finding* finding = nullptr;
            for (const Node& child : children(resource.node))
                for (const Npl012Name& name : kNpl012Names) {
                    if (child.key != name.old_name || !child.source || child.source != &file->source()) continue;
                    edits.push_back({child.key_span, std::string(name.new_name)});
                    if (finding) continue;
                    finding = report.add(
                        *child.source, child.key_span, resource.address,
                        fmt::format("azurerm {} calls {} {}: the plan fails", major, name.old_name, name.new_name));
                }
            report.fix(finding, file->source(), FixClass::safe, "use the new names", std::move(edits));
        }
    }
}

}  // namespace stoker::lint
