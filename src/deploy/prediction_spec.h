// PredictionSpec: what the planner says of work that is about to run, in the form that travels with it: the Deployment
// carries it, the RunSpec keeps it, and the run is held against it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker {

// What the planner said about this run before it started; what it is held against afterwards. 0: not predicted.
struct PredictedTerm {
    std::string id;  // of the term (sizing/terms.h), under the key "name": "matmul", "gradient comm"
    double seconds = 0;
    friend bool operator==(const PredictedTerm&, const PredictedTerm&) = default;
};
// What the constants said before anything that runs taught was put in, and where a measurement of this run may teach
// something: machine_key() of doctor/this_machine.h.
struct PublishedSpec {
    std::string place;
    double compute_s = 0, other_s = 0, exchange_s = 0, memory_bytes = 0;
    std::int64_t calibrated_on = 0;  // runs; 0: nothing was put in
    // Of memory_bytes what a step allocates and frees, and the case among others. Left out where not known, as in older
    // specs.
    std::optional<double> transient_bytes, hidden, layers, sequence, tokens;
    std::optional<std::string> kind;  // of the network
    friend bool operator==(const PublishedSpec&, const PublishedSpec&) = default;
};
// An 80 % interval.
struct PredictedRange {
    double low = 0, mid = 0, high = 0;
    friend bool operator==(const PredictedRange&, const PredictedRange&) = default;
};
// Of work that answers requests; 0: not predicted.
struct PredictedServing {
    PredictedRange ttft_s, tpot_s;  // first token, and each further one, of 95 of 100 requests
    PredictedRange tokens_per_s;  // generated (or requests, of a model that generates none), by all replicas together:
                                  // as asked of a service, as reached on a pile
    double requests_per_s = 0;    // that are asked for
    double most_requests_per_s = 0;  // that all replicas sustain within the limits
    int replicas = 0;
    friend bool operator==(const PredictedServing&, const PredictedServing&) = default;
};
struct PredictionSpec {
    std::string machine;  // node type
    int nodes = 0;
    std::string layout;                                  // in words
    double step_s = 0, step_low_s = 0, step_high_s = 0;  // 80 % interval
    std::vector<PredictedTerm> step_terms;               // add up to step_s
    double tokens_per_step = 0, flops_per_step = 0;      // of the whole gang
    double steps = 0;
    double run_s = 0, run_low_s = 0, run_high_s = 0;
    std::int64_t memory_bytes = 0;  // of one rank: device memory, or of the host where there is no device
    std::int64_t memory_low_bytes = 0, memory_high_bytes = 0;
    double mfu = 0;
    std::string bottleneck;
    std::int64_t cost_microusd = 0;
    std::string catalogue;  // version
    // How it is meant to compute. Left out of the canonical text where it is not known, as in older specs.
    std::optional<int> precision_bits;
    std::optional<bool> recompute, compiled;
    std::optional<double> samples_per_step;  // of the whole gang: sequences, images
    std::optional<PublishedSpec> published;
    std::optional<PredictedServing> serving;
    std::optional<PredictedRange> cost_usd;  // of a cloud's price list, with its interval
    friend bool operator==(const PredictionSpec&, const PredictionSpec&) = default;
};

template <class V>
void fields(V& visit, PredictedTerm& term) {
    visit("name", term.id);
    visit("seconds", term.seconds);
}
template <class V>
void fields(V& visit, PublishedSpec& spec) {
    visit("calibrated_on", spec.calibrated_on);
    visit("compute_s", spec.compute_s);
    visit("exchange_s", spec.exchange_s);
    visit("hidden", spec.hidden);
    visit("kind", spec.kind);
    visit("layers", spec.layers);
    visit("memory_bytes", spec.memory_bytes);
    visit("other_s", spec.other_s);
    visit("place", spec.place);
    visit("sequence", spec.sequence);
    visit("tokens", spec.tokens);
    visit("transient_bytes", spec.transient_bytes);
}
template <class V>
void fields(V& visit, PredictedRange& range) {
    visit("high", range.high);
    visit("low", range.low);
    visit("mid", range.mid);
}
template <class V>
void fields(V& visit, PredictedServing& serving) {
    visit("most_requests_per_s", serving.most_requests_per_s);
    visit("replicas", serving.replicas);
    visit("requests_per_s", serving.requests_per_s);
    visit("tokens_per_s", serving.tokens_per_s);
    visit("tpot_s", serving.tpot_s);
    visit("ttft_s", serving.ttft_s);
}
template <class V>
void fields(V& visit, PredictionSpec& spec) {
    visit("bottleneck", spec.bottleneck);
    visit("catalogue", spec.catalogue);
    visit("compiled", spec.compiled);
    visit("cost_microusd", spec.cost_microusd);
    visit("cost_usd", spec.cost_usd);
    visit("flops_per_step", spec.flops_per_step);
    visit("layout", spec.layout);
    visit("machine", spec.machine);
    visit("memory_bytes", spec.memory_bytes);
    visit("memory_high_bytes", spec.memory_high_bytes);
    visit("memory_low_bytes", spec.memory_low_bytes);
    visit("mfu", spec.mfu);
    visit("nodes", spec.nodes);
    visit("precision_bits", spec.precision_bits);
    visit("published", spec.published);
    visit("recompute", spec.recompute);
    visit("run_high_s", spec.run_high_s);
    visit("run_low_s", spec.run_low_s);
    visit("run_s", spec.run_s);
    visit("samples_per_step", spec.samples_per_step);
    visit("serving", spec.serving);
    visit("step_high_s", spec.step_high_s);
    visit("step_low_s", spec.step_low_s);
    visit("step_s", spec.step_s);
    visit("step_terms", spec.step_terms);
    visit("steps", spec.steps);
    visit("tokens_per_step", spec.tokens_per_step);
}

}  // namespace stoker
