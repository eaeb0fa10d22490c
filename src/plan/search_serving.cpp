#include "plan/search_serving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/evidence.h"
#include "plan/parallel.h"
#include "plan/precision_text.h"
#include "plan/replicas.h"
#include "plan/roles.h"
#include "plan/search_training.h"
#include "plan/serving_load.h"
#include "plan/serving_units.h"
#include "plan/sized_by.h"

namespace stoker {
namespace {

class ServingSearch {
public:
    ServingSearch(const Context& context, const ServingSearchOptions& options)
        : context_(context), options_(options), demand_(demand_of(context.workload)) {}
    Result<Search> run();

private:
    const NodeChoice& choice(const Replica& r) const { return context_.choices[static_cast<std::size_t>(r.choice)]; }
    void refuse(const Replica& r, Reason reason, double have, double need, std::string text, std::int64_t count = 1);
    Status collect();
    bool admit(Replica& replica);
    void simulate(const std::vector<Replica>& list, std::size_t limit);
    ReplicaFleet fleet_of(const Replica& r, int needed, int least) const;
    int given_to(const Replica& r) const;
    double value_of(const Replica& r, double sustained, int needed, int least) const;
    std::pair<double, double> time_for_money(double answer_s, double usd) const;
    void tell_refusals();
    void set_bound(Replica& r) const;
    std::string load_text(const Prediction& p, const SizedReplica& s, const ReplicaFleet& fleet) const;
    std::string limit_text(const Replica& r, const SizedReplica& s) const;
    Point point_of(const Replica& r, const SizedReplica& s) const;
    void keep_roomiest();
    void set_preferences();

    const Context& context_;
    ServingSearchOptions options_;
    ServingDemand demand_;
    std::vector<std::unique_ptr<ServingSetup>> setups_;
    std::vector<std::tuple<int, double, int, int, int, int, double, int, int, int, bool, int>> keys_;
    std::vector<Replica> gpus_, cpus_;
    std::map<int, std::vector<SizedReplica>> simulated_;
    std::vector<std::pair<Rejection, int>> refusals_;  // and their stage
    Search search_;
};

// How far a shape came before it was refused.
enum Stage { kMemory, kLatency, kLoad };

void ServingSearch::refuse(const Replica& r, Reason reason, double have, double need, std::string text,
                           std::int64_t count) {
    search_.refused += count;
    const bool shape = reason == Reason::memory || reason == Reason::shape_indivisible;
    refusals_.push_back({{.node_type = choice(r).type,
                          .reason = reason,
                          .have = have,
                          .need = need,
                          .text = std::move(text),
                          .count = count},
                         shape                          ? kMemory
                         : reason != Reason::throughput ? kLatency
                                                        : kLoad});
}

// A machine is refused for what its best shape lacks: that the model does not fit one of its GPUs is no reason where
// eight of them hold it and are too slow.
void ServingSearch::tell_refusals() {
    std::map<int, int> furthest;
    for (const auto& [line, stage] : refusals_) {
        auto at = furthest.try_emplace(line.node_type, stage).first;
        at->second = std::max(at->second, stage);
    }
    for (auto& [line, stage] : refusals_)
        if (furthest.at(line.node_type) < kLoad || stage == kLoad) search_.rejected.add(std::move(line));
}

ReplicaFleet ServingSearch::fleet_of(const Replica& r, int needed, int least) const {
    return fleet_for(context_, demand_, choice(r), r.shape, needed, least);
}

// Replicas of one model that pinned nodes have for the traffic; 0: there are as many as it needs.
int ServingSearch::given_to(const Replica& r) const {
    return context_.workload.where.pinned_nodes(*choice(r).node) ? std::max(1, fleet_of(r, 1, 1).carrying) : 0;
}

// What candidates are compared by before regions are: dollars per hour, or of a request where the load is not given.
double ServingSearch::value_of(const Replica& r, double sustained, int needed, int least) const {
    const ReplicaFleet fleet = fleet_of(r, needed, least);
    const double usd = fleet.nodes * choice(r).cheapest();
    return demand_.capacity() ? usd / std::max(sustained * fleet.carrying, 1e-12) : usd;
}

// The order in which candidates are tried where time is minimised: bands as wide as what settle_ties lets pass for the
// same, and in each what it would prefer.
std::pair<double, double> ServingSearch::time_for_money(double answer_s, double usd) const {
    const PlanSettings& settings = context_.settings;
    const double noticed = std::max(answer_s + settings.unnoticed_s, 1e-9);
    if (!(settings.most_for_money > 0)) return {noticed, 0};
    return {std::floor(std::log(noticed) / std::log(1 + settings.most_for_money)),
            noticed * std::pow(std::max(usd, 1e-6), settings.money_exponent)};
}

// The simulated engine may do a little better than the closed form, so the bound leaves a quarter.
void ServingSearch::set_bound(Replica& r) const {
    double least = 1;
    if (!demand_.closed()) {
        least = demand_.rate / demand_.models / (r.most_rate * 1.25);
    } else {
        // Little's law: so many clients are under way at most while answers keep the limits.
        const LatencySpec& latency = context_.workload.objective.latency;
        const double answer =
            std::min(ttft_limit(latency) + tpot_limit(latency) * r.setup->output_tokens, whole_limit(latency));
        if (answer < kInfinity)
            least = demand_.clients / demand_.models / (r.most_rate * 1.25 * (demand_.think_s + answer));
    }
    const int few = std::max(1, static_cast<int>(std::min(std::ceil(least), 1e6)));
    r.bound_usd = value_of(r, r.most_rate * 1.25, few, few);
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
            text = precision_refusal(context_, one, r.setup->precision);
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
                      fmt::format("{}{} for a lone request, {} allowed{}", first ? "answer starts after " : "",
                                  first ? format_seconds(Seconds(r.idle_ttft)) : predicted_text(r),
                                  format_seconds(Seconds(first ? ttft : tpot)),
                                  r.cpu ? fmt::format("; weights of {}", format_bytes_gib(Bytes(r.setup->weight_bytes)))
                                  : context_.workload.model.kind == ModelKind::diffusion
                                      ? "; one GPU draws all of it: sharing it among several (xDiT) is not planned"
                                      : "")),
               false;
    }
    if (r.setup->decoder) {
        r.most_rate = offline_throughput(*r.setup, r.shape).requests_per_s;
    } else {
        double batch = 1, wait = 0;
        r.most_rate = batched_rate(*r.setup, kInfinity, r.memory.max_batch > 0 ? r.memory.max_batch : 256,
                                   context_.settings.busy_limit, batch, wait);
    }
    if (!(r.most_rate > 0)) return refuse(r, Reason::throughput, 0, 1, "cannot serve a request at all"), false;
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
            const auto key = std::tuple(
                node.accelerator, node.accelerator_memory.v, shape.tensor, shape.pipeline, shape.data, shape.expert,
                cpu                          ? one.node->vcpus + one.node->memory.v
                : one.node->accelerators < 1 ? one.node->accelerators
                                             : 1.0,
                cpu ? node.cpu : node.link_inside, shape.gpus() > one.devices() ? node.link_across : -1,
                cpu ? 0 : node.scale_up_domain, node.scale_up_pairs, given_to(r));
            auto known = std::find(keys_.begin(), keys_.end(), key);
            r.key = static_cast<int>(known - keys_.begin());
            if (known == keys_.end()) keys_.push_back(key);
            (cpu ? cpus_ : gpus_).push_back(r);
        }
    }
    if (setups_.empty() && first) return std::move(*first);
    return done();
}

// In waves of a fixed size, so that what is simulated does not depend on the number of threads.
void ServingSearch::simulate(const std::vector<Replica>& list, std::size_t limit) {
    const bool by_time = context_.workload.objective.minimize == Minimize::time;
    std::vector<const Replica*> order;
    for (const Replica& r : list) order.push_back(&r);
    auto bound = [&](const Replica& r) {
        return by_time ? r.idle_ttft + r.idle_tpot * r.setup->output_tokens : r.bound_usd;
    };
    const auto key = [&](const Replica& r) {
        const auto [band, value] = by_time ? time_for_money(bound(r), r.bound_usd) : std::pair(0.0, r.bound_usd);
        return std::tuple(band, value, r.bound_usd, r.shape.gpus(), std::string_view(choice(r).node->name));
    };
    std::stable_sort(order.begin(), order.end(), [&](const Replica* a, const Replica* b) { return key(*a) < key(*b); });
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
            if (options_.affordable && beyond_budget(context_, demand_, r)) continue;
            const bool beaten = !options_.exhaustive && best.size() >= static_cast<std::size_t>(options_.top) &&
                                bound(r) > best[static_cast<std::size_t>(options_.top) - 1];
            if (beaten || (!options_.exhaustive && count + wave.size() >= limit)) continue;
            simulated_[r.key];
            wave.push_back(&r);
        }
        for_each_index(wave.size(), context_.options.threads, [&](std::size_t i) {
            simulated_.at(wave[i]->key) = load_replica(context_, demand_, *wave[i], given_to(*wave[i]));
        });
        for (const Replica* r : wave)
            for (const SizedReplica& load : simulated_.at(r->key)) search_.simulated += load.work.decisions;
        count += wave.size();
        for (; at < end; ++at) {
            const Replica& r = *order[at];
            auto found = simulated_.find(r.key);
            if (found == simulated_.end()) {
                refuse(r, Reason::dominated, best.empty() ? 0 : best.front(), r.bound_usd,
                       by_time ? fmt::format("answers no sooner than {} even alone", format_seconds(Seconds(bound(r))))
                       : demand_.capacity() ? "a request costs more by its peak throughput"
                                            : fmt::format("at least {} per hour by its peak throughput",
                                                          format_usd(Usd::from_double(r.bound_usd))));
                continue;
            }
            const std::vector<SizedReplica>& loads = found->second;
            if (std::all_of(loads.begin(), loads.end(), [](const SizedReplica& s) { return s.needed == 0; })) {
                refuse(r, r.cpu ? Reason::cpu_too_slow : Reason::latency, 0, demand_.rate,
                       "cannot keep the latency limits at any useful load; " + predicted_text(r));
                continue;
            }
            std::optional<Shortfall> lack;
            std::size_t before = search_.points.size();
            for (const SizedReplica& s : loads) {
                if (s.needed == 0) continue;
                lack = shortfall_of(context_, demand_, choice(r), r.shape, s);
                if (lack) continue;
                search_.points.push_back(point_of(r, s));
                // What may miss the limits comes behind the others: it keeps none of them from being simulated.
                if (s.chance >= 0 && s.chance < context_.settings.confidence) continue;
                const double value = by_time ? s.outcome.e2e_p95 : value_of(r, s.sustained, s.needed, s.least);
                if (std::find(kinds.begin(), kinds.end(), choice(r).kind) == kinds.end()) {
                    kinds.push_back(choice(r).kind);
                    best.insert(std::upper_bound(best.begin(), best.end(), value), value);
                }
            }
            if (lack && search_.points.size() == before)
                refuse(r, lack->reason, lack->have, lack->need, std::move(lack->text));
        }
    }
}

// What is asked of what the replicas could do.
std::string ServingSearch::load_text(const Prediction& p, const SizedReplica& s, const ReplicaFleet& fleet) const {
    const std::string rate = format_thousands(p.requests_per_s, p.requests_per_s < 10 ? 1 : 0);
    if (demand_.capacity())
        return fmt::format("{} replica{} hold{} {:.3g} requests/s within the limits{}", fleet.replicas,
                           fleet.replicas == 1 ? "" : "s", fleet.replicas == 1 ? "s" : "", p.requests_per_s,
                           s.sized_sure && s.chance >= 0
                               ? fmt::format(", with {:.0f} % confidence", 100 * context_.settings.confidence)
                               : "");
    if (demand_.closed())
        return fmt::format("{} clients at once make {} requests/s; one replica carries {} of them within the limits",
                           format_thousands(demand_.clients), rate, format_thousands(s.clients));
    return fmt::format("asked rate {} requests/s: {:.0f} % of what {} replicas sustain", rate, 100 * p.utilisation,
                       fleet.replicas);
}

// Which limit asks for more replicas than the work would take, and how many that takes; nothing where the work decides.
std::string ServingSearch::limit_text(const Replica& r, const SizedReplica& s) const {
    if (demand_.capacity() || s.tightest.empty() || !(s.load > 0) || s.needed < 2) return {};
    // As sure as the fleet was sized for.
    const double slow =
        s.sized_sure ? std::exp(std::max(0.0, context_.settings.confidence_deviations) * r.setup->device.sigma) : 1;
    const int by_work = std::max(1, static_cast<int>(std::ceil(s.load * s.needed * slow / r.most_rate - 1e-9)));
    if (by_work >= s.needed) return {};
    const std::string_view each = demand_.models > 1 ? " of each model" : "";
    // The one that may be lost would bring as many machines without the limit.
    const int lost = std::min(s.least, by_work);
    if (context_.workload.objective.survive_one_replica_lost &&
        fleet_of(r, by_work, lost).nodes >= fleet_of(r, s.needed, s.least).nodes)
        return fmt::format("{} takes {} replicas{}, and so does one to spare; the work alone takes {}", s.tightest,
                           s.needed, each, by_work);
    return fmt::format("{} decides the size: {} replicas{}, {} for the work alone", s.tightest, s.needed, each,
                       by_work);
}

Point ServingSearch::point_of(const Replica& r, const SizedReplica& s) const {
    const Workload& workload = context_.workload;
    const ServingSetup& setup = *r.setup;
    Point point;
    point.choice = r.choice;
    point.replica = r.shape;
    const ReplicaFleet fleet = fleet_of(r, s.needed, s.least);
    point.replicas = fleet.replicas;
    point.nodes = fleet.nodes;
    point.spare_nodes = fleet.spare_nodes;
    const double part = choice(r).accelerator != nullptr ? std::min(1.0, choice(r).node->accelerators) : 1;
    point.devices = point.replicas * r.shape.gpus() * part;
    point.service_hours = workload.period ? workload.period->v / 3600 : 1;
    point.latency_s = s.outcome.e2e_p95;
    const double spread = std::exp(1.2816 * setup.device.sigma);
    point.speed = {1 / spread, 1, spread};
    point.growth = setup.interval_growth;
    point.framework = serving_framework(workload, choice(r));
    point.precision = setup.precision;
    point.kv_precision = setup.kv_precision;
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
    p.latency_chance = s.chance;
    p.knee_requests_per_s = s.sustained;
    p.requests_per_s = demand_.rate > 0 ? demand_.rate : s.load * fleet.carrying * demand_.models;
    if (demand_.capacity()) point.worth = p.requests_per_s;
    p.clients_per_replica = s.clients;
    p.utilisation = std::clamp(p.requests_per_s / (s.sustained * fleet.replicas), 0.001, 1.0);
    const ServiceUnits units = units_of(workload, setup);
    p.rate_unit = units.rate;
    p.tokens_per_s = p.requests_per_s * units.rate_each;
    if (setup.decoder) {
        const double batch = std::max(1.0, s.outcome.mean_batch);
        p.bottleneck = decode_bound(setup, r.shape, batch, batch * (setup.prompt_tokens + setup.output_tokens / 2));
        p.prefill_bound = prefill_bound(setup, r.shape, setup.prompt_tokens);
    } else {
        p.bottleneck = p.prefill_bound = r.cpu ? Bottleneck::cpu : Bottleneck::compute;
    }
    // Price per second of the replica over the requests per second it sustains within the limits.
    point.units = s.sustained * point.replicas * 3600 * units.price_each;
    point.units_asked = p.requests_per_s * 3600 * units.price_each;
    p.unit_name = units.price;

    if (demand_.models > 1) {
        const int on_each = fleet.per_node > 0 ? (fleet.replicas + fleet.nodes - 1) / fleet.nodes : 1;
        point.notes.emplace_back(
            fmt::format("packing: {:.0f} models x {:.0f} replicas of {} device{}, {} on each VM of {}", demand_.models,
                        fleet.replicas / demand_.models, r.shape.gpus(), r.shape.gpus() == 1 ? "" : "s", on_each,
                        std::max(1, fleet.per_node)),
            NoteKind::packing);
    }
    point.notes.push_back(load_text(p, s, fleet));
    if (std::string limit = limit_text(r, s); !limit.empty())
        point.notes.emplace_back(std::move(limit), NoteKind::sized_by_limit);
    if (setup.weight_only) point.notes.emplace_back(weight_only_text(setup, choice(r)), NoteKind::weight_only);
    point.weight_only = setup.weight_only && setup.device.gpu;
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
        if (demand_.models > 1 && c.accelerator != nullptr) {
            if (replicas_per_node(c, p.replica) < demand_.models)
                p.preference += 3;
            else
                p.rule = "several models share one VM";
        }
    }
}

// Machines that are paid for in any case are divided into the replicas that hold most.
void ServingSearch::keep_roomiest() {
    auto held = [](const Point& p) { return p.prediction.knee_requests_per_s * p.replicas; };
    std::map<int, double> most;
    for (const Point& p : search_.points) most[p.choice] = std::max(most[p.choice], held(p));
    std::erase_if(search_.points, [&](const Point& p) { return held(p) < most[p.choice]; });
}

Result<Search> ServingSearch::run() {
    TRY_VOID(collect());
    const auto& progress = context_.options.progress;
    if (progress) progress(0.2, "simulating the engine");
    // Devices without measured rows come behind the others: however cheap, they may not keep those from being
    // simulated.
    std::vector<Replica> measured, doubted;
    for (const Replica& r : gpus_)
        (lacks_evidence(choice(r), r.shape) || choice(r).scarce ? doubted : measured).push_back(r);
    simulate(measured, static_cast<std::size_t>(options_.most_simulated));
    simulate(doubted, static_cast<std::size_t>(options_.most_simulated) / 2);
    if (progress) progress(0.7, "simulating CPUs");
    simulate(cpus_, static_cast<std::size_t>(std::max(4, options_.most_simulated / 2)));
    tell_refusals();
    const WhereSpec& where = context_.workload.where;
    if ((where.nodes || where.gpus) && context_.workload.objective.minimize != Minimize::time) keep_roomiest();
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
