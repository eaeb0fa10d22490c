// A checkpoint that was cut off, changed or damaged on its way must never be taken for one: what is restored is what
// was uploaded, whole, or nothing.
#include "run/engine/upload_manifest.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/codec.h"
#include "deploy/local/checkpoint_files.h"
#include "io/files.h"
#include "io/sha256.h"
#include "run/engine/checkpoints.h"
#include "run/spec/upload_policy.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class UploadManifestTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "stoker-upload-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        url_ = "file://" + root_ + "/store/run";
        store_ = ObjectStore::open(read_object_url(url_).value()).value();
    }
    void TearDown() override { fs::remove_all(root_); }

    std::string checkpoint(int step, const std::string& text, const std::string& said = {}) {
        const std::string folder = root_ + "/local/step-" + std::to_string(step);
        fs::create_directories(folder + "/sub");
        write(folder + "/sub/rank-0.pt", text);
        write(folder + "/manifest.json", R"({"files":[{"name":"sub/rank-0.pt","size":)" + std::to_string(text.size()) +
                                             R"(,"sha256":")" + (said.empty() ? hex(sha256(text)) : said) +
                                             R"("}],"step":)" + std::to_string(step) + "}");
        return folder;
    }
    static void write(const std::string& path, const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
    }
    Status upload(int step, const std::string& folder) {
        const auto sent = upload_checkpoint(*store_, folder, {.step = step, .run = "r-1", .site = "aaaaa"}, {});
        return sent ? done() : Status(sent.error());
    }
    Result<std::optional<Restored>> restore() { return restore_checkpoint({url_}, target(), {}, {}); }
    std::string target() const { return root_ + "/restored"; }
    std::string in_store(const std::string& key) const { return root_ + "/store/run/" + key; }
    std::vector<std::string> keys() {
        std::vector<std::string> all;
        EXPECT_TRUE(store_->list("", [&](const ObjectInfo& item) {
            all.push_back(item.key);
            return true;
        }));
        return all;
    }

    std::int64_t newest_there() const { return view_of_checkpoints(*list_checkpoint_files(target())).step; }

    std::string root_, url_;
    std::unique_ptr<ObjectStore> store_;
};

TEST_F(UploadManifestTest, WhatWasUploadedIsACheckpointAgain) {
    ASSERT_TRUE(upload(10, checkpoint(10, "ten")));
    ASSERT_TRUE(upload(20, checkpoint(20, "twenty")));
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().text();
    ASSERT_TRUE(*restored);
    EXPECT_EQ((*restored)->name, "step-20");
    EXPECT_EQ(newest_there(), 20);
    EXPECT_EQ(read_file(target() + "/step-20/sub/rank-0.pt", 100).value(), "twenty");
}

TEST_F(UploadManifestTest, WithoutItsManifestThereIsNoCheckpoint) {
    ASSERT_TRUE(upload(10, checkpoint(10, "ten")));
    ASSERT_TRUE(upload(20, checkpoint(20, "twenty")));
    fs::remove(in_store("complete/step-20.json"));
    EXPECT_EQ((*restore())->name, "step-10");
    fs::remove(in_store("complete/step-10.json"));
    fs::remove_all(target());
    const auto none = restore();
    ASSERT_TRUE(none);
    EXPECT_FALSE(*none);
    EXPECT_FALSE(fs::exists(target()));
}

TEST_F(UploadManifestTest, ADamagedOneFallsBackToTheOneBeforeAndSaysSo) {
    ASSERT_TRUE(upload(10, checkpoint(10, "ten")));
    ASSERT_TRUE(upload(20, checkpoint(20, "twenty")));
    write(in_store("step-20/sub/rank-0.pt"), "twenTy");
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().text();
    EXPECT_EQ((*restored)->name, "step-10");
    EXPECT_THAT((*restored)->passed_over, HasSubstr("step-20"));
    EXPECT_FALSE(fs::exists(target() + "/step-20"));
    write(in_store("step-10/sub/rank-0.pt"), "tEn");
    fs::remove_all(target());
    EXPECT_EQ(restore().error().kind(), ErrorKind::conflict);
}

TEST_F(UploadManifestTest, ARestoreThatWasKilledGoesOn) {
    ASSERT_TRUE(upload(20, checkpoint(20, "twenty")));
    // One file was there, of another the first half.
    fs::create_directories(target() + "/step-20.tmp/sub");
    fs::copy_file(in_store("step-20/manifest.json"), target() + "/step-20.tmp/manifest.json");
    write(target() + "/step-20.tmp/sub/rank-0.pt.part", "twe");
    ASSERT_TRUE(restore());
    EXPECT_EQ(newest_there(), 20);
    EXPECT_FALSE(fs::exists(target() + "/step-20/sub/rank-0.pt.part"));
}

TEST_F(UploadManifestTest, WhatItsOwnManifestContradictsIsNotStored) {
    const auto damaged = upload(10, checkpoint(10, "ten", std::string(64, 'a')));
    ASSERT_FALSE(damaged.ok());
    EXPECT_THAT(damaged.error().text(), HasSubstr("is damaged"));
    EXPECT_THAT(*list_stored(*store_), IsEmpty());
}

TEST_F(UploadManifestTest, RetentionKeepsTheNewestAndRemovesWhatWasCutOff) {
    for (const int step : {10, 20, 30, 40}) ASSERT_TRUE(upload(step, checkpoint(step, "text")));
    fs::remove(in_store("complete/step-30.json"));  // cut off
    write(root_ + "/x", "x");
    ASSERT_TRUE(store_->put_file("step-50/rank-0.pt", root_ + "/x"));  // under way
    ASSERT_TRUE(prune_stored(*store_, 2));
    EXPECT_THAT(keys(), ElementsAre("complete/step-20.json", "complete/step-40.json", "step-20/manifest.json",
                                    "step-20/sub/rank-0.pt", "step-40/manifest.json", "step-40/sub/rank-0.pt",
                                    "step-50/rank-0.pt"));
    ASSERT_TRUE(prune_stored(*store_, 0));
    ASSERT_EQ(list_stored(*store_)->size(), 1u);
    EXPECT_EQ(list_stored(*store_)->front().step, 40);
}

TEST_F(UploadManifestTest, AManifestThatLeadsOutsideIsRefused) {
    const StoredManifest good{.name = "step-1", .step = 1, .bytes = 1, .files = {{"a", 1, std::string(64, '0')}}};
    EXPECT_TRUE(read_stored_manifest(codec::encode(good), "m"));
    for (const char* name : {"../a", "/a", "", "a//b", "a/..", "a\\b"}) {
        StoredManifest bad = good;
        bad.files[0].name = name;
        EXPECT_FALSE(read_stored_manifest(codec::encode(bad), "m").ok()) << name;
    }
    for (const auto& change : std::vector<std::function<void(StoredManifest&)>>{
             [](auto& m) { m.format = 2; }, [](auto& m) { m.name = "step-2"; }, [](auto& m) { m.name = "../step-1"; },
             [](auto& m) { m.bytes = 2; }, [](auto& m) { m.files.clear(); },
             [](auto& m) { m.files[0].sha256 = "x"; }}) {
        StoredManifest bad = good;
        change(bad);
        EXPECT_FALSE(read_stored_manifest(codec::encode(bad), "m").ok());
    }
    EXPECT_FALSE(read_stored_manifest("{\"files\": 7", "m").ok());
}

TEST_F(UploadManifestTest, AUrlAboveTheRunIsToldWithTheRunBelow) {
    ASSERT_TRUE(upload(10, checkpoint(10, "ten")));
    const auto above = restore_checkpoint({"file://" + root_ + "/store"}, target(), {}, {});
    ASSERT_FALSE(above.ok());
    EXPECT_THAT(above.error().text(), HasSubstr(url_));
}

TEST(UploadProblems, AreToldTogetherBeforeAnythingRuns) {
    CheckpointPolicy policy{.folder = "c"};
    policy.upload = UploadPolicy{.to = "gs://x", .keep = 0, .every = 0, .tier = "archive"};
    policy.restore_from = "nowhere";
    EXPECT_EQ(problems_of_store(policy).size(), 5u);
    policy.upload = UploadPolicy{.to = "s3://bucket/x", .tier = "STANDARD_IA"};
    policy.restore_from = "file:///x";
    EXPECT_THAT(problems_of_store(policy), IsEmpty());
}

}  // namespace
}  // namespace stoker
