// The second half of an exchange: what the upstream answers, on its way to the client, counted and settled.
#include <fmt/format.h>

#include <algorithm>

#include "base/enum_words.h"
#include "base/text.h"
#include "io/http/http_date.h"
#include "io/process.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/upstream.h"

namespace stoker::gateway {
namespace {

constexpr std::uint32_t kMarkEvery = 256, kExtendBy = 512;  // tokens

Refusal other_model() {
    Refusal why = upstream_error("the replica answers as another model than before");
    why.code = "model_mismatch";
    return why;
}

std::int64_t retry_after_of(const HttpResponse& response) {
    const auto value = response.headers.find("retry-after");
    const auto seconds = value ? read_retry_after(*value, wall_clock_us() / 1'000'000) : std::nullopt;
    return std::clamp<std::int64_t>(seconds.value_or(1), 1, 600);
}

// What it says of an error: in JSON, or in plain words, as some do of bodies that they cannot read.
std::string said_of_error(const wire::AnswerScan& scan, const HttpResponse& response) {
    constexpr std::size_t kMostSaid = 500;
    if (scan.sound || !starts_with_ignore_case(response.content_type, "text/plain")) return scan.error_message;
    return printable(trim(response.body), kMostSaid);
}

}  // namespace

void Exchange::on_head() {
    const HttpResponse& head = parser_->response();
    if (head.status / 100 != 2 || !wants_stream_ || !starts_with_ignore_case(head.content_type, "text/event-stream"))
        return;
    streaming_ = true;
    open_stream();
    loop_.streams(this, true);
    parser_->on_piece = [this](std::string_view piece) { return on_piece(piece); };
}

// Once: while it is held, or when the upstream's answer begins.
void Exchange::open_stream() {
    if (std::exchange(stream_open_, true)) return;
    std::string out = head_of_answer(200, "text/event-stream");
    append_header(out, "cache-control", "no-cache");
    if (client_.chunks()) append_header(out, "transfer-encoding", "chunked");
    out += "\r\n";
    show(out);
}

bool Exchange::on_piece(std::string_view piece) {
    if (ended_) return true;
    return events_.feed(piece, [this](std::string_view event) { return on_event(event); });
}

bool Exchange::on_event(std::string_view event) {
    if (ended_) return true;
    // From the first event that is shown on it is not sent again.
    if (ready_ && !request_.empty()) forget_request();
    ++sequence_;
    const wire::SseEvent read = wire::read_sse_event(event);
    if (read.lines == 0 && read.name.empty()) {
        if (event.find(':') == std::string_view::npos) return trim(event).empty();  // no stream of events
        emit(event);
        return true;
    }
    if (trim(read.data) == "[DONE]") {
        end_stream(event);
        return true;
    }
    if (read.lines == 1) return on_data(event, read.data);
    if (read.lines > 1) {
        const std::string joined = wire::in_one_line(event);
        return on_data(joined, wire::read_sse_event(joined).data);
    }
    emit(event);
    return true;
}

bool Exchange::on_data(std::string_view event, std::string_view data) {
    const wire::AnswerScan scan = wire::scan_answer(endpoint_.meter, data, count_.texts(), pieces());
    if (!scan.sound) return false;
    if (choices_) choices_->see_event(scan);
    finished_ = finished_ || scan.finished;
    if (scan.failed) {
        ++loop_.shared().counters.failed;
        fail(LedgerOutcome::upstream_error,
             upstream_error(scan.error_message.empty() ? "the upstream failed" : scan.error_message));
        return true;
    }
    if (first_us_ == 0 && load_ && !load_->answers_as(reserve_.endpoint, scan.model)) {
        fail(LedgerOutcome::upstream_error, other_model());
        return true;
    }
    if (endpoint_.meter == wire::Meter::messages && !usage_ && scan.type.starts_with("content_block")) begin_message();
    text_bytes_ += scan.text_bytes;
    count_.take_texts();
    if (scan.text_bytes > 0 && first_us_ == 0) {
        first_us_ = monotonic_clock_us();
        if (!prefix_.empty()) loop_.prefixes().add(prefix_, replica_);
        prefilled();
    }
    if (scan.usage) {
        // Of the messages API the prompt is told at the begin, and the output (1, then) again at the end.
        wire::Usage told = *scan.usage;
        if (endpoint_.meter == wire::Meter::messages) {
            if (scan.type == "message_start") told.out = 0;
            if (usage_ && told.in == 0) {
                told.in = usage_->in;
                told.cached_in = usage_->cached_in;
            }
        }
        usage_ = told;
    }
    const bool terminal =
        (endpoint_.meter == wire::Meter::messages && scan.type == "message_stop") ||
        (endpoint_.meter == wire::Meter::responses &&
         (scan.type == "response.completed" || scan.type == "response.incomplete" || scan.type == "response.failed"));
    if (terminal) {
        end_stream(event);
        return true;
    }
    const std::uint32_t counted = counted_out();
    if (counted > reserve_.out_reserve && open_ended_ && !extend()) {
        cut(LedgerOutcome::budget_cut, {.status = 429,
                                        .type = "insufficient_quota",
                                        .code = "budget_exceeded",
                                        .message = "the limit or the budget of this key ends this answer"});
        return true;
    }
    if (asked_usage_ && scan.usage && scan.choices && scan.choices_empty) return true;
    if (asked_usage_ && scan.usage_end > 0)
        emit(wire::without_usage(event, data, scan));
    else
        emit(event);
    if (counted >= marked_out_ + kMarkEvery)
        if (const auto moved = mark(); moved && loop_.shared().ledger) loop_.shared().ledger->mark({*moved});
    return true;
}

std::uint32_t Exchange::counted_out() const {
    return count_.counts() ? count_.about_written() : loop_.bytes_per_token(model_->id).tokens(text_bytes_);
}
std::uint32_t Exchange::all_counted_out() const {
    return count_.counts() ? count_.written() : counted_out();
}

bool Exchange::extend() {
    const std::uint64_t more = std::uint64_t{kExtendBy} * model_->price.out_picousd;
    if (!extend_limits(kExtendBy, more)) return false;
    reserve_.out_reserve += kExtendBy;
    reserved_tokens_ += kExtendBy;
    reserved_picousd_ += more;
    return true;
}

std::optional<MarkEntry> Exchange::mark() {
    if (!streaming_ || settled_ || !ready_ || reserve_lsn_ == 0) return std::nullopt;
    const std::uint32_t counted = counted_out();
    if (counted == marked_out_) return std::nullopt;
    marked_out_ = counted;
    return MarkEntry{reserve_lsn_, usage_ && usage_->in > 0 ? usage_->in : prompt_counted(), counted};
}

void Exchange::on_complete() {
    if (ended_) {  // the end of a stream was seen before the end of its body
        if (upstream_ != nullptr) {
            if (parser_->keep_alive() && !parser_->stopped())
                std::exchange(upstream_, nullptr)->release();
            else
                drop_upstream();
        }
        return;
    }
    if (streaming_ && says_it_is_whole()) return end_without_done();
    if (streaming_) return upstream_failed(upstream_, ReplicaOutcome::broke);  // or no stream of events at all
    HttpResponse& response = parser_->response();
    const int status = response.status;
    const bool again = status == 429 || status == 503 || status == 502 || status == 504;
    const bool busy = status == 429 || (status == 503 && response.headers.find("retry-after"));
    const std::uint64_t used = replica_;
    const std::shared_ptr<ReplicaLoad> load = load_;
    if (parser_->keep_alive())
        std::exchange(upstream_, nullptr)->release();
    else
        drop_upstream();
    leave_replica(status / 100 == 2 ? ReplicaOutcome::ok
                  : busy            ? ReplicaOutcome::busy
                  : again           ? ReplicaOutcome::bad_gateway
                                    : ReplicaOutcome::request_error,
                  static_cast<double>(retry_after_of(response)));
    if (again && attempts_here_ < setup_->max_attempts && model_->upstreams.size() > tried_.size() + 1) {
        tried_.push_back(used);
        ++loop_.shared().counters.retries;
        return attempt();
    }
    const bool ours = again || status >= 500 || status == 401 || status == 403 || status == 404;
    if (ours && !stream_open_ && fall_back()) return attempt();
    const wire::AnswerScan scan = wire::scan_answer(endpoint_.meter, response.body, count_.texts(), pieces());
    const std::string said = said_of_error(scan, response);
    if (again || status >= 500 || status == 401 || status == 403 || status / 100 == 3) {
        Refusal why = upstream_error(said.empty() ? fmt::format("the upstream answered {}", status) : said,
                                     status == 429 || status == 503 ? status : 502);
        if (why.status != 502) {
            why.type = why.code = status == 429 ? "rate_limit_error" : "overloaded";
            if (status == 429) why.code = "rate_limit_exceeded";
            why.retry_after_s = retry_after_of(response);
        }
        return fail(LedgerOutcome::upstream_error, why);
    }
    if (stream_open_)  // it was held: its head is out
        return fail(LedgerOutcome::upstream_error,
                    upstream_error(status / 100 == 2 ? "the upstream answered without a stream"
                                   : said.empty()    ? fmt::format("the upstream answered {}", status)
                                                     : said));
    const bool good = status / 100 == 2;
    // It is the caller's to mend all the same.
    if (!scan.sound && status / 100 == 4)
        return fail(
            LedgerOutcome::rejected,
            {.status = status,
             .type = status == 404 ? "not_found_error" : "invalid_request_error",
             .code = "upstream_refused",
             .message = said.empty() ? fmt::format("the upstream answered {} and does not say why", status) : said});
    if (!scan.sound && !(good && endpoint_.meter == wire::Meter::speech))
        return fail(LedgerOutcome::upstream_error,
                    upstream_error(fmt::format("the upstream answered {} without JSON", status)));
    if (good && load && !load->answers_as(reserve_.endpoint, scan.model))
        return fail(LedgerOutcome::upstream_error, other_model());
    usage_ = scan.usage;
    if (choices_) choices_->see_answer(scan);
    text_bytes_ = scan.text_bytes;
    count_.take_texts();
    if (good && endpoint_.meter == wire::Meter::image) images_ = std::min(images_, scan.data_items);
    ended_ = true;
    if (good && !prefix_.empty()) loop_.prefixes().add(prefix_, used);
    // Some say with 200 that it went wrong.
    const bool answered = good && (!scan.failed || scan.usage);
    const bool kept = settle(answered ? LedgerOutcome::ok : LedgerOutcome::rejected, status, false);
    if (!kept) return ledger_failed();
    const std::string type = scan.sound || response.content_type.empty() ? "application/json" : response.content_type;
    if (name_ && answered)
        kept_ = response.body.size() <= IdempotencyBook::kMostKept
                    ? KeptAnswer{.status = status, .type = type, .body = response.body, .request_id = request_id()}
                    : KeptAnswer{.request_id = request_id()};
    std::string out = head_of_answer(status, type);
    append_number_header(out, "content-length", static_cast<std::int64_t>(response.body.size()));
    out += "\r\n";
    out += response.body;
    finish(std::move(out));
}

std::string Exchange::head_of_answer(int status, std::string_view type) const {
    std::string out;
    out.reserve(512);
    append_head(out, status, type);
    client_.append_page_headers(out);
    append_header(out, "x-request-id", request_id());
    if (dialect() == Dialect::messages) append_header(out, "request-id", request_id());
    append_limit_headers(out, admitted_);
    if (attempts_ > 1) append_header(out, "x-stoker-attempts", attempts_text_);
    if (model_ != asked_) append_header(out, "x-stoker-model", model_->name);
    append_header(out, "connection", client_.keeps_open() ? "keep-alive" : "close");
    return out;
}

// To the client; held until the reservation is durable.
void Exchange::show(std::string_view bytes) {
    if (!ready_) {
        held_ += bytes;
        return;
    }
    head_shown_ = true;
    client_.queue(bytes);
}

void Exchange::emit(std::string_view event) {
    if (!client_.chunks()) return show(event);
    std::string chunk;
    append_chunk(chunk, event);
    show(chunk);
}

std::string Exchange::last_piece(std::string_view event) const {
    if (!client_.chunks()) return std::string(event);
    std::string out;
    append_chunk(out, event);
    return out += "0\r\n\r\n";
}

void Exchange::push() {
    if (ready_) client_.flush();
    if (over_ || upstream_ == nullptr) return;
    if (client_.backlog() + held_.size() > setup_->stream_buffer_bytes) upstream_->pause(true);
}

void Exchange::client_drained() {
    if (upstream_ != nullptr) upstream_->pause(false);
}

bool Exchange::settle(LedgerOutcome outcome, int status, bool partial) {
    if (settled_) return true;
    settled_ = true;
    drop_other();
    loop_.no_longer_waits(reserve_lsn_);
    if (streaming_) loop_.streams(this, false);
    Shared& shared = loop_.shared();
    SettleRecord record{.request = reserve_.request, .reserve_lsn = reserve_lsn_};
    record.counted_out = all_counted_out();
    no_longer_held();
    const bool delivered = outcome == LedgerOutcome::ok || (head_shown_ && record.counted_out > 0);
    if (delivered) {
        const wire::Usage charged = used(record, partial);
        record.in = charged.in;
        record.cached_in = charged.cached_in;
        record.out = charged.out;
        record.reasoning = charged.reasoning;
        record.other_units = images_;
        record.charge_picousd =
            asked_->price.of(charged.in, charged.cached_in, charged.out) + images_ * asked_->price.image_picousd;
    }
    if (model_->board) tell_board(outcome, {.in = record.in, .cached_in = record.cached_in, .out = record.out});
    const std::int64_t now = monotonic_clock_us();
    // 0 is none: what took less than a millisecond took one.
    record.ttft_ms = first_us_ == 0 ? 0 : std::max(1u, static_cast<std::uint32_t>((first_us_ - began_us_) / 1000));
    record.duration_ms = static_cast<std::uint32_t>(std::min<std::int64_t>((now - began_us_) / 1000, UINT32_MAX));
    record.status = static_cast<std::uint16_t>(status);
    record.outcome = static_cast<std::uint8_t>(outcome);
    record.attempts = static_cast<std::uint8_t>(std::min(attempts_, 255));
    if (partial) record.flags |= kSettlePartial;
    record.replica = replica_;
    record.finished_unix_us = wall_clock_us();
    settle_limits(static_cast<std::int64_t>(record.in) + record.out, record.charge_picousd);
    leave_cap(!delivered
                  ? 0
                  : model_->price.of(record.in, record.cached_in, record.out) + images_ * model_->price.image_picousd);
    tell_figures(record);
    tell_access(record);  // before the trace, which takes its name along
    tell_trace(record);
    shared.counters.tokens_in += record.in;
    shared.counters.tokens_out += record.out;
    shared.counters.picousd += record.charge_picousd;
    if (!shared.ledger) return true;
    settle_lsn_ = shared.ledger->settle(record);
    if (settle_lsn_ == 0) ++shared.counters.unaccounted;
    return settle_lsn_ != 0;
}

void Exchange::tell_board(LedgerOutcome outcome, const wire::Usage& used) {
    if (sample_.replica == 0) return;  // it came to none
    const bool failed = outcome == LedgerOutcome::upstream_error || outcome == LedgerOutcome::upstream_timeout;
    if (!failed && outcome != LedgerOutcome::ok) return;  // cut short: says nothing of the replica
    const auto seconds = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / kUs; };
    sample_.at_s = static_cast<double>(monotonic_clock_us()) / kUs;
    sample_.failed = failed;
    if (!failed) {
        sample_.prompt_tokens = used.in;
        sample_.cached_tokens = used.cached_in;
        sample_.output_tokens = used.out;
        sample_.first_token_at_s = first_us_ > 0 ? static_cast<double>(first_us_) / kUs : sample_.at_s;
        if (first_us_ > 0) {
            sample_.ttft_s = seconds(began_us_, first_us_);
            sample_.upstream_ttft_s = seconds(attempt_us_, first_us_);
            if (used.out > 1) sample_.tpot_s = seconds(first_us_, last_us_) / (used.out - 1);
        }
    }
    model_->board->ended(sample_);
}

}  // namespace stoker::gateway
