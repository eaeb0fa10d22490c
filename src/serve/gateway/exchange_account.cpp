// What an exchange owes to others than its client: what it sets aside, the names of requests that may come twice, the
// money that a model may cost, the models that stand in for it, and the figures for metrics.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "io/process.h"
#include "io/sha256.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/figures.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/objectives.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kLongestKey = 255;

// As the semantic conventions of OpenTelemetry for generative AI call it, where they have a word.
std::string_view operation_of(const wire::Endpoint& endpoint) {
    switch (endpoint.meter) {
        case wire::Meter::chat:
        case wire::Meter::responses:
        case wire::Meter::messages: return "chat";
        case wire::Meter::completion: return "text_completion";
        case wire::Meter::embedding: return "embeddings";
        default: return endpoint.name;
    }
}

}  // namespace

void Exchange::count_by(const ModelSetup& model) {
    count_.use(model.tokenizer || !model.board ? model.tokenizer : model.board->view()->tokenizer);
}

std::uint32_t Exchange::prompt_counted() const {
    if (count_.knows_prompt()) return count_.prompt() + loop_.template_tokens(model_->id).tokens(prompt_items_);
    // Not what was set aside, which is more than is likely.
    return loop_.prompt_bytes_per_token(model_->id).tokens(prompt_bytes_);
}

// What an upstream says is charged; less than was delivered is not believed, and then it is our count that is.
wire::Usage Exchange::used(SettleRecord& record, bool partial) {
    Shared& shared = loop_.shared();
    const std::uint32_t counted = record.counted_out;
    bool believed = !prompt_untold_, drifts = false;
    if (choices_) {
        const auto tallied = choices_->total({.exact = count_.counts(),
                                              .prompt = prompt_counted(),
                                              .written = [this](std::uint32_t choice, std::uint64_t bytes) {
                                                  return count_.counts()
                                                             ? count_.written(choice)
                                                             : loop_.bytes_per_token(model_->id).tokens(bytes);
                                              }});
        drifts = tallied && tallied->counted && !partial;
        believed = tallied && !tallied->counted;
        usage_ = tallied ? std::optional(tallied->used) : std::nullopt;
    }
    wire::Usage used = usage_.value_or(wire::Usage{.in = prompt_counted(), .out = counted});
    if (!usage_ && media_parts_ > 0) record.flags |= kSettleUncounted;
    if (usage_) {
        // What was thought, and answers of which the best is shown, are seen by nobody.
        constexpr std::uint32_t kEnough = 16, kFactor = 4;
        const std::uint32_t shown = (used.out - std::min(used.out, used.reasoning)) / hidden_answers_;
        // By bytes it cannot be told from a text whose tokens are long, as rows of blanks are.
        const bool less_out =
            (used.out == 0 && counted > 0) || (count_.counts() && counted >= kEnough && used.out < counted / kFactor);
        const bool none_in = used.in == 0 && prompt_bytes_ > 0 && endpoint_.meter != wire::Meter::image;
        drifts = drifts || less_out || none_in || (counted >= kEnough && shown / kFactor > counted);
        believed = believed && !none_in && !less_out;
        if (none_in) used.in = prompt_counted();
        if (less_out || partial) used.out = std::max(used.out, counted);
    } else {
        ++shared.counters.counted;
    }
    if (drifts) {
        record.flags |= kSettleDrift;
        ++shared.counters.drift;
    }
    record.settled_by = static_cast<std::uint8_t>(usage_ && believed ? SettledBy::upstream_usage : SettledBy::counted);
    if (usage_ && believed && !partial && !drifts) learn_from(*usage_);
    if (endpoint_.meter == wire::Meter::speech) return {.in = reserve_.in_estimate};
    if (images_ > 0 && !usage_) return {};
    return used;
}

void Exchange::learn_from(const wire::Usage& used) {
    loop_.bytes_per_token(model_->id).learn(text_bytes_, used.out);
    if (media_parts_ == 0) loop_.prompt_bytes_per_token(model_->id).learn(prompt_bytes_, used.in);
    if (count_.prompt_is_whole() && media_parts_ == 0)
        loop_.template_tokens(model_->id).learn(prompt_items_, static_cast<double>(used.in) - count_.prompt());
}

// A message_start tells what was read, and clients of the Anthropic API take no stream without it. llama.cpp's server
// leaves it out where the first token is no whole character.
void Exchange::begin_message() {
    prompt_untold_ = true;
    usage_ = wire::Usage{.in = prompt_counted()};
    Json used = Json::object().set("input_tokens", std::uint64_t{usage_->in}).set("output_tokens", 0);
    Json message = Json::object().set("id", "msg_" + request_id().substr(4)).set("type", "message");
    message.set("role", "assistant").set("model", asked_->name).set("content", Json(Json::Array()));
    message.set("stop_reason", Json()).set("stop_sequence", Json()).set("usage", std::move(used));
    const Json event = Json::object().set("type", "message_start").set("message", std::move(message));
    emit("event: message_start\ndata: " + event.dump(0) + "\n\n");
}

Dialect Exchange::dialect() const {
    return endpoint_.meter == wire::Meter::responses  ? Dialect::responses
           : endpoint_.meter == wire::Meter::messages ? Dialect::messages
                                                      : Dialect::openai;
}

std::optional<Refusal> Exchange::claim_name(std::string_view key, const HttpRequest& request, bool& replayed) {
    const bool printable_key =
        std::all_of(key.begin(), key.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
    if (key.empty() || key.size() > kLongestKey || !printable_key)
        return Refusal{.status = 400,
                       .type = "invalid_request_error",
                       .code = "invalid_idempotency_key",
                       .message = "Idempotency-Key: 1 to 255 visible characters were expected"};
    const std::string name = fmt::format("{:016x} {}", key_.id, key);
    const std::string digest = hex(sha256(fmt::format("{}\n{}", endpoint_.path, request.body)));
    IdempotencyBook& book = loop_.shared().names;
    const auto found = book.begin(name, digest, request_id(), monotonic_clock_us());
    switch (found.found) {
        case IdempotencyBook::Found::fresh: name_.emplace(book, name); return std::nullopt;
        case IdempotencyBook::Found::running:
            return Refusal{.status = 409,
                           .type = "invalid_request_error",
                           .code = "idempotency_in_progress",
                           .message = fmt::format("{} has this Idempotency-Key and is under way", found.request_id),
                           .retry_after_s = 1};
        case IdempotencyBook::Found::other_body:
            return Refusal{.status = 422,
                           .type = "invalid_request_error",
                           .code = "idempotency_mismatch",
                           .message = fmt::format("{} had this Idempotency-Key and another body", found.request_id)};
        case IdempotencyBook::Found::answered: break;
    }
    if (!found.answer->whole())
        return Refusal{.status = 409,
                       .type = "invalid_request_error",
                       .code = "idempotency_answered",
                       .message = fmt::format("{} had this Idempotency-Key and was answered to its end; the answer was "
                                              "a stream or too long to be kept. Another key asks again",
                                              found.request_id)};
    client_.replay(*found.answer);
    replayed = true;
    return std::nullopt;
}

bool Exchange::take_cap() {
    if (model_->cap_picousd == 0) return true;
    cap_reserved_ =
        model_->price.of(reserve_.in_estimate, 0, reserve_.out_reserve) + images_ * model_->price.image_picousd;
    capped_ = loop_.shared()
                  .limits
                  .admit(model_->cap_id, {.budget_picousd = model_->cap_picousd}, 0, cap_reserved_,
                         monotonic_clock_us() * 1000)
                  .admitted();
    cap_changed();
    return capped_;
}

void Exchange::leave_cap(std::uint64_t charged) {
    if (!std::exchange(capped_, false)) return;
    loop_.shared().limits.settle(model_->cap_id, {.budget_picousd = model_->cap_picousd}, 0, 0, cap_reserved_, charged);
    cap_changed();
}

void Exchange::cap_changed() {
    if (const auto& share = loop_.shared().share) share->changed(model_->cap_id, {}, 0);
}

bool Exchange::fall_back() {
    if (ended_ || over_ || stream_open_ || fallback_at_ >= asked_->fallback.size()) return false;
    const ModelSetup* before = model_;
    const bool was_capped = capped_;
    leave_cap(0);
    while (fallback_at_ < asked_->fallback.size()) {
        const auto next = setup_->models.find(asked_->fallback[fallback_at_++]);
        if (next == setup_->models.end()) continue;
        model_ = &next->second;
        if (!take_cap()) continue;
        ++loop_.figures_of(*before).fell_back;
        tried_.clear();
        attempts_here_ = 0;
        held_until_us_ = 0;
        named_.clear();
        // Of an endpoint each replica says what it calls the model.
        request_ = wire::with_edits(original_, wire::edits_for(scan_, named_, asked_usage_));
        body_at_ = 0;
        name_model(model_->upstream_name.empty() && !model_->board ? model_->name : model_->upstream_name);
        if (model_->board) {
            expected_output_ = model_->board->expected_output(reserve_.out_reserve);
            model_->board->arrived(static_cast<double>(began_us_) / kUs, reserve_.in_estimate, expected_output_);
        }
        return true;
    }
    model_ = before;
    if (was_capped) take_cap();
    return false;
}

void Exchange::begin_trace(const HttpRequest& request) {
    const auto& traces = loop_.shared().traces;
    if (!traces) return;
    const auto header = request.headers.find("traceparent");
    const auto caller = header ? TraceParent::read(*header) : std::nullopt;
    auto own = traces->begin(caller, loop_.random());
    if (own) trace_ = std::make_unique<Trace>(Trace{std::move(*own), caller ? caller->span : ""});
}

void Exchange::tell_trace(const SettleRecord& record) {
    if (!trace_) return;
    const auto outcome = static_cast<LedgerOutcome>(record.outcome);
    loop_.shared().traces->record({.own = std::move(trace_->own),
                                   .caller = std::move(trace_->caller),
                                   .operation = std::string(operation_of(endpoint_)),
                                   .model = asked_->name,
                                   .request = request_id(),
                                   .project = key_.project,
                                   .key = key_.entry.name,
                                   .outcome = std::string(to_string(outcome)),
                                   .begin_unix_us = reserve_.started_unix_us,
                                   .end_unix_us = record.finished_unix_us,
                                   .tokens_in = record.in,
                                   .tokens_cached = record.cached_in,
                                   .tokens_out = record.out,
                                   .attempts = record.attempts,
                                   .first_token_ms = record.ttft_ms,
                                   .status = record.status,
                                   .streamed = wants_stream_,
                                   .failed = outcome != LedgerOutcome::ok && outcome != LedgerOutcome::client_cancel});
}

void Exchange::tell_access(const SettleRecord& record) {
    const auto& access = loop_.shared().access;
    if (!access) return;
    access->answered(client_.access_caller(),
                     {.request = request_id(),
                      .model = asked_->name,
                      .answered_by = model_->name,
                      .replica = answered_at_,
                      .outcome = to_string(static_cast<LedgerOutcome>(record.outcome)),
                      .trace = trace_ ? std::string_view(trace_->own.trace) : std::string_view(),
                      .status = record.status,
                      .streamed = wants_stream_,
                      .tokens_in = record.in,
                      .tokens_cached = record.cached_in,
                      .tokens_out = record.out,
                      .picousd = record.charge_picousd,
                      .attempts = record.attempts,
                      .first_token_ms = record.ttft_ms,
                      .duration_ms = record.duration_ms,
                      .queued_ms = static_cast<std::uint32_t>(sample_.queue_s * 1e3)});
}

void Exchange::tell_figures(const SettleRecord& record) {
    ModelFigures& model = loop_.figures_of(*asked_);
    const auto outcome = static_cast<LedgerOutcome>(record.outcome);
    const auto plus = [](std::atomic<std::uint64_t>& counter, std::uint64_t more) {
        counter.fetch_add(more, std::memory_order_relaxed);
    };
    plus(model.outcomes[record.outcome], 1);
    plus(model.tokens_in, record.in);
    plus(model.tokens_cached, record.cached_in);
    plus(model.tokens_out, record.out);
    ProjectFigures& project = loop_.figures_of(key_);
    plus(project.requests, 1);
    plus(project.tokens_in, record.in);
    plus(project.tokens_out, record.out);
    plus(project.picousd, record.charge_picousd);
    const double seconds = static_cast<double>(monotonic_clock_us() - began_us_) / kUs;
    const double first_s = first_us_ == 0 ? 0 : static_cast<double>(first_us_ - began_us_) / kUs;
    if (sample_.queue_s > 0 && held_us_ != 0) model.queue.see(kSecondsBounds, sample_.queue_s);
    const bool ok = outcome == LedgerOutcome::ok;
    if (ok) {
        model.duration.see(kSecondsBounds, seconds);
        if (first_s > 0) model.first_token.see(kSecondsBounds, first_s);
        if (first_s > 0 && record.out > 1)
            model.each_token.see(kTokenBounds, static_cast<double>(last_us_ - first_us_) / kUs / (record.out - 1));
    }
    const ServiceObjective& objective = asked_->objective;
    if (!objective.any()) return;
    const Judged verdict = judge(objective, outcome, record.status, first_s, seconds);
    if (verdict == Judged::not_ours) return;
    plus(model.judged, 1);
    plus(model.unavailable, verdict == Judged::unavailable ? 1 : 0);
    plus(model.slow, verdict == Judged::slow ? 1 : 0);
}

}  // namespace stoker::gateway
