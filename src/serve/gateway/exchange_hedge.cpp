// A request whose first byte does not come is sent to a second replica, and whichever answers first is taken. Both are
// the same to everything else: upstream_ and its likes are those of one of them, other_ has those of the other.
#include <utility>

#include "io/process.h"
#include "serve/gateway/choose.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/upstream.h"

namespace stoker::gateway {
namespace {

// What it says in its first line; 0: it has not said it yet, or in no way that is known.
int status_of(std::string_view bytes) {
    constexpr std::string_view kBegin = "HTTP/1.";
    constexpr std::size_t kAt = 9, kDigits = 3;
    if (!bytes.starts_with(kBegin) || bytes.size() < kAt + kDigits) return 0;
    int status = 0;
    for (const char c : bytes.substr(kAt, kDigits)) status = c >= '0' && c <= '9' ? status * 10 + (c - '0') : 0;
    return status;
}

}  // namespace

void Exchange::hedge() {
    if (other_ || upstream_ == nullptr || !upstream_->sent() || request_.empty()) return;
    if (attempts_here_ >= setup_->max_attempts || !loop_.take_hedge(model_->id)) return;
    const Choices choices = choices_of(loop_, *model_);
    tried_.push_back(replica_);
    const RouteDecision decision = choose_replica(choices);
    tried_.pop_back();  // it may answer yet
    if (!decision) return loop_.return_hedge(model_->id);
    ++loop_.shared().counters.hedges;
    other_ = std::make_unique<Sent>();
    other_->sample = sample_;
    swap_sent();
    send_to(choices, decision, false);
}

void Exchange::swap_sent() {
    std::swap(upstream_, other_->upstream);
    std::swap(replica_, other_->replica);
    std::swap(route_prompt_, other_->prompt);
    std::swap(route_output_, other_->output);
    std::swap(load_, other_->load);
    std::swap(sample_, other_->sample);
    std::swap(attempt_us_, other_->attempt_us);
    std::swap(last_us_, other_->last_us);
}

// The first that answers; one that refuses is no answer while the other may have a better one. False: it was that.
bool Exchange::take_first(UpstreamConnection* connection, std::string_view bytes) {
    const int status = status_of(bytes);
    if (status / 100 > 2 || status < 100) {
        const bool busy = status == 429 || status == 503;
        const bool asked_wrong = status / 100 == 4 && !busy;
        upstream_failed(connection, busy          ? ReplicaOutcome::busy
                                    : asked_wrong ? ReplicaOutcome::request_error
                                                  : ReplicaOutcome::bad_gateway);
        return false;
    }
    const bool second = connection == upstream_;  // that was sent last
    if (!second) swap_sent();
    if (second) ++loop_.shared().counters.hedges_won;
    drop_other();
    return true;
}

void Exchange::drop_other() {
    if (!other_) return;
    swap_sent();
    drop_upstream();
    leave_replica(ReplicaOutcome::outrun);
    swap_sent();
    other_.reset();
}

}  // namespace stoker::gateway
