// Scripts that a resource carries for a machine to run: the custom script extension, deployment scripts, run commands,
// start tasks of Batch, provisioners of Terraform and Packer.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/azure/fields.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostProvisioned = 64;

// What a node says as a text, each byte with its place where that can be told.
Inlay payload_of(const File& file, const Node& node, Dialect dialect) {
    const Node* written = node.origin ? node.origin : &node;
    Inlay inlay;
    if (written->source == &file.source()) inlay = inlay_of(*written, dialect);
    if (dialect == Dialect::hcl && node.is_scalar()) inlay = filled_inlay(std::move(inlay), node.text);
    if (inlay.text.empty() && node.known && node.is_scalar()) {
        const Span place = node.source == &file.source() ? node.span : Span{0, 0};
        inlay.text = node.text;
        inlay.pieces = {{0, static_cast<std::uint32_t>(node.text.size()), place, Piece::Kind::changed}};
    }
    return inlay;
}

void run_payload(File& file, Inlay inlay, const ReadOptions& options) {
    if (trim(inlay.text).empty()) return;
    File* guest = read_guest(file, std::move(inlay.text), std::move(inlay.pieces), {Kind::launch, Kind::az}, options);
    // Of a shell that is none of ours.
    if (guest && !guest->problems.empty()) file.guests.pop_back();
}

void script_at(File& file, const Node* body, std::string_view path, Dialect dialect, const ReadOptions& options) {
    const Node* node = node_at(body, path);
    if (!node || !node->is_scalar()) return;
    Inlay inlay = payload_of(file, *node, dialect);
    if (std::string decoded = decode_base64(trim(inlay.text)); decoded.starts_with("#!")) {
        const Span place = inlay.pieces.front().host;
        inlay.pieces = {{0, static_cast<std::uint32_t>(decoded.size()), place, Piece::Kind::changed}};
        inlay.text = std::move(decoded);
    }
    run_payload(file, std::move(inlay), options);
}

// inline = [...]: one shell gets the lines of the list.
void lines_at(File& file, const Node* list, Dialect dialect, const ReadOptions& options) {
    Inlay all;
    for (const Node& line : children(list)) {
        if (!line.is_scalar()) continue;
        Inlay one = payload_of(file, line, dialect);
        for (Piece piece : one.pieces) {
            piece.guest += static_cast<std::uint32_t>(all.text.size());
            all.pieces.push_back(piece);
        }
        all.text += one.text;
        if (one.pieces.empty()) continue;
        const std::uint32_t end = one.pieces.back().host.end;
        all.pieces.push_back({static_cast<std::uint32_t>(all.text.size()), 1, {end, end}, Piece::Kind::changed});
        all.text += '\n';
    }
    run_payload(file, std::move(all), options);
}

// settings of an extension of Terraform: a text of JSON, by jsonencode or as a heredoc.
void settings_at(File& file, const Node* settings, const ReadOptions& options) {
    if (!settings) return;
    if (settings->is_object()) {  // jsonencode({...})
        for (const std::string_view key : {"commandToExecute", "script"})
            script_at(file, settings, key, Dialect::hcl, options);
        return;
    }
    if (!settings->is_scalar()) return;
    const Inlay inlay = payload_of(file, *settings, Dialect::hcl);
    if (inlay.text.find("commandToExecute") == std::string::npos && inlay.text.find("script") == std::string::npos)
        return;
    File json("settings.json", inlay.text);
    read_json(json);
    const Node* root = json.tree.roots.empty() ? nullptr : json.tree.roots.front();
    for (const std::string_view key : {"commandToExecute", "script"}) {
        const Node* command = node_at(root, key);
        if (!command || !command->is_scalar()) continue;
        std::string text(command->text);
        if (key == "script") text = decode_base64(text);
        const auto size = static_cast<std::uint32_t>(text.size());
        run_payload(file, {std::move(text), {{0, size, settings->span, Piece::Kind::changed}}}, options);
    }
}

}  // namespace

void read_terraform_scripts(File& file, const Node& block, const ReadOptions& options) {
    std::size_t count = 0;
    for (const Node& child : children(&block)) {
        if (child.key == "provisioner" && !child.labels.empty() && ++count <= kMostProvisioned) {
            const Node* interpreter = child.find("interpreter");
            if (interpreter && interpreter->first && !interpreter->first->text.ends_with("sh")) continue;
            script_at(file, &child, "command", Dialect::hcl, options);
            lines_at(file, child.find("inline"), Dialect::hcl, options);
        }
    }
    if (block.labels.empty()) return;
    const std::string_view type = block.labels[0];
    if (type.ends_with("virtual_machine_extension") || type.ends_with("scale_set_extension"))
        for (const std::string_view key : {"settings", "protected_settings"})
            settings_at(file, block.find(key), options);
    else if (type == "azurerm_batch_pool")
        script_at(file, &block, "start_task.command_line", Dialect::hcl, options);
    else if (type == "azurerm_resource_deployment_script_azure_cli")
        script_at(file, &block, "script_content", Dialect::hcl, options);
    else if (type == "azurerm_virtual_machine_run_command")
        script_at(file, &block, "source.script", Dialect::hcl, options);
}

void read_arm_scripts(File& file, const ArmBody& arm, const Node* body, Dialect dialect, const ReadOptions& options) {
    const bool deployed = equals_ignore_case(arm.type, "Microsoft.Resources/deploymentScripts");
    if (deployed && !equals_ignore_case(text_at(body, "kind"), "AzureCLI")) return;
    static constexpr std::array kPaths = {"properties.settings.commandToExecute",
                                          "properties.protectedSettings.commandToExecute",
                                          "properties.settings.script",
                                          "properties.protectedSettings.script",
                                          "properties.source.script",
                                          "properties.startTask.commandLine"};
    if (deployed) return script_at(file, body, "properties.scriptContent", dialect, options);
    for (const std::string_view path : kPaths) script_at(file, body, path, dialect, options);
}

}  // namespace stoker::lint
