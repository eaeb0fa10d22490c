// Server-sent events out of a stream that arrives in pieces: each event as its bytes, with the blank line that ends it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace stoker::wire {

class SseSplitter {
public:
    explicit SseSplitter(std::size_t max_event_bytes = 1u << 20) : max_(max_event_bytes) {}

    // Calls for each event that `bytes` completes; views are good for the call. False: an event is too long or has a
    // NUL, or the callback said to stop.
    bool feed(std::string_view bytes, const std::function<bool(std::string_view event)>& on_event);
    bool between_events() const { return rest_.empty(); }
    std::string_view rest() const { return rest_; }
    const char* fault() const { return fault_; }

private:
    std::size_t max_;
    std::string rest_;
    const char* fault_ = "";
};

struct SseEvent {
    std::string_view name;  // of "event:", empty without
    // The bytes of "data:"; of several lines the first to the last one as they stand, `lines` says how many.
    std::string_view data;
    int lines = 0;
};
// Lines without a colon are fields without a value, comments are passed over.
SseEvent read_sse_event(std::string_view event);
// The same event with its data in one line, where it had several: between values of JSON a blank is as good as an end
// of line.
std::string in_one_line(std::string_view event);

}  // namespace stoker::wire
