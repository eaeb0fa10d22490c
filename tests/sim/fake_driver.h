// A machine room on a virtual clock, behind the driver's contract. It outlives the server, as processes and folders do:
// killing the server leaves it as it is. It checks on its own what must never happen, whatever the server believes.
//
// What a run does is written in its environment: SIM_SECONDS of work, SIM_FAILS times leaving with SIM_CODE before it
// works. So the end of each run is known beforehand, whatever faults come in between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "deploy/driver.h"
#include "run/decide/next_step.h"

namespace stoker::sim {

struct Faults {
    double answer_lost = 0;                              // a call was carried out, and its answer is unknown
    double call_lost = 0;                                // it was not carried out, and the answer is unknown
    double launch_refused = 0;                           // a definite no
    double listing_cut = 0;                              // incomplete, without a part of what is there
    double fact_repeated = 0;                            // observe() starts a few facts early
    double folder_slow = 0;                              // a checkpoint folder does not answer, or late
    double device_fault = 0;                             // per launch: a rank ends by it
    double node_lost_per_hour = 0, notice_per_hour = 0;  // of each node
    double node_away_s = 300;
    // Of an engine that queues and chooses the nodes; 0: it starts what it is given at once, where it is told to.
    double queue_mean_s = 0;
    double part_starts = 0;      // per start: some of the gang, and never the rest
    double forgets_waiting = 0;  // per launch: accepted, and lost before it starts
    double end_forgotten = 0;    // per end: it is gone, and nobody ever tells how
    static Faults none() { return {}; }
    static Faults common();
    static Faults queueing();
};

class FakeDriver : public Driver {
public:
    FakeDriver(std::uint64_t seed, const Faults& faults, std::vector<NodeInfo> nodes, std::int64_t now_us);

    // Everything that happens by itself up to then.
    virtual void advance(std::int64_t to_us);
    virtual std::int64_t next_event_us() const;  // 0: nothing will
    std::int64_t now_us() const { return now_us_; }

    Capabilities capabilities() const override;
    Result<std::vector<NodeInfo>> discover(Deadline) override;
    HealthReport check(const std::string& node, HealthLevel level, Deadline) override;
    Outcome launch(const OperationId& operation, const GangSpec& gang, Deadline) override;
    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal, Deadline) override;
    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline) override;
    Outcome release(const OperationId& launched, Deadline) override;
    Result<OursListing> list_ours(const std::string& site, Deadline) override;
    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline) override;

    // Of two rooms (two_rooms.h): what a run has done is known in both.
    void share_programs(const FakeDriver& other) { programs_ = other.programs_; }
    virtual void new_server() {}
    bool has_running(RunId run) const;
    std::vector<Fact> facts_after(std::uint64_t cursor) const {
        return {facts_.begin() + static_cast<std::ptrdiff_t>(cursor), facts_.end()};
    }
    void make_slow(const std::string& node, bool slow) { slow ? (void)slow_.insert(node) : (void)slow_.erase(node); }
    void lose_node(const std::string& node, const std::string& why = "power");
    void give_notice(const std::string& node, double seconds);
    void take_notice_back(const std::string& node);
    void plant(const OperationId& stranger);  // with our mark, and nobody knows it
    virtual CheckpointView look_at_checkpoints(RunId run) const;
    virtual std::uint64_t last_cursor() const { return facts_.size(); }

    virtual std::size_t alive() const;                                // gangs with a process
    virtual std::size_t remembered() const { return gangs_.size(); }  // not released
    virtual std::size_t launches() const { return launched_; }
    bool queues() const { return faults_.queue_mean_s > 0; }
    // How long ranks of the launch ran, and since when; none: none ever did.
    struct Ran {
        std::int64_t from_us = 0, to_us = 0;  // 0: still
    };
    virtual const std::map<OperationId, Ran>& ran() const { return ran_; }
    struct Counts {
        std::size_t waited = 0, parts = 0, lost = 0, forgotten = 0;
    };
    const Counts& counts() const { return counts_; }
    virtual std::vector<std::string> violations() const { return violations_; }

private:
    struct FakeRank {
        bool alive = true, waits = false;
        std::int64_t end_us = 0;  // 0: only when it is killed
        int exit_code = 0;
        Cause cause = Cause::ok;
    };
    struct FakeGang {
        GangSpec spec;
        std::uint64_t epoch = 0;
        std::int64_t started_us = 0;
        std::vector<FakeRank> ranks;
        bool ended = false, told = true;
        std::int64_t start_us = 0, lost_us = 0;  // while it waits in the queue; 0: it does not
    };
    struct FakeNode {
        NodeInfo info;
        bool up = true;
        int boots = 1;
        std::int64_t lost_us = 0, back_us = 0;
    };
    struct Program {
        std::int64_t done_us = 0, saved_us = 0;  // work at all, and at the last checkpoint
        int failures = 0;
        bool done = false;
    };

    void start_in_queue(const OperationId& id, FakeGang& gang);
    bool place(FakeGang& gang, std::size_t ranks) const;
    void begin(const OperationId& id, FakeGang& gang);
    void note_end(const OperationId& id);
    bool lucky(double probability) { return random_.uniform() < probability; }
    void tell(Fact fact);
    void plan(FakeGang& gang);
    void end_rank(const OperationId& id, FakeGang& gang, std::size_t rank, int code, Cause cause, bool told);
    void close_if_ended(const OperationId& id, FakeGang& gang, bool told);
    void save_progress(const FakeGang& gang, bool now);
    void check_capacity();
    void draw_node_events();
    void reboot(const std::string& name);
    RunId run_of(const FakeGang& gang) const { return gang.spec.attempt.run; }

    SplitMix random_, measuring_{7};
    std::set<std::string> slow_;  // their checks fail
    Faults faults_;
    std::int64_t now_us_, next_loss_us_ = 0, next_notice_us_ = 0;
    std::uint64_t highest_epoch_ = 0;
    std::map<std::string, FakeNode> nodes_;
    std::map<OperationId, FakeGang> gangs_;
    std::set<OperationId> released_;
    std::set<std::pair<std::int64_t, OperationId>> ends_;  // when something of the gang ends by itself
    std::shared_ptr<std::map<RunId, Program>> programs_ = std::make_shared<std::map<RunId, Program>>();
    std::vector<Fact> facts_;
    std::vector<std::string> violations_;
    std::size_t launched_ = 0;
    std::map<OperationId, Ran> ran_;
    Counts counts_;
};

}  // namespace stoker::sim
