// Terraform blocks as resources: azurerm, and the GPU pools of google and aws.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/azure/fields.h"
#include "lint/azure/local_modules.h"
#include "lint/azure/terraform_objects.h"
#include "lint/azure/variable_files.h"
#include "lint/read.h"
#include "lint/shell/read_bake.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr Field kTfVm[] = {{Attr::name, "name"},
                           {Attr::size, "size"},
                           {Attr::size, "vm_size"},
                           {Attr::size, "instance_type"},  // aws_instance
                           {Attr::image_publisher, "source_image_reference.publisher"},
                           {Attr::image_offer, "source_image_reference.offer"},
                           {Attr::image_sku, "source_image_reference.sku"},
                           {Attr::image_version, "source_image_reference.version"},
                           {Attr::image_publisher, "storage_image_reference.publisher"},
                           {Attr::image_offer, "storage_image_reference.offer"},
                           {Attr::image_sku, "storage_image_reference.sku"},
                           {Attr::image_version, "storage_image_reference.version"},
                           {Attr::image_id, "storage_image_reference.id"},
                           {Attr::image_id, "source_image_id"},
                           {Attr::priority, "priority"},
                           {Attr::eviction_policy, "eviction_policy"},
                           {Attr::secure_boot, "secure_boot_enabled"},
                           {Attr::ppg, "proximity_placement_group_id"},
                           {Attr::availability_set, "availability_set_id"},
                           {Attr::scale_set, "virtual_machine_scale_set_id"},
                           {Attr::capacity_reservation, "capacity_reservation_group_id"},
                           {Attr::network_interface, "network_interface_ids"},
                           {Attr::zone, "zone"},
                           {Attr::zone, "zones"},
                           {Attr::admin_password, "admin_password"},
                           {Attr::admin_password, "os_profile.admin_password"},
                           {Attr::tag, "tags"}};
constexpr Field kTfScaleSet[] = {{Attr::name, "name"},
                                 {Attr::size, "sku"},
                                 {Attr::size, "sku_name"},
                                 {Attr::size, "sku.name"},  // azurerm_virtual_machine_scale_set, the old one
                                 {Attr::count, "sku.capacity"},
                                 {Attr::accelerated_networking, "network_profile.accelerated_networking"},
                                 {Attr::image_publisher, "storage_profile_image_reference.publisher"},
                                 {Attr::image_offer, "storage_profile_image_reference.offer"},
                                 {Attr::image_sku, "storage_profile_image_reference.sku"},
                                 {Attr::count, "instances"},
                                 {Attr::single_placement_group, "single_placement_group"},
                                 {Attr::overprovision, "overprovision"},
                                 {Attr::accelerated_networking, "network_interface.enable_accelerated_networking"},
                                 {Attr::accelerated_networking, "network_interface.accelerated_networking_enabled"},
                                 {Attr::public_ip, "network_interface.ip_configuration.public_ip_address"},
                                 {Attr::image_publisher, "source_image_reference.publisher"},
                                 {Attr::image_offer, "source_image_reference.offer"},
                                 {Attr::image_sku, "source_image_reference.sku"},
                                 {Attr::image_version, "source_image_reference.version"},
                                 {Attr::image_id, "source_image_id"},
                                 {Attr::priority, "priority"},
                                 {Attr::eviction_policy, "eviction_policy"},
                                 {Attr::secure_boot, "secure_boot_enabled"},
                                 {Attr::ppg, "proximity_placement_group_id"},
                                 {Attr::capacity_reservation, "capacity_reservation_group_id"},
                                 {Attr::zone, "zones"},
                                 {Attr::admin_password, "admin_password"},
                                 {Attr::admin_password, "os_profile.linux_configuration.admin_password"},
                                 {Attr::tag, "tags"}};
constexpr Field kTfPool[] = {{Attr::name, "name"},
                             {Attr::size, "vm_size"},
                             {Attr::count, "node_count"},
                             {Attr::min_count, "min_count"},
                             {Attr::max_count, "max_count"},
                             {Attr::autoscaling, "enable_auto_scaling"},
                             {Attr::autoscaling, "auto_scaling_enabled"},
                             {Attr::taint, "node_taints"},
                             {Attr::node_label, "node_labels"},
                             {Attr::zone, "zones"},
                             {Attr::zone, "availability_zones"},
                             {Attr::pool_mode, "mode"},
                             {Attr::os_sku, "os_sku"},
                             {Attr::os_type, "os_type"},
                             {Attr::node_public_ip, "enable_node_public_ip"},
                             {Attr::node_public_ip, "node_public_ip_enabled"},
                             {Attr::priority, "priority"},
                             {Attr::eviction_policy, "eviction_policy"},
                             {Attr::gpu_instance, "gpu_instance"},
                             {Attr::gpu_driver, "gpu_driver"},
                             {Attr::ppg, "proximity_placement_group_id"},
                             {Attr::capacity_reservation, "capacity_reservation_group_id"},
                             {Attr::kubernetes_version, "orchestrator_version"},
                             {Attr::subnet, "vnet_subnet_id"},
                             {Attr::target, "kubernetes_cluster_id"},
                             {Attr::tag, "tags"}};
constexpr Field kTfGooglePool[] = {
    {Attr::name, "name"},
    {Attr::size, "node_config.machine_type"},
    {Attr::count, "node_count"},
    {Attr::min_count, "autoscaling.min_node_count"},
    {Attr::max_count, "autoscaling.max_node_count"},
    {Attr::min_count, "autoscaling.total_min_node_count"},
    {Attr::max_count, "autoscaling.total_max_node_count"},
    {Attr::gpu_instance, "node_config.guest_accelerator.gpu_partition_size"},
    {Attr::gpu_driver, "node_config.guest_accelerator.gpu_driver_installation_config.gpu_driver_version"},
    {Attr::capacity_reservation, "node_config.reservation_affinity.values"},
    {Attr::node_label, "node_config.labels"}};
constexpr Field kTfAwsPool[] = {{Attr::name, "node_group_name"},
                                {Attr::size, "instance_types"},
                                {Attr::count, "scaling_config.desired_size"},
                                {Attr::min_count, "scaling_config.min_size"},
                                {Attr::max_count, "scaling_config.max_size"},
                                {Attr::node_label, "labels"},
                                {Attr::priority, "capacity_type"},
                                {Attr::tag, "tags"}};
constexpr Field kTfBatch[] = {{Attr::name, "name"},
                              {Attr::size, "vm_size"},
                              {Attr::dedicated_nodes, "fixed_scale.target_dedicated_nodes"},
                              {Attr::low_priority_nodes, "fixed_scale.target_low_priority_nodes"},
                              {Attr::autoscale_formula, "auto_scale.formula"},
                              {Attr::image_publisher, "storage_image_reference.publisher"},
                              {Attr::image_offer, "storage_image_reference.offer"},
                              {Attr::image_sku, "storage_image_reference.sku"},
                              {Attr::image_id, "storage_image_reference.id"},
                              {Attr::tag, "metadata"}};
constexpr Field kTfAml[] = {{Attr::name, "name"},
                            {Attr::size, "vm_size"},
                            {Attr::size, "virtual_machine_size"},
                            {Attr::priority, "vm_priority"},
                            {Attr::min_count, "scale_settings.min_node_count"},
                            {Attr::max_count, "scale_settings.max_node_count"},
                            {Attr::tag, "tags"}};
constexpr Field kTfExtension[] = {{Attr::extension_publisher, "publisher"},
                                  {Attr::extension_type, "type"},
                                  {Attr::extension_version, "type_handler_version"},
                                  {Attr::auto_upgrade_minor, "auto_upgrade_minor_version"},
                                  {Attr::auto_upgrade_minor, "auto_upgrade_minor_version_enabled"},
                                  {Attr::target, "virtual_machine_id"},
                                  {Attr::target, "virtual_machine_scale_set_id"}};
constexpr Field kTfRule[] = {{Attr::port, "destination_port_range"},
                             {Attr::port, "destination_port_ranges"},
                             {Attr::source_prefix, "source_address_prefix"},
                             {Attr::source_prefix, "source_address_prefixes"},
                             {Attr::access, "access"},
                             {Attr::direction, "direction"},
                             {Attr::protocol, "protocol"}};
constexpr Field kTfNic[] = {{Attr::name, "name"},
                            {Attr::accelerated_networking, "enable_accelerated_networking"},
                            {Attr::accelerated_networking, "accelerated_networking_enabled"},
                            {Attr::public_ip, "ip_configuration.public_ip_address_id"}};
constexpr Field kTfNetwork[] = {{Attr::name, "name"}, {Attr::address_prefix, "address_space"}};
constexpr Field kTfSubnet[] = {
    {Attr::name, "name"}, {Attr::address_prefix, "address_prefixes"}, {Attr::address_prefix, "address_prefix"}};
constexpr Field kTfAutoscale[] = {{Attr::target, "target_resource_id"},
                                  {Attr::metric, "profile.rule.metric_trigger.metric_name"}};
constexpr Field kTfPublic[] = {{Attr::name, "name"}, {Attr::public_network_access, "public_network_access_enabled"}};
constexpr Field kTfChart[] = {{Attr::name, "name"}, {Attr::chart_name, "chart"}, {Attr::chart_version, "version"}};

struct TerraformFinder {
    File& file;
    const ReadOptions& options;
    const Node* block = nullptr;
    std::string_view type;
    std::string address;
    Span header;

    bool is(std::initializer_list<std::string_view> types) const {
        return std::find(types.begin(), types.end(), type) != types.end();
    }
    Resource& add(ResourceType kind, std::span<const Field> fields) {
        Resource& made = add_resource(file, kind, address, type, block, header);
        set_fields(made, block, fields, file.tree);
        return made;
    }
    std::size_t last() const { return file.resources.size() - 1; }

    static Span header_of(const Node& node) {
        return {node.key_span.begin, std::max(node.key_span.end, node.span.begin)};
    }

    // Blocks of that name, those in dynamic blocks too: their content counts once, with what is written there.
    template <typename F>
    void each_block(const Node* body, std::string_view name, F&& use) {
        std::size_t index = 0;
        for (const Node& child : children(body)) {
            if (child.key == name && child.is_object()) use(child, index++);
            if (child.key == "dynamic" && !child.labels.empty() && child.labels[0] == name)
                if (const Node* content = child.find("content")) use(*content, index++);
        }
    }
    // A block in the block that is a resource of its own.
    Resource& part(ResourceType kind, const Node& node, std::string_view name, std::size_t index,
                   std::span<const Field> fields) {
        const std::string_view called = text_at(&node, "name");
        const std::string suffix =
            called.empty() ? fmt::format("{}[{}]", name, index) : fmt::format("{}/{}", name, called.substr(0, 80));
        Resource& made = add_resource(file, kind, fmt::format("{}#{}", address, suffix), type, &node, header_of(node));
        set_fields(made, &node, fields, file.tree);
        made.set(Attr::target, Value::known_text(file.tree.keep(address), made.header, *made.source));
        return made;
    }
    // NO_SCHEDULE of GKE and EKS in the words of Kubernetes, so that tolerations can be compared.
    static std::string_view effect_of(std::string_view written) {
        if (written == "NO_SCHEDULE") return "NoSchedule";
        if (written == "NO_EXECUTE") return "NoExecute";
        if (written == "PREFER_NO_SCHEDULE") return "PreferNoSchedule";
        return written;
    }
    // key, value and effect of taint blocks as "key=value:Effect".
    void taints(Resource& made, const Node* body) {
        std::vector<Value> values;
        each_block(body, "taint", [&](const Node& taint, std::size_t) {
            Value value = Value::of(taint.find("key") ? taint.find("key") : &taint);
            value.text = file.tree.keep(fmt::format("{}={}:{}", text_at(&taint, "key"), text_at(&taint, "value"),
                                                    effect_of(text_at(&taint, "effect"))));
            values.push_back(value);
        });
        if (const Node* list = node_at(body, "taint"); list && list->is_array() && list->first)
            values.push_back(Value::of(list));
        for (Value& value : values) made.set(Attr::taint, value);
    }
    void password_login() {
        Resource& made = file.resources[last()];
        const Node* off = block->find("disable_password_authentication");
        if (!off) off = node_at(block, "os_profile_linux_config.disable_password_authentication");
        if (!off) return;
        Value value = Value::of(off);
        if (const auto disabled = value.as_bool()) value.text = *disabled ? "false" : "true";
        made.set(Attr::password_login, value);
    }
    void machine(std::size_t at) {
        Resource& made = file.resources[at];
        made.set(Attr::os_type, implied(type.find("windows") != std::string_view::npos ? "Windows" : "Linux", made));
        for (const std::string_view key : {"secure_boot_enabled", "vtpm_enabled"})
            if (const Node* node = block->find(key)) {
                Value value = Value::of(node);
                if (value.as_bool() != std::optional(true)) continue;
                value.text = "TrustedLaunch";
                made.set(Attr::security_type, value);
                break;
            }
        password_login();
        const Node* data = block->find("custom_data") ? block->find("custom_data") : block->find("user_data");
        if (!data) data = node_at(block, "os_profile.custom_data");
        read_custom_data(file, at, data, Dialect::hcl, options);
    }
    void count() {  // count = 4; a resource that is not made by default has no count
        if (const Node* node = block->find("count")) file.resources[last()].set(Attr::count, Value::of(node));
    }

    void azure() {
        if (is({"azurerm_linux_virtual_machine", "azurerm_windows_virtual_machine", "azurerm_virtual_machine"})) {
            add(ResourceType::vm, kTfVm);
            count();
            machine(last());
        } else if (is({"azurerm_linux_virtual_machine_scale_set", "azurerm_windows_virtual_machine_scale_set",
                       "azurerm_virtual_machine_scale_set", "azurerm_orchestrated_virtual_machine_scale_set"})) {
            Resource& made = add(ResourceType::scale_set, kTfScaleSet);
            made.set(Attr::orchestration,
                     implied(type.find("orchestrated") != std::string_view::npos ? "Flexible" : "Uniform", made));
            const std::size_t here = last();
            each_block(block, "extension", [&](const Node& node, std::size_t i) {
                part(ResourceType::extension, node, "extension", i, kTfExtension);
            });
            machine(here);
        } else if (type == "azurerm_kubernetes_cluster") {
            static constexpr Field fields[] = {{Attr::name, "name"},
                                               {Attr::kubernetes_version, "kubernetes_version"},
                                               {Attr::scale_down_unneeded, "auto_scaler_profile.scale_down_unneeded"},
                                               {Attr::tag, "tags"}};
            add(ResourceType::cluster, fields);
            each_block(block, "default_node_pool", [&](const Node& node, std::size_t i) {
                Resource& made = part(ResourceType::node_pool, node, "default_node_pool", i, kTfPool);
                if (made.get(Attr::pool_mode).absent()) made.set(Attr::pool_mode, implied("System", made));
            });
        } else if (type == "azurerm_kubernetes_cluster_node_pool") {
            add(ResourceType::node_pool, kTfPool);
        } else if (type == "azurerm_batch_pool") {
            add(ResourceType::batch_pool, kTfBatch);
        } else if (type == "azurerm_machine_learning_compute_cluster") {
            Resource& made = add(ResourceType::aml_compute, kTfAml);
            set_idle(made, node_at(block, "scale_settings.scale_down_nodes_after_idle_duration"), file.tree);
        } else if (type == "azurerm_machine_learning_compute_instance") {
            add(ResourceType::aml_instance, kTfAml);
        } else if (type == "azurerm_network_interface") {
            add(ResourceType::nic, kTfNic);
        } else if (type == "azurerm_virtual_network") {
            add(ResourceType::vnet, kTfNetwork);
            each_block(block, "subnet", [&](const Node& node, std::size_t i) {
                part(ResourceType::subnet, node, "subnet", i, kTfSubnet);
            });
        } else if (type == "azurerm_subnet") {
            add(ResourceType::subnet, kTfSubnet);
        } else if (type == "azurerm_network_security_rule") {
            add(ResourceType::security_rule, kTfRule);
        } else if (type == "azurerm_network_security_group") {
            each_block(block, "security_rule", [&](const Node& node, std::size_t i) {
                part(ResourceType::security_rule, node, "security_rule", i, kTfRule);
            });
        } else if (is({"azurerm_virtual_machine_extension", "azurerm_virtual_machine_scale_set_extension"})) {
            add(ResourceType::extension, kTfExtension);
        } else if (type == "azurerm_proximity_placement_group") {
            add(ResourceType::placement_group, kTfPublic);
        } else if (type == "azurerm_availability_set") {
            add(ResourceType::availability_set, kTfPublic);
        } else if (is({"azurerm_dev_test_global_vm_shutdown_schedule", "azurerm_dev_test_schedule",
                       "azurerm_automation_schedule"})) {
            static constexpr Field fields[] = {{Attr::target, "virtual_machine_id"}};
            add(ResourceType::shutdown_schedule, fields);
        } else if (type == "azurerm_monitor_autoscale_setting") {
            add(ResourceType::autoscale_setting, kTfAutoscale);
        } else if (type.starts_with("azurerm_consumption_budget")) {
            add(ResourceType::budget, {});
        } else if (type == "azurerm_machine_learning_workspace") {
            add(ResourceType::workspace, kTfPublic);
        } else if (type == "azurerm_container_registry") {
            add(ResourceType::registry, kTfPublic);
        } else if (type == "azurerm_storage_account") {
            add(ResourceType::storage, kTfPublic);
        } else if (type == "azurerm_private_endpoint") {
            Resource& made = add(ResourceType::other, {});
            made.set(Attr::private_endpoint, implied("true", made));
        } else if (type == "azurerm_capacity_reservation") {
            static constexpr Field fields[] = {{Attr::size, "sku.name"}, {Attr::zone, "zone"}};
            add(ResourceType::other, fields);
        } else if (type.find("policy") == std::string_view::npos) {
            sizes_below(*block);
        }
    }
    void google_pool(const Node& node, Resource& made) {
        taints(made, node.find("node_config"));
        if (const Node* scale = node.find("autoscaling"))
            made.set(Attr::autoscaling, Value::known_text("true", scale->key_span, *scale->source));
        // GKE taints pools with a guest accelerator by itself.
        const Node* config = node.find("node_config");
        if (const Node* gpu = config ? config->find("guest_accelerator") : nullptr; gpu && gpu->first)
            made.set(Attr::managed_gpu, Value::known_text("guest_accelerator", gpu->key_span, *gpu->source));
        for (const std::string_view key : {"spot", "preemptible"})
            if (const Node* spot = config ? config->find(key) : nullptr;
                spot && Value::of(spot).as_bool() == std::optional(true))
                made.set(Attr::priority, Value::known_text("Spot", spot->span, *spot->source));
    }

    void resource(const Node& node) {
        block = &node;
        type = node.labels[0];
        header = header_of(node);
        address = fmt::format("tf:{}.{}", type, node.labels[1]);
        if (node.labels.size() > 2) address += fmt::format("[{}]", node.labels[2]);
        read_terraform_scripts(file, node, options);
        if (type.starts_with("azurerm_")) {
            azure();
        } else if (type == "google_container_node_pool") {
            google_pool(node, add(ResourceType::node_pool, kTfGooglePool));
        } else if (type == "google_container_cluster") {
            each_block(block, "node_pool", [&](const Node& pool, std::size_t i) {
                google_pool(pool, part(ResourceType::node_pool, pool, "node_pool", i, kTfGooglePool));
            });
        } else if (type == "aws_eks_node_group") {
            taints(add(ResourceType::node_pool, kTfAwsPool), block);
            Resource& made = file.resources[last()];
            // A managed node group always has bounds; its size moves only when something moves it.
            if (made.get(Attr::min_count).present()) made.set(Attr::autoscaling, implied("true", made));
        } else if (type == "aws_instance") {
            add(ResourceType::vm, kTfVm);
            count();
        } else if (type == "azapi_resource" || type == "azapi_update_resource") {
            ArmBody arm;
            const std::string_view written = text_at(&node, "type");
            arm.type = written.substr(0, written.find('@'));
            arm.address = address;
            arm.written = type;
            arm.body = node.find("body");
            arm.header = header;
            if (const Node* copies = node.find("count")) arm.count = Value::of(copies);
            add_arm_resource(file, arm, Dialect::hcl, options);
        } else if (type == "helm_release") {
            add(ResourceType::chart, kTfChart);
            read_terraform_chart(file, node, options);
        } else if (read_terraform_object(file, node, type, options)) {
            return;
        } else if (type == "kubectl_manifest" || type == "k8s_manifest" || type == "kubernetes_manifest") {
            read_terraform_manifest(file, node, type, options);
        } else {
            sizes_below(node);
        }
    }
    // A resource of which nothing else is known: what its arguments call a size is one.
    void sizes_below(const Node& node) { add_sizes_of_call(file, node, address); }
    // Packer: machines that images are made on, and what is run there.
    void packer(const Node& node) {
        read_terraform_scripts(file, node, options);
        for (const Node& argument : children(&node))
            if (argument.is_scalar() && file.path().ends_with(".pkr.hcl"))
                add_named_size(
                    file, argument.key, &argument,
                    fmt::format("packer:{}.{}", node.labels.empty() ? "build" : node.labels[0], argument.key),
                    argument.key_span);
    }

    static std::string name_of_call(const Node& node) {
        return node.labels.size() > 1 ? fmt::format("module.{}[{}]", node.labels[0], node.labels[1])
                                      : fmt::format("module.{}", node.labels[0]);
    }
    void module_call(const Node& node) {
        read_module_call(file, name_of_call(node), text_at(&node, "source"), node, &node, options);
    }

    // Sizes in the condition of a validation: contains(["Standard_NC6", ...], var.size).
    void validation(const Node& variable, const std::string& of) {
        each_block(&variable, "validation", [&](const Node& check, std::size_t) {
            const Node* condition = check.find("condition");
            if (!condition || condition->source != &file.source()) return;
            const std::string_view text = file.source().text();
            Node* list = nullptr;
            for (std::size_t at = text.find('"', condition->span.begin); at < condition->span.end;) {
                const std::size_t end = text.find('"', at + 1);
                if (end == std::string_view::npos || end >= condition->span.end) break;
                Node& item = file.tree.make(file.source(), Shape::string,
                                            {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end + 1)});
                item.text = text.substr(at + 1, end - at - 1);
                if (!list) list = &file.tree.make(file.source(), Shape::array, condition->span);
                file.tree.append(*list, item);
                at = text.find('"', end + 1);
            }
            add_size_list(file, list, of + "#validation", header_of(check));
        });
    }
};

}  // namespace

// replace(var.size, "-", "_"): what the variable holds is no size yet; what it comes to is judged where it is used.
static bool is_rewritten(const File& file, std::string_view variable) {
    const std::string use = "replace(var." + std::string(variable);
    const auto uses = [&](const File& each) {
        const std::string_view text = each.source().text();
        const std::size_t at = text.find(use);
        return at != std::string_view::npos && at + use.size() < text.size() &&
               std::string_view(", )").find(text[at + use.size()]) != std::string_view::npos;
    };
    return uses(file) ||
           std::any_of(file.neighbours.begin(), file.neighbours.end(), [&](const auto& each) { return uses(*each); });
}

void find_terraform(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::terraform) || file.tree.roots.empty()) return;
    TerraformFinder finder{file, options, nullptr, {}, {}, {}};
    for (const Node& node : children(file.tree.roots[0])) {
        const Span header = TerraformFinder::header_of(node);
        if (node.key == "resource" && node.labels.size() >= 2 && node.is_object()) {
            finder.resource(node);
        } else if ((node.key == "source" || node.key == "build") && node.is_object()) {
            finder.packer(node);
        } else if (node.key == "data" && node.labels.size() >= 2 && node.is_object()) {
            read_terraform_parts(file, node, options);
        } else if (node.key == "module" && !node.labels.empty() && file.call) {
            finder.module_call(node);
        } else if (file.call) {
            continue;  // defaults are judged in the file itself
        } else if (node.key == "variable" && node.labels.size() == 1) {
            const std::string address = fmt::format("tf:variable.{}", node.labels[0]);
            if (!is_rewritten(file, node.labels[0]))
                add_named_size(file, node.labels[0], node.find("default"), address, header);
            finder.validation(node, address);
        } else if (node.key == "module" && !node.labels.empty()) {
            add_sizes_of_call(file, node, fmt::format("tf:{}", finder.name_of_call(node)));
            finder.module_call(node);
        } else if (node.is_scalar() && (file.path().ends_with(".tfvars") || file.path().ends_with(".tfvars.json"))) {
            add_named_size(file, node.key, &node, fmt::format("tf:variable.{}", node.key), node.key_span);
        }
    }
    read_variable_files(file, options);
    read_bake_targets(file, options);
    // Terragrunt: a module of files beside, with the inputs that stand here.
    if (base_name_of(file.path()) != "terragrunt.hcl" || file.call) return;
    const Node *module = file.tree.roots[0]->find("terraform"), *inputs = file.tree.roots[0]->find("inputs");
    const Node* source = module ? module->find("source") : nullptr;
    if (source && source->known && source->is_scalar() && inputs && inputs->is_object())
        read_module_call(file, "inputs", source->text, *inputs, inputs, options);
}

}  // namespace stoker::lint
