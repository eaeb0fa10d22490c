// What every part of planning reads: the question, the facts, and the node types and offers that are left after the
// constraints that do not depend on how many nodes are used.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/geography.h"
#include "plan/plan.h"

namespace stoker {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A price at which one node can be had somewhere.
struct Offer {
    std::string region;
    Pricing pricing = Pricing::on_demand;
    double usd_per_hour = 0;
    double low = 0, high = 0;  // dollars per hour
    bool estimate = false, priced = true;
    std::string listed_in = {};  // another region, whose list price this is made from; empty: it has one of its own
    Provenance provenance = {};
    std::vector<std::string> zones = {};  // known only when list-skus was given
    int far = 0;  // 0: at home, or a well-known region; more: further from what the user can be expected to want
};

struct PlanSettings;

// A node type that is still possible, with its offers: near ones first, cheapest first (then region, then pricing).
struct NodeChoice {
    int type = -1;
    const NodeType* node = nullptr;
    const Accelerator* accelerator = nullptr;  // nullptr: CPU only
    std::vector<Offer> offers = {};
    int kind = -1;  // same GPU, or same series of CPU sizes: neighbours of one kind say little about each other
    std::string retires = {};      // announced retirement, YYYY-MM-DD
    double measured_rows = -1;     // published rows of this kind of work on its devices; -1: speed is not predicted
    bool proven = false;           // other serving was measured on one of its devices
    bool named = false;            // by the user, or his own
    bool doubted = false;          // too few of them, and neither owned nor named
    bool known_elsewhere = false;  // doubted, though measured at other work, as the vendor's other devices are at this
    bool divided_doubted = false;  // the same of one model on several of its devices
    bool scarce = false;           // given out by reservation or agreement (data/catalog/availability.tsv)
    double cheapest() const;       // dollars per hour; infinity when nothing is priced
    int year() const { return accelerator != nullptr ? accelerator->year : 0; }
    bool is_measured(const PlanSettings& settings) const;
    int devices() const;  // whole devices a job sees on one node; a fraction of a GPU counts as one
};

// Numbers of data/catalog/defaults.tsv that only planning needs.
struct PlanSettings {
    double provision_s = 0;                            // VM creation, image, driver check
    double local_start_s = 0;                          // on this machine: processes, libraries, rendezvous
    Range evictions_per_hour, evictions_per_hour_cpu;  // spot, one node; the latter of machines without a GPU
    bool evictions_given = false;                      // by the file or the settings: of any machine
    std::string evictions_from;                        // in words
    double spot_wait_s = 0, eviction_gang_exponent = 1, spot_gang_watched = kInfinity;
    double failures_per_gpu_hour = 0, restart_s = 0, snapshot_bytes_per_s = 0, least_checkpoint_interval_s = 1;
    double checkpoint_bytes_per_s = 0;        // that a node writes
    double checkpoint_store_bytes_per_s = 0;  // that the store takes from all nodes
    double checkpoint_bytes_per_parameter = 0;
    double pue = 1, host_w_per_gpu = 0, idle_power_fraction = 0;
    double cpu_w_per_core = 0, cpu_idle_power_fraction = 0, cpu_host_w = 0, host_w_per_vcpu = 0;
    double price_stale_days = 0, catalogue_stale_days = 0;
    double fit_wanted = 0;           // a layout that probably runs out of memory is a last resort
    double network_bound_share = 0;  // more of the step than this waiting on a network without RDMA: refused
    double placement_group = 0, placement_group_on_request = 0;  // VMs that one scale set of Azure joins by InfiniBand
    double placement_group_published = 0;         // VMs of several scale sets on one fabric that a published run had
    double tie_share = 0;                         // rules of thumb decide between choices this close, and nowhere else
    double most_for_time = 0, time_exponent = 0;  // what a faster job may cost more (TieRules)
    double nodes_exponent = 0, small_doubt_most_factor = kInfinity;
    // Where time is minimised: what may be slower by how much, for less money; and what of a service's answer nobody
    // notices.
    double campaign_factor = 0, campaign_least_s = 0;  // pretraining that runs longer is a campaign
    double most_for_money = 0, money_exponent = 0, unnoticed_s = 0;
    double most_for_evidence = 0, evidence_exponent = 0;  // what a measured choice may cost more (TieRules)
    double most_for_whole = 0;                            // what replicas on one machine each may cost more (TieRules)
    double simpler_share_tuning = 0;                      // the same of fine-tuning
    double simpler_share = 0;  // a simpler layout may be so much slower than the best for each step of simplicity
    double simpler_most = 0;   // in all, in pretraining
    double set_up_gpu_s = 0,
           set_up_most = 0;            // what a stack that cuts the model has to save over data parallel work, in all
    double plain_share = 0;            // ranks that each keep all states may be so much slower than the best
    double pipeline_inside_share = 0;  // the same for a pipeline where fast links would do for tensor parallelism
    double device_rows_wanted_inference = 0;  // the same of what answers at once, which is enough for one device
    double device_rows_wanted = 0;            // published rows that make a device a measured one
    double sigma_no_rows = 0;                 // what is added to the spread of one that is not
    double gang_mfu_least = 0;                // a gang that reaches less is refused
    double pile_patience_s = kInfinity;       // of a pile without a deadline, before it is spread over machines
    double longest_run_s = kInfinity;         // of a run without a deadline
    double cpu_fleet_vcpus = kInfinity;       // a fleet of CPU machines beyond it is put last
    double comfortable_ram = 0;               // share of RAM that a model on a CPU may fill
    double busy_limit = 0;                    // of the time of an engine that batches what waits
    double confidence = 0.9;                  // with which deadline and budget are kept
    double confidence_wanted = 0.9;           // the same before anybody settled for less
    double confidence_deviations = 0;         // the same in standard deviations
};

// One line per (node type, reason): the numbers nearest to fitting, and how many candidates the line stands for.
class RejectionLog {
public:
    void add(Rejection rejection);
    void merge(const RejectionLog& other);
    // Node types in catalogue order, then reasons in the order of the enum.
    std::vector<Rejection> sorted() const;
    std::int64_t total() const;

private:
    std::map<std::pair<int, int>, Rejection> lines_;
};

struct Context {
    const Workload& workload;
    const Catalog& catalog;
    const PlanOptions& options;
    PlanSettings settings;
    std::vector<NodeChoice> choices;  // in catalogue order
    RejectionLog rejected;
    std::int64_t considered = 0;
    std::vector<RegionPriceRatio> unlisted = {};  // regions that are asked for, and of which no price is known
    bool accelerator_missing = false;  // none of where.accelerators can be had: NVIDIA is planned instead, and said
    std::string image;

    const NodeType& node(int type) const { return catalog.node_types()[static_cast<std::size_t>(type)]; }
    bool size_was_named(int type) const;
};

void take_evictions(PlanSettings& settings, const Range& per_hour, std::string from);
PlanSettings read_settings(const Workload& workload, const Catalog& catalog);
// Runs the constraints on every node type and every offer; what is left is in choices.
Context make_context(const Workload& workload, const Catalog& catalog, const PlanOptions& options);

// Of one spot node in an hour.
const Range& evictions_of(const PlanSettings& settings, const NodeType& node);
// Where the work belongs, as far as somebody said: where its data or its users are, else the user's home.
std::string home_of(const Workload& workload, const PlanOptions& options);

// Days from one YYYY-MM-DD to another; 0 when either is not such a date.
long days_between(std::string_view from, std::string_view to);
bool is_rdma(const NodeType& node);
bool is_nd(const NodeType& node);
// The same accelerators, as many of them, and no RDMA network.
bool is_twin_without_rdma(const NodeType& node, const NodeType& other);
// The earliest known retirement: from list-skus when given there, else from the catalogue. Empty: none.
std::string retirement_of(const Context& context, int type);

}  // namespace stoker
