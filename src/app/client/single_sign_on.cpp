#include "app/client/single_sign_on.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "io/http/http_server.h"
#include "io/http/oidc_provider.h"
#include "io/json_web_token.h"
#include "io/sha256.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kCallTimeoutS = 15;

std::string random_word() {
    std::string bytes(32, '\0');
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
    return base64url(bytes);
}

// The system's authorities, or those that the environment names: curl and others read the same variable.
std::string authorities() {
    const char* file = std::getenv("SSL_CERT_FILE");
    if (file == nullptr || *file == '\0') return {};
    auto text = read_file(file, 4u << 20);
    return text ? std::move(*text) : std::string();
}

Error refused(const Document& answer, int status) {
    const std::string code = member_text(answer, "error"), why = member_text(answer, "error_description");
    return Error(ErrorKind::denied,
                 fmt::format("the provider refuses: {}{}", code.empty() ? std::to_string(status) : printable(code, 60),
                             why.empty() ? "" : " (" + printable(why, 200) + ")"),
                 {}, "the operator of the server and of the provider set up the client");
}

Result<std::string> id_token_of(const Document& answer) {
    std::string token = member_text(answer, "id_token");
    if (!token.empty()) return token;
    return Error(ErrorKind::denied, "the provider gave no ID token", {}, "its client has to allow the scope openid");
}

Result<FetchedToken> by_device(const api::SignOn& asked, const OidcProvider& provider, const SignOnOptions& options) {
    // PKCE is not part of RFC 8628; Keycloak asks for it in this flow too where its client demands it, others ignore
    // it.
    const std::string trusted = authorities(), verifier = random_word();
    TRY(const FormAnswer begun, post_form(provider.device,
                                          {{"client_id", asked.client_id},
                                           {"scope", asked.scope},
                                           {"code_challenge", base64url(sha256(verifier))},
                                           {"code_challenge_method", "S256"}},
                                          trusted, kCallTimeoutS));
    const std::string device = member_text(begun.body, "device_code"), code = member_text(begun.body, "user_code");
    const std::string page = member_text(begun.body, "verification_uri"),
                      whole = member_text(begun.body, "verification_uri_complete");
    if (begun.status != 200 || device.empty() || code.empty() || page.empty()) return refused(begun.body, begun.status);
    options.say(fmt::format("open  {}\nand enter the code  {}", printable(page, 500), printable(code, 60)));
    if (!whole.empty()) options.say(fmt::format("or open  {}", printable(whole, 500)));
    double pause_s = std::max(1.0, std::atof(member_text(begun.body, "interval").c_str()));
    if (member_text(begun.body, "interval").empty()) pause_s = 5;  // RFC 8628, 3.2
    const double valid_s = std::max(1.0, std::atof(member_text(begun.body, "expires_in").c_str()));
    const auto until = Clock::now() + std::chrono::duration<double>(std::min(valid_s, options.wait_s));
    while (Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
        TRY(const FormAnswer answer, post_form(provider.token,
                                               {{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"},
                                                {"device_code", device},
                                                {"client_id", asked.client_id},
                                                {"code_verifier", verifier}},
                                               trusted, kCallTimeoutS));
        if (answer.status == 200) {
            TRY(std::string token, id_token_of(answer.body));
            return FetchedToken{std::move(token), ""};
        }
        const std::string error = member_text(answer.body, "error");
        if (error == "slow_down")
            pause_s += 5;
        else if (error != "authorization_pending")
            return refused(answer.body, answer.status);
    }
    return Error(ErrorKind::timed_out, "nobody entered the code in time", {}, "stoker login --sso asks for a new one");
}

// What the browser brings back, waited for by another thread.
class Returned {
public:
    void set(const HttpRequest& request) {
        const std::lock_guard lock(mutex_);
        if (there_) return;
        for (const auto& [name, value] : request.query) query_.emplace_back(name, value);
        there_ = true;
        changed_.notify_all();
    }
    bool wait(double seconds) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return there_; });
    }
    std::string value(std::string_view name) {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, value] : query_)
            if (key == name) return value;
        return {};
    }

private:
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool there_ = false;
    std::vector<std::pair<std::string, std::string>> query_;
};

Result<FetchedToken> by_browser(const api::SignOn& asked, const OidcProvider& provider, const SignOnOptions& options) {
    const std::string state = random_word(), nonce = random_word(), verifier = random_word();
    const auto returned = std::make_shared<Returned>();
    TRY(const auto server,
        HttpServer::start({.address = "127.0.0.1"}, [returned, state](const HttpRequest& request, HttpReply reply) {
            const auto given = request.parameter("state");
            const bool ours = request.path == "/callback" && given && *given == state;
            if (ours) returned->set(request);
            reply.send({.status = ours ? 200 : 404,
                        .content_type = "text/plain; charset=utf-8",
                        .headers = {},
                        .body = ours ? "You are logged in; this page can be closed.\n" : "There is nothing here.\n"});
        }));
    const std::string back = fmt::format("http://127.0.0.1:{}/callback", server->port());
    const std::string url = provider.authorization +
                            (provider.authorization.find('?') == std::string::npos ? "?" : "&") +
                            form_encoded({{"response_type", "code"},
                                          {"client_id", asked.client_id},
                                          {"redirect_uri", back},
                                          {"scope", asked.scope},
                                          {"state", state},
                                          {"nonce", nonce},
                                          {"code_challenge", base64url(sha256(verifier))},
                                          {"code_challenge_method", "S256"}});
    options.say("open  " + url);
    if (!returned->wait(options.wait_s))
        return Error(ErrorKind::timed_out, "nobody logged in within the time", {},
                     "on a machine without a browser: stoker login --sso --device");
    server->stop(Clock::now() + std::chrono::seconds(1));
    if (const std::string error = returned->value("error"); !error.empty())
        return Error(ErrorKind::denied, fmt::format("the provider refuses: {} {}", printable(error, 60),
                                                    printable(returned->value("error_description"), 200)));
    TRY(const FormAnswer answer, post_form(provider.token,
                                           {{"grant_type", "authorization_code"},
                                            {"code", returned->value("code")},
                                            {"redirect_uri", back},
                                            {"client_id", asked.client_id},
                                            {"code_verifier", verifier}},
                                           authorities(), kCallTimeoutS));
    if (answer.status != 200) return refused(answer.body, answer.status);
    TRY(std::string token, id_token_of(answer.body));
    return FetchedToken{std::move(token), nonce};
}

}  // namespace

Result<FetchedToken> fetch_token(const api::SignOn& asked, const SignOnOptions& options) {
    TRY(const OidcProvider provider, discover_provider(asked.issuer, authorities(), kCallTimeoutS));
    if (!options.device) return by_browser(asked, provider, options);
    if (provider.device.empty())
        return Error(ErrorKind::unsupported, "the provider has no device flow", {},
                     "stoker login --sso, with a browser on this machine");
    return by_device(asked, provider, options);
}

}  // namespace stoker
