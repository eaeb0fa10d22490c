// What speaks against a choice whatever it costs: the plan puts what has less of it first, and says what the other
// would have saved.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/availability.h"
#include "plan/evidence.h"
#include "plan/quota.h"

namespace stoker {
namespace {

bool was_pinned(const Context& context, const NodeChoice& choice) {
    return context.size_was_named(choice.type) || choice.node->cloud == "on-prem" ||
           choice.node->cloud == "this-machine";
}

double fleet_vcpus(const NodeChoice& choice, const Point& point) {
    return choice.accelerator == nullptr ? static_cast<double>(choice.node->vcpus) * point.nodes : 0;
}

bool waits(const Context& context, const Point& point) {
    return point.gang && point.nodes > 1 && waiting_share(point.prediction) > context.settings.network_bound_share;
}

}  // namespace

double network_share(const Prediction& prediction) {
    double waiting = 0;
    for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm, TimeTerm::pipeline_comm,
                          TimeTerm::gradient_comm, TimeTerm::gather_comm})
        waiting += prediction.seconds[static_cast<std::size_t>(term)];
    return prediction.step_s.mid > 0 ? waiting / prediction.step_s.mid : 0;
}

double waiting_share(const Prediction& prediction) {
    const double bubble = prediction.seconds[static_cast<std::size_t>(TimeTerm::bubble)];
    return network_share(prediction) + (prediction.step_s.mid > 0 ? bubble / prediction.step_s.mid : 0);
}

int doubts_of(const Context& context, const Point& point, const Offer& offer) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const PlanSettings& settings = context.settings;
    int doubts = 0;
    if (!offer.priced) doubts |= doubt::unpriced;
    if (!context.options.usages.empty() && quota_shortfall(context, choice.type, offer, point.nodes))
        doubts |= doubt::blocked;
    if (!was_pinned(context, choice) &&
        (waits(context, point) || point.layout.offload || fleet_vcpus(choice, point) > settings.cpu_fleet_vcpus))
        doubts |= doubt::wasteful;
    if (offer.pricing == Pricing::spot && point.work_s <= 0 && context.workload.at.count("interruptible") == 0 &&
        on_demand_nodes(context, point, offer) == 0)
        doubts |= doubt::evicted;
    const double keeps = point.prediction.latency_chance;
    if (keeps >= 0 && keeps < settings.confidence) doubts |= doubt::limits_unsure;
    if (point.prediction.fit_probability < settings.fit_wanted - 1e-9) doubts |= doubt::unlikely_to_fit;
    const auto& needs = context.workload.needs;
    const bool only_jupyter = !needs.empty() && std::all_of(needs.begin(), needs.end(), [](const std::string& need) {
        return equals_ignore_case(need, "jupyter");
    });
    if (context.workload.kind == WorkloadKind::notebook && choice.accelerator == nullptr && !only_jupyter &&
        !was_pinned(context, choice))
        doubts |= doubt::no_gpu;
    if (point.gang && choice.node->cloud == "azure" && is_rdma(*choice.node) &&
        point.nodes > settings.placement_group_on_request)
        doubts |= doubt::by_arrangement;
    if (lacks_evidence(choice, point.replica)) doubts |= doubt::unmeasured;
    // Who has to arrange for the fabric asks the same people for the machines, and does not pay a multiple not to.
    const bool asks_anyway =
        (doubts & doubt::by_arrangement) != 0 && context.workload.objective.minimize == Minimize::cost;
    if (choice.scarce && !asks_anyway) doubts |= doubt::scarce;
    if (offer.far > 0) doubts |= doubt::far;
    return doubts;
}

std::string doubt_text(const Context& context, const Point& point, const Offer& offer) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const int doubts = doubts_of(context, point, offer);
    if (doubts & doubt::unpriced) return "no price is known";
    if (doubts & doubt::blocked)
        return "cannot start today: quota of " + quota_shortfall(context, choice.type, offer, point.nodes)->text();
    if (doubts & doubt::wasteful) {
        if (waits(context, point)) {
            const double network = network_share(point.prediction), all = waiting_share(point.prediction);
            if (network >= 0.9 * all) return fmt::format("{:.0f} % of each step waits for the network", 100 * network);
            if (network <= 0.1 * all)
                return fmt::format("{:.0f} % of each step is the bubble of the pipeline", 100 * (all - network));
            return fmt::format("{:.0f} % of each step waits: pipeline bubble {:.0f} %, network {:.0f} %", 100 * all,
                               100 * (all - network), 100 * network);
        }
        if (point.layout.offload) return "optimizer states in host memory: most of the step waits for PCIe";
        return fmt::format("{:.0f} vCPUs of quota", fleet_vcpus(choice, point));
    }
    if (doubts & doubt::evicted) return "spot, and the file does not say interruptible: true";
    if (doubts & doubt::unlikely_to_fit)
        return fmt::format("only {:.0f} % likely to fit in memory", 100 * point.prediction.fit_probability);
    if (doubts & doubt::no_gpu) return "no GPU";
    if (doubts & doubt::by_arrangement)
        return fmt::format("{} nodes need several scale sets on one fabric, which Azure only does by arrangement",
                           point.nodes);
    if (doubts & doubt::unmeasured) {
        if (context.workload.kind == WorkloadKind::simulation)
            return fmt::format("most solvers and renderers need CUDA, which {} does not have",
                               choice.accelerator->name);
        const std::string_view what = evidence_words(evidence_kind(context.workload));
        const std::string device = choice.accelerator != nullptr ? choice.accelerator->name : "CPU cores";
        if (!choice.doubted) return fmt::format("no published serving of one LLM on several {}", device);
        if (choice.measured_rows < 1) return fmt::format("no published {} on {}", what, device);
        return fmt::format("only {:.0f} published {}{} on {}", choice.measured_rows, what,
                           choice.measured_rows > 1.5 ? "s" : "", device);
    }
    if (doubts & doubt::limits_unsure)
        return fmt::format("{:.0f} % to keep the latency limits",
                           std::floor(100 * point.prediction.latency_chance + 1e-9));
    if (doubts & doubt::scarce) {
        const Scarce* known = scarce(choice.node->cloud, choice.accelerator->name);
        return fmt::format("hard to get on demand: {}", known != nullptr ? known->how : "by reservation");
    }
    if (doubts & doubt::far) {
        const std::string home = home_of(context.workload, context.options);
        return home.empty() ? fmt::format("{} is not among the well-known regions", offer.region)
                            : fmt::format("{} is far from {}", offer.region, home);
    }
    return "";
}

}  // namespace stoker
