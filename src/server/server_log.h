// What a server writes into its log about the life of runs and nodes: told by the records of the journal as they are
// committed, and by a look once a second at what no record says.
#pragma once

#include <memory>

#include "io/log.h"
#include "run/engine/engine.h"

namespace stoker {

// The events that a record is, given what the state is after it; none for most.
class RecordEvents {
public:
    explicit RecordEvents(Log& log) : log_(log) {}
    void tell(const Record& record, const State& state);

private:
    void run_moved(const RunMoved& moved, const Record& record, const State& state);
    void attempt_moved(const AttemptMoved& moved, const State& state);
    void node_moved(const NodeMoved& moved);
    Log& log_;
};

class ServerLog {
public:
    // Both have to outlive it.
    static std::unique_ptr<ServerLog> start(Engine& engine, std::shared_ptr<Log> log);
    virtual ~ServerLog() = default;
};

}  // namespace stoker
