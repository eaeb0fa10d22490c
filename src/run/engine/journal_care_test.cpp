#include "run/engine/journal_care.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "io/files.h"
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

}  // namespace
}  // namespace stoker
