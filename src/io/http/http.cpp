#include "io/http/http.h"

#include "base/text.h"
#include "io/http/http_wire.h"

namespace stoker {

std::optional<std::string_view> HttpHeaders::find(std::string_view name) const {
    for (const auto& [key, value] : items)
        if (equals_ignore_case(key, name)) return value;
    return std::nullopt;
}

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
    for (const auto& [key, value] : query)
        if (key == name) return value;
    return std::nullopt;
}

HttpReply::~HttpReply() {
    if (sink_) std::exchange(sink_, nullptr)->send(http_problem(500, "the request was dropped without an answer"));
}

void HttpReply::send(HttpResponse response) {
    CHECK(sink_ != nullptr);
    std::exchange(sink_, nullptr)->send(std::move(response));
}

std::shared_ptr<HttpStream> HttpReply::stream(HttpResponse head) {
    CHECK(sink_ != nullptr);
    return std::exchange(sink_, nullptr)->stream(std::move(head));
}

}  // namespace stoker
