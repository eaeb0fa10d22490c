// Failures, checkpoints, goodput, energy, money. Pure arithmetic; each function names its source.
#pragma once

#include "base/units.h"

namespace stoker {

struct FailureModel {
    double failures_per_gpu_hour = 2.0e-5;  // between two clusters of Meta, arXiv 2410.21680: 1.2e-5, 3.4e-5
    double evictions_per_node_hour = 0;     // spot
    double eviction_gang_exponent = 1;   // nodes of one size and zone go together: n of them lose one n^this as often
    double wait_after_eviction_s = 0;    // until capacity is there again; nothing is paid meanwhile
    double restart_s = 600;              // detect, reschedule, load, warm up
    double least_interval_s = 1;         // between checkpoints: small ones are cheap, and a queue of them is not
    double snapshot_bytes_per_s = 10e9;  // device to host memory while the step is halted, each device
};

struct CheckpointPlan {
    double bytes = 0, write_s = 0, stall_s = 0;
    double interval_s = 0;  // 0: none before the end, whose result is the only one
    double mtbf_s = 0;
    double goodput = 1;            // share of time that is useful work
    double expected_failures = 0;  // over the run
    double expected_evictions = 0;
    double lost_s_per_failure = 0;
    double waiting_s = 0;  // over the run, for capacity after evictions; not part of goodput
};
// An asynchronous checkpoint stalls only for the copy into host memory; what was computed while it
// is written is lost as well when a failure comes, and the next one waits until it is written. Daly 2006, eq. 37:
// optimal interval; exact goodput with exponential failures. interval_s > 0 pins the interval.
CheckpointPlan plan_checkpoints(const FailureModel& failures, double gpus, double nodes, double checkpoint_bytes,
                                double write_bytes_per_s, bool asynchronous, double work_s, double interval_s = 0);
double daly_interval_s(double stall_s, double mtbf_s);
double young_interval_s(double stall_s, double mtbf_s);
double exact_goodput(double stall_s, double interval_s, double restart_s, double mtbf_s);

// The device draws idle + u (power - idle), the host its share per device on top; the building takes PUE times that.
// kWh of `devices` for `seconds` at `utilisation`, with host power and PUE.
double energy_kwh(double devices, double device_power_w, double idle_power_w, double utilisation, double host_power_w,
                  double seconds, double pue);

// Owning against renting (R64). capex, power_w and the rent are of one node; staff and other costs are of all of them.
struct OwnSpec {
    Usd capex;
    double years = 4, power_w = 0, usd_per_kwh = 0.12, pue = 1.4, staff_usd_per_year = 0, other_usd_per_year = 0,
           nodes = 1;
};
struct OwnVerdict {
    double break_even_months = 0;  // infinity: not within its life
    double break_even_utilisation =
        0;  // share of hours used at which both cost the same over `years`; > 1 (or infinity): never
    Usd own_total, rent_total;  // over `years` at `utilisation`
    double own_usd_per_used_hour = 0;
};
OwnVerdict own_or_rent(const OwnSpec& own, Usd rent_per_hour, double utilisation);

// Young 1974 with Daly's correction, at least ten times the writing.
// 0: no failures are expected, so none is needed.
double suggested_interval_s(double write_s, double mtbf_s);

}  // namespace stoker
