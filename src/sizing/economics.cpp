#include "sizing/economics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSecondsPerHour = 3600, kHoursPerMonth = 730.5, kHoursPerYear = 8766;
// An assumption: a GPU server that waits draws about 30 % of its full power (70 of 700 W per GPU, but fans and host go
// on).
constexpr double kIdlePowerShare = 0.3;

// Expected time from the start of a segment to the failure that ends it, given that one does: M - L/(e^(L/M) - 1),
// nearly L/2.
double lost_before_failure(double segment_s, double mtbf_s) {
    const double x = segment_s / mtbf_s;
    if (x < 1e-6) return segment_s / 2;
    if (x > 700) return mtbf_s;
    return mtbf_s - segment_s / std::expm1(x);
}

}  // namespace

double young_interval_s(double stall_s, double mtbf_s) {
    return std::sqrt(2 * stall_s * mtbf_s);
}

double daly_interval_s(double stall_s, double mtbf_s) {
    if (!std::isfinite(mtbf_s)) return kInfinity;
    if (stall_s >= 2 * mtbf_s) return mtbf_s;
    const double ratio = stall_s / (2 * mtbf_s);
    return young_interval_s(stall_s, mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall_s;
}

double exact_goodput(double stall_s, double interval_s, double restart_s, double mtbf_s) {
    if (interval_s <= 0) return 0;
    if (!std::isfinite(mtbf_s)) return interval_s / (interval_s + stall_s);
    const double exponent = (interval_s + stall_s) / mtbf_s;
    if (exponent > 700 || restart_s / mtbf_s > 700) return 0;
    return interval_s / (mtbf_s * std::exp(restart_s / mtbf_s) * std::expm1(exponent));
}

CheckpointPlan plan_checkpoints(const FailureModel& failures, double gpus, double nodes, double checkpoint_bytes,
                                double write_bytes_per_s, bool asynchronous, double work_s, double interval_s) {
    CheckpointPlan plan;
    plan.bytes = checkpoint_bytes;
    plan.write_s = write_bytes_per_s > 0 ? checkpoint_bytes / write_bytes_per_s : 0;
    const double snapshot_s = checkpoint_bytes / std::max(gpus, 1.0) / failures.snapshot_bytes_per_s;
    plan.stall_s = asynchronous ? std::min(snapshot_s, plan.write_s) : plan.write_s;

    const double failures_per_s = failures.failures_per_gpu_hour * gpus / kSecondsPerHour;
    const double evictions_per_s = failures.evictions_per_node_hour *
                                   std::pow(std::max(nodes, 1.0), failures.eviction_gang_exponent) / kSecondsPerHour;
    const double rate = failures_per_s + evictions_per_s;
    plan.mtbf_s = rate > 0 ? 1 / rate : kInfinity;
    if (work_s <= 0) return plan;

    const double behind_s = asynchronous ? plan.write_s : 0;
    const double restart_s = failures.restart_s + behind_s;
    const auto goodput = [&](double interval) { return exact_goodput(plan.stall_s, interval, restart_s, plan.mtbf_s); };
    if (interval_s > 0) {
        plan.interval_s = std::min(interval_s, work_s);
        plan.goodput = goodput(plan.interval_s);
    } else {
        // With free checkpoints the formula would say to do nothing else.
        double best = std::max(failures.least_interval_s, daly_interval_s(plan.stall_s, plan.mtbf_s));
        if (asynchronous) best = std::max(best, plan.write_s);
        // A run is cut into whole pieces. A short one has its result as the only checkpoint.
        const double pieces = std::max(1.0, std::floor(work_s / best));
        plan.interval_s = work_s / pieces;
        plan.goodput = goodput(plan.interval_s);
        if (pieces < 2 && std::isfinite(best)) {
            const double halves = work_s / 2 >= failures.least_interval_s ? goodput(work_s / 2) : 0;
            if (halves > plan.goodput) plan.interval_s = work_s / 2, plan.goodput = halves;
        }
        if (plan.interval_s >= work_s) plan.interval_s = 0;
    }
    if (rate <= 0) return plan;
    plan.lost_s_per_failure =
        lost_before_failure((plan.interval_s > 0 ? plan.interval_s : work_s) + plan.stall_s, plan.mtbf_s) + restart_s;
    const double wall_s = plan.goodput > 0 ? work_s / plan.goodput : kInfinity;
    plan.expected_failures = failures_per_s > 0 ? failures_per_s * wall_s : 0;
    plan.expected_evictions = evictions_per_s > 0 ? evictions_per_s * wall_s : 0;
    constexpr double kLeastGoodput = 1e-6;  // what never ends waits for ever, and has to be a number all the same
    plan.waiting_s = evictions_per_s * work_s / std::max(plan.goodput, kLeastGoodput) * failures.wait_after_eviction_s;
    return plan;
}

double energy_kwh(double devices, double device_power_w, double idle_power_w, double utilisation, double host_power_w,
                  double seconds, double pue) {
    const double device_w =
        idle_power_w + std::clamp(utilisation, 0.0, 1.0) * std::max(0.0, device_power_w - idle_power_w);
    return devices * (device_w + host_power_w) * pue * seconds / kSecondsPerHour / 1000;
}

OwnVerdict own_or_rent(const OwnSpec& own, Usd rent_per_hour, double utilisation) {
    const double nodes = std::max(own.nodes, 0.0), u = std::clamp(utilisation, 0.0, 1.0);
    const double hours = own.years * kHoursPerYear;
    const double capex = own.capex.dollars() * nodes;
    const double fixed_per_hour = (own.staff_usd_per_year + own.other_usd_per_year) / kHoursPerYear;
    const double power_per_hour = own.power_w / 1000 * own.pue * own.usd_per_kwh * nodes;  // at full load
    const double rent = rent_per_hour.dollars() * nodes;
    // Per hour of the calendar: what stays whatever the load, and what an hour of use adds.
    const double idle_cost = fixed_per_hour + kIdlePowerShare * power_per_hour;
    const double used_cost = (1 - kIdlePowerShare) * power_per_hour;

    OwnVerdict verdict;
    verdict.own_total = Usd::from_double(capex + hours * (idle_cost + u * used_cost));
    verdict.rent_total = Usd::from_double(hours * u * rent);
    const double saved_per_hour = u * rent - idle_cost - u * used_cost;
    const double months = saved_per_hour > 0 ? capex / saved_per_hour / kHoursPerMonth : kInfinity;
    verdict.break_even_months = months <= own.years * 12 ? months : kInfinity;
    verdict.break_even_utilisation =
        rent > used_cost && hours > 0 ? (capex / hours + idle_cost) / (rent - used_cost) : kInfinity;
    const double used_node_hours = hours * u * nodes;
    verdict.own_usd_per_used_hour = used_node_hours > 0 ? verdict.own_total.dollars() / used_node_hours : kInfinity;
    return verdict;
}

double suggested_interval_s(double write_s, double mtbf_s) {
    if (!(mtbf_s > 0) || !(write_s > 0)) return 0;
    const double interval =
        write_s > mtbf_s / 10 ? daly_interval_s(write_s, mtbf_s) : young_interval_s(write_s, mtbf_s);
    return std::max(interval, 10 * write_s);
}

}  // namespace stoker
