// A core with its journal, for tests: answers and facts come as a driver would give them.
#pragma once

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>

#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {

using testing::HasSubstr;

// A core on a journal in a temporary folder, with answers and facts as a driver would give them.
class CoreTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "core-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        open();
    }
    void TearDown() override {
        core_.reset();
        journal_.reset();
        std::filesystem::remove_all(folder_);
    }
    void open(std::uint64_t snapshot_every = 10'000) {
        open(CoreOptions{.site = "tests", .log_root = "/logs", .snapshot_every = snapshot_every});
    }
    void open(CoreOptions options) {
        core_.reset();
        journal_.reset();
        auto journal = Journal::open(folder_, {});
        ASSERT_TRUE(journal) << journal.error().text();
        journal_ = std::move(*journal);
        auto core = Core::open(*journal_, std::move(options), now_us_);
        ASSERT_TRUE(core) << core.error().text();
        core_ = std::move(*core);
    }
    // One command in a turn of its own; answers what the turn brought.
    Result<Ack> tell(decltype(Command::what) what, std::optional<std::uint64_t> if_version = {}) {
        const Command command{.what = std::move(what), .if_version = if_version};
        now_us_ += 10'000'000;
        auto turn = core_->turn({&command, 1}, now_us_);
        if (!turn) return turn.error();
        turn_ = std::move(*turn);
        return turn_.acks[0];
    }
    void tick(std::int64_t seconds) {
        now_us_ += seconds * kSecondUs;
        auto turn = core_->turn({}, now_us_);
        ASSERT_TRUE(turn) << turn.error().text();
        turn_ = std::move(*turn);
    }
    void machine(int gpus = 4) {
        NodeInfo node{.name = "n1", .cpu_milli = 16'000, .memory_bytes = std::int64_t{64} << 30, .boot_id = "b"};
        for (int i = 0; i < gpus; ++i) node.devices.push_back({.id = "GPU-" + std::to_string(i), .model = "H100"});
        ASSERT_TRUE(tell(SawNodes{{node}}));
        ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    }
    static RunSpec job(int gpus = 1) {
        RunSpec spec;
        spec.name = "job";
        spec.command = {"true"};
        spec.per_rank.gpus = gpus;
        return spec;
    }
    const Effect* effect(Verb verb) const {
        for (const Effect& each : turn_.effects)
            if (each.verb == verb) return &each;
        return nullptr;
    }
    Result<Ack> answer(OperationId id, Certainty certainty, Cause cause = Cause::none) {
        return tell(Answered{id, {.certainty = certainty, .cause = cause}});
    }
    Fact fact(FactKind kind, OperationId launch, Cause cause = Cause::none) {
        return {.cursor = ++cursor_,
                .kind = kind,
                .operation = launch,
                .epoch = core_->state().epoch,
                .at_us = now_us_,
                .rank = kind == FactKind::gang_ended ? -1 : 0,
                .cause = cause};
    }
    RunState state_of(RunId run) const { return core_->state().find(run)->state; }

    std::string folder_;
    std::unique_ptr<Journal> journal_;
    std::unique_ptr<Core> core_;
    std::int64_t now_us_ = 1'700'000'000 * kSecondUs;
    std::uint64_t cursor_ = 0;
    Turn turn_;
};

}  // namespace stoker
