// An endpoint held against its plan: what was promised, what was seen over the last minutes, and why it is slower.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct PromisedRange {  // an 80 % interval; mid 0: nothing was promised
    double low = 0, mid = 0, high = 0;
};
struct ServingPromise {
    PromisedRange ttft_p95_s, tpot_p95_s, tokens_per_s;
    double requests_per_s = 0;       // that it was planned for; 0: a number of clients
    double most_requests_per_s = 0;  // that all replicas sustain
    double clients = 0;              // at once
    int replicas = 0;
    double prompt_tokens = 0, output_tokens = 0;  // of a request, on average
    double max_sequences = 0;                     // of a replica at once
    double usd_per_hour = 0;                      // of all replicas; 0: no price is known
    double gpus = 0;                              // of one replica
    std::string machine;
};

struct ReplicaEvidence {
    std::string name;
    std::int64_t requests = 0, failed = 0;
    double ttft_p50_s = 0, tpot_p50_s = 0;  // ttft: since it was sent there
};
struct ServingEvidence {
    double window_s = 0;
    std::int64_t requests = 0, failed = 0;
    double ttft_p50_s = 0, ttft_p95_s = 0, tpot_p50_s = 0, tpot_p95_s = 0;
    double warm_ttft_p95_s = 0;                // of those that no start was waited for
    std::int64_t timed = 0;                    // with a time to the first token
    double queue_p95_s = 0, queue_mean_s = 0;  // of those that no start was waited for
    std::int64_t queued = 0, cold = 0;         // held at all; while no replica was ready
    double cold_wait_mean_s = 0;
    double prompt_mean = 0, prompt_p95 = 0, output_mean = 0, cached_share = 0;
    double requests_per_s = 0, tokens_per_s = 0;
    double ready_mean = 0, in_flight_mean = 0;  // replicas; requests at the replicas
    double at_once_mean = 0;                    // requests from their arrival to their end
    // What the engines say of themselves, of one replica on average; negative: they do not.
    double engine_running_mean = -1, engine_waiting_mean = -1, kv_share_most = -1, preemptions = -1;
    double connect_p50_s = -1;   // to open a connection to a replica
    double answer_least_s = -1;  // from then until it had said that it is well, at the least
    double host_busy = -1,
           replicas_busy_cores = -1;  // of this machine: share of all its cores; cores that replicas use
    double host_cores = 0;
    std::vector<ReplicaEvidence> replicas;
    ServingPromise promise;
};

template <class V>
void fields(V& visit, PromisedRange& range) {
    visit("high", range.high);
    visit("low", range.low);
    visit("mid", range.mid);
}
template <class V>
void fields(V& visit, ServingPromise& promise) {
    visit("clients", promise.clients);
    visit("gpus", promise.gpus);
    visit("machine", promise.machine);
    visit("max_sequences", promise.max_sequences);
    visit("most_requests_per_s", promise.most_requests_per_s);
    visit("output_tokens", promise.output_tokens);
    visit("prompt_tokens", promise.prompt_tokens);
    visit("replicas", promise.replicas);
    visit("requests_per_s", promise.requests_per_s);
    visit("tokens_per_s", promise.tokens_per_s);
    visit("tpot_p95_s", promise.tpot_p95_s);
    visit("ttft_p95_s", promise.ttft_p95_s);
    visit("usd_per_hour", promise.usd_per_hour);
}
template <class V>
void fields(V& visit, ReplicaEvidence& replica) {
    visit("failed", replica.failed);
    visit("name", replica.name);
    visit("requests", replica.requests);
    visit("tpot_p50_s", replica.tpot_p50_s);
    visit("ttft_p50_s", replica.ttft_p50_s);
}
template <class V>
void fields(V& visit, ServingEvidence& e) {
    visit("answer_least_s", e.answer_least_s);
    visit("at_once_mean", e.at_once_mean);
    visit("cached_share", e.cached_share);
    visit("cold", e.cold);
    visit("cold_wait_mean_s", e.cold_wait_mean_s);
    visit("connect_p50_s", e.connect_p50_s);
    visit("engine_running_mean", e.engine_running_mean);
    visit("engine_waiting_mean", e.engine_waiting_mean);
    visit("failed", e.failed);
    visit("host_busy", e.host_busy);
    visit("host_cores", e.host_cores);
    visit("in_flight_mean", e.in_flight_mean);
    visit("kv_share_most", e.kv_share_most);
    visit("output_mean", e.output_mean);
    visit("preemptions", e.preemptions);
    visit("promise", e.promise);
    visit("prompt_mean", e.prompt_mean);
    visit("prompt_p95", e.prompt_p95);
    visit("queue_mean_s", e.queue_mean_s);
    visit("queue_p95_s", e.queue_p95_s);
    visit("queued", e.queued);
    visit("ready_mean", e.ready_mean);
    visit("replicas", e.replicas);
    visit("replicas_busy_cores", e.replicas_busy_cores);
    visit("requests", e.requests);
    visit("requests_per_s", e.requests_per_s);
    visit("timed", e.timed);
    visit("tokens_per_s", e.tokens_per_s);
    visit("tpot_p50_s", e.tpot_p50_s);
    visit("tpot_p95_s", e.tpot_p95_s);
    visit("ttft_p50_s", e.ttft_p50_s);
    visit("ttft_p95_s", e.ttft_p95_s);
    visit("warm_ttft_p95_s", e.warm_ttft_p95_s);
    visit("window_s", e.window_s);
}

struct HeldFigure {
    std::string name, unit;
    PromisedRange promised;
    double measured = 0;
    bool worse = false, better = false;  // outside of the interval, on which side
};
std::vector<HeldFigure> held_against_plan(const ServingEvidence& evidence);

// Why; the dearest first. Nothing: as planned, or nothing that was measured says why.
struct ServingCause {
    std::string name;  // stable: "queueing", "long-prompts", ...
    std::string what;
    std::vector<std::string> evidence;
    std::string fix;
    double cost_s = 0;  // of a request, about
};
// `endpoint`: what their fixes call it.
std::vector<ServingCause> serving_causes(const ServingEvidence& evidence, std::string_view endpoint = "NAME");

// Below it a figure says little, and no cause is told.
inline constexpr std::int64_t kLeastRequests = 10;

}  // namespace stoker
