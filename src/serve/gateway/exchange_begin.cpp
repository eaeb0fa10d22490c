// How a request begins: what its body asks for, what is set aside for it, who says that it may, and its reservation.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "io/process.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/limit_share.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {

bool Exchange::refuse(const Refusal& why) {
    std::string headers;
    if (admitted_.request_limit.limit > 0 || admitted_.token_limit.limit > 0) append_limit_headers(headers, admitted_);
    client_.refuse(why, headers, request_id());
    return false;
}

bool Exchange::begin(HttpRequest request, const std::string& deployment) {
    wire::BodyResult body = wire::scan_body(request.body);
    if (body.scan && !deployment.empty() && body.scan->model != deployment) {
        request.body = wire::with_edits(request.body, {wire::naming(*body.scan, deployment)});
        body = wire::scan_body(request.body);
    }
    if (!body.scan)
        return refuse({.status = 400,
                       .type = "invalid_request_error",
                       .code = body.fault.code,
                       .message = fmt::format("{}, at byte {} of the body", body.fault.what, body.fault.at),
                       .param = body.fault.field});
    wire::BodyScan& scan = *body.scan;
    const auto known = setup_->models.find(scan.model);
    const bool visible =
        known != setup_->models.end() &&
        (known->second.projects.empty() || std::find(known->second.projects.begin(), known->second.projects.end(),
                                                     key_.project) != known->second.projects.end());
    if (scan.model.empty())
        return refuse({.status = 400,
                       .type = "invalid_request_error",
                       .code = "missing_model",
                       .message = "the body names no model",
                       .param = "model"});
    const auto& will_be = loop_.shared().options.will_be;
    if (known == setup_->models.end() && will_be && will_be(scan.model))
        return refuse({.status = 503,
                       .type = "overloaded",
                       .code = "warming_up",
                       .message = fmt::format("the endpoint '{}' is not kept by this gateway yet", scan.model),
                       .retry_after_s = 1});
    if (!visible)
        return refuse({.status = 404,
                       .type = "not_found_error",
                       .code = "model_not_found",
                       .message = fmt::format("there is no model '{}'", printable(scan.model, 100)),
                       .param = "model"});
    model_ = asked_ = &known->second;
    if (!key_.models.empty() && std::find(key_.models.begin(), key_.models.end(), scan.model) == key_.models.end())
        return refuse({.status = 403,
                       .type = "permission_error",
                       .code = "model_not_allowed",
                       .message = fmt::format("this key may not use '{}'", printable(scan.model, 100)),
                       .param = "model"});
    if (scan.stream && !endpoint_.streams)
        return refuse({.status = 400,
                       .type = "invalid_request_error",
                       .code = "stream_not_supported",
                       .message = "this endpoint has no streams",
                       .param = "stream"});
    if (const auto key = request.headers.find("idempotency-key")) {
        bool replayed = false;
        if (const auto why = claim_name(*key, request, replayed)) return refuse(*why);
        if (replayed) return false;
    }
    set_aside(scan, request.body);
    LimitShare* share = loop_.shared().share.get();
    const auto limited = [&](const LimitScope& scope) { return scope.limits->any(); };
    if (share != nullptr && share->asks() && std::ranges::any_of(std::span(scopes_).first(scope_count_), limited)) {
        asked_for_ = loop_.ask_share(&client_, limit_ask());
        shared_limits_ = !share->home();
        waiting_ = std::make_unique<Waiting>(Waiting{std::move(request), std::move(scan)});
        return true;
    }
    admitted_ = admit_all(loop_.shared().limits, limit_ask(), monotonic_clock_us() * 1000);
    return go_on(request, scan);
}

LimitAsk Exchange::limit_ask() const {
    LimitAsk ask;
    ask.wants.reserve(scope_count_);
    for (std::size_t i = 0; i < scope_count_; ++i) {
        const KeyLimits& limits = *scopes_[i].limits;
        ask.wants.push_back({.scope = ScopeId{scopes_[i].id},
                             .requests = limits.requests.limit,
                             .request_burst = limits.requests.burst,
                             .token_limit = limits.tokens.limit,
                             .token_burst = limits.tokens.burst,
                             .concurrent = limits.concurrent,
                             .budget = limits.budget_picousd,
                             .tokens = reserved_tokens_,
                             .picousd = reserved_picousd_});
    }
    return ask;
}

void Exchange::share_told(const std::optional<AdmitDecision>& decision) {
    const auto waited = std::exchange(waiting_, nullptr);
    asked_for_ = 0;
    bool goes_on = false;
    if (decision) {
        admitted_ = *decision;
        goes_on = go_on(waited->request, waited->scan);
    } else {
        refuse({.status = 503,
                .type = "overloaded",
                .code = "limits_unavailable",
                .message = "the gateway that counts the limits of this key does not answer",
                .retry_after_s = 1});
    }
    if (!goes_on && !over_) client_.exchange_done(true);
}

// False: it was refused.
bool Exchange::go_on(const HttpRequest& request, const wire::BodyScan& scan) {
    if (!admitted_.admitted()) {
        ++loop_.shared().counters.refused;
        Refusal why = refusal_of(admitted_, key_.project);
        if (admitted_.refusal == LimitRefusal::too_many_tokens && open_ended_)
            why.message += fmt::format(", since it names none and {} are set aside", reserve_.out_reserve);
        // What was spent comes back when the period ends, and not before.
        if (admitted_.money_is_spent) {
            const std::int64_t now_us = wall_clock_us();
            const std::int64_t end_us = budget_period_end_us(loop_.shared().options.budget_period, now_us);
            why.retry_after_s = end_us == 0 ? 0 : std::max<std::int64_t>(1, (end_us - now_us) / 1'000'000 + 1);
        }
        return refuse(why);
    }
    reserve_.flags = static_cast<std::uint16_t>((scan.stream ? kReserveStream : 0) |
                                                (scan.include_usage ? kReserveClientAskedUsage : 0));
    if (Ledger* ledger = loop_.shared().ledger.get()) {
        reserve_lsn_ = ledger->reserve(reserve_);
        if (reserve_lsn_ == 0) {
            take_back_limits();
            return refuse({.status = 503,
                           .type = "overloaded",
                           .code = "ledger_unavailable",
                           .message = "no request can be accounted for now",
                           .retry_after_s = 5});
        }
        // An answer in one piece waits for its settlement, which is durable no sooner than this.
        if (scan.stream) loop_.wait_for_commit(reserve_lsn_, this);
    } else {
        ready_ = true;
    }
    wants_stream_ = scan.stream;
    make_request(request, scan);
    if (model_->hedge_s > 0) loop_.earn_hedge(model_->id);
    if (!take_cap() && !fall_back()) {
        const std::int64_t now_us = wall_clock_us();
        const std::int64_t end_us = budget_period_end_us(loop_.shared().options.budget_period, now_us);
        fail(LedgerOutcome::rejected,
             {.status = 429,
              .type = "insufficient_quota",
              .code = "model_budget_exceeded",
              .message = "what all may spend on this model in this period is spent",
              .retry_after_s = end_us == 0 ? 0 : std::max<std::int64_t>(1, (end_us - now_us) / 1'000'000 + 1)});
        return true;
    }
    if (model_->board && model_ == asked_) {
        expected_output_ = model_->board->expected_output(reserve_.out_reserve);
        model_->board->arrived(static_cast<double>(began_us_) / kUs, reserve_.in_estimate, expected_output_);
    }
    attempt();
    return true;
}

void Exchange::set_aside(const wire::BodyScan& scan, std::string_view body) {
    const bool generates = endpoint_.meter == wire::Meter::chat || endpoint_.meter == wire::Meter::completion ||
                           endpoint_.meter == wire::Meter::responses || endpoint_.meter == wire::Meter::messages;
    const bool reads = endpoint_.meter != wire::Meter::request && endpoint_.meter != wire::Meter::speech;
    count_by(*model_);
    if (reads) count_.read_prompt(body);
    prompt_bytes_ = reads ? scan.prompt_bytes : 0;
    prompt_items_ = scan.items;
    media_parts_ = reads ? scan.media_parts : 0;
    const std::uint32_t text =
        endpoint_.meter == wire::Meter::request ? 0
        : endpoint_.meter == wire::Meter::speech
            ? static_cast<std::uint32_t>(std::min<std::uint64_t>(scan.input_characters, UINT32_MAX))
        : count_.knows_prompt() && (count_.prompt_is_whole() || !setup_->strict_tokens)
            ? count_.prompt() + wire::most_prompt_tokens(0, scan.items)
        : setup_->strict_tokens ? wire::most_prompt_tokens(scan.prompt_bytes, scan.items)
                                : wire::likely_prompt_tokens(scan.prompt_bytes, scan.items);
    const std::uint32_t in = text + wire::media_tokens(media_parts_);
    open_ended_ = generates && !scan.max_tokens;
    const std::int64_t each = !generates ? 0 : scan.max_tokens.value_or(model_->default_output_tokens);
    const std::int64_t answers = scan.answers * scan.prompts;
    answers_ = static_cast<std::uint64_t>(answers);
    const std::int64_t out =
        std::min<std::int64_t>(std::min<std::int64_t>(each * scan.choices, UINT32_MAX) * scan.prompts, UINT32_MAX);
    if (answers > 1 && (endpoint_.meter == wire::Meter::chat || endpoint_.meter == wire::Meter::completion))
        choices_ = std::make_unique<wire::ChoiceTally>(static_cast<std::uint32_t>(scan.answers), scan.max_tokens);
    hidden_answers_ = static_cast<std::uint32_t>((scan.choices + scan.answers - 1) / scan.answers);
    reserved_tokens_ = in + out;
    images_ = endpoint_.meter == wire::Meter::image ? static_cast<std::uint64_t>(scan.choices) : 0;
    reserved_picousd_ =
        model_->price.of(in, 0, static_cast<std::uint64_t>(out)) + images_ * model_->price.image_picousd;
    reserve_.tenant = reserve_.project = key_.project_id;
    reserve_.key = key_.id;
    reserve_.model = model_->id;
    reserve_.price_version = model_->price_version;
    reserve_.endpoint = static_cast<std::uint8_t>(&endpoint_ - wire::kEndpoints.data());
    reserve_.in_estimate = in;
    reserve_.out_reserve = static_cast<std::uint32_t>(out);
    reserve_.reserve_picousd = reserved_picousd_;
    reserve_.started_unix_us = wall_clock_us();
    reserve_.in_picousd = model_->price.in_picousd;
    reserve_.out_picousd = model_->price.out_picousd;
    scopes_[0] = {key_.id, &key_.limits};
    scope_count_ = key_.project_limited ? 2 : 1;
    if (key_.project_limited) scopes_[1] = {key_.project_id, &key_.project_limits};
}

// What is left to this gateway to judge where another one counts: money, as far as it was told of the others.
KeyLimits Exchange::limits_here(const LimitScope& scope) const {
    return shared_limits_ ? KeyLimits{.budget_picousd = scope.limits->budget_picousd} : *scope.limits;
}

void Exchange::take_back_limits() {
    for (std::size_t i = 0; i < scope_count_; ++i) {
        loop_.shared().limits.take_back(scopes_[i].id, limits_here(scopes_[i]), reserved_tokens_, reserved_picousd_);
        limits_changed(scopes_[i], reserved_tokens_);
    }
}

void Exchange::settle_limits(std::int64_t used_tokens, std::uint64_t charged_picousd) {
    for (std::size_t i = 0; i < scope_count_; ++i) {
        loop_.shared().limits.settle(scopes_[i].id, limits_here(scopes_[i]), reserved_tokens_, used_tokens,
                                     reserved_picousd_, charged_picousd);
        limits_changed(scopes_[i], reserved_tokens_ - used_tokens);
    }
}

bool Exchange::extend_limits(std::int64_t tokens, std::uint64_t picousd) {
    LimitBook& book = loop_.shared().limits;
    const std::int64_t now_ns = monotonic_clock_us() * 1000;
    for (std::size_t i = 0; i < scope_count_; ++i) {
        if (!book.extend(scopes_[i].id, limits_here(scopes_[i]), tokens, picousd, now_ns)) {
            while (i-- > 0) {
                book.give_back(scopes_[i].id, limits_here(scopes_[i]), tokens, picousd);
                limits_changed(scopes_[i], tokens);
            }
            return false;
        }
        limits_changed(scopes_[i], -tokens);
    }
    return true;
}

// The home hears of it; tokens of a stream that goes on are a debt there, for which later requests wait.
void Exchange::limits_changed(const LimitScope& scope, std::int64_t unused_tokens) {
    if (shared_limits_) loop_.shared().share->changed(scope.id, *scope.limits, unused_tokens);
}

}  // namespace stoker::gateway
