#include <gtest/gtest.h>

#include "workload/workload.h"

namespace stoker {
namespace {

Workload tuned(Method method, Loss loss) {
    Workload w;
    w.kind = WorkloadKind::fine_tuning;
    w.method = method;
    w.loss = loss;
    w.data.examples = 60'000;
    w.data.sequence = 2048;
    w.data.epochs = 2;
    return w;
}

// Who tunes on pairs and has them counted as examples rents for a third of the work.
TEST(Examples, PairsAreTwoSequencesAndAReferenceReadsThem) {
    EXPECT_DOUBLE_EQ(tuned(Method::full, Loss::sft).total_examples(), 120'000);
    EXPECT_DOUBLE_EQ(tuned(Method::full, Loss::orpo).total_examples(), 240'000);
    EXPECT_DOUBLE_EQ(tuned(Method::full, Loss::dpo).total_examples(), 240'000 * 4 / 3.0);
    EXPECT_DOUBLE_EQ(tuned(Method::lora, Loss::dpo).total_examples(), 360'000);
    EXPECT_DOUBLE_EQ(tuned(Method::full, Loss::kto).total_examples(), 160'000);
    const std::string title = tuned(Method::full, Loss::dpo).title();
    EXPECT_NE(title.find(" with DPO on 60,000 pairs, 2 epochs"), std::string::npos) << title;
    EXPECT_EQ(tuned_words(Method::qlora, Loss::simpo), " with QLoRA and SIMPO");
    EXPECT_EQ(tuned_words(Method::full, Loss::sft), "");
}

// Only fine-tuning has a loss; what is served has none.
TEST(Examples, OtherWorkKnowsNoReference) {
    Workload w = tuned(Method::full, Loss::dpo);
    w.kind = WorkloadKind::training;
    EXPECT_DOUBLE_EQ(w.total_examples(), 120'000);
}

}  // namespace
}  // namespace stoker
