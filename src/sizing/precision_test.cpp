#include "sizing/precision.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const Catalog& shipped() {
    static const Catalog* const loaded = new Catalog(std::move(Catalog::embedded()).value());
    return *loaded;
}

Workload read(std::string_view yaml) {
    auto document = Document::parse_yaml(std::string("version: 1\n") + std::string(yaml), "test.yaml");
    auto workload = read_workload(*document, shipped(), {});
    EXPECT_TRUE(workload.ok()) << workload.error().text();
    return std::move(workload).value();
}

Device device_of(std::string_view size) {
    return make_device(shipped(), *shipped().find_node_type(size));
}

constexpr std::string_view kChat = "kind: inference\ntraffic: {requests_per_second: 1}\nmodel: ",
                           kTraining = "kind: training\ndata: {tokens: 10B}\nmodel: ",
                           kImages = "kind: inference\ntraffic: {requests_per_second: 1}\nmodel: resnet-50\n";

// A default is what the model is published in where the device runs it, and what the device has where it does not.
TEST(Precision, ADefaultFollowsModelAndDevice) {
    const Workload r1 = read(std::string(kChat) + "deepseek-r1\n"), llama = read(std::string(kChat) + "llama-3-8b\n"),
                   oss = read(std::string(kChat) + "openai/gpt-oss-120b\n"),
                   bert = read(std::string(kChat) + "bert-base\n");
    EXPECT_EQ(precision_on(r1, device_of("Standard_ND96isr_H100_v5")), Precision::fp8);
    EXPECT_EQ(precision_on(r1, device_of("Standard_NC24ads_A100_v4")), Precision::fp8);  // weight-only
    EXPECT_EQ(precision_on(r1, device_of("Standard_NC4as_T4_v3")), Precision::fp16);
    EXPECT_EQ(precision_on(oss, device_of("Standard_ND96isr_H100_v5")), Precision::fp4);
    EXPECT_EQ(precision_on(llama, device_of("Standard_NC24ads_A100_v4")), Precision::bf16);
    EXPECT_EQ(precision_on(llama, device_of("Standard_NC4as_T4_v3")), Precision::fp16);
    EXPECT_EQ(precision_on(bert, device_of("Standard_NC4as_T4_v3")), Precision::fp16);
    EXPECT_EQ(precision_on(bert, device_of("Standard_D8as_v5")), Precision::fp32);
    EXPECT_EQ(precision_on(read(std::string(kImages)), device_of("Standard_NC24ads_A100_v4")), Precision::fp16);
}

TEST(Precision, TrainingTakesWhatTheDeviceMultiplies) {
    const Workload v3 = read(std::string(kTraining) + "deepseek-v3\n"), gpt2 = read(std::string(kTraining) + "gpt2\n");
    EXPECT_EQ(precision_on(v3, device_of("Standard_ND96isr_H100_v5")), Precision::fp8);
    EXPECT_EQ(precision_on(v3, device_of("Standard_ND96amsr_A100_v4")), Precision::bf16);  // no weight-only training
    EXPECT_EQ(precision_on(gpt2, device_of("Standard_NC4as_T4_v3")), Precision::fp16);
    EXPECT_EQ(precision_on(gpt2, device_of("Standard_D8as_v5")), Precision::fp32);
    const Workload tuned = read("kind: fine-tuning\nmodel: deepseek-v3\ndata: {examples: 10k}\n");
    EXPECT_EQ(precision_on(tuned, device_of("Standard_ND96isr_H100_v5")), Precision::bf16);
}

// No device is refused for a default: every size of the catalogue that computes at all finds one that it runs.
TEST(Precision, ADefaultRefusesNoMachine) {
    const Workload chat = read(std::string(kChat) + "deepseek-r1\n");
    for (std::size_t i = 0; i < shipped().node_types().size(); ++i) {
        const Device device = make_device(shipped(), static_cast<int>(i));
        double most = 0;
        for (const double flops : device.matmul_flops) most = std::max(most, flops);
        const bool wide = device.matmul(Precision::fp32) > 0 || device.matmul(Precision::bf16) > 0 ||
                          device.matmul(Precision::fp16) > 0;
        if (most <= 0 || !wide) continue;
        Workload w = chat;
        fix_precision(w, precision_on(chat, device));
        EXPECT_TRUE(device.matmul(w.precision) > 0 || ((device.weight_formats >> static_cast<int>(w.precision)) & 1u))
            << shipped().node_types()[i].name << " " << to_string(w.precision);
    }
}

// What the file says is meant on any device, and what is fixed is as if the file said it.
TEST(Precision, AGivenOneStands) {
    Workload w = read(std::string(kChat) + "llama-3-8b\nprecision: fp8\n");
    EXPECT_EQ(precision_on(w, device_of("Standard_NC4as_T4_v3")), Precision::fp8);
    w = read(std::string(kChat) + "llama-3-8b\n");
    fix_precision(w, Precision::fp32);
    EXPECT_EQ(precision_on(w, device_of("Standard_ND96isr_H100_v5")), Precision::fp32);
    EXPECT_EQ(w.kv_precision, Precision::fp32);
}

}  // namespace
}  // namespace stoker
