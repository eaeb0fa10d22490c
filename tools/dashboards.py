#!/usr/bin/env python3
"""Writes the dashboards of inference and of cost for Grafana (data/gpu/dashboard-*.json) from the rows below: a panel is a title, a unit
and what it asks Prometheus for. Run it after changing a row; a test holds each name against what is served."""

import json
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "gpu")
SOURCE = {"type": "prometheus", "uid": "${datasource}"}

INFERENCE = ("stoker-inference", "Inference: gateway, engines and their GPUs", "label_values(stoker_gateway_requests_total, instance)", [], [
    ("Requests", "reqps", [("sum(rate(stoker_gateway_requests_total{instance=~\"$instance\"}[5m]))", "read"),
                           ("sum(rate(stoker_gateway_refused_total{instance=~\"$instance\"}[5m]))", "refused by key or limit"),
                           ("sum(rate(stoker_gateway_failed_total{instance=~\"$instance\"}[5m]))", "failed")]),
    ("Share that failed", "percentunit", [("sum(rate(stoker_gateway_failed_total{instance=~\"$instance\"}[5m])) / sum(rate(stoker_gateway_requests_total{instance=~\"$instance\"}[5m]))", "")]),
    ("Tokens charged", "short", [("sum(rate(stoker_gateway_settled_tokens_in_total{instance=~\"$instance\"}[5m]))", "of prompts, a second"),
                                 ("sum(rate(stoker_gateway_settled_tokens_out_total{instance=~\"$instance\"}[5m]))", "generated, a second")]),
    ("Under way and waiting for a replica", "short", [("sum(stoker_gateway_requests_under_way{instance=~\"$instance\"})", "under way"),
                                                     ("sum(stoker_gateway_held_requests{instance=~\"$instance\"})", "held"),
                                                     ("sum(stoker_gateway_held_streams{instance=~\"$instance\"})", "streams")]),
    ("Retries, clients that left, clients that do not read", "short", [("sum(rate(stoker_gateway_retries_total{instance=~\"$instance\"}[5m]))", "retries"),
                                                                       ("sum(rate(stoker_gateway_cancels_total{instance=~\"$instance\"}[5m]))", "left"),
                                                                       ("sum(rate(stoker_gateway_slow_consumer_closes_total{instance=~\"$instance\"}[5m]))", "do not read")]),
    ("Accounting: what is not certain", "short", [("sum(increase(stoker_gateway_token_drift_total{instance=~\"$instance\"}[1h]))", "usage far from the count"),
                                                  ("sum(increase(stoker_gateway_counted_total{instance=~\"$instance\"}[1h]))", "charged by count"),
                                                  ("sum(increase(stoker_gateway_unaccounted_total{instance=~\"$instance\"}[1h]))", "not written to the ledger"),
                                                  ("sum(stoker_gateway_ledger_open_reservations{instance=~\"$instance\"})", "reserved now")]),
    ("Engines (vLLM): running and waiting", "short", [("sum by (model_name) (vllm:num_requests_running)", "{{model_name}} running"),
                                                      ("sum by (model_name) (vllm:num_requests_waiting)", "{{model_name}} waiting")]),
    ("Engines (vLLM): memory for keys and values in use", "percentunit", [("max by (model_name, instance) (vllm:kv_cache_usage_perc)", "{{model_name}} {{instance}}")]),
    ("GPUs: load and tensor cores", "percentunit", [("avg by (instance) (stoker_gpu_utilization_ratio)", "{{instance}} load"),
                                                    ("avg by (instance) (stoker_gpu_tensor_active_ratio)", "{{instance}} tensor cores")]),
    ("GPUs: memory bandwidth in use, which decoding lives on", "percentunit", [("avg by (instance) (stoker_gpu_dram_active_ratio)", "{{instance}}")]),
])

PRICES = [("price", "Dollars of a GPU hour", "2.50"), ("kwh", "Dollars of a kWh", "0.12")]
COST = ("stoker-cost", "Cost: what GPUs are paid for", "label_values(stoker_nvml_up, instance)", PRICES, [
    ("Paid for, dollars an hour", "currencyUSD", [("sum(stoker_gpus{state=\"expected\",instance=~\"$instance\"}) * $price", "all boards"),
                                                  ("count(stoker_allocation_state{state=\"unallocated\",instance=~\"$instance\"} == 0) * $price", "held by somebody")]),
    ("Wasted, dollars an hour", "currencyUSD", [("sum by (state) (rate(stoker_allocation_waste_seconds_total{instance=~\"$instance\"}[1h])) * $price", "{{state}}")]),
    ("Wasted in the last day, dollars", "currencyUSD", [("topk(20, sum by (instance, gpu, state) (increase(stoker_allocation_waste_seconds_total{instance=~\"$instance\"}[1d])) / 3600 * $price > 0.01)", "{{instance}} GPU {{gpu}} {{state}}")]),
    ("Held and idle now, with the owner", "short", [("(stoker_allocation_state{state=\"allocated_idle\",instance=~\"$instance\"} == 1) * on (instance, uuid) group_right () stoker_gpu_owner_info", "{{instance}} GPU {{gpu}} run {{run}} job {{job}}")]),
    ("GPUs by owner, dollars an hour", "currencyUSD", [("count by (run, job) (count by (run, job, instance, uuid) (stoker_gpu_owner_info{instance=~\"$instance\"})) * $price", "run {{run}} job {{job}}")]),
    ("GPUs by pod, dollars an hour", "currencyUSD", [("count by (namespace, pod) (count by (namespace, pod, instance, uuid) (stoker_gpu_assigned_info{instance=~\"$instance\",pod!=\"\"})) * $price", "{{namespace}}/{{pod}}")]),
    ("Electricity, dollars an hour", "currencyUSD", [("sum(rate(stoker_gpu_energy_joules_total{instance=~\"$instance\"}[15m])) * 3600 / 3.6e6 * $kwh", "boards alone")]),
    ("Work of a watt: tensor cores over power", "short", [("avg by (instance) (stoker_gpu_tensor_active_ratio{instance=~\"$instance\"}) / avg by (instance) (stoker_gpu_power_watts{window=\"instant\",instance=~\"$instance\"}) * 1000", "{{instance}}, per kW")]),
    ("Charged for tokens, dollars an hour", "currencyUSD", [("sum(rate(stoker_gateway_charged_usd_total[1h])) * 3600", "charged")]),
    ("Runs that wait, and for how long", "s", [("stoker_queue_oldest_seconds", "the oldest waits"), ("stoker_queue_length", "runs that wait")]),
])


def dashboard(uid, title, instances, prices, panels):
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus"},
                 {"name": "instance", "type": "query", "datasource": SOURCE, "query": instances, "refresh": 2, "multi": True, "includeAll": True}]
    variables += [{"name": name, "type": "textbox", "label": label, "query": value} for name, label, value in prices]
    made = []
    for number, (name, unit, targets) in enumerate(panels):
        made.append({"id": number + 1, "title": name, "type": "timeseries", "datasource": SOURCE,
                     "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
                     "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
                     "targets": [{"refId": chr(65 + i), "expr": expr, "legendFormat": legend} for i, (expr, legend) in enumerate(targets)]})
    return {"uid": uid, "title": title, "schemaVersion": 38, "version": 1, "time": {"from": "now-6h", "to": "now"}, "refresh": "30s", "tags": ["stoker"],
            "templating": {"list": variables}, "panels": made}


if __name__ == "__main__":
    for name, rows in (("inference", INFERENCE), ("cost", COST)):
        with open(os.path.join(FOLDER, f"dashboard-{name}.json"), "w") as file:
            file.write(json.dumps(dashboard(*rows), indent=1) + "\n")
