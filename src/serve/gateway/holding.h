// Requests of one loop that wait for a replica of their model: fair among projects, each with a deadline, refused at
// once when that cannot be met. On the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "serve/fleet/queue.h"
#include "serve/gateway/answers.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

class Loop;
class Exchange;

class Holding {
public:
    explicit Holding(Loop& loop) : loop_(loop) {}

    // Of a model that has a board or a queue. Not accepted: it does not wait.
    QueueAnswer enter(Exchange* exchange, std::shared_ptr<const Setup> setup, const ModelSetup& model,
                      const QueuedRequest& request, double now_s);
    void leave(std::uint64_t model, std::uint64_t request);  // it is over, whatever became of it
    void turn(double now_s);                                 // those whose replica is there, or whose time is up
    bool empty() const { return held_ == 0; }

private:
    struct Line {
        AdmissionQueue queue;
        std::unordered_map<std::uint64_t, Exchange*> who;
        std::shared_ptr<const Setup> setup;  // of the last one, which keeps `model`
        const ModelSetup* model = nullptr;
    };
    void let_go(Line& line, const QueuedRequest& request);

    Loop& loop_;
    std::unordered_map<std::uint64_t, Line> lines_;  // by model
    std::size_t held_ = 0;
};

// 429 where the tenant's own requests are in the way, 503 where capacity is missing.
Refusal refusal_of(const QueueAnswer& answer, bool starting);

}  // namespace stoker::gateway
