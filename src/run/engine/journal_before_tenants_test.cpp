// tests/journals/before_tenants.db: the journal of a real server of the last version without tenants, over two starts
// with a snapshot in between: a gang, a sweep with a failing point, a run that was evicted and went on from its
// checkpoint, one that was cancelled, one that waits and is held, two versions of the configuration, a drained node.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "run/core/core.h"
#include "run/engine/engine.h"
#include "run/engine/journal_care.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::uint64_t kRecords = 102, kInSnapshot = 87;

class BeforeTenants : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = fs::temp_directory_path() / "stoker-before-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        fs::copy_file(STOKER_SOURCE_DIR "/tests/journals/before_tenants.db", folder_ + "/stoker.db");
        fs::permissions(folder_ + "/stoker.db", fs::perms::owner_read | fs::perms::owner_write);
    }
    void TearDown() override { fs::remove_all(folder_); }
    State load(bool snapshot, std::uint64_t* from = nullptr) const {
        auto journal = Journal::open(folder_, {.create = false});
        EXPECT_TRUE(journal.ok()) << journal.error().text();
        EXPECT_TRUE(snapshot || (*journal)->database().execute("DELETE FROM snapshot").ok());
        State state;
        const auto loaded = load_state(**journal, state);
        EXPECT_TRUE(loaded.ok()) << loaded.error().text();
        if (from != nullptr && loaded) *from = *loaded;
        return state;
    }
    std::string folder_;
};

// Whoever updates the server keeps his runs, and they are where everybody's are.
TEST_F(BeforeTenants, ItOpensWithTheSameRunsInTheDefaultProject) {
    std::uint64_t from = 0;
    const State state = load(true, &from);
    EXPECT_EQ(from, kInSnapshot);
    EXPECT_EQ(state.seq, kRecords);
    EXPECT_TRUE(state.tenants.only_default());
    const std::vector<std::pair<std::string, RunState>> wanted = {
        {"gang", RunState::succeeded},    {"sweep", RunState::failed},  {"sweep/x=1", RunState::succeeded},
        {"sweep/x=2", RunState::failed},  {"ck", RunState::succeeded},  {"waits", RunState::queued},
        {"sleeper", RunState::cancelled}, {"tail", RunState::succeeded}};
    ASSERT_EQ(state.runs.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto* run = state.find(RunId{i + 1});
        ASSERT_NE(run, nullptr);
        EXPECT_EQ(run->spec.name, wanted[i].first);
        EXPECT_EQ(run->state, wanted[i].second) << run->spec.name;
        EXPECT_EQ(run->project, kDefaultProject) << run->spec.name;
        EXPECT_EQ(run->submitted_by, "token/admin") << run->spec.name;
    }
    EXPECT_EQ(state.find(RunId{5})->attempts.size(), 2u);
    EXPECT_EQ(state.find(RunId{5})->attempts.back().resume_step, 5);
    EXPECT_TRUE(state.find(RunId{6})->held);
    EXPECT_EQ(newest_version(state.config), 2u);
    EXPECT_EQ(state.config.back().actor, "token/admin");
    EXPECT_EQ(state.nodes.at("vm").state, NodeState::draining);
}

// The snapshot of before and the records of before have to tell the same: which of the two is read is chance.
TEST_F(BeforeTenants, SnapshotAndRecordsGiveTheSameState) {
    const std::string with = digest(load(true));
    std::uint64_t from = 1;
    const State without = load(false, &from);
    EXPECT_EQ(from, 0u);
    EXPECT_EQ(digest(without), with);
}

// What it says is written today byte for byte as then: an older version reads what a newer one wrote, and the chain of
// hashes holds over both.
TEST_F(BeforeTenants, EveryRecordIsWrittenAsItWas) {
    const auto journal = Journal::open_read_only(folder_);
    ASSERT_TRUE(journal.ok()) << journal.error().text();
    std::uint64_t count = 0;
    const Status status = (*journal)->read(0, [&](const JournalRecord& entry) -> Result<bool> {
        ++count;
        TRY(const RecordBody body, decode_body(entry.kind, entry.format, entry.body, entry.seq));
        EXPECT_EQ(encode_body(body), entry.body) << entry.seq;
        TRY(const Actor actor, Actor::parse(entry.actor));
        EXPECT_EQ(actor.text(), entry.actor) << entry.seq;
        return true;
    });
    ASSERT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(count, kRecords);
}

// It goes on: commands are taken, the next snapshot is written, and all of it verifies and reads back.
TEST_F(BeforeTenants, ItGoesOnTakingCommands) {
    std::string live;
    {
        auto journal = Journal::open(folder_, {.create = false});
        ASSERT_TRUE(journal.ok()) << journal.error().text();
        const std::int64_t now_us = 2'000'000'000'000'000;
        auto core = Core::open(**journal, {.site = "tests", .snapshot_every = 2}, now_us);
        ASSERT_TRUE(core.ok()) << core.error().text();
        RunSpec spec;
        spec.name = "after";
        spec.command = {"true"};
        const Actor admin = Actor::token("admin");
        std::vector<Command> commands = {{.what = Submit{.spec = spec}, .actor = admin},
                                         {.what = HoldRun{{6}, false}, .actor = admin},
                                         {.what = CancelRun{{6}}, .actor = admin},
                                         {.what = SetNode{"vm", NodeState::ready}, .actor = admin}};
        // Records enough for another snapshot.
        for (int i = 0; i < 60; ++i) commands.push_back({.what = HoldRun{{9}, i % 2 == 0}, .actor = admin});
        const auto turn = (*core)->turn(commands, now_us + 1);
        ASSERT_TRUE(turn.ok()) << turn.error().text();
        for (const auto& ack : turn->acks) EXPECT_TRUE(ack.ok()) << ack.error().text();
        EXPECT_EQ((*core)->state().find(RunId{9})->project, kDefaultProject);
        EXPECT_EQ((*core)->state().find(RunId{6})->state, RunState::cancelled);
        live = digest((*core)->state());
        const auto snapshot = (*journal)->newest_snapshot();
        ASSERT_TRUE(snapshot.ok() && snapshot->has_value());
        EXPECT_GT((*snapshot)->seq, kRecords);
    }
    const auto head = verify_journal(folder_);
    ASSERT_TRUE(head.ok()) << head.error().text();
    EXPECT_GT(head->seq, kRecords);
    const auto offline = read_offline(folder_);
    ASSERT_TRUE(offline.ok()) << offline.error().text();
    EXPECT_EQ(digest(offline->state), live);
    EXPECT_EQ(digest(load(false)), live);
}

}  // namespace
}  // namespace stoker
