// What a training of a vision transformer keeps for its backward pass was told as nothing: 128 images of ViT-B/16 on
// one H200 as 1.7 GB, where 11.2 were measured, so that plans chose devices that run out of memory with the first
// batch.
#include "sizing/layer_shape.h"

#include <gtest/gtest.h>

#include "sizing/training_setup.h"

namespace stoker {
namespace {

const Catalog& catalog() {
    static const Catalog all = *Catalog::embedded();
    return all;
}

TrainingSetup setup_of(const ModelSpec& model, std::string framework, Precision precision = Precision::bf16) {
    Workload w;
    w.kind = WorkloadKind::training;
    w.model = model;
    w.framework = std::move(framework);
    w.precision = precision;
    Device device;
    device.gpu = device.nvidia = true;
    device.matmul_flops.fill(700e12);
    device.peak_flops.fill(989e12);
    device.supports = ~0u;
    device.sm_count = 132;
    device.memory_bytes = 141e9;
    device.memory_bytes_per_s = 4.8e12;
    device.launch_s = 5e-6;
    device.devices_per_node = 1;
    return *make_training_setup(w, catalog(), device, false);
}

TEST(VisionTransformers, KeepTheirLayersActivations) {
    int seen = 0;
    for (const ModelSpec& model : catalog().models()) {
        if (model.kind != ModelKind::vit) continue;
        ++seen;
        for (const char* framework : {"", "pytorch", "transformers", "nemo"}) {
            const TrainingSetup setup = setup_of(model, framework);
            const double cell = static_cast<double>(model.layers) * model.hidden * model.max_sequence;
            EXPECT_GT(setup.sample_activation_bytes, 20 * cell) << model.name << " " << framework;
            EXPECT_LT(setup.sample_activation_bytes, 60 * cell) << model.name << " " << framework;
            EXPECT_GT(setup.sample_traffic_bytes, 0) << model.name;
        }
    }
    EXPECT_GE(seen, 12);
}

TEST(VisionTransformers, FillADeviceAsOneDid) {
    const ModelSpec& model = catalog().models()[static_cast<std::size_t>(*catalog().find_model("vit-b-16"))];
    ParallelLayout layout;
    layout.micro_batch = 128;
    TrainingEstimate out;
    evaluate(setup_of(model, "transformers"), layout, 1, out);
    EXPECT_NEAR(out.allocated_bytes, 11.17e9, 0.15 * 11.17e9);  // PyTorch 2.11, transformers 5.17 on an H200
    TrainingEstimate wide;
    evaluate(setup_of(model, "transformers", Precision::fp32), layout, 1, wide);
    EXPECT_GT(wide.allocated_bytes, 1.3 * out.allocated_bytes);
}

}  // namespace
}  // namespace stoker
