// The rules about GPUs. Of a run without one they say nothing.
#include "observe/diagnosis.h"

namespace stoker {

DiagnosisVerdict judge_pauses(const RunEvidence& evidence);
DiagnosisVerdict judge_starved_input(const RunEvidence& evidence);
DiagnosisVerdict judge_hung_collective(const RunEvidence& evidence);
DiagnosisVerdict judge_cpu_limit(const RunEvidence& evidence);
DiagnosisVerdict judge_noisy_neighbour(const RunEvidence& evidence);
DiagnosisVerdict judge_waits_for_disk(const RunEvidence& evidence);
DiagnosisVerdict judge_memory_pressure(const RunEvidence& evidence);
DiagnosisVerdict judge_other_precision(const RunEvidence& evidence);
DiagnosisVerdict judge_garbage_collection(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_error(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_memory_errors(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_heat(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_power(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_straggler(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_pcie(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_copies(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_nvlink(const RunEvidence& evidence);
DiagnosisVerdict judge_tcp_not_infiniband(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_neighbour(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_host_bound(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_starved(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_idle(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_precision(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_tensor_idle(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_unfused(const RunEvidence& evidence);
DiagnosisVerdict judge_gpu_fragmentation(const RunEvidence& evidence);

std::vector<DiagnosisRule> gpu_diagnosis_rules() {
    using enum HealthLayer;
    // What stops or slows the host of a GPU makes the GPU idle.
    const std::vector<JudgeDiagnosis> host = {judge_hung_collective, judge_starved_input,     judge_cpu_limit,
                                              judge_noisy_neighbour, judge_waits_for_disk,    judge_memory_pressure,
                                              judge_pauses,          judge_garbage_collection};
    std::vector<JudgeDiagnosis> any = host;
    any.insert(any.end(), {judge_gpu_error, judge_gpu_host_bound, judge_gpu_starved});
    return {
        {.name = "gpu-error", .layer = device, .judge = judge_gpu_error, .clears = ClearsNode::never},
        {.name = "gpu-memory-errors", .layer = device, .judge = judge_gpu_memory_errors, .clears = ClearsNode::never},
        {.name = "gpu-heat", .layer = device, .judge = judge_gpu_heat, .clears = ClearsNode::never},
        {.name = "gpu-power", .layer = device, .judge = judge_gpu_power, .clears = ClearsNode::never},
        {.name = "gpu-straggler",
         .layer = device,
         .judge = judge_gpu_straggler,
         .clears = ClearsNode::never,
         .instead = {judge_gpu_heat, judge_gpu_power}},
        {.name = "gpu-pcie", .layer = device, .judge = judge_gpu_pcie, .clears = ClearsNode::never},
        {.name = "gpu-nvlink", .layer = network, .judge = judge_gpu_nvlink, .clears = ClearsNode::never},
        {.name = "tcp-not-infiniband", .layer = network, .judge = judge_tcp_not_infiniband},
        {.name = "gpu-neighbour", .layer = device, .judge = judge_gpu_neighbour, .clears = ClearsNode::never},
        {.name = "gpu-starved", .layer = model, .judge = judge_gpu_starved, .instead = host},
        {.name = "gpu-host-bound", .layer = model, .judge = judge_gpu_host_bound, .instead = host},
        {.name = "gpu-idle", .layer = model, .judge = judge_gpu_idle, .instead = any},
        {.name = "gpu-precision", .layer = model, .judge = judge_gpu_precision, .instead = {judge_other_precision}},
        {.name = "gpu-tensor-idle",
         .layer = model,
         .judge = judge_gpu_tensor_idle,
         .instead = {judge_gpu_precision, judge_other_precision}},
        {.name = "gpu-fragmentation", .layer = model, .judge = judge_gpu_fragmentation},
        {.name = "gpu-copies",
         .layer = model,
         .judge = judge_gpu_copies,
         .cost = CostLies::at_most,
         .clears = ClearsNode::never,
         .instead = {judge_gpu_pcie, judge_starved_input}},
        {.name = "gpu-unfused",
         .layer = model,
         .judge = judge_gpu_unfused,
         .cost = CostLies::at_most,
         .clears = ClearsNode::never,
         .instead = {judge_gpu_precision, judge_other_precision}}};
}

}  // namespace stoker
