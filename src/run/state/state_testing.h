// A small world for tests: states made by records, as live ones are.
#pragma once

#include <string>
#include <vector>

#include "base/health.h"
#include "run/state/rules.h"
#include "run/state/state.h"

namespace stoker::run_testing {

// What a check of a node's links says: a tenth of a bandwidth, or whatever `verdict` makes of it.
inline HealthReport link_report(const std::string& node, HealthVerdict verdict) {
    return {{{.layer = HealthLayer::network,
              .name = "link-bandwidth",
              .node = node,
              .peer = "peer",
              .verdict = verdict,
              .measured = 6e6,
              .expected = 1.2e9,
              .unit = "bytes/s",
              .source = "test"}}};
}

// Applies bodies one after another at a time that the test sets.
struct StateWorld {
    State state;
    std::int64_t now_us = 1'000'000 * kSecondUs;

    StateWorld() { put(CoreStarted{.site = "tests", .epoch = 1}); }
    void put(RecordBody body) {
        const Record record{.seq = state.seq + 1, .at_us = now_us, .epoch = 1, .body = std::move(body)};
        const Status status = state.apply(record);
        if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
        CHECK(status.ok());
    }
    void node(const std::string& name, int gpus, std::int64_t cpu_milli = 64'000, std::int64_t gib = 512,
              const std::string& model = "H100") {
        NodeInfo info{.name = name, .cpu_milli = cpu_milli, .memory_bytes = gib << 30, .boot_id = "b1"};
        for (int i = 0; i < gpus; ++i) info.devices.push_back({.id = std::to_string(i), .model = model});
        put(NodeSeen{info});
    }
    static RunSpec spec(int ranks, int gpus, int gpu_milli = 1000) {
        RunSpec spec;
        spec.name = "job";
        spec.command = {"true"};
        spec.ranks = ranks;
        spec.per_rank.gpus = gpus;
        spec.per_rank.gpu_milli = gpu_milli;
        return spec;
    }
    RunId submit(RunSpec spec) {
        const RunId id{state.runs_made + 1};
        put(RunSubmitted{.run = id, .spec = std::move(spec), .key = "", .parent = {}, .step = "", .needs = {}});
        return id;
    }
    // The next attempt of a run of one rank, on these devices of the node, a bit each.
    void start(RunId id, const std::string& node, std::uint32_t devices) {
        const auto number = static_cast<std::uint32_t>(state.find(id)->attempts.size() + 1);
        put(AttemptCreated{.attempt = {id, number}, .places = {{node, devices}}, .resume_from = ""});
    }
    void end(RunId id, Cause cause = Cause::ok) {
        const AttemptId attempt{id, state.find(id)->attempts.back().number};
        put(OperationAnswered{
            .operation = state.find(id)->attempts.back().launch, .answer = Answer::confirmed, .detail = ""});
        put(AttemptMoved{attempt, AttemptEvent::end, cause, ""});
        put(AttemptMoved{attempt, AttemptEvent::gone, cause, ""});
        put(RunMoved{.run = id,
                     .event = cause == Cause::ok ? RunEvent::succeed : RunEvent::give_up,
                     .cause = cause,
                     .detail = ""});
    }
};

}  // namespace stoker::run_testing
