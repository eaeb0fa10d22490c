// Two machine rooms as one, as deploy/engines/several.h has two engines, but on the virtual clock: the first starts
// what it is given at once, the second queues and chooses the nodes. Each is away for a while now and then: what is
// asked of it then is carried out or not, and nobody hears of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fake_driver.h"

namespace stoker::sim {

struct BesideOptions {
    Faults faults = Faults::queueing();
    std::vector<NodeInfo> nodes;
    double away_every_s = 600, away_s = 200;  // of each, on average; 0: never
    double doubled = 0.1;                     // per thing listed: the other one lists it, too
};
inline constexpr const char *kNear = "near", *kFar = "far";

class TwoRooms final : public FakeDriver {
public:
    TwoRooms(std::uint64_t seed, const Faults& faults, std::vector<NodeInfo> nodes, const BesideOptions& beside,
             std::int64_t now_us);

    void advance(std::int64_t to_us) override;
    std::int64_t next_event_us() const override;
    void new_server() override { owners_.clear(); }
    void belongs(const OperationId& launched, const std::string& engine) override;
    std::vector<EngineState> engines() const override;

    Result<std::vector<NodeInfo>> discover(Deadline) override;
    Outcome launch(const OperationId& operation, const GangSpec& gang, Deadline) override;
    Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal, Deadline) override;
    Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline) override;
    Outcome release(const OperationId& launched, Deadline) override;
    Result<OursListing> list_ours(const std::string& site, Deadline) override;
    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline) override;
    CheckpointView look_at_checkpoints(RunId run) const override;
    std::uint64_t last_cursor() const override { return told_.size(); }

    std::size_t alive() const override { return FakeDriver::alive() + far_.alive(); }
    std::size_t remembered() const override { return FakeDriver::remembered() + far_.remembered(); }
    std::size_t launches() const override { return FakeDriver::launches() + far_.launches(); }
    std::vector<std::string> violations() const override;
    const std::map<OperationId, Ran>& ran() const override;

    std::size_t launched_near() const { return FakeDriver::launches(); }
    std::size_t launched_far() const { return far_.launches(); }
    std::size_t calls_unheard() const { return unheard_; }
    std::size_t doubled() const { return doubled_; }

private:
    struct Absence {
        bool away = false;
        std::int64_t changes_us = 0;  // 0: never
    };
    FakeDriver& room(int at) { return at == 0 ? *this : far_; }
    bool is_away(int at) const { return absence_[at].away; }
    void collect();
    template <class Call>
    Outcome ask(int at, const Call& call);
    template <class Call>
    Outcome wherever(const OperationId& launched, const Call& call);

    FakeDriver far_;
    BesideOptions options_;
    SplitMix chance_;
    Absence absence_[2];
    std::map<OperationId, int> owners_;
    std::vector<Fact> told_;
    std::uint64_t from_[2] = {0, 0};
    std::vector<std::string> broken_;
    std::size_t unheard_ = 0, doubled_ = 0;
    mutable std::map<OperationId, Ran> ran_of_both_;
};

}  // namespace stoker::sim
