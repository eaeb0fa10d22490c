// What resources of Terraform carry in languages of their own: manifests, values of charts, cloud-configs.
#include <fmt/format.h>

#include "base/text.h"
#include "lint/azure/fields.h"
#include "lint/azure/terraform_objects.h"
#include "lint/helm/read_chart.h"

namespace stoker::lint {

// A chart beside, with what `values` and `set` give it.
void read_terraform_chart(File& file, const Node& block, const ReadOptions& options) {
    const std::string_view chart = text_at(&block, "chart");
    if (!chart.starts_with('.') || !block.find("chart")->known) return;
    const Node* values = nullptr;
    const auto lay = [&](const Node* over) {
        if (over) values = values ? &chart_values_over(file, *values, *over) : over;
    };
    for (const Node& each : children(block.find("values"))) lay(chart_values_of(file, each));
    Node& given = file.tree.make(file.source(), Shape::object, block.span);
    const auto set = [&](const Node& each) {
        const Node *key = each.find("name"), *value = each.find("value");
        if (key && value && key->is_scalar() && value->is_scalar())
            give_chart_value(file, given, key->text, Value::of(value));
    };
    for (const Node& each : children(&block)) {
        if (each.key != "set") continue;
        if (each.is_object()) set(each);
        if (each.is_array())
            for (const Node& one : children(&each)) set(one);
    }
    if (given.first) lay(&given);
    if (values) read_chart_given(file, chart, *values, block.key_span, "helm_release", options);
}

// Manifests in heredocs: kubectl_manifest and its kin, and kubernetes_manifest with yamldecode(...).
void read_terraform_manifest(File& file, const Node& block, std::string_view type, const ReadOptions& options) {
    const Node* written = block.find(type == "kubernetes_manifest" ? "manifest" : "yaml_body");
    if (!written || written->source != &file.source()) return;
    const auto as_a_whole = [&] {
        const auto size = static_cast<std::uint32_t>(written->text.size());
        return Inlay{std::string(written->text), {{0, size, written->span, Piece::Kind::changed}}};
    };
    Node inner = *written;
    const std::string_view raw = file.source().text(written->span);
    const std::size_t from = raw.find("<<");
    if (from == std::string_view::npos && written->known && written->is_scalar()) {  // templatefile(...)
        Inlay inlay = as_a_whole();
        if (!classify("", inlay.text).has(Kind::k8s)) return;
        File* guest = read_guest(file, std::move(inlay.text), std::move(inlay.pieces), {Kind::k8s}, options);
        if (guest) guest->problems.clear();  // those of the template are told there
        return;
    }
    const bool branches = raw.find("%{") != std::string_view::npos;
    if (from == std::string_view::npos || (branches && !written->known)) return;
    if (from > 0 && !raw.starts_with("yamldecode(")) return;
    inner.span.begin += static_cast<std::uint32_t>(from);
    const std::size_t last = raw.find_last_not_of(" \t\r\n)");
    inner.span.end = written->span.begin + static_cast<std::uint32_t>(last + 1);
    Inlay inlay = branches ? as_a_whole() : filled_inlay(inlay_of(inner, Dialect::hcl), written->text);
    if (!classify("", inlay.text).has(Kind::k8s)) return;
    const bool holes = inlay.text.find("${") != std::string::npos;
    File* guest = read_guest(file, std::move(inlay.text), std::move(inlay.pieces), {Kind::k8s}, options);
    // What a hole is filled with may be all that is missing.
    if (guest && holes) guest->problems.clear();
}

// cloudinit_config: its parts are what a machine gets as custom data.
void read_terraform_parts(File& file, const Node& block, const ReadOptions& options) {
    if (block.labels[0] != "cloudinit_config" && block.labels[0] != "template_cloudinit_config") return;
    for (const Node& part : children(&block)) {
        const Node* content = part.key == "part" ? part.find("content") : nullptr;
        if (!content) continue;
        add_resource(file, ResourceType::other, fmt::format("tf:data.{}.{}", block.labels[0], block.labels[1]),
                     block.labels[0], &part, part.key_span);
        read_custom_data(file, file.resources.size() - 1, content, Dialect::hcl, options);
    }
}

}  // namespace stoker::lint
