// What is told of an endpoint: its replicas, and what was seen of its requests over the last minutes.
#include <algorithm>
#include <cmath>

#include "base/enum_words.h"
#include "serve/endpoints/keeper.h"

namespace stoker {
namespace {

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

ServingEvidence EndpointKeeper::evidence(double now_s) const {
    ServingEvidence e;
    if (const EndpointRevision* revision = endpoint_.find(serving_)) e.promise = revision->promise;
    std::vector<RequestSample> samples = board_->samples(now_s - kWindowS);
    // What another revision answered says nothing of this one.
    std::erase_if(samples, [&](const RequestSample& sample) { return sample.revision != serving_; });
    std::vector<double> ttft, warm, tpot, queue, cold_waits, prompts, outputs;
    double cached = 0, first_s = now_s, last_s = 0, arrived_s = now_s, under_way_s = 0;
    std::map<std::string, ReplicaEvidence> by_name;
    std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> speeds;
    for (const RequestSample& sample : samples) {
        ++e.requests;
        e.failed += sample.failed ? 1 : 0;
        ReplicaEvidence& own = by_name[sample.replica_name];
        own.name = sample.replica_name;
        ++own.requests;
        own.failed += sample.failed ? 1 : 0;
        first_s = std::min(first_s, sample.at_s);
        last_s = std::max(last_s, sample.at_s);
        constexpr double kHeldS = 0.001;
        if (sample.cold)
            ++e.cold, cold_waits.push_back(sample.queue_s);
        else
            queue.push_back(sample.queue_s), e.queued += sample.queue_s > kHeldS ? 1 : 0;
        if (sample.failed) continue;
        prompts.push_back(sample.prompt_tokens);
        outputs.push_back(sample.output_tokens);
        cached += sample.cached_tokens;
        if (sample.ttft_s <= 0) continue;
        ttft.push_back(sample.ttft_s);
        if (!sample.cold) warm.push_back(sample.ttft_s);
        const double took_s = sample.ttft_s + sample.tpot_s * std::max(0.0, sample.output_tokens - 1);
        under_way_s += took_s;
        arrived_s = std::min(arrived_s, sample.at_s - took_s);
        speeds[sample.replica_name].first.push_back(sample.upstream_ttft_s);
        if (sample.tpot_s <= 0) continue;
        tpot.push_back(sample.tpot_s);
        speeds[sample.replica_name].second.push_back(sample.tpot_s);
    }
    e.timed = static_cast<std::int64_t>(ttft.size());
    e.ttft_p50_s = quantile(ttft, 0.5), e.ttft_p95_s = quantile(ttft, 0.95);
    e.warm_ttft_p95_s = quantile(warm, 0.95);
    e.tpot_p50_s = quantile(tpot, 0.5), e.tpot_p95_s = quantile(tpot, 0.95);
    e.queue_p95_s = quantile(queue, 0.95), e.queue_mean_s = mean(queue), e.cold_wait_mean_s = mean(cold_waits);
    e.prompt_mean = mean(prompts), e.prompt_p95 = quantile(prompts, 0.95), e.output_mean = mean(outputs);
    const double prompt_sum = e.prompt_mean * static_cast<double>(prompts.size());
    e.cached_share = prompt_sum > 0 ? cached / prompt_sum : 0;
    for (auto& [name, replica] : by_name) {
        replica.ttft_p50_s = quantile(speeds[name].first, 0.5);
        replica.tpot_p50_s = quantile(speeds[name].second, 0.5);
        e.replicas.push_back(replica);
    }
    // Rates are of the time in which requests ended, not of the quiet before and after.
    e.window_s = samples.empty() ? 0 : std::max(1.0, last_s - first_s);
    if (under_way_s > 0) e.at_once_mean = under_way_s / std::max(0.001, last_s - arrived_s);
    if (e.window_s > 0) {
        e.requests_per_s = static_cast<double>(e.requests) / e.window_s;
        e.tokens_per_s = e.output_mean * static_cast<double>(outputs.size()) / e.window_s;
    }
    std::vector<double> ready, in_flight, running, waiting, connects, busy, cores;
    for (const Seen& seen : seen_) {
        if (e.requests > 0 && (seen.at_s < first_s - 1 || seen.at_s > last_s + 1)) continue;
        ready.push_back(seen.ready);
        in_flight.push_back(seen.in_flight);
        if (seen.running >= 0) running.push_back(seen.running);
        if (seen.waiting >= 0) waiting.push_back(seen.waiting);
        e.kv_share_most = std::max(e.kv_share_most, seen.kv_share);
        if (seen.tells_preemptions) e.preemptions = std::max(0.0, e.preemptions) + seen.preemptions;
        if (seen.connect_s >= 0) connects.push_back(seen.connect_s);
        // The shortest: what is longer may be work and not the way.
        if (seen.answer_s >= 0)
            e.answer_least_s = e.answer_least_s < 0 ? seen.answer_s : std::min(e.answer_least_s, seen.answer_s);
        if (seen.host_busy >= 0) busy.push_back(seen.host_busy);
        if (seen.replicas_cores >= 0) cores.push_back(seen.replicas_cores);
    }
    e.ready_mean = mean(ready), e.in_flight_mean = mean(in_flight);
    if (!running.empty()) e.engine_running_mean = mean(running);
    if (!waiting.empty()) e.engine_waiting_mean = mean(waiting);
    if (!connects.empty()) e.connect_p50_s = quantile(connects, 0.5);
    if (!busy.empty()) e.host_busy = mean(busy);
    if (!cores.empty()) e.replicas_busy_cores = mean(cores);
    e.host_cores = processors_cores_;
    return e;
}

EndpointStatus EndpointKeeper::status(double now_s) const {
    const ReplicaBoard::Reading reading = board_->read(now_s, {});
    EndpointStatus out{.name = endpoint_.name,
                       .cause = std::string(enum_word(last_decision_.cause)),
                       .last_failure = trouble_.empty() ? last_failure_ : trouble_,
                       .level = level_,
                       .revision = serving_,
                       .queued = reading.queued,
                       .starts = starts_,
                       .failures = failures_,
                       .requests = static_cast<std::int64_t>(reading.requests),
                       .failed = static_cast<std::int64_t>(reading.failed),
                       .cold_start_s = cold_start_.expected_s(),
                       .evidence = evidence(now_s)};
    int starting = 0;
    for (const auto& each : replicas_) {
        const char* state = each->draining                        ? "draining"
                            : each->phase == ReplicaPhase::queued ? "queued"
                            : !each->ready                        ? "starting"
                            : each->failing || each->ejected      ? "ejected"
                            : weight_of(*each, now_s) < 1         ? "slow_start"
                                                                  : "ready";
        out.ready += each->ready && !each->draining && !each->failing ? 1 : 0;
        starting += !each->ready && !each->draining ? 1 : 0;
        out.replicas.push_back({.name = each->name,
                                .run = each->run,
                                .url = each->url,
                                .state = state,
                                .why = each->why,
                                .revision = each->revision,
                                .in_flight = each->load->outstanding,
                                .taken = static_cast<std::int64_t>(each->load->taken),
                                .age_s = now_s - each->asked_s,
                                .start_s = each->start_s,
                                .weight = weight_of(*each, now_s)});
    }
    out.state = endpoint_.stopped              ? (replicas_.empty() ? "stopped" : "stopping")
                : out.ready > 0                ? "serving"
                : failures_ > 0 && deaths_ > 1 ? "failing"
                : starting > 0                 ? "starting"
                : !listed_                     ? "unknown"
                : level_ == 0                  ? "idle"
                                               : "starting";
    return out;
}

}  // namespace stoker
