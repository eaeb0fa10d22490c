#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/platform.h"
#include "plan/testing.h"

namespace stoker {
namespace {

const NodeType& size(std::string_view name) {
    return testing::node(*testing::catalog().find_node_type(name));
}

ImageChoice image(std::string_view name, Orchestrator orchestrator, WorkloadKind kind = WorkloadKind::training) {
    Workload workload;
    workload.kind = kind;
    return choose_image(workload, testing::catalog(), size(name), orchestrator);
}

constexpr Orchestrator kAll[] = {Orchestrator::local, Orchestrator::slurm,    Orchestrator::cyclecloud_slurm,
                                 Orchestrator::aks,   Orchestrator::azure_ml, Orchestrator::vmss,
                                 Orchestrator::batch, Orchestrator::ray,      Orchestrator::kubernetes};

struct Row {
    std::string_view size;
    Orchestrator orchestrator;
    std::string_view image, reason;  // parts of both
};

// Vendor, size, orchestrator and host, one row each.
TEST(Image, FollowsVendorSizeOrchestratorAndHost) {
    using enum Orchestrator;
    const Row rows[] = {
        {"Standard_NC24ads_A100_v4", local, "microsoft-dsvm:ubuntu-2204", "NVIDIA driver"},
        {"Standard_NC24ads_A100_v4", vmss, "microsoft-dsvm:ubuntu-2204", "NVIDIA driver"},
        {"Standard_NC24ads_A100_v4", aks, "aks-ubuntu", "NVIDIA data-centre driver"},
        {"Standard_NC24ads_A100_v4", azure_ml, "azureml-compute", "environment with CUDA"},
        {"Standard_NC24ads_A100_v4", batch, "microsoft-dsvm:ubuntu-hpc", "NVIDIA driver"},
        {"Standard_NC24ads_A100_v4", cyclecloud_slurm, "microsoft-dsvm:ubuntu-hpc", "NVIDIA driver"},
        {"Standard_ND96isr_H100_v5", cyclecloud_slurm, "microsoft-dsvm:ubuntu-hpc:2204:", "InfiniBand drivers"},
        {"Standard_ND96isr_H100_v5", local, "microsoft-dsvm:ubuntu-hpc:2204:", "InfiniBand drivers"},
        {"Standard_ND96isr_H100_v5", aks, "aks-ubuntu", "InfiniBand needs the network operator"},
        {"Standard_ND96is_MI300X_v5", local, "2204-rocm", "ROCm"},
        {"Standard_ND96is_MI300X_v5", vmss, "2204-rocm", "ROCm"},
        {"Standard_ND96is_MI300X_v5", aks, "aks-ubuntu", "AMD GPU operator"},
        {"Standard_ND96is_MI300X_v5", azure_ml, "azureml-compute", "environment with ROCm"},
        {"Standard_ND96isr_MI300X_v5", cyclecloud_slurm, "2204-rocm", "InfiniBand"},
        {"Standard_NV36ads_A10_v5", aks, "aks-ubuntu", "GRID"},
        {"Standard_NV12ads_A10_v5", vmss, "Canonical", "GRID"},
        {"Standard_D8as_v5", batch, "Canonical", "no GPU"},
        {"Standard_D8as_v5", aks, "aks-ubuntu", "container"},
        {"p5.48xlarge", slurm, "deep learning image", "NVIDIA"},
        {"p5.48xlarge", kubernetes, "EKS", "H100"},
    };
    for (const Row& row : rows) {
        const ImageChoice chosen = image(row.size, row.orchestrator);
        EXPECT_NE(chosen.name.find(row.image), std::string::npos)
            << row.size << " " << to_string(row.orchestrator) << ": " << chosen.name;
        EXPECT_NE(chosen.reason.find(row.reason), std::string::npos)
            << row.size << " " << to_string(row.orchestrator) << ": " << chosen.reason;
    }
}

// No size of the catalogue gets an image with the driver of another vendor, or one that its orchestrator cannot start.
TEST(Image, HasTheDriverOfItsVendorAndCanBeStarted) {
    for (const NodeType& node : testing::catalog().node_types()) {
        const bool amd = node.has_gpu() &&
                         testing::catalog().accelerators()[static_cast<std::size_t>(node.accelerator)].vendor == "AMD";
        for (const Orchestrator orchestrator : kAll)
            for (const WorkloadKind kind :
                 {WorkloadKind::training, WorkloadKind::inference, WorkloadKind::simulation}) {
                Workload workload;
                workload.kind = kind;
                const ImageChoice chosen = choose_image(workload, testing::catalog(), node, orchestrator);
                EXPECT_FALSE(chosen.name.empty());
                if (amd) {
                    EXPECT_EQ(chosen.reason.find("with NVIDIA driver"), std::string::npos) << node.name;
                    EXPECT_EQ(chosen.reason.find("CUDA"), std::string::npos) << node.name;
                }
                const auto found = testing::catalog().find_image(chosen.name);
                if (node.cloud != "azure" || !found) continue;
                const Image& image = testing::catalog().images()[static_cast<std::size_t>(*found)];
                bool starts = false;
                for (const Image& one : testing::catalog().images())
                    if (one.urn == image.urn)
                        for (const std::string& who : one.orchestrators)
                            starts |= who == to_string(orchestrator) ||
                                      (orchestrator == Orchestrator::ray && who == "aks") ||
                                      (orchestrator == Orchestrator::kubernetes && who == "local");
                EXPECT_TRUE(starts) << node.name << " " << to_string(orchestrator) << ": " << chosen.name;
            }
    }
}

// Machines that are there have no image of a cloud, and one of them is no cluster.
TEST(Image, OwnMachinesHaveNone) {
    NodeType own = size("Standard_ND96isr_H100_v5");
    own.cloud = "on-prem";
    for (const Orchestrator orchestrator : kAll)
        EXPECT_EQ(choose_image({}, testing::catalog(), own, orchestrator).name, "not needed");
}

// A plan on so many machines of one's own, as deep as one GPU each.
Plan plan_on_own(int machines) {
    static const auto* const loaded = new Catalog(std::move(Catalog::embedded()).value());
    Catalog catalog = *loaded;
    NodeType own = catalog.node_types()[static_cast<std::size_t>(*catalog.find_node_type("Standard_NC24ads_A100_v4"))];
    own.name = "desk";
    own.cloud = "on-prem";
    own.available = machines;
    const int type = catalog.add_node_type(own);
    catalog.replace_price({.node_type = type, .region = "on-prem", .os = "linux", .pricing = Pricing::owned});
    Workload asked = testing::workload("kind: training\nmodel: resnet-50\ndata: {examples: 10000}\n");
    asked.where.clouds = {"on-prem"};
    auto made = make_plan(asked, catalog, testing::quick());
    EXPECT_TRUE(made.ok() && made->feasible());
    return std::move(made).value();
}

// One machine of one's own has nothing to schedule over, no image of a cloud, and no VM to wait for.
TEST(Platform, OneOwnMachineIsLocal) {
    const Plan one = plan_on_own(1), four = plan_on_own(4);
    EXPECT_EQ(one.platform.orchestrator, Orchestrator::local);
    EXPECT_TRUE(one.platform.alternatives.empty());
    EXPECT_EQ(four.platform.orchestrator, Orchestrator::slurm);
    EXPECT_EQ(one.platform.image, "not needed");
    EXPECT_LT(one.candidates.front().prediction.hours.mid, 0.1);  // provisioning alone would be a sixth of an hour
}

}  // namespace
}  // namespace stoker
