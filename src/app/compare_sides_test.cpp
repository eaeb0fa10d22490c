// One workload under a restriction: a wrong reading of a word would compare something else than was asked, silently.
#include "app/compare_sides.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

class Sides : public testing::Test {
protected:
    Sides() : catalog(std::move(Catalog::embedded()).value()) {
        const auto document = Document::parse(
            "version: 1\nkind: training\nmodel: gpt2-small\ndata: {tokens: 1B, sequence: 1024}\nprecision: bf16\n"
            "objective: {minimize: cost}\nwhere: {cloud: azure, regions: [eastus]}\n",
            "job.yaml");
        workload = std::move(read_workload(*document, catalog, [](const std::string&) {
                       return Error(ErrorKind::internal, "no files");
                   })).value();
    }
    WhereSpec where(const std::string& word) {
        auto under = restricted(workload, word, catalog);
        EXPECT_TRUE(under.ok() && under->has_value()) << word;
        return under.ok() && *under ? (*under)->where : WhereSpec{};
    }
    Catalog catalog;
    Workload workload;
};

TEST_F(Sides, AWordIsASizeAGpuACloudARegionAPrecisionOrAWayToBuy) {
    EXPECT_EQ(where("ND96asr_v4").sizes, std::vector<std::string>{"Standard_ND96asr_v4"});
    EXPECT_EQ(where("westeurope").regions, std::vector<std::string>{"westeurope"});
    EXPECT_EQ(where("spot").spot, SpotUse::only);
    EXPECT_EQ(where("On-Demand").spot, SpotUse::never);
    EXPECT_EQ(where("AWS").clouds, std::vector<std::string>{"aws"});
    EXPECT_EQ((*restricted(workload, "FP32", catalog))->precision, Precision::fp32);
    for (const std::string& size : where("H100-SXM").sizes) {
        const NodeType& node = catalog.node_types()[static_cast<std::size_t>(catalog.find_node_type(size).value())];
        EXPECT_EQ(node.cloud, "azure");  // where the workload asks for
    }
}

TEST_F(Sides, AnotherCloudDropsTheRegionsOfTheFirst) {
    EXPECT_TRUE(where("gcp").regions.empty());
    EXPECT_TRUE(where("p5.48xlarge").regions.empty());
    EXPECT_EQ(where("p5.48xlarge").clouds, std::vector<std::string>{"aws"});
}

TEST_F(Sides, AWordThatIsNothingIsNoRestriction) {
    const auto under = restricted(workload, "nonsense", catalog);
    ASSERT_TRUE(under.ok());
    EXPECT_FALSE(under->has_value());
}

// A figure without an interval printed one of no width: "$48.00 ($48.00 - $48.00)".
TEST_F(Sides, TextSetsTheAnswersSideBySide) {
    std::vector<Side> sides;
    for (const char* word : {"T4", "ND96asr_v4", "NC24ads_A100_v4"}) {
        auto under = std::move(restricted(workload, word, catalog)).value();
        sides.push_back(std::move(side_of_workload(word, std::move(*under), catalog, {.today = "2026-11-21"})).value());
    }
    EXPECT_FALSE(sides[0].no_plan.empty());  // no bf16 on a T4
    const std::string text = sides_text(sides, catalog, {}, Style());
    for (const char* part : {"ND96asr_v4", "T4: no plan", "Against ND96asr_v4, NC24ads_A100_v4", "faster than"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const std::string json = sides_json(sides, catalog).dump();
    EXPECT_NE(json.find("\"infeasible_because\""), std::string::npos);
}

}  // namespace
}  // namespace stoker
