#include "server/server_log.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "base/text.h"
#include "server/log_events.h"
#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServerLogTest : public api_testing::ApiTest {
protected:
    std::shared_ptr<Log> make_log(LogLevel level = LogLevel::debug) {
        auto log = Log::open({.level = level, .sink = [this](std::string_view line) {
                                  const std::lock_guard guard(mutex_);
                                  text_ += line;
                              }});
        EXPECT_TRUE(log.ok());
        return std::shared_ptr<Log>(std::move(*log));
    }
    std::string text() {
        const std::lock_guard guard(mutex_);
        return text_;
    }
    // Every line is of an event of the table, with fields of its row.
    void expect_all_declared() {
        const std::string all = text();
        for (const std::string_view line : split_lines(all)) {
            const auto words = split_words(line);
            ASSERT_GE(words.size(), 3u) << line;
            const auto row = std::find_if(kLogEvents.begin(), kLogEvents.end(),
                                          [&](const LogEvent& each) { return each.name == words[2]; });
            ASSERT_NE(row, kLogEvents.end()) << line;
            EXPECT_EQ(to_string(row->level), words[1]) << line;
            std::set<std::string_view> known;
            for (const std::string_view field : split(row->fields, ',')) known.insert(trim(field));
            for (std::size_t i = 3; i < words.size(); ++i) {
                if (words[i].find('=') == std::string_view::npos || words[i].find('"') < words[i].find('=')) continue;
                EXPECT_TRUE(known.contains(words[i].substr(0, words[i].find('=')))) << words[i] << " in " << line;
            }
        }
    }

private:
    std::mutex mutex_;
    std::string text_;
};

// Whoever asks in the morning what happened at night has these lines, and nothing else.
TEST_F(ServerLogTest, TellsTheLifeOfARunAndItsNodes) {
    {
        const auto log = make_log();
        RecordEvents events(*log);
        State state;
        const RunId run{7};
        const AttemptId attempt{run, 2};
        std::uint64_t seq = 0;
        const auto tell = [&](RecordBody body) {
            events.tell({.seq = ++seq, .actor = Actor::token("ada"), .trace = "", .body = std::move(body)}, state);
        };
        RunSpec spec;
        spec.name = "evil\nerror forged";
        spec.ranks = 2;
        spec.per_rank.gpus = 4;
        tell(RunSubmitted{.run = run, .spec = spec});
        tell(AttemptCreated{.attempt = attempt, .places = {{"n-1", 1}, {"n-1", 2}, {"n-2", 1}}});
        tell(RunMoved{.run = run, .event = RunEvent::all_ready});
        tell(NoticeGiven{.attempt = attempt, .cause = Cause::evicted});
        tell(AttemptMoved{.attempt = attempt, .event = AttemptEvent::end, .cause = Cause::evicted, .detail = "spot"});
        tell(AttemptMoved{.attempt = attempt, .event = AttemptEvent::end, .cause = Cause::user_error});
        tell(RunMoved{.run = run, .event = RunEvent::retry, .cause = Cause::evicted});
        tell(RunMoved{.run = run, .event = RunEvent::back_off_over});
        tell(RunMoved{.run = run, .event = RunEvent::succeed});  // forgotten already: nothing is made up
        tell(NodeMoved{.node = "n-1", .state = NodeState::lost, .cause = Cause::node_lost});
        tell(NodeMoved{.node = "n-1", .state = NodeState::ready});
        tell(NodeMoved{.node = "n-2", .state = NodeState::quarantined});
        tell(NodeChecked{.node = "n-1",
                         .verdict = HealthVerdict::warn,
                         .passed = 5,
                         .not_passed = {{.name = "a", .verdict = HealthVerdict::warn},
                                        {.name = "b", .verdict = HealthVerdict::skipped},
                                        {.name = "c", .verdict = HealthVerdict::skipped}}});
        tell(CheckpointStored{.run = run, .step = 10, .bytes = 100});
        tell(CheckpointStored{.run = run, .step = 20, .fault = "https://s/?sig=abc denied"});
        tell(ConfigChanged{.version = 3, .text = "secret", .note = "more nodes"});
    }
    const std::string all = text();
    EXPECT_THAT(all, HasSubstr(R"(info run.submitted run=r-7 name="evil\nerror forged" kind=batch ranks=2 gpus=8 )"));
    EXPECT_THAT(all, HasSubstr("info run.starting run=r-7 attempt=2 nodes=n-1,n-2\n"));
    EXPECT_THAT(all, HasSubstr("info run.running run=r-7\n"));
    EXPECT_THAT(all, HasSubstr("info run.evicted run=r-7 attempt=2 cause=evicted detail=spot\n"));
    EXPECT_THAT(all, HasSubstr("info run.requeued run=r-7 cause=evicted\n"));
    EXPECT_THAT(all, HasSubstr("info run.waiting run=r-7\n"));
    EXPECT_THAT(all, HasSubstr("warn node.lost node=n-1 cause=node_lost\n"));
    EXPECT_THAT(all, HasSubstr("info node.state node=n-2 state=quarantined\n"));
    EXPECT_THAT(all, HasSubstr("verdict=warn passed=5 failed=0 warned=1 skipped=2\n")) << "skipped is no failure";
    EXPECT_THAT(all, HasSubstr("sig=***"));
    EXPECT_THAT(all, Not(HasSubstr("user_error")));
    EXPECT_THAT(all, Not(HasSubstr("secret")));
    EXPECT_THAT(all, Not(HasSubstr("run.ended")));
    expect_all_declared();
}

// An engine that works says what it found and what became of a run; every request is one line with the id that its
// caller knows it by.
TEST_F(ServerLogTest, AServerWritesWhatItDoes) {
    auto log = make_log();
    open({.log = log});
    auto said = ServerLog::start(*engine_, log);
    ASSERT_EQ(ask("POST", "/api/v1/runs", R"({"name":"a","command":["true"]})").status, 201);
    for (int i = 0; i < 3000 && text().find("run.starting") == std::string::npos; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-99?token=hidden").status, 404);
    said.reset();
    log->flush(60);
    const std::string all = text();
    EXPECT_THAT(all, HasSubstr("info engine.ready runs=0"));
    EXPECT_THAT(all, HasSubstr("info engine.recovered"));
    EXPECT_THAT(all, HasSubstr("info run.submitted run=r-1 name=a"));
    EXPECT_THAT(all, HasSubstr("info run.starting run=r-1 attempt=1 nodes=alpha\n"));
    EXPECT_THAT(all, HasSubstr("debug request.done method=POST path=/api/v1/runs status=201 ms="));
    EXPECT_THAT(all, HasSubstr("debug request.done method=GET path=/api/v1/runs/r-99 status="));
    EXPECT_THAT(all, Not(HasSubstr("hidden")));
    expect_all_declared();
}

// What an alert waits for must be on the page of events: nobody writes one that is not in the table.
TEST(LogEventsTest, AreDeclaredInTheTableAndNowhereElse) {
    namespace fs = std::filesystem;
    std::set<std::string_view> names;
    for (const LogEvent& event : kLogEvents) {
        EXPECT_TRUE(names.insert(event.name).second) << event.name;
        EXPECT_EQ(std::count(event.name.begin(), event.name.end(), '.'), 1) << event.name;
        EXPECT_TRUE(event.meaning.ends_with('.')) << event.name;
    }
    for (const auto& each : fs::recursive_directory_iterator(std::string(STOKER_SOURCE_DIR) + "/src")) {
        const std::string path = each.path().string();
        if (!path.ends_with(".cpp") || path.ends_with("_test.cpp") || path.ends_with("/io/log.cpp")) continue;
        // A log of its own, of another process, whose three events the guide of the gateway has.
        if (path.ends_with("/serve/gateway/access_log.cpp")) continue;
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        EXPECT_EQ(text.str().find("LogEvent{"), std::string::npos) << path;
        EXPECT_EQ(text.str().find("constexpr LogEvent"), std::string::npos) << path;
    }
}

TEST(LogEventsTest, ThoseOfTheAccessLogAreInTheGuide) {
    std::stringstream guide;
    guide << std::ifstream(std::string(STOKER_SOURCE_DIR) + "/docs/guides/gateway.md").rdbuf();
    for (const char* event : {"request.answered", "request.refused", "request.other"})
        EXPECT_NE(guide.str().find(std::string("`") + event + "`"), std::string::npos) << event;
}

}  // namespace
}  // namespace stoker
