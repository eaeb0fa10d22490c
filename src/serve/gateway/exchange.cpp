#include "serve/gateway/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/enum_words.h"
#include "base/text.h"
#include "io/process.h"
#include "serve/gateway/choose.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/upstream.h"

namespace stoker::gateway {
namespace {

constexpr double kLongestPauseS = 3600, kBusyAgainS = 5;
constexpr double kFirstBeatS = 1, kBeatEveryS = 5;  // of a stream that is held

constexpr std::array<std::string_view, 17> kNotForwarded = {"host",
                                                            "content-length",
                                                            "transfer-encoding",
                                                            "connection",
                                                            "keep-alive",
                                                            "te",
                                                            "trailer",
                                                            "upgrade",
                                                            "proxy-authorization",
                                                            "proxy-connection",
                                                            "expect",
                                                            "authorization",
                                                            "accept-encoding",
                                                            "cookie",
                                                            "x-api-key",
                                                            "api-key",
                                                            "idempotency-key"};

}  // namespace

Exchange::Exchange(Loop& loop, GatewayClient& client, std::shared_ptr<const Setup> setup, const KeySetup& key,
                   const wire::Endpoint& endpoint)
    : loop_(loop),
      client_(client),
      setup_(std::move(setup)),
      key_(key),
      endpoint_(endpoint),
      began_us_(monotonic_clock_us()) {
    reserve_.request = loop.new_request();
    ++loop_.shared().counters.under_way;
    loop_.exchange_begins();
}

Exchange::~Exchange() {
    CHECK(settled_ || reserve_lsn_ == 0);
    --loop_.shared().counters.under_way;
    loop_.exchange_ends();
}

void Exchange::make_request(const HttpRequest& request, const wire::BodyScan& scan) {
    begin_trace(request);
    query_ = request.target.substr(std::min(request.target.find('?'), request.target.size()));
    asked_usage_ = scan.stream && endpoint_.takes_usage_option && !scan.include_usage;
    for (const auto& header : request.headers.items) {
        const std::string_view name = header.first;
        const bool ours = std::any_of(kNotForwarded.begin(), kNotForwarded.end(),
                                      [&](std::string_view each) { return equals_ignore_case(each, name); });
        if (trace_ && equals_ignore_case(name, "traceparent")) continue;
        if (!ours && !starts_with_ignore_case(name, "x-stoker-")) append_header(forwarded_, name, header.second);
    }
    if (trace_) append_header(forwarded_, "traceparent", trace_->own.header());
    named_ = model_->upstream_name;
    request_ = wire::with_edits(request.body, wire::edits_for(scan, named_, asked_usage_));
    if (model_->board || !model_->fallback.empty()) {
        original_ = request.body;
        scan_ = scan;
    }
    forwarded_ += "accept-encoding: identity\r\n";
    // Where there is a choice, who has read the beginning of this prompt before reads it again for nothing.
    if (!model_->board && model_->upstreams.size() < 2 && model_->fallback.empty()) return;
    prefix_ = prefix_blocks(scan.prompt_span.of(request.body), reserve_.tenant ^ model_->id);
    const auto session = request.headers.find("x-stoker-session");
    const std::string_view named = session ? *session : std::string_view(scan.session);
    if (!named.empty()) affinity_ = name_id(named) ^ reserve_.tenant;
}

void Exchange::name_model(const std::string& upstream_name) {
    if (upstream_name == named_) return;
    named_ = upstream_name;
    request_ = wire::with_edits(original_, wire::edits_for(scan_, named_, asked_usage_));
    body_at_ = 0;
}

RouteDecision Exchange::choose_replica(const Choices& choices) {
    const double output = model_->board ? expected_output_ : static_cast<double>(reserve_.out_reserve);
    PrefixMatches matches;
    if (!prefix_.empty() && choices.views.size() > 1)
        matches = loop_.prefixes().find(prefix_, static_cast<double>(kPrefixBlockBytes) / wire::kLikelyBytesPerToken);
    return choose(choices,
                  {.prompt_tokens = static_cast<double>(reserve_.in_estimate),
                   .output_tokens = output,
                   .cached = matches.span(),
                   .session = affinity_,
                   .tried = tried_},
                  loop_.random());
}

void Exchange::attempt(bool fresh) {
    count_by(*model_);
    const Choices choices = choices_of(loop_, *model_);
    const RouteDecision decision = choose_replica(choices);
    if (!decision) return nobody_takes_it(decision.reason, choices.pause_s);
    send_to(choices, decision, fresh);
}

void Exchange::send_to(const Choices& choices, const RouteDecision& decision, bool fresh) {
    UpstreamSetup made;
    const UpstreamSetup& chosen = upstream_of(choices, *model_, decision.replica, made);
    Replica& replica = loop_.replica(chosen.id);
    if (choices.views[static_cast<std::size_t>(decision.replica)].trial)
        replica.breaker = with_trial_sent(replica.breaker);
    ++attempts_;
    ++attempts_here_;
    attempt_us_ = last_us_ = monotonic_clock_us();
    // Before it connects, and back in leave_replica alone.
    replica_ = chosen.id;
    if (loop_.shared().access)
        answered_at_ =
            choices.board ? choices.board->replicas[static_cast<std::size_t>(decision.replica)].name : chosen.url;
    route_prompt_ = decision.prompt_tokens;
    route_output_ = decision.output_tokens;
    ++replica.outstanding;
    replica.waiting_prompt_tokens += route_prompt_;
    replica.outstanding_decode_tokens += route_output_;
    if (choices.board) {
        const BoardReplica& known = choices.board->replicas[static_cast<std::size_t>(decision.replica)];
        take_load(known, static_cast<double>(attempt_us_) / kUs);
        name_model(known.model);
    }

    std::string head;
    if (model_->api_version.empty())
        head =
            fmt::format("POST {}{}{} HTTP/1.1\r\nhost: {}\r\n", chosen.path, endpoint_.path, query_, chosen.authority);
    else  // the name of a deployment stands in the path, which begins behind /v1
        head = fmt::format("POST {}/openai/deployments/{}{}?api-version={} HTTP/1.1\r\nhost: {}\r\n", chosen.path,
                           model_->upstream_name, endpoint_.path.substr(endpoint_.path.starts_with("/v1") ? 3 : 0),
                           model_->api_version, chosen.authority);
    head += forwarded_;
    head += model_->authorization;
    append_number_header(head, "content-length", static_cast<std::int64_t>(request_.size() - body_at_));
    head += "\r\n";
    request_.replace(0, body_at_, head);
    body_at_ = head.size();
    parser_.emplace(
        false, HttpLimits{.max_head_bytes = 32 * 1024, .max_headers = 100, .max_body_bytes = setup_->max_answer_bytes});
    parser_->on_head = [this] { on_head(); };
    answer_begun_ = false;
    upstream_ = UpstreamConnection::obtain(loop_, replica, chosen, fresh);
    if (upstream_ == nullptr) return upstream_failed(nullptr, ReplicaOutcome::unreachable);
    upstream_->begin(this, request_);
}

void Exchange::leave_replica(ReplicaOutcome outcome, double retry_after_s) {
    if (replica_ == 0) return;
    prefilled();
    Replica& replica = loop_.replica(replica_);
    --replica.outstanding;
    if (outcome == ReplicaOutcome::refused) loop_.forget_prefixes(replica_);  // it restarts, and its cache is cold
    replica.waiting_prompt_tokens -= route_prompt_;
    replica.outstanding_decode_tokens -= route_output_;
    if (replica.outstanding == 0) replica.waiting_prompt_tokens = replica.outstanding_decode_tokens = 0;
    replica.breaker = after_outcome(replica.breaker, outcome, static_cast<double>(monotonic_clock_us()) / kUs,
                                    loop_.random(), retry_after_s);
    if (load_) {
        --load_->outstanding;
        load_->outstanding_decode_tokens -= std::llround(route_output_);
        load_.reset();
    }
    attempts_text_ +=
        fmt::format("{}{:08x}={}", attempts_text_.empty() ? "" : ",", replica_ & 0xffffffffu, enum_word(outcome));
    replica_ = 0;
}

void Exchange::take_load(const BoardReplica& replica, double now_s) {
    load_ = replica.load;
    ++load_->outstanding;
    ++load_->taken;
    load_->waiting_prompt_tokens += std::llround(route_prompt_);
    load_->outstanding_decode_tokens += std::llround(route_output_);
    sample_.replica = replica.id;
    sample_.replica_name = replica.name;
    sample_.revision = replica.revision;
    sample_.queue_s = now_s - static_cast<double>(began_us_) / kUs;
}

// Its first token is there: what the replica has to read before others has become less. Once.
void Exchange::prefilled() {
    if (!load_ || route_prompt_ == 0) return;
    load_->waiting_prompt_tokens -= std::llround(route_prompt_);
    loop_.replica(replica_).waiting_prompt_tokens -= route_prompt_;
    route_prompt_ = 0;
}

void Exchange::drop_upstream() {
    if (upstream_ != nullptr) std::exchange(upstream_, nullptr)->drop();
}

// False: it is refused now.
bool Exchange::hold(RouteReason reason) {
    if (ended_ || over_) return false;
    bool starting = false;
    double patience_s = model_->queue_s;
    if (model_->board) {
        const auto view = model_->board->view();
        if (!view->open) return false;
        patience_s = view->hold_s;
        starting = reason == RouteReason::no_replica || reason == RouteReason::starting;
    } else if (reason != RouteReason::full) {
        return false;
    }
    if (patience_s <= 0) return false;
    const std::int64_t now_us = monotonic_clock_us();
    if (held_until_us_ == 0) held_until_us_ = now_us + static_cast<std::int64_t>(patience_s * kUs);
    if (held_us_ == 0) held_us_ = now_us;
    if (now_us >= held_until_us_) return false;
    sample_.cold = sample_.cold || starting;
    held_id_ = loop_.random().next();
    const QueueAnswer answer =
        loop_.holding().enter(this, setup_, *model_,
                              {.id = held_id_,
                               .tenant = name_id(key_.project),
                               .cost_tokens = std::max(1.0, static_cast<double>(reserve_.in_estimate)),
                               .deadline_s = static_cast<double>(held_until_us_) / kUs,
                               .held_bytes = request_.size() + original_.size()},
                              static_cast<double>(now_us) / kUs);
    if (!answer.accepted()) {
        fail(LedgerOutcome::rejected, refusal_of(answer, starting));
        return true;
    }
    held_now_ = true;
    return true;
}

void Exchange::no_longer_held() {
    if (std::exchange(held_now_, false)) loop_.holding().leave(model_->id, held_id_);
}

void Exchange::its_turn() {
    held_now_ = false;
    attempt();
}

void Exchange::waited_too_long() {
    held_now_ = false;
    const bool warming = sample_.cold && attempts_ == 0;
    const double waited_s = static_cast<double>(monotonic_clock_us() - held_us_) / kUs;
    // Who waited in vain in the same second must not come back in the same.
    const double chance = loop_.random().uniform();
    const double again_s = warming && model_->board ? model_->board->view()->ready_in_s * (1 + 0.5 * chance)
                                                    : std::max(kBusyAgainS, waited_s) * (0.5 + chance);
    fail(LedgerOutcome::rejected,
         {.status = 503,
          .type = "overloaded",
          .code = warming ? "warming_up" : "overloaded",
          .message =
              fmt::format("{} after {:.0f} s of waiting",
                          warming ? "no replica of this model was ready" : "no replica took this request", waited_s),
          .retry_after_s = std::clamp<std::int64_t>(std::llround(again_s), 1, 600)});
}

void Exchange::nobody_takes_it(RouteReason reason, double pause_s) {
    if (fall_back()) return attempt();
    if (hold(reason)) return;
    if (model_->board && !model_->board->view()->open)
        return fail(LedgerOutcome::rejected, {.status = 503,
                                              .type = "overloaded",
                                              .code = "stopped",
                                              .message = "this model is stopped",
                                              .retry_after_s = 60});
    if (attempts_ > 0)
        return fail(LedgerOutcome::upstream_error,
                    upstream_error("the upstreams of this model failed: " + attempts_text_));
    const bool full = reason == RouteReason::full;
    // It said so itself, a moment ago.
    const bool busy = !model_->board && reason == RouteReason::starting && pause_s < kLongestPauseS;
    fail(LedgerOutcome::rejected,
         {.status = 503,
          .type = "overloaded",
          .code = full || busy ? "overloaded" : "no_replica",
          .message = full   ? "every replica of this model has as much to do as it takes"
                     : busy ? "every replica of this model says that it is busy"
                            : "no replica of this model answers now",
          .retry_after_s = full                       ? 1
                           : pause_s < kLongestPauseS ? static_cast<std::int64_t>(std::ceil(pause_s))
                                                      : 5});
}

void Exchange::upstream_failed(const UpstreamConnection* connection, ReplicaOutcome outcome) {
    if (other_ && connection == other_->upstream) swap_sent();
    const bool stale =
        upstream_ != nullptr && upstream_->reused() && !answer_begun_ && outcome == ReplicaOutcome::broke;
    const std::uint64_t failed = replica_;
    drop_upstream();
    leave_replica(stale ? ReplicaOutcome::our_deadline : outcome);
    if (ended_ || over_) return;
    if (other_) {  // which goes on, as if it had been sent alone
        tried_.push_back(failed);
        swap_sent();
        other_.reset();
        return;
    }
    // It had closed the connection that it kept for us: nobody's fault, and it saw nothing of the request.
    if (stale) {
        --attempts_;
        --attempts_here_;
        return attempt(true);
    }
    if (begin_again()) {
        if (attempts_here_ < setup_->max_attempts) {
            tried_.push_back(failed);
            ++loop_.shared().counters.retries;
            return attempt();
        }
        if (fall_back()) return attempt();
    }
    const bool silent = outcome == ReplicaOutcome::silent;
    const bool unread = parser_ && parser_->state() == HttpResponseParser::State::broken;
    Refusal why = upstream_error(silent   ? "the upstream was silent for too long"
                                 : unread ? "the answer of the upstream cannot be read: " + parser_->what_is_wrong()
                                          : "the upstream failed: " + attempts_text_,
                                 silent ? 504 : 502);
    if (silent) why.code = "upstream_timeout";
    fail(silent ? LedgerOutcome::upstream_timeout : LedgerOutcome::upstream_error, why);
}

bool Exchange::begin_again() {
    if (!answer_begun_) return true;
    const bool shown = head_shown_ && sequence_ > 0;
    if (!wants_stream_ || shown || request_.empty()) return false;
    if (std::exchange(streaming_, false)) loop_.streams(this, false);
    if (!head_shown_) {  // what is held was for nobody yet
        held_.clear();
        stream_open_ = false;
    }
    events_ = wire::SseSplitter();
    usage_.reset();
    if (choices_) choices_->begin_again();
    prompt_untold_ = false;
    sequence_ = text_bytes_ = 0;
    count_.begin_again();
    first_us_ = 0;
    return true;
}

void Exchange::forget_request() {
    // An upstream may answer before it has read all.
    if (upstream_ == nullptr || !upstream_->sent()) return;
    request_ = {};
    forwarded_ = original_ = {};
}

void Exchange::upstream_closed(const UpstreamConnection* connection) {
    if (parser_ && answer_begun_) {
        parser_->finish();
        if (parser_->state() == HttpResponseParser::State::complete) return on_complete();
    }
    upstream_failed(connection, ReplicaOutcome::broke);
}

void Exchange::upstream_sent(UpstreamConnection* connection, std::string_view bytes) {
    if (other_ && !take_first(connection, bytes)) return;
    answer_begun_ = true;
    last_us_ = monotonic_clock_us();
    parser_->feed(bytes);
    if (over_ || upstream_ == nullptr) return;
    if (parser_->state() == HttpResponseParser::State::broken) return upstream_failed(upstream_, ReplicaOutcome::broke);
    if (parser_->state() == HttpResponseParser::State::complete) return on_complete();
    if (streaming_) push();
}

void Exchange::sweep(std::int64_t now_us) {
    if (over_ || ended_) return;
    // A stream that waits says so, since something in between would take its silence for an end.
    if (held_now_ && wants_stream_ && ready_ &&
        static_cast<double>(now_us - std::max(held_us_, beat_us_)) >
            (beat_us_ == 0 ? kFirstBeatS : kBeatEveryS) * kUs) {
        beat_us_ = now_us;
        open_stream();
        emit(": waiting for a replica\n\n");
        client_.flush();
        return;
    }
    if (upstream_ == nullptr) return;
    const Timeouts& timeouts = setup_->timeouts;
    const auto passed = [&](std::int64_t since, double seconds) {
        return static_cast<double>(now_us - since) > seconds * kUs;
    };
    if (upstream_->connecting()) {
        if (passed(attempt_us_, timeouts.connect_s)) upstream_failed(upstream_, ReplicaOutcome::unreachable);
    } else if (client_.backlog() > 0) {
        last_us_ = now_us;  // the client is slow, not the upstream
    } else if (passed(last_us_, answer_begun_ ? timeouts.silence_s : timeouts.first_byte_s)) {
        upstream_failed(upstream_, ReplicaOutcome::silent);
    } else if (model_->hedge_s > 0 && !answer_begun_ && passed(attempt_us_, model_->hedge_s)) {
        hedge();
    }
}

void Exchange::setup_changed(const Setup& setup, std::int64_t now_us) {
    const auto id = setup.tenants.key_of_sha256.find(key_.entry.sha256);
    const KeyEntry* now = id == setup.tenants.key_of_sha256.end() ? nullptr : &setup.tenants.keys.at(id->second);
    const bool over = now == nullptr || now->revoked || (now->expires_us > 0 && now_us >= now->expires_us);
    if (over)
        cut(LedgerOutcome::key_revoked, {.status = 401,
                                         .type = "authentication_error",
                                         .code = "key_revoked",
                                         .message = "the key of this request is no longer valid"});
}

}  // namespace stoker::gateway
