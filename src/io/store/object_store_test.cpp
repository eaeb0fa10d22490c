// A checkpoint that is torn on its way, or comes back as something else, is a training that is lost: each kind of store
// against a server that answers as its documentation says, and fails as real ones do.
#include "io/store/object_store.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "formats/xml_text.h"
#include "io/files.h"
#include "io/http/http_server.h"
#include "io/sha256.h"
#include "io/store/request_sign.h"

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// S3 and Azure Blob on one port, one bucket "box", no signatures checked (the real ones do that, in tests/e2e).
class FakeStore {
public:
    FakeStore() {
        auto server = HttpServer::start({.max_body_bytes = 1 << 20}, [this](HttpRequest request, HttpReply reply) {
            answer(request, std::move(reply));
        });
        server_ = std::move(server).value();
    }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

    std::mutex mutex;
    std::map<std::string, std::string> objects;
    std::map<std::string, std::map<std::string, std::string>> uploads;  // by key: the parts
    int failures = 0;                                                   // so many requests are answered 503 first
    std::string retry_after;                                            // with them
    int refuse = 0;       // this status, with an error of S3, to everything
    std::string cut_key;  // its next download ends after half
    std::function<void(int)> on_part;
    std::vector<std::string> seen;  // "GET /box/a" and the Range
    std::string tier;

private:
    static HttpResponse fault(int status, std::string_view code) {
        return {.status = status,
                .content_type = "application/xml",
                .headers = {},
                .body = "<?xml version=\"1.0\"?><Error><Code>" + std::string(code) +
                        "</Code><Message>it says so</Message></Error>"};
    }
    static std::string etag(const std::string& body) { return "\"" + hex(md5(body)) + "\""; }

    void answer(const HttpRequest& request, HttpReply reply) {
        const std::lock_guard guard(mutex);
        seen.push_back(request.method + " " + request.path + " " +
                       std::string(request.headers.find("range").value_or("")));
        if (refuse != 0) return reply.send(fault(refuse, refuse == 403 ? "AccessDenied" : "Refused"));
        if (failures > 0) {
            --failures;
            HttpResponse busy = fault(503, "SlowDown");
            if (!retry_after.empty()) busy.headers.add("Retry-After", retry_after);
            return reply.send(std::move(busy));
        }
        if (const auto sum = request.headers.find("content-md5"); sum && *sum != base64(md5(request.body)))
            return reply.send(fault(400, "Md5Mismatch"));
        if (const auto sum = request.headers.find("x-amz-content-sha256"); sum && *sum != hex(sha256(request.body)))
            return reply.send(fault(400, "XAmzContentSHA256Mismatch"));
        if (request.method == "GET" &&
            (request.parameter("list-type") || request.parameter("comp") || request.parameter("uploads")))
            return reply.send(list(request));
        const std::string key = request.path.substr(std::string("/box/").size());
        if (request.method == "PUT" || request.method == "POST") return reply.send(store(request, key));
        const auto found = objects.find(key);
        if (found == objects.end()) return reply.send(fault(404, "NoSuchKey"));
        if (request.method == "DELETE") {
            objects.erase(found);
            return reply.send({.status = 204});
        }
        send(request, key, found->second, std::move(reply));
    }

    void send(const HttpRequest& request, const std::string& key, const std::string& body, HttpReply reply) {
        HttpResponse response{.status = 200, .content_type = "application/octet-stream", .headers = {}, .body = body};
        response.headers.add("ETag", etag(body));
        if (const auto match = request.headers.find("if-match"); match && *match != etag(body))
            return reply.send(fault(412, "PreconditionFailed"));
        if (const auto range = request.headers.find("range")) {
            response.status = 206;
            response.body = body.substr(std::stoul(std::string(range->substr(6))));
        }
        if (request.method == "HEAD" || key != cut_key) return reply.send(std::move(response));
        cut_key.clear();
        const std::string half = response.body.substr(0, response.body.size() / 2);
        response.body.clear();
        const auto stream = reply.stream(std::move(response));
        stream->write(half);
        stream->close();
    }

    HttpResponse store(const HttpRequest& request, const std::string& key) {
        HttpResponse ok{.status = 201};
        tier = std::string(request.headers.find("x-amz-storage-class")
                               .value_or(request.headers.find("x-ms-access-tier").value_or("")));
        auto& parts = uploads[key];
        if (request.method == "POST" && request.parameter("uploads")) {
            parts.clear();
            return {.status = 200,
                    .content_type = "application/xml",
                    .headers = {},
                    .body = "<R><UploadId>u&amp;1</UploadId></R>"};
        }
        const bool list = request.parameter("comp") == "blocklist";
        if (list || request.method == "POST") {
            std::string whole;
            const auto xml = parse_xml(request.body);
            for (const XmlElement& each : xml->children) {
                const auto name = list ? each.text : std::string(each.text_of("PartNumber"));
                const auto part = parts.find(name);
                if (part == parts.end()) return fault(400, "InvalidPart");
                whole += part->second;
            }
            objects[key] = whole;
            uploads.erase(key);
            return {.status = 200, .content_type = "application/xml", .headers = {}, .body = "<Done/>"};
        }
        const auto number = request.parameter("partNumber");
        const auto block = request.parameter("blockid");
        if (number || block) {
            if (number && request.parameter("uploadId") != "u&1") return fault(404, "NoSuchUpload");
            parts[std::string(number ? *number : *block)] = request.body;
            if (on_part) on_part(static_cast<int>(parts.size()));
        } else {
            uploads.erase(key);
            objects[key] = request.body;
        }
        ok.headers.add("ETag", etag(request.body));
        return ok;
    }

    // Pages of two.
    HttpResponse list(const HttpRequest& request) {
        const bool azure = request.parameter("comp").has_value();
        const std::string prefix(request.parameter("prefix").value_or(""));
        const std::string from(request.parameter(azure ? "marker" : "continuation-token").value_or(""));
        std::string items, next;
        int count = 0;
        if (!request.parameter("uploads")) {
            for (const auto& [key, body] : objects) {
                if (!key.starts_with(prefix) || key <= from) continue;
                if (count++ == 2) break;
                next = key;
                const std::string size = std::to_string(body.size());
                items += azure ? "<Blob><Name>" + xml_escaped(key) + "</Name><Properties><Content-Length>" + size +
                                     "</Content-Length></Properties></Blob>"
                               : "<Contents><Key>" + percent_encode(key, true) + "</Key><Size>" + size +
                                     "</Size></Contents>";
            }
        }
        const bool more = count > 2;
        std::string body =
            azure
                ? "<R><Blobs>" + items + "</Blobs><NextMarker>" + (more ? xml_escaped(next) : "") + "</NextMarker></R>"
                : "<R><EncodingType>url</EncodingType>" + items + "<IsTruncated>" + (more ? "true" : "false") +
                      "</IsTruncated><NextContinuationToken>" + xml_escaped(next) + "</NextContinuationToken></R>";
        return {.status = 200, .content_type = "application/xml", .headers = {}, .body = body};
    }

    std::unique_ptr<HttpServer> server_;
};

enum class Sort { s3, azure, folder };

class ObjectStoreTest : public testing::TestWithParam<Sort> {
protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "stoker-store-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        std::filesystem::create_directory(folder_ + "/store");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::unique_ptr<ObjectStore> open() {
        const std::string text = GetParam() == Sort::s3      ? "s3://box/runs?endpoint=" + fake_.url()
                                 : GetParam() == Sort::azure ? "az://account/box/runs?endpoint=" + fake_.url()
                                                             : "file://" + folder_ + "/store";
        auto store = ObjectStore::open(read_object_url(text).value(), options());
        return store ? std::move(*store) : nullptr;
    }
    ObjectStoreOptions options() const {
        return {.environment =
                    [](const char* name) {
                        const std::map<std::string, std::string> set{{"AWS_ACCESS_KEY_ID", "AKEXAMPLE"},
                                                                     {"AWS_SECRET_ACCESS_KEY", "very-secret"},
                                                                     {"AZURE_STORAGE_KEY", base64("very-secret")}};
                        const auto found = set.find(name);
                        return found == set.end() ? std::string() : found->second;
                    },
                .part_bytes = 64 << 10,
                .parallel = 3,
                .tries = 4,
                .first_wait_s = 0.001,
                .most_wait_s = 0.01,
                .call_timeout_s = 10};
    }
    bool remote() const { return GetParam() != Sort::folder; }

    std::string file(const std::string& name, std::size_t bytes, char seed = 'a') {
        std::string text(bytes, '\0');
        for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(seed + i * 31 % 61);
        std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
        return text;
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    std::string content(const std::string& name) const { return read_file(path(name), 1 << 24).value(); }

    FakeStore fake_;
    std::string folder_;
};

class RemoteStoreTest : public ObjectStoreTest {};

TEST_P(ObjectStoreTest, WhatWentUpComesBackAndIsListedAndRemoved) {
    const auto store = open();
    const std::string large = file("large", 300'001), small = file("small", 10);
    const auto put = store->put_file("step 1/großes", path("large"));
    ASSERT_TRUE(put) << put.error().text();
    EXPECT_EQ(put->sha256, hex(sha256(large)));
    ASSERT_TRUE(store->put_file("step 1/small", path("small")));
    ASSERT_TRUE(store->put_text("step 1/empty", ""));
    ASSERT_TRUE(store->put_text("other", "text"));
    const auto got = store->get_file("step 1/großes", path("back"), hex(sha256(large)));
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(content("back"), large);
    EXPECT_FALSE(std::filesystem::exists(path("back.part")));
    EXPECT_EQ(store->get_text("other", 100).value(), "text");
    EXPECT_FALSE(store->get_text("other", 3).ok());
    EXPECT_EQ(store->head("step 1/small")->bytes, 10);
    std::vector<std::string> keys;
    const auto listing = store->list("step 1/", [&](const ObjectInfo& item) {
        keys.push_back(item.key);
        return true;
    });
    ASSERT_TRUE(listing) << listing.error().text();
    EXPECT_THAT(keys, ElementsAre("step 1/empty", "step 1/großes", "step 1/small"));
    ASSERT_TRUE(store->remove("step 1/small"));
    ASSERT_TRUE(store->remove("step 1/small"));
    EXPECT_EQ(store->head("step 1/small").error().kind(), ErrorKind::not_found);
    EXPECT_EQ(store->get_file("step 1/small", path("none"), "").error().kind(), ErrorKind::not_found);
}

TEST_P(ObjectStoreTest, KeysThatLeadElsewhereAreRefused) {
    const auto store = open();
    for (const char* key : {"", "/a", "a/", "a//b", "../a", "a/./b", "a\\b", "a\nb", "\xff"})
        EXPECT_EQ(store->put_text(key, "x").error().kind(), ErrorKind::invalid) << key;
}

TEST_P(RemoteStoreTest, AStoreThatIsBusyIsAskedAgain) {
    const auto store = open();
    const std::string text = file("f", 200'000);
    fake_.failures = 3;
    fake_.retry_after = "0";
    ASSERT_TRUE(store->put_file("f", path("f")));
    fake_.failures = 2;
    fake_.retry_after.clear();
    ASSERT_TRUE(store->get_file("f", path("g"), hex(sha256(text))));
    fake_.failures = 100;
    const auto gave_up = store->put_text("g", "x");
    ASSERT_FALSE(gave_up.ok());
    EXPECT_EQ(gave_up.error().kind(), ErrorKind::unavailable);
    EXPECT_EQ(fake_.failures, 96) << "four tries";
}

TEST_P(RemoteStoreTest, ADownloadThatBreaksGoesOnWhereItEnded) {
    const auto store = open();
    const std::string text = file("f", 200'000);
    ASSERT_TRUE(store->put_file("f", path("f")));
    fake_.cut_key = "runs/f";
    std::atomic<std::int64_t> moved{0};
    const auto got = store->get_file("f", path("g"), hex(sha256(text)),
                                     {.stop = {}, .moved = [&](std::int64_t n) { moved += n; }, .tier = ""});
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(content("g"), text);
    EXPECT_EQ(moved, 200'000);
    EXPECT_THAT(fake_.seen, testing::Contains("GET /box/runs/f bytes=100000-"));
    // As after a restart of the process.
    std::ofstream(path("h.part"), std::ios::binary) << text.substr(0, 150'000);
    ASSERT_TRUE(store->get_file("h", path("h"), hex(sha256(text))).error().kind() == ErrorKind::not_found);
    std::filesystem::rename(path("h.part"), path("g.part"));
    ASSERT_TRUE(store->get_file("f", path("g"), hex(sha256(text))));
    EXPECT_THAT(fake_.seen, testing::Contains("GET /box/runs/f bytes=150000-"));
}

TEST_P(ObjectStoreTest, SomethingElseIsNeverTakenForTheFile) {
    const auto store = open();
    const std::string text = file("f", 100'000);
    ASSERT_TRUE(store->put_file("f", path("f")));
    // What an earlier try left is the beginning of another file: it begins anew, once.
    std::ofstream(path("g.part"), std::ios::binary) << std::string(50'000, 'x');
    const auto got = store->get_file("f", path("g"), hex(sha256(text)));
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(content("g"), text);
    const auto damaged = store->get_file("f", path("k"), hex(sha256("other")));
    ASSERT_FALSE(damaged.ok());
    EXPECT_EQ(damaged.error().kind(), ErrorKind::conflict);
    EXPECT_FALSE(std::filesystem::exists(path("k")));
    EXPECT_FALSE(std::filesystem::exists(path("k.part")));
}

TEST_P(ObjectStoreTest, AnUploadThatIsStoppedLeavesNoObject) {
    const auto store = open();
    file("f", 400'000);
    std::atomic<int> pieces{0};
    const auto put = store->put_file(
        "f", path("f"), {.stop = [&] { return pieces >= 2; }, .moved = [&](std::int64_t) { ++pieces; }, .tier = ""});
    if (remote()) {
        ASSERT_FALSE(put.ok());
        EXPECT_EQ(store->head("f").error().kind(), ErrorKind::not_found);
    }
    // The next one begins anew and is whole.
    ASSERT_TRUE(store->put_file("f", path("f")));
    EXPECT_EQ(store->head("f")->bytes, 400'000);
}

TEST_P(RemoteStoreTest, AFileThatGrowsMeanwhileIsNotSentAsOne) {
    const auto store = open();
    file("f", 400'000);
    fake_.on_part = [&](int n) {
        if (n == 5) std::ofstream(path("f"), std::ios::app) << "more";
    };
    const auto put = store->put_file("f", path("f"));
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().kind(), ErrorKind::conflict);
    EXPECT_EQ(store->head("f").error().kind(), ErrorKind::not_found);
}

TEST_P(RemoteStoreTest, ARefusalNamesTheKeyAndNeverTheSecret) {
    const auto store = open();
    fake_.refuse = 403;
    const auto put = store->put_text("f", "x");
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().kind(), ErrorKind::denied);
    const std::string text = put.error().text();
    EXPECT_THAT(text, HasSubstr("AccessDenied"));
    EXPECT_THAT(text, HasSubstr(GetParam() == Sort::s3 ? "AKEXAMPLE" : "AZURE_STORAGE_KEY"));
    EXPECT_THAT(text, Not(HasSubstr("very-secret")));
    EXPECT_EQ(fake_.seen.size(), 1u) << "a refusal is final";
}

TEST_P(RemoteStoreTest, TheTierIsAskedFor) {
    const auto store = open();
    ASSERT_TRUE(store->put_text("f", "x", {.stop = {}, .moved = {}, .tier = "Cool"}));
    EXPECT_EQ(fake_.tier, "Cool");
}

std::string name_of(const testing::TestParamInfo<Sort>& each) {
    return each.param == Sort::s3 ? "s3" : each.param == Sort::azure ? "azure" : "folder";
}
INSTANTIATE_TEST_SUITE_P(Stores, ObjectStoreTest, testing::Values(Sort::s3, Sort::azure, Sort::folder), name_of);
INSTANTIATE_TEST_SUITE_P(Stores, RemoteStoreTest, testing::Values(Sort::s3, Sort::azure), name_of);

TEST(ObjectStoreAccess, MissingOrBrokenCredentialsAreToldBeforeAnythingIsSent) {
    const auto open_with = [](const char* url, std::map<std::string, std::string> set) {
        return ObjectStore::open(read_object_url(url).value(), {.environment = [set](const char* name) {
                                     const auto found = set.find(name);
                                     return found == set.end() ? std::string() : found->second;
                                 }});
    };
    EXPECT_THAT(open_with("s3://box/a", {}).error().text(), HasSubstr("AWS_ACCESS_KEY_ID"));
    EXPECT_THAT(open_with("s3://box/a", {{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "b\n"}}).error().text(),
                HasSubstr("line break"));
    EXPECT_THAT(open_with("az://acc1/box", {}).error().text(), HasSubstr("AZURE_STORAGE_SAS_TOKEN"));
    EXPECT_THAT(open_with("az://acc1/box", {{"AZURE_STORAGE_KEY", "no base64!"}}).error().text(), HasSubstr("base64"));
    EXPECT_THAT(open_with("az://acc1/box", {{"AZURE_STORAGE_SAS_TOKEN", "sv=1"}}).error().text(), HasSubstr("sig="));
    EXPECT_THAT(
        open_with("az://acc1/box?endpoint=http://10.0.0.1:1", {{"AZURE_STORAGE_SAS_TOKEN", "sig=hush"}}).error().text(),
        HasSubstr("only the URL names"));
    // Of another account: it is not tried with a key that cannot fit.
    EXPECT_FALSE(
        open_with("az://acc1/box", {{"AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc2;AccountKey=YQ=="}}).ok());
    EXPECT_TRUE(
        open_with("az://acc1/box", {{"AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc1;AccountKey=YQ=="}}).ok());
    EXPECT_TRUE(
        open_with("az://devstoreaccount1/box", {{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}})
            .ok());
}

// A server that does not answer is told by its address, without the signature that stands in the target.
TEST(ObjectStoreAccess, ASignatureIsInNoMessage) {
    const auto store = ObjectStore::open(
        read_object_url("az://acc1/box?endpoint=http://127.0.0.1:9").value(),
        {.environment =
             [](const char* name) { return std::string(name) == "AZURE_STORAGE_SAS_TOKEN" ? "sv=1&sig=hush" : ""; },
         .tries = 2,
         .first_wait_s = 0.001});
    ASSERT_TRUE(store.ok());
    const auto put = (*store)->put_text("a", "b");
    ASSERT_FALSE(put.ok());
    EXPECT_THAT(put.error().text(), Not(HasSubstr("hush")));
    EXPECT_THAT(put.error().text(), HasSubstr("127.0.0.1:9"));
}

}  // namespace
}  // namespace stoker
