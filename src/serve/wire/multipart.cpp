#include "serve/wire/multipart.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::wire {
namespace {

constexpr std::size_t kMostParts = 64, kLongestBoundary = 70;

// A parameter of a header: name="value" or name=value; its value unescaped.
std::optional<std::string> parameter_of(std::string_view header, std::string_view name) {
    std::size_t at = header.find(';');
    while (at != std::string_view::npos) {
        ++at;
        while (at < header.size() && (header[at] == ' ' || header[at] == '\t')) ++at;
        const std::size_t equals = header.find('=', at);
        if (equals == std::string_view::npos) return std::nullopt;
        const std::string_view key = trim(header.substr(at, equals - at));
        std::string value;
        std::size_t end = equals + 1;
        if (end < header.size() && header[end] == '"') {
            for (++end; end < header.size() && header[end] != '"'; ++end) {
                if (header[end] == '\\' && end + 1 < header.size()) ++end;
                value += header[end];
            }
            end = std::min(end + 1, header.size());
        } else {
            const std::size_t stop = std::min(header.find(';', end), header.size());
            value = trim(header.substr(end, stop - end));
            end = stop;
        }
        if (equals_ignore_case(key, name)) return value;
        at = header.find(';', end);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body) {
    if (!starts_with_ignore_case(content_type, "multipart/form-data")) return std::nullopt;
    const auto boundary = parameter_of(content_type, "boundary");
    if (!boundary || boundary->empty() || boundary->size() > kLongestBoundary) return std::nullopt;
    const std::string first = "--" + *boundary, next = "\r\n" + first;
    std::size_t at = body.find(first);
    if (at != 0 && (at == std::string_view::npos || at < 2 || body.substr(at - 2, 2) != "\r\n")) return std::nullopt;
    at += first.size();
    std::vector<FormPart> parts;
    while (body.substr(at, 2) != "--") {
        if (body.substr(at, 2) != "\r\n" || parts.size() == kMostParts) return std::nullopt;
        const std::size_t head_end = body.find("\r\n\r\n", at);
        if (head_end == std::string_view::npos) return std::nullopt;
        const std::size_t begin = head_end + 4, end = body.find(next, begin);
        if (end == std::string_view::npos) return std::nullopt;
        FormPart part{.content = body.substr(begin, end - begin)};
        std::string_view head = body.substr(at + 2, head_end - at - 2);
        bool named = false;
        while (!head.empty()) {
            const std::size_t stop = std::min(head.find("\r\n"), head.size());
            const std::string_view line = head.substr(0, stop);
            head.remove_prefix(std::min(stop + 2, head.size()));
            if (!starts_with_ignore_case(line, "content-disposition:")) continue;
            if (auto name = parameter_of(line, "name")) {
                part.name = std::move(*name);
                named = true;
            }
            part.filename = parameter_of(line, "filename").value_or("");
        }
        if (!named) return std::nullopt;
        parts.push_back(std::move(part));
        at = end + next.size();
    }
    return parts;
}

}  // namespace stoker::wire
