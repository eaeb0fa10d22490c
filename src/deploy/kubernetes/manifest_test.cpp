#include "deploy/kubernetes/manifest.h"

#include <gmock/gmock.h>

#include "deploy/kubernetes/objects.h"
#include "deploy/kubernetes/rank_script.h"
#include "deploy/shared_words.h"

namespace stoker::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const OperationId kId{.site = "k3x7q", .seq = 1};

GangSpec gang(std::size_t ranks, int nodes = 0) {
    GangSpec spec{.attempt = {{7}, 1}, .epoch = 3, .folder = "/shared/work", .log_folder = "/logs", .nodes = nodes};
    for (std::size_t i = 0; i < ranks; ++i) spec.ranks.push_back({.arguments = {"python3", "train.py"}, .gpus = 1});
    return spec;
}

KubeNode node(const std::string& product, std::vector<KubeTaint> taints) {
    KubeNode made{.name = "n"};
    made.labels["nvidia.com/gpu.product"] = product;
    made.allocatable["nvidia.com/gpu"] = 8;
    made.taints = std::move(taints);
    return made;
}

// A Job that is found by what it is for, goes with nothing before its end is known, and restarts nothing by itself.
TEST(KubeManifest, AGangIsOneIndexedJobWithAPodForEachNode) {
    const GpuPlace place = gpu_place({node("NVIDIA-H100-80GB-HBM3", {})}, {}, "");
    const std::string text = job_manifest(kId, gang(16, 2), place, {.image = "trainer:1"}).dump(0);
    for (const char* part :
         {R"("name":"stoker-k3x7q-222223")", R"("finalizers":["stoker/journal"])", R"("suspend":true)",
          R"("completionMode":"Indexed","completions":2,"parallelism":2,"backoffLimit":0)",
          R"("type":"DisruptionTarget")", R"("restartPolicy":"Never")", R"("nvidia.com/gpu":"1")", R"("name":"rank-7")",
          R"("MASTER_ADDR","value":"stoker-k3x7q-222223-0.stoker-ranks")"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(text, Not(HasSubstr("rank-8")));
    const auto job = read_job(Document::parse_json(text, "job")->root());
    ASSERT_TRUE(job.has_value());
    const auto kept = read_kept_gang(kId, job->gang);
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(kept->order.gang.ranks.size(), 16U);
    EXPECT_EQ(kept->order.gang.log_folder, "/logs");
    EXPECT_FALSE(read_kept_gang(kId, "{}").ok());
    EXPECT_THAT(job_manifest(kId, gang(1), place, {.image = "i"}).dump(0), HasSubstr(R"("suspend":false)"));
    GangSpec kept_off = gang(1);
    kept_off.avoid = {"n7"};
    EXPECT_THAT(job_manifest(kId, kept_off, place, {.image = "i"}).dump(0),
                HasSubstr(R"({"key":"metadata.name","operator":"NotIn","values":["n7"]})"));
    EXPECT_THAT(job_manifest(kId, gang(1), place, {.image = "i", .queue = "team"}).dump(0),
                HasSubstr(R"("suspend":true)"));
}

// A container beside the ranks takes nothing that they were promised, sees their step files, and hides nothing of the
// image; where nothing is measured, or server and pods share the folder anyway, there is nothing to add.
TEST(KubeManifest, AContainerBesideTheRanksTellsWhatTheyUse) {
    GangSpec measured = gang(4, 2);
    const auto text = [&](const KubernetesOptions& options) {
        return job_manifest(kId, measured, {}, options).dump(0);
    };
    EXPECT_THAT(text({.image = "i"}), Not(HasSubstr("measures")));
    measured.measure.lines = "/state/runs/r-7/metrics.jsonl";
    for (const char* part :
         {R"("name":"measures","image":"i","restartPolicy":"Always")", R"("requests":{"cpu":"0","memory":"0"})",
          R"("mountPath":"/state/runs/r-7")", R"('/state/runs/r-7/metrics'\"$number\"'.jsonl')"})
        EXPECT_THAT(text({.image = "i"}), HasSubstr(part));
    EXPECT_THAT(text({.image = "i", .shared = {{.path = "/state", .claim = "c"}}}),
                Not(HasSubstr(R"("mountPath":"/state/runs/r-7")")));
    measured.measure.lines = "/shared/metrics.jsonl";  // above the working directory
    EXPECT_THAT(text({.image = "i"}), Not(HasSubstr(R"("name":"steps")")));
    const auto job = read_job(Document::parse_json(text({.image = "i"}), "job")->root());
    EXPECT_TRUE(read_kept_gang(kId, job->gang)->shape.looked_at);
}

// Taints and resource names are the cluster's own: a taint that marks GPU pools is tolerated as it stands there, one
// that keeps another team's nodes is not.
TEST(KubeManifest, TaintsAndNamesAreReadFromTheCluster) {
    const std::vector<KubeNode> nodes{
        node("NVIDIA-H100-80GB-HBM3", {{"sku", "gpu", "NoSchedule"}, {"team", "other", "NoSchedule"}}),
        node("NVIDIA-A100-SXM4-80GB", {{"nvidia.com/gpu", "present", "NoSchedule"}})};
    const KubernetesOptions options{
        .image = "i", .tolerate = {"maintenance"}, .gpu_models = {{"NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB"}}};
    const GpuPlace place = gpu_place(nodes, options, "H100-SXM5-80GB");
    EXPECT_EQ(place.resource, "nvidia.com/gpu");
    EXPECT_EQ(place.products, std::vector<std::string>{"NVIDIA-H100-80GB-HBM3"});
    ASSERT_EQ(place.tolerations.size(), 1U);
    EXPECT_EQ(place.tolerations[0].text(), "sku=gpu:NoSchedule");
    const std::string text = job_manifest(kId, gang(1), place, options).dump(0);
    EXPECT_THAT(text, HasSubstr(R"({"key":"maintenance","operator":"Exists"})"));
    EXPECT_THAT(text, HasSubstr(R"("values":["NVIDIA-H100-80GB-HBM3"])"));
    EXPECT_THAT(text, Not(HasSubstr("team\"")));
    const GpuPlace none = gpu_place(nodes, options, "MI300X");
    EXPECT_EQ(none.resource, "");
    EXPECT_THAT(none.offered, HasSubstr("H100-SXM5-80GB"));
}

// Words with dollars, quotes and line ends reach the program as they are.
TEST(KubeManifest, TheKubeletExpandsNothingOfTheUsers) {
    GangSpec spec = gang(1);
    spec.ranks[0].arguments = {"sh", "-c", "echo $(date) $$ $x"};
    const std::string text = job_manifest(kId, spec, {}, {.image = "i"}).dump(0);
    EXPECT_THAT(text, HasSubstr("echo $$(date) $$$ $x"));
    GangSpec unlike = gang(2);
    unlike.ranks[1].arguments = {"it's", "two\nlines"};
    EXPECT_FALSE(words_are_shared(unlike));
    EXPECT_THAT(rank_script(unlike, 1), HasSubstr("1) set -- 'it'\\''s' 'two\nlines';;"));
    EXPECT_EQ(check_gang_for_kubernetes(kId, unlike, {.image = "i"}).certainty, Certainty::confirmed);
    unlike.ranks[1].arguments = {std::string(200'000, 'x')};
    EXPECT_THAT(check_gang_for_kubernetes(kId, unlike, {.image = "i"}).detail, HasSubstr("120000 fit"));
}

// Each container of each pod has the same script. What it says of each rank by itself grows with the square of the
// gang: 64 ranks were 390 kB a pod, of which 5,000 fill an etcd of 2 GB, and 200 ranks did not fit at all.
TEST(KubeManifest, AJobIsNoLargerForMoreRanks) {
    const auto bytes = [](int ranks) {
        GangSpec spec = gang(ranks, ranks / 8);
        for (std::size_t i = 0; i < spec.ranks.size(); ++i)
            for (const char* key : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
                spec.ranks[i].environment[key] = std::to_string(i);
        EXPECT_EQ(check_gang_for_kubernetes(kId, spec, {.image = "i"}).certainty, Certainty::confirmed);
        return job_manifest(kId, spec, {}, {.image = "i"}).dump(0).size();
    };
    EXPECT_LT(bytes(16'384), bytes(16) + 1000);
    EXPECT_LT(bytes(16'384), 60'000u);
}

// What no cluster could run is refused before anything is made, with what to do.
TEST(KubeManifest, WhatCannotRunIsRefused) {
    EXPECT_THAT(check_gang_for_kubernetes(kId, gang(1), {}).detail, HasSubstr("add image:"));
    EXPECT_THAT(check_gang_for_kubernetes(kId, gang(3, 2), {.image = "i"}).detail, HasSubstr("evenly"));
    GangSpec named = gang(1);
    named.ranks[0].node = "n1";
    EXPECT_THAT(check_gang_for_kubernetes(kId, named, {.image = "i"}).detail, HasSubstr("n1"));
    GangSpec variable = gang(1);
    variable.ranks[0].environment["a b"] = "";
    EXPECT_EQ(check_gang_for_kubernetes(kId, variable, {.image = "i"}).certainty, Certainty::rejected);
    GangSpec part = gang(1);
    part.ranks[0].gpu_milli = 500;
    EXPECT_THAT(check_gang_for_kubernetes(kId, part, {.image = "i"}).detail, HasSubstr("whole GPUs"));
}

}  // namespace
}  // namespace stoker::kubernetes
