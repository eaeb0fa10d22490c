#include "serve/gateway/answers.h"

#include <fmt/format.h>

#include "base/json.h"
#include "io/http/http_wire.h"

namespace stoker::gateway {

namespace {

// The types of the Anthropic API are by status.
std::string_view messages_type(int status) {
    switch (status) {
        case 400:
        case 422: return "invalid_request_error";
        case 401: return "authentication_error";
        case 403: return "permission_error";
        case 404: return "not_found_error";
        case 413: return "request_too_large";
        case 429: return "rate_limit_error";
        case 503: return "overloaded_error";
        case 504: return "timeout_error";
        default: return status < 500 ? "invalid_request_error" : "api_error";
    }
}

}  // namespace

std::string error_body(const Refusal& refusal, Dialect dialect) {
    if (dialect == Dialect::messages) {
        Json error = Json::object();
        error.set("type", std::string(messages_type(refusal.status))).set("message", refusal.message);
        error.set("code", refusal.code);
        return Json::object().set("type", "error").set("error", std::move(error)).dump(0);
    }
    Json error = Json::object();
    error.set("message", refusal.message).set("type", refusal.type);
    error.set("param", refusal.param.empty() ? Json() : Json(refusal.param)).set("code", refusal.code);
    return Json::object().set("error", std::move(error)).dump(0);
}

std::string error_event(const Refusal& refusal, Dialect dialect, std::uint64_t sequence) {
    if (dialect == Dialect::openai) return "data: " + error_body(refusal) + "\n\n";
    if (dialect == Dialect::messages) return "event: error\ndata: " + error_body(refusal, dialect) + "\n\n";
    const Json event = Json::object()
                           .set("type", "error")
                           .set("code", refusal.code)
                           .set("message", refusal.message)
                           .set("param", refusal.param.empty() ? Json() : Json(refusal.param))
                           .set("sequence_number", sequence);
    return "event: error\ndata: " + event.dump(0) + "\n\n";
}

void append_head(std::string& out, int status, std::string_view content_type) {
    fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", status, http_status_text(status));
    if (!content_type.empty()) append_header(out, "content-type", content_type);
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
}

void append_number_header(std::string& out, std::string_view name, std::int64_t value) {
    append_header(out, name, fmt::format_int(value).c_str());
}

void append_limit_headers(std::string& out, const AdmitDecision& decision) {
    const auto put = [&](const RateLimit& limit, const RateDecision& rate, std::string_view what) {
        if (limit.none()) return;
        const auto name = [&](std::string_view part) {
            return std::string("x-ratelimit-").append(part).append("-").append(what);
        };
        append_number_header(out, name("limit"), limit.limit);
        append_number_header(out, name("remaining"), rate.remaining);
        append_header(out, name("reset"), reset_text(rate.reset_ns));
    };
    put(decision.request_limit, decision.requests, "requests");
    put(decision.token_limit, decision.tokens, "tokens");
}

void append_chunk(std::string& out, std::string_view bytes) {
    fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
    out.append(bytes).append("\r\n");
}

void append_again_headers(std::string& out, const Refusal& refusal) {
    if (refusal.retry_after_s > 0) append_number_header(out, "retry-after", refusal.retry_after_s);
    if (refusal.type == "insufficient_quota") append_header(out, "x-should-retry", "false");
}

Refusal refusal_of(const AdmitDecision& decision, std::string_view project) {
    Refusal refusal{.status = 429, .type = "rate_limit_error", .retry_after_s = decision.retry_after_s};
    const std::string who = decision.refused_by == 0  ? "this key"
                            : decision.refused_by > 0 ? fmt::format("all keys of the project '{}' together", project)
                                                      : "this key or its project";
    switch (decision.refusal) {
        case LimitRefusal::requests:
            refusal.code = "rate_limit_exceeded";
            refusal.message = fmt::format("{} may make {} request{} a minute; the next one in {} s", who,
                                          decision.request_limit.limit, decision.request_limit.limit == 1 ? "" : "s",
                                          refusal.retry_after_s);
            break;
        case LimitRefusal::tokens:
            refusal.code = "tokens_exceeded";
            refusal.message = fmt::format("{} may use {} tokens a minute; there is room for this request in {} s", who,
                                          decision.token_limit.limit, refusal.retry_after_s);
            break;
        case LimitRefusal::too_many_tokens:
            refusal.status = 400;
            refusal.type = "invalid_request_error";
            refusal.code = "tokens_exceed_limit";
            refusal.message = fmt::format(
                "prompt and output together may be {} tokens at once for {}: this request never fits; ask for a "
                "smaller max_tokens",
                decision.token_limit.most_at_once(), who);
            break;
        case LimitRefusal::concurrent:
            refusal.code = "concurrency_exceeded";
            refusal.message = fmt::format("{} {} as many requests under way as may be", who,
                                          decision.refused_by > 0 ? "have" : "has");
            break;
        case LimitRefusal::budget:
            refusal.type = "insufficient_quota";
            refusal.code = "budget_exceeded";
            refusal.message = fmt::format("the budget of {} does not cover this request", who);
            break;
        case LimitRefusal::none: break;
    }
    return refusal;
}

Refusal upstream_error(std::string message, int status) {
    return {.status = status, .type = "upstream_error", .code = "upstream_error", .message = std::move(message)};
}

}  // namespace stoker::gateway
