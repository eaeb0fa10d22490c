// Any bytes of an upstream as a stream of events: the events do not depend on how the bytes were cut, together they are
// the bytes that came, and an event without its usage is JSON still. What several answers used is added up whatever is
// told of them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_scan.h"
#include "serve/wire/choice_tally.h"
#include "serve/wire/sse.h"
#include "serve/wire/usage.h"

#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

using namespace stoker;
using namespace stoker::wire;

namespace {

struct Read {
    std::vector<std::string> events;
    std::string rest;
    bool sound = true;
};

Read read_all(std::string_view bytes, std::size_t step) {
    SseSplitter splitter(512);
    Read read;
    for (std::size_t at = 0; at < bytes.size() && read.sound; at += step)
        read.sound = splitter.feed(bytes.substr(at, step), [&](std::string_view event) {
            read.events.emplace_back(event);
            return true;
        });
    read.rest = splitter.rest();
    return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const Read whole = read_all(bytes, std::max<std::size_t>(size, 1));
    for (const std::size_t step : {1, 7}) {
        const Read cut = read_all(bytes, step);
        REQUIRE(cut.sound == whole.sound);
        if (cut.sound) REQUIRE(cut.events == whole.events && cut.rest == whole.rest);
    }
    std::string joined;
    ChoiceTally tally(2, 5);
    for (const std::string& event : whole.events) {
        joined += event;
        const SseEvent read = read_sse_event(event);
        if (read.lines > 0) {
            const std::string line = in_one_line(event);
            const SseEvent again = read_sse_event(line);
            REQUIRE(again.lines == 1 && again.name == read.name);
            const AnswerScan scan = scan_answer(Meter::chat, again.data, nullptr, tally.pieces());
            if (scan.sound) tally.see_event(scan);
        }
        if (read.lines != 1) continue;
        for (const Meter meter : {Meter::chat, Meter::responses, Meter::messages, Meter::ranking}) {
            const AnswerScan scan = scan_answer(meter, read.data);
            if (!scan.sound || scan.usage_end == 0) continue;
            const std::string shown = without_usage(event, read.data, scan);
            REQUIRE(scan_json(read_sse_event(shown).data).fault.empty());
        }
    }
    for (const bool exact : {false, true})
        (void)tally.total({.exact = exact, .prompt = 9, .written = [](std::uint32_t, std::uint64_t written) {
                               return static_cast<std::uint32_t>(written);
                           }});
    if (whole.sound) REQUIRE(joined + whole.rest == bytes);
    return 0;
}
