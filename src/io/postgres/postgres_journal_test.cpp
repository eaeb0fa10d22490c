#include "io/postgres/postgres_journal.h"

#include <gmock/gmock.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/journal.h"
#include "io/journal_conformance.h"
#include "io/journal_testing.h"
#include "io/postgres/connection.h"
#include "io/postgres/postgres_testing.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kPrograms = "/usr/lib/postgresql/15/bin";

// As PostgreSQL wants it: never as root.
int run_as_postgres(const std::vector<std::string>& words, bool wait) {
    const pid_t child = ::fork();
    if (child == 0) {
        const passwd* user = ::getpwnam("postgres");
        if (::geteuid() == 0 && user && (::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) ::_exit(126);
        ::setenv("LC_ALL", "C.UTF-8", 1);
        if (!std::freopen("/dev/null", "r", stdin) || !std::freopen("/dev/null", "w", stdout) || ::dup2(1, 2) != 2 ||
            ::chdir("/") != 0)
            ::_exit(126);
        std::vector<char*> argv;
        for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    if (!wait) return child;
    int status = -1;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string TestPostgres::why_not() {
    if (!fs::exists(std::string(kPrograms) + "/initdb")) return "PostgreSQL 15 is not installed";
    if (::geteuid() == 0 && !::getpwnam("postgres")) return "there is no user postgres, and root may not run it";
    return {};
}

std::unique_ptr<TestPostgres> TestPostgres::start() {
    std::string pattern = "/tmp/stoker-pg-XXXXXX";  // short: it is the path of a socket
    if (!::mkdtemp(pattern.data())) return nullptr;
    std::unique_ptr<TestPostgres> made(new TestPostgres(pattern));
    const passwd* user = ::getpwnam("postgres");
    if (::geteuid() == 0 && user && ::chown(pattern.c_str(), user->pw_uid, user->pw_gid) != 0) return nullptr;
    if (run_as_postgres({std::string(kPrograms) + "/initdb", "-D", pattern + "/data", "-A", "trust", "-U", "stoker",
                         "-N", "--no-instructions", "-E", "UTF8", "--locale", "C.UTF-8"},
                        true) != 0)
        return nullptr;
    return made->begin() ? std::move(made) : nullptr;
}

bool TestPostgres::begin() {
    pid_ = run_as_postgres({std::string(kPrograms) + "/postgres", "-D", folder_ + "/data", "-k", folder_, "-h", "",
                            "-c", "log_min_messages=fatal", "-c", "shared_buffers=8MB"},
                           false);
    for (int i = 0; i < 600; ++i) {
        if (PostgresConnection::open(url("postgres"))) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
}

void TestPostgres::end(int signal_number) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal_number);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

TestPostgres::~TestPostgres() {
    end(SIGINT);
    std::error_code code;
    fs::remove_all(folder_, code);
}

void TestPostgres::restart() {
    end(SIGINT);
    ASSERT_TRUE(begin());
}

std::string TestPostgres::url(const std::string& database) const {
    return "postgresql:///" + database + "?user=stoker&host=" + folder_;
}

std::string TestPostgres::new_database() {
    const std::string name = "d" + std::to_string(++databases_);
    auto admin = PostgresConnection::open(url("postgres"));
    EXPECT_TRUE(admin && (*admin)->query(("CREATE DATABASE " + name).c_str(), {}, 60));
    return url(name);
}

namespace {

std::unique_ptr<TestPostgres>& server() {
    static std::unique_ptr<TestPostgres> one;
    return one;
}

class PostgresJournalTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (TestPostgres::why_not().empty()) server() = TestPostgres::start();
    }
    static void TearDownTestSuite() { server().reset(); }
    void SetUp() override {
        if (const std::string why = TestPostgres::why_not(); !why.empty()) GTEST_SKIP() << why;
        ASSERT_TRUE(server());
        url_ = server()->new_database();
        std::string pattern = testing::TempDir() + "home-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override {
        if (!folder_.empty()) fs::remove_all(folder_);
    }

    std::unique_ptr<PostgresJournal> home(const std::string& holder, std::function<void(const Error&)> on_lost = {},
                                          int lease_s = 1) {
        auto made = PostgresJournal::open(
            {.url = url_, .name = "the database", .holder = holder, .lease_s = lease_s, .on_lost = std::move(on_lost)});
        EXPECT_TRUE(made) << (made ? "" : made.error().text());
        return made ? std::move(*made) : nullptr;
    }
    std::unique_ptr<PostgresJournal> leader(const std::string& holder, std::function<void(const Error&)> on_lost = {},
                                            int lease_s = 1) {
        auto made = home(holder, std::move(on_lost), lease_s);
        const Status led = made->lead(patient, [](const std::string&) {});
        EXPECT_TRUE(led) << (led ? "" : led.error().text());
        return made;
    }
    static bool patient(double seconds) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        return false;
    }
    std::unique_ptr<Journal> open(const std::string& name, JournalHome* home) {
        auto journal = Journal::open(folder_ + "/" + name, {.home = home});
        EXPECT_TRUE(journal) << (journal ? "" : journal.error().text());
        return journal ? std::move(*journal) : nullptr;
    }
    static std::vector<JournalEntry> entries(int from, int count) {
        return journal_entries(from, count, std::string("\0\xff", 2));  // bytes in, bytes out
    }

    std::string url_, folder_;
};

// The same promises as of a folder alone. Each test has a database of its own, and the server ends with the program.
struct DatabaseHome {
    static constexpr int kKills = 4;  // each waits for the lease of the one that was killed
    static std::string prepare() {
        if (std::string why = TestPostgres::why_not(); !why.empty()) return why;
        static const std::unique_ptr<TestPostgres> own = TestPostgres::start();
        if (!own) return "PostgreSQL did not start";
        url() = own->new_database();
        return {};
    }
    bool begin() {
        auto made =
            PostgresJournal::open({.url = url(), .name = "the database", .holder = "conformance", .lease_s = 1});
        if (!made) return false;
        journal_ = std::move(*made);
        return journal_
            ->lead(
                [](double seconds) {
                    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
                    return false;
                },
                [](const std::string&) {})
            .ok();
    }
    JournalHome* journal_home() { return journal_.get(); }

private:
    static std::string& url() {
        static std::string one;
        return one;
    }
    std::unique_ptr<PostgresJournal> journal_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Database, JournalConformance, DatabaseHome);

// What was acknowledged on one machine is there on the next, with its bytes, and goes on in one chain.
TEST_F(PostgresJournalTest, ASecondFolderHasWhatTheFirstAcknowledged) {
    {
        const auto first = leader("first");
        const auto journal = open("a", first.get());
        journal->set_epoch(3);
        ASSERT_TRUE(journal->append(entries(0, 1500), 1000));
        ASSERT_TRUE(journal->append(entries(1500, 1), 900));
        ASSERT_TRUE(journal->redact(2));
    }
    const auto second = leader("second");
    const auto journal = open("b", second.get());
    EXPECT_EQ(journal->head().seq, 1501U);
    EXPECT_EQ(journal->epoch(), 3U);
    std::vector<JournalRecord> read;
    ASSERT_TRUE(journal->read(0, [&](const JournalRecord& record) -> Result<bool> {
        read.push_back(record);
        return true;
    }));
    ASSERT_EQ(read.size(), 1501U);
    EXPECT_EQ(read[0].actor, std::string("\0\xff", 2));
    EXPECT_EQ(read[0].body, "{\"n\":0}");
    EXPECT_TRUE(read[1].redacted);
    EXPECT_EQ(read[1500].at_us, 1000);
    journal->set_epoch(4);
    ASSERT_TRUE(journal->append(entries(1501, 2), 2000));
    const auto verified = verify_home(*second);
    ASSERT_TRUE(verified) << verified.error().text();
    EXPECT_EQ(verified->seq, 1503U);
    EXPECT_EQ(verified->hash, journal->head().hash);
}

// A server that slept through the loss of its place writes nothing more, and is told.
TEST_F(PostgresJournalTest, WhoLostItsPlaceCannotWrite) {
    std::atomic<bool> lost = false;
    auto first = home("first", [&](const Error& error) {
        EXPECT_THAT(error.message(), HasSubstr("second leads now"));
        lost = true;
    });
    ASSERT_TRUE(first->lead(patient, [](const std::string&) {}));
    const auto journal = open("a", first.get());
    ASSERT_TRUE(journal->append(entries(0, 3), 1));
    // As if its lease had run out unseen.
    auto admin = PostgresConnection::open(url_);
    ASSERT_TRUE(admin);
    std::unique_ptr<PostgresJournal> second = home("second");
    std::thread takes([&] {
        // Again and again: the first renews each fifth of a second.
        while (second->term() == 0) {
            (void)(*admin)->query("UPDATE stoker_leader SET until = '-infinity' WHERE holder = 'first'").ok();
            int looks = 0;
            (void)second->lead([&](double) { return ++looks > 1; }, [](const std::string&) {}).ok();
        }
    });
    takes.join();
    const Status late = journal->append(entries(3, 1), 2);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::conflict);
    EXPECT_THAT(late.error().message(), HasSubstr("second leads now"));
    EXPECT_FALSE(journal->append(entries(3, 1), 3)) << "a journal that failed once is over";
    const auto other = open("b", second.get());
    EXPECT_EQ(other->head().seq, 3U);
    ASSERT_TRUE(other->append(entries(3, 1), 4));
    for (int i = 0; i < 600 && !lost; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(lost);
}

// Two servers never lead at once: each appends under its term only, and the chain is one.
TEST_F(PostgresJournalTest, WhoStandsByTakesOverWhenTheLeaderIsKilled) {
    int pipe_to_us[2];
    ASSERT_EQ(::pipe(pipe_to_us), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto first = PostgresJournal::open({.url = url_, .name = "the database", .holder = "child", .lease_s = 2});
        if (!first || !(*first)->lead(patient, [](const std::string&) {})) ::_exit(1);
        auto journal = Journal::open(folder_ + "/a", {.home = first->get()});
        if (!journal) ::_exit(2);
        for (int i = 0;; ++i) {
            if (!(*journal)->append(entries(i, 1), i)) ::_exit(3);
            const std::uint64_t seq = (*journal)->head().seq;
            if (::write(pipe_to_us[1], &seq, sizeof seq) != sizeof seq) ::_exit(4);
        }
    }
    ::close(pipe_to_us[1]);
    std::uint64_t seq = 0, acknowledged = 0;
    for (int i = 0; i < 40; ++i) ASSERT_EQ(::read(pipe_to_us[0], &seq, sizeof seq), static_cast<ssize_t>(sizeof seq));
    std::vector<std::string> told;
    const auto second = home("second", {}, 2);
    int looks = 0;
    ASSERT_FALSE(second->lead([&](double seconds) { return patient(seconds) || ++looks > 1; },
                              [&](const std::string& holder) { told.push_back(holder); }));
    EXPECT_EQ(told, std::vector<std::string>{"child"});
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ::waitpid(child, nullptr, 0);
    while (::read(pipe_to_us[0], &seq, sizeof seq) == static_cast<ssize_t>(sizeof seq)) acknowledged = seq;
    ::close(pipe_to_us[0]);
    ASSERT_TRUE(second->lead(patient, [](const std::string&) {}));
    // In the folder of the one that was killed: it may lack what the database has, never the other way round.
    const auto journal = open("a", second.get());
    EXPECT_GE(journal->head().seq, acknowledged);
    ASSERT_TRUE(journal->append(entries(0, 1), 5));
    EXPECT_TRUE(journal->verify());
    EXPECT_EQ(verify_home(*second)->hash, journal->head().hash);
}

// The database is restarted, as for an update: whoever writes waits for it, and nothing stands twice.
TEST_F(PostgresJournalTest, ARestartOfTheDatabaseIsOutlived) {
    const auto first = leader("first", {}, 5);
    const auto journal = open("a", first.get());
    std::atomic<bool> enough = false;
    std::atomic<int> wrote = 0;
    std::thread writer([&] {
        while (!enough) {
            const Status status = journal->append(entries(wrote, 1), wrote);
            ASSERT_TRUE(status) << status.error().text();
            ++wrote;
        }
    });
    for (int i = 0; i < 3; ++i) {
        const int before = wrote;
        while (wrote < before + 5) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        server()->restart();
    }
    const int before = wrote;
    while (wrote < before + 5) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    enough = true;
    writer.join();
    EXPECT_EQ(journal->head().seq, static_cast<std::uint64_t>(wrote.load()));
    const auto verified = verify_home(*first);
    ASSERT_TRUE(verified) << verified.error().text();
    EXPECT_EQ(verified->hash, journal->head().hash);
}

// Somebody with a folder and a database that do not belong together loses neither.
TEST_F(PostgresJournalTest, AnotherJournalIsRefused) {
    {
        const auto alone = open("a", nullptr);
        ASSERT_TRUE(alone->append(entries(0, 4), 1));
    }
    const auto first = leader("first");
    auto refused = Journal::open(folder_ + "/a", {.home = first.get()});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text(), HasSubstr("stoker journal push"));
    {
        const auto other = open("b", first.get());
        ASSERT_TRUE(other->append(entries(9, 2), 1));
    }
    for (const char* name : {"a"}) {
        refused = Journal::open(folder_ + "/" + name, {.home = first.get()});
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message(), HasSubstr("two journals"));
        const auto alone = open(name, nullptr);
        const auto pushed = push_journal(*alone, *first);
        ASSERT_FALSE(pushed);
        EXPECT_THAT(pushed.error().message(), HasSubstr("two journals"));
    }
}

// There and back: a folder moves into the database, goes on there, and comes back into a new folder.
TEST_F(PostgresJournalTest, AFolderMovesThereAndBack) {
    {
        const auto alone = open("a", nullptr);
        ASSERT_TRUE(alone->append(entries(0, 2500), 1));
        ASSERT_TRUE(alone->archive_until(1200));
        const auto first = leader("first");
        const auto pushed = push_journal(*alone, *first);
        ASSERT_TRUE(pushed) << pushed.error().text();
        EXPECT_EQ(pushed->hash, alone->head().hash);
        EXPECT_TRUE(push_journal(*alone, *first)) << "nothing is new";
    }
    JournalHead head;
    {
        const auto first = leader("first");
        const auto journal = open("a", first.get());
        ASSERT_TRUE(journal->append(entries(2500, 1), 2));
        head = journal->head();
        EXPECT_TRUE(open("b", first.get()));
    }
    const auto back = open("b", nullptr);
    EXPECT_EQ(back->head().hash, head.hash);
    EXPECT_TRUE(back->append(entries(2501, 1), 3)) << "and goes on alone";
    EXPECT_TRUE(back->verify());
}

// A folder whose newest records are gone gets them back, where the folder alone would refuse to start.
TEST_F(PostgresJournalTest, WhatTheFolderLostComesBack) {
    JournalHead head;
    {
        const auto first = leader("first");
        const auto journal = open("a", first.get());
        ASSERT_TRUE(journal->append(entries(0, 10), 1));
        head = journal->head();
    }
    auto cut = Database::open(folder_ + "/a/stoker.db");
    ASSERT_TRUE(cut && (*cut)->execute("DELETE FROM journal WHERE seq > 6"));
    cut->reset();
    ASSERT_FALSE(Journal::open(folder_ + "/a", {})) << "the folder alone";
    const auto first = leader("first");
    EXPECT_EQ(open("a", first.get())->head().hash, head.hash);
}

// What somebody changed in the database shows before a server believes it.
TEST_F(PostgresJournalTest, AnEditThereIsSeen) {
    const auto first = leader("first");
    {
        const auto journal = open("a", first.get());
        ASSERT_TRUE(journal->append(entries(0, 6), 1));
    }
    auto admin = PostgresConnection::open(url_);
    ASSERT_TRUE(admin);
    for (const char* edit : {"UPDATE stoker_journal SET at_us = at_us + 1 WHERE seq = 4",
                             "UPDATE stoker_journal SET at_us = at_us - 1, body = '{}' WHERE seq = 4",
                             "DELETE FROM stoker_journal WHERE seq = 4"}) {
        ASSERT_TRUE((*admin)->query(edit));
        const auto verified = verify_home(*first);
        ASSERT_FALSE(verified);
        EXPECT_THAT(verified.error().message(), HasSubstr("record 4 of the database"));
        EXPECT_FALSE(Journal::open(folder_ + "/b", {.home = first.get()}));
        fs::remove_all(folder_ + "/b");
    }
}

// An address with a typing error, a password that everybody would read, a database that is away.
TEST_F(PostgresJournalTest, WhatIsWrongIsSaidInWords) {
    EXPECT_THAT(postgres_name("postgres:/host/db", true).error().text(),
                HasSubstr("postgresql://user@host:5432/database"));
    EXPECT_THAT(postgres_name("postgresql://host/db?nosuch=1", true).error().message(), HasSubstr("nosuch"));
    EXPECT_THAT(postgres_name("postgresql://me:secret@host/db", true).error().text(), HasSubstr("PGPASSWORD"));
    EXPECT_EQ(*postgres_name("postgresql://me:secret@host:77/db", false), "postgresql://host:77/db");
    const auto away = PostgresJournal::open({.url = "postgresql:///x?host=/nowhere", .name = "x", .holder = "y"});
    ASSERT_FALSE(away);
    EXPECT_EQ(away.error().kind(), ErrorKind::unavailable);
}

}  // namespace
}  // namespace stoker
