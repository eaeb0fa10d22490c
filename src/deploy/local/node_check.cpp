#include "deploy/local/node_check.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace stoker {
namespace {

// Threads that did not come back; with more, nothing more is tried.
constexpr int kMostLeftChecks = 16;

HealthReport skipped_report(const NodeInfo& node, std::string why) {
    return {{{.layer = HealthLayer::device, .name = "check", .node = node.name, .detail = std::move(why)}}};
}

}  // namespace

struct NodeChecks::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int running = 0;
    std::uint64_t interrupts = 0;
};

NodeChecks::NodeChecks(NodeCheckFunction function)
    : function_(std::move(function)), shared_(std::make_shared<Shared>()) {}

HealthReport NodeChecks::check(const NodeInfo& node, HealthLevel level, Deadline deadline) {
    if (!function_) return {};
    auto answer = std::make_shared<std::optional<HealthReport>>();
    std::unique_lock lock(shared_->mutex);
    if (shared_->running >= kMostLeftChecks)
        return skipped_report(node, "earlier checks have not come back; restart the server");
    ++shared_->running;
    const std::uint64_t before = shared_->interrupts;
    std::thread([shared = shared_, answer, function = function_, node, level, deadline] {
        ::pthread_setname_np(::pthread_self(), "stoker-measure");
        HealthReport report = function(node, level, deadline);
        const std::lock_guard guard(shared->mutex);
        --shared->running;
        *answer = std::move(report);
        shared->changed.notify_all();
    }).detach();
    shared_->changed.wait_until(lock, deadline, [&] { return answer->has_value() || shared_->interrupts != before; });
    if (answer->has_value()) return std::move(**answer);
    return skipped_report(
        node, shared_->interrupts != before ? "the server was stopped meanwhile" : "it did not end by its deadline");
}

void NodeChecks::interrupt() {
    {
        const std::lock_guard guard(shared_->mutex);
        ++shared_->interrupts;
    }
    shared_->changed.notify_all();
}

}  // namespace stoker
