// "Because" must name the constants that a figure hangs on, with what moving them does, and leave out the others.
#include "plan/because.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing.h"

namespace stoker {
namespace {

class BecauseTest : public ::testing::Test {
protected:
    static std::vector<ConstantEffect> of(const std::string& yaml) {
        static const Catalog catalog = *Catalog::embedded();
        PlanOptions options{.today = std::string(testing::kToday)};
        options.what_if = false;
        const auto plan = make_plan(testing::workload(yaml), catalog, options);
        EXPECT_TRUE(plan && plan->feasible());
        return because(*plan, catalog, options);
    }
    static const ConstantEffect* find(const std::vector<ConstantEffect>& all, std::string_view name) {
        const auto at = std::find_if(all.begin(), all.end(), [&](const ConstantEffect& e) { return e.name == name; });
        return at == all.end() ? nullptr : &*at;
    }
};

TEST_F(BecauseTest, ATrainingHangsOnTheMatrixRateAndNotOnServing) {
    const auto all =
        of("kind: training\nmodel: llama-3-8b\ndata: {tokens: 1B, sequence: 4096}\n"
           "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 1}\n");
    ASSERT_GT(all.size(), 5u);
    const auto rate = std::find_if(all.begin(), all.end(),
                                   [](const ConstantEffect& e) { return e.name.starts_with("matrix rate of H100"); });
    ASSERT_NE(rate, all.end());
    EXPECT_LT(rate->when_high.step, 0);  // a faster device, a shorter step
    EXPECT_GT(rate->when_low.step, 0);
    EXPECT_LT(rate->when_high.usd, 0);
    EXPECT_EQ(rate->when_high.memory, 0);
    EXPECT_EQ(find(all, "kv_block_tokens_vllm"), nullptr);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].largest, all[i].largest);
    for (const ConstantEffect& e : all) {
        EXPECT_FALSE(e.source.empty()) << e.name;
        EXPECT_FALSE(e.spread.empty()) << e.name;
    }
}

TEST_F(BecauseTest, NothingIsToldOfAPlanThatIsNone) {
    EXPECT_TRUE(because(Plan{}, *Catalog::embedded(), {}).empty());
}

}  // namespace
}  // namespace stoker
