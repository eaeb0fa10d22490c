#include "serve/gateway/idempotency.h"

#include <utility>

namespace stoker::gateway {
namespace {

constexpr std::int64_t kKeptUs = 24LL * 3600 * 1'000'000;

}  // namespace

void IdempotencyBook::drop(Entries::iterator at) {
    bytes_ -= at->bytes();
    by_name_.erase(at->name);
    entries_.erase(at);
}

IdempotencyBook::Look IdempotencyBook::begin(const std::string& name, std::string_view body_digest,
                                             std::string_view request_id, std::int64_t now_us) {
    const std::lock_guard guard(mutex_);
    // What runs is never forgotten: it ends by itself.
    for (auto at = entries_.begin(); at != entries_.end();) {
        const auto next = std::next(at);
        if (at->answer && (now_us - at->at_us > kKeptUs || bytes_ > most_bytes_))
            drop(at);
        else if (at->answer)
            break;
        at = next;
    }
    if (const auto known = by_name_.find(name); known != by_name_.end()) {
        const Entry& entry = *known->second;
        if (entry.digest != body_digest)
            return {.found = Found::other_body, .answer = {}, .request_id = entry.request_id};
        if (!entry.answer) return {.found = Found::running, .answer = {}, .request_id = entry.request_id};
        return {.found = Found::answered, .answer = entry.answer, .request_id = entry.request_id};
    }
    entries_.push_back({.name = name,
                        .digest = std::string(body_digest),
                        .request_id = std::string(request_id),
                        .answer = {},
                        .at_us = now_us});
    by_name_.emplace(name, std::prev(entries_.end()));
    bytes_ += entries_.back().bytes();
    return {};
}

void IdempotencyBook::answered(const std::string& name, KeptAnswer answer) {
    const std::lock_guard guard(mutex_);
    const auto known = by_name_.find(name);
    if (known == by_name_.end()) return;
    Entry& entry = *known->second;
    bytes_ -= entry.bytes();
    entry.answer = std::make_shared<const KeptAnswer>(std::move(answer));
    bytes_ += entry.bytes();
}

void IdempotencyBook::abandoned(const std::string& name) {
    const std::lock_guard guard(mutex_);
    const auto known = by_name_.find(name);
    if (known != by_name_.end() && !known->second->answer) drop(known->second);
}

}  // namespace stoker::gateway
