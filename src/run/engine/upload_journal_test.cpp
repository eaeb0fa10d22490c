// The copy that is needed when everything else is gone: it must be whole, the newest, and make a server again.
#include "run/engine/upload_journal.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>

#include "run/engine/engine_testing.h"
#include "run/engine/journal_care.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using engine_testing::eventually;
using engine_testing::Rig;
using testing::HasSubstr;

TEST(UploadJournal, ACopyIsMadeBesideTheServerAndMakesAnEmptyOneKnowAgain) {
    Rig rig;
    rig.open();
    const std::string url = "file://" + rig.root + "/store";
    const RunId first = rig.submit(rig.script("true"));
    ASSERT_TRUE(rig.reaches(first, RunState::succeeded));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(upload_journal(rig.engine->folder(), url, 2));
    ASSERT_TRUE(rig.submit(rig.script("true")));
    const auto last = upload_journal(rig.engine->folder(), url, 2);
    ASSERT_TRUE(last) << last.error().text();
    const auto got = fetch_journal(url, rig.root + "/copy.db");
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->seq, last->seq);
    ASSERT_TRUE(restore_journal(rig.root + "/copy.db", rig.root + "/empty"));
    const auto offline = read_offline(rig.root + "/empty");
    ASSERT_TRUE(offline) << offline.error().text();
    EXPECT_NE(offline->state.find(first), nullptr);
    for (const auto& entry : fs::directory_iterator(rig.engine->folder()))
        EXPECT_FALSE(entry.path().filename().string().starts_with("backup-")) << entry.path();
}

TEST(UploadJournal, NothingAndTwoServersAreTold) {
    Rig rig;
    const std::string url = "file://" + rig.root + "/store";
    EXPECT_EQ(fetch_journal(url, rig.root + "/copy.db").error().kind(), ErrorKind::not_found);
    for (const char* site : {"aaaaa", "bbbbb"}) {
        fs::create_directories(rig.root + "/store/" + site);
        std::ofstream(rig.root + "/store/" + site + "/journal-20260101T000000Z-000000000001.json") << "{}";
    }
    const auto two = fetch_journal(url, rig.root + "/copy.db");
    ASSERT_FALSE(two.ok());
    EXPECT_THAT(two.error().text(), HasSubstr("/store/bbbbb"));
    EXPECT_FALSE(fetch_journal(url + "/aaaaa", rig.root + "/copy.db").ok()) << "a manifest that says nothing";
}

TEST(UploadJournal, TheyAreMadeByThemselvesAndFailuresAreCounted) {
    Rig rig;
    rig.open();
    std::atomic<int> told = 0;
    const auto tell = [&](const Result<StoredJournal>& stored) { told += stored ? 0 : 1; };
    const auto backups = Backups::start(
        {.folder = rig.engine->folder(), .to = "file://" + rig.root + "/store", .every_s = 0.01, .keep = 1});
    EXPECT_TRUE(eventually([&] { return backups->stats().made >= 3; }));
    std::ofstream(rig.root + "/file") << "in the way";
    const auto failing = Backups::start({.folder = rig.engine->folder(),
                                         .to = "file://" + rig.root + "/file/x",
                                         .every_s = 0.01,
                                         .keep = 1,
                                         .told = tell});
    EXPECT_TRUE(eventually([&] { return failing->stats().failed >= 2; }));
    EXPECT_GE(told, 2);
}

}  // namespace
}  // namespace stoker
