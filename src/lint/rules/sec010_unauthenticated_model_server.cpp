#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool sec010_has_key(const Container& container) {
    if (container.node->find("env_file") || container.node->find("envFrom")) return true;
    for (const EnvVar& variable : container.environment) {
        // Keys that the server asks of its clients, not those that it shows elsewhere (NGC_API_KEY, HF_TOKEN).
        for (const std::string_view name : {"VLLM_API_KEY", "SGLANG_API_KEY", "LOCALAI_API_KEY", "API_KEY", "API_KEYS",
                                            "LLAMA_API_KEY", "INFINITY_API_KEY", "AUTH_TOKEN"})
            if (variable.name == name) return true;
    }
    for (const WordList& command : commands_of(container))
        for (const std::string_view word : {"--api-key", "--api_key", "--api-auth", "--gradio-auth", "--token"})
            if (has_word(*command.words, word)) return true;
    return false;
}

bool sec010_is_server(const Container& container) {
    if (container.built_here) {
        // Well-known user interfaces that people build from their sources.
        const Node* build = container.node->find("build");
        const Node* context = build && build->is_object() ? build->find("context") : build;
        return context && context->is_scalar() &&
               (contains_nocase(context->text, "automatic1111") || contains_nocase(context->text, "comfy"));
    }
    return container.image.known() && is_server_image(container.image.text);
}

// The published ports of a compose service that are bound to every interface.
std::vector<const Node*> sec010_open_ports(const Container& service) {
    std::vector<const Node*> open;
    for (const Node& port : children(service.node->find("ports"))) {
        if (port.is_object()) {
            const Node *published = port.find("published"), *host = port.find("host_ip");
            if (published && (!host || host->text == "0.0.0.0")) open.push_back(&port);
            continue;
        }
        const std::string_view text = port.source->text(port.span);  // as written: ${PORT:-8000}:8000
        if (text.find("127.0.0.1") != std::string_view::npos || text.find("localhost") != std::string_view::npos ||
            text.find("[::1]") != std::string_view::npos)
            continue;
        // One colon: no address, so all of them. None: a random port of the host.
        if (std::count(port.text.begin(), port.text.end(), ':') != 1 && !port.text.starts_with("0.0.0.0:")) continue;
        open.push_back(&port);
    }
    return open;
}

// All of them on the loopback address; nothing when one cannot be changed where it stands.
std::vector<Edit> sec010_close(const std::vector<const Node*>& ports) {
    std::vector<Edit> edits;
    for (const Node* port : ports) {
        if (port->is_object() || port->merged || !port->known) return {};
        const std::string_view written = port->source->text(port->span);
        const std::size_t digits = written.find_first_of("0123456789$");
        if (digits == std::string_view::npos || std::count(port->text.begin(), port->text.end(), ':') != 1) return {};
        const auto at = port->span.begin + static_cast<std::uint32_t>(digits);
        edits.push_back({{at, at}, "127.0.0.1:"});
    }
    return edits;
}

}  // namespace

void check_sec010(const File& file, Report& report) {
    each_service(file, [&](const Container& service) {
        if (!sec010_is_server(service) || service.node->find("extends") || sec010_has_key(service)) return;
        const std::vector<const Node*> ports = sec010_open_ports(service);
        if (ports.empty()) return;
        const Node* port = ports.front();
        Finding* finding =
            report.add(*port->source, port->span, service.address,
                       fmt::format("{} is published on all interfaces without an API key: anyone in the "
                                   "network uses the GPU",
                                   service.image.present() ? printable(service.image.text, 80) : "a server"));
        if (!finding) return;
        finding->advice = "publish it on 127.0.0.1 only, or require a key";
        report.fix(finding, *port->source, FixClass::safe, "publish it on 127.0.0.1", sec010_close(ports));
    });
    each_container(file, [&](const Workload&, const Container& container) {
        if (container.init || !sec010_is_server(container) || !accelerator_of(container) || sec010_has_key(container))
            return;
        for (const Node& port : children(container.node->find("ports"))) {
            const Node* host = port.find("hostPort");
            if (!host || !host->known || host->text == "0" || port.find("hostIP")) continue;
            report.add(*host->source, host->span, container.address,
                       fmt::format("{} is published on a port of the node without an API key",
                                   printable(container.image.text, 80)));
        }
    });
}

}  // namespace stoker::lint
