// From what was measured of a node to pass, warn or fail. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/health.h"
#include "observe/evidence.h"

namespace stoker {

// What a check should come to, and who says so.
struct Expectation {
    double value = 0;
    std::string source;
    bool is_line = false;  // itself the line between pass and fail; else a usual value, with the tolerance of the data
};

// Sets verdict, expected and source of a check that has been measured. Without an expectation the floor of
// data/observe/health.tsv decides; without that too it is skipped, never passed. Whatever is expected, what is below
// the floor fails.
void judge_check(HealthCheck& check, const std::optional<Expectation>& expectation);

inline constexpr std::size_t kLeastPool = 8;
struct PoolLine {
    double line = 0;
    std::size_t nodes = 0;
};
// Median minus four median absolute deviations, and at least 5 % off, since equal nodes have a deviation of nothing;
// for what is better when low, plus. Nothing with fewer than kLeastPool values.
std::optional<PoolLine> pool_line(std::vector<double> values, bool lower_is_better);
// Judges what was measured and skipped for want of an expectation against the same check of the other nodes.
void judge_by_pool(std::vector<HealthReport>& reports);

// How long the ranks on each node work in a step, by themselves, held against the other nodes of their gang: one check
// for each node, skipped where there are too few of them to be a pool. Empty: on one node, or without steps.
std::vector<HealthReport> judge_nodes_of(const RunEvidence& evidence);

}  // namespace stoker
