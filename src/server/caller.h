// Who asks: by the installation's token, a key, a login (as a token, or as the cookie of a browser), or a certificate.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/service.h"

namespace stoker::api {

inline constexpr std::string_view kCsrfHeader = "X-CSRF-Token";

// Set-Cookie of a login: read by no script, sent along by no other site, and over TLS only where there is TLS.
// An empty secret ends it.
std::string login_cookie(bool secure, std::string_view secret, std::int64_t seconds);
// What a page has to show beside the cookie: another site can send the cookie along, and cannot read this.
std::string csrf_token(std::string_view secret);
// The secret of a login in the request's cookie; empty: there is none.
std::string secret_in_cookie(const HttpRequest& request);

// Sets exchange->actor. False: it has answered that the caller is not known, or may not from where it stands.
// `changes`: by a cookie alone that is not done.
bool know_caller(Service& service, const ExchangePtr& exchange, bool changes);

// The first administrator: whoever shows this token says who that is, once, while there is nobody.
class FirstAdmin {
public:
    explicit FirstAdmin(std::string token) : token_(std::move(token)) {}
    const std::string& token() const { return token_; }
    bool is(std::string_view given) const;
    // One at a time; false: somebody did already, or does just now.
    bool take();
    void give_back();  // it failed

private:
    const std::string token_;
    std::mutex mutex_;  // guards taken_
    bool taken_ = false;
};

// Opens the login of `user` in `project`, as that user, and answers with its secret.
void open_login(Service& service, const ExchangePtr& exchange, const UserEntry& user, ProjectId project,
                std::int64_t now_us, std::int64_t seconds, bool cookie);

// Of the whole length whatever differs, so that the time tells nothing about the token.
bool same_token(std::string_view given, std::string_view wanted);

}  // namespace stoker::api
