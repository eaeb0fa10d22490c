// The plan in one sentence, and why it is so.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/pipeline.h"
#include "plan/sized_by.h"
#include "sizing/disk.h"

namespace stoker {
namespace {

std::string sum(double usd) {
    return format_usd(Usd::from_double(usd));
}

std::string objective_text(const Workload& workload) {
    std::string text;
    if (workload.objective.deadline) text += " within " + format_seconds(*workload.objective.deadline);
    if (workload.objective.budget)
        text += fmt::format("{} for at most {}", text.empty() ? "" : " and", asked_usd(*workload.objective.budget));
    switch (workload.objective.minimize) {
        case Minimize::cost: return text + (workload.asks_for_capacity() ? ", most for the money" : ", cheapest");
        case Minimize::time:
            return text + (workload.kind == WorkloadKind::inference ? ", quickest answers" : ", fastest");
        case Minimize::energy: return text + ", least energy";
    }
    return text;
}

std::string nodes_text(const Context& context, const Candidate& c) {
    std::string text = fmt::format("{} x {}", c.nodes, context.node(c.node_type).name);
    if (!c.region.empty()) text += ", " + c.region;
    if (c.pricing == Pricing::spot) text += ", spot";
    if (c.pricing == Pricing::reserved_1y || c.pricing == Pricing::reserved_3y)
        text += fmt::format(", {}", to_string(c.pricing));
    return text;
}

// Weights that one GPU would hold are divided for what is beside them: requests at once, and their speed.
std::string_view why_spanned(const Candidate& c) {
    const Prediction& p = c.prediction;
    const double weights = p.bytes[static_cast<std::size_t>(MemoryTerm::weights)] * c.replica.gpus();
    return weights < 0.9 * p.memory_capacity_bytes
               ? "because one would hold its weights, and not the requests at once as fast as is asked (too-slow)"
               : "because the model is too big for one (too-big)";
}

// The three reasons to spread work over machines, each with its strategy.
std::string why_distributed(const Context& context, const Plan& plan) {
    const Workload& workload = context.workload;
    const Candidate& c = plan.candidates.front();
    if (is_training(workload.kind)) {
        auto setup = make_training_setup(workload, context.catalog, make_device(context.catalog, c.node_type));
        if (!setup || c.layout.gpus() <= 1) return "";
        const double need = memory_lower_bound(*setup, 1);
        if (need > setup->device.memory_bytes) {
            const bool split = c.layout.tensor > 1 || c.layout.pipeline > 1;
            return fmt::format(
                "distributed because the model is too big for one GPU (too-big): at least {} of states, {} usable; so "
                "{}",
                format_bytes_gib(Bytes(need)), format_bytes_gib(Bytes(setup->device.memory_bytes)),
                split ? "model parallelism (tensor inside layers, pipeline across layers) with data parallelism"
                      : "its states are sharded over all GPUs (FSDP/ZeRO)");
        }
        // Alone it waits for nobody.
        const double alone_s =
            c.prediction.hours.mid * 3600 * c.layout.gpus() * std::max(0.0, 1 - network_share(c.prediction));
        const std::string_view device = context.node(c.node_type).has_gpu() ? "GPU" : "machine";
        const auto& deadline = workload.objective.deadline;
        const std::string takes = fmt::format("one {} takes about {}{}", device, format_seconds(Seconds(alone_s)),
                                              !deadline               ? ""
                                              : alone_s > deadline->v ? ", past the deadline"
                                                                      : ", which the deadline would allow");
        return fmt::format("distributed for speed (too-slow): {}; so data parallelism over {} {}s", takes,
                           c.layout.gpus(), device);
    }
    if (c.replicas > 1) {
        const std::string spare = spare_text(c, workload.models_served);
        const double rate = c.prediction.knee_requests_per_s;
        const std::string one =
            fmt::format("one {} {}{}", workload.kind == WorkloadKind::inference ? "sustains" : "does",
                        rate < 999.5 ? rate_text(rate, "request", 3) : format_thousands(rate) + " requests/s",
                        workload.objective.latency.any() ? " within the limits" : "");
        std::string text;
        if (carrying_replicas(c) <= workload.models_served)
            text = fmt::format("{}: {}", spare.empty() ? "several replicas" : spare, one);
        else
            text = fmt::format("several replicas because of the number of requests (too-many-requests): {}{}", one,
                               spare.empty() ? "" : ", and one node may be lost");
        if (c.replica.gpus() > 1) text += fmt::format("; each spans {} GPUs {}", c.replica.gpus(), why_spanned(c));
        return text;
    }
    if (c.replica.gpus() > 1)
        return fmt::format("the replica spans {} GPUs {}: tensor parallelism", c.replica.gpus(), why_spanned(c));
    return "";
}

std::string bound_text(const Context& context, const Candidate& c) {
    const Prediction& p = c.prediction;
    if (is_training(context.workload.kind)) {
        double network = 0;
        for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm,
                              TimeTerm::pipeline_comm, TimeTerm::gradient_comm, TimeTerm::gather_comm})
            network += p.seconds[static_cast<std::size_t>(term)];
        std::string text = fmt::format("bound by {}: {:.0f} % of the step waits for the network",
                                       to_string(p.bottleneck), p.step_s.mid > 0 ? 100 * network / p.step_s.mid : 0);
        if (p.gradient_bytes > 0)
            text += fmt::format("; each rank sends {} of gradients and weights a step",
                                format_bytes_gib(Bytes(p.gradient_bytes)));
        if (p.tensor_bytes > 0)
            text += fmt::format(", {} for tensor parallelism", format_bytes_gib(Bytes(p.tensor_bytes)));
        if (p.pipeline_bytes > 0)
            text += fmt::format(", {} for the pipeline", format_bytes_gib(Bytes(p.pipeline_bytes)));
        return text;
    }
    const bool decodes =
        context.workload.model.kind == ModelKind::decoder || context.workload.model.kind == ModelKind::encoder_decoder;
    if (context.workload.kind == WorkloadKind::inference && decodes)
        return fmt::format("prefill is bound by {}, decode by {} (inference as a whole is not simply compute-bound)",
                           to_string(p.prefill_bound), to_string(p.bottleneck));
    return p.bottleneck == Bottleneck::cpu ? "bound by the processors"
                                           : fmt::format("bound by {}", to_string(p.bottleneck));
}

// How surely the limits are kept.
std::string limits_text(const Context& context, const Candidate& c) {
    const ObjectiveSpec& objective = context.workload.objective;
    const Prediction& p = c.prediction;
    std::string text;
    auto add = [&](std::string_view what, std::string limit, double chance) {
        text += fmt::format("{}the {} of {} holds with {:.0f} % probability", text.empty() ? "" : ", ", what, limit,
                            std::min(99.0, std::floor(100 * chance + 1e-9)));  // no model is surer of itself
    };
    const bool service = p.latency.requests_per_s > 0;
    if (!c.measured && context.node(c.node_type).has_gpu()) {
        // A percentage would be made up.
        if (objective.deadline || objective.budget)
            text = "no probability is given for the limits: too few runs were measured on this device";
        return text;
    }
    if (objective.deadline && !service)
        add("deadline", format_seconds(*objective.deadline), chance_below(p.hours, objective.deadline->v / 3600));
    if (objective.budget && c.priced)
        add("budget", asked_usd(*objective.budget),
            chance_below(budgeted_usd(context, p.usd, service ? p.hours.mid : 0), objective.budget->dollars()));
    if (!text.empty())
        text += fmt::format(" (objective.confidence asks for {:.0f} %)", 100 * context.settings.confidence_wanted);
    return text;
}

// Regions that are as good, so that a full one is no obstacle.
std::string same_price_text(const Context& context, const Candidate& c) {
    constexpr std::size_t kNamed = 4;
    std::vector<std::string> regions;
    for (const NodeChoice& choice : context.choices)
        if (choice.type == c.node_type)
            for (const Offer& offer : choice.offers)
                if (offer.priced && offer.pricing == c.pricing && offer.region != c.region &&
                    std::abs(offer.usd_per_hour - c.node_per_hour.dollars()) < 1e-6)
                    regions.push_back(offer.region);
    if (regions.empty()) return "";
    const std::size_t more = regions.size() > kNamed ? regions.size() - kNamed : 0;
    regions.resize(regions.size() - more);
    return fmt::format("at the same price in {}{}", join(regions, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::string verdict_of(const Context& context, const Plan& plan) {
    const std::string task = context.workload.title() + objective_text(context.workload);
    if (plan.candidates.empty()) return task + ": not possible as asked.";
    const Candidate& c = plan.candidates.front();
    const Prediction& p = c.prediction;
    std::string text = fmt::format("{}: {}", task, nodes_text(context, c));
    const bool service = p.latency.requests_per_s > 0 || context.workload.kind == WorkloadKind::notebook;
    if (service) {
        const double per_hour = p.usd.mid / std::max(p.hours.mid, 1e-9);
        if (c.replicas > 0) text += fmt::format(", {} replica{}", c.replicas, c.replicas == 1 ? "" : "s");
        if (context.workload.asks_for_capacity())
            text += fmt::format(", hold{} {:.3g} requests/s within the limits", c.replicas == 1 ? "s" : "",
                                p.requests_per_s);
        text += c.priced ? fmt::format(", {} per hour", format_usd(Usd::from_double(per_hour))) : ", unpriced";
        if (p.hours.mid > 1.001 && c.priced)
            text += fmt::format(", {} for {}", format_usd(Usd::from_double(p.usd.mid)),
                                format_seconds(Seconds(p.hours.mid * 3600)));
        return text + ".";
    }
    text += fmt::format(", {} ({} to {})", format_seconds(Seconds(p.hours.mid * 3600)),
                        format_seconds(Seconds(p.hours.low * 3600)), format_seconds(Seconds(p.hours.high * 3600)));
    if (c.priced)
        text += fmt::format(", {} ({} to {})", sum(p.usd.mid), sum(p.usd.low), sum(p.usd.high));
    else
        text += ", unpriced";
    return text + ".";
}

std::vector<std::string> reasons_of(const Context& context, const Plan& plan) {
    std::vector<std::string> reasons;
    const Candidate& c = plan.candidates.front();
    const NodeType& node = context.node(c.node_type);
    if (plan.candidates.size() > 1) {
        const Candidate* other = nullptr;
        for (const Candidate& candidate : plan.candidates)
            if (other == nullptr && candidate.node_type != c.node_type) other = &candidate;
        if (other != nullptr)
            reasons.push_back(fmt::format("chosen before {} x {} ({})", other->nodes,
                                          context.node(other->node_type).name, other->why_not_first));
    }
    if (std::string text = limits_text(context, c); !text.empty()) reasons.push_back(text);
    if (std::string text = same_price_text(context, c); !text.empty()) reasons.push_back(text);
    if (std::string text = why_distributed(context, plan); !text.empty()) reasons.push_back(text);
    if (context.workload.kind != WorkloadKind::notebook) reasons.push_back(bound_text(context, c));
    for (const PlanNote& note : c.notes)
        if (note.kind == NoteKind::weight_only) reasons.push_back(note.text);
    for (const PlanNote& note : c.notes)
        if (note.kind == NoteKind::simpler) reasons.push_back(note.text);
    if (const std::string_view limit = sized_by_limit(c); !limit.empty()) reasons.emplace_back(limit);
    if (context.workload.models_served > 1)
        for (const PlanNote& note : c.notes)
            if (note.kind == NoteKind::packing) reasons.push_back(note.text);
    if (is_rdma(node) && is_training(context.workload.kind))
        reasons.push_back(fmt::format("{} {:.0f} Gb/s per GPU{}, {:.1f} Tb/s per node", node.rdma_name(),
                                      node.rdma_gbps_per_gpu, node.nics > 1 ? fmt::format(", {} NICs", node.nics) : "",
                                      node.rdma_gbps_per_node / 1000));
    if (const double used = c.prediction.utilisation;
        used > 0 && c.priced && (is_training(context.workload.kind) || serves(context.workload))) {
        const double price = c.node_per_hour.dollars() / std::max(node.has_gpu() ? node.accelerators : 1.0, 1e-9);
        reasons.push_back(
            fmt::format("utilisation {:.0f} %: an hour of useful work of one {} costs {}, its price is {}", 100 * used,
                        node.has_gpu() ? "GPU" : "node", format_usd(Usd::from_double(price / used)),
                        format_usd(Usd::from_double(price))));
    }
    // A machine that waits most of the time is dear by the token, whatever it would be when busy.
    if (const Prediction& p = c.prediction; c.priced && p.usd_per_unit_asked.mid > 1.01 * p.usd_per_unit.mid)
        reasons.push_back(fmt::format("{} per {} at the load you asked for, {} at full load",
                                      format_usd(Usd::from_double(p.usd_per_unit_asked.mid)), p.unit_name,
                                      format_usd(Usd::from_double(p.usd_per_unit.mid))));
    if (disk_was_asked_for(context.workload.disk) && node.cloud == "azure") reasons.push_back(disks_text(context, c));
    if (node.accelerators >= 1 && node.vcpus > 0)
        reasons.push_back(fmt::format("{:.0f} vCPUs and {} of RAM for each GPU",
                                      node.vcpus / std::max(node.accelerators, 1e-9),
                                      format_bytes_gib(node.memory * (1 / std::max(node.accelerators, 1.0)))));
    return reasons;
}

}  // namespace stoker
