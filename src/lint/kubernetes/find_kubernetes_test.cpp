// A pod that is not found is a pod that no rule looks at; an address that moves breaks every baseline.
#include <gtest/gtest.h>

#include "lint/check.h"
#include "lint/checked_tree_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> kubernetes_file(std::string text) {
    return read_file("m.yaml", std::move(text), {.kind = Kind::k8s, .neighbour = {}});
}
std::vector<std::string> kubernetes_addresses(const File& file) {
    std::vector<std::string> list;
    for (const Workload& workload : file.workloads)
        for (const Container& container : workload.containers) list.push_back(container.address);
    return list;
}

TEST(FindKubernetes, FindsPodsInEveryShape) {
    const auto file = kubernetes_file(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}\n"
        "- {apiVersion: batch/v1, kind: CronJob, metadata: {name: n, namespace: x},\n"
        "   spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}}\n"
        "---\n"
        "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: r}\nspec:\n  rayClusterConfig:\n"
        "    headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}\n"
        "    workerGroupSpecs:\n    - groupName: gpu\n      replicas: 3\n      template: {spec: {containers: [{name: "
        "ray}]}}\n"
        "---\n"
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec:\n  replicatedJobs:\n"
        "  - {name: w, template: {spec: {parallelism: 4, template: {spec: {initContainers: [{name: i}], containers: "
        "[{name: c}]}}}}}\n");
    EXPECT_EQ(kubernetes_addresses(*file),
              (std::vector<std::string>{"k8s:default/Pod/p#container/c", "k8s:x/CronJob/n#container/c",
                                        "k8s:default/RayService/r/headGroupSpec#container/ray",
                                        "k8s:default/RayService/r/gpu#container/ray",
                                        "k8s:default/JobSet/j#initContainer/i", "k8s:default/JobSet/j#container/c"}));
    EXPECT_TRUE(file->workloads[3].replicas.is("3"));
    EXPECT_TRUE(file->workloads[4].replicas.is("4"));
}

TEST(FindKubernetes, MakesNoPodOfATemplateThatCapacityIsAskedFor) {
    const std::string pod =
        "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\ntemplate: {spec: {containers: [{name: c}]}}\n";
    const auto asked = kubernetes_file(
        pod + "---\napiVersion: autoscaling.x-k8s.io/v1\nkind: ProvisioningRequest\nmetadata: {name: r}\n");
    ASSERT_EQ(asked->workloads.size(), 2u);
    EXPECT_EQ(asked->workloads[0].pod, nullptr);
    EXPECT_NE(kubernetes_file(pod)->workloads.at(0).pod, nullptr);
}

TEST(FindKubernetes, KnowsTheSizeOfAGroup) {
    const auto file = kubernetes_file(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n  replicas: 2\n"
        "  leaderWorkerTemplate:\n    size: 4\n    leaderTemplate: {spec: {containers: [{name: a}]}}\n"
        "    workerTemplate: {spec: {containers: [{name: b}]}}\n");
    ASSERT_EQ(file->workloads.size(), 2u);
    EXPECT_TRUE(file->workloads[0].group_size.is("4"));
    EXPECT_TRUE(file->workloads[1].replicas.is("2"));
    EXPECT_EQ(file->workloads[1].address, "k8s:default/LeaderWorkerSet/l/workerTemplate");
}

// The resources of a Dynamo service stand beside its container.
TEST(FindKubernetes, ReadsDynamoServices) {
    const auto file = kubernetes_file(
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: d}\nspec:\n  services:\n"
        "    decode:\n      multinode: {nodeCount: 2}\n      resources: {limits: {gpu: \"8\"}}\n"
        "      extraPodSpec: {mainContainer: {image: x, args: [--tp, \"16\"]}}\n");
    ASSERT_EQ(file->workloads.size(), 1u);
    const Container& container = file->workloads[0].containers.at(0);
    ASSERT_TRUE(container.limit("nvidia.com/gpu"));
    EXPECT_TRUE(container.limit("nvidia.com/gpu")->amount.is("8"));
    EXPECT_TRUE(file->workloads[0].group_size.is("2"));
}

TEST(FindKubernetes, GivesTheScriptOfAShellToItsReader) {
    const auto file = kubernetes_file(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: a\n    command: [/bin/bash, "
        "-o, "
        "pipefail, -ec]\n    args:\n    - |\n      set -x\n      torchrun a.py\n  - {name: b, command: [bash, -c, --, "
        "\"ls\"]}\n"
        "  - {name: c, command: [bash, run.sh]}\n  - {name: d, command: [python, -c, \"print(1)\"]}\n");
    const auto& containers = file->workloads.at(0).containers;
    ASSERT_EQ(file->guests.size(), 2u);
    EXPECT_EQ(file->guests[0]->source().text(), "set -x\ntorchrun a.py\n");
    EXPECT_EQ(file->guests[0]->host_container, &containers[0]);
    EXPECT_EQ(file->guests[0]->source().place(7).line, 11u);
    EXPECT_EQ(file->guests[1]->source().text(), "ls");
    EXPECT_TRUE(containers[2].scripts.empty());
    EXPECT_TRUE(containers[3].scripts.empty());
}

TEST(FindKubernetes, ReadsFilesOfConfigMaps) {
    const auto file = kubernetes_file(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  run.sh: |\n    torchrun a.py\n  note: hello\n");
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_TRUE(file->guests[0]->kinds.has(Kind::launch));
}

TEST(FindKubernetes, PlaceholdersAreUnknown) {
    const auto file = kubernetes_file(
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: $N}},\n"
        "  env: [{name: A, value: $TOKEN}, {name: B, valueFrom: {secretKeyRef: {name: s}}}, {name: C, value: x}]}]}\n");
    const Container& container = file->workloads.at(0).containers.at(0);
    EXPECT_TRUE(container.limit("nvidia.com/gpu")->amount.unknown());
    EXPECT_TRUE(container.env("A")->value.unknown());
    EXPECT_TRUE(container.env("B")->value.unknown());
    EXPECT_TRUE(container.env("C")->value.is("x"));
    EXPECT_EQ(file->environment.size(), 3u);
}

TEST(FindKubernetes, ReadsPoolsThatAreObjects) {
    const auto file = kubernetes_file(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gpu}\nspec:\n  template:\n    metadata: "
        "{labels: {a: "
        "b}}\n    spec:\n      taints: [{key: k, value: v, effect: NoSchedule}]\n      requirements:\n"
        "      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n");
    ASSERT_EQ(file->resources.size(), 1u);
    EXPECT_TRUE(file->resources[0].get(Attr::taint).is("k=v:NoSchedule"));
    EXPECT_TRUE(file->resources[0].get(Attr::node_label).is("a=b"));
    EXPECT_TRUE(file->resources[0].get(Attr::priority).is("spot"));
}

TEST(FindKubernetes, KnowsTheSizesOfAnAffinity) {
    const auto file = kubernetes_file(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  affinity:\n    nodeAffinity:\n"
        "      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        - "
        "matchExpressions:\n"
        "          - {key: node.kubernetes.io/instance-type, operator: In, values: [Standard_NC6, Standard_NC12]}\n"
        "  containers: [{name: c}]\n");
    ASSERT_EQ(file->resources.size(), 1u);
    EXPECT_EQ(file->resources[0].all(Attr::size).size(), 2u);
    EXPECT_EQ(file->resources[0].type, ResourceType::other);
}

// Rendered charts: the finding names the template that it came from.
TEST(FindKubernetes, NamesTheTemplateOfARenderedChart) {
    const auto file = kubernetes_file(
        "---\n# Source: llm/templates/a.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: "
        "[{name: c}]}\n"
        "---\n# Source: llm/templates/b.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  containers:\n  "
        "- name: c\n"
        "    resources: {limits: {nvidia.com/gpu: 1.5}}\n");
    const auto findings = check_file(*file, {}, Knowledge::embedded());
    ASSERT_EQ(findings.size(), 1u);
    ASSERT_FALSE(findings[0].related.empty());
    EXPECT_EQ(findings[0].related.front().message, "rendered from llm/templates/b.yaml");
}

// A variable that one file sets and another one reads decides what the program does.
TEST(FindKubernetes, AConfigMapOfAFileBesideSetsVariables) {
    const std::string job =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n      containers:\n"
        "        - name: c\n          image: acme.io/t:1\n          envFrom: [{configMapRef: {name: env}}]\n"
        "          command: [torchrun, --nnodes=2, --nproc-per-node=8, train.py]\n"
        "          resources: {limits: {nvidia.com/gpu: 8}}\n";
    const auto map = [](const std::string& name, const std::string& data) {
        return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {" + data + "}\n";
    };
    CheckedTree tree{{{"job.yaml", job}, {"map.yaml", map("env", "OMP_NUM_THREADS: \"8\"")}}, {}};
    EXPECT_EQ(tree.places("RUN014").size(), 1u);
    tree.texts[1].second = map("env", "MASTER_ADDR: j-0.j");
    EXPECT_EQ(tree.places("RUN014"), Places{});
    tree.texts[1].second = map("other", "OMP_NUM_THREADS: \"8\"");
    EXPECT_EQ(tree.places("RUN014"), Places{}) << "what is not seen may say it";
}

// Kubeflow's TrainJob has no pod of its own: the runtime that it names has the rest.
TEST(FindKubernetes, ReadsTheTrainerOfATrainJob) {
    const auto file = kubernetes_file(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec:\n  trainer:\n"
        "    image: acme.io/t:1\n    numNodes: 2\n    command: [torchrun, train.py]\n"
        "    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}\n");
    ASSERT_EQ(file->workloads.size(), 1u);
    EXPECT_TRUE(file->workloads[0].replicas.is("2"));
    ASSERT_EQ(file->workloads[0].containers.size(), 1u);
    ASSERT_NE(file->workloads[0].containers[0].limit("nvidia.com/gpu"), nullptr);
    EXPECT_TRUE(file->workloads[0].containers[0].limit("nvidia.com/gpu")->amount.is("4"));
}

// KServe gives vLLM the arguments of a model of Hugging Face.
TEST(FindKubernetes, AModelOfHuggingFaceIsServedByVllm) {
    const auto served = [](const std::string& format) {
        return kubernetes_file(
                   "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: m}\nspec:\n"
                   "  predictor:\n    model:\n      modelFormat: {name: " +
                   format + "}\n      args: [--tensor-parallel-size=2]\n")
            ->launches.size();
    };
    EXPECT_EQ(served("huggingface"), 1u);
    EXPECT_EQ(served("sklearn"), 0u);
}

}  // namespace
}  // namespace stoker::lint
