// What a journal promises wherever its records stand: one suite for each home. A home for it has
//     static constexpr int kKills;      // how often its writer is killed
//     static std::string prepare();     // a place that nobody has used; why there can be none, empty: there is
//     bool begin();                     // may write from now on
//     JournalHome* journal_home();      // nullptr: the folder alone
#pragma once

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/random.h"
#include "io/journal.h"
#include "io/journal_testing.h"

namespace stoker {

template <class Home>
class JournalConformance : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = Home::prepare(); !why.empty()) GTEST_SKIP() << why;
        std::string pattern = testing::TempDir() + "conformance-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override {
        home_.reset();
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    JournalHome* home() {
        if (!home_) {
            home_.emplace();
            EXPECT_TRUE(home_->begin());
        }
        return home_->journal_home();
    }
    std::unique_ptr<Journal> open() {
        auto journal = Journal::open(folder_, {.home = home()});
        EXPECT_TRUE(journal) << (journal ? "" : journal.error().text());
        return journal ? std::move(*journal) : nullptr;
    }

    std::string folder_;
    std::optional<Home> home_;
};
TYPED_TEST_SUITE_P(JournalConformance);

// What was acknowledged is there after a restart, in its order, with its bytes.
TYPED_TEST_P(JournalConformance, KeepsWhatWasAppended) {
    {
        const auto journal = this->open();
        journal->set_epoch(3);
        ASSERT_TRUE(journal->append(journal_entries(0, 5), 1000));
        ASSERT_TRUE(journal->append(journal_entries(5, 1), 900));  // the clock went back; the record does not
        EXPECT_EQ(journal->head().seq, 6U);
    }
    const auto journal = this->open();
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

// Personal data can be erased, and the rest of the trail still proves itself.
TYPED_TEST_P(JournalConformance, ErasesABodyWithoutBreakingTheChain) {
    const auto journal = this->open();
    ASSERT_TRUE(journal->append(journal_entries(0, 3), 1000));
    ASSERT_TRUE(journal->redact(2));
    EXPECT_TRUE(journal->verify());
    ASSERT_TRUE(journal->read(1, [&](const JournalRecord& record) -> Result<bool> {
        EXPECT_EQ(record.redacted, record.seq == 2);
        EXPECT_EQ(record.body.empty(), record.seq == 2);
        return true;
    }));
}

// Two servers on one folder would each undo what the other acknowledged.
TYPED_TEST_P(JournalConformance, BelongsToOneProcess) {
    const auto journal = this->open();
    const auto second = Journal::open(this->folder_, {.home = this->home()});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::conflict);
    EXPECT_THAT(second.error().text(), testing::HasSubstr(std::to_string(::getpid())));
}

// A snapshot that was damaged is passed over for the one before, and never trusted.
TYPED_TEST_P(JournalConformance, FallsBackToAnOlderSnapshot) {
    const auto journal = this->open();
    ASSERT_TRUE(journal->append(journal_entries(0, 9), 1000));
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
TYPED_TEST_P(JournalConformance, BackupOpensElsewhere) {
    const auto journal = this->open();
    ASSERT_TRUE(journal->append(journal_entries(0, 200), 1000));
    std::filesystem::create_directories(this->folder_ + "/restored");
    ASSERT_TRUE(journal->back_up(this->folder_ + "/restored/stoker.db"));
    ASSERT_TRUE(journal->append(journal_entries(200, 1), 1000));
    EXPECT_EQ(journal->back_up(this->folder_ + "/restored/stoker.db").error().kind(), ErrorKind::conflict);
    const auto restored = Journal::open(this->folder_ + "/restored", {}).value();
    EXPECT_EQ(restored->verify().value().seq, 200U);
}

// The tables of a caller change in the same commit as the journal, or not at all.
TYPED_TEST_P(JournalConformance, ProjectionsCommitWithTheirRecords) {
    const auto journal =
        Journal::open(this->folder_,
                      {.prepare_tables =
                           [](Database& db) {
                               return db.execute("CREATE TABLE IF NOT EXISTS runs(name TEXT, seq INTEGER) STRICT");
                           },
                       .home = this->home()})
            .value();
    ASSERT_TRUE(journal->append(journal_entries(0, 2), 1000, [](Database& db, std::uint64_t first) {
        return db.execute("INSERT INTO runs VALUES('a'," + std::to_string(first) + ")");
    }));
    EXPECT_EQ(journal->database().integer("SELECT seq FROM runs").value(), 1);
    EXPECT_FALSE(journal->append(journal_entries(2, 2), 1000, [](Database& db, std::uint64_t) {
        return db.execute("INSERT INTO nothing VALUES(1)");
    }));
    EXPECT_EQ(journal->database().integer("SELECT count(*) FROM journal").value(), 2);
    if (JournalHome* const home = this->home()) {
        EXPECT_EQ(home->head().value().seq, 2U);
    }
    EXPECT_FALSE(journal->append(journal_entries(2, 1), 1000)) << "after a failure nothing more is accepted";
}

// kill -9 at any moment: every record whose append returned is there, none is half there.
TYPED_TEST_P(JournalConformance, LosesNothingAcknowledgedToKill) {
    SplitMix random(17);
    std::uint64_t acknowledged_before = 0;
    for (int round = 0; round < TypeParam::kKills; ++round) {
        int pipe[2];
        ASSERT_EQ(::pipe(pipe), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(pipe[0]);
            auto journal = Journal::open(this->folder_, {.home = this->home()});
            if (!journal) ::_exit(1);
            for (;;) {
                const int from = static_cast<int>((*journal)->head().seq);
                if (!(*journal)->append(journal_entries(from, 1 + static_cast<int>(random.below(5))), from)) ::_exit(2);
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
        {
            const auto journal = this->open();
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
        this->home_.reset();  // the next one leads
    }
}

REGISTER_TYPED_TEST_SUITE_P(JournalConformance, KeepsWhatWasAppended, ErasesABodyWithoutBreakingTheChain,
                            BelongsToOneProcess, FallsBackToAnOlderSnapshot, BackupOpensElsewhere,
                            ProjectionsCommitWithTheirRecords, LosesNothingAcknowledgedToKill);

}  // namespace stoker
