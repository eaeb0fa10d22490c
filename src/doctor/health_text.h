// A health report as people and programs read it.
#pragma once

#include <string>
#include <string_view>

#include "base/health.h"
#include "base/json.h"
#include "base/style.h"

namespace stoker {

// What is to blame: the first layer in which something failed, and of it the first check; of warnings, when nothing
// failed. nullptr: nothing.
const HealthCheck* to_blame(const HealthReport& report);

std::string_view word_of(HealthLayer layer);
std::string_view word_of(HealthVerdict verdict);

struct HealthHeading {
    std::string node, level;
    double seconds = 0;  // that looking took
};
// One block for each layer: verdict, what was measured, what was expected and from where, the fix; what could not be
// known comes last.
std::string health_text(const HealthReport& report, const HealthHeading& heading, const Style& style);
Json health_json(const HealthReport& report, const HealthHeading& heading);

}  // namespace stoker
