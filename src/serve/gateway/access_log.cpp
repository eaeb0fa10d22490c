#include "serve/gateway/access_log.h"

#include <fmt/format.h>

namespace stoker::gateway {

namespace {

constexpr LogEvent kAnswered{"request.answered", LogLevel::info,
                             "peer, method, path, key, project, request, status, outcome, model, answered_by, replica, "
                             "streamed, attempts, in, cached, out, usd, first_token_ms, duration_ms, queued_ms, trace",
                             "A request that something was set aside for came to its end."};
constexpr LogEvent kRefused{"request.refused", LogLevel::info,
                            "peer, method, path, key, project, request, status, code",
                            "A request was refused before anything was set aside for it."};
constexpr LogEvent kOther{"request.other", LogLevel::info, "peer, method, path, key, project, request, status",
                          "A request that is not metered was answered."};

LogFields fields_of(const AccessCaller& caller, std::string_view request, int status) {
    LogFields fields;
    fields.reserve(21);
    fields.emplace_back("peer", caller.peer);
    fields.emplace_back("method", caller.method);
    fields.emplace_back("path", caller.path);
    fields.emplace_back("key", caller.key);
    fields.emplace_back("project", caller.project);
    fields.emplace_back("request", request);
    fields.emplace_back("status", status);
    return fields;
}

// Exact, without an exponent.
std::string usd_text(std::uint64_t picousd) {
    std::string text = fmt::format("{}.{:012}", picousd / 1'000'000'000'000, picousd % 1'000'000'000'000);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text += '0';
    return text;
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const AccessLogOptions& options) {
    TRY(auto log, Log::open({.format = options.format,
                             .file = options.file,
                             .max_bytes = options.max_bytes,
                             .keep = options.keep,
                             .most_waiting = 65'536}));
    return std::unique_ptr<AccessLog>(new AccessLog(std::move(log)));
}

void AccessLog::answered(const AccessCaller& caller, const Answered& what) {
    LogFields fields = fields_of(caller, what.request, what.status);
    fields.emplace_back("outcome", what.outcome);
    fields.emplace_back("model", what.model);
    if (what.answered_by != what.model) fields.emplace_back("answered_by", what.answered_by);
    fields.emplace_back("replica", what.replica);
    fields.emplace_back("streamed", what.streamed);
    fields.emplace_back("attempts", what.attempts);
    fields.emplace_back("in", what.tokens_in);
    fields.emplace_back("cached", what.tokens_cached);
    fields.emplace_back("out", what.tokens_out);
    LogField usd("usd", usd_text(what.picousd));
    usd.number = true;
    fields.push_back(std::move(usd));
    if (what.first_token_ms > 0) fields.emplace_back("first_token_ms", what.first_token_ms);
    fields.emplace_back("duration_ms", what.duration_ms);
    if (what.queued_ms > 0) fields.emplace_back("queued_ms", what.queued_ms);
    fields.emplace_back("trace", what.trace);
    log_->write(kAnswered, fields);
}

void AccessLog::refused(const AccessCaller& caller, std::string_view request, int status, std::string_view code) {
    LogFields fields = fields_of(caller, request, status);
    fields.emplace_back("code", code);
    log_->write(kRefused, fields);
}

void AccessLog::other(const AccessCaller& caller, std::string_view request, int status) {
    log_->write(kOther, fields_of(caller, request, status));
}

}  // namespace stoker::gateway
