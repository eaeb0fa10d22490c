// Judges each run when it has ended and keeps the answer beside its series, whose seconds are gone an hour later. A
// thread of its own, asleep but for ends of runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "explain/explanation.h"

namespace stoker {

// What of a run is judged; nothing while it has not ended. not_found: there is no such run, or it lives.
using EndedRun = std::function<Result<std::optional<RunAsItStands>>(RunId run)>;

struct KeeperOptions {
    std::shared_ptr<SeriesStore> series;
    EndedRun look;
    double settle_s = 3;      // after the last rank was gone: until what it wrote last is in the series
    double most_s = 600;      // a run that has not ended by then is asked for no more
    double goodbye_s = 2;     // for what is owed when the server goes
    std::size_t most = 4096;  // waiting; more are not kept
};

class ExplanationKeeper {
public:
    static std::unique_ptr<ExplanationKeeper> start(KeeperOptions options);
    virtual ~ExplanationKeeper() = default;  // keeps what is owed first
    // Runs without a rank any more. Any thread; what is known to wait or to be kept is passed over.
    virtual void offer(const std::vector<RunId>& runs) = 0;
};

}  // namespace stoker
