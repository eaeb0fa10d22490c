// One line for each request that came to a gateway, however it ended: who asked for what, who answered, what it used
// and cost, how long it took. Never a prompt, an answer or a key; written by a thread of its own, so that no request
// waits for the disk, and what that one cannot take is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/log.h"

namespace stoker::gateway {

struct AccessLogOptions {
    std::string file;  // empty: none is kept
    LogFormat format = LogFormat::json;
    std::int64_t max_bytes = 64 << 20;  // then it becomes FILE.1, and what was FILE.1 FILE.2
    int keep = 4;
};

// Of the client and its connection.
struct AccessCaller {
    std::string_view peer, method, path, key, project;
};

class AccessLog {
public:
    // denied and not_found: the file cannot be opened.
    static Result<std::unique_ptr<AccessLog>> open(const AccessLogOptions& options);

    struct Answered {
        std::string_view request, model, answered_by, replica, outcome, trace;
        int status = 0;
        bool streamed = false;
        std::uint64_t tokens_in = 0, tokens_cached = 0, tokens_out = 0, picousd = 0, attempts = 0;
        std::uint32_t first_token_ms = 0, duration_ms = 0, queued_ms = 0;
    };
    void answered(const AccessCaller& caller, const Answered& what);
    // By us, before anything was set aside for it; `code` as in the body of the answer.
    void refused(const AccessCaller& caller, std::string_view request, int status, std::string_view code);
    // Of nothing that is metered: lists of models, files, batches, an answer that was kept.
    void other(const AccessCaller& caller, std::string_view request, int status);
    std::uint64_t dropped() const { return log_->dropped(); }

private:
    explicit AccessLog(std::unique_ptr<Log> log) : log_(std::move(log)) {}
    const std::unique_ptr<Log> log_;
};

}  // namespace stoker::gateway
