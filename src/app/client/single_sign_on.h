// stoker login --sso: the ID token of a person, fetched from the OpenID Connect provider that a server names. In the
// browser of this machine (code flow with PKCE, RFC 7636 and RFC 8252), or of any other (device flow, RFC 8628).
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "server/views_users.h"

namespace stoker {

struct SignOnOptions {
    bool device = false;  // by a code that is typed in elsewhere
    double wait_s = 300;
    std::function<void(const std::string&)> say;  // what to do, a line at a time
};
struct FetchedToken {
    std::string token, nonce;  // nonce: empty of the device flow
};
Result<FetchedToken> fetch_token(const api::SignOn& provider, const SignOnOptions& options);

}  // namespace stoker
