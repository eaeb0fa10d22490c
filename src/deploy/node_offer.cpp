#include "deploy/node_offer.h"

namespace stoker {
namespace {

constexpr std::size_t kMostNotices = 64;

}  // namespace

void NodeOffer::set(std::vector<NodeInfo> nodes) {
    auto fresh = std::make_shared<const std::vector<NodeInfo>>(std::move(nodes));
    const std::lock_guard guard(mutex_);
    nodes_ = std::move(fresh);
}

std::shared_ptr<const std::vector<NodeInfo>> NodeOffer::get() const {
    const std::lock_guard guard(mutex_);
    return nodes_;
}

void NodeOffer::notice(double seconds, std::string detail, std::int64_t at_us) {
    const std::lock_guard guard(mutex_);
    notices_.push_back({.number = ++told_, .at_us = at_us, .seconds = seconds, .detail = std::move(detail)});
    if (notices_.size() > kMostNotices) notices_.erase(notices_.begin());
    if (wake_) wake_();
}

std::vector<MachineNotice> NodeOffer::notices_after(std::uint64_t number) const {
    const std::lock_guard guard(mutex_);
    std::vector<MachineNotice> after;
    for (const MachineNotice& each : notices_)
        if (each.number > number) after.push_back(each);
    return after;
}

void NodeOffer::wake_with(std::function<void()> wake) {
    const std::lock_guard guard(mutex_);
    wake_ = std::move(wake);
}

}  // namespace stoker
