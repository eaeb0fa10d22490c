#include "server/console.h"

#include <map>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "io/sha256.h"

namespace stoker::api {
namespace {

constexpr std::string_view kAssets = "/console/";

std::string_view type_of(std::string_view path) {
    if (path.ends_with(".html")) return "text/html; charset=utf-8";
    if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
    if (path.ends_with(".css")) return "text/css; charset=utf-8";
    if (path.ends_with(".svg")) return "image/svg+xml";
    if (path.ends_with(".txt")) return "text/plain; charset=utf-8";
    return "application/octet-stream";
}

// https://login.example.org/realms/x -> https://login.example.org; anything that is no plain origin: nothing.
std::string origin_of(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return {};
    const std::size_t end = url.find('/', scheme + 3);
    const std::string_view origin = url.substr(0, end);
    const bool plain =
        origin.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-[]/") ==
        std::string_view::npos;
    return plain ? std::string(origin) : std::string();
}

// Of what the binary carries, which stays as it is: hashed once.
const std::map<std::string_view, std::string>& tags() {
    static const auto all = [] {
        std::map<std::string_view, std::string> made;
        for (const EmbeddedFile& file : embedded_files())
            if (file.path.starts_with(kAssets.substr(1)))
                made[file.path] = fmt::format("\"{}\"", hex(sha256(file.bytes)).substr(0, 16));
        return made;
    }();
    return all;
}

}  // namespace

bool answer_console(Exchange& exchange, const std::string& sign_on) {
    const HttpRequest& request = exchange.request;
    const std::string_view path = std::string_view(request.path).substr(0, request.path.find('?'));
    const bool page = path == "/";
    if (!page && !path.starts_with(kAssets)) return false;
    if (request.method != "GET" && request.method != "HEAD") return false;
    const EmbeddedFile* file = find_embedded(page ? std::string("console/index.html") : std::string(path.substr(1)));
    if (file == nullptr) return false;
    const std::string& tag = tags().at(file->path);
    HttpResponse response{.status = 200, .content_type = std::string(type_of(file->path)), .headers = {}, .body = ""};
    response.headers.add("ETag", tag);
    // Asked for each time, and hardly ever sent twice: after an upgrade the page is the one of the new server.
    response.headers.add("Cache-Control", "no-cache");
    response.headers.add("Referrer-Policy", "no-referrer");
    response.headers.add("Cross-Origin-Opener-Policy", "same-origin");
    const std::string other = origin_of(sign_on);
    response.headers.add("Content-Security-Policy",
                         fmt::format("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                                     "font-src 'self'; connect-src 'self'{}{}; base-uri 'none'; form-action 'none'; "
                                     "frame-ancestors 'none'",
                                     other.empty() ? "" : " ", other));
    if (const auto had = request.headers.find("If-None-Match"); had && *had == tag) {
        response.status = 304;
        response.content_type.clear();
    } else {
        response.body = std::string(file->bytes);
    }
    exchange.send(std::move(response));
    return true;
}

}  // namespace stoker::api
