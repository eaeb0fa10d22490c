// What would cost less and was passed over, and what a rule of thumb would have taken: the user's money decides, and
// sees both.
#include <cmath>

#include <fmt/format.h>

#include "plan/advice/advice.h"
#include "plan/evidence.h"
#include "plan/pipeline.h"

namespace stoker {
namespace {

std::string price_of(const AdviceInput& input, const Candidate& c) {
    const bool service =
        c.prediction.latency.requests_per_s > 0 || input.context.workload.kind == WorkloadKind::notebook;
    if (!c.priced) return "unpriced";
    if (service)
        return fmt::format("{} per hour",
                           format_usd(Usd::from_double(c.prediction.usd.mid / std::max(c.prediction.hours.mid, 1e-9))));
    return fmt::format("{}, {}", format_seconds(Seconds(c.prediction.hours.mid * 3600)),
                       format_usd(Usd::from_double(c.prediction.usd.mid)));
}

std::string_view a_few(const Workload& workload) {
    return is_training(workload.kind) ? "steps" : serves(workload) ? "requests" : "minutes of it";
}

std::string remedy_of(const AdviceInput& input, std::string_view id, const Candidate& c) {
    const NodeType& node = input.node(c);
    if (id == "unmeasured" && node.has_gpu())
        return fmt::format("where: {{accelerators: [{}]}} plans it; time a few {} on one machine first",
                           input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name,
                           a_few(input.context.workload));
    if (id == "far") return fmt::format("where: {{regions: [{}]}} plans it, if data and users may be there", c.region);
    if (id == "unlikely-to-fit") return "try one step on one node: if it fits, name the size";
    return "";
}

}  // namespace

void advise_foregone(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    for (const Foregone& one : input.plan.foregone) {
        const Candidate& c = one.candidate;
        const double share = winner->prediction.usd.mid > 0 ? c.prediction.usd.mid / winner->prediction.usd.mid - 1 : 0;
        const std::string what = fmt::format("{} x {}{}: {}, {:.0f} % {}", c.nodes, input.node(c).name,
                                             c.region.empty() || c.region == winner->region ? "" : " in " + c.region,
                                             price_of(input, c), 100 * std::abs(share), share < 0 ? "less" : "more");
        const std::string passed_over = "passed-over-" + one.id;
        if (one.id == "fewer") {
            out.push_back({AdviceSeverity::info, "fewer-machines",
                           fmt::format("fewer machines to get and to run, {}: {}", one.why, what),
                           fmt::format("where: {{max_nodes: {}}} plans it", c.nodes), ""});
            continue;
        }
        if (one.id == "gpu") {
            out.push_back({AdviceSeverity::info, "gpu-for-more", fmt::format("{}, {}", what, one.why),
                           fmt::format("where: {{sizes: [{}]}} plans it", input.node(c).name), ""});
            continue;
        }
        if (one.id == "rule")
            out.push_back({AdviceSeverity::info, "rule-of-thumb",
                           fmt::format("the rule \"{}\" would take {}", one.why, what), "", ""});
        else
            out.push_back({one.id == "unmeasured" ? AdviceSeverity::warning : AdviceSeverity::info, passed_over,
                           fmt::format("not first, {}: {}", one.why, what), remedy_of(input, one.id, c), ""});
    }
    if (!winner->measured && input.node(*winner).has_gpu()) {
        const std::string_view kind = evidence_kind(input.context.workload);
        const auto& gpu =
            input.context.catalog.accelerators()[static_cast<std::size_t>(input.node(*winner).accelerator)];
        const Workload& workload = input.context.workload;
        const ObjectiveSpec& objective = workload.objective;
        const bool limits = objective.deadline || objective.budget || objective.latency.any();
        const std::string known =
            hardly_published(workload)
                ? std::string("few published runs of speech are known")
                : fmt::format("{} published {}s on {} are known ({:.0f} are wanted)",
                              winner->measured_rows < 1 ? "no" : fmt::format("only {:.0f}", winner->measured_rows),
                              evidence_words(kind), gpu.name, input.context.settings.device_rows_wanted);
        out.push_back(
            {AdviceSeverity::warning, "no-measured-row",
             fmt::format("{}: speed and cost come from its data sheet, {}the interval is the widest there "
                         "is{}",
                         known, limits ? "" : "and ", limits ? ", and no probability is given for the limits" : ""),
             fmt::format(
                 "time a few {} on one machine{}", a_few(workload),
                 winner->nodes > 1 && winner->pricing != Pricing::owned ? " before renting the rest" : " first"),
             "data/calibration/measured.tsv"});
    }
}

}  // namespace stoker
