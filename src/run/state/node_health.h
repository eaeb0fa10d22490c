// What is known of a node's health, as the journal and the state hold it: its last check, the gangs it slowed down, and
// its repairs. What follows from that is decided in health.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cause.h"
#include "base/health.h"
#include "base/ids.h"

namespace stoker {

// Of one check, those parts that were not passed; the worst first.
inline constexpr std::size_t kMostKeptChecks = 16;
inline constexpr std::size_t kMostBlames = 32, kMostRepairs = 16, kMostBlameMembers = 512;

// A node was checked.
struct NodeChecked {
    static constexpr std::uint32_t kKind = 19;
    std::string node;
    std::string boot_id;
    HealthLevel level = HealthLevel::quick;
    HealthVerdict verdict = HealthVerdict::skipped;
    std::int64_t passed = 0;  // parts that were
    std::vector<HealthCheck> not_passed;
    Cause cause = Cause::none;
};
// A node was the slowest of a gang over several, and the others waited for it.
struct NodeBlamed {
    static constexpr std::uint32_t kKind = 20;
    std::string node;
    AttemptId attempt;
    std::vector<std::string> members;  // the nodes of the gang, in order
    std::int64_t share_milli = 0;      // of a step, in thousandths, that it cost
};

struct NodeCheck {
    std::int64_t at_us = 0;
    std::string boot_id;
    HealthLevel level = HealthLevel::quick;
    HealthVerdict verdict = HealthVerdict::skipped;
    std::int64_t passed = 0;
    std::vector<HealthCheck> not_passed;
};
struct NodeBlame {
    std::int64_t at_us = 0;
    AttemptId attempt;
    std::vector<std::string> members;
    std::int64_t share_milli = 0;
};
// Nothing of it is there before something happened, so that states of servers without a gate stay what they were.
struct NodeHealth {
    std::optional<NodeCheck> last;
    std::int64_t not_passed = 0;  // checks in a row
    std::vector<NodeBlame> blames;
    std::int64_t forgiven_us = 0;  // blames until then do not count any more
    std::vector<std::int64_t> repairs_us;
    std::int64_t since_us = 0;  // of the node's state
};

// What the records mean for it.
void remember(NodeHealth& health, const NodeChecked& body, std::int64_t at_us);
void remember(NodeHealth& health, const NodeBlamed& body, std::int64_t at_us);
void remember_move(NodeHealth& health, Cause cause, std::int64_t at_us);

// Of bounded size, as it will read back from the journal.
NodeChecked checked_record(std::string node, std::string boot_id, HealthLevel level, const HealthReport& report);

template <class V>
void fields(V& visit, HealthCheck& check) {
    visit("detail", check.detail);
    visit("expected", check.expected);
    visit("fix", check.fix);
    visit("layer", check.layer);
    visit("measured", check.measured);
    visit("name", check.name);
    visit("node", check.node);
    visit("peer", check.peer);
    visit("source", check.source);
    visit("unit", check.unit);
    visit("verdict", check.verdict);
}
template <class V>
void fields(V& visit, NodeChecked& body) {
    visit("boot_id", body.boot_id);
    visit("cause", body.cause);
    visit("level", body.level);
    visit("node", body.node);
    visit("not_passed", body.not_passed);
    visit("passed", body.passed);
    visit("verdict", body.verdict);
}
template <class V>
void fields(V& visit, NodeBlamed& body) {
    visit("attempt", body.attempt);
    visit("members", body.members);
    visit("node", body.node);
    visit("share_milli", body.share_milli);
}
template <class V>
void fields(V& visit, NodeCheck& check) {
    visit("at_us", check.at_us);
    visit("boot_id", check.boot_id);
    visit("level", check.level);
    visit("not_passed", check.not_passed);
    visit("passed", check.passed);
    visit("verdict", check.verdict);
}
template <class V>
void fields(V& visit, NodeBlame& blame) {
    visit("at_us", blame.at_us);
    visit("attempt", blame.attempt);
    visit("members", blame.members);
    visit("share_milli", blame.share_milli);
}
template <class V>
void fields(V& visit, NodeHealth& health) {
    visit("blames", health.blames);
    visit("forgiven_us", health.forgiven_us);
    visit("last", health.last);
    visit("not_passed", health.not_passed);
    visit("repairs_us", health.repairs_us);
    visit("since_us", health.since_us);
}

}  // namespace stoker
