#include "serve/gateway/traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "io/worker.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostWaiting = 4096, kMostInACall = 512;
constexpr auto kSendEvery = std::chrono::seconds(1);
constexpr double kSendS = 5;
constexpr int kSpanServer = 2, kStatusError = 2;  // of opentelemetry/proto/trace/v1/trace.proto
constexpr std::string_view kTracesPath = "/v1/traces";

bool is_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_zero(std::string_view text) {
    return text.find_first_not_of('0') == std::string_view::npos;
}

Json attribute(const char* key, Json value) {
    return Json::object().set("key", key).set("value", std::move(value));
}
Json text_attribute(const char* key, const std::string& text) {
    return attribute(key, Json::object().set("stringValue", text));
}
// 64 bits are texts in the JSON of protocol buffers.
Json number_attribute(const char* key, std::uint64_t number) {
    return attribute(key, Json::object().set("intValue", std::to_string(number)));
}

Json span_json(const RequestSpan& span) {
    Json attributes = Json::array();
    attributes.push(text_attribute("gen_ai.operation.name", span.operation));
    attributes.push(text_attribute("gen_ai.provider.name", "stoker"));
    attributes.push(text_attribute("gen_ai.request.model", span.model));
    attributes.push(number_attribute("gen_ai.usage.input_tokens", span.tokens_in));
    attributes.push(number_attribute("gen_ai.usage.cache_read.input_tokens", span.tokens_cached));
    attributes.push(number_attribute("gen_ai.usage.output_tokens", span.tokens_out));
    attributes.push(number_attribute("http.response.status_code", static_cast<std::uint64_t>(span.status)));
    attributes.push(text_attribute("stoker.request.id", span.request));
    attributes.push(text_attribute("stoker.project", span.project));
    attributes.push(text_attribute("stoker.key", span.key));
    attributes.push(text_attribute("stoker.outcome", span.outcome));
    attributes.push(number_attribute("stoker.attempts", span.attempts));
    attributes.push(attribute("gen_ai.request.stream", Json::object().set("boolValue", span.streamed)));
    if (span.first_token_ms > 0)
        attributes.push(attribute("gen_ai.response.time_to_first_chunk",
                                  Json::object().set("doubleValue", span.first_token_ms / 1000.0)));
    if (span.failed) attributes.push(text_attribute("error.type", span.outcome));
    Json out = Json::object().set("traceId", span.own.trace).set("spanId", span.own.span);
    if (!span.caller.empty()) out.set("parentSpanId", span.caller);
    out.set("name", span.operation + " " + span.model)
        .set("kind", kSpanServer)
        .set("startTimeUnixNano", fmt::format("{}000", span.begin_unix_us))
        .set("endTimeUnixNano", fmt::format("{}000", span.end_unix_us))
        .set("attributes", std::move(attributes));
    if (span.failed) out.set("status", Json::object().set("code", kStatusError).set("message", span.outcome));
    return out;
}

}  // namespace

std::optional<TraceParent> TraceParent::read(std::string_view header) {
    // A version that we do not know may be longer; its beginning is the same.
    if (header.size() < 55 || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
    const std::string_view version = header.substr(0, 2), trace = header.substr(3, 32), span = header.substr(36, 16),
                           flags = header.substr(53, 2);
    const bool longer = header.size() > 55;
    if (!is_hex(version) || version == "ff" || (longer && (version == "00" || header[55] != '-'))) return std::nullopt;
    if (!is_hex(trace) || is_zero(trace) || !is_hex(span) || is_zero(span) || !is_hex(flags)) return std::nullopt;
    const char low = flags[1];
    const int bits = low <= '9' ? low - '0' : low - 'a' + 10;
    return TraceParent{std::string(trace), std::string(span), (bits & 1) != 0};
}

std::string TraceParent::header() const {
    return fmt::format("00-{}-{}-{}", trace, span, sampled ? "01" : "00");
}

std::string spans_json(const std::deque<RequestSpan>& spans, std::size_t count, std::uint64_t gateway) {
    Json list = Json::array();
    for (std::size_t i = 0; i < count; ++i) list.push(span_json(spans[i]));
    Json resource = Json::array();
    resource.push(text_attribute("service.name", "stoker-gateway"));
    resource.push(text_attribute("service.instance.id", std::to_string(gateway)));
    Json scopes = Json::array();
    scopes.push(
        Json::object().set("scope", Json::object().set("name", "stoker.gateway")).set("spans", std::move(list)));
    Json resources = Json::array();
    resources.push(Json::object()
                       .set("resource", Json::object().set("attributes", std::move(resource)))
                       .set("scopeSpans", std::move(scopes)));
    return Json::object().set("resourceSpans", std::move(resources)).dump(0);
}

TraceExporter::TraceExporter(TraceOptions options, std::uint64_t gateway)
    : options_(std::move(options)), gateway_(gateway) {}

Result<std::unique_ptr<TraceExporter>> TraceExporter::make(TraceOptions options, std::uint64_t gateway) {
    auto exporter = std::unique_ptr<TraceExporter>(new TraceExporter(std::move(options), gateway));
    TRY(exporter->client_, HttpClient::make({.url = exporter->options_.to, .connect_timeout_s = kSendS}));
    exporter->thread_ = masked_thread("traces", [at = exporter.get()] { at->run(); });
    return exporter;
}

TraceExporter::~TraceExporter() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

std::optional<TraceParent> TraceExporter::begin(const std::optional<TraceParent>& caller, SplitMix& random) const {
    if (caller ? !caller->sampled : random.uniform() >= options_.share) return std::nullopt;
    TraceParent own{.sampled = true};
    own.trace = caller ? caller->trace : fmt::format("{:016x}{:016x}", random.next() | 1, random.next());
    own.span = fmt::format("{:016x}", random.next() | 1);
    return own;
}

void TraceExporter::record(RequestSpan span) {
    const std::lock_guard guard(mutex_);
    if (waiting_.size() >= kMostWaiting) {
        ++figures_.dropped;
        return;
    }
    waiting_.push_back(std::move(span));
    if (waiting_.size() == kMostInACall) wake_.notify_all();
}

TraceExporter::Figures TraceExporter::figures() const {
    const std::lock_guard guard(mutex_);
    return figures_;
}

void TraceExporter::run() {
    bool stopping = false;
    while (!stopping) {
        {
            std::unique_lock lock(mutex_);
            wake_.wait_for(lock, kSendEvery, [this] { return stopping_ || waiting_.size() >= kMostInACall; });
            stopping = stopping_;
        }
        while (send()) {
        }
    }
}

// True: there may be more, and the collector takes it.
bool TraceExporter::send() {
    std::deque<RequestSpan> spans;
    {
        const std::lock_guard guard(mutex_);
        while (!waiting_.empty() && spans.size() < kMostInACall) {
            spans.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        }
    }
    if (spans.empty()) return false;
    HttpCall call{.method = "POST", .target = std::string(kTracesPath), .timeout_s = kSendS};
    call.headers.add("Content-Type", "application/json");
    if (const std::size_t colon = options_.header.find(':'); colon != std::string::npos)
        call.headers.add(options_.header.substr(0, colon),
                         options_.header.substr(options_.header.find_first_not_of(' ', colon + 1)));
    call.body = spans_json(spans, spans.size(), gateway_);
    const auto response = client_->call(call);
    const bool taken = response && response->status / 100 == 2;
    const std::lock_guard guard(mutex_);
    if (taken) {
        figures_.sent += spans.size();
        return true;
    }
    ++figures_.failures;
    // Once more with the next ones, where it was busy or away; what it refuses it would refuse again.
    const bool again = !response || response->status == 429 || response->status >= 500;
    const std::size_t room = again && !stopping_ ? kMostWaiting - std::min(kMostWaiting, waiting_.size()) : 0;
    const std::size_t kept = std::min(room, spans.size());
    figures_.dropped += spans.size() - kept;
    for (std::size_t i = kept; i-- > 0;) waiting_.push_front(std::move(spans[i]));
    return false;
}

}  // namespace stoker::gateway
