// ARM types and their properties as resources; for templates and for Bicep, which have the same names.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/azure/fields.h"

namespace stoker::lint {

namespace {

constexpr Field kArmVm[] = {{Attr::name, "name"},
                            {Attr::size, "properties.hardwareProfile.vmSize"},
                            {Attr::image_publisher, "properties.storageProfile.imageReference.publisher"},
                            {Attr::image_offer, "properties.storageProfile.imageReference.offer"},
                            {Attr::image_sku, "properties.storageProfile.imageReference.sku"},
                            {Attr::image_version, "properties.storageProfile.imageReference.version"},
                            {Attr::image_id, "properties.storageProfile.imageReference.id"},
                            {Attr::image_id, "properties.storageProfile.imageReference.communityGalleryImageId"},
                            {Attr::image_id, "properties.storageProfile.imageReference.sharedGalleryImageId"},
                            {Attr::priority, "properties.priority"},
                            {Attr::eviction_policy, "properties.evictionPolicy"},
                            {Attr::security_type, "properties.securityProfile.securityType"},
                            {Attr::secure_boot, "properties.securityProfile.uefiSettings.secureBootEnabled"},
                            {Attr::ppg, "properties.proximityPlacementGroup"},
                            {Attr::ppg, "properties.proximityPlacementGroup.id"},
                            {Attr::availability_set, "properties.availabilitySet.id"},
                            {Attr::scale_set, "properties.virtualMachineScaleSet.id"},
                            {Attr::capacity_reservation, "properties.capacityReservation.capacityReservationGroup.id"},
                            {Attr::network_interface, "properties.networkProfile.networkInterfaces.id"},
                            {Attr::zone, "zones"},
                            {Attr::admin_password, "properties.osProfile.adminPassword"},
                            {Attr::tag, "tags"}};
constexpr Field kArmScaleSet[] = {
    {Attr::name, "name"},
    {Attr::size, "sku.name"},
    {Attr::count, "sku.capacity"},
    {Attr::single_placement_group, "properties.singlePlacementGroup"},
    {Attr::orchestration, "properties.orchestrationMode"},
    {Attr::overprovision, "properties.overprovision"},
    {Attr::ppg, "properties.proximityPlacementGroup.id"},
    {Attr::image_publisher, "properties.virtualMachineProfile.storageProfile.imageReference.publisher"},
    {Attr::image_offer, "properties.virtualMachineProfile.storageProfile.imageReference.offer"},
    {Attr::image_sku, "properties.virtualMachineProfile.storageProfile.imageReference.sku"},
    {Attr::image_version, "properties.virtualMachineProfile.storageProfile.imageReference.version"},
    {Attr::image_id, "properties.virtualMachineProfile.storageProfile.imageReference.id"},
    {Attr::priority, "properties.virtualMachineProfile.priority"},
    {Attr::eviction_policy, "properties.virtualMachineProfile.evictionPolicy"},
    {Attr::security_type, "properties.virtualMachineProfile.securityProfile.securityType"},
    {Attr::secure_boot, "properties.virtualMachineProfile.securityProfile.uefiSettings.secureBootEnabled"},
    {Attr::accelerated_networking,
     "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations.properties."
     "enableAcceleratedNetworking"},
    {Attr::capacity_reservation, "properties.virtualMachineProfile.capacityReservation.capacityReservationGroup.id"},
    {Attr::admin_password, "properties.virtualMachineProfile.osProfile.adminPassword"},
    {Attr::zone, "zones"},
    {Attr::tag, "tags"}};
constexpr Field kArmPool[] = {{Attr::size, "vmSize"},
                              {Attr::count, "count"},
                              {Attr::min_count, "minCount"},
                              {Attr::max_count, "maxCount"},
                              {Attr::autoscaling, "enableAutoScaling"},
                              {Attr::taint, "nodeTaints"},
                              {Attr::node_label, "nodeLabels"},
                              {Attr::zone, "availabilityZones"},
                              {Attr::pool_mode, "mode"},
                              {Attr::os_sku, "osSKU"},
                              {Attr::os_type, "osType"},
                              {Attr::node_public_ip, "enableNodePublicIP"},
                              {Attr::priority, "scaleSetPriority"},
                              {Attr::eviction_policy, "scaleSetEvictionPolicy"},
                              {Attr::gpu_instance, "gpuInstanceProfile"},
                              {Attr::gpu_driver, "gpuProfile.driver"},
                              {Attr::managed_gpu, "gpuProfile.nvidia.managementMode"},
                              {Attr::ppg, "proximityPlacementGroupID"},
                              {Attr::capacity_reservation, "capacityReservationGroupID"},
                              {Attr::secure_boot, "securityProfile.enableSecureBoot"},
                              {Attr::kubernetes_version, "orchestratorVersion"},
                              {Attr::subnet, "vnetSubnetID"},
                              {Attr::tag, "tags"}};
constexpr Field kArmBatch[] = {
    {Attr::size, "properties.vmSize"},
    {Attr::dedicated_nodes, "properties.scaleSettings.fixedScale.targetDedicatedNodes"},
    {Attr::low_priority_nodes, "properties.scaleSettings.fixedScale.targetLowPriorityNodes"},
    {Attr::autoscale_formula, "properties.scaleSettings.autoScale.formula"},
    {Attr::image_publisher, "properties.deploymentConfiguration.virtualMachineConfiguration.imageReference.publisher"},
    {Attr::image_offer, "properties.deploymentConfiguration.virtualMachineConfiguration.imageReference.offer"},
    {Attr::image_sku, "properties.deploymentConfiguration.virtualMachineConfiguration.imageReference.sku"},
    {Attr::image_id, "properties.deploymentConfiguration.virtualMachineConfiguration.imageReference.id"},
    {Attr::tag, "tags"}};
constexpr Field kArmCompute[] = {{Attr::size, "properties.properties.vmSize"},
                                 {Attr::priority, "properties.properties.vmPriority"},
                                 {Attr::min_count, "properties.properties.scaleSettings.minNodeCount"},
                                 {Attr::max_count, "properties.properties.scaleSettings.maxNodeCount"},
                                 {Attr::idle_shutdown, "properties.properties.idleTimeBeforeShutdown"},
                                 {Attr::schedule, "properties.properties.schedules.computeStartStop.action"},
                                 {Attr::tag, "tags"}};
constexpr Field kArmRule[] = {{Attr::port, "destinationPortRange"},
                              {Attr::port, "destinationPortRanges"},
                              {Attr::source_prefix, "sourceAddressPrefix"},
                              {Attr::source_prefix, "sourceAddressPrefixes"},
                              {Attr::access, "access"},
                              {Attr::direction, "direction"},
                              {Attr::protocol, "protocol"}};
constexpr Field kArmExtension[] = {{Attr::extension_publisher, "publisher"},
                                   {Attr::extension_type, "type"},
                                   {Attr::extension_version, "typeHandlerVersion"},
                                   {Attr::auto_upgrade_minor, "autoUpgradeMinorVersion"}};

struct ArmAdder {
    File& file;
    const ArmBody& arm;
    Dialect dialect;
    const ReadOptions& options;

    Resource& add(ResourceType type, std::span<const Field> fields) {
        Resource& made = add_resource(file, type, arm.address, arm.written, arm.body, arm.header);
        set_fields(made, arm.body, fields, file.tree);
        return made;
    }
    // A part of the body that is a resource of its own: a pool of a cluster, a rule of a group.
    Resource& part(ResourceType type, const Node& node, const Node* properties, std::span<const Field> fields,
                   std::size_t index) {
        const Node* name = node_at(&node, "name");
        const std::string_view called = name ? name->text : std::string_view();
        const Span header = name ? name->whole() : Span{node.span.begin, std::min(node.span.begin + 1, node.span.end)};
        const std::string label = called.empty() ? std::to_string(index) : std::string(called.substr(0, 80));
        Resource& made = add_resource(file, type, fmt::format("{}#{}", arm.address, label), arm.written, &node, header);
        if (name) made.set(Attr::name, Value::of(name));
        set_fields(made, properties, fields, file.tree);
        made.set(Attr::target, Value::known_text(file.tree.keep(arm.address), header, *made.source));
        return made;
    }
    template <typename F>
    void each(std::string_view path, F&& use) {
        const Node* list = node_at(arm.body, path);
        if (!list || !list->is_array()) return;
        std::size_t index = 0;
        for (const Node& item : children(list))
            if (item.is_object()) use(item, index++);
    }
    void machine(const Node* profile, std::size_t index) {
        Resource& made = file.resources[index];
        const Node* linux_part = node_at(profile, "osProfile.linuxConfiguration");
        if (node_at(profile, "osProfile.windowsConfiguration"))
            made.set(Attr::os_type, implied("Windows", made));
        else if (linux_part)
            made.set(Attr::os_type, implied("Linux", made));
        if (const Node* off = node_at(linux_part, "disablePasswordAuthentication")) {
            Value value = Value::of(off);
            if (const auto disabled = value.as_bool()) value.text = *disabled ? "false" : "true";
            made.set(Attr::password_login, value);
        } else if (linux_part && !linux_part->known && linux_part->is_scalar()) {
            Value value = Value::of(linux_part);
            made.set(Attr::password_login, value);
        }
        read_custom_data(file, index, node_at(profile, "osProfile.customData"), dialect, options);
    }
    void extension(Resource& made, const Node* node) {
        // Its name is "vm/extension"; Bicep names the machine as its parent.
        for (const std::string_view key : {"parent", "name"})
            if (const Node* target = node_at(node, key)) made.set(Attr::target, Value::of(target));
        if (!arm.target.empty())
            made.set(Attr::target, Value::known_text(file.tree.keep(arm.target), made.header, *made.source));
    }
};

}  // namespace

void add_arm_resource(File& file, const ArmBody& arm, Dialect dialect, const ReadOptions& options) {
    if (!arm.body || !arm.body->is_object()) return;
    const auto is = [&](std::string_view type) { return equals_ignore_case(arm.type, type); };
    if (!starts_with_ignore_case(arm.type, "Microsoft.")) return;
    ArmAdder adder{file, arm, dialect, options};
    read_arm_scripts(file, arm, arm.body, dialect, options);
    const auto index = [&] { return file.resources.size() - 1; };
    if (is("Microsoft.Compute/virtualMachines")) {
        Resource& made = adder.add(ResourceType::vm, kArmVm);
        made.set(Attr::count, arm.count);
        adder.machine(node_at(arm.body, "properties"), index());
    } else if (is("Microsoft.Compute/virtualMachineScaleSets")) {
        Resource& made = adder.add(ResourceType::scale_set, kArmScaleSet);
        const Node* ips = node_at(arm.body,
                                  "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations."
                                  "properties.ipConfigurations.properties.publicIPAddressConfiguration");
        if (ips) made.set(Attr::public_ip, Value::of(ips));
        const std::size_t here = index();
        adder.machine(node_at(arm.body, "properties.virtualMachineProfile"), here);
        adder.each("properties.virtualMachineProfile.extensionProfile.extensions",
                   [&](const Node& item, std::size_t i) {
                       adder.part(ResourceType::extension, item, node_at(&item, "properties"), kArmExtension, i);
                       read_arm_scripts(file, arm, &item, dialect, options);
                   });
    } else if (is("Microsoft.Compute/virtualMachines/extensions") ||
               is("Microsoft.Compute/virtualMachineScaleSets/extensions")) {
        Resource& made = adder.add(ResourceType::extension, {});
        set_fields(made, node_at(arm.body, "properties"), kArmExtension, file.tree);
        adder.extension(made, arm.body);
    } else if (is("Microsoft.ContainerService/managedClusters")) {
        static constexpr Field fields[] = {
            {Attr::name, "name"},
            {Attr::kubernetes_version, "properties.kubernetesVersion"},
            {Attr::scale_down_unneeded, "properties.autoScalerProfile.scale-down-unneeded-time"},
            {Attr::tag, "tags"}};
        adder.add(ResourceType::cluster, fields);
        adder.each("properties.agentPoolProfiles", [&](const Node& item, std::size_t i) {
            adder.part(ResourceType::node_pool, item, &item, kArmPool, i);
        });
    } else if (is("Microsoft.ContainerService/managedClusters/agentPools")) {
        Resource& made = adder.add(ResourceType::node_pool, {});
        set_fields(made, node_at(arm.body, "properties"), kArmPool, file.tree);
        adder.extension(made, arm.body);
    } else if (is("Microsoft.Batch/batchAccounts/pools")) {
        adder.add(ResourceType::batch_pool, kArmBatch);
    } else if (is("Microsoft.MachineLearningServices/workspaces/computes")) {
        const std::string_view kind = text_at(arm.body, "properties.computeType");
        if (equals_ignore_case(kind, "AmlCompute")) {
            Resource& made = adder.add(ResourceType::aml_compute, kArmCompute);
            set_idle(made, node_at(arm.body, "properties.properties.scaleSettings.nodeIdleTimeBeforeScaleDown"),
                     file.tree);
        } else if (equals_ignore_case(kind, "ComputeInstance")) {
            adder.add(ResourceType::aml_instance, kArmCompute);
        }
    } else if (is("Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments")) {
        static constexpr Field fields[] = {{Attr::size, "properties.instanceType"}, {Attr::count, "sku.capacity"}};
        adder.add(ResourceType::aml_endpoint, fields);
    } else if (is("Microsoft.MachineLearningServices/workspaces")) {
        static constexpr Field fields[] = {{Attr::public_network_access, "properties.publicNetworkAccess"}};
        adder.add(ResourceType::workspace, fields);
    } else if (is("Microsoft.ContainerRegistry/registries")) {
        static constexpr Field fields[] = {{Attr::public_network_access, "properties.publicNetworkAccess"}};
        adder.add(ResourceType::registry, fields);
    } else if (is("Microsoft.Storage/storageAccounts")) {
        static constexpr Field fields[] = {{Attr::public_network_access, "properties.publicNetworkAccess"}};
        adder.add(ResourceType::storage, fields);
    } else if (is("Microsoft.Network/privateEndpoints")) {
        Resource& made = adder.add(ResourceType::other, {});
        made.set(Attr::private_endpoint, implied("true", made));
    } else if (is("Microsoft.Network/networkInterfaces")) {
        static constexpr Field fields[] = {
            {Attr::name, "name"},
            {Attr::accelerated_networking, "properties.enableAcceleratedNetworking"},
            {Attr::public_ip, "properties.ipConfigurations.properties.publicIPAddress.id"}};
        adder.add(ResourceType::nic, fields);
    } else if (is("Microsoft.Network/virtualNetworks")) {
        static constexpr Field fields[] = {{Attr::name, "name"},
                                           {Attr::address_prefix, "properties.addressSpace.addressPrefixes"}};
        static constexpr Field subnet[] = {{Attr::address_prefix, "addressPrefix"},
                                           {Attr::address_prefix, "addressPrefixes"}};
        adder.add(ResourceType::vnet, fields);
        adder.each("properties.subnets", [&](const Node& item, std::size_t i) {
            adder.part(ResourceType::subnet, item, node_at(&item, "properties"), subnet, i);
        });
    } else if (is("Microsoft.Network/virtualNetworks/subnets")) {
        static constexpr Field fields[] = {{Attr::address_prefix, "properties.addressPrefix"},
                                           {Attr::address_prefix, "properties.addressPrefixes"}};
        adder.add(ResourceType::subnet, fields);
    } else if (is("Microsoft.Network/networkSecurityGroups")) {
        adder.each("properties.securityRules", [&](const Node& item, std::size_t i) {
            adder.part(ResourceType::security_rule, item, node_at(&item, "properties"), kArmRule, i);
        });
    } else if (is("Microsoft.Network/networkSecurityGroups/securityRules")) {
        Resource& made = adder.add(ResourceType::security_rule, {});
        set_fields(made, node_at(arm.body, "properties"), kArmRule, file.tree);
    } else if (is("Microsoft.Compute/proximityPlacementGroups")) {
        adder.add(ResourceType::placement_group, {});
    } else if (is("Microsoft.Compute/availabilitySets")) {
        adder.add(ResourceType::availability_set, {});
    } else if (is("Microsoft.DevTestLab/schedules") || is("Microsoft.Automation/automationAccounts/schedules")) {
        static constexpr Field fields[] = {{Attr::target, "properties.targetResourceId"}};
        adder.add(ResourceType::shutdown_schedule, fields);
    } else if (is("Microsoft.Insights/autoscaleSettings")) {
        static constexpr Field fields[] = {{Attr::target, "properties.targetResourceUri"},
                                           {Attr::metric, "properties.profiles.rules.metricTrigger.metricName"}};
        adder.add(ResourceType::autoscale_setting, fields);
    } else if (is("Microsoft.Consumption/budgets")) {
        adder.add(ResourceType::budget, {});
    } else if (is("Microsoft.AzureFleet/fleets") ||
               is("Microsoft.Compute/capacityReservationGroups/capacityReservations")) {
        static constexpr Field fields[] = {{Attr::size, "properties.vmSizesProfile.name"}, {Attr::size, "sku.name"}};
        adder.add(ResourceType::other, fields);
    }
}

}  // namespace stoker::lint
