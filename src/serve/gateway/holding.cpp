#include "serve/gateway/holding.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "serve/gateway/choose.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {

QueueAnswer Holding::enter(Exchange* exchange, std::shared_ptr<const Setup> setup, const ModelSetup& model,
                           const QueuedRequest& request, double now_s) {
    Line& line = lines_[model.id];
    line.setup = std::move(setup);
    line.model = &model;
    QueueDrain drain;
    if (model.board) {
        const auto view = model.board->view();
        drain = {.tokens_per_s = view->tokens_per_s, .ready_in_s = view->ready_in_s};
    }
    const QueueAnswer answer = line.queue.enter(request, now_s, drain, loop_.random());
    if (!answer.accepted()) return answer;
    line.who.emplace(request.id, exchange);
    ++held_;
    ++loop_.shared().counters.held;
    if (model.board) model.board->held(now_s, 1, request.cost_tokens);
    return answer;
}

void Holding::let_go(Line& line, const QueuedRequest& request) {
    line.who.erase(request.id);
    --held_;
    --loop_.shared().counters.held;
    if (line.model->board)
        line.model->board->held(static_cast<double>(monotonic_clock_us()) / kUs, -1, -request.cost_tokens);
}

void Holding::leave(std::uint64_t model, std::uint64_t request) {
    const auto line = lines_.find(model);
    if (line == lines_.end()) return;
    const auto left = line->second.queue.leave(request);
    if (left)
        let_go(line->second, *left);
    else if (line->second.who.contains(request))  // its time is up, and it was not told yet
        let_go(line->second, {.id = request});
}

void Holding::turn(double now_s) {
    if (held_ == 0) return;
    // What is told below may hold another request, of any model.
    std::vector<std::uint64_t> models;
    for (const auto& each : lines_) models.push_back(each.first);
    for (const std::uint64_t id : models) {
        Line& line = lines_.at(id);
        for (const QueuedRequest& late : line.queue.expire(now_s)) {
            const auto exchange = line.who.find(late.id);
            if (exchange == line.who.end()) continue;
            Exchange* told = exchange->second;
            let_go(line, late);
            told->waited_too_long();
        }
        // One that finds nobody all the same comes back to the end of the line: each is asked once.
        for (std::size_t left = line.queue.size(); left > 0 && line.queue.size() > 0; --left) {
            if (!choose(choices_of(loop_, *line.model), {}, loop_.random())) break;
            const auto next = line.queue.take(now_s);
            if (!next) break;
            Exchange* exchange = line.who.at(next->id);
            let_go(line, *next);
            exchange->its_turn();
        }
        if (line.queue.size() == 0 && line.who.empty()) line.model = nullptr;
    }
    std::erase_if(lines_, [](const auto& line) { return line.second.model == nullptr; });
}

Refusal refusal_of(const QueueAnswer& answer, bool starting) {
    const bool tenant = answer.status() == 429;
    Refusal why{.status = answer.status(),
                .type = tenant ? "rate_limit_error" : "overloaded",
                .code = tenant     ? "queue_exceeded"
                        : starting ? "warming_up"
                                   : "overloaded",
                .retry_after_s = std::max(1, answer.retry_after_s)};
    const bool room = answer.refusal == QueueRefusal::room || answer.refusal == QueueRefusal::tenant_room;
    if (tenant)
        why.message = fmt::format("requests of this project fill the queue of this model; there is room in about {} s",
                                  why.retry_after_s);
    else if (room)
        why.message = "the queue of this model is full";
    else
        why.message = fmt::format("the wait for this model would be about {:.0f} s, longer than a request is held",
                                  std::ceil(answer.wait_s));
    return why;
}

}  // namespace stoker::gateway
