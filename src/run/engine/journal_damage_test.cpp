// Damage to a journal's files, at random and without mercy: a start either refuses or knows everything.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "io/files.h"
#include "run/core/core.h"
#include "run/engine/journal_care.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// What a start makes of a folder: the digest of what it knows, or nothing when it refuses.
struct Start {
    std::string digest, refusal;
};
Start start(const std::string& folder) {
    auto journal = Journal::open(folder, {});
    if (!journal) return {.digest = "", .refusal = journal.error().text()};
    State state;
    if (const auto loaded = load_state(**journal, state); !loaded)
        return {.digest = "", .refusal = loaded.error().text()};
    return {.digest = digest(state), .refusal = ""};
}

class JournalDamageTest : public ::testing::Test {
protected:
    JournalDamageTest() {
        std::string name = fs::temp_directory_path() / "stoker-damage-XXXXXX";
        root = ::mkdtemp(name.data());
        auto journal = Journal::open(root + "/live", {});
        EXPECT_TRUE(journal.ok()) << journal.error().text();
        auto core = Core::open(**journal, {.site = "abcde", .log_root = root, .snapshot_every = 40}, 1'000'000);
        EXPECT_TRUE(core.ok());
        RunSpec spec;
        spec.name = "job";
        spec.command = {"true"};
        const auto submit = [&](int count) {
            for (int i = 0; i < count; ++i) {
                const Command command{.what = Submit{.spec = spec}};
                EXPECT_TRUE((*core)->turn(std::span(&command, 1), 2'000'000 + i).ok());
            }
        };
        submit(30);
        copy("live", "older");
        submit(60);
        copy("live", "killed");  // as kill -9 leaves it, with everything in the log
        expected["killed"] = digest((*core)->state());
        core->reset();
        journal->reset();
        copy("live", "closed");
        expected["closed"] = expected["killed"];
    }
    ~JournalDamageTest() override { fs::remove_all(root); }

    void copy(const std::string& from, const std::string& to) const {
        fs::remove_all(root + "/" + to);
        fs::copy(root + "/" + from, root + "/" + to);
        fs::remove(root + "/" + to + "/lock");
    }

    // Does it to a copy of `image`, and looks.
    void damage(const std::string& image, const std::string& what, const std::function<void(const std::string&)>& how) {
        copy(image, "hurt");
        const std::string folder = root + "/hurt";
        how(folder);
        const auto verified = verify_journal(folder);
        const Start found = start(folder);
        ++damages;
        if (found.refusal.empty()) {
            EXPECT_EQ(found.digest, expected.at(image)) << "silent: " << what << " of " << image;
            return;
        }
        ++refused;
        EXPECT_FALSE(verified.ok()) << "verify says that all is well: " << what << " of " << image << ": "
                                    << found.refusal;
    }
    void change(const std::string& image, const std::string& file, const std::string& what,
                const std::function<void(std::string&)>& how) {
        damage(image, what + " of " + file, [&](const std::string& folder) {
            std::string bytes = bytes_of(folder + "/" + file);
            ASSERT_FALSE(bytes.empty()) << file;
            how(bytes);
            put_bytes(folder + "/" + file, bytes);
        });
    }

    std::string root;
    std::map<std::string, std::string> expected;
    int damages = 0, refused = 0;
};

TEST_F(JournalDamageTest, NoneIsSilent) {
    ASSERT_GT(fs::file_size(root + "/killed/stoker.db-wal"), 100'000u);
    damage("killed", "nothing", [](const std::string&) {});
    EXPECT_EQ(refused, 0);
    SplitMix random(7);
    const std::vector<std::pair<std::string, std::string>> files = {
        {"killed", "stoker.db-wal"}, {"killed", "stoker.db"}, {"closed", "stoker.db"}, {"killed", "journal-head"}};
    for (const auto& [image, file] : files) {
        const int times = file == "journal-head" ? 8 : 20;
        for (int i = 0; i < times; ++i) {
            change(image, file, "one bit", [&](std::string& bytes) {
                bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
            });
            change(image, file, "a cut", [&](std::string& bytes) { bytes.resize(random.below(bytes.size())); });
            change(image, file, "a zeroed page", [&](std::string& bytes) {
                const std::size_t page = random.below((bytes.size() + 4095) / 4096) * 4096;
                std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page),
                            std::min<std::size_t>(4096, bytes.size() - page), '\0');
            });
        }
    }
    // One file of several, and files of different times.
    const auto put = [&](const std::string& from, const std::string& file) {
        return [this, from, file](const std::string& folder) {
            fs::copy_file(root + "/" + from + "/" + file, folder + "/" + file, fs::copy_options::overwrite_existing);
        };
    };
    const auto remove = [](const std::string& file) {
        return [file](const std::string& folder) { fs::remove(folder + "/" + file); };
    };
    damage("killed", "no log", remove("stoker.db-wal"));
    damage("killed", "an empty log", [](const std::string& folder) { put_bytes(folder + "/stoker.db-wal", ""); });
    damage("killed", "stoker.db alone", [&](const std::string& folder) {
        remove("stoker.db-wal")(folder);
        remove("stoker.db-shm")(folder);
        remove("journal-head")(folder);
    });
    damage("killed", "no database", [&](const std::string& folder) {
        remove("stoker.db-wal")(folder);
        remove("stoker.db")(folder);
    });
    damage("closed", "no database", remove("stoker.db"));
    damage("closed", "an empty database", [](const std::string& folder) { put_bytes(folder + "/stoker.db", ""); });
    for (const char* image : {"killed", "closed"}) {
        damage(image, "an older log", put("older", "stoker.db-wal"));
        damage(image, "an older copy", [&](const std::string& folder) {
            put("older", "stoker.db")(folder);
            put("older", "stoker.db-wal")(folder);
            remove("stoker.db-shm")(folder);
        });
        damage(image, "an older database", put("older", "stoker.db"));
    }
    EXPECT_GE(damages, 160);
    EXPECT_GE(refused, 60);
    RecordProperty("damages", damages);
    RecordProperty("refused", refused);
}

// A copy of one file, with nothing beside it: what it lacks is not known, that it is no copy is.
TEST_F(JournalDamageTest, CopyOfOneFileIsRefusedAndAnOnlineCopyIsNot) {
    fs::create_directories(root + "/one");
    fs::copy_file(root + "/killed/stoker.db", root + "/one/stoker.db");
    EXPECT_NE(start(root + "/one").refusal.find("one file is no copy"), std::string::npos)
        << start(root + "/one").refusal;
    EXPECT_NE(verify_journal(root + "/one").error().text().find("stoker journal backup"), std::string::npos);
    EXPECT_FALSE(restore_journal(root + "/killed/stoker.db", root + "/restored").ok());
    auto live = Journal::open(root + "/killed", {});
    ASSERT_TRUE(live.ok());
    ASSERT_TRUE(back_up_journal(root + "/killed", root + "/copy.db").ok());
    EXPECT_TRUE(restore_journal(root + "/copy.db", root + "/restored").ok());
    // One that was closed is whole.
    EXPECT_TRUE(restore_journal(root + "/closed/stoker.db", root + "/whole").ok());
}

// A server that is killed between a commit and the head goes on; so does one of a Stoker that kept no head.
TEST_F(JournalDamageTest, AnOlderHeadRefusesNothing) {
    fs::copy_file(root + "/older/journal-head", root + "/killed/journal-head", fs::copy_options::overwrite_existing);
    EXPECT_EQ(start(root + "/killed").digest, expected["killed"]);
    fs::remove(root + "/closed/journal-head");
    EXPECT_EQ(start(root + "/closed").digest, expected["closed"]);
}

// Somebody who goes on with less says so, and from then on the journal is what it is.
TEST_F(JournalDamageTest, AnAcceptedLossIsTold) {
    fs::remove(root + "/killed/stoker.db-wal");
    EXPECT_FALSE(Journal::open(root + "/killed", {}).ok());
    {
        auto journal = Journal::open(root + "/killed", {.accept_loss = true});
        ASSERT_TRUE(journal.ok()) << journal.error().text();
        ASSERT_TRUE((*journal)->loss());
        EXPECT_EQ((*journal)->loss()->kept.runs, 90u);
        EXPECT_EQ((*journal)->loss()->kept.site, "abcde");
        // Nothing was written: the next one is refused as well.
    }
    EXPECT_FALSE(Journal::open(root + "/killed", {}).ok());
    {
        auto journal = Journal::open(root + "/killed", {.accept_loss = true});
        ASSERT_TRUE(Core::open(**journal, {.site = "fghij"}, 9'000'000).ok());
    }
    EXPECT_EQ(start(root + "/killed").refusal, "");
}

}  // namespace
}  // namespace stoker
