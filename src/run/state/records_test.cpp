#include "run/state/records.h"

#include <gmock/gmock.h>

#include "base/codec.h"

namespace stoker {
namespace {

using testing::HasSubstr;

// One of each kind, as it stands in journals out there. A line that changes breaks every server that is updated: give
// the kind a new format and a reader for the old one instead.
const std::vector<std::pair<RecordBody, std::string>>& golden_records() {
    const OperationId launch{.site = "abcde", .seq = 5};
    RunSpec spec;
    spec.name = "n";
    spec.command = {"true"};
    static const std::vector<std::pair<RecordBody, std::string>> records = {
        {CoreStarted{"abcde", 3}, R"({"epoch":3,"site":"abcde"})"},
        {RunSubmitted{{2}, spec, "k", {1}, "s", {{1}}},
         R"({"key":"k","needs":["r-1"],"parent":"r-1","run":"r-2","spec":)" + canonical_json(spec) + R"(,"step":"s"})"},
        {RunMoved{{2}, RunEvent::retry, Cause::oom, "d", 7},
         R"({"cause":"oom","detail":"d","event":"retry","not_before_us":7,"run":"r-2"})"},
        {RunHeld{{2}, true}, R"({"held":true,"run":"r-2"})"},
        {AttemptCreated{{{2}, 1}, {{"n1", 5}}, "/ck/step-9", 9},
         R"({"attempt":"a-2.1","places":[{"devices":5,"node":"n1"}],"resume_from":"/ck/step-9","resume_step":9})"},
        {AttemptMoved{{{2}, 1}, AttemptEvent::end, Cause::node_lost, "gone"},
         R"({"attempt":"a-2.1","cause":"node_lost","detail":"gone","event":"end"})"},
        {NoticeGiven{{{2}, 1}, 99, Cause::evicted}, R"({"attempt":"a-2.1","cause":"evicted","deadline_us":99})"},
        {OperationIntended{Verb::cancel, {{2}, 1}, launch, 0, 30},
         R"({"attempt":"a-2.1","grace_s":30,"signal":0,"target":"abcde-222227","verb":"cancel"})"},
        {OperationAnswered{launch, Answer::rejected, Cause::no_capacity, "full"},
         R"({"answer":"rejected","cause":"no_capacity","detail":"full","operation":"abcde-222227"})"},
        {OperationResent{launch}, R"({"operation":"abcde-222227"})"},
        {FactSeen{{.cursor = 4,
                   .kind = FactKind::rank_ended,
                   .operation = launch,
                   .epoch = 3,
                   .at_us = 8,
                   .rank = 0,
                   .exit_code = 1,
                   .cause = Cause::user_error,
                   .seconds = 1.5}},
         R"({"fact":{"at_us":8,"cause":"user_error","cursor":4,"epoch":3,"exit_code":1,"kind":"rank_ended",)"
         R"("operation":"abcde-222227","peak_memory_bytes":0,"pid":0,"rank":0,"seconds":1.5}})"},
        {NodeSeen{{"n1", 1000, 2, {{"0", "H100", 3}}, "boot"}},
         R"({"node":{"boot_id":"boot","cpu_milli":1000,"devices":[{"id":"0","memory_bytes":3,"model":"H100"}],)"
         R"("memory_bytes":2,"name":"n1"}})"},
        {NodeMoved{"n1", NodeState::lost, Cause::node_lost}, R"({"cause":"node_lost","node":"n1","state":"lost"})"},
        {LeaseMoved{{2}, 5, true}, R"({"run":"r-2","stop_at_us":5,"warned":true})"},
        {NoticeWithdrawn{{{2}, 1}}, R"({"attempt":"a-2.1"})"},
        {RunForgotten{{2}}, R"({"run":"r-2"})"},
        {CheckpointUploading{{2}, 40, "s3://b/p"}, R"({"run":"r-2","step":40,"url":"s3://b/p"})"},
        {CheckpointStored{{2}, 40, 7, "away"}, R"({"bytes":7,"fault":"away","run":"r-2","step":40})"},
        {NodeChecked{"n1",
                     "boot",
                     HealthLevel::full,
                     HealthVerdict::fail,
                     3,
                     {{HealthLayer::network, "link-bandwidth", "n1", "n2", HealthVerdict::fail, 6e6, 1.25e9, "bytes/s",
                       "median of 9 nodes", "", "look at the cable"}},
                     Cause::node_unhealthy},
         R"({"boot_id":"boot","cause":"node_unhealthy","level":"full","node":"n1","not_passed":[{"expected":1250000000,)"
         R"("fix":"look at the cable","layer":"network","measured":6000000,"name":"link-bandwidth","node":"n1",)"
         R"("peer":"n2","source":"median of 9 nodes","unit":"bytes/s","verdict":"fail"}],"passed":3,"verdict":"fail"})"},
        {NodeBlamed{"n1", {{2}, 1}, {"n1", "n2"}, 400},
         R"({"attempt":"a-2.1","members":["n1","n2"],"node":"n1","share_milli":400})"},
        {ConfigChanged{3, "max_queued: 9\n", "why", "d1", {{"rate", "--rate 5"}}},
         R"({"digest":"d1","note":"why","overrides":{"rate":"--rate 5"},"text":"max_queued: 9\n","version":3})"},
        {NodeRemoved{"n1"}, R"({"node":"n1"})"},
        {JournalLost{7, 90, {"abcde"}, "gone"}, R"({"detail":"gone","records":90,"runs_made":7,"sites":["abcde"]})"},
        {RunEdited{{2}, spec}, R"({"run":"r-2","spec":)" + canonical_json(spec) + "}"},
        {OrganisationMade{{2}, "north"}, R"({"name":"north","organisation":"o-2"})"},
        {ProjectMade{{3}, {2}, "vision"}, R"({"name":"vision","organisation":"o-2","project":"p-3"})"},
        {KeyMade{{1}, "ci", true, Role::developer, Level::organisation, {3}, "00ff", 9},
         R"({"expires_us":9,"key":"k-1","level":"organisation","name":"ci","project":"p-3","role":"developer",)"
         R"("service":true,"sha256":"00ff"})"},
        {KeyRevoked{{1}}, R"({"key":"k-1"})"},
        {UserSet{{{4}, "anna", false, {2}, {{Role::admin, Level::organisation, {3}}}, false, 7, ""}},
         R"({"user":{"disabled":false,"id":"u-4","made_us":7,"name":"anna","organisation":"o-2",)"
         R"("roles":[{"level":"organisation","project":"p-3","role":"admin"}],"service":false}})"},
        {PasswordSet{{4}, "$argon2id$x"}, R"({"password":"$argon2id$x","user":"u-4"})"},
        {LoginMade{{{9}, {4}, {3}, "00ff", 5, 8}},
         R"({"login":{"expires_us":8,"id":"s-9","made_us":5,"project":"p-3","sha256":"00ff","user":"u-4"}})"},
        {LoginEnded{{9}}, R"({"login":"s-9"})"},
        {KeyEnds{{1}, 8}, R"({"expires_us":8,"key":"k-1"})"},
        {QuotaSet{{"p-3/anna", "gpu:H100", 1000, {}, 4000}},
         R"({"quota":{"guaranteed_milli":1000,"limit_milli":4000,"resource":"gpu:H100","scope":"p-3/anna"}})"},
        {BudgetSet{{"o-2", BudgetUnit::usd, 5, BudgetStop::block_new, true, "", {}}, false},
         R"({"budget":{"limit_micro":5,"on_exhausted":"block_new","reserve":true,"scope":"o-2","told":[],)"
         R"("unit":"usd"},"removed":false})"},
        {BudgetReached{"o-2", BudgetUnit::gpu_hours, "2026-11", "80", 8, 10, 3},
         R"({"limit_micro":10,"mark":"80","month":"2026-11","rate_micro_per_h":3,"scope":"o-2","unit":"gpu_hours",)"
         R"("used_micro":8})"},
        {UsageCharged{
             {{2}, 1}, {3}, "anna", 5, 9, false, 7, "b", {{PricedResource::gpu, "n1", "H100", 1000, 7, 3, true}}},
         R"({"attempt":"a-2.1","book":"b","credit":false,"from_us":5,"gpu_micro_hours":7,"lines":[{"micro_hours":7,)"
         R"("microusd":3,"milli":1000,"model":"H100","node":"n1","priced":true,"resource":"gpu"}],"project":"p-3","to_us":9,"user":"anna"})"},
        {TokensCharged{"gateway/1", 4, 9, "b", {{{3}, "anna", "demo", 2, 5, 6, 1, 10, 4, 20, 7'000'001, 500, 7, 3}}},
         R"({"account":"gateway/1","after":4,"book":"b","lines":[{"cached_in":4,"from_us":5,"left":3,"markup_bp":500,)"
         R"("microusd":7,"model":"demo","picousd":7000001,"price_version":2,"project":"p-3","requests":1,"to_us":6,)"
         R"("tokens_in":10,"tokens_out":20,"user":"anna"}],"up_to":9})"},
    };
    return records;
}

TEST(Records, FormatOneIsFrozen) {
    ASSERT_EQ(golden_records().size(), std::variant_size_v<AnyRecordBody>);
    for (const auto& [body, json] : golden_records()) {
        EXPECT_EQ(encode_body(body), json);
        const auto again = decode_body(kind_of(body), 1, json, 1);
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(again->index(), body.index());
        EXPECT_EQ(encode_body(*again), json);
    }
}

// What records say since a later version, and leave out where there is nothing of it: older ones stay as they were.
TEST(Records, LaterFieldsAreLeftOutWhenEmpty) {
    const OperationId launch{.site = "abcde", .seq = 5};
    const std::vector<std::pair<RecordBody, std::string>> records = {
        {CoreStarted{"abcde", 3, "b1", 5}, R"({"boot_id":"b1","epoch":3,"monotonic_us":5,"site":"abcde"})"},
        {KeyMade{{2}, "agent", true, Role::agent, Level::provider, {1}, "00fe", 0, "n7"},
         R"({"expires_us":0,"key":"k-2","level":"provider","name":"agent","node":"n7","project":"p-1","role":"agent",)"
         R"("service":true,"sha256":"00fe"})"},
        {FactSeen{{.cursor = 5, .operation = launch, .epoch = 3, .at_us = 8, .run_us = 9, .rank = 0}},
         R"({"fact":{"at_us":8,"cause":"none","cursor":5,"epoch":3,"kind":"rank_started",)"
         R"("operation":"abcde-222227","peak_memory_bytes":0,"pid":0,"rank":0,"run_us":9,"seconds":0}})"},
    };
    for (const auto& [body, json] : records) {
        EXPECT_EQ(encode_body(body), json);
        const auto again = decode_body(kind_of(body), 1, json, 1);
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(encode_body(*again), json);
    }
}

// Numbers stand in journals; a kind that is moved in the list would read as another.
TEST(Records, KindsKeepTheirNumbers) {
    EXPECT_EQ(kind_of(CoreStarted{}), 1U);
    EXPECT_EQ(kind_of(AttemptCreated{}), 5U);
    EXPECT_EQ(kind_of(LeaseMoved{}), 14U);
    EXPECT_EQ(kind_of(RunForgotten{}), 16U);
    EXPECT_EQ(kind_of(NodeChecked{}), 19U);
    EXPECT_EQ(kind_of(NodeBlamed{}), 20U);
    EXPECT_EQ(kind_of(ConfigChanged{}), 25U);
    EXPECT_EQ(kind_of(NodeRemoved{}), 26U);
    EXPECT_EQ(kind_of(JournalLost{}), 27U);
    EXPECT_EQ(kind_of(RunEdited{}), 28U);
    EXPECT_EQ(kind_of(OrganisationMade{}), 31U);
    EXPECT_EQ(kind_of(ProjectMade{}), 32U);
    EXPECT_EQ(kind_of(KeyMade{}), 33U);
    EXPECT_EQ(kind_of(KeyRevoked{}), 34U);
    EXPECT_EQ(kind_of(UserSet{}), 35U);
    EXPECT_EQ(kind_of(KeyEnds{}), 39U);
    EXPECT_EQ(kind_of(QuotaSet{}), 41U);
    EXPECT_EQ(kind_of(BudgetSet{}), 42U);
    EXPECT_EQ(kind_of(BudgetReached{}), 43U);
    EXPECT_EQ(kind_of(UsageCharged{}), 44U);
    EXPECT_EQ(name_of_kind(44), "usage.charged");
    EXPECT_EQ(name_of_kind(45), "tokens.charged");
    EXPECT_EQ(name_of_kind(25), "config.changed");
    EXPECT_EQ(name_of_kind(24), "?");
    EXPECT_EQ(name_of_kind(9), "operation.answered");
    EXPECT_EQ(name_of_kind(99), "?");
}

// A node file that names doctors adds to what is kept of a node; without them nothing changes.
TEST(Records, ADoctorStandsOnlyWhereThereIsOne) {
    NodeInfo node{.name = "n1"};
    EXPECT_EQ(encode_body(NodeSeen{node}).find("doctor"), std::string::npos);
    node.doctor = "10.0.0.7:7700";
    EXPECT_THAT(encode_body(NodeSeen{node}), HasSubstr(R"("devices":[],"doctor":"10.0.0.7:7700")"));
}

// The one project that everybody has is not named: journals read as before there were others, also by the version that
// was installed before.
TEST(Records, OnlyAnotherProjectIsNamed) {
    RunSubmitted body{.run = {2}, .spec = {}, .key = "", .parent = {}, .step = "", .needs = {}};
    EXPECT_EQ(encode_body(body).find("\"p-"), std::string::npos);
    body.project = {4};
    EXPECT_THAT(encode_body(body), HasSubstr(R"("needs":[],"project":"p-4","run":"r-2")"));
}

TEST(Records, WhatIsNewerOrBrokenIsRefusedByItsNumber) {
    EXPECT_THAT(decode_body(99, 1, "{}", 17).error().text(), HasSubstr("record 17 is of kind 99"));
    EXPECT_THAT(decode_body(4, 2, "{}", 17).error().text(), HasSubstr("record 17 has format 2"));
    EXPECT_THAT(decode_body(4, 1, R"({"held":1})", 17).error().text(), HasSubstr("record 17:1:"));
    EXPECT_FALSE(decode_body(4, 1, R"({"held":true,"more":1})", 17));
    EXPECT_FALSE(decode_body(4, 1, "", 17));
}

}  // namespace
}  // namespace stoker
