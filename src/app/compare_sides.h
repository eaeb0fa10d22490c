// The sides of a comparison: what was asked for, and the candidate that answers it. A side comes from a workload file,
// from a saved plan, or from one workload under a restriction (a size, a GPU, a cloud, a region, a precision, spot).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/listing.h"
#include "app/session.h"

namespace stoker {

struct Side {
    std::string title;
    Workload workload;
    std::optional<Candidate> candidate;  // none: no plan, or read from a saved plan, which has no terms to take apart
    std::string no_plan;                 // why, where there is none
    Card card;
    double hours = 0, usd = 0, usd_per_unit = 0;  // 0: not known
    std::string unit;
    bool service = false;
};

Result<Side> side_of_workload(std::string title, Workload workload, const Catalog& catalog, const PlanOptions& options);
Result<Side> side_of_saved_plan(const std::string& path, const Document& document);
bool is_saved_plan(const Document& document);
// `word` as a restriction of `base`; nothing when it is none.
Result<std::optional<Workload>> restricted(const Workload& base, const std::string& word, const Catalog& catalog);
std::string sides_text(const std::vector<Side>& sides, const Catalog& catalog, const PlanOptions& options,
                       const Style& style);
// A line of the explanation, wrapped and indented behind its dash.
std::string bullet(std::string_view text, const Style& style);
Json sides_json(const std::vector<Side>& sides, const Catalog& catalog);

}  // namespace stoker
