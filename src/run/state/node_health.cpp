#include "run/state/node_health.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostCheckName = 60, kMostCheckText = 300;

HealthCheck storable_check(HealthCheck check) {
    check.name = printable(check.name, kMostCheckName);
    check.node = printable(check.node, kMostCheckName);
    check.peer = printable(check.peer, kMostCheckName);
    check.unit = printable(check.unit, kMostCheckName);
    for (std::string* text : {&check.source, &check.detail, &check.fix}) *text = printable(*text, kMostCheckText);
    for (std::optional<double>* value : {&check.measured, &check.expected})
        if (*value && !std::isfinite(**value)) value->reset();
    return check;
}

template <class T>
void keep_newest(std::vector<T>& list, std::size_t most) {
    if (list.size() > most) list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace

void remember(NodeHealth& health, const NodeChecked& body, std::int64_t at_us) {
    health.last = {.at_us = at_us,
                   .boot_id = body.boot_id,
                   .level = body.level,
                   .verdict = body.verdict,
                   .passed = body.passed,
                   .not_passed = body.not_passed};
    health.not_passed = body.verdict == HealthVerdict::pass ? 0 : health.not_passed + 1;
}

void remember(NodeHealth& health, const NodeBlamed& body, std::int64_t at_us) {
    health.blames.push_back(
        {.at_us = at_us, .attempt = body.attempt, .members = body.members, .share_milli = body.share_milli});
    keep_newest(health.blames, kMostBlames);
}

void remember_move(NodeHealth& health, Cause cause, std::int64_t at_us) {
    health.since_us = at_us;
    if (cause != Cause::node_repaired && cause != Cause::node_override) return;
    // It begins anew; only repairs go on being counted, until somebody vouches for it.
    health.forgiven_us = at_us;
    if (cause == Cause::node_override) return health.repairs_us.clear();
    health.last.reset();
    health.not_passed = 0;
    health.repairs_us.push_back(at_us);
    keep_newest(health.repairs_us, kMostRepairs);
}

NodeChecked checked_record(std::string node, std::string boot_id, HealthLevel level, const HealthReport& report) {
    NodeChecked record{.node = std::move(node),
                       .boot_id = std::move(boot_id),
                       .level = level,
                       .verdict = report.verdict(),
                       .not_passed = {}};
    if (record.verdict == HealthVerdict::fail) record.cause = Cause::node_unhealthy;
    std::vector<const HealthCheck*> others;
    for (const HealthCheck& check : report.checks) {
        if (check.verdict == HealthVerdict::pass)
            ++record.passed;
        else
            others.push_back(&check);
    }
    // Among equals in the order of the report: the network first.
    std::stable_sort(others.begin(), others.end(),
                     [](const HealthCheck* a, const HealthCheck* b) { return a->verdict > b->verdict; });
    for (const HealthCheck* check : others)
        if (record.not_passed.size() < kMostKeptChecks) record.not_passed.push_back(storable_check(*check));
    return record;
}

}  // namespace stoker
