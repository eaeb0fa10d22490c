#include "observe/pulse.h"

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

namespace stoker {
namespace {

using PulseClock = std::chrono::steady_clock;

// "123456 789 12": time on a processor in nanoseconds, in the queue, turns.
std::optional<double> processor_s(const std::string& process) {
    std::ifstream file(process + "/schedstat");
    double nanoseconds = 0;
    if (!(file >> nanoseconds)) return std::nullopt;
    return nanoseconds / 1e9;
}

double write_calls(const std::string& process) {
    std::ifstream file(process + "/io");
    std::string name;
    for (double value = 0; file >> name >> value;)
        if (name == "syscw:") return value;
    return 0;
}

std::optional<std::pair<double, double>> look_at(const std::string& process) {
    const auto used = processor_s(process);
    if (!used) return std::nullopt;
    return std::pair(*used, write_calls(process));
}

}  // namespace

struct Pulse::Shared {
    PulseOptions options;
    std::string process;
    mutable std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    bool stop = false, over = false;
    std::vector<double> processor, written;  // of each look, what came since the one before

    void run() {
        const auto every =
            std::chrono::duration_cast<PulseClock::duration>(std::chrono::duration<double>(options.every_s));
        std::optional<std::pair<double, double>> before;
        auto next = PulseClock::now();
        std::unique_lock lock(mutex);
        for (int look = 0; look < options.looks && !stop; ++look) {
            lock.unlock();
            const auto now = options.look ? options.look() : look_at(process);
            lock.lock();
            if (!now) break;
            if (before) {
                processor.push_back(now->first - before->first);
                written.push_back(now->second - before->second);
            }
            before = now;
            changed.wait_until(lock, next += every, [&] { return stop; });
        }
        over = true;
    }
};

Pulse::Pulse(pid_t pid, PulseOptions options) : shared_(std::make_shared<Shared>()) {
    shared_->process = options.proc + "/" + std::to_string(pid);
    shared_->options = std::move(options);
    if (!thread_.post([shared = shared_] { shared->run(); })) shared_->over = true;
}

Pulse::~Pulse() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->stop = true;
        shared_->changed.notify_all();
    }
    thread_.stop(after(1));
}

bool Pulse::over() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->over;
}

std::optional<Rhythm> Pulse::rhythm() const {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->over) return std::nullopt;
    std::optional<Rhythm> best;
    for (const auto& [values, measure] :
         {std::pair{&shared_->processor, "processor time"}, std::pair{&shared_->written, "writes"}}) {
        auto found = rhythm_of(*values);
        if (!found || (best && best->strength >= found->strength)) continue;
        best = found;
        best->measure = measure;
    }
    if (best) best->period_s *= shared_->options.every_s;
    return best;
}

}  // namespace stoker
