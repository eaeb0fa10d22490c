#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/random.h"
#include "base/text.h"
#include "formats/xml_text.h"
#include "io/process.h"
#include "io/store/object_store_protocol.h"

namespace stoker::objects {
namespace {

constexpr std::size_t kMostAnswerBytes = 16u << 20;  // a page of 1,000 keys of 1,024 bytes, escaped
constexpr double kMostRetryAfterS = 120;

bool helps_to_repeat(int status) {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

double seconds_of_retry_after(const HttpResponse& response) {
    const std::string text = header_of(response, "retry-after");
    if (text.empty()) return -1;
    int seconds = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (code == std::errc() && end == text.data() + text.size())
        return std::clamp(static_cast<double>(seconds), 0.0, kMostRetryAfterS);
    const auto date = read_http_date(text);
    if (!date) return -1;
    return std::clamp(static_cast<double>(*date - wall_clock_us() / 1'000'000), 0.0, kMostRetryAfterS);
}

std::string target_of(const std::string& path, const QueryItems& query) {
    std::string target = path;
    char before = '?';
    for (const auto& [name, value] : query) {
        target += before;
        target += percent_encode(name) + "=" + percent_encode(value);
        before = '&';
    }
    return target;
}

// One chance in 2^64 of waiting as another does is enough: nothing secret depends on it.
double random_part() {
    static std::atomic<std::uint64_t> draws{static_cast<std::uint64_t>(wall_clock_us())};
    return SplitMix(SplitMix::mix(draws.fetch_add(1))).uniform();
}

}  // namespace

Error cancelled_transfer() {
    return Error(ErrorKind::unavailable, "it was stopped; what has come so far is kept, and it goes on from there");
}

Patience::Patience(const ObjectStoreOptions& options, const TransferOptions& transfer, int tries)
    : options_(options), transfer_(transfer), tries_(tries > 0 ? tries : options.tries) {}

bool Patience::again(const Error& error) {
    const bool transient_kind = error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::timed_out ||
                                error.kind() == ErrorKind::exhausted;
    if (!transient_kind || !transient || ++used_ >= tries_ || stopped()) return false;
    // Full jitter: many servers that lost the same store do not come back together.
    const double most =
        std::min(options_.most_wait_s, options_.first_wait_s * static_cast<double>(1u << std::min(used_, 16)));
    const double wait =
        retry_after_s >= 0 ? retry_after_s + random_part() * options_.first_wait_s : random_part() * most;
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait);
    while (std::chrono::steady_clock::now() < until) {
        if (stopped()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
}

// Connections that nobody uses now.
struct StoreWire::Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<HttpClient>> idle;
};

StoreWire::StoreWire(Options options, const ObjectStoreOptions& limits)
    : options_(std::move(options)), limits_(limits), pool_(std::make_unique<Pool>()) {}
StoreWire::~StoreWire() = default;

Result<HttpResponse> StoreWire::once(WireCall& call, HttpCall& http, Patience& patience) {
    patience.retry_after_s = -1;
    patience.transient = true;
    QueryItems query = call.query;
    http.headers = call.headers;
    options_.sign({.method = call.method,
                   .host = options_.host,
                   .path = call.path,
                   .query = query,
                   .body_bytes = http.body.size()},
                  http.body, http.headers, query);
    http.target = target_of(call.path, query);
    std::unique_ptr<HttpClient> client;
    {
        const std::lock_guard guard(pool_->mutex);
        if (!pool_->idle.empty()) {
            client = std::move(pool_->idle.back());
            pool_->idle.pop_back();
        }
    }
    if (!client) {
        TRY(client, HttpClient::make({.url = options_.url, .ca_pem = options_.ca_pem, .connect_timeout_s = 10}));
    }
    auto response = client->call(http);
    if (!response) {
        // Without its context, which has the target, and that may have a signature.
        const Error& error = response.error();
        return Error(error.kind(), fmt::format("{} does not answer: {}", options_.url, error.message()), {},
                     error.problems().front().remedy);
    }
    {
        const std::lock_guard guard(pool_->mutex);
        pool_->idle.push_back(std::move(client));
    }
    patience.retry_after_s = seconds_of_retry_after(*response);
    patience.transient = helps_to_repeat(response->status);
    if (response->status / 100 != 2) return options_.explain(call, *response);
    return response;
}

Result<HttpResponse> StoreWire::call(WireCall call, Patience& patience) {
    HttpCall http{.method = call.method, .timeout_s = limits_.call_timeout_s, .max_body_bytes = kMostAnswerBytes};
    http.body = std::move(call.body);
    bool begun = false;
    if (call.on_piece)
        http.on_piece = [&](std::string_view piece) {
            begun = true;
            return call.on_piece(piece);
        };
    for (;;) {
        if (patience.stopped()) return cancelled_transfer();
        auto response = once(call, http, patience);
        // What has begun to come is asked for from there on by whoever counts it.
        if (response || begun || !patience.again(response.error())) return response;
    }
}

StoreFault read_fault(const HttpResponse& response) {
    StoreFault fault{.code = header_of(response, "x-ms-error-code"), .message = ""};
    if (const auto xml = parse_xml(response.body)) {
        if (const std::string_view code = xml->text_of("Code"); !code.empty()) fault.code = printable(code, 80);
        // Azure adds the id of the request and the time on lines of their own.
        const std::string_view message = xml->text_of("Message");
        fault.message = printable(message.substr(0, message.find('\n')), 300);
    }
    return fault;
}

Error fault_error(const HttpResponse& response, const std::string& what, const std::string& remedy_denied) {
    const StoreFault fault = read_fault(response);
    std::string words = fault.code.empty() ? fmt::format("status {}", response.status) : fault.code;
    if (!fault.message.empty()) words += ": " + fault.message;
    const auto error = [&](ErrorKind kind, std::string remedy = {}) {
        return Error(kind, fmt::format("{}: {}", what, words), {}, std::move(remedy));
    };
    switch (response.status) {
        case 401:
        case 403:
            if (fault.code == "RequestTimeTooSkewed") return error(ErrorKind::denied, "set the clock of this machine");
            return error(ErrorKind::denied, remedy_denied);
        case 404:
            if (fault.code == "NoSuchBucket" || fault.code == "ContainerNotFound")
                return error(ErrorKind::not_found, "make the bucket or container first; Stoker makes none");
            return error(ErrorKind::not_found);
        case 409:
        case 412: return error(ErrorKind::conflict);
        case 429: return error(ErrorKind::exhausted, "the store limits requests; it is tried again later");
        default: break;
    }
    if (response.status >= 500 || response.status == 408) return error(ErrorKind::unavailable);
    return error(ErrorKind::invalid);
}

Result<ObjectInfo> StoreWire::head(const std::string& key, std::string path, Patience& patience) {
    TRY(const auto response, call({.method = "HEAD", .path = std::move(path)}, patience));
    TRY(const std::int64_t bytes, length_of(response));
    return ObjectInfo{.key = key, .bytes = bytes, .etag = header_of(response, "etag")};
}

Status StoreWire::get(std::string path, std::int64_t from, const std::string& etag,
                      const std::function<bool(std::string_view)>& on_piece, Patience& patience) {
    HttpHeaders headers;
    if (from > 0) headers.add("Range", fmt::format("bytes={}-", from));
    if (!etag.empty()) headers.add("If-Match", etag);
    TRY(const auto response,
        call({.method = "GET", .path = std::move(path), .headers = std::move(headers), .on_piece = on_piece},
             patience));
    if (from > 0 && response.status != 206)
        return Error(ErrorKind::unsupported, "the store does not send the rest of an object");
    return done();
}

std::string header_of(const HttpResponse& response, std::string_view name) {
    return std::string(response.headers.find(name).value_or(""));
}

Result<std::int64_t> length_of(const HttpResponse& response) {
    const std::string text = header_of(response, "content-length");
    std::int64_t length = -1;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (code != std::errc() || end != text.data() + text.size() || length < 0)
        return Error(ErrorKind::unavailable, "the store tells no length of the object");
    return length;
}

bool is_loopback_host(std::string_view host) {
    return host == "localhost" || host.starts_with("127.") || host == "::1";
}

}  // namespace stoker::objects
