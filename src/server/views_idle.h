// What the API says about runs that hold machines and do nothing. As in views.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/ids.h"

namespace stoker::api {

struct IdleRunView {
    RunId run;
    std::string name, user, project, rule, why;
    std::string state;  // idle, told, kept, parked
    std::string idle_since, told_at, kept_until, kept_by, parked_at, next_at;
    double idle_s = 0, chance_that_it_goes_on = 0, saves_s = 0, loses_s = 0, cpus = 0;
    std::int64_t gpus = 0, pauses = 0, cost_microusd_per_hour = 0;
};
struct IdleList {
    std::vector<IdleRunView> items;
    std::vector<std::string> rules;  // in words, in their order
};
struct KeepBody {
    std::int64_t for_s = 0;  // from now; 0: no longer
};

template <class V>
void fields(V& visit, IdleRunView& v) {
    visit("chance_that_it_goes_on", v.chance_that_it_goes_on);
    visit("cost_microusd_per_hour", v.cost_microusd_per_hour);
    visit("cpus", v.cpus);
    visit("gpus", v.gpus);
    visit("idle_s", v.idle_s);
    visit("idle_since", v.idle_since);
    visit("kept_by", v.kept_by);
    visit("kept_until", v.kept_until);
    visit("loses_s", v.loses_s);
    visit("name", v.name);
    visit("next_at", v.next_at);
    visit("parked_at", v.parked_at);
    visit("pauses", v.pauses);
    visit("project", v.project);
    visit("rule", v.rule);
    visit("run", v.run);
    visit("saves_s", v.saves_s);
    visit("state", v.state);
    visit("told_at", v.told_at);
    visit("user", v.user);
    visit("why", v.why);
}
template <class V>
void fields(V& visit, IdleList& v) {
    visit("items", v.items);
    visit("rules", v.rules);
}
template <class V>
void fields(V& visit, KeepBody& v) {
    visit("for_s", v.for_s);
}

}  // namespace stoker::api
