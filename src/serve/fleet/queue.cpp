#include "serve/fleet/queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace stoker {
namespace {

double cost_of(const QueuedRequest& request) {
    return std::max(request.cost_tokens, 1.0);
}
double weight_of(const QueuedRequest& request) {
    return request.weight > 0 ? request.weight : 1e-6;
}

int retry_after(double too_long_s, SplitMix& random) {
    const double spread = 0.8 + 0.4 * random.uniform();
    return static_cast<int>(std::ceil(std::clamp(too_long_s * spread, 1.0, 600.0)));
}

}  // namespace

void AdmissionQueue::put(Number number, Waiting& waiting, std::size_t lane, double now_s) {
    Lane& to = lanes_[lane];
    const double cost = cost_of(waiting.request);
    TenantShare& tenant = to.tenants[waiting.request.tenant];
    waiting.lane = lane;
    waiting.in_lane_since_s = now_s;
    waiting.start = tenant.requests == 0 ? to.virtual_time : std::max(to.virtual_time, tenant.finish);
    tenant.weight = weight_of(waiting.request);
    tenant.finish = waiting.start + cost / tenant.weight;
    tenant.tokens += cost;
    tenant.requests += 1;
    to.tokens += cost;
    to.order.emplace(waiting.start, number);
    to.by_age.emplace(now_s, number);
}

void AdmissionQueue::unlink(Number number, const Waiting& waiting) {
    Lane& lane = lanes_[waiting.lane];
    lane.order.erase({waiting.start, number});
    lane.by_age.erase({waiting.in_lane_since_s, number});
    const auto tenant = lane.tenants.find(waiting.request.tenant);
    tenant->second.tokens -= cost_of(waiting.request);
    tenant->second.requests -= 1;
    lane.tokens -= cost_of(waiting.request);
    // A tenant that comes back at once starts where the others are: its past is in the virtual time already.
    if (tenant->second.requests == 0) lane.tenants.erase(tenant);
    if (lane.order.empty()) lane.tokens = lane.virtual_time = 0;
}

QueuedRequest AdmissionQueue::remove(Number number) {
    const auto at = waiting_.find(number);
    const QueuedRequest request = at->second.request;
    unlink(number, at->second);
    by_id_.erase(request.id);
    by_deadline_.erase({request.deadline_s, number});
    held_bytes_ -= request.held_bytes;
    if (request.held_bytes > 0) {
        const auto held = bytes_of_tenant_.find(request.tenant);
        if ((held->second -= request.held_bytes) == 0) bytes_of_tenant_.erase(held);
    }
    waiting_.erase(at);
    return request;
}

void AdmissionQueue::promote(double now_s) {
    for (std::size_t lane = 1; lane < lanes_.size(); ++lane) {
        std::set<std::pair<double, Number>>& ages = lanes_[lane].by_age;
        while (!ages.empty() && now_s - ages.begin()->first >= policy_.age_s) {
            const Number number = ages.begin()->second;
            Waiting& waiting = waiting_.at(number);
            unlink(number, waiting);
            put(number, waiting, lane - 1, now_s);
        }
    }
}

// What is served before this request would be: all of the classes above, its tenant's own, and of the other tenants of
// its class as much as their weights give them meanwhile.
double AdmissionQueue::tokens_ahead(const QueuedRequest& request, bool of_the_tenant_too) const {
    const std::size_t own_lane = static_cast<std::size_t>(request.request_class);
    double ahead = 0;
    for (std::size_t lane = 0; lane < own_lane; ++lane) {
        ahead += lanes_[lane].tokens;
        const auto own = lanes_[lane].tenants.find(request.tenant);
        if (!of_the_tenant_too && own != lanes_[lane].tenants.end()) ahead -= own->second.tokens;
    }
    const Lane& lane = lanes_[own_lane];
    const auto own = lane.tenants.find(request.tenant);
    const double own_tokens = of_the_tenant_too && own != lane.tenants.end() ? own->second.tokens : 0;
    ahead += own_tokens;
    for (const auto& [tenant, share] : lane.tenants)
        if (tenant != request.tenant)
            ahead += std::min(share.tokens, (own_tokens + cost_of(request)) * share.weight / weight_of(request));
    return ahead;
}

QueueAnswer AdmissionQueue::enter(const QueuedRequest& request, double now_s, const QueueDrain& drain,
                                  SplitMix& random) {
    CHECK(!by_id_.contains(request.id));
    set_late_aside(now_s);
    promote(now_s);
    QueueAnswer answer;
    const double patience_s = request.deadline_s - now_s;
    auto wait_for = [&](double tokens) {
        return drain.ready_in_s + (drain.tokens_per_s > 0 ? tokens / drain.tokens_per_s : 0);
    };
    answer.wait_s = wait_for(tokens_ahead(request, true));
    if (answer.wait_s > patience_s || patience_s <= 0) {
        const bool own = wait_for(tokens_ahead(request, false)) <= patience_s && patience_s > 0;
        answer.refusal = own ? QueueRefusal::tenant_wait : QueueRefusal::wait;
        answer.retry_after_s = retry_after(answer.wait_s - patience_s, random);
        return answer;
    }
    if (held_bytes_ + request.held_bytes > policy_.most_held_bytes || waiting_.size() >= policy_.most_requests) {
        const auto held = bytes_of_tenant_.find(request.tenant);
        const std::size_t own = held == bytes_of_tenant_.end() ? 0 : held->second;
        const std::size_t tenants = bytes_of_tenant_.size() + (own == 0 ? 1 : 0);
        answer.refusal = own > held_bytes_ / tenants && tenants > 1 ? QueueRefusal::tenant_room : QueueRefusal::room;
        answer.retry_after_s = retry_after(std::max(answer.wait_s, 1.0), random);
        return answer;
    }
    const Number number = ++last_number_;
    Waiting& waiting = waiting_[number] = {.request = request};
    put(number, waiting, static_cast<std::size_t>(request.request_class), now_s);
    by_id_.emplace(request.id, number);
    by_deadline_.emplace(request.deadline_s, number);
    held_bytes_ += request.held_bytes;
    if (request.held_bytes > 0) bytes_of_tenant_[request.tenant] += request.held_bytes;
    return answer;
}

// The highest class with something in it; now and then the lowest.
std::optional<std::size_t> AdmissionQueue::next_lane() {
    std::optional<std::size_t> highest, lowest;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (lanes_[lane].order.empty()) continue;
        if (!highest) highest = lane;
        lowest = lane;
    }
    if (!highest || highest == lowest) {
        lowest_credit_ = 0;
        return highest;
    }
    lowest_credit_ += policy_.lowest_share;
    if (lowest_credit_ < 1) return highest;
    lowest_credit_ -= 1;
    return lowest;
}

void AdmissionQueue::set_late_aside(double now_s) {
    while (!by_deadline_.empty() && by_deadline_.begin()->first < now_s)
        late_.push_back(remove(by_deadline_.begin()->second));
}

std::optional<QueuedRequest> AdmissionQueue::take(double now_s) {
    set_late_aside(now_s);
    promote(now_s);
    const auto lane = next_lane();
    if (!lane) return std::nullopt;
    Lane& from = lanes_[*lane];
    const auto [start, number] = *from.order.begin();
    from.virtual_time = std::max(from.virtual_time, start);
    return remove(number);
}

std::vector<QueuedRequest> AdmissionQueue::expire(double now_s) {
    set_late_aside(now_s);
    return std::exchange(late_, {});
}

std::optional<QueuedRequest> AdmissionQueue::leave(std::uint64_t id) {
    const auto at = by_id_.find(id);
    if (at == by_id_.end()) return std::nullopt;
    return remove(at->second);
}

double AdmissionQueue::next_deadline_s() const {
    return by_deadline_.empty() ? std::numeric_limits<double>::infinity() : by_deadline_.begin()->first;
}

double AdmissionQueue::tokens() const {
    double sum = 0;
    for (const Lane& lane : lanes_) sum += lane.tokens;
    return sum;
}

}  // namespace stoker
