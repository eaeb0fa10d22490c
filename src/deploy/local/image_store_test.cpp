// An image that is taken for whole when half of it is there starts programs that fail strangely; one that is fetched
// for ever keeps its run waiting without a word.
#include "deploy/local/image_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "deploy/local/image_tools.h"
#include "io/files.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string pinned(char digit, const std::string& name = "reg.example:5000/team/box:v1") {
    return name + "@sha256:" + std::string(64, digit);
}

class ImageStoreTest : public ::testing::Test {
protected:
    void SetUp() override {
        root = fs::temp_directory_path() / "stoker-image-store-XXXXXX";
        ASSERT_NE(::mkdtemp(root.data()), nullptr);
    }
    void TearDown() override { fs::remove_all(root); }

    ImageStore::Options options() {
        return {.folder = root + "/images",
                .first_pause = 1ms,
                .ask = [](ImageName& name, Deadline) { return Manifest{.digest = name.digest, .bytes = 3'000'000}; },
                .fetch = [this](const ImageName&, const std::string& folder, const FetchProgress& progress,
                                Deadline) { return fetch(folder, progress); }};
    }
    Status fetch(const std::string& folder, const FetchProgress& progress) {
        ++fetches;
        progress.fetched(1'000'000);
        while (hold && !progress.stop()) std::this_thread::sleep_for(1ms);
        if (progress.stop()) return Error(ErrorKind::unavailable, "the server ends");
        if (problem) return *problem;
        fs::create_directories(folder + "/bundle/rootfs");
        std::ofstream(folder + "/bundle/config.json") << "{}";
        return done();
    }
    // Asked until it is no longer under way, or says `text`.
    static Outcome wait(ImageStore& store, const std::string& image, const std::string& text = "") {
        const auto end = std::chrono::steady_clock::now() + 20s;
        for (;;) {
            Outcome outcome = store.prepare(image);
            const bool said = !text.empty() && outcome.detail.find(text) != std::string::npos;
            if (said || outcome.certainty != Certainty::unknown || std::chrono::steady_clock::now() > end)
                return outcome;
            std::this_thread::sleep_for(1ms);
        }
    }

    std::string root;
    std::atomic<bool> hold = false;
    std::atomic<int> fetches = 0;
    std::optional<Error> problem;
};

TEST_F(ImageStoreTest, FetchesOnceAndSaysHowFarItIs) {
    hold = true;
    ImageStore store(options());
    EXPECT_EQ(store.bundle_of(pinned('a')), "");
    EXPECT_EQ(wait(store, pinned('a'), "1 MB").detail, "fetched 1 MB of 3 MB");
    EXPECT_EQ(store.bundle_of(pinned('a')), "");
    hold = false;
    EXPECT_EQ(wait(store, pinned('a')).certainty, Certainty::confirmed);
    EXPECT_EQ(store.bundle_of(pinned('a')), root + "/images/" + std::string(64, 'a'));
    // Another tag of the same manifest is the same image.
    EXPECT_EQ(store.prepare(pinned('a', "other.example/x:v2")).certainty, Certainty::confirmed);
    EXPECT_EQ(fetches, 1);
    // It is there before what it was fetched into is gone.
    const auto unfinished = [&] {
        return std::any_of(fs::directory_iterator(root + "/images"), {},
                           [](const auto& entry) { return entry.path().filename().string().starts_with("."); });
    };
    for (int i = 0; i < 20'000 && unfinished(); ++i) std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(unfinished());
}

TEST_F(ImageStoreTest, GivesUpWhatCannotBeHad) {
    problem = Error(ErrorKind::not_found, "there is no such image", {}, "look for its tag");
    ImageStore store(options());
    const Outcome outcome = wait(store, pinned('b'));
    EXPECT_EQ(outcome.certainty, Certainty::rejected);
    EXPECT_EQ(outcome.cause, Cause::user_error);
    EXPECT_EQ(outcome.detail, "there is no such image (look for its tag)");
    EXPECT_EQ(fetches, 1);

    problem = Error(ErrorKind::unavailable, "the registry does not answer");
    {
        auto patient = options();
        patient.first_pause = 1h;
        ImageStore slow(std::move(patient));
        const Outcome later = wait(slow, pinned('c'), "try 2");
        EXPECT_EQ(later.certainty, Certainty::unknown);
        EXPECT_NE(later.detail.find("the registry does not answer"), std::string::npos) << later.detail;
    }
    fetches = 1;
    EXPECT_EQ(wait(store, pinned('c')).certainty, Certainty::rejected);
    EXPECT_EQ(fetches, 1 + 8);
}

TEST_F(ImageStoreTest, AServerThatEndsLeavesNoHalf) {
    hold = true;
    {
        ImageStore store(options());
        wait(store, pinned('d'), "1 MB");
    }
    // One that was killed leaves its folder, which the next removes.
    fs::create_directories(root + "/images/.fetch-" + std::string(64, 'd') + "/bundle/closed");
    fs::permissions(root + "/images/.fetch-" + std::string(64, 'd') + "/bundle/closed", fs::perms::none);
    hold = false;
    ImageStore store(options());
    store.remove_leftovers();
    EXPECT_TRUE(fs::is_empty(root + "/images"));
    EXPECT_EQ(store.bundle_of(pinned('d')), "");
}

TEST_F(ImageStoreTest, TheLeastUsedGo) {
    auto small = options();
    small.max_images = 2;
    ImageStore store(std::move(small));
    for (const char digit : {'1', '2', '3'}) {
        ASSERT_EQ(wait(store, pinned(digit)).certainty, Certainty::confirmed);
        // Later than the one before, whatever the clock of the file system shows.
        fs::last_write_time(store.bundle_of(pinned(digit)),
                            fs::file_time_type::clock::now() - 1h + (digit - '0') * 1min);
    }
    store.tidy({store.bundle_of(pinned('1'))});  // it runs
    EXPECT_NE(store.bundle_of(pinned('1')), "");
    EXPECT_EQ(store.bundle_of(pinned('2')), "");
    EXPECT_NE(store.bundle_of(pinned('3')), "");
}

TEST(ImageTools, ComplaintsBecomeErrors) {
    const ImageName name{.transport = "docker", .place = "reg.example/x", .tag = "v1", .digest = {}};
    const std::pair<const char*, ErrorKind> rows[] = {
        {"reading manifest v1 in reg.example/x: manifest unknown: manifest unknown", ErrorKind::not_found},
        {"reading manifest v1 in reg.example/x: name unknown: repository name not known", ErrorKind::not_found},
        {"reading manifest v1 in reg.example/x: requested access to the resource is denied", ErrorKind::denied},
        {"unable to retrieve auth token: invalid username/password: unauthorized: authentication required",
         ErrorKind::denied},
        {"pinging container registry reg.example: Get \\\"https://reg.example/v2/\\\": dial tcp: lookup reg.example on "
         "10.0.0.1:53: no such host",
         ErrorKind::unavailable},
        {"pinging container registry x: Get \\\"http://127.0.0.1:1/v2/\\\": dial tcp 127.0.0.1:1: connect: connection "
         "refused",
         ErrorKind::unavailable},
        {"pinging container registry x: Get \\\"https://x/v2/\\\": x509: certificate signed by unknown authority",
         ErrorKind::denied},
        {"writing blob: write /x: no space left on device", ErrorKind::exhausted},
        {"something else", ErrorKind::unavailable},
    };
    for (const auto& [said, kind] : rows) {
        const Error error = error_of_tool(name, std::string("time=\"2026-11-21T23:14:11Z\" level=fatal msg=\"Error "
                                                            "parsing image name \\\"docker://reg.example/x:v1\\\": ") +
                                                    said + "\"\n");
        EXPECT_EQ(error.kind(), kind) << said << " -> " << error.text();
        EXPECT_NE(error.message().find("reg.example/x:v1"), std::string::npos);
        EXPECT_EQ(error.message().find("parsing image name"), std::string::npos) << error.message();
    }
}

// Nodes may reach registries and have logins that this machine has not: what cannot be asked from here refuses no run.
TEST(ImageOfNodes, StaysAsItIsWrittenWhereItCannotBeAsked) {
    const auto by = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    const std::string pinned = "registry.example/team/box:v1@sha256:" + std::string(64, 'a');
    const auto same = pin_image_of_nodes(pinned, by);
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, pinned) << "and no registry is asked";
    for (const char* image : {"127.0.0.1:1/team/box:v1", "/data/bundle", "oci-archive:/data/image.tar"}) {
        const auto asked = pin_image_of_nodes(image, by);
        ASSERT_FALSE(asked.ok()) << image;
        EXPECT_EQ(asked.error().kind(), ErrorKind::unsupported) << asked.error().message();
        EXPECT_NE(asked.error().message().find("stays as it is written"), std::string::npos) << asked.error().message();
    }
}

}  // namespace
}  // namespace stoker
