// Charges as rows of FOCUS 1.2 (focus.finops.org, 2025-05): the columns that an installation has a value for. Machines
// and tokens are told in the same columns, so that their files can be put together.
#pragma once

#include <string>

namespace stoker {

struct FocusCharge {
    std::string month{};       // "2026-11": the period that is billed
    std::string from{}, to{};  // RFC 3339
    bool credit = false;
    std::string description{}, organisation{}, project{}, currency{};
    std::string cost{}, quantity{}, unit{};                                                          // exact, as texts
    std::string category{}, service{}, resource{}, resource_name{}, resource_type{}, sku{}, tags{};  // tags: JSON
};

std::string focus_head();
std::string focus_line(const FocusCharge& charge);

}  // namespace stoker
