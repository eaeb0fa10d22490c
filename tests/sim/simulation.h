// The real core and journal against a fake machine room, on a virtual clock. The server can be killed at any write of
// the journal; what it had acknowledged, what it had sent and what nobody had answered yet is then as it would be.
//
//     Simulation sim({.seed = 7, .faults = Faults::common()});
//     sim.submit_at(0, spec);
//     sim.run_until_done(hours(48));
//     EXPECT_EQ(sim.problems(), nothing) << sim.replay_command();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fake_driver.h"
#include "io/journal.h"
#include "run/core/core.h"
#include "two_rooms.h"

namespace stoker::sim {

inline constexpr std::int64_t kSecondUs = 1'000'000;
inline constexpr std::int64_t kStartUs = 1'700'000'000 * kSecondUs;

struct SimulationOptions {
    std::uint64_t seed = 1;
    Faults faults;
    std::vector<NodeInfo> nodes;
    std::set<std::uint64_t> kill_at;  // numbers of commits that write, counted over all lives of the server
    double downtime_s = 20;
    std::uint64_t snapshot_every = 10'000;
    std::size_t snapshot_piece_bytes = 256 << 10;
    std::size_t max_ended = 100'000;
    bool check_each_turn = true;  // dearer than the run itself when thousands of runs wait
    std::optional<HealthLevel> health_gate{};
    double discover_every_s = 30;
    std::optional<BesideOptions> beside{};  // another engine beside the first
    std::int64_t batch_us = 0;              // the server gathers commands this long before it takes them
};

// `count` nodes of 64 cores, 512 GB and `gpus` GPUs.
std::vector<NodeInfo> make_nodes(int count, int gpus);

class Simulation {
public:
    explicit Simulation(SimulationOptions options);
    ~Simulation();

    // Times are seconds after the start.
    // Tried again with its key until it is acknowledged.
    void submit_at(double at_s, RunSpec spec, Actor actor = Actor::token("admin"));
    void at(double at_s, std::function<void(Simulation&)> action);

    // Until nothing is left to do, or the time is up. True: everything ended.
    bool run_until_done(double limit_s);
    // Goes on for so long; true: still everything has ended.
    bool settle_for(double seconds);

    const State& state() const { return core_->state(); }
    const SchedulerOptions& scheduler() const { return core_->scheduler(); }
    FakeDriver& driver() { return driver_; }
    std::int64_t now_us() const { return now_us_; }
    std::uint64_t commits() const { return commits_; }
    std::uint64_t kills() const { return kills_; }
    std::uint64_t records() const { return records_; }
    std::uint64_t checks() const { return checks_; }          // carried out
    std::uint64_t wide_gangs() const { return wide_gangs_; }  // attempts over several nodes
    // Of the n-th submission; none until it is acknowledged.
    RunId run(std::size_t submission) const { return submissions_.at(submission).run; }
    Result<Ack> command(Command command);  // at once, in a turn of its own
    void kill();

    // Name of each run to its final state and cause.
    std::map<std::string, std::string> outcomes() const;
    // What must never be: broken invariants, lost acknowledgements, leaks.
    std::vector<std::string> problems();
    std::string replay_command(const std::string& test) const;
    std::string unfinished() const;  // what has not ended, for messages
    const std::string& folder() const { return folder_; }

private:
    bool all_ended() const;
    bool next_moment(std::int64_t limit_us);
    struct Submission {
        RunSpec spec;
        std::string key;
        std::int64_t at_us = 0;
        RunId run;
        Actor actor;
    };

    void start_server();
    std::vector<Result<Ack>> take_turn();  // none: the server died in it
    void after(double seconds, std::function<void()> action);
    void in_this_life(double seconds, std::function<void()> action);  // dies with the server
    void send(const Effect& effect);
    void look(const Look& look);
    void check(const CheckWanted& check);
    void check_placements(const Turn& turn);
    void list(std::uint64_t seq);
    void discover();
    void watch_facts();
    void deliver_submission(std::size_t at);
    void enqueue(Command command);
    void check_turn(const Turn& turn);
    void check_replay(const char* when);
    void broken(std::string what);
    double latency() { return 0.01 + random_.uniform() * 0.5; }

    SimulationOptions options_;
    SplitMix random_;
    const std::unique_ptr<FakeDriver> room_;
    FakeDriver& driver_;
    std::string folder_;
    std::unique_ptr<Journal> journal_;
    std::unique_ptr<Core> core_;
    std::int64_t now_us_ = kStartUs;
    std::multimap<std::int64_t, std::function<void()>> events_;
    std::vector<Submission> submissions_;
    std::vector<Command> waiting_;  // for the next turn
    bool turn_planned_ = false, observing_ = false, dies_next_ = false;
    std::int64_t wake_us_ = 0;
    std::uint64_t life_ = 0, commits_ = 0, kills_ = 0, records_ = 0;
    std::uint64_t observed_ = 0, moments_here_ = 0;
    std::set<RunId> acknowledged_;
    std::vector<std::size_t> in_turn_;  // submissions whose ack this turn brings
    std::vector<std::string> problems_;
    std::set<std::string> being_checked_;
    std::uint64_t checks_ = 0, wide_gangs_ = 0;
};

}  // namespace stoker::sim
