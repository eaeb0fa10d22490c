#!/bin/bash
# Stands in for az, and for what the scripts call beside it: writes its words down, and answers what is asked for.
program=${0##*/}
{ printf '%s\x1f' "$program" "$@"; printf '\x1e'; } >> "$RECORD"
case "$program $*" in
    "az vm list-usage"*) printf 'standardNDSH100v5Family\t0\t100000\nlowPriorityCores\t0\t100000\n' ;;
    "az vm list-skus"*) echo standardNDSH100v5Family ;;
    "az account show"*) echo 00000000-0000-0000-0000-000000000000 ;;
    "az feature show"*) echo Registered ;;
    "az vm run-command invoke"*) echo 'node-check: as planned' ;;
    "az monitor account show"*metrics.prometheusQueryEndpoint*) echo https://work.eastus.prometheus.monitor.azure.com ;;
    "az monitor account show"*) echo /subscriptions/s/resourceGroups/g/providers/microsoft.monitor/accounts/m ;;
    "az group show"*) echo /subscriptions/s/resourceGroups/g ;;
    "az identity show"*clientId*) echo 00000000-0000-0000-0000-000000000001 ;;
    "git clone"*) mkdir -p "${!#}/bicep" && touch "${!#}/bicep/mainTemplate.bicep" ;;
    "kubectl apply -f -") cat > "$RECORD.applied" ;;
    "az network vnet subnet show"*) echo /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/work ;;
    "scontrol show"*) printf 'node-0\nnode-11\n' ;;
esac
