// The API server of a cluster: calls from any thread, each by its deadline, over a few kept connections; and watches.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/json.h"
#include "base/result.h"
#include "deploy/kubernetes/kubeconfig.h"
#include "io/http/http_client.h"

namespace stoker::kubernetes {

inline constexpr const char* kJsonBody = "application/json";
inline constexpr const char* kMergePatch = "application/merge-patch+json";

struct ApiCall {
    std::string method = "GET", target, body, content_type = kJsonBody;
};

// What a watch ended with.
enum class WatchEnd : std::uint8_t { closed, gone };  // gone: 410, the version is too old to go on from

class ApiClient {
public:
    // invalid: the address or a certificate cannot be used.
    static Result<std::shared_ptr<ApiClient>> make(Kubeconfig config);

    // Any status is an answer; 401 is tried once more with a fresh login. unavailable, timed_out: nobody knows whether
    // it was done.
    Result<HttpResponse> call(const ApiCall& call, Deadline deadline);
    // 2xx, or what the server says: not_found, conflict, denied, invalid; unavailable for 429 and 5xx.
    Result<Document> ask(const ApiCall& call, Deadline deadline);
    // All pages; `take` gets each item. The version to watch from.
    Result<std::string> list(const std::string& path, const std::string& query, Deadline deadline,
                             const std::function<void(const Node& item)>& take);
    // Events after `version`, which is kept up to date, until the server closes, `stop` says so or it fails.
    Result<WatchEnd> watch(const std::string& path, const std::string& query, std::string& version,
                           const std::function<bool()>& stop,
                           const std::function<void(std::string_view type, const Node& object)>& take);
    // The body in pieces as it comes; the status at the end.
    Result<HttpResponse> stream(const std::string& target, double silence_s, const std::function<bool()>& stop,
                                const std::function<bool(std::string_view)>& take);

    const Kubeconfig& config() const { return config_; }
    // By how much this machine's clock is ahead of the API server's; 0: by less than makes a difference.
    std::int64_t clock_ahead_us() const { return ahead_us_; }

private:
    explicit ApiClient(Kubeconfig config) : config_(std::move(config)) {}
    struct Connection {
        std::unique_ptr<HttpClient> http;
        std::string token;
        std::uint64_t login = 0;  // which login it was made with
    };
    Result<Connection> borrow(Deadline deadline);
    void give_back(Connection connection);
    void forget_login(std::uint64_t login);
    Result<HttpResponse> call_once(const HttpCall& call, Deadline deadline, std::uint64_t& login);

    const Kubeconfig config_;
    std::atomic<std::int64_t> ahead_us_ = 0;
    std::mutex mutex_;  // guards what follows
    std::vector<Connection> idle_;
    Login login_;
    std::uint64_t login_number_ = 0;
    std::int64_t login_at_us_ = 0;
};

// By how much a clock that says `now_us` is ahead of who answered with this Date; 0: by a few seconds, which may be the
// way, or it is none.
std::int64_t ahead_of_date_us(std::string_view date, std::int64_t now_us);
// An answer that is no 2xx, as an error with the server's words.
Error error_of(const HttpResponse& answer);
// "%2C" and so on, for a value in a query.
std::string in_query(std::string_view text);

}  // namespace stoker::kubernetes
