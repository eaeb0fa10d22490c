#include "run/engine/journal_care.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "io/files.h"
#include "io/sha256.h"
#include "run/core/core.h"
#include "run/engine/engine_site.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class JournalCareTest : public ::testing::Test {
protected:
    JournalCareTest() {
        std::string name = fs::temp_directory_path() / "stoker-care-XXXXXX";
        root = ::mkdtemp(name.data());
        folder = root + "/a";
    }
    ~JournalCareTest() override { fs::remove_all(root); }
    // A server's life: some submissions; the site it had.
    std::string live(const std::string& where, int submits) const {
        auto journal = Journal::open(where, {});
        EXPECT_TRUE(journal.ok()) << journal.error().text();
        const auto site = site_of(**journal, where);
        EXPECT_TRUE(site.ok());
        auto core = Core::open(**journal, {.site = *site, .log_root = where}, 1'000'000);
        EXPECT_TRUE(core.ok()) << core.error().text();
        RunSpec spec;
        spec.name = "job";
        spec.command = {"true"};
        for (int i = 0; i < submits; ++i) {
            const Command submit{.what = Submit{.spec = spec}};
            EXPECT_TRUE((*core)->turn(std::span(&submit, 1), 2'000'000 + i).ok());
        }
        sites = (*core)->state().sites;
        runs = (*core)->state().runs.size();
        return *site;
    }
    std::string root, folder;
    mutable std::vector<std::string> sites;
    mutable std::size_t runs = 0;
};

// The name of an installation is drawn once: what it started is found again under it.
TEST_F(JournalCareTest, TheSiteStays) {
    const std::string site = live(folder, 1);
    EXPECT_EQ(site.size(), 5u);
    EXPECT_EQ(live(folder, 1), site);
    EXPECT_NE(live(root + "/b", 1), site);
}

// A backup taken beside a running server is whole; what is restored from it has all runs, a name of its own, and still
// knows what the original started.
TEST_F(JournalCareTest, ARestoredBackupIsAnInstallationOfItsOwn) {
    const std::string site = live(folder, 3);
    const std::string copy = root + "/copy.db";
    ASSERT_TRUE(back_up_journal(folder, copy).ok());
    EXPECT_EQ(back_up_journal(folder, copy).error().kind(), ErrorKind::conflict);
    const auto fresh = restore_journal(copy, root + "/b");
    ASSERT_TRUE(fresh.ok()) << fresh.error().text();
    EXPECT_NE(*fresh, site);
    EXPECT_EQ(live(root + "/b", 0), *fresh);
    EXPECT_EQ(runs, 3u);
    EXPECT_EQ(sites, std::vector{site});
    EXPECT_EQ(live(root + "/b", 0), *fresh);
    EXPECT_EQ(restore_journal(copy, root + "/b").error().kind(), ErrorKind::conflict);
    EXPECT_EQ(restore_journal(root + "/none", root + "/c").error().kind(), ErrorKind::not_found);
}

// A damaged record is named; cutting there keeps the file as it was and lets the server start with what is before.
TEST_F(JournalCareTest, ADamagedTailIsFoundAndCut) {
    live(folder, 5);
    const auto sound = verify_journal(folder);
    ASSERT_TRUE(sound.ok());
    EXPECT_EQ(sound->seq, 6u);
    {
        auto journal = Journal::open(folder, {});
        ASSERT_TRUE((*journal)->database().execute("UPDATE journal SET body = x'7b7d' WHERE seq = 5").ok());
    }
    const auto damaged = verify_journal(folder);
    ASSERT_FALSE(damaged.ok());
    EXPECT_NE(damaged.error().message().find("record 5"), std::string::npos) << damaged.error().message();
    EXPECT_EQ(cut_journal(folder, 99).error().kind(), ErrorKind::invalid);
    const auto kept = cut_journal(folder, 5);
    ASSERT_TRUE(kept.ok()) << kept.error().text();
    EXPECT_TRUE(fs::exists(*kept));
    EXPECT_EQ(verify_journal(folder)->seq, 4u);
    live(folder, 1);
    EXPECT_EQ(runs, 4u);
}

// Somebody's stoker.db has grown for years: what is old goes into a file of its own, nothing is lost by it, a server
// goes on from there under its name, and what the archive has is verified with the rest.
TEST_F(JournalCareTest, WhatIsOldIsArchivedAndNothingIsLost) {
    const std::string site = live(folder, 40);
    const auto all = [&] {
        const auto journal = Journal::open_read_only(folder);
        EXPECT_TRUE(journal.ok());
        std::string text;
        EXPECT_TRUE((*journal)
                        ->read(0,
                               [&](const JournalRecord& record) -> Result<bool> {
                                   text += record.object + record.body + hex(record.hash) + "\n";
                                   return true;
                               })
                        .ok());
        return text;
    };
    const std::string before = all();
    const auto head = verify_journal(folder);
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(compact_journal(folder, 0).error().kind(), ErrorKind::not_found);
    const auto first = compact_journal(folder, 2'000'020);
    ASSERT_TRUE(first.ok()) << first.error().text();
    EXPECT_EQ(first->archive.first, 1u);
    EXPECT_EQ(first->archive.last, 22u);
    const auto second = compact_journal(folder, 9'000'000);
    ASSERT_TRUE(second.ok()) << second.error().text();
    EXPECT_EQ(second->archive.last, head->seq - 1) << "the newest stays";
    EXPECT_EQ(all(), before);
    auto verified = verify_journal(folder);
    ASSERT_TRUE(verified.ok()) << verified.error().text();
    EXPECT_EQ(verified->hash, head->hash);
    EXPECT_EQ(verified->archives.size(), 2u);
    {
        const auto journal = Journal::open_read_only(folder);
        EXPECT_EQ((*journal)->numbers_of("run/r-1", 0, 100).value(), std::vector<std::uint64_t>{2});
    }
    EXPECT_EQ(live(folder, 1), site);
    EXPECT_EQ(runs, 41u);
    EXPECT_EQ(cut_journal(folder, 10).error().kind(), ErrorKind::invalid);

    // Moved to where it is kept: the rest is verified without it, and reading it says what is missing.
    fs::rename(first->archive.path, root + "/kept.db");
    verified = verify_journal(folder);
    ASSERT_TRUE(verified.ok()) << verified.error().text();
    EXPECT_EQ(verified->away.size(), 1u);
    EXPECT_EQ(live(folder, 1), site);
    {
        const auto journal = Journal::open_read_only(folder);
        const auto read = (*journal)->read(0, [](const JournalRecord&) -> Result<bool> { return true; });
        EXPECT_EQ(read.error().kind(), ErrorKind::not_found);
        EXPECT_NE(read.error().message().find("records-1-22.db"), std::string::npos) << read.error().message();
    }
    // An archive in which somebody changed something is no evidence.
    {
        const auto changed = Database::open(root + "/kept.db", {.create = false});
        ASSERT_TRUE((*changed)->execute("UPDATE journal SET actor = 'user/eve' WHERE seq = 7").ok());
    }
    fs::copy_file(root + "/kept.db", first->archive.path);
    verified = verify_journal(folder);
    ASSERT_FALSE(verified.ok());
    EXPECT_NE(verified.error().message().find("record 7"), std::string::npos) << verified.error().message();
}

// Whoever kills it in the middle finds everything where it was or where it belongs, and does it again.
TEST_F(JournalCareTest, CompactingMayBeKilledAtAnyPoint) {
    live(folder, 60);
    const auto head = verify_journal(folder);
    ASSERT_TRUE(head.ok());
    std::size_t killed = 0;
    for (int i = 0; i < 10; ++i) {
        fs::remove_all(root + "/hurt");
        fs::copy(folder, root + "/hurt");
        const pid_t child = ::fork();
        if (child == 0) {
            (void)compact_journal(root + "/hurt", 9'000'000).ok();
            ::_exit(0);
        }
        ASSERT_GT(child, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status) ? 1 : 0;
        const auto after = verify_journal(root + "/hurt");
        ASSERT_TRUE(after.ok()) << i << ": " << after.error().text();
        EXPECT_EQ(after->hash, head->hash) << i;
        EXPECT_TRUE(after->away.empty()) << i;
        const auto again = compact_journal(root + "/hurt", 9'000'000);
        EXPECT_TRUE(again.ok() || again.error().kind() == ErrorKind::not_found) << i << ": " << again.error().text();
        EXPECT_EQ(verify_journal(root + "/hurt")->hash, head->hash) << i;
    }
    RecordProperty("killed", static_cast<int>(killed));
}

}  // namespace
}  // namespace stoker
