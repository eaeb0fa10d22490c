// What the same tokens cost from a provider stands beside what machines of one's own cost.
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::plan_of;

const Catalog& few() {
    static const Catalog machines =
        testing::catalog_of({"Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5", "p5.48xlarge"});
    return machines;
}
std::string service(std::string_view model, std::string_view rate, std::string_view more = "") {
    return "kind: inference\nmodel: " + std::string(model) + "\ntraffic: {requests_per_second: " + std::string(rate) +
           ", prompt_tokens: 1000, output_tokens: 250}\n" + std::string(more);
}

// A little load is dear on machines of one's own, and the plan says from which load on they pay.
TEST(ApiPrice, IsFarLessForALittleLoad) {
    const Plan made = plan_of(few(), service("llama-3.3-70b", "0.1", "where: {cloud: aws}\n"));
    const Advice* said = advice(made, "api-price");
    ASSERT_NE(said, nullptr);
    EXPECT_NE(said->text.find("Amazon Bedrock"), std::string::npos) << said->text;
    EXPECT_NE(said->text.find("99 % less"), std::string::npos) << said->text;
    // 0.1 x 1,250 tokens at $0.72 a million, for 730 hours.
    EXPECT_NE(said->text.find("$237"), std::string::npos) << said->text;
}

// With ten times the load the API costs ten times as much.
TEST(ApiPrice, GrowsWithTheLoad) {
    const Plan made = plan_of(few(), service("llama-3.3-70b", "1", "where: {cloud: aws}\n"));
    ASSERT_NE(advice(made, "api-price"), nullptr);
    EXPECT_NE(advice(made, "api-price")->text.find("$2,365"), std::string::npos) << advice(made, "api-price")->text;
}

// Nobody sells it (it may have the shape of what is sold), or data may not leave: nothing is said.
TEST(ApiPrice, IsSilentWhereItDoesNotApply) {
    EXPECT_EQ(advice(plan_of(few(), service("qwen2.5-coder-7b", "1")), "api-price"), nullptr);
    EXPECT_NE(advice(plan_of(few(), service("meta-llama/Llama-3.1-8B-Instruct", "1")), "api-price"), nullptr);
    EXPECT_EQ(advice(plan_of(few(), service("llama-3.1-8b", "1", "sensitive: true\n")), "api-price"), nullptr);
}

}  // namespace
}  // namespace stoker
