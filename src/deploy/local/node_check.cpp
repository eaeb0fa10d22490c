#include "deploy/local/node_check.h"

namespace stoker {
namespace {

// Threads that did not come back; with more, nothing more is tried.
constexpr std::size_t kMostLeftChecks = 16;

HealthReport skipped_report(const NodeInfo& node, std::string why) {
    return {{{.layer = HealthLayer::device, .name = "check", .node = node.name, .detail = std::move(why)}}};
}

}  // namespace

NodeChecks::NodeChecks(NodeCheckFunction function)
    : function_(std::move(function)), calls_({.name = "stoker-measure", .most = kMostLeftChecks}) {}

HealthReport NodeChecks::check(const NodeInfo& node, HealthLevel level, Deadline deadline) {
    if (!function_) return {};
    auto report = calls_.run<HealthReport>(
        deadline, [function = function_, node, level, deadline] { return function(node, level, deadline); });
    if (report) return std::move(*report);
    switch (report.error().kind()) {
        case ErrorKind::exhausted: return skipped_report(node, "earlier checks have not come back; restart the server");
        case ErrorKind::unavailable: return skipped_report(node, "the server was stopped meanwhile");
        default: return skipped_report(node, "it did not end by its deadline");
    }
}

void NodeChecks::interrupt() {
    calls_.interrupt();
}

}  // namespace stoker
