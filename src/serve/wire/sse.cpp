#include "serve/wire/sse.h"

namespace stoker::wire {
namespace {

// Behind the first blank line from `from` on; npos: there is none yet.
std::size_t end_of_event(std::string_view text, std::size_t from) {
    for (std::size_t at = from; (at = text.find('\n', at)) != std::string_view::npos; ++at) {
        if (at + 1 < text.size() && text[at + 1] == '\n') return at + 2;
        if (at + 2 < text.size() && text[at + 1] == '\r' && text[at + 2] == '\n') return at + 3;
    }
    return std::string_view::npos;
}

// Each field of an event that has a name.
template <typename Take>
void each_field(std::string_view event, const Take& take) {
    while (!event.empty()) {
        const std::size_t end = event.find('\n');
        std::string_view line = event.substr(0, end);
        event.remove_prefix(end == std::string_view::npos ? event.size() : end + 1);
        while (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t colon = line.find(':');
        if (colon == 0 || line.empty()) continue;
        std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        take(line.substr(0, colon), value);
    }
}

}  // namespace

bool SseSplitter::feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_event) {
    if (bytes.find('\0') != std::string_view::npos) {
        fault_ = "a NUL in the stream";
        return false;
    }
    std::string joined;
    std::size_t from = 0;
    if (!rest_.empty()) {
        // What ends an event may have begun in the last piece.
        from = rest_.size() > 3 ? rest_.size() - 3 : 0;
        joined.swap(rest_);
        joined += bytes;
        bytes = joined;
    }
    while (true) {
        const std::size_t end = end_of_event(bytes, from);
        if (end == std::string_view::npos) break;
        const std::string_view event = bytes.substr(0, end);
        bytes.remove_prefix(end);
        from = 0;
        if (event.size() > max_) {
            fault_ = "an event is too long";
            return false;
        }
        if (!on_event(event)) return false;
    }
    if (bytes.size() > max_) {
        fault_ = "an event is too long";
        return false;
    }
    rest_.assign(bytes);
    return true;
}

SseEvent read_sse_event(std::string_view event) {
    SseEvent found;
    each_field(event, [&](std::string_view name, std::string_view value) {
        if (name == "event") found.name = value;
        if (name != "data") return;
        if (found.lines++ == 0)
            found.data = value;
        else
            found.data = std::string_view(found.data.data(),
                                          static_cast<std::size_t>(value.data() + value.size() - found.data.data()));
    });
    return found;
}

std::string in_one_line(std::string_view event) {
    std::string name, data;
    each_field(event, [&](std::string_view field, std::string_view value) {
        if (field == "event") name.assign("event: ").append(value).append("\n");
        if (field == "data") data.append(" ").append(value);
    });
    return name + "data:" + data + "\n\n";
}

}  // namespace stoker::wire
