#include "io/journal.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "io/journal_testing.h"
#include "io/sha256.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class JournalTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "journal-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::unique_ptr<Journal> open() {
        auto journal = Journal::open(folder_, {});
        EXPECT_TRUE(journal) << (journal ? "" : journal.error().text());
        return journal ? std::move(*journal) : nullptr;
    }
    static std::vector<JournalEntry> entries(int from, int count) { return journal_entries(from, count); }

    std::string folder_;
};

// What was acknowledged is there after a restart, in its order, with its bytes.
TEST_F(JournalTest, KeepsWhatWasAppended) {
    {
        const auto journal = open();
        journal->set_epoch(3);
        ASSERT_TRUE(journal->append(entries(0, 5), 1000));
        ASSERT_TRUE(journal->append(entries(5, 1), 900));  // the clock went back; the record does not
        EXPECT_EQ(journal->head().seq, 6U);
    }
    const auto journal = open();
    EXPECT_EQ(journal->epoch(), 3U);
    std::vector<JournalRecord> read;
    ASSERT_TRUE(journal->read(2, [&](const JournalRecord& record) -> Result<bool> {
        read.push_back(record);
        return true;
    }));
    ASSERT_EQ(read.size(), 4U);
    EXPECT_EQ(read[0].seq, 3U);
    EXPECT_EQ(read[0].body, "{\"n\":2}");
    EXPECT_EQ(read[3].at_us, 1000);
    EXPECT_TRUE(journal->verify());
}

// The audit trail is worth something because no row can be changed, dropped or slipped in unseen.
TEST_F(JournalTest, SeesEveryEdit) {
    {
        const auto journal = open();
        ASSERT_TRUE(journal->append(entries(0, 6), 1000));
    }
    const std::vector<std::string> edits = {
        "UPDATE journal SET at_us = at_us + 1 WHERE seq = 4",
        "UPDATE journal SET epoch = 9 WHERE seq = 4",
        "UPDATE journal SET kind = 8 WHERE seq = 4",
        "UPDATE journal SET format = 2 WHERE seq = 4",
        "UPDATE journal SET object = 'run/r-x' WHERE seq = 4",
        "UPDATE journal SET version = 2 WHERE seq = 4",
        "UPDATE journal SET actor = 'user/u-2' WHERE seq = 4",
        "UPDATE journal SET cause = 'oom' WHERE seq = 4",
        "UPDATE journal SET operation = 'x' WHERE seq = 4",
        "UPDATE journal SET trace = 'x' WHERE seq = 4",
        "UPDATE journal SET actor = 'user/u-1x', cause = '' WHERE seq = 4",
        "UPDATE journal SET body = x'7b7d' WHERE seq = 4",
        "DELETE FROM journal WHERE seq = 4",
        "DELETE FROM journal WHERE seq = 1",
        "UPDATE journal SET seq = 40 WHERE seq = 4",
    };
    for (const std::string& edit : edits) {
        const std::string copy = folder_ + "-copy";
        std::filesystem::remove_all(copy);
        std::filesystem::copy(folder_, copy);
        {
            const auto database = Database::open(copy + "/stoker.db").value();
            ASSERT_TRUE(database->execute(edit)) << edit;
        }
        auto journal = Journal::open(copy, {});
        ASSERT_TRUE(journal) << edit;
        const auto verified = (*journal)->verify();
        EXPECT_FALSE(verified) << edit;
        if (!verified) {
            EXPECT_THAT(verified.error().text(), HasSubstr("record ")) << edit;
        }
        std::filesystem::remove_all(copy);
    }
}

// Personal data can be erased, and the rest of the trail still proves itself.
TEST_F(JournalTest, ErasesABodyWithoutBreakingTheChain) {
    const auto journal = open();
    ASSERT_TRUE(journal->append(entries(0, 3), 1000));
    ASSERT_TRUE(journal->redact(2));
    EXPECT_TRUE(journal->verify());
    ASSERT_TRUE(journal->read(1, [&](const JournalRecord& record) -> Result<bool> {
        EXPECT_EQ(record.redacted, record.seq == 2);
        EXPECT_EQ(record.body.empty(), record.seq == 2);
        return true;
    }));
}

// Two servers on one folder would each undo what the other acknowledged.
TEST_F(JournalTest, BelongsToOneProcess) {
    const auto journal = open();
    const auto second = Journal::open(folder_, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::conflict);
    EXPECT_THAT(second.error().text(), HasSubstr(std::to_string(::getpid())));
}

// An older Stoker must not open what a newer one wrote, nor anyone's other database, nor a damaged file.
TEST_F(JournalTest, RefusesForeignAndNewerFiles) {
    { open(); }
    {
        const auto database = Database::open(folder_ + "/stoker.db").value();
        ASSERT_TRUE(database->execute("PRAGMA user_version=99"));
    }
    EXPECT_THAT(Journal::open(folder_, {}).error().text(), HasSubstr("newer Stoker"));

    std::filesystem::remove(folder_ + "/stoker.db");
    {
        const auto database = Database::open(folder_ + "/stoker.db").value();
        ASSERT_TRUE(database->execute("CREATE TABLE theirs(x)"));
    }
    EXPECT_THAT(Journal::open(folder_, {}).error().text(), HasSubstr("another program"));

    std::filesystem::remove(folder_ + "/stoker.db");
    std::ofstream(folder_ + "/stoker.db") << std::string(8192, 'x');
    EXPECT_EQ(Journal::open(folder_, {}).error().kind(), ErrorKind::invalid);
    EXPECT_EQ(Journal::open(folder_ + "/none", {.create = false, .prepare_tables = {}}).error().kind(),
              ErrorKind::not_found);
}

// A snapshot that was damaged is passed over for the one before, and never trusted.
TEST_F(JournalTest, FallsBackToAnOlderSnapshot) {
    const auto journal = open();
    ASSERT_TRUE(journal->append(entries(0, 9), 1000));
    EXPECT_FALSE(journal->newest_snapshot().value());
    for (const std::uint64_t seq : {2U, 5U, 8U}) {
        ASSERT_TRUE(journal->save_snapshot({.seq = seq, .format = 1, .state = "state " + std::to_string(seq)}));
    }
    EXPECT_EQ(journal->newest_snapshot().value()->state, "state 8");
    ASSERT_TRUE(journal->database().execute("UPDATE snapshot SET state = x'00' WHERE seq = 8"));
    EXPECT_EQ(journal->newest_snapshot().value()->seq, 5U);
    EXPECT_EQ(journal->database().integer("SELECT count(*) FROM snapshot").value(), 2);
}

// A backup is taken while the server works, and a restore from it is complete and proves itself.
TEST_F(JournalTest, BackupOpensElsewhere) {
    const auto journal = open();
    ASSERT_TRUE(journal->append(entries(0, 200), 1000));
    std::filesystem::create_directories(folder_ + "/restored");
    ASSERT_TRUE(journal->back_up(folder_ + "/restored/stoker.db"));
    ASSERT_TRUE(journal->append(entries(200, 1), 1000));
    EXPECT_EQ(journal->back_up(folder_ + "/restored/stoker.db").error().kind(), ErrorKind::conflict);
    const auto restored = Journal::open(folder_ + "/restored", {}).value();
    EXPECT_EQ(restored->verify().value().seq, 200U);
}

// The tables of a caller change in the same commit as the journal, or not at all.
TEST_F(JournalTest, ProjectionsCommitWithTheirRecords) {
    const auto journal =
        Journal::open(folder_,
                      {.create = true,
                       .prepare_tables =
                           [](Database& db) {
                               return db.execute("CREATE TABLE IF NOT EXISTS runs(name TEXT, seq INTEGER) STRICT");
                           }})
            .value();
    ASSERT_TRUE(journal->append(entries(0, 2), 1000, [](Database& db, std::uint64_t first) {
        return db.execute("INSERT INTO runs VALUES('a'," + std::to_string(first) + ")");
    }));
    EXPECT_EQ(journal->database().integer("SELECT seq FROM runs").value(), 1);
    EXPECT_FALSE(journal->append(
        entries(2, 2), 1000, [](Database& db, std::uint64_t) { return db.execute("INSERT INTO nothing VALUES(1)"); }));
    EXPECT_EQ(journal->database().integer("SELECT count(*) FROM journal").value(), 2);
    EXPECT_FALSE(journal->append(entries(2, 1), 1000)) << "after a failure nothing more is accepted";
}

// kill -9 at any moment: every record whose append returned is there, none is half there.
TEST_F(JournalTest, LosesNothingAcknowledgedToKill) {
    SplitMix random(17);
    std::uint64_t acknowledged_before = 0;
    for (int round = 0; round < 12; ++round) {
        int pipe[2];
        ASSERT_EQ(::pipe(pipe), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(pipe[0]);
            auto journal = Journal::open(folder_, {});
            if (!journal) ::_exit(1);
            for (;;) {
                const int from = static_cast<int>((*journal)->head().seq);
                if (!(*journal)->append(entries(from, 1 + static_cast<int>(random.below(5))), from)) ::_exit(2);
                const std::uint64_t seq = (*journal)->head().seq;
                if (::write(pipe[1], &seq, sizeof seq) != sizeof seq) ::_exit(3);
            }
        }
        ::close(pipe[1]);
        std::uint64_t acknowledged = 0;
        const std::uint64_t until = 1 + random.below(60);
        for (std::uint64_t i = 0; i < until; ++i) ASSERT_EQ(::read(pipe[0], &acknowledged, sizeof acknowledged), 8);
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        while (::read(pipe[0], &acknowledged, sizeof acknowledged) == 8) continue;  // what was acknowledged meanwhile
        ::close(pipe[0]);
        const auto journal = open();
        ASSERT_GE(journal->head().seq, acknowledged);
        ASSERT_GT(acknowledged, acknowledged_before);
        acknowledged_before = acknowledged;
        std::uint64_t n = 0;
        ASSERT_TRUE(journal->read(0, [&](const JournalRecord& record) -> Result<bool> {
            EXPECT_EQ(record.body, "{\"n\":" + std::to_string(n++) + "}");
            return true;
        }));
        EXPECT_EQ(n, journal->head().seq);
    }
}

// A killed server may leave a child that has not come to its exec and still holds the lock: the next start waits for
// it instead of telling the operator that a process which is gone is in the way.
TEST_F(JournalTest, WaitsForTheLockOfAProcessThatIsGone) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t server = ::fork();
    if (server == 0) {
        const auto journal = Journal::open(folder_, {});
        if (!journal) ::_exit(1);
        const pid_t child = ::fork();
        if (child == 0) {
            ::usleep(300'000);
            ::_exit(0);
        }
        (void)!::write(pipe[1], "x", 1);
        ::kill(::getpid(), SIGKILL);
    }
    char one = 0;
    ASSERT_EQ(::read(pipe[0], &one, 1), 1);
    ::waitpid(server, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
    const auto journal = Journal::open(folder_, {});
    EXPECT_TRUE(journal) << journal.error().text();
}

// A full disk refuses with the kind that says so, loses nothing, and the file opens again.
TEST_F(JournalTest, SurvivesAFullDisk) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        auto journal = Journal::open(folder_, {});
        if (!journal) ::_exit(1);
        const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};  // no file may grow beyond 1 MiB
        ::setrlimit(RLIMIT_FSIZE, &limit);
        std::vector<JournalEntry> large = entries(0, 1);
        large[0].body = std::string(60000, 'x');
        for (int i = 0; i < 100; ++i) {
            const Status status = (*journal)->append(large, i);
            if (status) continue;
            const ErrorKind kind = status.error().kind();
            ::_exit(kind == ErrorKind::exhausted || kind == ErrorKind::unavailable ? 0 : 2);
        }
        ::_exit(3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    const auto journal = open();
    EXPECT_GT(journal->head().seq, 3U);
    EXPECT_TRUE(journal->verify());
    EXPECT_TRUE(journal->append(entries(0, 1), 1));
}

// What goes into files without a name is lost with the process: it must not be acknowledged.
TEST_F(JournalTest, RefusesToWriteWhenItsFolderWasDeleted) {
    const auto journal = open();
    ASSERT_TRUE(journal->append(entries(0, 1), 1));
    std::filesystem::remove_all(folder_);
    for (int i = 0; i < 2; ++i) {
        const Status status = journal->append(entries(1, 1), 2);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().kind(), ErrorKind::unavailable);
    }
    EXPECT_EQ(journal->head().seq, 1U);
    EXPECT_FALSE(std::filesystem::exists(folder_));
}

// The digest is the standard's, or no other tool could check an anchor.
TEST(Sha256, IsTheStandardOne) {
    EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    Sha256 sum;
    EXPECT_EQ(sum.add("a").add("bc").finish(), sha256("abc"));
    EXPECT_EQ(sum.add("abc").finish(), sha256("abc"));
}

}  // namespace
}  // namespace stoker
