// Every metric of a server, declared once: /metrics and docs/reference/metrics.md both come from this table. Names
// follow Prometheus: base units, a unit as the last word, _total for what only grows, one type for ever.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker::api {

enum class MetricType : unsigned char { counter, gauge, summary };
constexpr std::array<std::pair<MetricType, std::string_view>, 3> enum_names(MetricType) {
    return {{{MetricType::counter, "counter"}, {MetricType::gauge, "gauge"}, {MetricType::summary, "summary"}}};
}

struct MetricInfo {
    std::string_view name;
    MetricType type;
    std::string_view unit;    // "" for a plain number
    std::string_view labels;  // "version, commit"
    std::string_view help;    // a sentence
};

inline constexpr auto kMetrics = [] {
    using enum MetricType;
    return std::to_array<MetricInfo>({
        {"stoker_build_info", gauge, "", "version, commit", "Which Stoker this is; always 1."},
        {"stoker_runs", gauge, "runs", "state", "Runs by state."},
        {"stoker_queue_length", gauge, "runs", "", "Runs that wait for a place."},
        {"stoker_queue_oldest_seconds", gauge, "seconds", "", "How long the longest waiting of them has waited."},
        {"stoker_runs_live", gauge, "runs", "", "Runs that hold places."},
        {"stoker_nodes", gauge, "nodes", "state", "Nodes by state."},
        {"stoker_nodes_checked", gauge, "nodes", "verdict", "Nodes by the verdict of their last health check."},
        {"stoker_nodes_under_check", gauge, "nodes", "", "Health checks under way."},
        {"stoker_quota_held", gauge, "", "level, resource", "What is held against a quota, in GPUs or CPUs."},
        {"stoker_quota_waiting", gauge, "", "level, resource", "What runs that wait would hold against it."},
        {"stoker_quota_limit", gauge, "", "level, resource", "What may be held at most, where it has a limit."},
        {"stoker_budget_used_ratio", gauge, "", "level, unit", "Share of a budget that is used up this month."},
        {"stoker_budget_end_ratio", gauge, "", "level, unit",
         "Share that will be, if what runs goes on to its known end or that of the month."},
        {"stoker_idle_runs", gauge, "runs", "state",
         "Runs in which nothing moves: idle, told, kept or parked; where the configuration has rules for them."},
        {"stoker_gpu_agents", gauge, "agents", "state", "Agents of nodes that tell of their GPUs, or have stopped to."},
        {"stoker_gpu_nodes_unwell", gauge, "nodes", "",
         "Nodes of which an agent tells something that the policy for GPUs fails or warns of."},
        {"stoker_gpu_reports_total", counter, "reports", "outcome", "Reports of agents since the start."},
        {"stoker_fleet_gpus_answering", gauge, "GPUs", "", "Boards that answer, of the nodes whose agents tell."},
        {"stoker_fleet_gpus", gauge, "GPUs", "used_as", "The same by what they do: busy, stalled, allocated_idle."},
        {"stoker_endpoint_first_ready_seconds", gauge, "seconds", "endpoint, revision",
         "From the deployment that was accepted to the first replica of it that was ready; of the current revision."},
        {"stoker_endpoint_first_token_seconds", gauge, "seconds", "endpoint, revision",
         "And to the first token that it answered."},
        {"stoker_operations_open", gauge, "operations", "", "Effects intended and not answered for good."},
        {"stoker_operations_unknown", gauge, "operations", "", "Of these, those whose answer was lost."},
        {"stoker_recovering", gauge, "", "", "1 until everything outside was listed once."},
        {"stoker_epoch", gauge, "starts", "", "Starts of the server on this journal."},
        {"stoker_journal_records_total", counter, "records", "", "Records in the journal."},
        {"stoker_journal_bytes", gauge, "bytes", "", "Size of the journal."},
        {"stoker_commit_seconds", summary, "seconds", "quantile",
         "Time of a commit; the quantiles are of the last 1,024."},
        {"stoker_commands_total", counter, "commands", "", "Commands taken since the start."},
        {"stoker_commands_waiting", gauge, "commands", "", "Commands not yet taken."},
        {"stoker_effects_total", counter, "calls", "", "Driver calls since the start."},
        {"stoker_effects_waiting", gauge, "calls", "", "Driver calls that wait for a thread."},
        {"stoker_effects_running", gauge, "calls", "", "Driver calls under way."},
        {"stoker_driver_up", gauge, "", "", "1 when the engine answered the last look at what is there."},
        {"stoker_facts_total", counter, "facts", "", "Facts seen since the start."},
        {"stoker_clock_jump_seconds", gauge, "seconds", "", "How far the wall clock was moved since the start."},
        {"stoker_api_waiting", gauge, "requests", "", "Long polls."},
        {"stoker_api_streams", gauge, "streams", "", "Live streams of events."},
        {"stoker_log_dropped_total", counter, "lines", "", "Lines of the log that could not be written in time."},
        {"stoker_http_connections_total", counter, "connections", "", "Connections since the start."},
        {"stoker_http_connections", gauge, "connections", "", "Connections that are open."},
        {"stoker_http_requests_total", counter, "requests", "", "Requests since the start."},
        {"stoker_http_refused_total", counter, "requests", "", "Requests refused before anything looked at them."},
        {"stoker_http_streams", gauge, "streams", "", "Answers that are being streamed."},
        {"stoker_http_received_bytes_total", counter, "bytes", "", "Bytes received."},
        {"stoker_http_sent_bytes_total", counter, "bytes", "", "Bytes sent."},
        {"stoker_backup_last_timestamp_seconds", gauge, "seconds", "",
         "When the newest complete backup was begun, in seconds since 1970; 0: none since the start."},
        {"stoker_backup_last_bytes", gauge, "bytes", "", "Its size."},
        {"stoker_backup_made_total", counter, "backups", "", "Backups since the start."},
        {"stoker_backup_failed_total", counter, "backups", "", "Tries that failed since the start."},
        {"process_resident_memory_bytes", gauge, "bytes", "", "Resident memory."},
    });
}();

// The row of a metric. A name that is not in the table does not compile.
consteval std::size_t metric(std::string_view name) {
    for (std::size_t i = 0; i < kMetrics.size(); ++i)
        if (kMetrics[i].name == name) return i;
    throw "no metric has this name: declare it in kMetrics";
}

// What one answer of /metrics says. Values may come in any order; families are written in the order of the table, each
// once and whole.
class MetricsText {
public:
    void set(std::size_t which, double value) { add(which, "", {}, value); }
    void set(std::size_t which, std::string_view label, std::string_view value_of_label, double value) {
        add(which, "", {{label, value_of_label}}, value);
    }
    using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
    // ending: "_sum" and "_count" of a summary.
    void add(std::size_t which, std::string_view ending, const Labels& labels, double value);
    std::string text() const;

private:
    std::array<std::string, kMetrics.size()> lines_;
};

std::string metrics_reference();  // docs/reference/metrics.md

}  // namespace stoker::api
