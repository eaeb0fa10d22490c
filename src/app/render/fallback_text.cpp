#include "app/render/fallback_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/render/plan_text.h"
#include "app/render/short_answer.h"

namespace stoker {

std::vector<std::string> fallback_lines(const Plan& plan, const Catalog& catalog) {
    std::vector<std::string> lines;
    for (const Fallback& one : plan.fallbacks) {
        const Candidate& c = one.candidate;
        const Prediction& p = c.prediction;
        const NodeType& node = catalog.node_types()[static_cast<std::size_t>(c.node_type)];
        const bool hourly = runs_by_the_hour(p);
        std::string text = fmt::format("{}: {} x {} in {}{}", one.id == "region" ? "another region" : "other machines",
                                       c.nodes, node.name, c.region, c.pricing == Pricing::spot ? ", spot" : "");
        if (c.priced)
            text += hourly ? fmt::format(", {} per hour",
                                         format_usd(Usd::from_double(p.usd.mid / std::max(p.hours.mid, 1e-9))))
                           : fmt::format(", {}", rounded_money(p.usd.mid));
        if (!hourly) text += fmt::format(" in {}", duration_in_one_unit({p.hours.mid, p.hours.mid, p.hours.mid}));
        if (!one.needs.empty()) text += "; needs " + one.needs;
        if (!c.doubt.empty()) text += "; " + c.doubt;
        lines.push_back(std::move(text));
    }
    return lines;
}

}  // namespace stoker
