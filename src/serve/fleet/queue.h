// Requests that wait for a replica of one revision: classes before each other, tenants of a class by their weights, a
// tenant's own in order. Who waits long moves up a class; the lowest class keeps a small share, so that nothing
// starves. Everything in it has a deadline, and it is refused at the door when that cannot be met. Pure: times are
// seconds of one monotonic clock. One thread, or a lock around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace stoker {

enum class RequestClass : std::uint8_t { interactive, normal, batch };
inline constexpr std::size_t kRequestClasses = 3;

struct QueuedRequest {
    std::uint64_t id = 0;
    std::uint64_t tenant = 0;
    RequestClass request_class = RequestClass::normal;
    double cost_tokens = 1;  // reserved, prompt and answer
    double weight = 1;       // of the tenant, > 0
    double deadline_s = 0;   // by when it must have been taken
    std::size_t held_bytes = 0;
};

struct QueuePolicy {
    double age_s = 30;           // of waiting, for one class up
    double lowest_share = 0.05;  // of what is taken, for the lowest class that has something
    std::size_t most_held_bytes = 256u << 20;
    std::size_t most_requests = 65'536;
};

// How fast the replicas take work off the queue.
struct QueueDrain {
    double tokens_per_s = 0;  // mean of the last seconds; 0: not known yet, and then only room is a reason to refuse
    double ready_in_s = 0;    // until the first replica is there, while none is
};

enum class QueueRefusal : std::uint8_t { none, tenant_wait, wait, tenant_room, room };

struct QueueAnswer {
    QueueRefusal refusal = QueueRefusal::none;
    double wait_s = 0;      // expected
    int retry_after_s = 0;  // with a refusal: when the wait would be short enough, spread so that not all come at once
    bool accepted() const { return refusal == QueueRefusal::none; }
    // 429: without this tenant's own requests it would have gone through. 503: it would not.
    int status() const {
        switch (refusal) {
            case QueueRefusal::none: return 200;
            case QueueRefusal::tenant_wait:
            case QueueRefusal::tenant_room: return 429;
            default: return 503;
        }
    }
};

class AdmissionQueue {
public:
    explicit AdmissionQueue(QueuePolicy policy = {}) : policy_(policy) {}

    // An id that waits already is a bug of the caller.
    QueueAnswer enter(const QueuedRequest& request, double now_s, const QueueDrain& drain, SplitMix& random);
    std::optional<QueuedRequest> take(double now_s);       // the next one whose deadline has not passed
    std::vector<QueuedRequest> expire(double now_s);       // those whose deadline has, each once
    std::optional<QueuedRequest> leave(std::uint64_t id);  // its client went away
    double next_deadline_s() const;                        // infinity when empty

    std::size_t size() const { return waiting_.size(); }
    std::size_t size_of(RequestClass c) const { return lanes_[static_cast<std::size_t>(c)].order.size(); }
    std::size_t held_bytes() const { return held_bytes_; }
    double tokens() const;

private:
    struct TenantShare {
        double finish = 0;  // virtual time when all of it were served
        double tokens = 0, weight = 1;
        std::size_t requests = 0;
    };
    // Start-time fair queueing (Goyal, Vin, Cheng 1996) within a class.
    struct Lane {
        std::set<std::pair<double, std::uint64_t>> order;   // start tag, number
        std::set<std::pair<double, std::uint64_t>> by_age;  // since when in this class, number
        std::map<std::uint64_t, TenantShare> tenants;       // that wait here
        double virtual_time = 0, tokens = 0;
    };
    struct Waiting {
        QueuedRequest request;
        std::size_t lane = 0;
        double start = 0, in_lane_since_s = 0;
    };
    using Number = std::uint64_t;  // in order of arrival

    void put(Number number, Waiting& waiting, std::size_t lane, double now_s);
    void unlink(Number number, const Waiting& waiting);
    QueuedRequest remove(Number number);
    void promote(double now_s);
    void set_late_aside(double now_s);
    double tokens_ahead(const QueuedRequest& request, bool of_the_tenant_too) const;
    std::optional<std::size_t> next_lane();

    QueuePolicy policy_;
    std::array<Lane, kRequestClasses> lanes_;
    std::map<Number, Waiting> waiting_;
    std::map<std::uint64_t, Number> by_id_;
    std::set<std::pair<double, Number>> by_deadline_;
    std::vector<QueuedRequest> late_;  // until expire() hands them out
    std::map<std::uint64_t, std::size_t> bytes_of_tenant_;
    std::size_t held_bytes_ = 0;
    Number last_number_ = 0;
    double lowest_credit_ = 0;
};

constexpr std::array<std::pair<RequestClass, std::string_view>, kRequestClasses> enum_names(RequestClass) {
    return {{{RequestClass::interactive, "interactive"},
             {RequestClass::normal, "default"},
             {RequestClass::batch, "batch"}}};
}
constexpr std::array<std::pair<QueueRefusal, std::string_view>, 5> enum_names(QueueRefusal) {
    return {{{QueueRefusal::none, "none"},
             {QueueRefusal::tenant_wait, "tenant_wait"},
             {QueueRefusal::wait, "wait"},
             {QueueRefusal::tenant_room, "tenant_room"},
             {QueueRefusal::room, "room"}}};
}

}  // namespace stoker
