// Facts of several engines as those of one. Each engine counts by a cursor of its own; here they get numbers of one
// row, in the order in which they come. What was taken is dropped: whoever asks for it again gets everything again from
// the engines, which keep it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "deploy/driver.h"

namespace stoker {

class MergedFacts {
public:
    explicit MergedFacts(std::size_t sources);

    // For the thread that asks one engine: from where. Waits while too much waits to be taken; nothing: it is over.
    struct Turn {
        std::uint64_t cursor = 0, generation = 0;
    };
    std::optional<Turn> next_turn(std::size_t source);
    void add(std::size_t source, const Turn& turn, std::vector<Fact> facts);
    bool pause(std::chrono::milliseconds time);  // false: it is over

    // As Driver::observe. `restart` is called when the engines have to be asked from the beginning.
    std::vector<Fact> after(std::uint64_t cursor, Deadline deadline, const std::function<void()>& restart);
    void interrupt();
    void stop();

private:
    void number_anew(std::uint64_t above);

    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Fact> facts_;
    std::vector<std::uint64_t> from_;  // of each source
    std::uint64_t last_;               // number given to a fact
    std::uint64_t taken_ = 0;          // up to here facts were dropped
    std::uint64_t told_ = 0;           // the highest that was returned
    std::uint64_t generation_ = 0;
    bool interrupted_ = false, stopping_ = false;
};

}  // namespace stoker
