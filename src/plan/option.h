// Between search and plan: a Point is what a search found for a node type and a number of nodes, whatever it costs and
// wherever it is; an Option is a Point at an offer, with its money. Candidates, which people see, are made only of the
// few best Options.
#pragma once

#include <vector>

#include "plan/context.h"
#include "plan/plan_note.h"

namespace stoker {

struct Point {
    int choice = -1;  // index into Context::choices
    int nodes = 1;
    ParallelLayout layout;
    ReplicaShape replica;
    int replicas = 0;
    double devices = 0;        // in use; may be a fraction
    double work_s = 0;         // useful seconds without loss; 0: a service
    double service_hours = 0;  // how long a service or notebook is priced for
    int spare_nodes = 0;       // of `nodes`, because one may be lost
    double worth = 1;          // what the money buys, where candidates do not all do the same: requests/s held
    double units_asked = 0;    // services: units per hour of the load that is asked for; `units` are those at full load
    double units = 0;          // amount of work (jobs) or units per hour (services), in `prediction.unit_name`
    double checkpoint_bytes = 0;
    Range speed{1, 1, 1};  // interval factors of its working time
    double set_up = 0;     // training: what setting up a stack that cuts the model is worth, as a share of its time
    double fastest = 0;    // training: the factor at which it would have the best MFU that was published; 0: not known
    double growth = 1;     // of its interval, by how far what was measured lies (sizing/nearness.h)
    bool gang = false;     // all nodes are lost when one is
    // A rule of thumb (CPU first, T4 first, one VM for several models): lower is first, among choices whose score is
    // the same but for tie_share.
    int preference = 0;
    std::string_view rule;    // in words, where this point comes before others for it
    double latency_s = 0;     // what "minimise time" means for a service
    bool sure_alone = false;  // keeps its latency limits surely enough but for what the nearest measured run showed
    Prediction prediction;    // without hours, money and energy
    std::string framework;
    Precision precision = Precision::bf16, kv_precision = Precision::bf16;  // on this device
    bool weight_only = false;
    std::vector<PlanNote> notes;
    Reason refused = Reason::none;  // only a point made for an estimate may be refused
    double have = 0, need = 0;
};

// What speaks against a choice, whatever it costs: one that has less against it comes first. A sum of these, so that
// the worst of two lists decides; 0: nothing.
namespace doubt {
enum : int {
    far = 1,               // outside of the home region, or of the well-known ones
    scarce = 2,            // given out by reservation or agreement
    limits_unsure = 4,     // latency limits, kept with less than objective.confidence
    unmeasured = 8,        // no published row of this kind of work on the device
    by_arrangement = 16,   // more machines on one fabric than can be ordered
    no_gpu = 32,           // a notebook without one
    unlikely_to_fit = 64,  // memory, with less than fit_wanted
    evicted = 128,         // spot, for something that answers and was not said to be interruptible
    wasteful = 256,        // a gang that mostly waits, a fleet of CPU machines that nobody has quota for
    blocked = 512,         // cannot start today: quota
    unpriced = 1024
};
}

struct Option {
    int point = -1, choice = -1, offer = -1, kind = -1, nodes = 1, year = 0, preference = 0;
    int doubts = 0;
    int taste = 0;  // below 0: within tie_share of the best, in the order of the rules of thumb (settle_ties)
    bool priced = true, gpu = false, named = false;  // named: the user listed this size
    bool known_elsewhere = false;                    // see NodeChoice
    bool sure_alone = false;                         // see Point
    bool gang = false;                               // see Point
    Range hours, usd, kwh;
    Range paid_hours;  // of `hours`: not those of a wait for spot capacity
    double latency_s = 0, goodput = 1;
    double worth = 1;   // see Point
    double unease = 1;  // what the money is worth less, far from what was measured or where it is given out (TieRules)
    double set_up = 0;  // see Point: so much more may cost what a plain script does
    int span = 1;       // machines that one replica is divided over
    Pricing pricing = Pricing::on_demand;
    std::string_view name, region;  // of the catalogue and the context, which outlive every option
};

// What a search answers. Points only hold what can run.
struct Search {
    std::vector<Point> points;
    RejectionLog rejected;
    std::int64_t considered = 0, refused = 0;
    std::int64_t simulated = 0;  // decisions of simulated engines: what the search cost
};

// Of its nodes at this offer: those that are had on demand beside spot (where.on_demand_replicas).
int on_demand_nodes(const Context& context, const Point& point, const Offer& offer);
Option price_point(const Context& context, const std::vector<Point>& points, int point, int offer);
// A service at this offer; absent where it is not spot.
std::optional<Candidate::SpotService> spot_service_of(const Context& context, const Point& point, const Offer& offer);
CheckpointPlan checkpoints_of(const Context& context, const Point& point, Pricing pricing, double evictions_per_hour);

double start_s(const Context& context, const NodeType& node);  // before its first step

// Every point at the best allowed offer of each pricing, and at the next best region of it. Refusals go to the log.
struct Expansion {
    std::vector<Option> options;     // within every limit
    std::vector<Option> over_limit;  // deadline or budget missed
    RejectionLog rejected;
    std::int64_t considered = 0, refused = 0;
};
// `forgiving`: small doubts yield to money (forgive_small_doubts). Bounds of a search are taken from what does not.
Expansion expand(const Context& context, const std::vector<Point>& points, bool forgiving = true);

// Ranking. A score is an integer so that equal means equal; lower is better. To add a term: a file in scores/ and a
// case in score().
std::int64_t score_cost(const Option& option);
std::int64_t score_time(const Option& option);
std::int64_t score_energy(const Option& option);
std::int64_t score(const Option& option, Minimize minimize);
// What the order lets pass for the same, and what time is worth where cost is minimised.
struct TieRules {
    double share = 0;          // rules of thumb decide between scores this close
    double most_for_time = 0;  // a job on no more machines than the cheapest may cost so much more than it, as a share,
                               // where that is worth its time:
    double time_exponent = 0;  // cost x hours ^ exponent is least. 0.2: a percent of money for five percent of time
    double nodes_exponent = 0;  // and cost x nodes ^ exponent: fewer machines are less to get and to run
    // Where time is minimised, what takes so much longer than the fastest, as a share and in seconds of an answer, may
    // come first where (time + unnoticed) x cost ^ exponent is least.
    double most_for_money = 0, money_exponent = 0, unnoticed_s = 0;
    // Replicas that one machine holds may cost so much more than the cheapest, as a share, where that one divides each
    // over several machines: there is less to run, and one machine lost takes one replica.
    double most_for_whole = 0;
    // What was measured nearer may cost so much more than the cheapest, as a share, where cost x growth of the interval
    // ^ exponent is least: the far end is what one may have to pay.
    double most_for_evidence = 0;
};
TieRules tie_rules(const PlanSettings& settings);
// Lets time and then rules of thumb decide between the options that are nearly as good as the best.
void settle_ties(std::vector<Option>& options, Minimize minimize, const TieRules& rules);
// Being far away or rarely to be had does not outweigh any sum: it is forgiven where everything without it costs more
// than so many times as much, and cost is what counts. So are limits that only the nearest measured run makes unsure,
// which others may not have near them; and not having been measured at this kind of work, of a device
// that is known from another, where everything else costs more than the square of it.
void forgive_small_doubts(std::vector<Option>& options, Minimize minimize, double most_factor);
// What speaks against a point at an offer: a sum of doubt::*.
int doubts_of(const Context& context, const Point& point, const Offer& offer);
double network_share(const Prediction& prediction);  // of the step that waits for the network
double waiting_share(const Prediction& prediction);  // the same, and in the bubble of the pipeline
std::string doubt_text(const Context& context, const Point& point, const Offer& offer);  // the worst, with its numbers

// The written order: doubts, ties settled by rules of thumb, objective, and of equals cost, time, newer accelerator,
// fewer nodes, name, region, pricing.
bool ranks_before(const Option& a, const Option& b, Minimize minimize);

// The best of every (kind of machine, pricing), best first; and the winner's next dearer region where it belongs.
std::vector<Option> best_of_groups(std::vector<Option> options, Minimize minimize);
// What a person gets to see: groups that are worth a thought beside the winner, then the winner's sister sizes.
std::vector<Option> worth_showing(const std::vector<Option>& groups, std::vector<Option> options, Minimize minimize,
                                  std::size_t top);
// Nothing is both faster and cheaper: fastest first.
std::vector<Option> pareto_front(std::vector<Option> options);

// The data disks of the chosen nodes: what, how fast, what they cost beside the VMs.
std::string disks_text(const Context& context, const Candidate& candidate);
Candidate make_candidate(const Context& context, const Search& search, const Option& option);
std::string why_not_first(const Context& context, const std::vector<Point>& points, const Option& winner,
                          const Option& other, Minimize minimize);
std::string refusal_text(Reason reason, double have, double need);

}  // namespace stoker
