// What it costs to know who asks and whether they may: requests through the API of this process with the installation's
// token, with a key and with a login, beside an API that trusts its callers, among many keys and logins; the part of it
// that is the look-up alone; and what a hundred rules of admission cost a submission.
//   bench_authorisation [FOLDER=.] [REQUESTS=20000] [KEYS=10000]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <vector>

#include <fmt/format.h>

#include "deploy/local/local_driver.h"
#include "govern/users.h"
#include "io/sha256.h"
#include "must.h"
#include "run/decide/judge_run.h"
#include "run/engine/engine.h"
#include "server/api.h"

using namespace stoker;

namespace {

double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Sink final : public HttpSink {
public:
    void send(HttpResponse response) override { status.set_value(response.status); }
    std::shared_ptr<HttpStream> stream(HttpResponse) override { return nullptr; }
    std::promise<int> status;
};

// The median and the 99th percentile of one request after the other, each waited for.
struct Spread {
    double p50 = 0, p99 = 0;
};
Spread requests(Api& api, int count, const std::string& secret) {
    std::vector<double> took;
    took.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        HttpRequest request{.method = "GET", .target = "/api/v1/whoami", .path = "/api/v1/whoami", .peer = "bench"};
        if (!secret.empty()) request.headers.add("Authorization", "Bearer " + secret);
        const auto sink = std::make_shared<Sink>();
        auto status = sink->status.get_future();
        const double began = now_us();
        api.handle(std::move(request), HttpReply(sink));
        CHECK(status.get() == 200);
        took.push_back(now_us() - began);
    }
    std::sort(took.begin(), took.end());
    return {took[took.size() / 2], took[took.size() * 99 / 100]};
}

}  // namespace

int main(int argc, char** argv) {
    const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/bench-authorisation";
    const int count = argc > 2 ? std::atoi(argv[2]) : 20'000, keys = argc > 3 ? std::atoi(argv[3]) : 10'000;
    std::filesystem::remove_all(folder);
    auto engine = must(Engine::open({.folder = folder, .make_driver = [](const std::string& where) {
                                         return make_local_driver({.folder = where});
                                     }}));
    const Actor admin = Actor::token("admin");
    std::vector<std::future<bool>> made;
    for (int i = 0; i < keys; ++i) {
        auto done = std::make_shared<std::promise<bool>>();
        made.push_back(done->get_future());
        CHECK(engine
                  ->post({.what = MakeKey{.name = fmt::format("program-{}", i),
                                          .service = true,
                                          .role = Role::developer,
                                          .sha256 = hex(sha256(fmt::format("stk_{}", i)))},
                          .actor = admin},
                         [done](const Result<Ack>& ack) { done->set_value(ack.ok()); })
                  .ok());
        if (made.size() == 1000) {
            for (auto& each : made) CHECK(each.get());
            made.clear();
        }
    }
    for (auto& each : made) CHECK(each.get());
    const Ack user =
        must(call(*engine, {.what = MakeUser{.name = "anna", .role = {.role = Role::developer}}, .actor = admin}));
    must(call(*engine, {.what = OpenLogin{.user = *UserId::parse(user.made),
                                          .project = kDefaultProject,
                                          .sha256 = hex(sha256("sts_login")),
                                          .expires_us = std::int64_t{4'000'000'000} * 1'000'000}}));
    auto trusting = must(Api::make(*engine, {}));
    auto asking = must(Api::make(*engine, {.token = "the-token-of-this-bench", .actor = admin}));
    requests(*trusting, count / 10, "");  // warm
    const auto told = [&](const char* what, Api& api, const std::string& secret, double less) {
        const Spread spread = requests(api, count, secret);
        fmt::print("{:<28}{:8.1f} us{:10.1f} us", what, spread.p50, spread.p99);
        if (less > 0) fmt::print("{:+9.1f} us", spread.p50 - less);
        fmt::print("\n");
        return spread.p50;
    };
    fmt::print("{} requests one after the other, {} keys\n{:<28}{:>11}{:>13}{:>12}\n", count, keys, "", "median",
               "99 of 100", "more");
    const double base = told("callers are trusted", *trusting, "", 0);
    told("the installation's token", *asking, "the-token-of-this-bench", base);
    told("a key", *asking, fmt::format("stk_{}", keys / 2), base);
    told("a login", *asking, "sts_login", base);

    const std::string secret = fmt::format("stk_{}", keys / 3);
    const double began = now_us();
    std::size_t found = 0;
    for (int i = 0; i < count; ++i) {
        const std::string sum = hex(sha256(secret));
        CHECK(engine
                  ->read([&](const EngineView& view) {
                      const auto actor = caller_of(view.state.tenants, sum, view.now_us);
                      found += actor && may(*actor, {Action::submit, Level::project}) ? 1 : 0;
                  })
                  .ok());
    }
    CHECK(found == static_cast<std::size_t>(count));
    fmt::print("who it is, and whether it may: {:.2f} us\n", (now_us() - began) / count);

    AdmissionRules rules;
    for (int i = 0; i < 100; ++i) {
        AdmissionRule rule;
        rule.name = fmt::format("rule-{}", i);
        rule.kinds = {"batch"};
        rule.images = {"registry.example.org/*", fmt::format("other-{}.example.org/*", i)};
        rule.most_gpus = 8;
        rule.labels = {"cost-centre"};
        rules.push_back(std::move(rule));
    }
    RunSpec spec;
    spec.image = "registry.example.org/team/train@sha256:" + std::string(64, 'a');
    spec.labels["cost-centre"] = "7";
    const Tenants nobody;
    const AdmissionPolicy policy{.rules = rules};
    const AdmissionScene scene{
        .policy = policy, .tenants = nobody, .project = kDefaultProject, .user = "anna", .engines = {"local"}};
    const double judged = now_us();
    for (int i = 0; i < count / 10; ++i) CHECK(check_admission(scene, spec).ok());
    fmt::print("a run by 100 rules: {:.1f} us\n", (now_us() - judged) / (count / 10));
    trusting->stop();
    asking->stop();
    engine->stop();
    std::filesystem::remove_all(folder);
    return 0;
}
