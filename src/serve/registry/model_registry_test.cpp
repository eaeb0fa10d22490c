// A model that comes back as something else answers nonsense, and one that is sent anew from its beginning after every
// broken connection never arrives.
#include "serve/registry/model_registry.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/codec.h"
#include "base/random.h"
#include "io/files.h"
#include "io/sha256.h"
#include "serve/registry/weights_cache.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A folder as a store that counts, and fails when it is told to.
class Watched final : public ObjectStore {
public:
    struct Seen {
        std::atomic<int> chunks_put{0}, chunks_got{0}, fail_after_puts{-1}, fail_after_gets{-1};
        std::function<void(const std::string& key)> on_put;
    };
    Watched(std::unique_ptr<ObjectStore> under, std::shared_ptr<Seen> seen)
        : under_(std::move(under)), seen_(std::move(seen)) {}
    Result<ObjectInfo> put_file(const std::string& key, const std::string& path,
                                const TransferOptions& options) override {
        return under_->put_file(key, path, options);
    }
    Status put_text(const std::string& key, std::string text, const TransferOptions& options) override {
        if (seen_->on_put) seen_->on_put(key);
        if (key.starts_with("chunks/")) {
            if (seen_->fail_after_puts >= 0 && seen_->chunks_put >= seen_->fail_after_puts)
                return Error(ErrorKind::unavailable, "the connection broke");
            ++seen_->chunks_put;
        }
        return under_->put_text(key, std::move(text), options);
    }
    Result<ObjectInfo> get_file(const std::string& key, const std::string& path, const std::string& sum,
                                const TransferOptions& options) override {
        return under_->get_file(key, path, sum, options);
    }
    Result<std::string> get_text(const std::string& key, std::size_t most, const TransferOptions& options) override {
        if (key.starts_with("chunks/")) {
            if (seen_->fail_after_gets >= 0 && seen_->chunks_got >= seen_->fail_after_gets)
                return Error(ErrorKind::unavailable, "the connection broke");
            ++seen_->chunks_got;
        }
        return under_->get_text(key, most, options);
    }
    Result<ObjectInfo> head(const std::string& key) override { return under_->head(key); }
    Status list(const std::string& prefix, const std::function<bool(const ObjectInfo&)>& each,
                const TransferOptions& options) override {
        return under_->list(prefix, each, options);
    }
    Status remove(const std::string& key) override { return under_->remove(key); }
    std::string url_of(std::string_view key) const override { return under_->url_of(key); }

private:
    std::unique_ptr<ObjectStore> under_;
    std::shared_ptr<Seen> seen_;
};

// A file of safetensors with one tensor of `bytes` random bytes.
std::string weights(std::uint64_t seed, std::size_t bytes) {
    const std::string header = R"({"x":{"dtype":"U8","shape":[)" + std::to_string(bytes) + R"(],"data_offsets":[0,)" +
                               std::to_string(bytes) + "]}}";
    std::string file(8, '\0');
    const std::uint64_t size = header.size();
    std::memcpy(file.data(), &size, 8);
    file += header;
    SplitMix random(seed);
    for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(random.below(256));
    return file;
}

class Registry : public testing::Test {
protected:
    static constexpr std::int64_t kChunk = 1000;
    ScratchFolder scratch = ScratchFolder::make("registry").value();
    std::shared_ptr<Watched::Seen> seen = std::make_shared<Watched::Seen>();

    std::string at(const std::string& path) const { return scratch.path() + "/" + path; }
    void write(const std::string& path, const std::string& text) const {
        fs::create_directories(fs::path(at(path)).parent_path());
        std::ofstream(at(path), std::ios::binary) << text;
    }
    ModelRegistry registry() const {
        auto store = ObjectStore::open(read_object_url("file://" + at("store")).value());
        return ModelRegistry(std::make_unique<Watched>(std::move(store).value(), seen), kChunk);
    }
    void folder(const std::string& name, std::uint64_t seed, std::size_t bytes = 10'500) const {
        write(name + "/model.safetensors", weights(seed, bytes));
        write(name + "/config.json", "{}");
        write(name + "/sub/empty.txt", "");
    }
    Result<ModelPushed> push(const std::string& name, const std::string& path,
                             const ModelTransfer& transfer = {}) const {
        return registry().push(name, {at(path)}, "", transfer);
    }
    std::size_t chunks_there() const {
        std::size_t n = 0;
        for (const auto& each : fs::recursive_directory_iterator(at("store/chunks"))) n += each.is_regular_file();
        return n;
    }
    std::string said(const Result<ModelPushed>& result) const { return result ? "pushed" : result.error().text(); }
};

TEST_F(Registry, RefsAreANameAndPerhapsAVersion) {
    EXPECT_EQ(read_model_ref("llama-3-8b")->version, 0);
    EXPECT_EQ(read_model_ref("llama-3-8b@12")->version, 12);
    EXPECT_EQ(read_model_ref("llama@latest")->version, 0);
    for (const char* bad : {"", "@1", "a@0", "a@x", "a@1@2", "A", "../a", "a/b", "-a", "a@9999999", "a@-1"})
        EXPECT_FALSE(read_model_ref(bad)) << bad;
}

TEST_F(Registry, WhatIsPushedComesBackByteForByte) {
    SplitMix random(7);
    for (int round = 0; round < 20; ++round) {
        // Around the borders of chunks.
        const std::size_t bytes = round < 4 ? 3000 + static_cast<std::size_t>(round) - 62 : 1 + random.below(9000);
        folder("in", static_cast<std::uint64_t>(round), bytes);
        const auto pushed = push("m" + std::to_string(round), "in");
        ASSERT_TRUE(pushed) << pushed.error().text();
        const std::string out = at("out" + std::to_string(round));
        auto from = registry();
        const auto found = from.find({"m" + std::to_string(round), 0});
        ASSERT_TRUE(found);
        EXPECT_EQ(codec::encode(*found), codec::encode(pushed->version));
        ASSERT_TRUE(from.fetch(*found, out, {}));
        for (const char* file : {"/model.safetensors", "/config.json", "/sub/empty.txt"})
            EXPECT_EQ(*read_file(out + file, 1 << 20), *read_file(at("in") + file, 1 << 20)) << round << file;
        EXPECT_FALSE(fs::exists(out + ".part"));
    }
}

TEST_F(Registry, APushThatWasCutOffSendsOnlyWhatIsMissing) {
    folder("in", 1);
    seen->fail_after_puts = 5;
    const auto cut = push("a", "in", {.stop = nullptr, .progress = nullptr, .parallel = 1});
    EXPECT_THAT(said(cut), HasSubstr("the connection broke"));
    EXPECT_THAT(registry().find({"a", 0}).error().text(), HasSubstr("has no model a"));  // no version that is not whole
    seen->fail_after_puts = -1;
    const auto pushed = push("a", "in");
    ASSERT_TRUE(pushed) << pushed.error().text();
    EXPECT_EQ(seen->chunks_put, static_cast<int>(chunks_there()));
    EXPECT_EQ(pushed->shared_bytes, 2 + 4 * kChunk);  // config.json comes first
    EXPECT_EQ(pushed->sent_bytes + pushed->shared_bytes, pushed->version.bytes);
}

TEST_F(Registry, VersionsShareTheirChunksAndTheSameBytesAreNoNewVersion) {
    folder("in", 1);
    ASSERT_TRUE(push("a", "in"));
    const auto again = push("a", "in");
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->was_there);
    EXPECT_EQ(again->version.version, 1);
    const std::size_t before = chunks_there();
    write("in/config.json", R"({"changed": true})");
    const auto second = push("a", "in");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->version.ref(), "a@2");
    EXPECT_EQ(chunks_there(), before + 1);
}

TEST_F(Registry, AFetchThatWasCutOffGoesOn) {
    folder("in", 1);
    const auto pushed = push("a", "in");
    seen->fail_after_gets = 6;
    EXPECT_FALSE(registry().fetch(pushed->version, at("out"), {}));
    EXPECT_FALSE(fs::exists(at("out")));
    const int came = seen->chunks_got;
    seen->fail_after_gets = -1;
    ASSERT_TRUE(registry().fetch(pushed->version, at("out"), {}));
    // A tail of a file that did not come yet is zeros and is fetched; what came is not fetched again.
    EXPECT_EQ(seen->chunks_got - came, static_cast<int>(chunks_there()) - came);
    EXPECT_EQ(*read_file(at("out/model.safetensors"), 1 << 20), *read_file(at("in/model.safetensors"), 1 << 20));
}

TEST_F(Registry, DamageInTheStoreIsFoundAndNeverServed) {
    folder("in", 1);
    const auto pushed = push("a", "in");
    std::vector<std::string> chunks;
    for (const auto& each : fs::recursive_directory_iterator(at("store/chunks")))
        if (each.is_regular_file() && each.file_size() == kChunk) chunks.push_back(each.path().string());
    ASSERT_GE(chunks.size(), 2u);
    EXPECT_THAT(*registry().verify(pushed->version, {}), IsEmpty());
    {
        std::fstream file(chunks[0], std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(17);
        const char was = static_cast<char>(file.get());
        file.seekp(17);
        file.put(static_cast<char>(was ^ 1));
    }
    fs::remove(chunks[1]);
    const auto problems = registry().verify(pushed->version, {});
    ASSERT_TRUE(problems);
    EXPECT_EQ(problems->size(), 2u);
    const Status fetched = registry().fetch(pushed->version, at("out"), {});
    ASSERT_FALSE(fetched);
    EXPECT_FALSE(fs::exists(at("out")));
    // Pushed again, it is whole again: a chunk of another length or none is put, one of the same length is not looked
    // at.
    fs::remove(chunks[0]);
    write("in/config.json", "{ }");
    const auto mended = push("a", "in");
    ASSERT_TRUE(mended);
    EXPECT_TRUE(registry().fetch(mended->version, at("out"), {}));
}

TEST_F(Registry, AFileThatChangesWhileItIsPushedIsNoVersion) {
    folder("in", 1);
    bool first = true;
    seen->on_put = [&](const std::string& key) {
        if (key.starts_with("pushing/") && std::exchange(first, false))
            write("in/model.safetensors", weights(2, 10'500));
    };
    EXPECT_THAT(said(push("a", "in")), HasSubstr("changed while it was being sent"));
    EXPECT_FALSE(registry().find({"a", 0}));
}

TEST_F(Registry, PushesAtOnceGetANumberEach) {
    constexpr int kPushers = 6;
    for (int i = 0; i < kPushers; ++i) folder("in" + std::to_string(i), static_cast<std::uint64_t>(i), 1500);
    std::vector<std::thread> threads;
    std::array<int, kPushers> numbers{};
    std::array<std::string, kPushers> errors;
    for (int i = 0; i < kPushers; ++i)
        threads.emplace_back([&, i] {
            const auto pushed = push("a", "in" + std::to_string(i));
            if (pushed)
                numbers[static_cast<std::size_t>(i)] = pushed->version.version;
            else
                errors[static_cast<std::size_t>(i)] = pushed.error().text();
        });
    for (std::thread& each : threads) each.join();
    EXPECT_THAT(errors, testing::Each(""));
    EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), static_cast<std::size_t>(kPushers));
    for (int i = 0; i < kPushers; ++i) {
        auto from = registry();
        const auto found = from.find({"a", numbers[static_cast<std::size_t>(i)]});
        ASSERT_TRUE(found) << found.error().text();
        const std::string out = at("out" + std::to_string(i));
        ASSERT_TRUE(from.fetch(*found, out, {}));
        EXPECT_EQ(*read_file(out + "/model.safetensors", 1 << 20), weights(static_cast<std::uint64_t>(i), 1500));
    }
}

TEST_F(Registry, ARemovedVersionTakesOnlyItsOwnChunksAndItsNumberIsGone) {
    folder("one", 1);
    folder("two", 2);
    const auto first = push("a", "one");
    const auto second = push("a", "two");
    ASSERT_TRUE(second);
    const std::size_t all = chunks_there();
    ASSERT_TRUE(registry().remove(second->version));
    const auto cleaned = registry().clean({});
    ASSERT_TRUE(cleaned) << cleaned.error().text();
    EXPECT_EQ(cleaned->chunks, 11);  // config.json is of both
    EXPECT_EQ(chunks_there(), all - 11);
    EXPECT_THAT(*registry().verify(first->version, {}), IsEmpty());
    EXPECT_EQ(push("a", "two")->version.ref(), "a@3");
    EXPECT_THAT(*registry().versions("a"), ElementsAre(1, 3));
    EXPECT_THAT(registry().find({"a", 2}).error().text(), HasSubstr("no version 2"));
    for (const int version : {1, 3}) ASSERT_TRUE(registry().remove(*registry().find({"a", version})));
    EXPECT_THAT(*registry().names(), IsEmpty());
}

TEST_F(Registry, NothingIsCleanedBesideAPushAndNothingPushedBesideACleaning) {
    folder("in", 1);
    std::string beside;
    seen->on_put = [&](const std::string& key) {
        if (key.starts_with("models/a/") && beside.empty()) {
            const auto cleaned = registry().clean({});
            beside = cleaned ? "cleaned" : cleaned.error().text();
        }
    };
    ASSERT_TRUE(push("a", "in"));
    EXPECT_THAT(beside, HasSubstr("a is being pushed by"));
    EXPECT_FALSE(fs::exists(at("store/cleaning.json")));
    seen->on_put = nullptr;
    // Whoever cleans and is killed leaves a sign, which the next cleaning takes away.
    write("store/cleaning.json", "{}");
    folder("other", 5);
    EXPECT_THAT(said(push("b", "other")), HasSubstr("are being removed just now"));
    EXPECT_TRUE(!fs::exists(at("store/pushing")) || fs::is_empty(at("store/pushing")));
    ASSERT_TRUE(registry().clean({}));
    EXPECT_TRUE(push("b", "other"));
}

TEST_F(Registry, WhatCannotBeServedIsRefusedBeforeAnythingIsSent) {
    const auto refused = [&](const char* what) {
        const auto pushed = push("a", "in");
        EXPECT_THAT(said(pushed), HasSubstr(what));
        EXPECT_FALSE(fs::exists(at("store")));
        fs::remove_all(at("in"));
    };
    write("in/readme.md", "no weights");
    refused("there are no weights");
    folder("in", 1);
    write("in/pytorch_model.bin", "PK");
    refused("pickle");
    folder("in", 1);
    write("in/model.safetensors", weights(1, 1000).substr(0, 900));
    refused("model.safetensors");
    write("in/model-00001-of-00003.safetensors", weights(1, 100));
    write("in/model-00003-of-00003.safetensors", weights(3, 100));
    refused("part 2 of 3 is missing");
    folder("in", 1);
    write("in/model.safetensors.index.json", R"({"weight_map": {"x": "model-2.safetensors"}})");
    refused("model-2.safetensors is missing");
    folder("in", 1);
    write("in/consolidated.safetensors", weights(1, 100));
    refused("second copy");
    EXPECT_THAT(said(push("a", "nowhere")), HasSubstr("is not there"));
    EXPECT_THAT(said(push("A b", "in")), HasSubstr("no name of a model"));
}

TEST_F(Registry, AVersionThatLiesAboutItselfIsNotRead) {
    folder("in", 1);
    const ModelVersion good = push("a", "in")->version;
    const auto problem = [](const ModelVersion& version) {
        const auto read = read_model_version(codec::encode(version), "it");
        return read ? std::string("read") : read.error().text();
    };
    EXPECT_EQ(problem(good), "read");
    const auto changed = [&](const std::function<void(ModelVersion&)>& change) {
        ModelVersion bad = good;
        change(bad);
        return problem(bad);
    };
    EXPECT_THAT(changed([](auto& v) { v.files[0].path = "../../etc/passwd"; }), HasSubstr("lies outside"));
    EXPECT_THAT(changed([](auto& v) { v.files[0].path = "/etc/passwd"; }), HasSubstr("lies outside"));
    EXPECT_THAT(changed([](auto& v) { v.files[0].path = v.files[1].path; }), HasSubstr("twice"));
    EXPECT_THAT(changed([](auto& v) {
                    v.files[1].bytes += 1;
                    v.bytes += 1;
                }),
                testing::Not("read"));
    EXPECT_THAT(changed([](auto& v) { v.files[1].chunks[0] = "../x"; }), HasSubstr("no digest"));
    EXPECT_THAT(changed([](auto& v) { v.files[1].chunks.pop_back(); }), HasSubstr("do not add up"));
    EXPECT_THAT(changed([](auto& v) { v.files[1].chunks[0].swap(v.files[1].chunks[1]); }),
                HasSubstr("not of its files"));
    EXPECT_THAT(changed([](auto& v) { v.chunk_bytes = 0; }), HasSubstr("no sane size"));
    EXPECT_THAT(changed([](auto& v) { v.format = 2; }), HasSubstr("knows 1"));
}

TEST_F(Registry, ACacheFetchesOnceAndKeepsWhatIsInUse) {
    std::vector<ModelVersion> versions;
    for (int i = 0; i < 4; ++i) {
        folder("in" + std::to_string(i), static_cast<std::uint64_t>(i), 10'000);
        versions.push_back(push("m" + std::to_string(i), "in" + std::to_string(i))->version);
    }
    // Of several at once one fetches, the others wait for it.
    std::vector<std::thread> threads;
    std::atomic<int> held{0}, there{0};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            auto from = registry();
            auto one = WeightsCache::open(at("cache"), 25'000)->hold(from, versions[0], {});
            if (one && fs::exists(one->folder + "/model.safetensors")) ++held;
            if (one && one->was_there) ++there;
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(held, 4);
    EXPECT_EQ(seen->chunks_got, 12);  // of one fetch: 11 of the weights, config.json
    auto cache = WeightsCache::open(at("cache"), 25'000).value();
    auto from = registry();
    {
        const auto zero = cache.hold(from, versions[0], {});
        ASSERT_TRUE(zero);
        EXPECT_TRUE(cache.list()->front().in_use);
        const auto one = cache.hold(from, versions[1], {});
        ASSERT_TRUE(one) << one.error().text();
        // Both are in use, and a third one has no room.
        const auto two = cache.hold(from, versions[2], {});
        ASSERT_FALSE(two);
        EXPECT_THAT(two.error().text(), HasSubstr("there is no room for m2@1"));
        EXPECT_TRUE(fs::exists(zero->folder + "/model.safetensors"));
        EXPECT_TRUE(fs::exists(one->folder + "/model.safetensors"));
    }
    // The longest unused one goes.
    EXPECT_TRUE(cache.hold(from, versions[0], {}));
    const auto two = cache.hold(from, versions[2], {});
    ASSERT_TRUE(two) << two.error().text();
    EXPECT_THAT(two->removed, ElementsAre("m1@1"));
    EXPECT_FALSE(two->was_there);
    EXPECT_EQ(cache.list()->size(), 2u);
    // More than all of the cache.
    auto small = WeightsCache::open(at("small"), 5'000).value();
    EXPECT_THAT(small.hold(from, versions[0], {}).error().text(), HasSubstr("all of"));
}

TEST_F(Registry, AServerIsGivenAFileOrAFolder) {
    ModelVersion version;
    version.header.format = WeightsFormat::gguf;
    version.files = {{.path = "m-00001-of-00002.gguf"}, {.path = "m-00002-of-00002.gguf"}, {.path = "readme"}};
    EXPECT_EQ(served_path(version, "/c"), "/c/m-00001-of-00002.gguf");
    version.header.format = WeightsFormat::safetensors;
    version.files = {{.path = "config.json"}, {.path = "model.safetensors"}};
    EXPECT_EQ(served_path(version, "/c"), "/c");
    version.files = {{.path = "snap/config.json"}, {.path = "snap/model.safetensors"}};
    EXPECT_EQ(served_path(version, "/c"), "/c/snap");
}

}  // namespace
}  // namespace stoker
