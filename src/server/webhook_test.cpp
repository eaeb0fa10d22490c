#include "server/webhook.h"

#include <sys/stat.h>

#include <atomic>
#include <mutex>

#include "io/files.h"
#include "io/http/http_server.h"
#include "io/worker.h"
#include "server/run_notifier.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;

class WebhookTest : public api_testing::ApiTest {
protected:
    struct Got {
        std::string signature, id, body;
    };
    // Refuses as many as it is told to, then takes them.
    void listen() {
        auto server =
            HttpServer::start({.address = "127.0.0.1", .port = 0}, [this](HttpRequest request, HttpReply reply) {
                const std::lock_guard guard(mutex_);
                got_.push_back({std::string(request.headers.find("Stoker-Signature").value_or("")),
                                std::string(request.headers.find("Idempotency-Key").value_or("")), request.body});
                reply.send({.status = refuse_-- > 0 ? 503 : 204, .content_type = "", .headers = {}, .body = ""});
            });
        ASSERT_TRUE(server.ok()) << server.error().text();
        http_ = std::move(*server);
    }
    std::unique_ptr<Webhook> start() {
        auto hook = Webhook::start(*engine_, {.url = "http://127.0.0.1:" + std::to_string(http_->port()) + "/in?x=1",
                                              .secret = "s3cret",
                                              .first_wait_s = 0.01,
                                              .most_tries = 4,
                                              .told = [this](const std::string&, int tries, const Status& outcome) {
                                                  tries_ = tries;
                                                  ++(outcome.ok() ? sent_ : failed_);
                                              }});
        EXPECT_TRUE(hook.ok());
        return hook.ok() ? std::move(*hook) : nullptr;
    }
    // A budget of nothing: each mark is reached at once.
    void exhaust(const std::string& scope) {
        ASSERT_TRUE(call(*engine_, {.what = SetBudget{{.scope = scope, .unit = BudgetUnit::gpu_hours}},
                                    .actor = Actor::token("admin")})
                        .ok());
    }
    bool eventually(const std::function<bool()>& true_) {
        for (int i = 0; i < 2000; ++i) {
            if (true_()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }
    void TearDown() override {
        if (http_) http_->stop(after(1));
        ApiTest::TearDown();
    }
    std::mutex mutex_;
    std::vector<Got> got_;
    int refuse_ = 0;
    std::atomic<int> tries_ = 0, sent_ = 0, failed_ = 0;
    std::unique_ptr<HttpServer> http_;
};

// Whoever takes money decisions by it must be able to tell ours from anybody's.
TEST(WebhookSignature, IsTheHmacOfTimeAndBody) {
    // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac s3cret
    EXPECT_EQ(webhook_signature("s3cret", 1'700'000'000, R"({"a":1})"),
              "t=1700000000,v1=1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940");
    for (const char* url : {"", "ftp://a/b", "http://", "https:///x", "http://a b/", "example.org/hook"})
        EXPECT_FALSE(webhook_target(url).ok()) << url;
    EXPECT_EQ(webhook_target("https://a:1/b?c")->path, "/b?c");
    EXPECT_EQ(webhook_target("https://a:1")->origin, "https://a:1");
}

// A warning that a receiver missed because it was away comes when it is back; after a restart none is forgotten.
TEST_F(WebhookTest, EachMarkArrivesSignedAlsoAfterARefusalAndARestart) {
    listen();
    refuse_ = 2;
    auto hook = start();
    ASSERT_NE(hook, nullptr);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder_ + "/webhook.cursor"); }));
    exhaust("p-1");
    ASSERT_TRUE(eventually([&] { return sent_ == 3; }));
    {
        const std::lock_guard guard(mutex_);
        ASSERT_EQ(got_.size(), 5U);  // two refusals, then 50, 80 and 100
        EXPECT_EQ(got_[0].id, got_[2].id);
        const Got& last = got_.back();
        EXPECT_THAT(last.body, HasSubstr(R"("mark":"100")"));
        EXPECT_THAT(last.body, HasSubstr("project default/default has used 0 GPU hours of 0 GPU hours"));
        const auto unix_s = std::stoll(last.signature.substr(2));
        EXPECT_EQ(last.signature, webhook_signature("s3cret", unix_s, last.body));
    }
    hook.reset();
    exhaust("o-1");
    hook = start();
    ASSERT_TRUE(eventually([&] { return sent_ == 6; }));
    EXPECT_EQ(failed_, 0);
}

// One that never answers well does not keep the rest back for ever.
TEST_F(WebhookTest, ItGivesUpAfterItsTries) {
    listen();
    refuse_ = 4;
    const auto hook = start();
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder_ + "/webhook.cursor"); }));
    exhaust("p-1");
    ASSERT_TRUE(eventually([&] { return failed_ == 1 && sent_ == 2; }));
}

// Who reads mail is told the same, once for each mark and address, and again after a failure.
TEST_F(WebhookTest, MailsAreSentOfBudgetsToo) {
    const std::string mail = folder_ + "/mails", program = folder_ + "/sendmail";
    ASSERT_TRUE(write_file_atomic(program, "#!/bin/sh\n{ echo \"args $*\"; cat; } >> " + mail + "\n").ok());
    ::chmod(program.c_str(), 0700);
    const auto mails =
        start_budget_mails(*engine_, {.sendmail = program}, {"finance@example.org", "ops@example.org"}, {});
    exhaust("p-1");
    const auto text = [&] {
        auto read = read_file(mail, 100'000);
        return read ? *read : std::string();
    };
    ASSERT_TRUE(eventually([&] {
        const std::string all = text();
        return all.find("budget of project default/default: 100 %") != std::string::npos &&
               all.find("args -i -- ops@example.org") != std::string::npos;
    })) << text();
}

}  // namespace
}  // namespace stoker::api
