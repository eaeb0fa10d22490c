// Who pays for two machines of which a quarter is used must read why there are two.
#include "plan/sized_by.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/testing.h"

namespace stoker {
namespace {

Candidate fleet(int replicas, int nodes, int spare_nodes) {
    Candidate c;
    c.replicas = replicas;
    c.nodes = nodes;
    c.spare_nodes = spare_nodes;
    return c;
}

TEST(SizedBy, CountsWhatIsLeftWhenANodeIsLost) {
    EXPECT_EQ(carrying_replicas(fleet(2, 2, 1)), 1);
    EXPECT_EQ(carrying_replicas(fleet(2, 2, 0)), 2);
    EXPECT_EQ(carrying_replicas(fleet(6, 3, 1)), 4);
    EXPECT_EQ(carrying_replicas(fleet(2, 4, 2)), 1);  // each over two machines
    EXPECT_EQ(spare_text(fleet(2, 2, 1), 1),
              "one replica carries the load, the other is there so that a node may be lost");
    EXPECT_EQ(spare_text(fleet(5, 5, 1), 1), "4 replicas carry the load, one more is there so that a node may be lost");
    EXPECT_EQ(spare_text(fleet(6, 3, 1), 1), "4 replicas carry the load, 2 more are there so that a node may be lost");
    EXPECT_EQ(spare_text(fleet(3, 3, 0), 1), "");
    EXPECT_EQ(spare_text(fleet(8, 2, 1), 4), "each of 4 models has replicas of its own, and any node may be lost");
}

// A slow rate on a small GPU: the second is the spare, and "too many requests" is no reason.
TEST(SizedBy, AServiceThatOneReplicaCarriesSaysWhatTheSecondIsFor) {
    const Plan made = testing::plan(
        "kind: inference\nmodel: mistral-7b\ntraffic: {requests_per_second: 0.2, prompt_tokens: 1000, output_tokens: "
        "300}\n"
        "where: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    ASSERT_EQ(made.candidates.front().replicas, 2);
    const Advice* used = testing::advice(made, "under-used");
    ASSERT_NE(used, nullptr);
    EXPECT_NE(used->text.find(": one replica carries the load, the other is there so that a node may be lost"),
              std::string::npos)
        << used->text;
    EXPECT_NE(used->remedy.find("objective.survive_one_replica_lost: false saves $"), std::string::npos)
        << used->remedy;
    for (const std::string& reason : made.reasons)
        EXPECT_EQ(reason.find("too-many-requests"), std::string::npos) << reason;
}

// The same load takes more replicas where a token may take less time, and the plan names that limit.
TEST(SizedBy, ALimitThatAsksForMoreReplicasIsNamed) {
    const auto serve = [](std::string_view limit) {
        return testing::plan(
            "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 20, prompt_tokens: 1000, "
            "output_tokens: 300}\nobjective: {latency: {tpot_p95: " +
            std::string(limit) + "}}\nwhere: {regions: [eastus], sizes: [Standard_NC24ads_A100_v4]}\n");
    };
    const Plan narrow = serve("30ms"), wide = serve("2s");
    ASSERT_TRUE(narrow.feasible());
    ASSERT_TRUE(wide.feasible());
    ASSERT_GT(narrow.candidates.front().replicas, wide.candidates.front().replicas);
    EXPECT_EQ(sized_by_limit(narrow.candidates.front()).substr(0, 56),
              "each further token within 30 ms (p95) decides the size: ")
        << sized_by_limit(narrow.candidates.front());
    EXPECT_EQ(sized_by_limit(wide.candidates.front()), "");
}

// Who gives up the limit and keeps one to spare saves nothing where both ask for the same: both are named then.
TEST(SizedBy, ALimitThatAsksForNoMoreThanTheSpareSaysSo) {
    int both = 0, alone = 0;
    for (const int limit_ms : {24, 26, 28, 30, 34, 38, 44, 50}) {
        const Plan made = testing::plan(
            fmt::format("kind: inference\nmodel: llama-3-8b\ntraffic: {{requests_per_second: 20, prompt_tokens: 1000, "
                        "output_tokens: 300}}\nobjective: {{latency: {{tpot_p95: {}ms}}}}\n"
                        "where: {{regions: [eastus], sizes: [Standard_NC24ads_A100_v4]}}\n",
                        limit_ms));
        if (!made.feasible()) continue;
        const Candidate& first = made.candidates.front();
        const std::string text(sized_by_limit(first));
        if (text.empty()) continue;
        const bool names_both = text.find("and so does one to spare") != std::string::npos;
        const auto by_work = std::stoi(text.substr(
            text.find("alone takes ") != std::string::npos ? text.find("alone takes ") + 12 : text.rfind(", ") + 2));
        EXPECT_EQ(names_both, by_work + 1 >= first.replicas) << text;
        ++(names_both ? both : alone);
    }
    EXPECT_GT(both, 0);
    EXPECT_GT(alone, 0);
}

// Five people at a prompt were made to pay for a second 70B that nobody had asked for.
TEST(SizedBy, AHandfulOfClientsPaysForNoSpareUnasked) {
    const auto made = [](std::string_view clients, std::string_view objective) {
        return testing::plan(fmt::format(
            "kind: inference\nmodel: llama-3-70b\ntraffic: {{concurrency: {}, prompt_tokens: 1000, output_tokens: "
            "300}}\nobjective: {{{}}}\nwhere: {{regions: [eastus], sizes: [Standard_NC48ads_A100_v4]}}\n",
            clients, objective));
    };
    const Plan few = made("5", ""), asked = made("5", "survive_one_replica_lost: true"), many = made("40", "");
    ASSERT_TRUE(few.feasible() && asked.feasible() && many.feasible());
    EXPECT_EQ(few.candidates.front().nodes, 1);
    EXPECT_EQ(asked.candidates.front().nodes, 2);
    EXPECT_GT(many.candidates.front().nodes, 1);
}

}  // namespace
}  // namespace stoker
