#include "deploy/render/scale_set_scaling.h"

#include <fmt/format.h>

namespace stoker {
namespace {

// One machine less makes the others busier by n / (n - 1): from two that are 30 % busy one is 60 %.
constexpr int kBusyPercent = 80, kIdlePercent = 30;
constexpr const char* kReason =
    "# Their number follows how busy the GPUs are, as the machines send it (gpu-load): Percentage CPU says nothing of\n"
    "# them. Custom metrics come a minute late and are not in every region (learn.microsoft.com, Custom metrics in\n"
    "# Azure Monitor); while there are none, as many run as the plan counts on. A machine takes minutes to start,\n"
    "# which is the cooldown.\n";
// Of Azure's built-in roles: Monitoring Metrics Publisher.
constexpr const char* kPublisher = "3913510d-42f4-4e42-8a64-420c390055eb";

std::string set_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Compute/virtualMachineScaleSets', '{}')]", s.name);
}

Json rule(const AzureShape& s, const char* compare, int threshold, const char* window, const char* direction,
          const char* cooldown) {
    return Json::object()
        .set("metricTrigger", Json::object()
                                  .set("metricName", "gpu_busy")
                                  .set("metricNamespace", "stoker")
                                  .set("metricResourceUri", set_id(s))
                                  .set("timeGrain", "PT1M")
                                  .set("statistic", "Average")
                                  .set("timeWindow", window)
                                  .set("timeAggregation", "Average")
                                  .set("operator", compare)
                                  .set("threshold", threshold))
        .set("scaleAction", Json::object()
                                .set("direction", direction)
                                .set("type", "ChangeCount")
                                .set("value", "1")
                                .set("cooldown", cooldown));
}

std::string terraform_rule(const char* compare, int threshold, const char* window, const char* direction,
                           const char* cooldown) {
    return fmt::format(
        "\n    rule {{\n      metric_trigger {{\n        metric_name        = \"gpu_busy\"\n        metric_namespace   "
        "= "
        "\"stoker\"\n        metric_resource_id = azurerm_orchestrated_virtual_machine_scale_set.work.id\n"
        "        time_grain         = \"PT1M\"\n        statistic          = \"Average\"\n        time_window        = "
        "\"{}\"\n        time_aggregation   = \"Average\"\n        operator           = \"{}\"\n        threshold      "
        "    "
        "= {}\n      }}\n\n      scale_action {{\n        direction = \"{}\"\n        type      = \"ChangeCount\"\n    "
        "    "
        "value     = \"1\"\n        cooldown  = \"{}\"\n      }}\n    }}\n",
        window, compare, threshold, direction, cooldown);
}

}  // namespace

std::string metrics_identity(const AzureShape& s) {
    return s.name + "-machines";
}

std::string gpu_load_script() {
    return "#!/bin/bash\n"
           "# How busy the GPUs of this machine are, once a minute, into the custom metrics of its scale set, whose "
           "number\n"
           "# of machines goes by it. The machine's identity has the role Monitoring Metrics Publisher on the set.\n"
           "set -eu\n\n"
           "imds() { curl -fsS --noproxy '*' -H Metadata:true \"http://169.254.169.254/metadata/$1\"; }\n"
           "field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' \"$1\"; }\n"
           "about=$(imds 'instance/compute?api-version=2021-02-01')\n"
           "read_about() { printf '%s' \"$about\" | field \"$1\"; }\n"
           "group=/subscriptions/$(read_about subscriptionId)/resourceGroups/$(read_about resourceGroupName)\n"
           "set_id=$group/providers/Microsoft.Compute/virtualMachineScaleSets/$(read_about vmScaleSetName)\n"
           "url=https://$(read_about location).monitoring.azure.com$set_id/metrics\n"
           "while :; do\n"
           "    # Twelve looks in a minute, each of all GPUs.\n"
           "    seen=$(for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do\n"
           "        nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits\n"
           "        sleep \"${PAUSE:-5}\"\n    done | awk 'NR == 1 { least = most = $1 }\n"
           "        { sum += $1; if ($1 < least) least = $1; if ($1 > most) most = $1 }\n"
           "        END { if (NR > 0) printf \"\\\"min\\\": %d, \\\"max\\\": %d, \\\"sum\\\": %d, \\\"count\\\": %d\", "
           "least, "
           "most, sum, NR }')\n"
           "    if [ -n \"$seen\" ]; then\n"
           "        token=$(imds "
           "'identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmonitoring.azure.com%2F' "
           "| field access_token)\n"
           "        # One that is lost is one minute less to go by.\n"
           "        curl -fsS -X POST -H \"Authorization: Bearer $token\" -H 'Content-Type: application/json' -d "
           "\"$(printf \\\n"
           "            '{\"time\": \"%s\", \"data\": {\"baseData\": {\"metric\": \"gpu_busy\", \"namespace\": "
           "\"stoker\", "
           "\"dimNames\": [\"machine\"], \"series\": [{\"dimValues\": [\"%s\"], %s}]}}}' \\\n"
           "            \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\" \"$(hostname)\" \"$seen\")\" \"$url\" || echo 'gpu-load: "
           "not "
           "sent' >&2\n"
           "    fi\n    if [ -n \"${ONCE:-}\" ]; then exit; fi\ndone\n";
}

std::string gpu_load_unit() {
    return "[Unit]\nDescription=How busy the GPUs are, for the number of machines\nAfter=network-online.target\n"
           "Wants=network-online.target\n\n[Service]\nExecStart=/usr/local/sbin/gpu-load\nRestart=always\n"
           "RestartSec=60\n\n[Install]\nWantedBy=multi-user.target\n";
}

std::string az_set_identity(const AzureShape& s) {
    return fmt::format(
        "# Machines of a set whose number changes have one identity, made before them.\n"
        "az identity create -g \"$group\" -n {}\n",
        metrics_identity(s));
}

std::string az_set_scaling(const AzureShape& s) {
    return fmt::format(
        "{0}set=$(az vmss show -g \"$group\" -n {1} --query id -o tsv)\n"
        "az role assignment create --role 'Monitoring Metrics Publisher' --scope \"$set\" \\\n"
        "    --assignee-principal-type ServicePrincipal \\\n"
        "    --assignee-object-id \"$(az identity show -g \"$group\" -n {2} --query principalId -o tsv)\"\n"
        "az monitor autoscale create -g \"$group\" -n {1}-scaling --resource \"$set\" --min-count {3} --max-count {4} "
        "--count {4}\n"
        "az monitor autoscale rule create -g \"$group\" --autoscale-name {1}-scaling --scale out 1 --cooldown 10 \\\n"
        "    --condition '\"stoker\" gpu_busy > {5} avg 5m'\n"
        "az monitor autoscale rule create -g \"$group\" --autoscale-name {1}-scaling --scale in 1 --cooldown 15 \\\n"
        "    --condition '\"stoker\" gpu_busy < {6} avg 15m'\n",
        kReason, s.name, metrics_identity(s), s.least, s.count, kBusyPercent, kIdlePercent);
}

std::string set_identity_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', '{}')]", metrics_identity(s));
}

void add_set_identity(const AzureShape& s, Json& resources) {
    resources.push(Json::object()
                       .set("type", "Microsoft.ManagedIdentity/userAssignedIdentities")
                       .set("apiVersion", "2023-01-31")
                       .set("name", metrics_identity(s))
                       .set("location", "[parameters('location')]"));
}

void add_set_scaling(const AzureShape& s, Json& resources) {
    Json depends = arm_list(Json(set_id(s)));
    depends.push(set_identity_id(s));
    resources.push(
        Json::object()
            .set("type", "Microsoft.Authorization/roleAssignments")
            .set("apiVersion", "2022-04-01")
            .set("name", fmt::format("[guid(resourceGroup().id, '{}-metrics')]", s.name))
            .set("scope", set_id(s))
            .set("dependsOn", std::move(depends))
            .set("properties",
                 Json::object()
                     .set("roleDefinitionId",
                          fmt::format("[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '{}')]",
                                      kPublisher))
                     .set("principalId", fmt::format("[reference(resourceId('Microsoft.ManagedIdentity/"
                                                     "userAssignedIdentities', '{}')).principalId]",
                                                     metrics_identity(s)))
                     .set("principalType", "ServicePrincipal")));
    Json rules = arm_list(rule(s, "GreaterThan", kBusyPercent, "PT5M", "Increase", "PT10M"));
    rules.push(rule(s, "LessThan", kIdlePercent, "PT15M", "Decrease", "PT15M"));
    Json profile = Json::object()
                       .set("name", "gpus")
                       .set("capacity", Json::object()
                                            .set("minimum", std::to_string(s.least))
                                            .set("maximum", std::to_string(s.count))
                                            .set("default", std::to_string(s.count)))
                       .set("rules", std::move(rules));
    resources.push(Json::object()
                       .set("type", "Microsoft.Insights/autoscalesettings")
                       .set("apiVersion", "2022-10-01")
                       .set("name", s.name + "-scaling")
                       .set("location", "[parameters('location')]")
                       .set("dependsOn", arm_list(Json(set_id(s))))
                       .set("properties", Json::object()
                                              .set("enabled", true)
                                              .set("targetResourceUri", set_id(s))
                                              .set("profiles", arm_list(std::move(profile)))));
}

std::string terraform_set_identity(const AzureShape& s) {
    return fmt::format(
        "# Machines of a set whose number changes have one identity, made before them.\n"
        "resource \"azurerm_user_assigned_identity\" \"machines\" {{\n  name                = \"{}\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n}}\n\n",
        metrics_identity(s));
}

std::string terraform_set_scaling(const AzureShape& s) {
    return fmt::format(
               "\nresource \"azurerm_role_assignment\" \"metrics\" {{\n  scope                = "
               "azurerm_orchestrated_virtual_machine_scale_set.work.id\n  role_definition_name = \"Monitoring Metrics "
               "Publisher\"\n  principal_id         = azurerm_user_assigned_identity.machines.principal_id\n}}\n\n"
               "{0}resource \"azurerm_monitor_autoscale_setting\" \"work\" {{\n  name                = "
               "\"{1}-scaling\"\n"
               "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
               "azurerm_resource_group.work.location\n  target_resource_id  = "
               "azurerm_orchestrated_virtual_machine_scale_set.work.id\n\n  profile {{\n    name = \"gpus\"\n\n"
               "    capacity {{\n      minimum = {2}\n      maximum = {3}\n      default = {3}\n    }}\n",
               kReason, s.name, s.least, s.count) +
           terraform_rule("GreaterThan", kBusyPercent, "PT5M", "Increase", "PT10M") +
           terraform_rule("LessThan", kIdlePercent, "PT15M", "Decrease", "PT15M") + "  }\n}\n";
}

}  // namespace stoker
