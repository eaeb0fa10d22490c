#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace stoker::lint {

// SEC001 and SEC002: what a security rule lets in from everywhere.
namespace {

bool sec001_anyone(const Value& source) {
    for (const std::string_view word : {"*", "0.0.0.0/0", "Internet", "Any", "::/0", "0.0.0.0"})
        if (source.is_nocase(word)) return true;
    return false;
}
// "22", "20-30", "*", "22,80"
bool sec001_holds(std::string_view ports, int wanted) {
    for (std::string_view part : split(ports, ',')) {
        part = trim(part);
        if (part == "*") return true;
        int low = 0, high = 0;
        const auto [at, error] = std::from_chars(part.data(), part.data() + part.size(), low);
        if (error != std::errc{}) continue;
        high = low;
        if (at != part.data() + part.size() && *at == '-') std::from_chars(at + 1, part.data() + part.size(), high);
        if (low <= wanted && wanted <= high) return true;
    }
    return false;
}

struct Sec001Open {
    const Value* port = nullptr;  // that matched
    const Value* source = nullptr;
    bool by_default = false;  // az without a source lets all in
};
// The rule lets in everyone, and which port matched `wanted`.
std::optional<Sec001Open> sec001_open(const Resource& rule, std::initializer_list<int> wanted) {
    if (rule.type != ResourceType::security_rule) return std::nullopt;
    const bool az = is_az(rule);
    const Value &access = rule.get(Attr::access), &direction = rule.get(Attr::direction);
    if (access.present() ? !access.is_nocase("Allow") : !az) return std::nullopt;
    if (direction.present() ? !direction.is_nocase("Inbound") : !az) return std::nullopt;
    if (rule.get(Attr::protocol).is_nocase("Udp") || rule.get(Attr::protocol).is_nocase("Icmp")) return std::nullopt;
    Sec001Open open;
    for (const Value* source : rule.all(Attr::source_prefix))
        if (sec001_anyone(*source)) open.source = source;
    if (!open.source) {
        if (!az || rule.get(Attr::source_prefix).present()) return std::nullopt;
        open.by_default = true;
    }
    for (const Value* port : rule.all(Attr::port))
        if (port->known())
            for (const int number : wanted)
                if (!open.port && sec001_holds(port->text, number)) open.port = port;
    return open;
}

constexpr std::string_view kSec001Advice = "name the addresses that may come in, or use Bastion or a VPN";

}  // namespace

namespace {

void sec001_in(const File& file, const Bundle& bundle, Report& report) {
    bool gpu = false, asked = false;
    const auto is_gpu = [&] {
        if (!asked) gpu = gpu_root(file, bundle, report), asked = true;
        return gpu;
    };
    each_resource(file, [&](const Resource& resource) {
        if (const auto open = sec001_open(resource, {22}); open && open->port && is_gpu()) {
            Finding* finding =
                report.add(*open->port, resource.address,
                           open->by_default ? "SSH is open to everyone: az lets in all sources when none is named"
                                            : "SSH is open to everyone");
            if (!finding) return;
            if (open->by_default) finding->severity = Severity::warning;
            if (open->source) report.relate(finding, *open->source->source, open->source->span, "everyone");
            finding->advice = kSec001Advice;
        }
        // --nsg-rule SSH is the rule of az that lets in everyone; --nsg names a group that may be called so.
        const Value& rule = resource.get(Attr::nsg);
        if ((resource.type == ResourceType::vm || resource.type == ResourceType::scale_set) && is_az(resource) &&
            rule.known() && (rule.is_nocase("SSH") || rule.is_nocase("RDP")) && has_gpu(resource, report) &&
            contains_nocase(resource.source->text(resource.whole), "--nsg-rule")) {
            Finding* finding = report.add(rule, resource.address,
                                          fmt::format("--nsg-rule {} opens {} of this machine to everyone", rule.text,
                                                      rule.is_nocase("SSH") ? "SSH" : "Remote Desktop"));
            if (finding) finding->advice = "take --nsg-rule NONE, and let in the addresses that need it";
            const std::string_view written = rule.source->text(rule.span);
            if (finding && written == rule.text && !rule.use_source)
                report.fix(finding, *rule.source, FixClass::unsafe, "--nsg-rule NONE", {{rule.span, "NONE"}});
            return;
        }
        // az vm create opens SSH by itself when it makes the address and the security group.
        if (resource.type != ResourceType::vm || !is_az(resource) || !has_gpu(resource, report)) return;
        if (resource.get(Attr::nsg).present() || resource.get(Attr::network_interface).present()) return;
        const Value& address = resource.get(Attr::public_ip);
        if (address.present() && (address.unknown() || address.text.empty())) return;
        const std::string_view text = resource.source->text(resource.whole);
        if (contains_nocase(text, "--nics") || contains_nocase(text, "--nsg") || contains_nocase(text, "\"$@\""))
            return;
        Finding* finding = add_at_header(report, resource,
                                         "az vm create gives this machine a public address and opens SSH to everyone");
        if (!finding) return;
        finding->severity = Severity::warning;
        finding->advice = "add --public-ip-address \"\" or --nsg-rule NONE";
    });
}

void sec002_in(const File& file, const Bundle& bundle, Report& report) {
    bool gpu = false, asked = false;
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::security_rule) return;
        const auto open = sec001_open(resource, {3389, 8888, 8265, 6006, 8000, 11434, 5678, 9400});
        if (!open) return;
        const Value& any_port = resource.get(Attr::port);
        const bool ssh_only = any_port.known() && any_port.text == "22";
        if (!open->port && (!open->by_default || ssh_only || !any_port.known())) return;
        if (!asked) gpu = gpu_root(file, bundle, report), asked = true;
        if (!gpu) return;
        const Value& port = open->port ? *open->port : any_port;
        const std::string what =
            open->by_default
                ? fmt::format("port {} is open to everyone: az lets in all sources when none is named", port.text)
                : fmt::format("port {} is open to everyone", port.text);
        Finding* finding =
            open->by_default ? add_at_header(report, resource, what) : report.add(port, resource.address, what);
        if (!finding) return;
        if (open->source) report.relate(finding, *open->source->source, open->source->span, "everyone");
        finding->advice = kSec001Advice;
    });
}

}  // namespace

void check_sec001(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) sec001_in(*file, bundle, report);
}

void check_sec002(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) sec002_in(*file, bundle, report);
}

}  // namespace stoker::lint
