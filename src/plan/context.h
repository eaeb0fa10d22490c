// What every part of planning reads: the question, the facts, and the node types and offers that are left after the
// constraints that do not depend on how many nodes are used.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

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
    Provenance provenance = {};
    std::vector<std::string> zones = {};  // known only when list-skus was given
};

// A node type that is still possible, with its offers, cheapest first (then region, then pricing).
struct NodeChoice {
    int type = -1;
    const NodeType* node = nullptr;
    const Accelerator* accelerator = nullptr;  // nullptr: CPU only
    std::vector<Offer> offers = {};
    std::string retires = {};  // announced retirement, YYYY-MM-DD
    double cheapest() const;   // dollars per hour; infinity when nothing is priced
    int year() const { return accelerator != nullptr ? accelerator->year : 0; }
    int devices() const;  // whole devices a job sees on one node; a fraction of a GPU counts as one
};

// Numbers of the catalogue that only planning needs, with the defaults used when the catalogue does not hold them.
struct PlanSettings {
    double provision_s = 600;          // VM creation, image, driver check
    double evictions_per_hour = 0.02;  // spot, one node
    bool eviction_rate_known = false;
    double failures_per_gpu_hour = 2.0e-5;
    double restart_s = 600;
    double checkpoint_bytes_per_s = 2e9;
    double checkpoint_bytes_per_parameter = 14;
    double pue = 1.2;
    double host_w_per_gpu = 375, idle_power_fraction = 0.15;
    double price_stale_days = 30, catalogue_stale_days = 90;
    double disk_usd_per_month = 19.71;  // Premium SSD P10 (128 GiB), list price East US
    double fit_wanted = 0.8;            // a layout that probably runs out of memory is a last resort
    double network_bound_share = 0.5;   // more of the step than this waiting on a network without RDMA: refused
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
    bool quota_enforced = true;
    bool rdma_allowed_for_inference = false;
    std::string image;

    const NodeType& node(int type) const { return catalog.node_types()[static_cast<std::size_t>(type)]; }
    bool size_was_named(int type) const;
};

PlanSettings read_settings(const Catalog& catalog);
// Runs the constraints on every node type and every offer; what is left is in choices.
Context make_context(const Workload& workload, const Catalog& catalog, const PlanOptions& options,
                     bool rdma_for_inference = false);

// Days from one YYYY-MM-DD to another; 0 when either is not such a date.
long days_between(std::string_view from, std::string_view to);
bool is_rdma(const NodeType& node);
bool is_nd(const NodeType& node);
// The node type with the same accelerators and no RDMA network, -1 when there is none.
int twin_without_rdma(const Catalog& catalog, int type);
// The earliest known retirement: from list-skus when given there, else from the catalogue. Empty: none.
std::string retirement_of(const Context& context, int type);

}  // namespace stoker
