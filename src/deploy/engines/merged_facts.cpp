#include "deploy/engines/merged_facts.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr std::size_t kMostKept = 4096, kMostAtOnce = 1000;

// Above what an earlier server was given, as long as the clock goes on.
std::uint64_t first_number() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

MergedFacts::MergedFacts(std::size_t sources) : from_(sources, 0), last_(first_number()) {}

std::optional<MergedFacts::Turn> MergedFacts::next_turn(std::size_t source) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || facts_.size() < kMostKept; });
    if (stopping_) return std::nullopt;
    return Turn{from_[source], generation_};
}

void MergedFacts::add(std::size_t source, const Turn& turn, std::vector<Fact> facts) {
    const std::lock_guard guard(mutex_);
    if (turn.generation != generation_) return;  // they come again, from the beginning
    for (Fact& fact : facts) {
        from_[source] = std::max(from_[source], fact.cursor);
        fact.cursor = ++last_;
        facts_.push_back(std::move(fact));
    }
    if (!facts.empty()) changed_.notify_all();
}

bool MergedFacts::pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return stopping_; });
}

// A cursor of another driver says nothing about what waits here.
void MergedFacts::number_anew(std::uint64_t above) {
    last_ = std::max(last_, above);
    for (Fact& fact : facts_) fact.cursor = ++last_;
    taken_ = told_ = above;
}

std::vector<Fact> MergedFacts::after(std::uint64_t cursor, Deadline deadline, const std::function<void()>& restart) {
    std::unique_lock lock(mutex_);
    if (cursor > told_) {
        number_anew(cursor);
    } else if (cursor < taken_) {
        facts_.clear();
        std::fill(from_.begin(), from_.end(), 0);
        ++generation_;
        taken_ = cursor;
        changed_.notify_all();
        lock.unlock();
        restart();
        lock.lock();
    } else {
        while (!facts_.empty() && facts_.front().cursor <= cursor) facts_.pop_front();
        taken_ = cursor;
        changed_.notify_all();
    }
    changed_.wait_until(lock, deadline, [&] { return stopping_ || interrupted_ || !facts_.empty(); });
    if (facts_.empty()) interrupted_ = false;
    std::vector<Fact> told;
    for (const Fact& fact : facts_) {
        if (told.size() == kMostAtOnce) break;
        told.push_back(fact);
    }
    if (!told.empty()) told_ = std::max(told_, told.back().cursor);
    return told;
}

void MergedFacts::interrupt() {
    const std::lock_guard guard(mutex_);
    interrupted_ = true;
    changed_.notify_all();
}

void MergedFacts::stop() {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    changed_.notify_all();
}

}  // namespace stoker
