// A bundle that is too small misses what two files do to each other; one that is too large joins strangers.
#include "check/bundles.h"

#include <gtest/gtest.h>

#include <map>

#include "lint/read.h"

namespace stoker {
namespace {

// Bundles as "folder: path path".
std::vector<std::string> grouped(const std::vector<std::string>& paths,
                                 const std::map<std::string, std::string>& modules = {}) {
    std::vector<CheckInput> inputs;
    std::vector<WalkedFile> walked;
    for (const std::string& path : paths) {
        walked.push_back({path, ".", false});
        CheckInput input{path, ".", nullptr, {}, {}};
        if (!path.ends_with("Chart.yaml") && !path.ends_with("stoker.toml")) {
            auto file = std::make_shared<lint::File>(path, "x");
            if (path.ends_with(".tf")) file->kinds.add(lint::Kind::terraform);
            if (const auto module = modules.find(path); module != modules.end()) {
                lint::Node& root = file->tree.make(file->source(), lint::Shape::object, {});
                file->tree.roots.push_back(&root);
                lint::Node& block = file->tree.make(file->source(), lint::Shape::object, {});
                block.key = "module";
                file->tree.append(root, block);
                lint::Node& source = file->tree.make(file->source(), lint::Shape::string, {});
                source.key = "source";
                source.text = module->second;
                file->tree.append(block, source);
            }
            input.file = file;
        }
        inputs.push_back(std::move(input));
    }
    std::vector<std::string> list;
    for (const InputBundle& bundle : group_bundles(inputs, walked)) {
        std::string text = bundle.folder + ":";
        for (const std::size_t i : bundle.inputs) text += " " + inputs[i].path;
        list.push_back(text);
    }
    return list;
}
using Groups = std::vector<std::string>;

TEST(Bundles, JoinTheOnlyClusterWithItsManifests) {
    EXPECT_EQ(grouped({"infra/main.tf", "k8s/job.yaml", "run.sh"}), Groups{".: infra/main.tf k8s/job.yaml run.sh"});
    EXPECT_EQ(grouped({"chart/Chart.yaml", "chart/templates/a.yaml", "main.tf"}),
              Groups{".: chart/templates/a.yaml main.tf"});
}

TEST(Bundles, KeepSeveralRootsApart) {
    EXPECT_EQ(grouped({"dev/main.tf", "dev/pod.yaml", "prod/main.tf", "prod/deep/job.yaml", "top.yaml"}),
              (Groups{"dev: dev/main.tf dev/pod.yaml", "prod: prod/main.tf prod/deep/job.yaml", ".: top.yaml"}));
    // Which of the clusters a sample is for is not known: it is joined with what lies in its own folder.
    EXPECT_EQ(grouped({"aws/main.tf", "gcp/main.tf", "azure/make/pool.sh", "azure/pod.yaml", "kserve/model/a.yaml"}),
              (Groups{"aws: aws/main.tf", "gcp: gcp/main.tf", "azure: azure/make/pool.sh azure/pod.yaml",
                      "kserve: kserve/model/a.yaml"}));
    EXPECT_EQ(grouped({"a/Chart.yaml", "a/x.yaml", "b/Chart.yaml", "b/y.yaml"}),
              (Groups{"a: a/x.yaml", "b: b/y.yaml"}));
}

TEST(Bundles, PutLocalModulesToTheirRoot) {
    const std::map<std::string, std::string> modules = {{"dev/main.tf", "../modules/pool"}, {"prod/main.tf", "./gpu"}};
    EXPECT_EQ(grouped({"dev/main.tf", "modules/pool/pool.tf", "prod/gpu/gpu.tf", "prod/main.tf"}, modules),
              (Groups{"dev: dev/main.tf modules/pool/pool.tf", "prod: prod/gpu/gpu.tf prod/main.tf"}));
    // A root and its module are one project.
    EXPECT_EQ(grouped({"main.tf", "modules/m/m.tf", "k8s/a.yaml"}, {{"main.tf", "./modules/m"}}),
              Groups{".: main.tf modules/m/m.tf k8s/a.yaml"});
    // A circle ends.
    EXPECT_EQ(grouped({"a/a.tf", "b/b.tf"}, {{"a/a.tf", "../b"}, {"b/b.tf", "../a"}}).size(), 1u);
}

TEST(Bundles, EndWhereAProjectHasItsOwnConfiguration) {
    EXPECT_EQ(grouped({"one/stoker.toml", "one/a.yaml", "two/b.yaml"}), (Groups{"one: one/a.yaml", ".: two/b.yaml"}));
}

// An overlay and what it takes in are one project, with the machines beside them; two projects are two.
TEST(Bundles, JoinKustomizationsThatTakeOneAnotherIn) {
    const auto grouped_files = [](const std::vector<std::pair<std::string, std::string>>& files) {
        std::vector<CheckInput> inputs;
        std::vector<WalkedFile> walked;
        for (const auto& [path, text] : files) {
            walked.push_back({path, ".", false});
            inputs.push_back({path, ".", lint::read_file(path, text), {}, {}});
        }
        std::vector<std::string> list;
        for (const InputBundle& bundle : group_bundles(inputs, walked)) {
            list.push_back(bundle.folder + ":");
            for (const std::size_t i : bundle.inputs) list.back() += " " + inputs[i].path;
        }
        return list;
    };
    const std::string base = "resources: [pod.yaml]\n", over = "resources: [../base]\ncomponents: [../more/gpu]\n";
    EXPECT_EQ(grouped_files({{"infra/pool.sh", "az aks list\n"},
                             {"k8s/base/kustomization.yaml", base},
                             {"k8s/dev/kustomization.yaml", over},
                             {"k8s/more/gpu/kustomization.yaml", "kind: Component\npatches: []\n"}}),
              Groups{".: infra/pool.sh k8s/base/kustomization.yaml k8s/dev/kustomization.yaml "
                     "k8s/more/gpu/kustomization.yaml"});
    EXPECT_EQ(
        grouped_files({{"a/base/kustomization.yaml", base},
                       {"a/dev/kustomization.yaml", "resources: [../base]\n"},
                       {"b/kustomization.yaml", base},
                       {"run.sh", "az aks list\n"}}),
        (Groups{"a: a/base/kustomization.yaml a/dev/kustomization.yaml", "b: b/kustomization.yaml", ".: run.sh"}));
}

}  // namespace
}  // namespace stoker
