#include "deploy/slurm/rest_wire.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const OperationId kOperation{.site = "k3x7q", .seq = 4};

Document document_of(std::string_view json) {
    auto document = Document::parse_json(json, "test");
    EXPECT_TRUE(document.ok()) << document.error().text();
    return std::move(*document);
}

// Of slurmrestd 22.05.8, shortened: a job of ours, one of somebody else's whose comment looks like JSON, and one that
// only mentions us.
std::string jobs_answer() {
    return R"({ "meta": {"Slurm": {"release": "22.05.8"}}, "errors": [ ], "jobs": [ { "job_id": 12, "name": "stoker-)" +
           kOperation.text() +
           R"(", "job_state": "PENDING", "state_reason": "ReqNodeNotAvail",
  "state_description": "ReqNodeNotAvail, UnavailableNodes:n2", "submit_time": 1790000000, "start_time": 1790000600,
  "nodes": "", "priority": 4294901747, "user_id": 1000, "user_name": "alice", "partition": "gpu,spot",
  "job_resources": {"allocated_nodes": [{"sockets": {"0": {}}}]} },
 { "job_id": 13, "name": "other", "comment": "\"}]}{ \\", "job_state": "PENDING", "priority": 7, "partition": "gpu" },
 { "job_id": 14, "name": "mine", "comment": "stoker-x", "job_state": "RUNNING", "partition": "gpu" } ] })";
}

// A queue that is cut in another place each time is the same queue: whoever lost a job there would start it twice.
TEST(SlurmRest, AStreamOfJobsIsCutWhereTheyEnd) {
    const std::string text = jobs_answer();
    for (std::size_t at = 0; at <= text.size(); ++at) {
        std::vector<std::string> items;
        ArrayItems reader("jobs", [&](std::string_view item) { items.emplace_back(item); });
        EXPECT_TRUE(reader.feed(std::string_view(text).substr(0, at)));
        EXPECT_TRUE(reader.feed(std::string_view(text).substr(at)));
        ASSERT_EQ(items.size(), 3U) << at;
        EXPECT_THAT(items[1], AllOf(HasSubstr("\"job_id\": 13"), HasSubstr("\"partition\": \"gpu\" }")));
        const Document frame = document_of(reader.frame());
        EXPECT_TRUE(frame.root().find("jobs")->items.empty());
        EXPECT_FALSE(complaint_in(frame.root()));
    }
    ArrayItems endless("jobs", [](std::string_view) {});
    EXPECT_TRUE(endless.feed("{\"jobs\": [{\"comment\": \""));
    EXPECT_FALSE(endless.feed(std::string(5u << 20, 'x'))) << "what never ends is not held for ever";
}

// What squeue and slurmrestd say of a job is one and the same to whoever waits for it; others' jobs are not touched.
TEST(SlurmRest, ReadsOurJobsAsSqueueSaysThem) {
    std::vector<Job> jobs;
    std::vector<std::int64_t> waiting;
    ArrayItems reader("jobs", [&](std::string_view item) {
        if (auto job = read_rest_job(item, "#1000")) jobs.push_back(std::move(*job));
        EXPECT_FALSE(read_rest_job(item, "#1001"));
        EXPECT_FALSE(read_rest_job(item, "bob"));
        EXPECT_EQ(read_rest_job(item, "alice").has_value(), read_rest_job(item, "").has_value());
        if (const auto priority = priority_of_waiting(item, {"gpu"})) waiting.push_back(*priority);
        EXPECT_FALSE(priority_of_waiting(item, {"cpu"}));
    });
    EXPECT_TRUE(reader.feed(jobs_answer()));
    const auto same = read_queue("12|stoker-" + kOperation.text() +
                                 "|PENDING|1790000000|1790000600||4294901747|ReqNodeNotAvail, UnavailableNodes:n2\n");
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].number, same[0].number);
    EXPECT_EQ(jobs[0].operation, same[0].operation);
    EXPECT_EQ(jobs[0].phase, same[0].phase);
    EXPECT_EQ(jobs[0].state, same[0].state);
    EXPECT_EQ(jobs[0].reason, same[0].reason);
    EXPECT_EQ(jobs[0].submitted_s, same[0].submitted_s);
    EXPECT_EQ(jobs[0].starts_s, same[0].starts_s);
    EXPECT_EQ(jobs[0].priority, same[0].priority);
    EXPECT_THAT(waiting, ElementsAre(4294901747, 7));
}

// What sbatch would be asked for, slurmrestd is; what it cannot be asked for is said, and not left out.
TEST(SlurmRest, AsksForWhatTheScriptAsksFor) {
    GangSpec gang{.attempt = {{7}, 2}, .epoch = 3, .folder = "/work", .log_folder = "/logs", .nodes = 2};
    for (int i = 0; i < 4; ++i)
        gang.ranks.push_back(
            {.arguments = {"true"}, .cpu_milli = 3500, .memory_bytes = 3LL << 30, .gpus = 4, .gpu_model = "a100"});
    gang.longest_s = 3601;
    gang.ranks[0].environment = {{"STOKER_GRACE", "30"}};
    gang.avoid = {"n7", "n9"};
    const SlurmOptions options{.partition = "gpu", .constraint = "ib", .program = {"/shared/stoker"}, .notice_s = 90};
    const auto body = submission_body(job_request(kOperation, gang, options, "/f"), {"PATH=/bin", "HOME=/root"});
    ASSERT_TRUE(body.ok()) << body.error().text();
    const Document asked = document_of(*body);
    EXPECT_EQ(asked.root().find("script")->text, "#!/bin/sh\nexec '/shared/stoker' slurm-step gang '/f'\n");
    for (const char* part : {"\"name\":\"stoker-k3x7q-", "\"partition\":\"gpu\"", "\"constraints\":\"ib\"",
                             "\"nodes\":2", "\"tasks\":4", "\"tasks_per_node\":2", "\"cpus_per_task\":4",
                             "\"memory_per_node\":6144", "\"gres\":\"gpu:a100:8\"", "\"exclude_nodes\":\"n7,n9\"",
                             "\"time_limit\":61", "\"no_requeue\":true", "\"kill_on_invalid_dependency\":true",
                             "\"current_working_directory\":\"/f\"", "\"standard_output\":\"/f/batch.out\"",
                             "\"open_mode\":\"append\"", "\"PATH\":\"/bin\"", "\"STOKER_NOTICE_AFTER_S\":\"3481\""})
        EXPECT_THAT(*body, HasSubstr(part));
    EXPECT_THAT(*body, Not(HasSubstr("\"signal\"")));
    gang.one_switch = true;
    const auto without = submission_body(job_request(kOperation, gang, options, "/f"), {});
    ASSERT_FALSE(without.ok());
    EXPECT_THAT(without.error().text(), AllOf(HasSubstr("--switches"), HasSubstr("topology: require")));
}

// A doubt is never taken for a no: what may have got through is looked for before it is sent again.
TEST(SlurmRest, TellsANoFromADoubt) {
    const auto of = [](int status, const char* body) { return read_rest_submission(status, body); };
    EXPECT_EQ(of(200, R"({"errors": [], "job_id": 7, "step_id": "BATCH"})").detail, "7");
    const Outcome warned =
        of(200, R"({"errors": [{"error_code": 2042, "error": "Job is in held state"}], "job_id": 10})");
    EXPECT_EQ(warned.certainty, Certainty::confirmed);
    const Outcome none = of(500, R"({"errors": [{"error_code": 2000, "error": "Invalid partition name specified"}]})");
    EXPECT_EQ(none.certainty, Certainty::rejected);
    EXPECT_THAT(none.detail, HasSubstr("sinfo"));
    const Outcome large =
        of(500, R"({"errors": [{"error_code": 2014, "error": "Requested node configuration is not available"}]})");
    EXPECT_EQ(large.cause, Cause::no_capacity);
    for (const auto& [status, body] :
         {std::pair(500, R"({"errors": [{"error": "Unable to contact slurm controller: connect failure"}]})"),
          std::pair(401, "Authentication failure"), std::pair(502, "<html>bad gateway</html>"),
          std::pair(200, R"({"errors": []})"), std::pair(403, R"({"errors": [{"error": "token expired"}]})")})
        EXPECT_EQ(of(status, body).certainty, Certainty::unknown) << body;
}

// A token that ended over night is said to have ended; nothing else about the cluster is wrong then.
TEST(SlurmRest, KnowsALoginThatIsNotTaken) {
    const auto complaint = [](const char* body) { return complaint_in(document_of(body).root()); };
    EXPECT_TRUE(is_not_let_in(401, std::nullopt));
    EXPECT_TRUE(is_not_let_in(
        500,
        complaint(R"({"errors": [{"error_number": 1007, "error": "Protocol authentication error"}], "jobs": []})")));
    EXPECT_FALSE(is_not_let_in(500, complaint(R"({"errors": [{"error_code": 2017, "error": "Invalid job id"}]})")));
    EXPECT_FALSE(is_not_let_in(502, std::nullopt));
    // {"exp": 1795789936, "iat": 1795788136, "sun": "alice"}
    EXPECT_EQ(end_of_token_s("eyJhbGciOiJIUzI1NiJ9."
                             "eyJleHAiOiAxNzk1Nzg5OTM2LCAiaWF0IjogMTc5NTc4ODEzNiwgInN1biI6ICJhbGljZSJ9.c2lnbmVk"),
              1795789936);
    for (const char* none : {"", "secret", "a.b.c", "..", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"})
        EXPECT_EQ(end_of_token_s(none), 0) << none;
}

TEST(SlurmRest, ReadsNodesAndPartitions) {
    const Document answer = document_of(R"json({"nodes": [
 {"name": "n1", "cpus": 16, "alloc_cpus": 4, "real_memory": 16000, "gres": "gpu:a100:8", "gres_used": "gpu:a100:3(IDX:0-2)",
  "state": "mixed", "state_flags": [], "reason": "", "partitions": ["main", "urgent"]},
 {"name": "n2", "cpus": 16, "alloc_cpus": 0, "real_memory": 16000, "gres": "", "gres_used": "gpu:0",
  "state": "idle", "state_flags": ["DRAIN"], "reason": "bad fan", "partitions": ["main"]}]})json");
    const auto nodes = read_rest_nodes(answer.root(), {{"a100", "A100-SXM4-80GB"}});
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_TRUE(nodes[0].usable);
    EXPECT_EQ(nodes[0].info.devices.size(), 8U);
    EXPECT_EQ(nodes[0].info.devices[0].model, "A100-SXM4-80GB");
    EXPECT_EQ(nodes[0].cores_used, 4);
    EXPECT_EQ(nodes[0].gpus_used, 3);
    EXPECT_EQ(nodes[0].info.memory_bytes, 16000LL << 20);
    EXPECT_FALSE(nodes[1].usable);
    EXPECT_EQ(nodes[1].state, "IDLE+DRAIN");
    EXPECT_EQ(nodes[1].reason, "bad fan");
    const Document partitions = document_of(R"({"partitions": [
 {"name": "spot", "flags": ["default"], "preemption_mode": ["requeue"]}, {"name": "prod", "flags": [],
  "preemption_mode": ["disabled"]}]})");
    EXPECT_THAT(read_rest_partitions(partitions.root()).defaults, ElementsAre("spot"));
    EXPECT_TRUE(read_rest_partitions(partitions.root()).preempts);
}

TEST(SlurmRest, KnowsWhichVersionsAreSpoken) {
    const Document openapi = document_of(
        R"({"paths": {"/slurm/v0.0.36/ping": {}, "/slurm/v0.0.38/ping": {}, "/slurm/v0.0.38/jobs": {}, "/openapi": {}}})");
    EXPECT_THAT(versions_in(openapi.root()), ElementsAre("v0.0.36", "v0.0.38"));
    EXPECT_TRUE(versions_in(document_of("{}").root()).empty());
}

}  // namespace
}  // namespace stoker::slurm
