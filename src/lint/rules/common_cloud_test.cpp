// Days, images and GPU pools are judged here for all cloud rules: a mistake is a mistake in each of them.
#include "lint/rules/common_cloud.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(CommonCloud, CountsDays) {
    EXPECT_EQ(days_between("2026-11-20", "2026-11-20"), 0);
    EXPECT_EQ(days_between("2024-02-28", "2024-03-01"), 2);
    EXPECT_EQ(days_between("2025-12-31", "2026-01-01"), 1);
    EXPECT_EQ(days_between("soon", "2026-01-01"), 0);
}

TEST(CommonCloud, KnowsGpuSizesOfEachAge) {
    const Knowledge& facts = Knowledge::embedded();
    for (const char* yes :
         {"Standard_NC6", "standard_nc6_promo", "Standard_ND96isr_H100_v5", "Standard_NV12s_v3", "p5.48xlarge"})
        EXPECT_TRUE(gpu_size(yes, facts)) << yes;
    for (const char* no : {"Standard_D4s_v5", "Standard_A1", "m5.large", ""}) EXPECT_FALSE(gpu_size(no, facts)) << no;
}

std::vector<Finding> found_on(const std::string& as_of) {
    const auto file = read_file(
        "main.tf", "resource \"azurerm_linux_virtual_machine\" \"a\" {\n  size = \"Standard_NC6s_v3\"\n}\n", {});
    CheckOptions options;
    options.as_of = as_of;
    return check_file(*file, options, Knowledge::embedded());
}
bool has(const std::vector<Finding>& findings, std::string_view rule) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.rule == rule; });
}

// The day decides between "will be retired" and "is": a build must not turn red before it.
TEST(CommonCloud, DatesDecide) {
    EXPECT_FALSE(has(found_on("2025-09-29"), "SKU001"));
    EXPECT_TRUE(has(found_on("2025-09-29"), "SKU002"));
    EXPECT_TRUE(has(found_on("2025-09-30"), "SKU001"));
    EXPECT_TRUE(has(found_on("2025-10-01"), "SKU001"));
    EXPECT_FALSE(has(found_on("2025-10-01"), "SKU002"));
}

// Money in a finding is believed: it is the catalogue's price of that size, in that region, times the nodes.
TEST(CommonCloud, TellsWhatIgnoringCosts) {
    const auto cost_of = [](std::string text, std::string_view rule, std::string region) {
        const bool yaml = text.starts_with("apiVersion");
        const auto file = read_file(yaml ? "pod.yaml" : "main.tf", std::move(text), {});
        Bundle bundle;
        bundle.files.push_back(file.get());
        CheckOptions options;
        options.as_of = "2026-11-20";
        options.region = std::move(region);
        for (const Finding& finding : check_bundle(bundle, options, Knowledge::embedded()))
            if (finding.rule == rule) return finding.cost;
        ADD_FAILURE() << rule;
        return std::optional<FindingCost>();
    };
    const auto vm = [](std::string more) {
        return "resource \"azurerm_linux_virtual_machine\" \"a\" {\n  size = \"Standard_NC24ads_A100_v4\"\n" + more +
               "}\n";
    };
    const auto one = cost_of(vm(""), "COST001", "eastus");
    ASSERT_TRUE(one);
    EXPECT_NEAR(one->usd_per_hour, 3.673, 1e-9);
    EXPECT_NEAR(one->usd_per_weekend(), 220.38, 1e-9);
    EXPECT_EQ(one->text(),
              "Standard_NC24ads_A100_v4 idle is 3.67 USD an hour, 220 a weekend of 60 hours (in eastus, 2026-06-18)");
    EXPECT_NEAR(cost_of(vm("  count = 4\n"), "COST001", "eastus")->usd_per_hour, 4 * 3.673, 1e-9);
    EXPECT_TRUE(cost_of(vm(""), "COST001", "")->lowest);
    // Unknown is silence: no number of machines, no price in the region, a price that moves.
    EXPECT_FALSE(cost_of(vm("  count = var.n\n"), "COST001", "eastus"));
    EXPECT_FALSE(cost_of(vm(""), "COST001", "atlantis"));
    EXPECT_FALSE(cost_of(vm("  priority = \"Spot\"\n"), "COST001", "eastus"));
    const auto pool = cost_of(
        "resource \"azurerm_kubernetes_cluster_node_pool\" \"p\" {\n  name = \"p\"\n"
        "  vm_size = \"Standard_NC24ads_A100_v4\"\n  node_count = 3\n}\n",
        "NPL003", "eastus");
    ASSERT_TRUE(pool);
    EXPECT_EQ(pool->nodes, 3);
    const auto pod = [](std::string selector) {
        return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n" + selector +
               "  containers:\n  - name: c\n    command: [sleep, infinity]\n    resources: {limits: {nvidia.com/gpu: "
               "1}}\n";
    };
    EXPECT_NEAR(cost_of(pod("  nodeSelector: {node.kubernetes.io/instance-type: Standard_NC24ads_A100_v4}\n"),
                        "COST010", "eastus")
                    ->usd_per_hour,
                3.673, 1e-9);
    EXPECT_FALSE(cost_of(pod(""), "COST010", "eastus"));
    EXPECT_NEAR(pool->usd_per_hour, 3 * 3.673, 1e-9);
}

// A fix that leaves the finding, or breaks the file, is worse than none. Over the bad examples of every page.
TEST(Fixes, MendWhatTheyAreFor) {
    int fixed = 0;
    for (const RulePage& head : rule_pages()) {
        const RulePage page = whole_rule_page(head.id);
        for (const RuleExample& example : page.examples) {
            if (!example.bad) continue;
            const auto check = [&](const std::vector<std::pair<std::string, std::string>>& texts,
                                   std::vector<std::unique_ptr<File>>& files) {
                Bundle bundle;
                for (const auto& [path, text] : texts)
                    if (auto file = read_file(path, text, {}))
                        files.push_back(std::move(file)), bundle.files.push_back(files.back().get());
                CheckOptions options;
                options.as_of = "2026-11-20";
                return check_bundle(bundle, options, Knowledge::embedded());
            };
            std::vector<std::unique_ptr<File>> files;
            for (const Finding& finding : check(example.files, files)) {
                if (finding.rule != page.id || !finding.fix) continue;
                auto mended = example.files;
                for (auto& [path, text] : mended) {
                    if (path != finding.path) continue;
                    for (auto edit = finding.fix->edits.rbegin(); edit != finding.fix->edits.rend(); ++edit)
                        text.replace(edit->span.begin, edit->span.size(), edit->replacement);
                }
                std::vector<std::unique_ptr<File>> again;
                for (const Finding& left : check(mended, again)) {
                    EXPECT_FALSE(left.rule == finding.rule && left.address == finding.address)
                        << page.id << " " << example.title << "\n"
                        << mended[0].second;
                    EXPECT_NE(left.rule, "SYN001") << page.id << " " << example.title << "\n" << mended[0].second;
                }
                for (const auto& file : again)
                    EXPECT_TRUE(file->problems.empty()) << page.id << "\n" << mended[0].second;
                ++fixed;
            }
        }
    }
    EXPECT_GT(fixed, 20);
}

}  // namespace
}  // namespace stoker::lint
