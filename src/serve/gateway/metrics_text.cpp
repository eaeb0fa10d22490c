#include "serve/gateway/metrics_text.h"

#include <fmt/format.h>

#include "serve/gateway/loop.h"

namespace stoker::gateway {

std::string metrics_text(const Shared& shared) {
    std::string out;
    const auto put = [&](const char* name, const char* type, const char* help, auto value) {
        out += fmt::format("# HELP stoker_gateway_{} {}\n# TYPE stoker_gateway_{} {}\nstoker_gateway_{} {}\n", name,
                           help, name, type, name, value);
    };
    const Counters& c = shared.counters;
    put("connections_total", "counter", "Connections of clients.", c.connections.load());
    put("http2_connections_total", "counter", "Connections of clients that speak HTTP/2.", c.http2_connections.load());
    put("http2_calmed_total", "counter", "Connections of HTTP/2 that were ended since they asked too much.",
        c.http2_calmed.load());
    put("requests_total", "counter", "Requests that were read whole.", c.requests.load());
    put("refused_total", "counter", "Requests that key or limits refused.", c.refused.load());
    put("failed_total", "counter", "Requests that failed here or upstream.", c.failed.load());
    put("retries_total", "counter", "Requests that went to another replica.", c.retries.load());
    put("hedges_total", "counter", "Requests that went to a second replica beside the first.", c.hedges.load());
    put("hedges_won_total", "counter", "Requests that the second replica answered first.", c.hedges_won.load());
    put("cancels_total", "counter", "Requests whose client left.", c.cancels.load());
    put("slow_consumer_closes_total", "counter", "Clients that did not read.", c.slow_consumers.load());
    put("settled_tokens_in_total", "counter", "Prompt tokens charged.", c.tokens_in.load());
    put("settled_tokens_out_total", "counter", "Generated tokens charged.", c.tokens_out.load());
    put("charged_usd_total", "counter", "Charged, in dollars.", static_cast<double>(c.picousd.load()) / 1e12);
    put("token_drift_total", "counter", "Answers whose usage is far from what was counted.", c.drift.load());
    put("counted_total", "counter", "Answers without usage, charged by count.", c.counted.load());
    put("unaccounted_total", "counter", "Requests whose end could not be written to the ledger.", c.unaccounted.load());
    put("open_connections", "gauge", "Connections of clients now.", c.open_sessions.load());
    put("held_streams", "gauge", "Streams now.", c.streams.load());
    put("requests_under_way", "gauge", "Requests now.", c.under_way.load());
    put("held_requests", "gauge", "Requests that wait for a replica now.", c.held.load());
    if (shared.ledger) {
        const Ledger::Stats stats = shared.ledger->stats();
        put("ledger_records_total", "counter", "Records of the ledger, of this process.", stats.records);
        put("ledger_commits_total", "counter", "Commits of the ledger.", stats.commits);
        put("ledger_commit_seconds_total", "counter", "Spent in commits.", static_cast<double>(stats.commit_us) / 1e6);
        put("ledger_open_reservations", "gauge", "Requests reserved and not settled.", stats.open);
        put("ledger_failed", "gauge", "1: no request can be accounted for.", shared.ledger->failed() ? 1 : 0);
    }
    if (shared.traces) {
        const TraceExporter::Figures figures = shared.traces->figures();
        put("spans_sent_total", "counter", "Spans that the collector took.", figures.sent);
        put("spans_dropped_total", "counter", "Spans that the collector did not take in time.", figures.dropped);
        put("span_calls_failed_total", "counter", "Calls to the collector that failed.", figures.failures);
    }
    if (shared.access)
        put("access_lines_dropped_total", "counter", "Lines of the access log that its disk did not take in time.",
            shared.access->dropped());
    if (shared.share) {
        const LimitShare::Figures figures = shared.share->figures();
        put("limit_asks_total", "counter", "Requests that waited for the gateway that counts limits.", figures.asked);
        put("limit_messages_total", "counter", "Messages to the gateway that counts limits.", figures.messages);
        put("limit_unanswered_total", "counter", "Requests refused since the gateway that counts limits was away.",
            figures.unanswered);
        if (shared.share->home())
            put("limit_gateways", "gauge", "Other gateways whose limits are counted here.", figures.gateways);
        else
            put("limit_home_reached", "gauge", "0: the gateway that counts limits did not answer last time.",
                figures.reached ? 1 : 0);
    }
    return out + shared.figures.text();
}

}  // namespace stoker::gateway
