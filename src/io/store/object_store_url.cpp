#include "io/store/object_store_url.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/http/client_connection.h"
#include "io/store/request_sign.h"

namespace stoker {
namespace {

constexpr std::size_t kMostUrlBytes = 2000;

Error wrong_url(std::string_view text, std::string_view what, std::string remedy = {}) {
    if (remedy.empty())
        remedy =
            "write s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX, https://ACCOUNT.blob.core.windows.net/CONTAINER/"
            "PREFIX or file:///FOLDER";
    // What stands behind '?' may be a secret that does not belong there.
    const std::string shown = printable(text.substr(0, text.find('?')), 120);
    return Error(ErrorKind::invalid, fmt::format("the store '{}' {}", shown, what), {}, std::move(remedy));
}

std::string take_part(std::string_view& rest) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string part(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    return part;
}

// The rule that S3 and Azure share, and the longer of their limits.
bool is_bucket_name(std::string_view name) {
    return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '$';
           });
}

Status read_prefix(std::string_view text, std::string_view rest, ObjectUrl& out) {
    while (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.empty()) return done();
    for (const std::string_view part : split(rest, '/'))
        if (part.empty() || part == "." || part == ".." || part.find('\\') != std::string_view::npos)
            return wrong_url(text, fmt::format("has '{}' as a part of its prefix", printable(part, 40)));
    out.prefix = rest;
    return done();
}

Status read_options(std::string_view text, std::string_view query, ObjectUrl& out) {
    for (const std::string_view item : split(query, '&')) {
        const std::size_t equals = std::min(item.find('='), item.size());
        const std::string_view name = item.substr(0, equals);
        const std::string_view value = item.substr(std::min(equals + 1, item.size()));
        if (name == "region" && out.kind == ObjectUrl::Kind::s3) {
            const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
            });
            if (!plain) return wrong_url(text, "has a region that is none", "write for example region=eu-west-1");
            out.region = value;
        } else if (name == "endpoint" && out.kind != ObjectUrl::Kind::file) {
            out.endpoint = value;
            while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
        } else if (name == "sig" || name == "se" || name == "sv" || name == "X-Amz-Signature") {
            return wrong_url(text, "has a signature in it, which would stand in journals and logs",
                             "leave out everything from '?' on, and give the signature to the server as "
                             "AZURE_STORAGE_SAS_TOKEN");
        } else {
            return wrong_url(
                text, fmt::format("has the option '{}', which is not known", printable(name, 40)),
                out.kind == ObjectUrl::Kind::s3 ? "endpoint= and region= are known" : "endpoint= is known");
        }
    }
    return done();
}

Status check_endpoint(std::string_view text, const ObjectUrl& url) {
    if (url.endpoint.empty()) return done();
    std::string_view server = url.endpoint;
    const std::size_t host = server.find("://");
    const std::size_t path = host == std::string_view::npos ? std::string_view::npos : server.find('/', host + 3);
    if (path != std::string_view::npos) {
        // Only Azure's emulators have one: the account.
        if (url.kind == ObjectUrl::Kind::s3) return wrong_url(text, "has an endpoint with a path");
        server = server.substr(0, path);
    }
    const auto read = http::read_server_url(server);
    if (!read) return wrong_url(text, "has no usable endpoint: " + read.error().message());
    return done();
}

}  // namespace

std::string ObjectUrl::text(std::string_view below) const {
    std::string path = prefix;
    if (!below.empty()) path += (path.empty() || path.ends_with('/') ? "" : "/") + std::string(below);
    if (kind == Kind::file) return "file://" + path;
    std::string out = kind == Kind::s3 ? "s3://" + bucket : "az://" + account + "/" + bucket;
    if (!path.empty()) out += "/" + path;
    char before = '?';
    for (const auto& [name, value] : {std::pair("endpoint", &endpoint), std::pair("region", &region)}) {
        if (value->empty()) continue;
        out += fmt::format("{}{}={}", before, name, *value);
        before = '&';
    }
    return out;
}

bool looks_like_object_url(std::string_view text) {
    return text.find("://") != std::string_view::npos;
}

Result<ObjectUrl> read_object_url(std::string_view text) {
    if (text.size() > kMostUrlBytes) return wrong_url(text, "is too long");
    for (const char c : text)
        if (static_cast<unsigned char>(c) <= ' ' || c == 127 || c == '#')
            return wrong_url(text, "holds a blank, a control character or '#'");
    const std::size_t mark = std::min(text.find('?'), text.size());
    std::string_view rest = text.substr(0, mark);
    const std::string_view query = mark < text.size() ? text.substr(mark + 1) : std::string_view();
    ObjectUrl out;
    if (starts_with_ignore_case(rest, "file://")) {
        rest.remove_prefix(7);
        if (!rest.starts_with('/')) return wrong_url(text, "has no absolute folder", "write file:///FOLDER");
        if (("/" + std::string(rest) + "/").find("/../") != std::string::npos)
            return wrong_url(text, "leads elsewhere with ..");
        while (rest.size() > 1 && rest.ends_with('/')) rest.remove_suffix(1);
        out.prefix = rest;
        if (mark < text.size()) TRY_VOID(read_options(text, query, out));
        return out;
    }
    const std::size_t scheme_end = rest.find("://");
    if (scheme_end == std::string_view::npos) return wrong_url(text, "has no scheme");
    const std::string scheme = lower(rest.substr(0, scheme_end));
    rest.remove_prefix(scheme_end + 3);
    if (rest.find('@') != std::string_view::npos)
        return wrong_url(text.substr(0, scheme_end), "has a user name or a password in it",
                         "keys come from the environment: AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_KEY");
    if (scheme == "s3") {
        out.kind = ObjectUrl::Kind::s3;
    } else if (scheme == "az" || scheme == "azure") {
        out.kind = ObjectUrl::Kind::azure;
        out.account = take_part(rest);
    } else if (scheme == "https") {
        out.kind = ObjectUrl::Kind::azure;
        const std::string host = lower(take_part(rest));
        const std::size_t dot = host.find(".blob.");
        if (dot == std::string::npos)
            return wrong_url(text, "is no address of Azure Blob Storage",
                             "a store that speaks S3 is s3://BUCKET/PREFIX?endpoint=https://HOST");
        out.account = host.substr(0, dot);
        if (host.substr(dot) != ".blob.core.windows.net") out.endpoint = "https://" + host;
    } else {
        return wrong_url(text, "has the scheme '" + printable(scheme, 20) + "', which is not known");
    }
    if (out.kind == ObjectUrl::Kind::azure) {
        const bool plain = out.account.size() >= 3 && out.account.size() <= 24 &&
                           std::all_of(out.account.begin(), out.account.end(),
                                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
        if (!plain) return wrong_url(text, "has no account of Azure: 3 to 24 small letters and digits");
    }
    out.bucket = take_part(rest);
    if (!is_bucket_name(out.bucket))
        return wrong_url(text, fmt::format("has no {}: 3 to 63 small letters, digits, '-' and '.'",
                                           out.kind == ObjectUrl::Kind::s3 ? "bucket" : "container"));
    TRY_VOID(read_prefix(text, rest, out));
    if (mark < text.size()) TRY_VOID(read_options(text, query, out));
    TRY_VOID(check_endpoint(text, out));
    return out;
}

}  // namespace stoker
