// Spans of requests for a collector of OpenTelemetry: OTLP over HTTP as JSON (opentelemetry-proto 1.x), with the names
// of the semantic conventions for generative AI. Bounded: what a collector does not take in time is dropped and
// counted, and no request waits for it. No prompt and no answer is in a span.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/random.h"
#include "io/http/http_client.h"

namespace stoker::gateway {

// W3C Trace Context, version 00: who called, and whether it is recorded.
struct TraceParent {
    std::string trace, span;  // 32 and 16 hex digits
    bool sampled = false;

    static std::optional<TraceParent> read(std::string_view header);
    std::string header() const;
};

struct RequestSpan {
    TraceParent own;
    std::string caller;  // span that it is a child of; empty: none
    std::string operation, model, request, project, key, outcome;
    std::int64_t begin_unix_us = 0, end_unix_us = 0;
    std::uint64_t tokens_in = 0, tokens_cached = 0, tokens_out = 0, attempts = 0;
    std::uint32_t first_token_ms = 0;  // 0: none
    int status = 0;
    bool streamed = false, failed = false;
};
std::string spans_json(const std::deque<RequestSpan>& spans, std::size_t count, std::uint64_t gateway);

struct TraceOptions {
    std::string to;      // URL of the collector; empty: nothing is recorded
    std::string header;  // "name: value" of each call; empty: none
    double share = 1;    // of requests that no caller has decided about
};

class TraceExporter {
public:
    static Result<std::unique_ptr<TraceExporter>> make(TraceOptions options, std::uint64_t gateway);
    ~TraceExporter();  // what waits is sent once more
    TraceExporter(const TraceExporter&) = delete;
    TraceExporter& operator=(const TraceExporter&) = delete;

    // Of a request with this traceparent, or without one. Nothing: it is not recorded.
    std::optional<TraceParent> begin(const std::optional<TraceParent>& caller, SplitMix& random) const;
    void record(RequestSpan span);

    struct Figures {
        std::uint64_t sent = 0, dropped = 0, failures = 0;
    };
    Figures figures() const;

private:
    TraceExporter(TraceOptions options, std::uint64_t gateway);
    void run();
    bool send();

    const TraceOptions options_;
    const std::uint64_t gateway_;
    std::unique_ptr<HttpClient> client_;
    std::thread thread_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable wake_;
    bool stopping_ = false;
    std::deque<RequestSpan> waiting_;
    Figures figures_;
};

}  // namespace stoker::gateway
