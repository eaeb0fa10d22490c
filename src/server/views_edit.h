// What may be said otherwise of a run that waits. As in views.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "run/spec/run_spec.h"

namespace stoker::api {

// What is left out stays as it is. Environment and labels: these, beside those that are there.
struct EditBody {
    std::optional<std::string> name, folder, gpu_model;
    std::optional<std::string> begin_at;  // empty: as soon as there is room
    std::optional<std::string> every;     // empty: not again
    std::optional<std::vector<std::string>> command;
    std::map<std::string, std::string> environment, labels;
    std::optional<int> priority, ranks, nodes, gpus, max_restarts;
    std::optional<RunClass> run_class;
    std::optional<std::int64_t> cpu_milli, memory_bytes, timeout_s, grace_s, queue_timeout_s, lease_s, times;
    std::optional<std::vector<NotifySpec>> notify;  // in place of those that are there; none: nobody
};

template <class V>
void fields(V& visit, EditBody& v) {
    visit("begin_at", v.begin_at);
    visit("class", v.run_class);
    visit("command", v.command);
    visit("cpu_milli", v.cpu_milli);
    visit("environment", v.environment);
    visit("every", v.every);
    visit("folder", v.folder);
    visit("gpu_model", v.gpu_model);
    visit("gpus", v.gpus);
    visit("grace_s", v.grace_s);
    visit("labels", v.labels);
    visit("lease_s", v.lease_s);
    visit("max_restarts", v.max_restarts);
    visit("memory_bytes", v.memory_bytes);
    visit("name", v.name);
    visit("nodes", v.nodes);
    visit("notify", v.notify);
    visit("priority", v.priority);
    visit("queue_timeout_s", v.queue_timeout_s);
    visit("ranks", v.ranks);
    visit("timeout_s", v.timeout_s);
    visit("times", v.times);
}

}  // namespace stoker::api
