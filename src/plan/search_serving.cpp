#include "plan/search_serving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/parallel.h"
#include "plan/replicas.h"
#include "plan/roles.h"
#include "plan/search_training.h"

namespace stoker {
namespace {

// What the simulation said of a device and shape.
struct Simulated {
    double sustained = 0;  // requests/s within the latency objective
    int carrying = 0;      // replicas of one model that the traffic needs
    double load = 0;       // requests/s on each of those
    ServingOutcome outcome;
    Range ttft_p95, tpot_p95;
    bool done = false;
};

class ServingSearch {
public:
    ServingSearch(const Context& context, const ServingSearchOptions& options) : context_(context), options_(options) {}
    Result<Search> run();

private:
    const NodeChoice& choice(const Replica& r) const { return context_.choices[static_cast<std::size_t>(r.choice)]; }
    void refuse(const Replica& r, Reason reason, double have, double need, std::string text, std::int64_t count = 1);
    Status collect();
    bool admit(Replica& replica);
    void simulate(const std::vector<Replica>& list, std::size_t limit);
    void simulate_one(const Replica& r, Simulated& out) const;
    ReplicaFleet fleet_of(const Replica& r, int carrying) const;
    void set_bound(Replica& r) const;
    Point point_of(const Replica& r, const Simulated& s) const;
    void set_preferences();

    const Context& context_;
    ServingSearchOptions options_;
    double rate_ = 1, models_ = 1;
    bool survive_loss_ = true;
    std::vector<std::unique_ptr<ServingSetup>> setups_;
    std::vector<std::tuple<int, double, int, int, double, int, int>> keys_;
    std::vector<Replica> gpus_, cpus_;
    std::map<int, Simulated> simulated_;
    Search search_;
};

void ServingSearch::refuse(const Replica& r, Reason reason, double have, double need, std::string text,
                           std::int64_t count) {
    search_.refused += count;
    search_.rejected.add({.node_type = choice(r).type,
                          .reason = reason,
                          .have = have,
                          .need = need,
                          .text = std::move(text),
                          .count = count});
}

ReplicaFleet ServingSearch::fleet_of(const Replica& r, int carrying) const {
    return place_fleet(choice(r), r.shape, carrying, static_cast<int>(models_), survive_loss_);
}

// The simulated engine may do a little better than the closed form, so the bound leaves a quarter.
void ServingSearch::set_bound(Replica& r) const {
    const int least = std::max(1, static_cast<int>(std::ceil(rate_ / models_ / (r.most_rate * 1.25))));
    r.bound_usd = fleet_of(r, least).nodes * choice(r).cheapest();
}

// Closed forms first: memory, then the latency of a lone request, then the throughput without any limit.
bool ServingSearch::admit(Replica& r) {
    ++search_.considered;
    const NodeChoice& one = choice(r);
    r.memory = serving_memory(*r.setup, r.shape);
    predict_idle(r);
    const LatencySpec& latency = context_.workload.objective.latency;
    if (r.memory.refused != Reason::none) {
        std::string text = refusal_text(r.memory.refused, r.memory.have, r.memory.need);
        if (r.memory.refused == Reason::precision_unsupported)
            text =
                fmt::format("{} has no units for {}", one.accelerator != nullptr ? one.accelerator->name : "this CPU",
                            to_string(context_.workload.precision));
        if (r.cpu)
            text = fmt::format("weights of {} and {} of RAM; {}", format_bytes_gib(Bytes(r.setup->weight_bytes)),
                               format_bytes_gib(one.node->memory), predicted_text(r));
        return refuse(r, r.memory.refused, r.memory.have, r.memory.need, text), false;
    }
    if (r.cpu && r.setup->weight_bytes > context_.settings.comfortable_ram * one.node->memory.v)
        return refuse(r, Reason::memory, context_.settings.comfortable_ram * one.node->memory.v, r.setup->weight_bytes,
                      fmt::format("weights of {} do not fit comfortably in {} of RAM; {}",
                                  format_bytes_gib(Bytes(r.setup->weight_bytes)), format_bytes_gib(one.node->memory),
                                  predicted_text(r))),
               false;
    const double ttft = ttft_limit(latency), tpot = tpot_limit(latency);
    if (r.idle_ttft > ttft || r.idle_tpot > tpot) {
        const bool first = r.idle_ttft > ttft;
        return refuse(r, r.cpu ? Reason::cpu_too_slow : Reason::latency, first ? ttft : tpot,
                      first ? r.idle_ttft : r.idle_tpot,
                      fmt::format(
                          "{}{} for a lone request, {} allowed{}", first ? "answer starts after " : "",
                          first ? format_seconds(Seconds(r.idle_ttft)) : predicted_text(r),
                          format_seconds(Seconds(first ? ttft : tpot)),
                          r.cpu ? fmt::format("; weights of {}", format_bytes_gib(Bytes(r.setup->weight_bytes))) : "")),
               false;
    }
    if (r.setup->decoder) {
        r.most_rate = offline_throughput(*r.setup, r.shape).requests_per_s;
    } else {
        double batch = 1, wait = 0;
        r.most_rate = batched_rate(*r.setup, kInfinity, r.memory.max_batch > 0 ? r.memory.max_batch : 256,
                                   context_.settings.busy_limit, batch, wait);
    }
    if (!(r.most_rate > 0)) return refuse(r, Reason::throughput, 0, rate_, "cannot serve a request at all"), false;
    set_bound(r);
    return true;
}

Status ServingSearch::collect() {
    std::optional<Error> first;
    for (std::size_t i = 0; i < context_.choices.size(); ++i) {
        const NodeChoice& one = context_.choices[i];
        const bool cpu = one.accelerator == nullptr;
        auto made = make_serving_setup(context_.workload, context_.catalog, make_device(context_.catalog, one.type));
        if (!made) {
            if (!first) first = std::move(made).error();
            continue;
        }
        setups_.push_back(std::make_unique<ServingSetup>(std::move(made).value()));
        for (ReplicaShape shape : replica_shapes(context_, one, *setups_.back())) {
            Replica r{.choice = static_cast<int>(i), .setup = setups_.back().get(), .shape = shape, .cpu = cpu};
            if (!admit(r)) continue;
            const NodeType& node = *one.node;
            const auto key =
                std::tuple(node.accelerator, node.accelerator_memory.v, shape.tensor, shape.pipeline,
                           cpu                          ? one.node->vcpus + one.node->memory.v
                           : one.node->accelerators < 1 ? one.node->accelerators
                                                        : 1.0,
                           cpu ? node.cpu : node.link_inside, shape.gpus() > one.devices() ? node.link_across : -1);
            auto known = std::find(keys_.begin(), keys_.end(), key);
            r.key = static_cast<int>(known - keys_.begin());
            if (known == keys_.end()) keys_.push_back(key);
            (cpu ? cpus_ : gpus_).push_back(r);
        }
    }
    if (setups_.empty() && first) return std::move(*first);
    return done();
}

void ServingSearch::simulate_one(const Replica& r, Simulated& out) const {
    const ServingSetup& setup = *r.setup;
    const LatencySpec& latency = context_.workload.objective.latency;
    const double per_model = rate_ / models_;
    const double spread = std::exp(1.2816 * setup.device.sigma);
    if (setup.decoder) {
        out.sustained = sustained_rate(setup, r.shape, latency);
        if (!(out.sustained > 0)) return;
        out.carrying = std::max(1, static_cast<int>(std::ceil(per_model / out.sustained - 1e-9)));
        out.load = per_model / out.carrying;
        ServingLoad load{.requests_per_second = out.load, .requests = 1500};
        out.outcome = simulate_serving(setup, r.shape, load);
        load.requests = 800;
        load.speed = 1 / spread;
        const ServingOutcome fast = simulate_serving(setup, r.shape, load);
        load.speed = spread;
        const ServingOutcome slow = simulate_serving(setup, r.shape, load);
        out.ttft_p95 = {std::min(fast.ttft_p95, out.outcome.ttft_p95), out.outcome.ttft_p95,
                        std::max(slow.ttft_p95, out.outcome.ttft_p95)};
        out.tpot_p95 = {std::min(fast.tpot_p95, out.outcome.tpot_p95), out.outcome.tpot_p95,
                        std::max(slow.tpot_p95, out.outcome.tpot_p95)};
    } else {
        double batch = 1, wait = 0;
        out.sustained = batched_rate(setup, whole_limit(latency), r.memory.max_batch > 0 ? r.memory.max_batch : 256,
                                     context_.settings.busy_limit, batch, wait);
        if (!(out.sustained > 0)) return;
        out.carrying = std::max(1, static_cast<int>(std::ceil(per_model / out.sustained - 1e-9)));
        out.load = per_model / out.carrying;
        ServingOutcome& o = out.outcome;
        o.requests_per_s = out.load;
        o.busy = out.load / out.sustained * context_.settings.busy_limit;
        o.mean_batch = std::max(1.0, batch * out.load / out.sustained);
        o.e2e_p50 = batch_seconds(setup, std::max(1.0, o.mean_batch));
        o.e2e_p95 = o.e2e_p99 = std::min(wait, 2 * o.e2e_p50);
        o.ttft_p50 = o.e2e_p50, o.ttft_p95 = o.e2e_p95, o.ttft_p99 = o.e2e_p99;
        out.ttft_p95 = {o.e2e_p95 / spread, o.e2e_p95, o.e2e_p95 * spread};
    }
}

// In waves of a fixed size, so that what is simulated does not depend on the number of threads.
void ServingSearch::simulate(const std::vector<Replica>& list, std::size_t limit) {
    const bool by_time = context_.workload.objective.minimize == Minimize::time;
    std::vector<const Replica*> order;
    for (const Replica& r : list) order.push_back(&r);
    auto bound = [&](const Replica& r) {
        return by_time ? r.idle_ttft + r.idle_tpot * r.setup->output_tokens : r.bound_usd;
    };
    std::stable_sort(order.begin(), order.end(), [&](const Replica* a, const Replica* b) {
        return std::tuple(bound(*a), a->bound_usd, a->shape.gpus(), choice(*a).node->name) <
               std::tuple(bound(*b), b->bound_usd, b->shape.gpus(), choice(*b).node->name);
    });
    constexpr std::size_t kWave = 4;
    std::vector<double> best;  // costs of the kinds of machine found so far, ascending
    std::vector<int> kinds;
    std::size_t at = 0, count = 0;
    while (at < order.size()) {
        std::vector<const Replica*> wave;
        std::size_t end = at;
        for (; end < order.size() && wave.size() < kWave; ++end) {
            const Replica& r = *order[end];
            if (simulated_.count(r.key) != 0) continue;
            const bool beaten = !options_.exhaustive && best.size() >= static_cast<std::size_t>(options_.top) &&
                                bound(r) > best[static_cast<std::size_t>(options_.top) - 1];
            if (beaten || (!options_.exhaustive && count + wave.size() >= limit)) continue;
            simulated_[r.key];
            wave.push_back(&r);
        }
        for_each_index(wave.size(), context_.options.threads,
                       [&](std::size_t i) { simulate_one(*wave[i], simulated_.at(wave[i]->key)); });
        for (const Replica* r : wave) simulated_.at(r->key).done = true;
        count += wave.size();
        for (; at < end; ++at) {
            const Replica& r = *order[at];
            auto found = simulated_.find(r.key);
            if (found == simulated_.end()) {
                refuse(r, Reason::dominated, best.empty() ? 0 : best.front(), r.bound_usd,
                       by_time ? fmt::format("answers no sooner than {} even alone", format_seconds(Seconds(bound(r))))
                               : fmt::format("at least {} per hour by its peak throughput",
                                             format_usd(Usd::from_double(r.bound_usd))));
                continue;
            }
            const Simulated& s = found->second;
            if (s.carrying == 0) {
                refuse(r, r.cpu ? Reason::cpu_too_slow : Reason::latency, 0, rate_,
                       "meets the latency objective at no load worth having; " + predicted_text(r));
                continue;
            }
            search_.points.push_back(point_of(r, s));
            const double value = by_time ? s.outcome.e2e_p95 : fleet_of(r, s.carrying).nodes * choice(r).cheapest();
            if (std::find(kinds.begin(), kinds.end(), choice(r).kind) == kinds.end()) {
                kinds.push_back(choice(r).kind);
                best.insert(std::upper_bound(best.begin(), best.end(), value), value);
            }
        }
    }
}

Point ServingSearch::point_of(const Replica& r, const Simulated& s) const {
    const Workload& workload = context_.workload;
    const ServingSetup& setup = *r.setup;
    Point point;
    point.choice = r.choice;
    point.replica = r.shape;
    const ReplicaFleet fleet = fleet_of(r, s.carrying);
    point.replicas = fleet.replicas;
    point.nodes = fleet.nodes;
    const double part = choice(r).accelerator != nullptr ? std::min(1.0, choice(r).node->accelerators) : 1;
    point.devices = point.replicas * r.shape.gpus() * part;
    point.service_hours = workload.period ? workload.period->v / 3600 : 1;
    point.latency_s = s.outcome.e2e_p95;
    const double spread = std::exp(1.2816 * setup.device.sigma);
    point.speed = {1 / spread, 1, spread};
    point.framework = serving_framework(workload, choice(r));
    point.gang = false;

    Prediction& p = point.prediction;
    p.bytes = r.memory.bytes;
    double total = 0;
    for (double bytes : p.bytes) total += bytes;
    p.memory_bytes = {total, total, total};
    p.memory_capacity_bytes = setup.device.memory_bytes;
    p.latency = s.outcome;
    p.ttft_p95_s = s.ttft_p95;
    p.tpot_p95_s = s.tpot_p95;
    p.knee_requests_per_s = s.sustained;
    p.utilisation = std::clamp(rate_ / (s.sustained * fleet.replicas), 0.001, 1.0);
    p.tokens_per_s = rate_ * (setup.decoder ? setup.output_tokens : 1);
    if (setup.decoder) {
        const double batch = std::max(1.0, s.outcome.mean_batch);
        p.bottleneck = decode_bound(setup, r.shape, batch, batch * (setup.prompt_tokens + setup.output_tokens / 2));
        p.prefill_bound = prefill_bound(setup, r.shape, setup.prompt_tokens);
    } else {
        p.bottleneck = p.prefill_bound = r.cpu ? Bottleneck::cpu : Bottleneck::compute;
    }
    // Price per second of the replica over the requests per second it sustains within the limits.
    const double sold = s.sustained * point.replicas * 3600;
    point.units = setup.decoder ? sold * setup.output_tokens / 1e6 : sold / 1000;
    p.unit_name = setup.decoder ? "M output tokens" : "1k requests";

    if (models_ > 1) {
        const int on_each = fleet.per_node > 0 ? (fleet.replicas + fleet.nodes - 1) / fleet.nodes : 1;
        point.notes.push_back(
            fmt::format("packing: {:.0f} models x {:.0f} replicas of {} device{}, {} on each VM of {}", models_,
                        fleet.replicas / models_, r.shape.gpus(), r.shape.gpus() == 1 ? "" : "s", on_each,
                        std::max(1, fleet.per_node)));
    }
    point.notes.push_back(fmt::format("asked rate {} requests/s: {:.0f} % of what {} replicas sustain",
                                      format_thousands(rate_, rate_ < 10 ? 1 : 0), 100 * p.utilisation,
                                      point.replicas));
    if (setup.weight_only)
        point.notes.push_back(fmt::format("weights stored in {}, computed in {}: this GPU has no units for {}",
                                          to_string(setup.precision), to_string(setup.compute_precision),
                                          to_string(setup.precision)));
    return point;
}

// Rules of thumb among choices that cost the same: CPU first for small models, then T4, then the rest; one VM for
// several models.
void ServingSearch::set_preferences() {
    const Workload& workload = context_.workload;
    if (workload.objective.minimize == Minimize::time) return;
    const bool small = role_of(workload).small && latency_allows_cpu(workload.objective.latency);
    for (Point& p : search_.points) {
        const NodeChoice& c = context_.choices[static_cast<std::size_t>(p.choice)];
        p.preference = 10;
        if (c.accelerator == nullptr) {
            const bool f = c.node->purpose == "compute";
            p.preference = !small ? 20 : (f ? 4 : 5) + (c.retires.empty() ? 0 : 1);
            if (small) p.rule = f ? "F series first for small models" : "CPU first where it is fast enough";
        } else if (c.accelerator->name == "T4" && p.replica.gpus() == 1) {
            p.preference = 8;
            p.rule = "T4 first where the model fits it";
        }
        if (models_ > 1 && c.accelerator != nullptr) {
            if (replicas_per_node(c, p.replica) < models_)
                p.preference += 3;
            else
                p.rule = "several models share one VM";
        }
    }
}

Result<Search> ServingSearch::run() {
    const Workload& workload = context_.workload;
    models_ = std::max(1.0, std::round(workload.models_served));
    survive_loss_ = workload.objective.survive_one_replica_lost;
    rate_ = workload.traffic.requests_per_second.value_or(0);
    TRY_VOID(collect());
    if (!(rate_ > 0)) {
        // A closed loop of n clients sends what n lone requests take, by Little's law; without either, one request a
        // second.
        double alone = 0;
        for (const Replica& r : gpus_) alone = std::max(alone, r.idle_ttft + r.idle_tpot * r.setup->output_tokens);
        rate_ = workload.traffic.concurrency && alone > 0 ? *workload.traffic.concurrency / alone : 1;
        for (auto* list : {&gpus_, &cpus_})
            for (Replica& r : *list) set_bound(r);
    }
    const auto& progress = context_.options.progress;
    if (progress) progress(0.2, "simulating the engine");
    // Devices without measured rows come behind the others: however cheap, they may not keep those from being
    // simulated.
    std::vector<Replica> measured, doubted;
    for (const Replica& r : gpus_) (choice(r).doubted ? doubted : measured).push_back(r);
    simulate(measured, static_cast<std::size_t>(options_.most_simulated));
    simulate(doubted, static_cast<std::size_t>(options_.most_simulated) / 2);
    if (progress) progress(0.7, "simulating CPUs");
    simulate(cpus_, static_cast<std::size_t>(std::max(4, options_.most_simulated / 2)));
    set_preferences();
    return std::move(search_);
}

}  // namespace

std::optional<double> tightest_limit(const LatencySpec& latency) {
    const double limit = std::min({ttft_limit(latency), tpot_limit(latency), whole_limit(latency)});
    return limit < kInfinity ? std::optional(limit) : std::nullopt;
}

bool latency_allows_cpu(const LatencySpec& latency) {
    const auto limit = tightest_limit(latency);
    return !limit || *limit > kCpuLatencyLimit + 1e-9;
}

std::string serving_framework(const Workload& workload, const NodeChoice& choice) {
    if (!workload.framework.empty()) return workload.framework;
    const bool generates =
        workload.model.kind == ModelKind::decoder || workload.model.kind == ModelKind::encoder_decoder;
    if (choice.accelerator == nullptr) return generates ? "llama.cpp" : "onnxruntime";
    if (generates) return "vllm";
    return choice.accelerator->vendor == "AMD" ? "onnxruntime" : "triton";
}

Result<Search> search_serving(const Context& context, const ServingSearchOptions& options) {
    return ServingSearch(context, options).run();
}

}  // namespace stoker
