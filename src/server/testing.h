// For tests of the API: an engine whose driver starts nothing and says that it did, and one question at a time.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/document.h"
#include "deploy/local/local_answers.h"
#include "server/api.h"

namespace stoker::api_testing {

// Starts nothing and says that it did: the API is what is tested here.
class StillDriver final : public LocalAnswers<Driver> {
public:
    // With a text: no node is ever seen, and this is why.
    explicit StillDriver(const std::shared_ptr<const std::string>& fault = {}) : fault_(fault) {}
    Capabilities capabilities() const override { return {.gang = true, .detail = "still"}; }
    Result<std::vector<NodeInfo>> discover(Deadline) override {
        const auto fault = fault_.lock();
        if (fault && !fault->empty()) return Error(ErrorKind::unavailable, *fault);
        return std::vector<NodeInfo>{{.name = "alpha", .cpu_milli = 4000, .memory_bytes = std::int64_t{8} << 30}};
    }
    Outcome launch(const OperationId&, const GangSpec&, Deadline) override {
        return {Certainty::confirmed, Cause::none, ""};
    }
    Outcome notify(const OperationId&, std::uint64_t, int, Deadline) override {
        return {Certainty::confirmed, Cause::none, ""};
    }
    Outcome cancel(const OperationId&, std::uint64_t, double, Deadline) override {
        return {Certainty::confirmed, Cause::none, ""};
    }
    Outcome release(const OperationId&, Deadline) override { return {Certainty::confirmed, Cause::none, ""}; }
    Result<OursListing> list_ours(const std::string&, Deadline) override { return OursListing{}; }
    Result<std::vector<Fact>> observe(std::uint64_t, Deadline deadline) override {
        std::this_thread::sleep_until(
            std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
        return std::vector<Fact>{};
    }

private:
    std::weak_ptr<const std::string> fault_;
};

class OneAnswer final : public HttpSink {
public:
    void send(HttpResponse response) override { promise.set_value(std::move(response)); }
    std::shared_ptr<HttpStream> stream(HttpResponse head) override {
        promise.set_value(std::move(head));
        return nullptr;
    }
    std::promise<HttpResponse> promise;
};

class ApiTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "api-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        auto engine = Engine::open(
            {.folder = folder_, .make_driver = [fault = fault_](const std::string&) -> Result<std::unique_ptr<Driver>> {
                 return std::unique_ptr<Driver>(std::make_unique<StillDriver>(fault));
             }});
        ASSERT_TRUE(engine.ok()) << engine.error().text();
        engine_ = std::move(*engine);
        open({});
    }
    void open(ApiOptions options) {
        auto api = Api::make(*engine_, std::move(options));
        ASSERT_TRUE(api.ok()) << api.error().text();
        api_ = std::move(*api);
    }
    void TearDown() override {
        if (api_) api_->stop();
        if (engine_) engine_->stop();
        api_.reset();
        engine_.reset();
        std::filesystem::remove_all(folder_);
    }
    HttpResponse ask(const std::string& method, const std::string& path, const std::string& body = {},
                     std::vector<std::pair<std::string, std::string>> query = {},
                     std::vector<std::pair<std::string, std::string>> headers = {}) {
        HttpRequest request{.method = method,
                            .target = path,
                            .path = path,
                            .query = std::move(query),
                            .headers = {},
                            .body = body,
                            .peer = "test"};
        request.headers.items = std::move(headers);
        if (!body.empty() && !request.headers.find("Content-Type"))
            request.headers.add("Content-Type", "application/json");
        auto sink = std::make_shared<OneAnswer>();
        auto answer = sink->promise.get_future();
        api_->handle(std::move(request), HttpReply(sink));
        if (answer.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
            ADD_FAILURE() << "no answer to " << method << " " << path;
            return {};
        }
        return answer.get();
    }
    static std::string at(const HttpResponse& response, std::string_view key) {
        const auto document = Document::parse_json(response.body, "answer");
        const Node* node = document.ok() ? document->root().find(key) : nullptr;
        return node == nullptr ? "" : node->text;
    }
    static constexpr const char* kJob = R"({"name":"job","command":["true"],"per_rank":{"cpu_milli":1000}})";
    // Before SetUp: what the driver says instead of its nodes.
    std::shared_ptr<std::string> fault_ = std::make_shared<std::string>();
    std::string folder_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<Api> api_;
};

}  // namespace stoker::api_testing
