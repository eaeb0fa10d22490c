#include "server/run_notifier.h"

#include <sys/stat.h>

#include <atomic>
#include <mutex>

#include "io/files.h"
#include "io/http/http_server.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;

class RunNotifierTest : public api_testing::ApiTest {
protected:
    // A run that somebody cancels before it began.
    void ends(std::vector<NotifySpec> notify) {
        RunSpec spec;
        spec.name = "night\xc3\xa9";
        spec.command = {"true"};
        spec.begin_at_us = std::int64_t{4'000'000'000} * 1'000'000;
        spec.notify = std::move(notify);
        const auto run = call(*engine_, {.what = Submit{.spec = spec}, .actor = Actor::token("admin")});
        ASSERT_TRUE(run.ok()) << run.error().text();
        ASSERT_TRUE(call(*engine_, {.what = CancelRun{run->run}, .actor = Actor::token("admin")}).ok());
    }
    std::unique_ptr<RunNotifier> start(NotifyOptions options) {
        options.first_wait_s = 0.01;
        options.most_tries = 3;
        options.told = [this](const std::string&, const std::string& to, int tries, const Status& outcome) {
            const std::lock_guard guard(mutex_);
            told_.push_back(fmt::format("{} {} {}", to, tries, outcome.ok() ? "ok" : outcome.error().message()));
        };
        return RunNotifier::start(*engine_, std::move(options));
    }
    std::vector<std::string> told(std::size_t count) {
        for (int i = 0; i < 2000; ++i) {
            {
                const std::lock_guard guard(mutex_);
                if (told_.size() >= count) return told_;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        const std::lock_guard guard(mutex_);
        return told_;
    }
    std::string program(const std::string& name, const std::string& script) {
        std::string path = folder_ + "/" + name;
        EXPECT_TRUE(write_file_atomic(path, "#!/bin/sh\n" + script).ok());
        ::chmod(path.c_str(), 0700);
        return path;
    }
    std::mutex mutex_;
    std::vector<std::string> told_;
};

// A mail that goes to another address, or whose name of a run becomes a header, is worse than none.
TEST_F(RunNotifierTest, AMailGoesToOneAddressAndSaysWhatEnded) {
    const std::string mail = folder_ + "/mail";
    const auto notifier = start({.sendmail = program("sendmail", "{ echo \"args $*\"; cat; } > " + mail)});
    ends({{"mailto:anna@example.org", NotifyOn::any}, {"mailto:never@example.org", NotifyOn::ok}});
    EXPECT_EQ(told(1), std::vector<std::string>{"mailto:anna@example.org 1 ok"});
    const std::string text = *read_file(mail, 10'000);
    EXPECT_THAT(text, HasSubstr("args -i -- anna@example.org\nTo: anna@example.org\nSubject: r-1 night?? cancelled\n"));
    EXPECT_THAT(text, HasSubstr("\n\nr-1 night\xc3\xa9 cancelled"));
    for (const char* to :
         {"mailto:a@b\nBcc: c@d", "mailto:-oQ/tmp@x", "mailto:a b@c", "mailto:@", "ftp://a", "", "http://a b"})
        EXPECT_FALSE(check_run_spec([&] {
            RunSpec spec;
            spec.name = "n", spec.command = {"true"}, spec.notify = {{to, NotifyOn::any}};
            return spec;
        }()))
            << to;
}

// One receiver that is gone for good is given up, and those behind it are told meanwhile; a restart forgets nobody.
TEST_F(RunNotifierTest, WhoDoesNotAnswerKeepsNobodyWaiting) {
    const std::string seen = folder_ + "/seen";
    NotifyOptions options{.program = program("tell", "cat >> " + seen)};
    auto notifier = start(options);
    ends({{"http://127.0.0.1:1/in", NotifyOn::any}, {"program", NotifyOn::failed}, {"program", NotifyOn::any}});
    const auto first = told(3);
    ASSERT_EQ(first.size(), 3u);
    EXPECT_THAT(first, ::testing::Contains("program 1 ok"));
    EXPECT_THAT(first.back(), HasSubstr("http://127.0.0.1:1/in 3 "));
    notifier.reset();
    ends({{"program", NotifyOn::any}});
    notifier = start(options);
    EXPECT_EQ(told(4).size(), 4u);
    EXPECT_THAT(*read_file(seen, 10'000), HasSubstr("\"event\":\"run.ended\""));
}

// Where others may submit, they may not have the server call whom it can reach and they cannot.
TEST(RunNotifierLimits, OnlyAddressesThatTheConfigurationNames) {
    RunSpec spec;
    spec.notify = {{"http://169.254.169.254/metadata", NotifyOn::any}};
    EXPECT_TRUE(check_notify(spec, {}));
    EXPECT_FALSE(check_notify(spec, {.urls = {"https://chat.example.org/"}}));
    spec.notify = {{"https://chat.example.org/hook", NotifyOn::any}};
    EXPECT_TRUE(check_notify(spec, {.urls = {"https://chat.example.org/"}}));
    spec.notify = {{"program", NotifyOn::any}};
    EXPECT_FALSE(check_notify(spec, {}));
}

}  // namespace
}  // namespace stoker::api
