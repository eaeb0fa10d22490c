#include "deploy/engines/several.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "deploy/engine_node.h"
#include "deploy/engines/merged_facts.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Deadline in(double seconds) {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

// What an engine has; it outlives the driver, as engines do.
struct Room {
    std::vector<NodeInfo> nodes;
    bool binds = false;
    std::atomic<bool> away = false;  // every call ends at its deadline, without an answer
    bool reaches_registry = false;   // else it takes images by their names
    std::mutex mutex;                // guards what follows
    std::set<OperationId> launched;
    std::vector<Fact> facts;
    GangSpec last;
};

class RoomDriver final : public Driver {
public:
    explicit RoomDriver(std::shared_ptr<Room> room) : room_(std::move(room)) {}
    Capabilities capabilities() const override { return {.gang = true, .binds = room_->binds}; }
    Result<std::vector<NodeInfo>> discover(Deadline deadline) override {
        if (waits(deadline)) return Error(ErrorKind::timed_out, "no answer");
        return room_->nodes;
    }
    Outcome launch(const OperationId& operation, const GangSpec& gang, Deadline deadline) override {
        if (waits(deadline)) return {};
        const std::lock_guard guard(room_->mutex);
        room_->launched.insert(operation);
        room_->last = gang;
        room_->facts.push_back({.cursor = room_->facts.size() + 1,
                                .kind = FactKind::rank_started,
                                .operation = operation,
                                .rank = 0,
                                .node = room_->nodes.front().name});
        return {.certainty = Certainty::confirmed};
    }
    Outcome notify(const OperationId&, std::uint64_t, int, Deadline) override { return {}; }
    Result<std::string> pin(const std::string& image, const ImagePlace& place, Deadline deadline) const override {
        if (!room_->reaches_registry) return Driver::pin(image, place, deadline);
        return Error(ErrorKind::unavailable, "the registry of " + image + " cannot be reached");
    }
    Outcome cancel(const OperationId& launched, std::uint64_t, double, Deadline deadline) override {
        if (waits(deadline)) return {};
        const std::lock_guard guard(room_->mutex);
        room_->launched.erase(launched);
        return {.certainty = Certainty::confirmed};
    }
    Outcome release(const OperationId& launched, Deadline deadline) override {
        return cancel(launched, 1, 0, deadline);
    }
    Result<OursListing> list_ours(const std::string&, Deadline deadline) override {
        if (waits(deadline)) return Error(ErrorKind::timed_out, "no answer");
        const std::lock_guard guard(room_->mutex);
        OursListing listing;
        for (const OperationId& each : room_->launched) listing.items.push_back({.operation = each});
        return listing;
    }
    Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) override {
        std::vector<Fact> facts;
        while (facts.empty() && !interrupted_.exchange(false) && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            const std::lock_guard guard(room_->mutex);
            if (!room_->away)
                for (const Fact& each : room_->facts)
                    if (each.cursor > cursor) facts.push_back(each);
        }
        return facts;
    }
    void interrupt() override { interrupted_ = true; }

private:
    bool waits(Deadline deadline) const {
        if (!room_->away) return false;
        std::this_thread::sleep_until(deadline);
        return true;
    }
    std::shared_ptr<Room> room_;
    std::atomic<bool> interrupted_ = false;
};

class SeveralTest : public ::testing::Test {
protected:
    SeveralTest() {
        near_->nodes = {{.name = "n1"}};
        far_->nodes = {{.name = "n1"}, {.name = "n2"}};
        start();
    }
    void start() {
        driver_.reset();
        auto made = make_several({{"here", "local", make_of(near_)}, {"far", "slurm", make_of(far_)}});
        ASSERT_TRUE(made.ok()) << made.error().text();
        driver_ = std::move(*made);
    }
    static std::function<Result<std::unique_ptr<Driver>>()> make_of(const std::shared_ptr<Room>& room) {
        return [room]() -> Result<std::unique_ptr<Driver>> {
            return std::unique_ptr<Driver>(std::make_unique<RoomDriver>(room));
        };
    }
    static GangSpec gang(const std::string& node, const std::string& engine = "") {
        GangSpec gang;
        gang.engine = engine;
        gang.ranks.push_back({.node = node, .arguments = {"true"}});
        return gang;
    }

    const std::shared_ptr<Room> near_ = std::make_shared<Room>(), far_ = std::make_shared<Room>();
    const OperationId one_{"tests", 1}, two_{"tests", 2};
    std::unique_ptr<Driver> driver_;
};

// This machine does not reach the registry that a cluster pulls from: a run that goes there is not refused for it.
TEST_F(SeveralTest, AnImageIsLookedUpOnTheEngineThatTheRunNames) {
    near_->reaches_registry = true;
    const auto kind = [&](const std::string& engine) {
        return driver_->pin("private.example/x:1", {.folder = "/", .engine = engine}, in(5)).error().kind();
    };
    EXPECT_EQ(kind("far"), ErrorKind::unsupported) << "its nodes take the name as it is";
    EXPECT_EQ(kind("here"), ErrorKind::unavailable);
    EXPECT_EQ(kind(""), ErrorKind::unavailable) << "left open, it may come here";
}

// Two clusters that both have an n1: each is told by its own name, and gets its own work.
TEST_F(SeveralTest, NodesOfTwoEnginesNeverShareAName) {
    const auto nodes = driver_->discover(in(5));
    ASSERT_TRUE(nodes.ok());
    std::vector<std::string> names, engines;
    for (const NodeInfo& node : *nodes) names.push_back(node.name), engines.push_back(node.engine);
    EXPECT_THAT(names, ElementsAre("n1", "n1@far", "n2@far"));
    EXPECT_THAT(engines, ElementsAre("here", "far", "far"));
    EXPECT_EQ(driver_->launch(one_, gang("n1@far"), in(5)).certainty, Certainty::confirmed);
    EXPECT_EQ(far_->last.ranks[0].node, "n1");
    EXPECT_THAT(near_->launched, IsEmpty());
    const auto facts = driver_->observe(0, in(5));
    ASSERT_EQ(facts->size(), 1U);
    EXPECT_EQ(facts->front().node, "n1@far");
    GangSpec torn = gang("n1");
    torn.ranks.push_back(gang("n2@far").ranks[0]);
    EXPECT_EQ(driver_->launch(two_, torn, in(5)).certainty, Certainty::rejected);
    EXPECT_EQ(node_on_engine("n1@far", "far"), "n1");
    EXPECT_EQ(node_on_engine("n1", "far"), "n1");
    EXPECT_EQ(node_on_engine("far", "far"), "far");
    EXPECT_EQ(engine_of_node("n1", "here"), "here");
}

// A cluster that does not answer: what runs elsewhere is told, listed and cancelled as ever, and of what runs there
// nothing is claimed.
TEST_F(SeveralTest, OneThatDoesNotAnswerHoldsUpNobody) {
    ASSERT_EQ(driver_->launch(one_, gang("n1", "here"), in(5)).certainty, Certainty::confirmed);
    ASSERT_EQ(driver_->launch(two_, gang("n1@far", "far"), in(5)).certainty, Certainty::confirmed);
    far_->away = true;
    const auto nodes = driver_->discover(in(0.1));
    ASSERT_TRUE(nodes.ok());
    EXPECT_EQ(nodes->size(), 1U);
    const auto listing = driver_->list_ours("", in(0.1));
    ASSERT_TRUE(listing.ok());
    EXPECT_TRUE(listing->complete);
    EXPECT_THAT(listing->silent, ElementsAre("far"));
    ASSERT_EQ(listing->items.size(), 1U);
    EXPECT_EQ(listing->items[0].operation, one_);
    EXPECT_EQ(driver_->cancel(two_, 1, 0, in(0.1)).certainty, Certainty::unknown);
    EXPECT_EQ(driver_->cancel(one_, 1, 0, in(5)).certainty, Certainty::confirmed);
    EXPECT_THAT(driver_->engines()[1].fault, HasSubstr("no answer"));
    far_->away = false;
    EXPECT_EQ(driver_->discover(in(5))->size(), 3U);
    EXPECT_EQ(driver_->engines()[1].fault, "");
    EXPECT_EQ(driver_->cancel(two_, 1, 0, in(5)).certainty, Certainty::confirmed);
}

// The next server: what the journal says is known, goes to its engine alone; of anything else all have to say that it
// is gone, or a run would go on where nobody looked.
TEST_F(SeveralTest, WhatNobodyRemembersIsGoneWhenAllSaySo) {
    ASSERT_EQ(driver_->launch(one_, gang("n1", "here"), in(5)).certainty, Certainty::confirmed);
    start();
    far_->away = true;
    EXPECT_EQ(driver_->cancel(one_, 1, 0, in(0.1)).certainty, Certainty::unknown);
    driver_->belongs(one_, "here");
    EXPECT_EQ(driver_->cancel(one_, 1, 0, in(5)).certainty, Certainty::confirmed);
    // Launched before there were several: with the first.
    driver_->belongs(two_, "");
    EXPECT_EQ(driver_->release(two_, in(5)).certainty, Certainty::confirmed);
}

// Two doors to one cluster list each other's work: it is told once, and ends through its own door.
TEST_F(SeveralTest, WorkThatTwoEnginesListIsToldOnce) {
    ASSERT_EQ(driver_->launch(one_, gang("n1@far", "far"), in(5)).certainty, Certainty::confirmed);
    near_->launched.insert(one_);
    const auto listing = driver_->list_ours("", in(5));
    ASSERT_EQ(listing->items.size(), 1U);
    near_->away = true;
    EXPECT_EQ(driver_->cancel(one_, 1, 0, in(5)).certainty, Certainty::confirmed);
}

// A wrong kubeconfig is told at the start; a cluster that is away then comes later.
TEST(Several, WhatIsToldWronglyIsRefusedAndWhatIsAwayComesLater) {
    const auto room = std::make_shared<Room>();
    room->nodes = {{.name = "n1"}};
    const auto good = [room]() -> Result<std::unique_ptr<Driver>> {
        return std::unique_ptr<Driver>(std::make_unique<RoomDriver>(room));
    };
    const auto wrong = []() -> Result<std::unique_ptr<Driver>> { return Error(ErrorKind::not_found, "no such file"); };
    const auto refused = make_several({{"here", "local", good}, {"far", "kubernetes", wrong}});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().text(), HasSubstr("starting the engine far"));
    const auto away = []() -> Result<std::unique_ptr<Driver>> { return Error(ErrorKind::unavailable, "refused"); };
    const auto driver = make_several({{"here", "local", good}, {"far", "kubernetes", away}});
    ASSERT_TRUE(driver.ok());
    EXPECT_EQ((*driver)->engines()[1].fault, "refused");
    const Outcome outcome = (*driver)->cancel({"tests", 1}, 1, 0, in(1));
    EXPECT_EQ(outcome.certainty, Certainty::unknown);
    EXPECT_THAT(outcome.detail, HasSubstr("far does not answer"));
}

// Facts that were taken come again, all of them, for whoever asks from before; none is given twice to one who goes on.
TEST(MergedFacts, GoOnWhereTheyWereAndBeginAnewWhenAskedTo) {
    MergedFacts facts(2);
    const auto turn = facts.next_turn(0);
    facts.add(0, *turn, {{.cursor = 7, .rank = 1}, {.cursor = 9, .rank = 2}});
    int restarts = 0;
    const auto again = [&] { ++restarts; };
    const auto first = facts.after(0, in(1), again);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_LT(first[0].cursor, first[1].cursor);
    EXPECT_EQ(facts.next_turn(0)->cursor, 9U);
    EXPECT_THAT(facts.after(first[1].cursor, in(0), again), IsEmpty());
    EXPECT_THAT(facts.after(first[0].cursor, in(0), again), IsEmpty());
    EXPECT_EQ(restarts, 1);
    EXPECT_EQ(facts.next_turn(0)->cursor, 0U);
    facts.add(0, *turn, {{.cursor = 11}});  // of a question from before
    facts.add(0, *facts.next_turn(0), {{.cursor = 7, .rank = 1}});
    const auto anew = facts.after(first[0].cursor, in(1), again);
    ASSERT_EQ(anew.size(), 1U);
    EXPECT_GT(anew[0].cursor, first[1].cursor);
    // A cursor of an earlier server, whose clock was ahead.
    facts.add(1, *facts.next_turn(1), {{.cursor = 1, .rank = 5}});
    const auto foreign = facts.after(anew[0].cursor + 1'000'000'000, in(1), again);
    EXPECT_FALSE(foreign.empty());
    EXPECT_GT(foreign[0].cursor, anew[0].cursor + 1'000'000'000);
}

}  // namespace
}  // namespace stoker
