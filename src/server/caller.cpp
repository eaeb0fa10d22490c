#include "server/caller.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "govern/users.h"
#include "io/sha256.h"

namespace stoker::api {
namespace {

// A name with this prefix is taken by browsers only over TLS, for this host alone.
constexpr std::string_view kSecureCookie = "__Host-stoker", kPlainCookie = "stoker_login";

// Where a browser says that a page of another site made it ask.
bool from_another_site(const HttpRequest& request) {
    const auto site = request.headers.find("Sec-Fetch-Site");
    return site && *site != "same-origin" && *site != "none";
}

// Whoever holds this secret, as of now.
std::optional<Actor> holder_of(Service& service, std::string_view secret) {
    const std::string sum = hex(sha256(secret));  // before the readers' lock is taken
    std::optional<Actor> found;
    const Status asked =
        service.engine().read([&](const EngineView& view) { found = caller_of(view.state.tenants, sum, view.now_us); });
    return asked ? found : std::nullopt;
}

std::optional<Actor> holder_of_certificate(Service& service, const std::string& name) {
    std::optional<Actor> found;
    const Status asked = service.engine().read([&](const EngineView& view) {
        const UserEntry* user = view.state.tenants.find_user(name);
        const auto project = user == nullptr ? std::nullopt : usual_project(*user);
        if (project) found = actor_of(*user, view.state.tenants, *project, "certificate");
    });
    return asked ? found : std::nullopt;
}

bool refuse(const ExchangePtr& exchange, std::string_view what, bool had) {
    HttpResponse response = problem_response(
        Error(ErrorKind::denied, std::string(what), {},
              "send `Authorization: Bearer TOKEN`: what stoker login or stoker key make gave you and that has neither "
              "ended nor been revoked, or the token that the server wrote to its folder at first start"),
        exchange->trace.id, 401);
    response.headers.add("WWW-Authenticate", "Bearer realm=\"stoker\"");
    // A login that has ended is of no more use to the browser.
    if (had) response.headers.add("Set-Cookie", login_cookie(exchange->request.secure, "", 0));
    exchange->send(std::move(response));
    return false;
}

}  // namespace

bool same_token(std::string_view given, std::string_view wanted) {
    unsigned char differs = given.size() == wanted.size() && !wanted.empty() ? 0 : 1;
    for (std::size_t i = 0; i < given.size() && !wanted.empty(); ++i)
        differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(wanted[i % wanted.size()]);
    return differs == 0;
}

std::string login_cookie(bool secure, std::string_view secret, std::int64_t seconds) {
    return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", secure ? kSecureCookie : kPlainCookie,
                       secret, secret.empty() ? 0 : seconds, secure ? "; Secure" : "");
}

std::string csrf_token(std::string_view secret) {
    return hex(sha256("stoker csrf " + std::string(secret)));
}

std::string secret_in_cookie(const HttpRequest& request) {
    const std::string_view wanted = request.secure ? kSecureCookie : kPlainCookie;
    for (const auto& [name, value] : request.headers.items) {
        if (!equals_ignore_case(name, "Cookie")) continue;
        for (std::string_view each : split(value, ';')) {
            each = trim(each);
            const std::size_t equals = each.find('=');
            if (equals == std::string_view::npos || each.substr(0, equals) != wanted) continue;
            const std::string_view secret = each.substr(equals + 1);
            if (secret.starts_with(kLoginPrefix) && secret.size() < 200) return std::string(secret);
        }
    }
    return {};
}

bool know_caller(Service& service, const ExchangePtr& exchange, bool changes) {
    const std::string& wanted = service.options().token;
    if (wanted.empty()) return true;
    const HttpRequest& request = exchange->request;
    const auto header = request.headers.find("Authorization");
    const bool bearer = header && starts_with_ignore_case(*header, "Bearer ");
    const std::string_view secret = bearer ? trim(header->substr(7)) : std::string_view();
    if (bearer && same_token(secret, wanted)) return true;
    if (bearer) {
        if (auto actor = holder_of(service, secret)) {
            exchange->actor = std::move(*actor);
            return true;
        }
    }
    const std::string cookie = header ? std::string() : secret_in_cookie(request);
    if (!cookie.empty()) {
        if (auto actor = holder_of(service, cookie)) {
            exchange->actor = std::move(*actor);
            const auto shown = request.headers.find(kCsrfHeader);
            if (!changes || (shown && !from_another_site(request) && same_token(*shown, csrf_token(cookie))))
                return true;
            exchange->fail(Error(ErrorKind::denied, "the cookie alone is not enough to change something", {},
                                 "send X-CSRF-Token with what POST /api/v1/login or GET /api/v1/whoami gave as csrf"));
            return false;
        }
    }
    if (!header && cookie.empty() && !request.certificate_name.empty()) {
        if (auto actor = holder_of_certificate(service, request.certificate_name)) {
            exchange->actor = std::move(*actor);
            if (!changes || !from_another_site(request)) return true;
            exchange->fail(Error(ErrorKind::denied, "a page of another site asked for this", {},
                                 "a browser shows the certificate wherever it goes: ask from a page of this server"));
            return false;
        }
        return refuse(exchange,
                      fmt::format("the certificate is of {}, and there is no user of that name who may come in",
                                  printable(request.certificate_name, 80)),
                      false);
    }
    // The right token always passes: on loopback all share one address, and nobody may lock out the others.
    if (!service.may_try_token(request.peer)) {
        exchange->fail(Error(ErrorKind::denied, "too many wrong tokens from this address", {}, "wait a minute"), 429,
                       "60");
        return false;
    }
    if (header) service.wrong_token(request.peer);
    if (!cookie.empty()) return refuse(exchange, "the login has ended", true);
    return refuse(exchange, header ? "the token is wrong" : "there is no token", false);
}

bool FirstAdmin::is(std::string_view given) const {
    return same_token(given, token_);
}
bool FirstAdmin::take() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(taken_, true);
}
void FirstAdmin::give_back() {
    const std::lock_guard lock(mutex_);
    taken_ = false;
}

}  // namespace stoker::api
