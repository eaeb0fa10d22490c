#include "explain/explanation_keeper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "explain/kept_explanation.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

using KeeperClock = std::chrono::steady_clock;

KeeperClock::duration keeper_time(double seconds) {
    return std::chrono::duration_cast<KeeperClock::duration>(std::chrono::duration<double>(seconds));
}

class ThreadedKeeper final : public ExplanationKeeper {
public:
    explicit ThreadedKeeper(KeeperOptions options)
        : options_(std::move(options)), thread_(masked_thread("stoker-explain", [this] { work(); })) {}

    ~ThreadedKeeper() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    void offer(const std::vector<RunId>& runs) override {
        if (runs.empty()) return;
        const auto now = KeeperClock::now();
        const std::lock_guard lock(mutex_);
        for (const RunId run : runs)
            if (waiting_.size() < options_.most)
                waiting_.try_emplace(run, Wait{.next = now + keeper_time(options_.settle_s), .since = now});
        changed_.notify_all();
    }

private:
    struct Wait {
        KeeperClock::time_point next, since;
    };
    enum class Outcome : std::uint8_t { done, later };

    void work() {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
            if (waiting_.empty()) {
                changed_.wait(lock);
                continue;
            }
            const auto due = std::min_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
                return a.second.next < b.second.next;
            });
            if (due->second.next > KeeperClock::now()) {
                changed_.wait_until(lock, due->second.next);
                continue;
            }
            turn(lock, due->first);
        }
        const auto until = KeeperClock::now() + keeper_time(options_.goodbye_s);
        while (!waiting_.empty() && KeeperClock::now() < until) {
            const RunId run = waiting_.begin()->first;
            turn(lock, run);
            waiting_.erase(run);
        }
    }

    void turn(std::unique_lock<std::mutex>& lock, RunId run) {
        lock.unlock();
        const Outcome outcome = keep(run);
        lock.lock();
        const auto found = waiting_.find(run);
        if (found == waiting_.end()) return;
        const auto now = KeeperClock::now();
        if (outcome == Outcome::done || now - found->second.since > keeper_time(options_.most_s))
            waiting_.erase(found);
        else
            found->second.next = now + keeper_time(std::max(0.2, options_.settle_s));
    }

    Outcome keep(RunId run) {
        const auto looked = options_.look(run);
        if (!looked) return looked.error().kind() == ErrorKind::not_found ? Outcome::done : Outcome::later;
        if (!*looked) return Outcome::later;
        const RunAsItStands& stands = **looked;
        const std::int64_t now_us = wall_clock_us();
        const ExplainedPart part = explained_part(stands.run, now_us);
        // A run that was resumed has ended again.
        if (const auto kept = options_.series->kept_text(run.text()))
            if (const auto before = read_kept(*kept); before && before->attempt == part.attempt) return Outcome::done;
        const auto series = series_of_part(*options_.series, stands.run, part);
        if (!series) return Outcome::done;
        if (series->empty()) return Outcome::done;  // nothing was measured: what there is to say can be said any time
        ExplainedRun judged = explain_run(stands, part, *series);
        judged.kept_us = now_us;
        (void)options_.series->keep_text(run.text(), kept_form(std::move(judged)));
        return Outcome::done;
    }

    const KeeperOptions options_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool stopping_ = false;
    std::map<RunId, Wait> waiting_;
    std::thread thread_;
};

}  // namespace

std::unique_ptr<ExplanationKeeper> ExplanationKeeper::start(KeeperOptions options) {
    return std::make_unique<ThreadedKeeper>(std::move(options));
}

}  // namespace stoker
