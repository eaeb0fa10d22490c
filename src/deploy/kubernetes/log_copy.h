// The logs of ranks, followed through the API server into the files that everybody reads: a pod goes with its logs, and
// people ask for them later. Where it stopped is kept beside, so that the next server goes on there.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deploy/kubernetes/api_client.h"
#include "deploy/kubernetes/job_watch.h"
#include "deploy/kubernetes/pod_measures.h"
#include "io/worker.h"

namespace stoker::kubernetes {

// Drops what was written before, and takes the times away. Lines come with the time that the kubelet gave them.
class LogLines {
public:
    LogLines(std::string last_time, std::int64_t at_last_time)
        : last_time_(std::move(last_time)), at_last_time_(at_last_time) {}
    void begin_again();  // another answer, which may repeat lines
    // The new text of a piece; `whole` gets its whole lines.
    std::string take(std::string_view piece, std::vector<LogLine>* whole = nullptr);
    std::string take_rest();  // at the end: a line without its end
    const std::string& last_time() const { return last_time_; }
    std::int64_t at_last_time() const { return at_last_time_; }

private:
    std::string line(std::string_view text);
    std::string last_time_;          // with nine digits of a second
    std::int64_t at_last_time_ = 0;  // lines of that time that were taken
    std::int64_t seen_at_last_ = 0;  // in this answer
    std::string rest_;
};

// Between two requests for one log: a node that does not answer is asked less and less often, by all of its ranks.
class LogPause {
public:
    std::chrono::milliseconds after(bool answered);

private:
    std::chrono::milliseconds next_{};
};

// Whose file in the engine's folder it is that says how far a log was copied; nothing: it is no such file.
std::optional<OperationId> operation_of_mark(std::string_view name);

class LogCopies {
public:
    // ended: whether the container has ended, as far as is known.
    LogCopies(std::shared_ptr<ApiClient> api, std::string space, std::string folder,
              std::function<bool(const LogSource&)> ended, MeasureBook& measures);
    ~LogCopies();
    // Starts what is not under way; what finds no room is copied in turns.
    void follow(const std::vector<LogSource>& sources);
    // All that was begun of it has been copied to its end.
    bool is_done(const OperationId& operation, const std::vector<LogSource>& sources) const;
    void forget(const OperationId& operation);
    // Of all others nothing is read any more: what a server that was killed left of them goes.
    void only(const std::set<OperationId>& there);

private:
    struct State;
    void copy(const LogSource& source, bool to_its_end);
    const std::shared_ptr<State> state_;
    WorkerPool followers_, others_;
};

}  // namespace stoker::kubernetes
