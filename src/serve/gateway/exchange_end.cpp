// How an exchange ends: by the upstream's word, by ours, or since its client has left. Its last bytes leave when its
// settlement is durable.
#include <utility>

#include "serve/gateway/exchange.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/upstream.h"

namespace stoker::gateway {

// Each answer that was asked for said why it ended, and the body came to its end: some servers say no [DONE].
bool Exchange::says_it_is_whole() const {
    const bool ends_by_done = endpoint_.meter == wire::Meter::chat || endpoint_.meter == wire::Meter::completion;
    return ends_by_done && (choices_ ? choices_->finished() >= answers_ : finished_);
}

void Exchange::end_without_done() {
    leave_replica(ReplicaOutcome::ok);
    UpstreamConnection* upstream = std::exchange(upstream_, nullptr);
    if (parser_->keep_alive())
        upstream->release();
    else
        upstream->drop();
    end_stream("data: [DONE]\n\n");
}

void Exchange::end_stream(std::string_view last_event) {
    ended_ = true;
    if (upstream_ != nullptr) leave_replica(ReplicaOutcome::ok);
    if (!settle(LedgerOutcome::ok, 200, false)) return ledger_failed();
    if (name_) kept_ = KeptAnswer{.request_id = request_id()};
    finish(last_piece(last_event));
}

void Exchange::finish(std::string final_bytes) {
    final_ = std::move(final_bytes);
    Ledger* ledger = loop_.shared().ledger.get();
    if (ledger == nullptr || ledger->durable() >= settle_lsn_) return complete();
    if (ready_) client_.flush();
    if (!over_) loop_.wait_for_commit(settle_lsn_, this);  // else the client has left meanwhile
}

void Exchange::complete() {
    if (over_) return;
    over_ = true;
    loop_.no_longer_waits(settle_lsn_);
    // A stream whose body has not ended yet is not waited for.
    drop_upstream();
    leave_replica(ReplicaOutcome::our_deadline);
    if (name_ && kept_) name_->answered(std::move(*kept_));
    client_.queue(held_);
    client_.queue(final_);
    client_.exchange_done(keep_ && client_.keeps_open());
}

void Exchange::committed() {
    if (over_) return;
    const Ledger& ledger = *loop_.shared().ledger;
    if (ledger.failed()) return ledger_failed();
    const std::uint64_t durable = ledger.durable();
    if (settled_ && durable >= settle_lsn_) return complete();
    if (ready_ || durable < reserve_lsn_) return;
    ready_ = true;
    if (held_.empty()) return;
    head_shown_ = true;
    client_.queue(held_);
    held_ = {};
    client_.flush();
}

void Exchange::ledger_failed() {
    if (over_) return;
    ended_ = true;
    keep_ = false;
    drop_upstream();
    leave_replica(ReplicaOutcome::our_deadline);
    settle(LedgerOutcome::rejected, 503, head_shown_);
    held_.clear();
    final_.clear();
    const Refusal why{.status = 503,
                      .type = "overloaded",
                      .code = "ledger_unavailable",
                      .message = "the account of this request could not be written",
                      .retry_after_s = 5};
    if (head_shown_) {
        final_ = last_piece(error_event(why, dialect(), sequence_));
    } else {
        const std::string body = error_body(why, dialect());
        final_ = head_of_answer(503, "application/json");
        append_number_header(final_, "retry-after", why.retry_after_s);
        append_number_header(final_, "content-length", static_cast<std::int64_t>(body.size()));
        final_ += "\r\n" + body;
    }
    complete();
}

void Exchange::fail(LedgerOutcome outcome, const Refusal& why) {
    if (ended_ || over_) return;
    if (std::exchange(waiting_, nullptr)) {
        asked_for_ = 0;
        refuse(why);
        if (!over_) client_.exchange_done(false);
        return;
    }
    ended_ = true;
    ++loop_.shared().counters.failed;
    drop_upstream();
    leave_replica(ReplicaOutcome::our_deadline);
    const bool shown = head_shown_;
    const bool kept = settle(outcome, why.status, shown);
    if (!kept) return ledger_failed();
    std::string out;
    if (shown) {
        keep_ = false;
        out = last_piece(error_event(why, dialect(), sequence_));
    } else {
        held_.clear();
        const std::string body = error_body(why, dialect());
        out = head_of_answer(why.status, "application/json");
        if (attempts_ == 1) append_header(out, "x-stoker-attempts", attempts_text_);
        append_again_headers(out, why);
        append_number_header(out, "content-length", static_cast<std::int64_t>(body.size()));
        out += "\r\n" + body;
    }
    finish(std::move(out));
}

void Exchange::cut(LedgerOutcome outcome, const Refusal& why) {
    if (ended_ || over_) return;
    drop_upstream();
    leave_replica(ReplicaOutcome::our_deadline);
    fail(outcome, why);
}

void Exchange::client_left() {
    if (over_) return;
    over_ = true;
    if (waiting_) return;  // nothing was taken yet
    const bool was_ended = ended_;
    ended_ = true;
    drop_upstream();
    leave_replica(ReplicaOutcome::client_left);
    if (!was_ended) {
        ++loop_.shared().counters.cancels;
        settle(LedgerOutcome::client_cancel, 499, true);
    }
    loop_.no_longer_waits(settle_lsn_);
}

}  // namespace stoker::gateway
