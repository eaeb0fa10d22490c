#include "govern/limits/limit_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stoker {
namespace {

std::int64_t whole_seconds(std::int64_t ns) {
    return std::max<std::int64_t>(1, (ns + 999'999'999) / 1'000'000'000);
}

bool over_budget(const KeyLimits& limits, std::uint64_t spent, std::uint64_t reserved, std::uint64_t more) {
    const std::uint64_t budget = limits.budget_picousd;
    return budget > 0 && (spent > budget || reserved > budget - spent || more > budget - spent - reserved);
}

}  // namespace

void LimitBook::set_spent(std::uint64_t key, std::uint64_t picousd) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    own.scopes[key].spent = picousd;
}

void LimitBook::begin_period() {
    for (Shard& each : shards_) {
        const std::lock_guard guard(each.mutex);
        for (auto& [key, scope] : each.scopes) scope.spent = 0;
    }
}

void LimitBook::begin_rates(Scope& scope, const KeyLimits& limits) const {
    if (!used_up_ns_ || std::exchange(scope.rates_begun, true)) return;
    scope.requests.take(limits.requests, limits.requests.most_at_once(), *used_up_ns_);
    scope.tokens.take(limits.tokens, limits.tokens.most_at_once(), *used_up_ns_);
}

LimitBook::Use LimitBook::use(std::uint64_t key) const {
    const Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    const auto found = own.scopes.find(key);
    if (found == own.scopes.end()) return {};
    return {found->second.concurrent, found->second.spent, found->second.reserved};
}

void LimitBook::set_elsewhere(std::uint64_t key, const Use& elsewhere) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    own.scopes[key].elsewhere = elsewhere;
}

void LimitBook::hand_over(std::uint64_t key, std::uint64_t picousd) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    --scope.concurrent;
    scope.reserved -= std::min(scope.reserved, picousd);
    ++scope.elsewhere.concurrent;
    scope.elsewhere.reserved += picousd;
}

void LimitBook::refund_tokens(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    own.scopes[key].tokens.refund(limits.tokens, tokens);
}

std::uint64_t LimitBook::spent(std::uint64_t key) const {
    const Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    const auto found = own.scopes.find(key);
    return found == own.scopes.end() ? 0 : found->second.spent;
}

std::int64_t LimitBook::concurrent(std::uint64_t key) const {
    const Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    const auto found = own.scopes.find(key);
    return found == own.scopes.end() ? 0 : found->second.concurrent;
}

AdmitDecision LimitBook::admit(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd,
                               std::int64_t now_ns) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    begin_rates(scope, limits);
    AdmitDecision decision{.request_limit = limits.requests, .token_limit = limits.tokens};
    decision.requests = scope.requests.peek(limits.requests, 1, now_ns);
    decision.tokens = scope.tokens.peek(limits.tokens, tokens, now_ns);
    const auto refuse = [&](LimitRefusal why, std::int64_t retry_after_s) {
        decision.refusal = why;
        decision.retry_after_s = retry_after_s;
        // Nothing is taken: what remains is what there was.
        decision.requests = scope.requests.peek(limits.requests, 0, now_ns);
        decision.tokens = scope.tokens.peek(limits.tokens, 0, now_ns);
        return decision;
    };
    if (!limits.tokens.none() && decision.tokens.never) return refuse(LimitRefusal::too_many_tokens, 0);
    if (limits.concurrent > 0 && scope.concurrent + scope.elsewhere.concurrent >= limits.concurrent)
        return refuse(LimitRefusal::concurrent, 1);
    if (!decision.requests.admitted)
        return refuse(LimitRefusal::requests, whole_seconds(decision.requests.retry_after_ns));
    if (!decision.tokens.admitted) return refuse(LimitRefusal::tokens, whole_seconds(decision.tokens.retry_after_ns));
    if (over_budget(limits, scope.all_spent(), scope.all_reserved(), picousd)) {
        decision.money_is_spent = over_budget(limits, scope.all_spent(), 0, picousd);
        return refuse(LimitRefusal::budget, decision.money_is_spent ? 60 : 1);
    }
    scope.requests.take(limits.requests, 1, now_ns);
    scope.tokens.take(limits.tokens, tokens, now_ns);
    ++scope.concurrent;
    scope.reserved += picousd;
    return decision;
}

bool LimitBook::extend(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd,
                       std::int64_t now_ns) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    if (over_budget(limits, scope.all_spent(), scope.all_reserved(), picousd)) return false;
    if (!scope.tokens.peek(limits.tokens, tokens, now_ns).admitted) return false;
    scope.tokens.take(limits.tokens, tokens, now_ns);
    scope.reserved += picousd;
    return true;
}

void LimitBook::give_back(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    scope.tokens.refund(limits.tokens, tokens);
    scope.reserved -= std::min(scope.reserved, picousd);
}

void LimitBook::settle(std::uint64_t key, const KeyLimits& limits, std::int64_t reserved_tokens,
                       std::int64_t used_tokens, std::uint64_t reserved_picousd, std::uint64_t charged_picousd) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    --scope.concurrent;
    scope.tokens.refund(limits.tokens, reserved_tokens - used_tokens);
    scope.reserved -= std::min(scope.reserved, reserved_picousd);
    scope.spent += charged_picousd;
}

void LimitBook::take_back(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd) {
    Shard& own = shard(key);
    const std::lock_guard guard(own.mutex);
    Scope& scope = own.scopes[key];
    --scope.concurrent;
    scope.requests.refund(limits.requests, 1);
    scope.tokens.refund(limits.tokens, tokens);
    scope.reserved -= std::min(scope.reserved, picousd);
}

AdmitDecision tighter_of(const AdmitDecision& one, const AdmitDecision& other) {
    AdmitDecision out = one;
    const auto nearer = [](const RateLimit& there, const RateDecision& now, RateLimit& limit, RateDecision& decision) {
        if (there.none() || (!limit.none() && decision.remaining <= now.remaining)) return;
        limit = there;
        decision = now;
    };
    nearer(other.request_limit, other.requests, out.request_limit, out.requests);
    nearer(other.token_limit, other.tokens, out.token_limit, out.tokens);
    return out;
}

std::string reset_text(std::int64_t ns) {
    if (ns < 1'000'000'000) return fmt::format("{}ms", (ns + 999'999) / 1'000'000);
    const std::int64_t s = whole_seconds(ns);
    if (s < 60) return fmt::format("{}s", s);
    if (s < 3600) return fmt::format("{}m{}s", s / 60, s % 60);
    return fmt::format("{}h{}m{}s", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace stoker
