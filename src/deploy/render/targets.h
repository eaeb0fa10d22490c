// What a Deployment is written down as: one row a target. Rendering is pure and decides nothing: what it needs is in
// the Deployment, and what cannot be said in a target's words is refused. To add one: a file here and a line in
// targets.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/deployment.h"

namespace stoker {

struct RenderTarget {
    std::string_view name, summary;
    // Which work it can say; empty: it can. Else in words why not.
    std::string (*refusal)(const Deployment& deployment);
    std::vector<FileToWrite> (*files)(const Deployment& deployment);
    // What a training is planned for when its file names no framework and this target is asked for; empty: whatever the
    // planner chooses.
    std::string_view framework{};
};
std::span<const RenderTarget> render_targets();

// The target's row; invalid with the list of those that there are.
Result<const RenderTarget*> find_render_target(std::string_view name);
// The first that can say this work; unsupported with the list.
// `passed_over`: in words, why it is not the platform's own; empty where it is.
Result<const RenderTarget*> usual_render_target(const Deployment& deployment, std::string* passed_over = nullptr);

// The Deployment with the files of the target in it. unsupported: that target has no words for this work.
Result<Deployment> rendered(Deployment deployment, const RenderTarget& target);

// The rows, each in the file of its name.
std::string torchrun_refusal(const Deployment& deployment);
std::vector<FileToWrite> torchrun_files(const Deployment& deployment);
std::string local_refusal(const Deployment& deployment);
std::vector<FileToWrite> local_files(const Deployment& deployment);
std::string slurm_refusal(const Deployment& deployment);
std::vector<FileToWrite> slurm_files(const Deployment& deployment);
std::string deepspeed_refusal(const Deployment& deployment);
std::vector<FileToWrite> deepspeed_files(const Deployment& deployment);
std::string accelerate_refusal(const Deployment& deployment);
std::vector<FileToWrite> accelerate_files(const Deployment& deployment);
std::string megatron_refusal(const Deployment& deployment);
std::vector<FileToWrite> megatron_files(const Deployment& deployment);
std::string torchtitan_refusal(const Deployment& deployment);
std::vector<FileToWrite> torchtitan_files(const Deployment& deployment);
std::string nemo_refusal(const Deployment& deployment);
std::vector<FileToWrite> nemo_files(const Deployment& deployment);
std::string ray_refusal(const Deployment& deployment);
std::vector<FileToWrite> ray_files(const Deployment& deployment);
std::string horovod_refusal(const Deployment& deployment);
std::vector<FileToWrite> horovod_files(const Deployment& deployment);
std::string pbs_refusal(const Deployment& deployment);
std::vector<FileToWrite> pbs_files(const Deployment& deployment);
std::string sge_refusal(const Deployment& deployment);
std::vector<FileToWrite> sge_files(const Deployment& deployment);
std::string vllm_refusal(const Deployment& deployment);
std::vector<FileToWrite> vllm_files(const Deployment& deployment);
std::string sglang_refusal(const Deployment& deployment);
std::vector<FileToWrite> sglang_files(const Deployment& deployment);
std::string tgi_refusal(const Deployment& deployment);
std::vector<FileToWrite> tgi_files(const Deployment& deployment);
std::string tensorrt_llm_refusal(const Deployment& deployment);
std::vector<FileToWrite> tensorrt_llm_files(const Deployment& deployment);
std::string triton_refusal(const Deployment& deployment);
std::vector<FileToWrite> triton_files(const Deployment& deployment);
std::string llama_cpp_refusal(const Deployment& deployment);
std::vector<FileToWrite> llama_cpp_files(const Deployment& deployment);
std::string kubernetes_refusal(const Deployment& deployment);
std::string kustomize_refusal(const Deployment& deployment);
std::string kueue_refusal(const Deployment& deployment);
std::string keda_refusal(const Deployment& deployment);
std::vector<FileToWrite> keda_files(const Deployment& deployment);
std::string mpijob_refusal(const Deployment& deployment);
std::string rayjob_refusal(const Deployment& deployment);
std::vector<FileToWrite> kubernetes_files(const Deployment& deployment);
std::vector<FileToWrite> jobset_files(const Deployment& deployment);
std::vector<FileToWrite> pytorchjob_files(const Deployment& deployment);
std::vector<FileToWrite> mpijob_files(const Deployment& deployment);
std::vector<FileToWrite> rayjob_files(const Deployment& deployment);
std::vector<FileToWrite> kueue_files(const Deployment& deployment);
std::vector<FileToWrite> kustomize_files(const Deployment& deployment);
std::string azure_refusal(const Deployment& deployment);
std::string aks_refusal(const Deployment& deployment);
std::string terraform_refusal(const Deployment& deployment);
std::string cloud_init_refusal(const Deployment& deployment);
std::string azure_ml_refusal(const Deployment& deployment);
std::string batch_refusal(const Deployment& deployment);
std::string cyclecloud_refusal(const Deployment& deployment);
std::string on_prem_refusal(const Deployment& deployment);
std::string slurm_cloud_refusal(const Deployment& deployment);
std::vector<FileToWrite> slurm_cloud_files(const Deployment& deployment);
std::vector<FileToWrite> az_files(const Deployment& deployment);
std::vector<FileToWrite> bicep_files(const Deployment& deployment);
std::vector<FileToWrite> arm_files(const Deployment& deployment);
std::vector<FileToWrite> terraform_files(const Deployment& deployment);
std::vector<FileToWrite> cloud_init_files(const Deployment& deployment);
std::vector<FileToWrite> aks_files(const Deployment& deployment);
std::vector<FileToWrite> azure_ml_files(const Deployment& deployment);
std::vector<FileToWrite> batch_files(const Deployment& deployment);
std::vector<FileToWrite> cyclecloud_files(const Deployment& deployment);
std::vector<FileToWrite> on_prem_files(const Deployment& deployment);

}  // namespace stoker
