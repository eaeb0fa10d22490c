// The host of a rank looks at it once a second, on a thread of its own: a file system that hangs holds up the look, and
// not the host.
#pragma once

#include <memory>
#include <string>

#include "base/measure.h"
#include "deploy/driver.h"
#include "io/worker.h"

namespace stoker::slurm {

class RankLook {
public:
    // step: the process above the hosts of all ranks on this node; tells_machine: of these the one that tells of the
    // node.
    // Made before the program of the rank is started; `rank` is without its pid.
    RankLook(const GangSpec& gang, LiveRank rank, pid_t step, bool tells_machine);
    void started(pid_t pid);  // before the first look
    ~RankLook();              // leaves a look that hangs behind

    // Begins one, unless one is under way. Of a rank that has ended it sees what that wrote last.
    void begin();
    bool under_way() const;
    // What was seen since it was taken, lines of measure_file.h, at most `most` bytes; the oldest are dropped.
    std::string take();

private:
    struct Shared;
    const std::shared_ptr<Shared> shared_;
    int begun_ = 0;
    WorkerPool thread_{{.name = "stoker-look", .most_waiting = 1}};
};

}  // namespace stoker::slurm
