#include "app/client/submission.h"

#include <ctime>

#include <gmock/gmock.h>

#include "app/client/testing.h"
#include "base/api_time.h"

namespace stoker {
namespace {

using testing::HasSubstr;

Result<LoadedRun> loaded(const std::vector<std::string>& words) {
    Session session;
    session.quiet = true;
    const CliCommand* command = find_command("submit");
    TRY(const Args args, parse_args(*command, words));
    return load_submission(session, args);
}

// What stands on the command line is what is submitted.
TEST(SubmissionTest, OptionsReachTheSpec) {
    const auto run = loaded({"--name", "n", "--ranks", "2", "--cpus", "0.5", "--memory", "1GiB", "--env", "A=b=c",
                             "--label", "team=x", "--class", "spot", "--priority", "7", "--", "prog", "--flag"});
    ASSERT_TRUE(run.ok()) << run.error().text();
    EXPECT_EQ(run->spec.name, "n");
    EXPECT_EQ(run->spec.command, (std::vector<std::string>{"prog", "--flag"}));
    EXPECT_EQ(run->spec.ranks, 2);
    EXPECT_EQ(run->spec.per_rank.cpu_milli, 500);
    EXPECT_EQ(run->spec.per_rank.memory_bytes, std::int64_t{1} << 30);
    EXPECT_EQ(run->spec.environment.at("A"), "b=c");
    EXPECT_EQ(run->spec.priority, 7);
}

// Of a name alone the value is taken from here, and handed over as a secret.
TEST(SubmissionTest, ValueOfTheCallersEnvironmentIsASecret) {
    ::setenv("STOKER_TEST_GIVEN", "canary", 1);
    const auto run = loaded({"--env", "STOKER_TEST_GIVEN", "--", "true"});
    ASSERT_TRUE(run.ok()) << run.error().text();
    EXPECT_EQ(run->spec.environment.at("STOKER_TEST_GIVEN"), "secret://value/canary");
}

// All that is wrong is told at once, and nothing is guessed.
TEST(SubmissionTest, WhatCannotBeMeantIsTold) {
    const auto wrong = loaded({"--ranks", "0", "--cpus", "x", "--", "true"});
    ASSERT_FALSE(wrong.ok());
    EXPECT_THAT(wrong.error().text(), testing::AllOf(HasSubstr("--ranks"), HasSubstr("--cpus")));
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{},
                                               {"file", "--", "true"},
                                               {"--sweep", "a=", "--", "true"},
                                               {"--sweep", "1a=2", "--", "true"},
                                               {"--env", "STOKER_NO_SUCH_VARIABLE", "--", "true"},
                                               {"--env", "A\n=1", "--", "true"},
                                               {"--name", "a\nb", "--", "true"},
                                               {"--lease", "soon", "--", "true"},
                                               {"nosuchfile.yaml"}})
        EXPECT_FALSE(loaded(words).ok()) << testing::PrintToString(words);
}

// Sent twice after a broken connection, taken once.
TEST(SubmissionTest, EverySubmissionHasAKeyOfItsOwn) {
    EXPECT_NE(new_key(), new_key());
    ScriptedTransport script;
    script.answers["POST /api/v1/runs"] = {.status = 201,
                                           .content_type = "application/json",
                                           .headers = {},
                                           .body = R"({"run":"r-3","version":1,"digest":"d","repeated":false})"};
    Client client = script.client();
    RunSpec spec;
    spec.name = "job";
    spec.command = {"true"};
    const auto submitted = submit(client, spec, "key");
    ASSERT_TRUE(submitted.ok()) << submitted.error().text();
    EXPECT_EQ(submitted->run.text(), "r-3");
}

// Exit 1 is what a script decides by: it would have to wait.
TEST(SubmissionTest, ADryRunSaysWhetherItWouldWait) {
    ScriptedTransport script;
    Client client = script.client();
    Session session;
    LoadedRun run;
    run.spec.name = "job";
    auto& answer = script.answers["POST /api/v1/runs"];
    answer = {.status = 200,
              .content_type = "application/json",
              .headers = {},
              .body = R"({"starts_now":true,"places":[{"rank":0,"node":"alpha","devices":["0","1"]}],"digest":"d"})"};
    const auto now = dry_run(session, client, run);
    ASSERT_TRUE(now.ok()) << now.error().text();
    EXPECT_EQ(now->exit, 0);
    EXPECT_EQ(now->out, "job would start now\n  rank 0 on alpha, GPU 0,1\n");
    answer.body =
        R"({"starts_now":true,"steps":5,"digest":"d","places":[{"rank":0,"node":"alpha","step":"index=0"},)"
        R"({"rank":0,"node":"beta","step":"index=1"},{"rank":1,"node":"beta","step":"index=1"}],)"
        R"("waiting":[{"step":"index=2","why":{"text":"at most 2 of them run at once"}},)"
        R"({"step":"index=3","why":{"text":"at most 2 of them run at once"}},{"step":"sum","needs":["index=0"]}]})";
    EXPECT_EQ(dry_run(session, client, run)->out,
              "job would start now with 2 of 5 steps\n  index=0 on alpha\n  index=1 on beta; rank 1 on beta\n"
              "  then index=2, index=3: at most 2 of them run at once\n  then sum: after index=0\n");
    answer.body = R"({"starts_now":false,"places":[],"digest":"d"})";
    EXPECT_EQ(dry_run(session, client, run)->exit, 1);
    answer = {.status = 503,
              .content_type = "application/problem+json",
              .headers = {},
              .body = R"({"detail":"no node was seen yet"})"};
    EXPECT_EQ(dry_run(session, client, run).error().kind(), ErrorKind::unavailable);
}

// A run that begins at the wrong time is a night lost.
TEST(SubmissionTest, ABeginIsATimeOfHereOrFromNow) {
    ::setenv("TZ", "Europe/Berlin", 1);
    ::tzset();
    constexpr std::int64_t kNow = 1'795'442'400'000'000;  // 15:00 in Berlin
    const auto begin = [](const char* text) {
        const auto at = parse_begin(text, kNow);
        return at ? rfc3339(*at).substr(0, 16) : at.error().text();
    };
    EXPECT_EQ(rfc3339(kNow).substr(0, 16), "2026-11-23T14:00") << "the clock of this test";
    EXPECT_EQ(begin("2h"), "2026-11-23T16:00");
    EXPECT_EQ(begin("+90m"), "2026-11-23T15:30");
    EXPECT_EQ(begin("22:00"), "2026-11-23T21:00");
    EXPECT_EQ(begin("07:30"), "2026-11-24T06:30");  // tomorrow
    EXPECT_EQ(begin("2026-12-01"), "2026-11-30T23:00");
    EXPECT_EQ(begin("2027-07-01T08:00"), "2027-07-01T06:00");  // summer time
    EXPECT_EQ(begin("2026-12-01T08:00:00Z"), "2026-12-01T08:00");
    EXPECT_THAT(begin("2026-11-01"), HasSubstr("has passed"));
    EXPECT_THAT(begin("2027-02-30"), HasSubstr("no such day"));
    EXPECT_THAT(begin("25:00"), HasSubstr("no time"));
    EXPECT_THAT(begin("soon"), HasSubstr("22:00"));
    EXPECT_THAT(begin("2099-01-01"), HasSubstr("ten years"));
    EXPECT_THAT(parse_begin("soon", kNow, "until").error().text(), HasSubstr("--until soon"));
    ::unsetenv("TZ");
    ::tzset();
}

}  // namespace
}  // namespace stoker
