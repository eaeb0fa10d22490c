// A tag that only production's values set, or that whoever installs the chart sets, must not pass because values.yaml
// is right.
#include "lint/helm/read_chart.h"

#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

constexpr const char* kAboutChart = "apiVersion: v2\nname: t\nversion: 0.1.0\n";
constexpr const char* kTaggedPod = R"(apiVersion: v1
kind: Pod
metadata: { name: t }
spec:
  containers:
    - name: t
      image: "ghcr.io/acme/t:{{ .Values.image.tag }}"
      resources: { limits: { nvidia.com/gpu: 1 } }
)";

CheckedTree tagged_chart(std::string folder, std::vector<std::pair<std::string, std::string>> more) {
    CheckedTree tree{{{folder + "Chart.yaml", kAboutChart},
                      {folder + "values.yaml", "image: { tag: 1.4.2 }\n"},
                      {folder + "templates/pod.yaml", kTaggedPod}},
                     {}};
    tree.texts.insert(tree.texts.end(), more.begin(), more.end());
    return tree;
}

TEST(ReadChart, WithEachFileOfValuesBesideItsOwn) {
    EXPECT_EQ(tagged_chart("", {}).places("IMG001"), Places{});
    EXPECT_EQ(tagged_chart("", {{"values-prod.yaml", "image: { tag: latest }\n"}}).places("IMG001"),
              Places{"templates/pod.yaml:7"});
    EXPECT_EQ(tagged_chart("", {{"values-prod.yaml", "image: { tag: 1.5.0 }\n"}}).places("IMG001"), Places{});
}

TEST(ReadChart, WithWhatTerraformSets) {
    const auto release = [](const std::string& tag) {
        return "resource \"helm_release\" \"t\" {\n  name  = \"t\"\n  chart = \"${path.module}/t\"\n  set {\n"
               "    name  = \"image.tag\"\n    value = \"" +
               tag + "\"\n  }\n}\n";
    };
    EXPECT_EQ(tagged_chart("t/", {{"main.tf", release("latest")}}).places("IMG001"), Places{"t/templates/pod.yaml:7"});
    EXPECT_EQ(tagged_chart("t/", {{"main.tf", release("1.5.0")}}).places("IMG001"), Places{});
}

TEST(ReadChart, WithWhatHelmIsToldOnItsCommandLine) {
    EXPECT_EQ(tagged_chart("t/", {{"up.sh", "#!/bin/bash\nhelm upgrade -i t ./t --set image.tag=latest,x.y=1\n"}})
                  .places("IMG001"),
              Places{"t/templates/pod.yaml:7"});
    EXPECT_EQ(tagged_chart("t/", {{"up.sh", "#!/bin/bash\nhelm install t ./t -f p.yaml\n"},
                                  {"p.yaml", "image: { tag: nightly }\n"}})
                  .places("IMG001"),
              Places{"t/templates/pod.yaml:7"});
    EXPECT_EQ(tagged_chart("t/", {{"up.sh", "#!/bin/bash\nhelm install t ./t --set image.tag=1.6\n"}}).places("IMG001"),
              Places{});
}

TEST(ReadChart, WithTheValuesOfAHelmfile) {
    const auto helmfile = [](const std::string& tag) {
        return "releases:\n  - name: t\n    chart: ./t\n    values:\n      - image: { tag: " + tag + " }\n";
    };
    EXPECT_EQ(tagged_chart("t/", {{"helmfile.yaml", helmfile("latest")}}).places("IMG001"),
              Places{"t/templates/pod.yaml:7"});
    EXPECT_EQ(tagged_chart("t/", {{"helmfile.yaml", helmfile("1.5.0")}}).places("IMG001"), Places{});
}

TEST(ReadChart, WithBlocksOfALibraryChart) {
    const auto chart = [](const std::string& root) {
        return CheckedTree{
            {{"Chart.yaml", std::string(kAboutChart) + "dependencies:\n  - { name: common, version: 0.1.0 }\n"},
             {"charts/common/templates/_c.tpl",
              "{{- define \"common.c\" -}}\n- name: t\n  image: ghcr.io/acme/t:1.0\n  securityContext: { privileged: "
              "{{ "
              ".root }} }\n  resources: { limits: { nvidia.com/gpu: 1 } }\n{{- end -}}\n"},
             {"templates/pod.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata: { name: t }\nspec:\n  containers:\n    {{- include \"common.c\" "
              "(dict \"root\" " +
                  root + ") | nindent 4 }}\n"}},
            {}};
    };
    EXPECT_EQ(chart("true").places("K8S018").size(), 1u);
    EXPECT_EQ(chart("false").places("K8S018"), Places{});
}

}  // namespace
}  // namespace stoker::lint
