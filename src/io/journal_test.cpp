#include "io/journal.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "io/journal_conformance.h"
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

// A folder alone.
struct FolderHome {
    static constexpr int kKills = 12;
    static std::string prepare() { return {}; }
    bool begin() { return true; }
    JournalHome* journal_home() { return nullptr; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Folder, JournalConformance, FolderHome);

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
