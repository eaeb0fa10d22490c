// The measures of gangs whose ranks live on this machine (Questions::read_measures): looked at when asked, and kept
// until whoever asked has them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "deploy/questions.h"
#include "observe/gang_meter.h"

namespace stoker {

class RankMeasures {
public:
    Result<Measures> read(const MeasuredGang& gang, const MeasureQuery& query);

private:
    struct Gang {
        explicit Gang(GangMeter its_meter) : meter(std::move(its_meter)) {}
        GangMeter meter;
        std::deque<MeasureLine> lines;
        std::uint64_t first = 0;  // number of the first of them
        std::chrono::steady_clock::time_point asked;
    };
    void look_at_all(std::chrono::steady_clock::time_point now);

    std::mutex mutex_;  // guards what follows
    std::map<OperationId, Gang> gangs_;
    std::unique_ptr<ProcessTable> table_;  // one look at the machine for all gangs
    std::chrono::steady_clock::time_point table_at_;
};

}  // namespace stoker
