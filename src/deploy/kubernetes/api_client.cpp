#include "deploy/kubernetes/api_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "deploy/kubernetes/objects.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostIdle = 8;
constexpr int kPageItems = 250;
constexpr int kMostPages = 2000;
constexpr int kWatchSeconds = 290;     // then the server closes, and the next one goes on
constexpr double kWatchSilence = 150;  // bookmarks come each minute
constexpr std::size_t kMostLine = 8 << 20;
constexpr std::int64_t kTokenUs = 60'000'000;  // tokens of pods are replaced in their file

double seconds_until(Deadline deadline) {
    return std::max(0.0, std::chrono::duration<double>(deadline - Clock::now()).count());
}

ReadLimits limits() {
    return {.max_bytes = 64u << 20};
}

}  // namespace

std::string in_query(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

Error error_of(const HttpResponse& answer) {
    std::string message = printable(answer.body, 500);
    if (const auto document = Document::parse_json(answer.body, "the answer"); document)
        if (const auto said = text_at(document->root(), "message"); !said.empty()) message = printable(said, 2000);
    ErrorKind kind = ErrorKind::invalid;
    if (answer.status == 401 || answer.status == 403) kind = ErrorKind::denied;
    if (answer.status == 404) kind = ErrorKind::not_found;
    if (answer.status == 409) kind = ErrorKind::conflict;
    if (answer.status == 408 || answer.status == 429 || answer.status >= 500) kind = ErrorKind::unavailable;
    return Error(kind, fmt::format("the API server says {}: {}", answer.status, message));
}

Result<std::shared_ptr<ApiClient>> ApiClient::make(Kubeconfig config) {
    // Told now, and not with the first call.
    TRY([[maybe_unused]] const auto probe,
        HttpClient::make({.url = config.server, .ca_pem = config.ca_pem, .own = config.certificate}));
    return std::shared_ptr<ApiClient>(new ApiClient(std::move(config)));
}

Result<ApiClient::Connection> ApiClient::borrow(Deadline deadline) {
    const std::lock_guard guard(mutex_);
    const std::int64_t now_us = wall_clock_us();
    const bool stale = login_number_ == 0 || (login_.expires_us > 0 && now_us > login_.expires_us - 10'000'000) ||
                       (!config_.token_file.empty() && now_us > login_at_us_ + kTokenUs);
    if (stale) {
        // Others wait for it: they need it too.
        TRY(login_, log_in(config_, deadline));
        login_at_us_ = now_us;
        ++login_number_;
        idle_.clear();
    }
    if (!idle_.empty()) {
        Connection connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
    }
    TRY(auto http, HttpClient::make({.url = config_.server, .ca_pem = config_.ca_pem, .own = login_.certificate}));
    return Connection{.http = std::move(http), .token = login_.token, .login = login_number_};
}

void ApiClient::give_back(Connection connection) {
    const std::lock_guard guard(mutex_);
    if (connection.login == login_number_ && idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
}

void ApiClient::forget_login(std::uint64_t login) {
    const std::lock_guard guard(mutex_);
    if (login == login_number_) login_.expires_us = 1;
}

Result<HttpResponse> ApiClient::call_once(const HttpCall& wanted, Deadline deadline, std::uint64_t& login) {
    TRY(Connection connection, borrow(deadline));
    login = connection.login;
    HttpCall call = wanted;
    if (!connection.token.empty()) call.headers.add("Authorization", "Bearer " + connection.token);
    call.headers.add("Accept", kJsonBody);
    call.headers.add("User-Agent", "stoker");
    auto answer = connection.http->call(call);
    if (answer) give_back(std::move(connection));
    return answer;
}

Result<HttpResponse> ApiClient::call(const ApiCall& wanted, Deadline deadline) {
    for (int tries = 0;; ++tries) {
        HttpCall call{.method = wanted.method,
                      .target = wanted.target,
                      .body = wanted.body,
                      .timeout_s = seconds_until(deadline)};
        if (!wanted.body.empty()) call.headers.add("Content-Type", wanted.content_type);
        std::uint64_t login = 0;
        TRY(HttpResponse answer, call_once(call, deadline, login));
        if (const auto date = answer.headers.find("Date")) ahead_us_ = ahead_of_date_us(*date, wall_clock_us());
        const bool again = answer.status == 401 && tries == 0 && (config_.exec || !config_.token_file.empty());
        if (!again) return answer;
        forget_login(login);
    }
}

std::int64_t ahead_of_date_us(std::string_view date, std::int64_t now_us) {
    constexpr std::int64_t kTold = 5'000'000;
    tm parts{};
    if (::strptime(std::string(date).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) return 0;
    const std::int64_t ahead = now_us - std::int64_t{::timegm(&parts)} * 1'000'000;
    return ahead > kTold || ahead < -kTold ? ahead : 0;
}

Result<Document> ApiClient::ask(const ApiCall& wanted, Deadline deadline) {
    TRY(const HttpResponse answer, call(wanted, deadline));
    if (answer.status / 100 != 2) return error_of(answer);
    return Document::parse_json(answer.body, "the answer of the API server", limits());
}

Result<std::string> ApiClient::list(const std::string& path, const std::string& query, Deadline deadline,
                                    const std::function<void(const Node& item)>& take) {
    std::string more;
    for (int page = 0; page < kMostPages; ++page) {
        std::string target = fmt::format("{}?limit={}", path, kPageItems);
        if (!query.empty()) target += "&" + query;
        if (!more.empty()) target += "&continue=" + in_query(more);
        TRY(const Document answer, ask({.target = target}, deadline));
        for (const auto& item : items_at(answer.root(), "items")) take(*item);
        more = text_at(answer.root(), {"metadata", "continue"});
        if (more.empty()) return std::string(text_at(answer.root(), {"metadata", "resourceVersion"}));
    }
    return Error(ErrorKind::exhausted, fmt::format("{} has more than {} items", path, kMostPages * kPageItems));
}

Result<WatchEnd> ApiClient::watch(const std::string& path, const std::string& query, std::string& version,
                                  const std::function<bool()>& stop,
                                  const std::function<void(std::string_view, const Node&)>& take) {
    const std::string target =
        fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}{}", path,
                    in_query(version), kWatchSeconds, query.empty() ? "" : "&", query);
    std::string line;
    std::optional<Error> wrong;
    bool gone = false;
    const auto event = [&](std::string_view text) {
        const auto document = Document::parse_json(text, "a watch", limits());
        if (!document) return wrong = document.error(), false;
        const std::string_view type = text_at(document->root(), "type");
        const Node* object = document->root().find("object");
        if (object == nullptr) return true;
        if (type == "ERROR") {
            gone = text_at(*object, "code") == "410";
            if (!gone)
                wrong = Error(ErrorKind::unavailable, "the watch says: " + printable(text_at(*object, "message"), 500));
            return false;
        }
        if (const auto next = text_at(*object, {"metadata", "resourceVersion"}); !next.empty()) version = next;
        if (type != "BOOKMARK") take(type, *object);
        return true;
    };
    auto answer = stream(target, kWatchSilence, stop, [&](std::string_view piece) {
        while (!piece.empty()) {
            const std::size_t end = piece.find('\n');
            line += piece.substr(0, end);
            if (line.size() > kMostLine)
                return wrong = Error(ErrorKind::exhausted, "an event is larger than 8 MiB"), false;
            if (end == std::string_view::npos) break;
            piece.remove_prefix(end + 1);
            if (!line.empty() && !event(line)) return false;
            line.clear();
        }
        return true;
    });
    if (gone) return WatchEnd::gone;
    if (wrong) return *wrong;
    if (!answer) return std::move(answer).error();
    if (answer->status == 410) return WatchEnd::gone;
    if (answer->status / 100 != 2) return error_of(*answer);
    return WatchEnd::closed;
}

Result<HttpResponse> ApiClient::stream(const std::string& target, double silence_s, const std::function<bool()>& stop,
                                       const std::function<bool(std::string_view)>& take) {
    HttpCall call{.target = target, .timeout_s = silence_s, .on_piece = take, .give_up = stop};
    std::uint64_t login = 0;
    TRY(HttpResponse answer, call_once(call, Clock::now() + std::chrono::seconds(30), login));
    if (answer.status == 401) forget_login(login);
    return answer;
}

}  // namespace stoker::kubernetes
