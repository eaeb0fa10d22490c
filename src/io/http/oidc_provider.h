// OpenID Connect providers: where their parts are (OpenID Connect Discovery 1.0), and calls to them. Blocking.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/result.h"

namespace stoker {

struct OidcProvider {
    std::string issuer, authorization, token, device, keys;  // addresses; device: empty where it has none
};

// https, or http on this machine. invalid: it is no address of an issuer.
Status check_issuer(const std::string& issuer);
// unavailable: it does not answer; invalid: it says of itself that it is somebody else.
Result<OidcProvider> discover_provider(const std::string& issuer, const std::string& ca_pem, double timeout_s);

// The body of a GET that was answered with 200.
Result<std::string> fetch_text(const std::string& url, const std::string& ca_pem, double timeout_s);
// A POST of a form; the answer as JSON whatever its status, which is told.
struct FormAnswer {
    int status = 0;
    Document body;
};
Result<FormAnswer> post_form(const std::string& url, const std::vector<std::pair<std::string, std::string>>& form,
                             const std::string& ca_pem, double timeout_s);

// key=value&key=value, percent-encoded.
std::string form_encoded(const std::vector<std::pair<std::string, std::string>>& form);
// A member of a JSON object; empty: it is not there, or no text.
std::string member_text(const Document& json, std::string_view key);

}  // namespace stoker
