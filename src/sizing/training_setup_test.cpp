#include "sizing/training_setup.h"

#include <gtest/gtest.h>

#include "sizing/training.h"
#include "sizing/training_flops.h"

namespace stoker {
namespace {

// Powers of two of tokens have a slot, below one sequence by context parallelism; others are computed.
TEST(GemmTableSlots, CoverPowersOfTwo) {
    EXPECT_EQ(token_slot(1, 1, 5, 12), 5);
    EXPECT_EQ(token_slot(64, 1, 5, 12), 11);
    EXPECT_EQ(token_slot(1, 32, 5, 12), 0);
    EXPECT_EQ(token_slot(2, 8, 5, 12), 3);
    EXPECT_EQ(token_slot(3, 1, 5, 12), -1);
    EXPECT_EQ(token_slot(128, 1, 5, 12), -1);
    EXPECT_EQ(token_slot(1, 64, 5, 12), -1);
    EXPECT_GE(tensor_slot(6), 0);
    EXPECT_EQ(tensor_slot(7), -1);
    EXPECT_EQ(tensor_slot(100000), -1);
}

// With frozen weights a backward pass has half the multiplications.
TEST(GemmTimesOfALayer, SkipWeightGradientsOfFrozenWeights) {
    TrainingSetup setup;
    setup.device.matmul_flops.fill(271e12);
    setup.device.memory_bytes_per_s = 2e12;
    setup.device.sm_count = 108;
    setup.hidden = 4096;
    setup.heads = setup.kv_heads = 32;
    setup.head_dim = 128;
    setup.ffn = 11008;
    setup.vocabulary = 32000;
    setup.attention_params = 4.0 * 4096 * 4096;
    setup.mlp_params = 3.0 * 4096 * 11008;
    const GemmTimes full = gemm_times(setup, 1, 8192);
    setup.method = Method::lora;
    const GemmTimes frozen = gemm_times(setup, 1, 8192);
    EXPECT_DOUBLE_EQ(full.dense_forward, frozen.dense_forward);
    EXPECT_NEAR(frozen.dense_backward / full.dense_backward, 0.5, 0.05);
    EXPECT_NEAR(full.dense_backward / full.dense_forward, 2, 0.2);
    // A tensor slice of 8 does an eighth of the work, a little less well.
    const GemmTimes slice = gemm_times(setup, 8, 8192);
    EXPECT_GE(slice.dense_forward, full.dense_forward / 8);
    EXPECT_LT(slice.dense_forward, full.dense_forward / 5);
}

// Adapters of an image model that counted as full training took eight GPUs for forty pictures.
TEST(AdaptersOfImageModels, KeepNoStatesOfTheBaseAndSkipItsWeightGradients) {
    const Catalog catalog = *Catalog::embedded();
    Workload work;
    work.kind = WorkloadKind::fine_tuning;
    work.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model("flux.1-dev"))];
    work.model_known = true;
    work.precision = Precision::bf16;
    const Device device = make_device(catalog, *catalog.find_node_type("Standard_NC40ads_H100_v5"));
    const TrainingSetup full = *make_training_setup(work, catalog, device);
    work.method = Method::lora;
    const TrainingSetup lora = *make_training_setup(work, catalog, device);
    EXPECT_LT(lora.trainable_params, 0.03 * lora.total_params);
    EXPECT_NEAR(model_flops(lora, 1) / model_flops(full, 1), 2.0 / 3, 1e-9);
    TrainingEstimate all, adapters;
    evaluate(full, ParallelLayout{}, 1, all);
    evaluate(lora, ParallelLayout{}, 1, adapters);
    EXPECT_EQ(all.refused, Reason::memory);
    EXPECT_EQ(adapters.refused, Reason::none);
    EXPECT_NEAR(adapters.seconds[static_cast<std::size_t>(TimeTerm::matmul)] /
                    all.seconds[static_cast<std::size_t>(TimeTerm::matmul)],
                2.0 / 3, 1e-9);
}

// T5 by the Trainer was told 0.62 of a step that the host decides: its decoder has two attentions a layer.
TEST(KernelsOfALayer, AreMoreWhereItAttendsToAnEncoder) {
    const Catalog catalog = *Catalog::embedded();
    Workload work;
    work.kind = WorkloadKind::training;
    work.model_known = true;
    work.model.layers = 24;
    work.model.hidden = 768;
    work.model.heads = work.model.kv_heads = 12;
    work.model.ffn = 3072;
    work.model.vocabulary = 32128;
    work.data.sequence = 64;
    const Device device = make_device(catalog, *catalog.find_node_type("Standard_NC40ads_H100_v5"));
    work.model.kind = ModelKind::decoder;
    const double alone = make_training_setup(work, catalog, device)->kernels_per_layer;
    work.model.kind = ModelKind::encoder_decoder;
    work.model.decoder_layers = 12;
    EXPECT_NEAR(make_training_setup(work, catalog, device)->kernels_per_layer / alone, 1.3, 0.1);
}

}  // namespace
}  // namespace stoker
