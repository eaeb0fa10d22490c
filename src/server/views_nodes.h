// Nodes as the API shows them: what they have, what they take, and how well they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "deploy/driver.h"
#include "run/decide/health.h"
#include "run/state/records.h"
#include "server/views_gpus.h"

namespace stoker::api {

struct NodeCheckView {
    std::string at;
    HealthLevel level = HealthLevel::quick;
    HealthVerdict verdict = HealthVerdict::skipped;
    std::int64_t passed = 0;              // parts that were
    std::vector<HealthCheck> not_passed;  // the worst first
};
struct NodeBlameView {
    std::string at;
    AttemptId attempt;
    std::vector<std::string> nodes;  // of the gang
    double share = 0;                // of a step that it cost
};
struct NodeView {
    std::string name;
    NodeState state = NodeState::ready;
    Cause cause = Cause::none;
    std::string since;
    NodeTakes takes = NodeTakes::gangs;
    std::string reason;        // why it takes less than everything
    bool under_check = false;  // a check goes on, or waits for what runs there
    std::int64_t cpu_milli = 0, cpu_milli_free = 0, memory_bytes = 0, memory_bytes_free = 0;
    std::vector<DeviceInfo> devices;
    std::int64_t gpu_milli_free = 0;
    std::vector<RunId> runs;
    std::string boot_id;
    std::string engine;  // of several, which has it
    std::string topology, doctor;
    std::optional<NodeCheckView> check;  // the last
    std::vector<NodeBlameView> blames;   // the newest
    std::vector<std::string> repairs;
    std::optional<NodeGpusItem> gpus_told;  // by the agent there
};
// An engine, whose nodes are listed as they were when it does not answer.
struct NodeEngineView {
    std::string name;   // empty: the only one, which is listed when it does not answer
    std::string fault;  // why it does not answer; empty: it does
};
struct NodeList {
    std::vector<NodeView> items;
    std::optional<std::vector<NodeEngineView>> engines;
};
struct NodeChanged {
    std::string node;
    NodeState state = NodeState::ready;
    Cause cause = Cause::none;
};
struct NodeCheckBody {
    HealthLevel level = HealthLevel::quick;
};
struct NodeCheckAsked {
    std::string node;
    HealthLevel level = HealthLevel::quick;
    bool repeated = false;  // one was asked for already
    std::vector<RunId> waits_for;
};

template <class V>
void fields(V& visit, NodeCheckView& v) {
    visit("at", v.at);
    visit("level", v.level);
    visit("not_passed", v.not_passed);
    visit("passed", v.passed);
    visit("verdict", v.verdict);
}
template <class V>
void fields(V& visit, NodeBlameView& v) {
    visit("at", v.at);
    visit("attempt", v.attempt);
    visit("nodes", v.nodes);
    visit("share", v.share);
}
template <class V>
void fields(V& visit, NodeView& v) {
    visit("blames", v.blames);
    visit("boot_id", v.boot_id);
    visit("cause", v.cause);
    visit("check", v.check);
    visit("cpu_milli", v.cpu_milli);
    visit("cpu_milli_free", v.cpu_milli_free);
    visit("devices", v.devices);
    visit("doctor", v.doctor);
    visit("engine", v.engine);
    visit("gpu_milli_free", v.gpu_milli_free);
    visit("gpus_told", v.gpus_told);
    visit("memory_bytes", v.memory_bytes);
    visit("memory_bytes_free", v.memory_bytes_free);
    visit("name", v.name);
    visit("reason", v.reason);
    visit("repairs", v.repairs);
    visit("runs", v.runs);
    visit("since", v.since);
    visit("state", v.state);
    visit("takes", v.takes);
    visit("topology", v.topology);
    visit("under_check", v.under_check);
}
template <class V>
void fields(V& visit, NodeEngineView& v) {
    visit("fault", v.fault);
    visit("name", v.name);
}
template <class V>
void fields(V& visit, NodeList& v) {
    visit("engines", v.engines);
    visit("items", v.items);
}
template <class V>
void fields(V& visit, NodeChanged& v) {
    visit("cause", v.cause);
    visit("node", v.node);
    visit("state", v.state);
}
template <class V>
void fields(V& visit, NodeCheckBody& v) {
    visit("level", v.level);
}
template <class V>
void fields(V& visit, NodeCheckAsked& v) {
    visit("level", v.level);
    visit("node", v.node);
    visit("repeated", v.repeated);
    visit("waits_for", v.waits_for);
}

}  // namespace stoker::api
