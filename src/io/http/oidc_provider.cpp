#include "io/http/oidc_provider.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/http/http_client.h"

namespace stoker {
namespace {

constexpr std::size_t kMostAnswer = 1u << 20;

struct Address {
    std::string origin, path, host;
};
Result<Address> address_of(const std::string& url) {
    const bool plain = url.starts_with("http://"), tls = url.starts_with("https://");
    const std::size_t begin = plain ? 7 : 8, end = std::min(url.find_first_of("/?#", begin), url.size());
    const bool clean =
        url.size() <= 2000 && std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 127; });
    if ((!plain && !tls) || end <= begin || !clean || url.find('@') < end || url.find('#') != std::string::npos)
        return Error(ErrorKind::invalid, fmt::format("'{}' is no address of a web server", printable(url, 100)), {},
                     "https://login.example.org/realms/main");
    Address address{url.substr(0, end), url.substr(end), url.substr(begin, end - begin)};
    if (address.path.empty()) address.path = "/";
    // A port, and the brackets of IPv6.
    if (const std::size_t colon = address.host.rfind(':');
        colon != std::string::npos && address.host.find(']', colon) == std::string::npos)
        address.host.resize(colon);
    const bool here = address.host == "localhost" || address.host == "127.0.0.1" || address.host == "[::1]";
    if (plain && !here)
        return Error(ErrorKind::invalid, fmt::format("{} would be asked without TLS", printable(url, 100)), {},
                     "an https:// address");
    return address;
}

Result<HttpResponse> ask(const std::string& url, HttpCall call, const std::string& ca_pem, double timeout_s) {
    TRY(const Address address, address_of(url));
    TRY(const auto client, HttpClient::make({.url = address.origin, .ca_pem = ca_pem, .own = {}}));
    call.target = address.path;
    call.timeout_s = timeout_s;
    call.max_body_bytes = kMostAnswer;
    call.headers.add("Accept", "application/json");
    return client->call(call);
}

}  // namespace

std::string form_encoded(const std::vector<std::pair<std::string, std::string>>& form) {
    std::string out;
    const auto add = [&](std::string_view text) {
        for (const char c : text) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                               c == '.' || c == '_' || c == '~';
            out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    };
    for (const auto& [key, value] : form) {
        if (!out.empty()) out += '&';
        add(key);
        out += '=';
        add(value);
    }
    return out;
}

std::string member_text(const Document& json, std::string_view key) {
    const Node* found = json.root().find(key);
    return found != nullptr && found->is_scalar() && found->kind != NodeKind::null ? found->text : std::string();
}

Status check_issuer(const std::string& issuer) {
    TRY(const Address address, address_of(issuer));
    if (issuer.find('?') == std::string::npos) return done();
    return Error(ErrorKind::invalid, "an issuer has no query: " + printable(address.path, 100));
}

Result<std::string> fetch_text(const std::string& url, const std::string& ca_pem, double timeout_s) {
    TRY(HttpResponse response, ask(url, {}, ca_pem, timeout_s));
    if (response.status == 200) return std::move(response.body);
    return Error(ErrorKind::unavailable, fmt::format("{} answered {}", printable(url, 200), response.status));
}

Result<FormAnswer> post_form(const std::string& url, const std::vector<std::pair<std::string, std::string>>& form,
                             const std::string& ca_pem, double timeout_s) {
    HttpCall call{.method = "POST", .body = form_encoded(form)};
    call.headers.add("Content-Type", "application/x-www-form-urlencoded");
    TRY(const HttpResponse response, ask(url, std::move(call), ca_pem, timeout_s));
    auto body = Document::parse(response.body, "answer.json");
    if (!body || !body->root().is_mapping())
        return Error(ErrorKind::unavailable,
                     fmt::format("{} answered {}, and no JSON", printable(url, 200), response.status));
    return FormAnswer{response.status, std::move(*body)};
}

Result<OidcProvider> discover_provider(const std::string& issuer, const std::string& ca_pem, double timeout_s) {
    TRY_VOID(check_issuer(issuer));
    std::string base = issuer;
    while (base.ends_with('/')) base.pop_back();
    const std::string url = base + "/.well-known/openid-configuration";
    TRY(const std::string text, fetch_text(url, ca_pem, timeout_s));
    TRY(const Document document, Document::parse(text, "openid-configuration.json"));
    OidcProvider provider{.issuer = member_text(document, "issuer"),
                          .authorization = member_text(document, "authorization_endpoint"),
                          .token = member_text(document, "token_endpoint"),
                          .device = member_text(document, "device_authorization_endpoint"),
                          .keys = member_text(document, "jwks_uri")};
    if (provider.issuer != issuer)
        return Error(ErrorKind::invalid,
                     fmt::format("{} says that it is {}, and not {}", printable(url, 200),
                                 printable(provider.issuer, 200), printable(issuer, 200)),
                     {}, "write the issuer as the provider does");
    for (const std::string* each : {&provider.authorization, &provider.token, &provider.keys})
        TRY_VOID(check_issuer(each->substr(0, each->find('?'))));
    if (!provider.device.empty()) TRY_VOID(check_issuer(provider.device));
    return provider;
}

}  // namespace stoker
