// A queue of thousands may not cost a server its processor, nor people the word of why theirs waits.
#include "deploy/slurm/gang_watch.h"

#include <gmock/gmock.h>

#include "deploy/slurm/controller.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

OperationId operation(std::uint64_t number) {
    return {.site = "abcde", .seq = number};
}

class GangWatchTest : public ::testing::Test {
protected:
    const ScratchFolder folder_ = ScratchFolder::make("gang-watch").value();
    GangWatch gangs_{folder_.path(), 1, [](const OperationId&) { return std::string(); }};

    std::vector<Fact> news() {
        auto facts = gangs_.facts_after(cursor_, 100, Clock::now());
        if (!facts.empty()) cursor_ = facts.back().cursor;
        return facts;
    }
    void look(const Job& job) {
        const Queue queue{.asked_at = Clock::now(), .jobs = {job}};
        gangs_.look_at(job.operation, &queue);
    }

private:
    std::uint64_t cursor_ = 0;
};

// Of many each is looked at in its turn: none for ever before the others.
TEST_F(GangWatchTest, WhatIsLiveIsLookedAtInTurns) {
    for (std::uint64_t i = 1; i <= 5; ++i) gangs_.add(operation(i));
    EXPECT_THAT(gangs_.next_live(2), ElementsAre(operation(1), operation(2)));
    EXPECT_THAT(gangs_.next_live(2), ElementsAre(operation(3), operation(4)));
    gangs_.forget(operation(1));
    EXPECT_THAT(gangs_.next_live(2), ElementsAre(operation(5), operation(2)));
    EXPECT_EQ(gangs_.next_live(100).size(), 4U) << "each once";
}

// A wait is told once for each reason; what changes is told, also when it is looked at less closely meanwhile.
TEST_F(GangWatchTest, AWaitIsToldWhenItsReasonChanges) {
    gangs_.add(operation(1));
    Job job{.number = "7", .operation = operation(1), .state = "PENDING", .reason = "Priority"};
    look(job);
    auto told = news();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_THAT(told[0].detail, HasSubstr("Priority"));
    for (int i = 0; i < 3; ++i) look(job);
    EXPECT_TRUE(news().empty());
    job.reason = "Resources";
    look(job);
    told = news();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_THAT(told[0].detail, HasSubstr("Resources"));
    look(job);
    gangs_.take_room({.nodes = 2, .idle_nodes = 0, .cores = 32, .free_cores = 5});
    look(job);
    told = news();
    ASSERT_EQ(told.size(), 1U) << "the first numbers behind it";
    EXPECT_THAT(told[0].detail, HasSubstr("5 of 32 cores"));
    job.starts_s = wall_clock_us() / 1'000'000 + 3600;
    look(job);
    told = news();
    ASSERT_EQ(told.size(), 1U) << "the first guess of the scheduler";
    EXPECT_GT(told[0].seconds, 3500);
}

// Whoever has few jobs hears of them each second; whoever has ten thousand does not pay for it with a processor.
TEST(SlurmQueue, ALargeQueueIsLookedAtMoreSeldom) {
    const auto rest_after_jobs = [](std::size_t count) { return rest_after_s({.looked_through = count}); };
    EXPECT_LT(rest_after_jobs(50), 0.1);
    EXPECT_GE(rest_after_jobs(10'000), 5);
    EXPECT_LT(rest_after_jobs(10'000), 30) << "why it waits is not to be old";
}

// Few jobs of ours beside very many of others: root's squeue reads them all, and no count of ours says so.
TEST(SlurmQueue, ALookThatCostsMuchIsTakenMoreSeldom) {
    const auto rest_after_work = [](double processor_s) {
        return rest_after_s({.looked_through = 1, .processor_s = processor_s});
    };
    EXPECT_LT(rest_after_work(0.005), 1) << "a common look is taken each second";
    EXPECT_GE(rest_after_work(0.04), 2) << "or looks take more than a fiftieth of a processor";
    EXPECT_LT(rest_after_work(0.04), 4) << "why it waits is not to be old";
}

// What the pace of looks hangs on is measured, of the thread and of the commands together.
TEST(SlurmQueue, ALookSaysWhatItUsed) {
    class Busy final : public Transport {
    public:
        ClusterFacts facts(Deadline) override { return {}; }
        Outcome submit(const JobRequest&, const std::string&, Deadline) override { return {}; }
        Result<Listing> jobs(Deadline) override { return Listing{.processor_s = 0.5}; }
        Status cancel(const OperationId&, Deadline) override { return done(); }
        Result<std::vector<SlurmNode>> nodes(const std::string&, Deadline) override { return std::vector<SlurmNode>(); }
        std::map<std::string, std::string> places(Deadline) override { return {}; }
        Result<std::vector<std::string>> default_partitions(Deadline) override { return std::vector<std::string>(); }
        Result<std::vector<std::int64_t>> waiting(const std::vector<std::string>&, Deadline) override {
            return std::vector<std::int64_t>();
        }
        std::string accounted_state(const OperationId&, Deadline) override { return {}; }
    };
    Controller controller(std::make_unique<Busy>());
    const auto now = std::chrono::steady_clock::now();
    const auto look = controller.queue(now, now + std::chrono::minutes(1));
    ASSERT_TRUE(look.ok());
    EXPECT_GT((*look)->processor_s, 0.5);
}

TEST(SlurmQueue, TheJobThatLivesComesFirst) {
    Queue queue;
    for (const std::uint64_t i : {1, 2, 2, 3})
        queue.jobs.push_back(
            {.number = std::to_string(queue.jobs.size()), .operation = operation(i), .phase = JobPhase::over});
    queue.jobs[2].phase = JobPhase::running;
    const auto found = queue.of(operation(2));
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0]->number, "2");
    EXPECT_TRUE(queue.of(operation(4)).empty());
}

}  // namespace
}  // namespace stoker::slurm
