// Whoever reads "the pods run" deploys: each of the eight combinations must end as the scheduler would end it.
#include "lint/gpu_scheduling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

std::optional<SchedulingVerdict> verdict_of(bool taint, bool plugin, bool toleration, std::string key = "sku") {
    std::vector<std::unique_ptr<File>> files;
    files.push_back(
        read_file("main.tf", fmt::format("resource \"azurerm_kubernetes_cluster_node_pool\" \"gpu\" {{\n"
                                         "  name    = \"gpu\"\n"
                                         "  vm_size = \"Standard_NC24ads_A100_v4\"\n{}}}\n",
                                         taint ? "  node_taints = [\"" + key + "=gpu:NoSchedule\"]\n" : "")));
    files.push_back(read_file(
        "pod.yaml",
        std::string("apiVersion: v1\nkind: Pod\nmetadata: {name: train}\nspec:\n") +
            (toleration ? "  tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]\n" : "") +
            "  containers:\n  - name: c\n    image: registry.example/a:1\n    resources: {limits: "
            "{nvidia.com/gpu: 1}}\n"));
    if (plugin)
        files.push_back(
            read_file("plugin.yaml",
                      "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: nvidia-device-plugin}\nspec:\n"
                      "  template:\n    spec:\n      containers:\n      - name: p\n"
                      "        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0\n"));
    Bundle bundle;
    for (const auto& file : files) bundle.files.push_back(file.get());
    return scheduling_verdict(bundle, Knowledge::embedded());
}

TEST(GpuScheduling, JudgesTheEightCombinations) {
    for (int i = 0; i < 8; ++i) {
        const bool taint = i & 4, plugin = i & 2, toleration = i & 1;
        const auto verdict = verdict_of(taint, plugin, toleration);
        ASSERT_TRUE(verdict) << i;
        const auto yes = [](bool there) { return there ? Certainty::yes : Certainty::no; };
        EXPECT_EQ(verdict->taint.there, yes(taint)) << verdict->text;
        EXPECT_EQ(verdict->plugin.there, yes(plugin)) << verdict->text;
        EXPECT_EQ(verdict->toleration.there, yes(toleration)) << verdict->text;
        EXPECT_EQ(verdict->runs, yes(plugin && (!taint || toleration))) << verdict->text;
        EXPECT_EQ(verdict->text.find("any other pod") != std::string::npos, plugin && !taint) << verdict->text;
    }
}

TEST(GpuScheduling, KnowsWhatTheServerTolerates) {
    const auto verdict = verdict_of(true, true, false, "nvidia.com/gpu");
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->runs, Certainty::yes) << verdict->text;
    EXPECT_EQ(verdict->taint.place.line, 4u);
}

TEST(GpuScheduling, SaysNothingWhereThereIsNothingToJoin) {
    const auto file = read_file("main.tf",
                                "resource \"azurerm_kubernetes_cluster_node_pool\" \"a\" {\n  vm_size = "
                                "\"Standard_NC24ads_A100_v4\"\n}\n");
    Bundle bundle;
    bundle.files.push_back(file.get());
    EXPECT_FALSE(scheduling_verdict(bundle, Knowledge::embedded()));
    const auto open = read_file("pool.tf",
                                "variable \"t\" {}\nresource \"azurerm_kubernetes_cluster_node_pool\" \"a\" {\n"
                                "  vm_size = \"Standard_NC24ads_A100_v4\"\n  node_taints = [var.t]\n}\n");
    const auto pod = read_file("pod.yaml",
                               "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
                               "  - name: c\n    resources: {limits: {nvidia.com/gpu: 1}}\n");
    bundle.files = {open.get(), pod.get()};
    const auto verdict = scheduling_verdict(bundle, Knowledge::embedded());
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->taint.there, Certainty::unknown);
    EXPECT_NE(verdict->runs, Certainty::yes);  // no plugin
}

}  // namespace
}  // namespace stoker::lint
