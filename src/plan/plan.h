// From a workload and a catalogue to a ranked, costed, explained plan. Pure: the same input gives the same plan, byte
// for byte.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/azure_answers.h"
#include "catalog/catalog.h"
#include "plan/plan_note.h"
#include "sizing/calibration.h"
#include "sizing/economics.h"
#include "sizing/layout.h"
#include "sizing/serving.h"
#include "sizing/terms.h"
#include "sizing/training.h"
#include "workload/workload.h"

namespace stoker {

enum class Orchestrator : std::uint8_t {
    local,
    slurm,
    cyclecloud_slurm,
    aks,
    azure_ml,
    vmss,
    batch,
    ray,
    kubernetes,
    none
};
std::string_view to_string(Orchestrator orchestrator);

// All figures are for the whole job (training, batch) or for one hour of service (inference), as `unit` says.
struct Prediction {
    std::array<double, kTimeTerms> seconds{};  // of one step, by term (training)
    std::array<double, kMemoryTerms> bytes{};  // of the fullest device, by term
    Range step_s;                              // training; 0 otherwise
    Range memory_bytes;
    double memory_capacity_bytes = 0, fit_probability = 1;
    double mfu = 0, hfu = 0, tokens_per_s = 0, steps = 0;
    double tensor_bytes = 0, pipeline_bytes = 0, gradient_bytes = 0;
    Range hours;                 // wall clock, restarts and provisioning included; inference: 1
    Range usd;                   // of the hours
    double campaign_factor = 0;  // what a whole pretraining took by what its steady rate would; 0: no such run
    Range usd_per_unit;        // per B tokens trained, per M output tokens, per 1k requests or per hour: see unit_name
    Range usd_per_unit_asked;  // services: of the load that is asked for; usd_per_unit is at full load
    std::string unit_name;
    Range kwh;
    CheckpointPlan checkpoint;
    ServingOutcome latency;  // inference, with one replica lost where asked
    Range ttft_p95_s, tpot_p95_s;
    double knee_requests_per_s = 0;  // per replica
    double requests_per_s = 0;       // services: asked of all replicas, or held by them where that was the question
    double clients_per_replica = 0;  // closed loop: the most that keep the limits
    double latency_chance = -1;      // to keep the latency limits at the load that is asked for; -1: there are none
    std::string rate_unit;           // of tokens_per_s in a service: "output tokens", "images", ...
    double utilisation = 0;          // of the GPUs' time in the steady state
    Bottleneck bottleneck = Bottleneck::compute, prefill_bound = Bottleneck::compute;
};

struct Candidate {
    int node_type = -1;
    std::string region;
    Pricing pricing = Pricing::on_demand;
    Usd node_per_hour;
    bool price_is_estimate = false, priced = true;
    std::string price_is_of;    // the region whose list price it is made from, where its own has no list; else empty
    Range list_ratio{1, 1, 1};  // what it was multiplied with
    Provenance price_provenance;
    int nodes = 1;
    ParallelLayout layout;    // training
    ReplicaShape replica;     // inference
    int replicas = 0;         // inference; spread over `nodes`
    int spare_nodes = 0;      // inference; of `nodes`, because one may be lost
    double devices_used = 0;  // may be a fraction of a GPU
    Orchestrator orchestrator = Orchestrator::none;
    std::string framework;
    Precision precision = Precision::bf16, kv_precision = Precision::bf16;  // what this device runs it in
    bool weight_only = false;  // weights are kept in it, and multiplied in 16 bits
    Prediction prediction;
    std::string why_not_first;  // for runners-up, with numbers
    std::vector<PlanNote> notes;
    // Of an estimate that cannot run: why, by how much. A candidate of a plan always runs.
    Reason refused = Reason::none;
    double have = 0, need = 0;
    std::string refusal;
    // Why it cannot start today ("quota: ... 16 of 96 vCPUs used, ..."); empty: nothing that was given says so.
    std::string blocked_by;
    std::string doubt;          // the worst of what speaks against it, in words; empty: nothing
    double measured_rows = -1;  // published rows of this kind of work on its device; -1: speed is not predicted
    bool measured = true;       // enough of them; else no chance to keep a limit may be told of it
    // Spot: the same machines, as many, at list price, in the same region.
    struct ListPrice {
        Usd node_per_hour;
        Range hours, usd;
    };
    std::optional<ListPrice> on_demand;
    // A service on spot: what is taken from it in a month. The low ends are of nodes that go each for itself, the high
    // ends of nodes that all go together, as those of one size in one zone mostly do.
    struct SpotService {
        int on_demand_nodes = 0;  // of `nodes`: never taken away (where.on_demand_replicas)
        double evictions = 0;
        Range hours_below;  // with fewer nodes than the load needs
        Range requests;     // that come in those hours and find no room, at the load that is asked for; 0: not known
    };
    std::optional<SpotService> spot_service;
};

// Where to go when the first choice cannot be had: allocation fails, or its quota is refused.
struct Fallback {
    std::string id;     // region: the same machines elsewhere; size: other machines
    std::string needs;  // "1,536 vCPUs of lowPriorityCores quota in westeurope"; empty: nothing that is known
    Candidate candidate;
};

// The rate of evictions that was planned with, where spot was allowed and has a price.
struct SpotRate {
    Range per_hour;       // of one node
    double wait_h = 0;    // mean, until capacity is there again
    std::string from;     // "median of 21 series ...", "where.evictions_per_hour"
    bool given = false;   // by the file or the settings
    double flips_at = 0;  // spot comes first below it, and not above it; 0: at no rate that was tried
    std::string outcome;  // what comes first on the other side of it
};

// A choice with a better score than the first, and what speaks against it.
struct Foregone {
    std::string id;  // unmeasured, far, scarce, blocked, by-arrangement, unlikely-to-fit, limits-unsure, wasteful,
                     // slower (cheaper by a little), faster (by a little), rule (which costs more),
                     // fewer (of the same machines, a quarter at most, for longer)
    std::string why;
    Candidate candidate;
};

struct Rejection {
    int node_type = -1;
    std::string region;  // empty: in every region
    int nodes = 0;       // 0: at any count
    Reason reason = Reason::none;
    double have = 0, need = 0;
    std::string text;        // one line, with the numbers in units
    std::int64_t count = 1;  // candidates this line stands for
};

enum class AdviceSeverity : std::uint8_t { info, warning, error };
struct Advice {
    AdviceSeverity severity = AdviceSeverity::info;
    std::string id;  // stable: quota-short, spot-risk, ib-scale-set, cpu-first, ...
    std::string text;
    std::string remedy, source;
    bool background = false;  // true of every such plan: for who asks (--show advice), and always in JSON
};

struct PlanWhatIf {
    std::string change;   // "price of H100 x 1.3"
    std::string outcome;  // "6 x Standard_ND96amsr_A100_v4"
    bool changes_choice = false;
    double usd = 0;  // of the job, or of the priced period of a service; 0: nothing is feasible, or unpriced
};

struct PlatformChoice {
    Orchestrator orchestrator = Orchestrator::none;
    std::string name, reason, complexity;
    std::vector<std::string> alternatives;  // "Azure ML: ... because ..."
    std::string paas;                       // the PaaS alternative and why (not)
    std::string image, image_reason;
};

// A published measurement beside what the cost model says of it, in the unit of its metric (step_s, out_tokens_per_s,
// ttft_ms, ...).
struct PublishedRun {
    std::string id, title, source, metric;
    double measured = 0, predicted = 0, low = 0, high = 0;
    double distance = 0;              // from the plan, in doublings
    std::vector<std::string> unlike;  // what sets it apart from the plan: "8 x the GPUs", "fp8"; the largest first
    int other_sources = 0;            // with rows about as near that count beside it
    double together = 0;              // slower() of it and of them, by distance, each source once; 0: it is alone
    // Measured time by predicted time, of a step, a token or an amount of work: 2 took twice as long as is said.
    double slower() const;
    double slower_together() const { return together > 0 ? together : slower(); }
};

// One configuration, as far as it decides which published run is most like it.
struct PlannedCase {
    const Workload& workload;
    int node_type = -1;
    Precision precision = Precision::bf16;
    std::string_view framework;
    const ParallelLayout& layout;  // training
    const ReplicaShape& replica;   // serving
    int replicas = 0;
    const ServingOutcome& latency;  // of all replicas
};

// What is measured of cases like the chosen one. Filled in by whoever shows the plan; make_plan does not look.
struct PublishedEvidence {
    bool asked = false;
    std::int64_t runs = 0, runs_near = 0, runs_on_device = 0;
    std::optional<PublishedRun> closest;
    std::string missing;  // in words, where nothing was measured on this device
};

// A constant that the chosen candidate hangs on: what its figures change by, as shares, when it is moved to the ends of
// its spread (stoker plan --because).
struct ConstantEffect {
    struct Change {
        double step = 0, memory = 0, usd = 0, ttft = 0, tpot = 0;
    };
    std::string name, unit, source, as_of, note;
    std::string rows, groups;  // what it was fitted on; empty: it was not
    std::string spread;        // where low and high are from
    double value = 0, low = 0, high = 0;
    Change when_low, when_high;
    double largest = 0;  // of all of them, without sign
};

struct Plan {
    Workload workload;
    std::string verdict;
    std::vector<Candidate> candidates;  // best first; [0] is chosen
    std::vector<Candidate> pareto;      // time against cost
    std::vector<Foregone> foregone;     // at most one of each kind
    std::vector<Candidate> ethernet;    // none or one: the NC that Azure's table names as alternative to ND
    std::vector<Rejection> rejected;
    std::int64_t considered = 0, refused = 0;
    std::vector<Advice> advice;
    std::vector<std::string> reasons;  // why the winner won; why distributed (R76)
    std::vector<PlanWhatIf> what_if;
    std::vector<Fallback> fallbacks;
    std::optional<SpotRate> spot_rate;
    PlatformChoice platform;
    PublishedEvidence evidence;
    std::vector<ConstantEffect> because;  // only where it was asked for
    std::string catalog_version, catalog_as_of;
    // When nothing is feasible: candidates is empty, and these say why and what comes nearest.
    bool feasible() const { return !candidates.empty(); }
    std::string infeasible_because;
    std::vector<Candidate>
        nearest;  // best when the violated constraint is relaxed, with the relaxation in why_not_first
};

struct PlanOptions {
    std::string today;  // YYYY-MM-DD, of whoever has a clock; decides retirements and staleness. Always given
    int top = 5;
    bool what_if = true;
    int threads = 0;                 // 0: all cores; the result does not depend on it
    std::vector<SkuOffer> offers;    // from list-skus; empty: not given
    std::vector<QuotaUsage> usages;  // from list-usage, of one region
    std::string usages_region;
    bool startable = false;  // only what the answers above allow to start today
    std::string home;        // a region or a geography, where where.regions is silent; empty: well-known regions
    std::vector<std::string> residency;  // of the user, where the workload names neither regions nor residency
    std::function<void(double share, std::string_view what)> progress;  // may be empty
    std::optional<Range> evictions_per_hour;  // of the user, of one spot node; the workload's own comes before it
    // With which deadline and budget are kept where nothing keeps them with the confidence that is wanted by default.
    std::optional<double> settle_for;
    // The published run that is most like a configuration; may be empty. Its interval then holds what that run showed.
    std::function<std::optional<PublishedRun>(const PlannedCase&)> nearest_run;
    // What runs of the past taught, by the cloud of a node type ("this-machine"). Trainings only.
    std::map<std::string, Calibration, std::less<>> calibrations;
};

Result<Plan> make_plan(const Workload& workload, const Catalog& catalog, const PlanOptions& options);

// One pinned configuration (stoker estimate, stoker compare): every term, no search. size and nodes from
// workload.where.
Result<Candidate> estimate(const Workload& workload, const Catalog& catalog, const PlanOptions& options);

}  // namespace stoker
