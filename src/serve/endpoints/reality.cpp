#include "serve/endpoints/reality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

// How far a figure has to be from what it should be before it is told as a cause.
constexpr double kMuchLonger = 1.2;    // prompts and answers than planned
constexpr double kMuchMoreLoad = 1.1;  // requests a second than planned
constexpr double kManyMore = 1.5;      // at once than planned
constexpr double kQueueShare = 0.15;   // of the time to the first token spent in the queue
constexpr double kLeastQueueS = 0.02;
constexpr double kUnlike = 1.5;      // times the median of the others
constexpr double kUnlikeOverS = 10;  // a second in which another process ran says nothing of a replica
constexpr double kKvFull = 0.95;     // of the cache
constexpr double kBatchShare = 0.6;  // of the sequences that the plan counts on, while others wait
constexpr double kWaits = 0.5;       // requests waiting inside an engine, on average
constexpr double kNetworkShare = 0.15, kLeastNetworkS = 0.002;
constexpr double kBusy = 0.9, kOthersCores = 0.25;

std::string time_text(double s) {
    return s >= 1       ? fmt::format("{:.2f} s", s)
           : s >= 0.001 ? fmt::format("{:.3g} ms", s * 1e3)
                        : fmt::format("{:.3g} us", s * 1e6);
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

using Causes = std::vector<ServingCause>;

void cold_starts(const ServingEvidence& e, Causes& causes) {
    if (e.cold == 0) return;
    causes.push_back({.name = "cold-starts",
                      .what = fmt::format("{} of {} requests came while no replica was ready and waited for one",
                                          e.cold, e.requests),
                      .evidence = {fmt::format("they waited {} on average", time_text(e.cold_wait_mean_s)),
                                   fmt::format("without them 95 of 100 have their first token within {}",
                                               time_text(e.warm_ttft_p95_s))},
                      .fix = "keep one: stoker endpoints scale NAME --least 1",
                      .cost_s = e.cold_wait_mean_s * static_cast<double>(e.cold) /
                                static_cast<double>(std::max<std::int64_t>(1, e.requests))});
}

void queueing(const ServingEvidence& e, Causes& causes) {
    if (e.queue_p95_s < kLeastQueueS || e.queue_p95_s < kQueueShare * e.warm_ttft_p95_s) return;
    ServingCause cause{.name = "queueing",
                       .what = fmt::format("requests wait for a replica: {} of {}, 95 of 100 within {}", e.queued,
                                           e.requests, time_text(e.queue_p95_s)),
                       .evidence = {fmt::format("{:.3g} requests a second came, {:.3g} replicas were ready, {:.3g} "
                                                "requests at them at once",
                                                e.requests_per_s, e.ready_mean, e.in_flight_mean)},
                       .fix = "more of them: stoker endpoints scale NAME --most N",
                       .cost_s = e.queue_mean_s};
    if (e.promise.requests_per_s > 0 && e.requests_per_s > kMuchMoreLoad * e.promise.requests_per_s)
        cause.evidence.push_back(fmt::format("it was planned for {:.3g} requests a second", e.promise.requests_per_s));
    if (e.promise.replicas > 0 && e.ready_mean < 0.9 * e.promise.replicas)
        cause.evidence.push_back(
            fmt::format("it was planned with {} replica{}", e.promise.replicas, e.promise.replicas == 1 ? "" : "s"));
    causes.push_back(std::move(cause));
}

// That a replica is meant to compute at once; 0: not known.
double planned_at_once(const ServingEvidence& e) {
    const ServingPromise& promise = e.promise;
    if (promise.clients <= 0) return promise.max_sequences;
    const double each = promise.clients / std::max(1, promise.replicas);
    return promise.max_sequences > 0 ? std::min(promise.max_sequences, each) : each;
}

// It computes fewer at once than the plan counts on, though more wait inside it.
bool small_batch(const ServingEvidence& e) {
    const double planned = planned_at_once(e);
    return e.engine_waiting_mean > kWaits && planned > 0 && e.engine_running_mean >= 0 &&
           e.engine_running_mean < kBatchShare * planned && e.kv_share_most < kKvFull;
}

// As many as it computes at once are being computed, and more wait inside of it.
void queueing_inside(const ServingEvidence& e, Causes& causes) {
    if (e.engine_waiting_mean <= kWaits || e.engine_running_mean <= 0 || small_batch(e)) return;
    const double answer_s = e.tpot_p50_s * std::max(1.0, e.output_mean);
    causes.push_back(
        {.name = "queueing",
         .what = fmt::format("requests wait inside the replicas: {:.3g} at each, while {:.3g} are computed",
                             e.engine_waiting_mean, e.engine_running_mean),
         .evidence = {fmt::format("{:.3g} requests a second came, {:.3g} replicas were ready, {:.3g} "
                                  "requests were under way at once",
                                  e.requests_per_s, e.ready_mean, e.at_once_mean)},
         .fix = "more of them: stoker endpoints scale NAME --most N",
         .cost_s = e.engine_waiting_mean / e.engine_running_mean * answer_s});
}

void more_at_once(const ServingEvidence& e, Causes& causes) {
    if (e.promise.clients <= 0 || e.at_once_mean <= kManyMore * e.promise.clients) return;
    causes.push_back(
        {.name = "more-load",
         .what = fmt::format("{:.3g} requests are under way at once, planned were {:.3g}", e.at_once_mean,
                             e.promise.clients),
         .evidence = {fmt::format("{:.3g} come a second, {:.3g} replicas were ready", e.requests_per_s, e.ready_mean)},
         .fix = "plan for it: traffic.concurrency in the file, then stoker deploy again",
         .cost_s = std::max(0.0, e.ttft_p95_s - e.promise.ttft_p95_s.mid) / 2});
}

void more_load(const ServingEvidence& e, Causes& causes) {
    if (e.promise.requests_per_s <= 0 || e.requests_per_s <= kMuchMoreLoad * e.promise.requests_per_s) return;
    if (e.promise.most_requests_per_s > 0 && e.requests_per_s < e.promise.most_requests_per_s * 0.9) return;
    causes.push_back(
        {.name = "more-load",
         .what = fmt::format("{:.3g} requests a second come, planned were {:.3g}", e.requests_per_s,
                             e.promise.requests_per_s),
         .evidence = {fmt::format("its replicas sustain {:.3g} within the limits", e.promise.most_requests_per_s)},
         .fix = "plan for it: traffic.requests_per_second in the file, then stoker deploy again",
         .cost_s = std::max(0.0, e.ttft_p95_s - e.promise.ttft_p95_s.mid) / 2});
}

void longer(const ServingEvidence& e, Causes& causes) {
    const double planned = e.promise.prompt_tokens;
    if (planned > 0 && e.prompt_mean * (1 - e.cached_share) > kMuchLonger * planned)
        causes.push_back(
            {.name = "long-prompts",
             .what = fmt::format("prompts have {:.0f} tokens on average, planned were {:.0f}", e.prompt_mean, planned),
             .evidence = {fmt::format("95 of 100 have at most {:.0f}", e.prompt_p95),
                          fmt::format("{:.0f} % of them were in a cache", 100 * e.cached_share)},
             .fix = "plan for them: traffic.prompt_tokens in the file, then stoker deploy again",
             .cost_s = e.promise.ttft_p95_s.mid * (e.prompt_mean * (1 - e.cached_share) / planned - 1)});
    if (e.promise.output_tokens > 0 && e.output_mean > kMuchLonger * e.promise.output_tokens &&
        e.in_flight_mean > e.promise.clients * 1.1 && e.promise.clients > 0)
        causes.push_back({.name = "long-answers",
                          .what = fmt::format("answers have {:.0f} tokens on average, planned were {:.0f}",
                                              e.output_mean, e.promise.output_tokens),
                          .evidence = {fmt::format("{:.3g} requests are at the replicas at once", e.in_flight_mean)},
                          .fix = "plan for them: traffic.output_tokens in the file, then stoker deploy again",
                          .cost_s = e.tpot_p50_s});
}

void inside_engine(const ServingEvidence& e, Causes& causes) {
    if (e.kv_share_most >= kKvFull || e.preemptions > 0)
        causes.push_back(
            {.name = "kv-full",
             .what = e.preemptions > 0
                         ? fmt::format("the KV cache is full: {:.0f} sequences were thrown out and computed again",
                                       e.preemptions)
                         : fmt::format("the KV cache is full: {:.0f} %", 100 * e.kv_share_most),
             .evidence = {fmt::format("cache in use: {:.0f} % at most", 100 * std::max(0.0, e.kv_share_most)),
                          fmt::format("prompts of {:.0f} and answers of {:.0f} tokens; planned were {:.0f} and {:.0f}",
                                      e.prompt_mean, e.output_mean, e.promise.prompt_tokens, e.promise.output_tokens)},
             .fix = "fewer at once on a replica, or more replicas: stoker endpoints scale NAME --most N",
             .cost_s = std::max(e.tpot_p95_s - e.tpot_p50_s, 0.0) * std::max(1.0, e.output_mean)});
    if (small_batch(e))
        causes.push_back({.name = "batch-small",
                          .what = fmt::format("a replica computes {:.3g} sequences at once while {:.3g} wait inside it",
                                              e.engine_running_mean, e.engine_waiting_mean),
                          .evidence = {fmt::format("the plan counts on up to {:.0f}", planned_at_once(e))},
                          .fix = "let its server take more at once (--parallel of llama.cpp, --max-num-seqs of vLLM)",
                          .cost_s = e.engine_running_mean > 0
                                        ? e.engine_waiting_mean / e.engine_running_mean * e.tpot_p50_s * e.output_mean
                                        : e.ttft_p50_s});
}

void unlike(const ServingEvidence& e, Causes& causes) {
    for (const ReplicaEvidence& each : e.replicas) {
        std::vector<double> ttft, tpot;
        double failed = 0, asked = 0;
        for (const ReplicaEvidence& other : e.replicas) {
            if (&other == &each || other.requests < kLeastRequests) continue;
            ttft.push_back(other.ttft_p50_s);
            tpot.push_back(other.tpot_p50_s);
            failed += static_cast<double>(other.failed);
            asked += static_cast<double>(other.requests);
        }
        if (asked == 0 || each.requests < kLeastRequests) continue;
        const double own_failed = static_cast<double>(each.failed) / static_cast<double>(each.requests);
        const double ttft_of_others = median(ttft), tpot_of_others = median(tpot);
        const bool long_enough = e.window_s >= kUnlikeOverS;
        const bool slow_decode = long_enough && tpot_of_others > 0 && each.tpot_p50_s > kUnlike * tpot_of_others;
        const bool slow_first = long_enough && ttft_of_others > 0 && each.ttft_p50_s > kUnlike * ttft_of_others &&
                                each.ttft_p50_s - ttft_of_others > kLeastNetworkS;
        const bool fails = own_failed > 0.05 && own_failed > 3 * failed / asked;
        if (!slow_decode && !slow_first && !fails) continue;
        causes.push_back(
            {.name = "replica-unlike",
             .what = fmt::format("replica {} is unlike the others", each.name),
             .evidence = {fmt::format("first token {} after it was sent there, {} at the others",
                                      time_text(each.ttft_p50_s), time_text(ttft_of_others)),
                          fmt::format("{} a token, {} at the others", time_text(each.tpot_p50_s),
                                      time_text(tpot_of_others)),
                          fmt::format("{} of {} failed, {:.0f} of {:.0f} at the others", each.failed, each.requests,
                                      failed, asked)},
             .fix = "look at its run: stoker describe RUN, stoker logs RUN; cancelled, another one takes its place",
             .cost_s = std::max(0.0, each.ttft_p50_s - ttft_of_others) +
                       std::max(0.0, each.tpot_p50_s - tpot_of_others) * e.output_mean});
    }
}

void outside(const ServingEvidence& e, Causes& causes) {
    // A connection is one way there and back. Where something stands between that takes it at once, a question that is
    // no work for the server tells: a connection of its own, and the way again.
    const double way_s = std::max(e.connect_p50_s, e.answer_least_s / 2);
    if (way_s > kLeastNetworkS && way_s > kNetworkShare * e.ttft_p50_s && e.ttft_p50_s > 0)
        causes.push_back(
            {.name = "network",
             .what = fmt::format("the way to a replica and back takes {}", time_text(way_s)),
             .evidence = {fmt::format("a connection is open after {}, and its shortest answer is there {} "
                                      "after it was asked how it is",
                                      time_text(std::max(0.0, e.connect_p50_s)),
                                      time_text(std::max(0.0, e.answer_least_s))),
                          fmt::format("that is {:.0f} % of the time to the first token", 100 * way_s / e.ttft_p50_s)},
             .fix = "put the gateway beside its replicas",
             .cost_s = way_s});
    if (e.host_busy < kBusy || e.replicas_busy_cores < 0 || e.host_cores <= 0) return;
    const double others = e.host_busy * e.host_cores - e.replicas_busy_cores;
    if (others > kOthersCores * e.host_cores)
        causes.push_back(
            {.name = "cpu-taken",
             .what = fmt::format("the processors of this machine are {:.0f} % busy, {:.2g} of {:.0f} cores with other "
                                 "work than its replicas",
                                 100 * e.host_busy, others, e.host_cores),
             .evidence = {fmt::format("replicas use {:.2g} cores", e.replicas_busy_cores)},
             .fix = "see what else runs there (stoker top), or give the replicas cores of their own",
             .cost_s = std::max(0.0, e.ttft_p50_s * others / e.host_cores)});
    else if (e.promise.gpus > 0)
        causes.push_back({.name = "cpu-bound",
                          .what = fmt::format("the replicas keep {:.2g} of {:.0f} cores busy, and their GPUs wait",
                                              e.replicas_busy_cores, e.host_cores),
                          .evidence = {fmt::format("processors {:.0f} % busy", 100 * e.host_busy)},
                          .fix = "more cores a GPU, or fewer replicas a machine",
                          .cost_s = std::max(0.0, e.ttft_p50_s - e.promise.ttft_p95_s.mid)});
}

bool slower(const ServingEvidence& e) {
    const auto figures = held_against_plan(e);
    return std::any_of(figures.begin(), figures.end(), [](const HeldFigure& figure) { return figure.worse; });
}

// Planned for a rate of requests, the tokens are what is asked for and not what the machines can do: so many requests
// of so unequal lengths give about so many, and outside of that is the first news.
PromisedRange tokens_promised(const ServingEvidence& e) {
    PromisedRange tokens = e.promise.tokens_per_s;
    if (e.promise.requests_per_s <= 0 || e.requests <= 0) return tokens;
    constexpr double kEighty = 1.28, kLeast = 0.1;  // of a normal distribution; of the middle
    constexpr double kArrivals = 1, kLengths = 1;   // variance over the square of the mean, of both
    const double chance = kEighty * std::sqrt((kArrivals + kLengths) / static_cast<double>(e.requests));
    tokens.low = std::min(tokens.low, tokens.mid * std::max(kLeast, 1 - chance));
    tokens.high = std::max(tokens.high, tokens.mid * (1 + chance));
    return tokens;
}

}  // namespace

std::vector<HeldFigure> held_against_plan(const ServingEvidence& e) {
    std::vector<HeldFigure> out;
    const auto add = [&](std::string name, std::string unit, PromisedRange promised, double measured,
                         bool less_is_good) {
        if (promised.mid <= 0 || measured <= 0) return;
        promised.low = std::min(promised.low, promised.mid);
        promised.high = std::max(promised.high, promised.mid);
        const bool above = measured > promised.high, below = promised.low > 0 && measured < promised.low;
        out.push_back({.name = std::move(name),
                       .unit = std::move(unit),
                       .promised = promised,
                       .measured = measured,
                       .worse = less_is_good ? above : below,
                       .better = less_is_good ? below : above});
    };
    if (e.timed >= kLeastRequests) add("ttft p95", "s", e.promise.ttft_p95_s, e.ttft_p95_s, true);
    if (e.timed >= kLeastRequests) add("tpot p95", "s", e.promise.tpot_p95_s, e.tpot_p95_s, true);
    const PromisedRange tokens = tokens_promised(e);
    // Tokens a second follow from what is asked: less of it is no fault of the endpoint.
    const bool as_asked = e.promise.requests_per_s <= 0 || e.requests_per_s >= 0.9 * e.promise.requests_per_s;
    if (as_asked && e.requests >= kLeastRequests) add("output tokens", "/s", tokens, e.tokens_per_s, false);
    if (e.promise.usd_per_hour > 0 && e.promise.replicas > 0 && e.tokens_per_s > 0 && tokens.mid > 0) {
        const auto usd = [](double hourly, double per_s) { return per_s > 0 ? hourly / 3600 / per_s * 1e6 : 0; };
        const double hourly = e.promise.usd_per_hour * e.ready_mean / e.promise.replicas;
        add("USD per M tokens", "",
            {usd(e.promise.usd_per_hour, tokens.high), usd(e.promise.usd_per_hour, tokens.mid),
             usd(e.promise.usd_per_hour, tokens.low)},
            usd(hourly, e.tokens_per_s), true);
    }
    return out;
}

std::vector<ServingCause> serving_causes(const ServingEvidence& e, std::string_view endpoint) {
    Causes causes;
    if (e.requests < kLeastRequests) return causes;
    // One replica unlike the others is told even while the plan is still met: the others carry it.
    unlike(e, causes);
    if (e.failed * 20 > e.requests || slower(e)) {
        cold_starts(e, causes);
        queueing(e, causes);
        queueing_inside(e, causes);
        more_load(e, causes);
        more_at_once(e, causes);
        longer(e, causes);
        inside_engine(e, causes);
        outside(e, causes);
    }
    std::stable_sort(causes.begin(), causes.end(),
                     [](const ServingCause& a, const ServingCause& b) { return a.cost_s > b.cost_s; });
    constexpr std::string_view kName = "NAME";
    for (ServingCause& cause : causes)
        if (const std::size_t at = cause.fix.find(kName); at != std::string::npos)
            cause.fix.replace(at, kName.size(), endpoint);
    return causes;
}

}  // namespace stoker
