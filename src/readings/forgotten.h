// Which of the things that a cloud lists nobody seems to want any more: why that is thought, what it costs a month by
// the catalogue, and what would remove it. Pure; nothing is ever removed from here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "readings/cloud_things.h"

namespace stoker {

// What a server knows: its nodes, and those of its runs and endpoints that have not ended, by name and number.
struct HeldNames {
    std::set<std::string, std::less<>> nodes, work;  // in lower case
};

struct WhyForgotten {
    std::string reason;  // stable: "detached", "stopped-and-billed", ...
    std::string what;
    bool sure = false;  // by itself; else it is a reason to ask somebody
};
struct ForgottenThing {
    CloudThing thing;
    std::vector<WhyForgotten> why;
    std::optional<std::int64_t> age_days;
    std::optional<double> usd_per_month;  // none: see price_note
    std::string price_note;               // where the price is from, or why there is none
    std::vector<std::string> remove;      // the words of a command; empty: none is known
    bool sure() const;
};
struct ForgottenReport {
    std::vector<ForgottenThing> things;  // those that are sure first, then the dearest
    std::size_t looked_at = 0, held = 0;
    double usd_per_month = 0;          // of those that have a price and are sure
    double perhaps_usd_per_month = 0;  // of the others
    std::size_t unpriced = 0;
    std::vector<std::string> notes;  // what these lists cannot tell
};

// `held`: null: nobody was asked. Things that several lists have are one.
ForgottenReport find_forgotten(std::vector<CloudList> lists, const Catalog& catalog, const HeldNames* held,
                               std::int64_t now_us);

}  // namespace stoker
