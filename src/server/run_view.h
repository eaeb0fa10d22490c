// The state as the API shows it. Copies on the core thread; nothing here touches files.
#pragma once

#include "run/decide/why.h"
#include "run/engine/engine.h"
#include "server/views.h"

namespace stoker::api {

RunItem item_of(const State& state, const Run& run, std::int64_t now_us);
// Without why, eta, checkpoints, metrics and cost.
RunView view_of_run(const EngineView& view, const Run& run);
WhyView view_of_why(const Why& why);
EtaView view_of_eta(const Eta& eta);
std::vector<std::string> device_names(const State& state, const std::string& node, std::uint32_t devices);

struct ListQuery {
    std::vector<RunState> states;  // empty: all
    std::string name, user;
    RunId parent;
    std::size_t limit = 50;
    bool newest_first = true;
    Actor actor = Actor::part("api");  // those that it reaches
    RunId after;                       // exclusive, in the order asked for
};
// Looks at 20,000 runs at most, so that a filter which fits few keeps nobody waiting: a page may then be short, or
// empty, and still have a next one.
RunPage list_runs(const State& state, const ListQuery& query, std::int64_t now_us);
std::string cursor_of(const ListQuery& query, RunId after);
bool read_cursor(std::string_view text, ListQuery& query);

}  // namespace stoker::api
