#include "deploy/slurm/rank_look.h"

#include <atomic>
#include <mutex>

#include "deploy/local/measure_file.h"
#include "io/process.h"
#include "observe/gang_meter.h"
#include "observe/gpu/rank_gpus.h"

namespace stoker::slurm {
namespace {

constexpr std::size_t kMostKept = 1 << 20;

}  // namespace

struct RankLook::Shared {
    LiveRank rank;
    GangMeter meter;  // of the look that is under way
    std::atomic<int> done = 0;
    std::mutex mutex;
    std::string seen;  // guarded by mutex

    Shared(LiveRank its_rank, GangMeter its_meter) : rank(std::move(its_rank)), meter(std::move(its_meter)) {}

    void look() {
        const ProcessTable table = ProcessTable::scan({});
        std::string text;
        for (const MeasureLine& line :
             meter.look(table, monotonic_clock_us(), {rank}, static_cast<double>(wall_clock_us()) / 1e6))
            text += text_of_line(line);
        const std::lock_guard guard(mutex);
        seen += text;
        if (seen.size() > kMostKept) {
            const std::size_t end = seen.find('\n', seen.size() - kMostKept);
            seen.erase(0, end == std::string::npos ? end : end + 1);
        }
    }
};

RankLook::RankLook(const GangSpec& gang, LiveRank rank, pid_t step, bool tells_machine)
    : shared_(std::make_shared<Shared>(
          std::move(rank), GangMeter(gang.measure, gang.log_folder,
                                     {.ours = step, .tells_machine = tells_machine, .gpus = gpus_of_this_machine()}))) {
    shared_->meter.begin(shared_->rank.rank);
}

void RankLook::started(pid_t pid) {
    shared_->rank.pid = pid;
}

RankLook::~RankLook() {
    thread_.stop(after(0));
}

void RankLook::begin() {
    if (under_way()) return;
    const bool taken = thread_.post([shared = shared_] {
        shared->look();
        ++shared->done;
    });
    if (taken) ++begun_;
}

bool RankLook::under_way() const {
    return shared_->done < begun_;
}

std::string RankLook::take() {
    const std::lock_guard guard(shared_->mutex);
    return std::exchange(shared_->seen, {});
}

}  // namespace stoker::slurm
