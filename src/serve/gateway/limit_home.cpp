#include "serve/gateway/limit_home.h"

#include <algorithm>
#include <set>

namespace stoker::gateway {

void LimitHome::put(Follower& follower, std::uint64_t scope, const LimitBook::Use& use) {
    LimitBook::Use& before = follower.uses[scope];
    LimitBook::Use& all = all_[scope];
    all.concurrent += use.concurrent - before.concurrent;
    all.spent += use.spent - before.spent;
    all.reserved += use.reserved - before.reserved;
    before = use;
    book_.set_elsewhere(scope, all);
}

LimitReply LimitHome::answer(const LimitMessage& message, std::int64_t now_ns) {
    const std::lock_guard guard(mutex_);
    LimitReply reply;
    Follower& from = followers_[message.gateway];
    const bool new_to_us = from.process != message.process || from.lost;
    if (new_to_us && !message.whole) {
        reply.known = false;
        return reply;
    }
    // What was given up on the way may arrive behind what was sent after it.
    if (!new_to_us && message.sequence <= from.sequence) return reply;
    from.process = message.process;
    from.sequence = message.sequence;
    from.heard_ns = now_ns;
    from.lost = false;
    std::set<std::uint64_t> named;
    for (const ScopeUse& use : message.uses) named.insert(use.scope.number);
    if (message.whole)
        for (const auto& [scope, before] : std::map(from.uses))
            if (!named.contains(scope)) put(from, scope, {});
    for (const ScopeUse& use : message.uses)
        put(from, use.scope.number, {std::max<std::int64_t>(0, use.concurrent), use.spent, use.reserved});
    for (const ScopeRefund& refund : message.refunds)
        book_.refund_tokens(refund.scope.number, {.tokens = {.limit = refund.limit, .burst = refund.burst}},
                            refund.tokens);
    reply.settling = settling(now_ns);
    if (!reply.settling) {
        for (const LimitAsk& ask : message.asks) {
            const AdmitDecision decision = admit_all(book_, ask, now_ns);
            reply.verdicts.push_back(verdict_of(decision));
            for (const ScopeWant& want : ask.wants) {
                named.insert(want.scope.number);
                if (!decision.admitted()) continue;
                book_.hand_over(want.scope.number, want.picousd);
                LimitBook::Use now = from.uses[want.scope.number];
                ++now.concurrent;
                now.reserved += want.picousd;
                put(from, want.scope.number, now);
            }
        }
    }
    for (const std::uint64_t scope : named) {
        const LimitBook::Use own = book_.use(scope), &all = all_[scope], &its = from.uses[scope];
        reply.elsewhere.push_back({.scope = ScopeId{scope},
                                   .concurrent = own.concurrent + all.concurrent - its.concurrent,
                                   .spent = own.spent + all.spent - its.spent,
                                   .reserved = own.reserved + all.reserved - its.reserved});
    }
    return reply;
}

void LimitHome::look(std::int64_t now_ns) {
    const std::lock_guard guard(mutex_);
    for (auto& [gateway, follower] : followers_) {
        if (follower.lost || now_ns - follower.heard_ns < kLostNs) continue;
        follower.lost = true;
        for (const auto& [scope, use] : std::map(follower.uses)) put(follower, scope, {0, use.spent, use.reserved});
    }
}

void LimitHome::begin_period() {
    const std::lock_guard guard(mutex_);
    for (auto& [gateway, follower] : followers_)
        for (const auto& [scope, use] : std::map(follower.uses))
            put(follower, scope, {use.concurrent, 0, follower.lost ? 0 : use.reserved});
}

std::size_t LimitHome::heard() const {
    const std::lock_guard guard(mutex_);
    return static_cast<std::size_t>(
        std::count_if(followers_.begin(), followers_.end(), [](const auto& each) { return !each.second.lost; }));
}

HomeRecord LimitHome::record() const {
    const std::lock_guard guard(mutex_);
    HomeRecord record;
    for (const auto& [gateway, follower] : followers_) {
        HeardOf& heard = record.gateways.emplace_back();
        heard.gateway = gateway;
        for (const auto& [scope, use] : follower.uses)
            if (use.spent + use.reserved > 0) heard.uses.push_back({ScopeId{scope}, 0, use.spent, use.reserved});
    }
    return record;
}

void LimitHome::restore(const HomeRecord& record) {
    const std::lock_guard guard(mutex_);
    for (const HeardOf& heard : record.gateways) {
        Follower& follower = followers_[heard.gateway];
        follower.lost = true;
        for (const ScopeUse& use : heard.uses) put(follower, use.scope.number, {0, use.spent, use.reserved});
    }
}

AdmitDecision admit_all(LimitBook& book, const LimitAsk& ask, std::int64_t now_ns) {
    AdmitDecision all;
    for (std::size_t i = 0; i < ask.wants.size(); ++i) {
        const ScopeWant& want = ask.wants[i];
        AdmitDecision one = book.admit(want.scope.number, want.limits(), want.tokens, want.picousd, now_ns);
        if (!one.admitted()) {
            for (std::size_t taken = 0; taken < i; ++taken) {
                const ScopeWant& back = ask.wants[taken];
                book.take_back(back.scope.number, back.limits(), back.tokens, back.picousd);
            }
            one.refused_by = static_cast<int>(i);
            return one;
        }
        all = i == 0 ? one : tighter_of(all, one);
    }
    return all;
}

LimitVerdict verdict_of(const AdmitDecision& decision) {
    return {.refusal = static_cast<int>(decision.refusal),
            .retry_after_s = decision.retry_after_s,
            .money_is_spent = decision.money_is_spent,
            .requests = decision.request_limit.limit,
            .request_burst = decision.request_limit.burst,
            .requests_left = decision.requests.remaining,
            .requests_reset_ns = decision.requests.reset_ns,
            .tokens = decision.token_limit.limit,
            .token_burst = decision.token_limit.burst,
            .tokens_left = decision.tokens.remaining,
            .tokens_reset_ns = decision.tokens.reset_ns};
}

AdmitDecision decision_of(const LimitVerdict& verdict) {
    AdmitDecision decision{.retry_after_s = verdict.retry_after_s,
                           .request_limit = {.limit = verdict.requests, .burst = verdict.request_burst},
                           .token_limit = {.limit = verdict.tokens, .burst = verdict.token_burst},
                           .money_is_spent = verdict.money_is_spent};
    constexpr int kLast = static_cast<int>(LimitRefusal::budget);
    decision.refusal = verdict.refusal >= 0 && verdict.refusal <= kLast ? static_cast<LimitRefusal>(verdict.refusal)
                                                                        : LimitRefusal::budget;
    decision.requests.remaining = verdict.requests_left;
    decision.requests.reset_ns = verdict.requests_reset_ns;
    decision.tokens.remaining = verdict.tokens_left;
    decision.tokens.reset_ns = verdict.tokens_reset_ns;
    return decision;
}

}  // namespace stoker::gateway
