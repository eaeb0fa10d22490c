// Records of the journal as events: pages and live streams say the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/engine/engine.h"

namespace stoker::api {

struct Event {
    std::uint64_t seq = 0;
    std::int64_t at_us = 0;
    std::string object, kind, actor, cause, trace, operation;
    std::string body;  // JSON; empty: erased
};

// On the core thread: up to `most` records after `after`; with a run only what is about it.
Status read_events(const EngineView& view, std::uint64_t after, std::size_t most, RunId run, std::vector<Event>& out);
std::string as_json(const Event& event);         // one line
std::string as_server_sent(const Event& event);  // id, event, data, an empty line

}  // namespace stoker::api
