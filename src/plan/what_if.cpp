// What would change the choice. Layout evaluations are shared with the plan wherever the change leaves layouts as they
// are.
#include <algorithm>

#include <fmt/format.h>

#include "plan/pipeline.h"

namespace stoker {

std::string outcome_text(const Context& context, const Option& option) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(option.choice)];
    return fmt::format("{} x {}{}", option.nodes, choice.node->name,
                       option.pricing == Pricing::on_demand || option.pricing == Pricing::owned
                           ? ""
                           : fmt::format(", {}", to_string(option.pricing)));
}

namespace {

struct Asker {
    const Context& base;
    const Option& winner;
    std::vector<PlanWhatIf>& out;

    std::string_view name() const { return base.choices[static_cast<std::size_t>(winner.choice)].node->name; }

    void tell(std::string change, const Context& changed, const std::vector<Option>& groups) {
        if (groups.empty()) {
            out.push_back({std::move(change), "nothing is feasible", true});
            return;
        }
        const Option& best = groups.front();
        const bool same = best.name == winner.name && best.nodes == winner.nodes && best.pricing == winner.pricing;
        std::string text = same ? "the same choice" : outcome_text(changed, best);
        if (winner.latency_s > 0)
            text += best.priced
                        ? fmt::format(", {} per hour",
                                      format_usd(Usd::from_double(best.usd.mid / std::max(best.hours.mid, 1e-9))))
                        : "";
        else
            text += fmt::format(", {}{}", format_seconds(Seconds(best.hours.mid * 3600)),
                                best.priced ? ", " + format_usd(Usd::from_double(best.usd.mid)) : "");
        out.push_back({std::move(change), std::move(text), !same, best.priced ? best.usd.mid : 0});
    }
    void ask(std::string change, Context& changed, std::shared_ptr<LayoutCache> cache) {
        auto search = run_search(changed, {.quick = true, .cache = std::move(cache)});
        if (!search) return;
        tell(std::move(change), changed, rank(changed, search->points).groups);
    }
};

void dearer_accelerator(Asker& asker, const Search& search, const std::shared_ptr<LayoutCache>& cache) {
    const NodeChoice& choice = asker.base.choices[static_cast<std::size_t>(asker.winner.choice)];
    constexpr double kDearer = 1.3;
    Context changed = asker.base;
    for (NodeChoice& other : changed.choices) {
        const bool same =
            choice.accelerator != nullptr ? other.accelerator == choice.accelerator : other.type == choice.type;
        if (!same) continue;
        for (Offer& offer : other.offers) offer.usd_per_hour *= kDearer, offer.low *= kDearer, offer.high *= kDearer;
    }
    const std::string what =
        fmt::format("price of {} x {}",
                    choice.accelerator != nullptr ? choice.accelerator->name : short_size(choice.node->name), kDearer);
    if (is_training(changed.workload.kind))
        asker.ask(what, changed, cache);
    else
        asker.tell(what, changed, rank(changed, search.points).groups);
}

}  // namespace

std::vector<PlanWhatIf> what_ifs(const Context& context, const Search& search, const Option& winner,
                                 std::shared_ptr<LayoutCache> cache) {
    std::vector<PlanWhatIf> out;
    Asker asker{context, winner, out};
    PlanOptions quiet = context.options;
    quiet.progress = {};
    const Workload& workload = context.workload;
    if (winner.priced) dearer_accelerator(asker, search, cache);

    auto with = [&](std::string change, auto&& edit, std::shared_ptr<LayoutCache> shared) {
        Workload changed_workload = workload;
        edit(changed_workload);
        Context changed = make_context(changed_workload, context.catalog, quiet);
        asker.ask(std::move(change), changed, std::move(shared));
    };
    if (winner.latency_s <= 0 && workload.kind != WorkloadKind::notebook) {
        const double base = workload.objective.deadline ? workload.objective.deadline->v : winner.hours.mid * 3600;
        with(
            fmt::format("deadline {}{}", format_seconds(Seconds(base / 2)),
                        workload.objective.deadline ? "" : " (half of today's time)"),
            [&](Workload& w) { w.objective.deadline = Seconds(base / 2); }, cache);
    }
    if (workload.where.spot == SpotUse::never && winner.pricing != Pricing::owned && workload.interruptible &&
        is_training(workload.kind))
        with(
            "spot allowed", [](Workload& w) { w.where.spot = SpotUse::allowed; }, cache);
    else if (winner.pricing == Pricing::spot)
        with(
            "no spot", [](Workload& w) { w.where.spot = SpotUse::never; }, cache);

    const Accelerator* chosen = context.choices[static_cast<std::size_t>(winner.choice)].accelerator;
    if (!workload.where.accelerators.empty() && chosen != nullptr && chosen->vendor != "NVIDIA")
        with(
            "accelerators: NVIDIA, the portable choice", [](Workload& w) { w.where.accelerators = {"nvidia"}; }, cache);

    const Precision now = search.points[static_cast<std::size_t>(winner.point)].precision;
    const bool has_precision = is_training(workload.kind) || workload.kind == WorkloadKind::inference ||
                               workload.kind == WorkloadKind::batch_inference;
    auto precision = [&](Precision to) {
        if (to == now) return;
        with(
            fmt::format("precision {} -> {}{}", to_string(now), to_string(to),
                        to == Precision::fp8 ? " (test the answers)" : ""),
            [&](Workload& w) { fix_precision(w, to); }, make_layout_cache());
    };
    if (has_precision && workload.model_known) {
        if (is_training(workload.kind)) precision(Precision::fp32);
        const NodeChoice& choice = context.choices[static_cast<std::size_t>(winner.choice)];
        const bool fp8 = choice.accelerator != nullptr && choice.accelerator->has(Precision::fp8);
        if (fp8 && workload.method == Method::full && workload.model.transformer())
            precision(now == Precision::fp8 ? Precision::bf16 : Precision::fp8);
        else if (!is_training(workload.kind) && choice.accelerator != nullptr &&
                 choice.accelerator->has(Precision::int8))
            precision(Precision::int8);
        // A machine that mostly waits is too large for the load; in 4 bits the model may fit a small one.
        const double used = search.points[static_cast<std::size_t>(winner.point)].prediction.utilisation;
        if (workload.kind == WorkloadKind::inference && workload.model.kind == ModelKind::decoder && used < 0.3)
            precision(Precision::int4);
    }
    return out;
}

}  // namespace stoker
