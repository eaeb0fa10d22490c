// The replicas of one revision on this machine: server processes that are started, watched, probed, restarted and
// drained, and which of them takes a request. Any thread may call it. Contract with a gateway:
//
//     pool.arrived(prompt, output)          each request, when it comes: what is scaled by, and what wakes a service
//     from zero pool.waiting(requests, tokens)        what the gateway holds, after each change auto use =
//     pool.take(query)           a replica, its load raised at once; none: decision() says why use->first_token() its
//     prompt is prefilled use->ended(outcome, retry_after_s)    once; dropped without it, the client had left
//
// Processes outlive nothing: they are ended when the pool is, and a pool that finds processes of an earlier one of its
// name (which was killed) ends those first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/fleet/breaker.h"
#include "serve/fleet/route.h"
#include "serve/fleet/scale.h"
#include "serve/replicas/engine_signals.h"

namespace stoker {

struct PoolOptions {
    std::string name;                      // of model and revision: "chat@3"; marks its processes
    std::string folder;                    // for logs, one a replica; made when it is not there
    std::vector<std::string> command;      // "{port}" in any word stands for the port; command[0] is a path, or in PATH
    std::vector<std::string> environment;  // beside what this process has
    std::string model;                     // that /v1/models must list; empty: any answers
    std::string health_path = "/health", metrics_path = "/metrics";  // metrics empty: not read
    std::string ready_word;  // that must be in the answer of health; empty: status 200 is enough
    ScalePolicy scale;       // least and most hold for set_level() too
    bool scales_itself = true;
    int level_at_first = 0;
    double cold_start_s = 60;                                        // before one has been seen
    double prefill_tokens_per_s = 4'000, decode_tokens_per_s = 400;  // before they are measured
    std::uint32_t most_in_flight = 0;                                // of one replica; 0: no limit
    double probe_every_s = 5, probe_timeout_s = 1;
    double drain_limit_s = 300, kill_after_s = 10;      // of streams; from TERM to KILL
    double restart_after_s = 0.5, most_restart_s = 30;  // doubles while it dies soon after its start
    // What happened, for a log: "ready", "exited", ... with the replica and words. On the pool's thread.
    std::function<void(std::string_view event, std::uint64_t replica, std::string_view words)> told;
};

struct PoolReplica {
    std::uint64_t id = 0;
    int slot = 0;  // of its log: replica-SLOT.log
    std::string url;
    int pid = 0;
    ReplicaState state = ReplicaState::starting;
    double weight = 0, age_s = 0, start_s = 0;  // start_s: from its start until it was ready; 0: not yet
    std::uint32_t in_flight = 0;
    std::uint64_t taken = 0;
    BreakerPhase breaker = BreakerPhase::closed;
    std::optional<EngineSignals> signals;
};

struct PoolPicture {
    int level = 0;  // wanted
    ScaleDecision last_decision;
    double cold_start_s = 0, start_budget_s = 0;
    std::uint64_t starts = 0, exits = 0;  // of processes; exits: that nobody asked for
    std::string last_failure;             // of a start or a process, with the end of its log
    std::vector<PoolReplica> replicas;
};

class ReplicaPool {
public:
    // A request on its way to a replica.
    class Use {
    public:
        virtual ~Use() = default;
        virtual std::uint64_t replica() const = 0;
        virtual const std::string& url() const = 0;
        virtual const RouteDecision& decision() const = 0;
        virtual void first_token() = 0;
        virtual void ended(ReplicaOutcome outcome, double retry_after_s = 0) = 0;
    };

    // invalid: no command, or a name or folder that cannot be used.
    static Result<std::unique_ptr<ReplicaPool>> start(PoolOptions options);
    virtual ~ReplicaPool() = default;  // stop(0)

    virtual void arrived(double prompt_tokens, double output_tokens) = 0;
    virtual void waiting(std::int64_t requests, double prompt_tokens) = 0;
    // Null when there is none; `why` gets the decision either way.
    virtual std::unique_ptr<Use> take(const RouteQuery& query, RouteDecision* why = nullptr) = 0;
    // Where it does not scale itself, or to override it until the next decision.
    virtual void set_level(int replicas) = 0;
    virtual PoolPicture picture() const = 0;
    // Takes nothing more, lets streams end for so long, then ends the processes.
    virtual void stop(double drain_s) = 0;
};

}  // namespace stoker
