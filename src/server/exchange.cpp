#include "server/exchange.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostProblems = 50;

std::string random_hex(std::size_t bytes) {
    std::array<unsigned char, 16> drawn{};
    if (::getrandom(drawn.data(), bytes, 0) != static_cast<ssize_t>(bytes)) drawn.fill(1);
    std::string out;
    for (std::size_t i = 0; i < bytes; ++i) out += fmt::format("{:02x}", drawn[i]);
    return out;
}

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
// Short and visible, or it is not taken: it goes into a header and into the log.
std::string request_id_of(const HttpRequest& request, const Trace& trace) {
    constexpr std::size_t kMostRequestId = 128;
    const auto given = request.headers.find("X-Request-Id");
    const bool taken = given && !given->empty() && given->size() <= kMostRequestId &&
                       std::all_of(given->begin(), given->end(), [](char c) { return c > ' ' && c < 127; });
    return taken ? std::string(*given) : trace.id;
}

bool all_zero(std::string_view text) {
    return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

Trace trace_of(const HttpRequest& request) {
    std::string id, flags = "01";
    if (const auto given = request.headers.find("traceparent")) {
        const std::string_view t = *given;
        const bool shaped = t.size() == 55 && t[2] == '-' && t[35] == '-' && t[52] == '-';
        if (shaped && t.substr(0, 2) == "00" && is_hex(t.substr(3, 32)) && !all_zero(t.substr(3, 32)) &&
            is_hex(t.substr(36, 16)) && !all_zero(t.substr(36, 16)) && is_hex(t.substr(53))) {
            id = t.substr(3, 32);
            flags = t.substr(53);
        }
    }
    if (id.empty()) id = random_hex(16);
    return {.parent = "00-" + id + "-" + random_hex(8) + "-" + flags, .id = id};
}

int status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid: return 400;
        case ErrorKind::not_found: return 404;
        case ErrorKind::conflict: return 409;
        case ErrorKind::denied: return 403;
        case ErrorKind::exhausted: return 503;
        case ErrorKind::unavailable: return 503;
        case ErrorKind::timed_out: return 504;
        case ErrorKind::unsupported: return 422;
        case ErrorKind::infeasible: return 422;
        case ErrorKind::internal: return 500;
    }
    return 500;
}

std::string_view title_of(int status) {
    switch (status) {
        case 400: return "Bad request";
        case 401: return "No or wrong token";
        case 403: return "Not allowed";
        case 404: return "Not found";
        case 405: return "Method not allowed";
        case 406: return "Not acceptable";
        case 409: return "Conflict";
        case 412: return "It has changed";
        case 413: return "Too large";
        case 415: return "Wrong content type";
        case 416: return "No such range";
        case 421: return "Wrong host";
        case 422: return "Understood, and not possible";
        case 429: return "Too many requests";
        case 500: return "A bug of Stoker";
        case 503: return "Not available now";
        case 504: return "Took too long";
        default: return "Error";
    }
}

HttpResponse json_response(const Json& body, int status) {
    return {.status = status, .content_type = "application/json", .headers = {}, .body = body.dump(0) + "\n"};
}

HttpResponse problem_response(const Error& error, const std::string& trace_id, int status) {
    if (status == 0) status = status_of(error.kind());
    Json problems = Json::array();
    std::size_t count = 0;
    for (const Problem& each : error.problems()) {
        if (++count > kMostProblems) break;
        Json problem = Json::object();
        problem.set("message", printable(each.message, 2000));
        if (!each.remedy.empty()) problem.set("remedy", printable(each.remedy, 2000));
        if (each.pos.known()) {
            Json place = Json::object();
            if (!each.pos.file.empty()) place.set("in", each.pos.file.view());
            if (each.pos.line != 0) place.set("line", each.pos.line).set("column", each.pos.column);
            problem.set("place", std::move(place));
        }
        problems.push(std::move(problem));
    }
    std::string detail = printable(error.message(), 2000);
    if (error.problems().size() > 1) detail += fmt::format(" (and {} more)", error.problems().size() - 1);
    for (const std::string& context : error.context()) detail += "; while " + printable(context, 500);
    Json body = Json::object();
    body.set("type", fmt::format("urn:stoker:error:{}", to_string(error.kind())))
        .set("title", title_of(status))
        .set("status", status)
        .set("detail", std::move(detail))
        .set("problems", std::move(problems))
        .set("trace_id", trace_id);
    HttpResponse response = json_response(body, status);
    response.content_type = "application/problem+json";
    return response;
}

std::string Parameters::text(std::string_view name, std::string otherwise) const {
    const auto found = query.find(name);
    if (found == query.end()) return otherwise;
    return found->second;
}
std::int64_t Parameters::integer(std::string_view name, std::int64_t otherwise) const {
    const auto found = query.find(name);
    if (found == query.end()) return otherwise;
    std::int64_t value = otherwise;
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
    return value;
}
double Parameters::number(std::string_view name, double otherwise) const {
    const auto found = query.find(name);
    if (found == query.end()) return otherwise;
    double value = otherwise;
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
    return value;
}
bool Parameters::flag(std::string_view name) const {
    const auto found = query.find(name);
    return found != query.end() && found->second == "true";
}

Exchange::Exchange(HttpRequest r, HttpReply reply)
    : request(std::move(r)),
      trace(trace_of(request)),
      request_id(request_id_of(request, trace)),
      reply_(std::move(reply)) {}

void Exchange::dress(HttpResponse& response) const {
    response.headers.add("traceparent", trace.parent);
    response.headers.add("X-Request-Id", request_id);
    if (!response.headers.find("Cache-Control")) response.headers.add("Cache-Control", "no-store");
    response.headers.add("X-Content-Type-Options", "nosniff");
}

void Exchange::claim(std::string name) {
    const std::lock_guard lock(claim_mutex_);
    claimed_ = std::move(name);
}
std::string Exchange::claimed() const {
    const std::lock_guard lock(claim_mutex_);
    return claimed_;
}

void Exchange::send(HttpResponse response) {
    if (answered_.exchange(true)) return;
    dress(response);
    if (tell_) tell_(response.status);
    reply_.send(std::move(response));
    if (then_) then_();
}

void Exchange::fail(const Error& error, int status, const std::string& retry_after) {
    HttpResponse response = problem_response(error, trace.id, status);
    if (!retry_after.empty())
        response.headers.add("Retry-After", retry_after);
    else if (response.status == 503 || response.status == 429)
        response.headers.add("Retry-After", "1");
    send(std::move(response));
}

std::shared_ptr<HttpStream> Exchange::stream(HttpResponse head) {
    if (answered_.exchange(true)) return nullptr;
    dress(head);
    if (tell_) tell_(head.status);
    auto stream = reply_.stream(std::move(head));
    if (then_) then_();
    return stream;
}

}  // namespace stoker::api
