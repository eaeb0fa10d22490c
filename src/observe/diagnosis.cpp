#include "observe/diagnosis.h"

#include <algorithm>

namespace stoker {

// One file each, in diagnoses/.
DiagnosisVerdict judge_hung_collective(const RunEvidence& evidence);
DiagnosisVerdict judge_disk_full(const RunEvidence& evidence);
DiagnosisVerdict judge_memory_pressure(const RunEvidence& evidence);
DiagnosisVerdict judge_cpu_limit(const RunEvidence& evidence);
DiagnosisVerdict judge_noisy_neighbour(const RunEvidence& evidence);
DiagnosisVerdict judge_starved_input(const RunEvidence& evidence);
DiagnosisVerdict judge_slow_link(const RunEvidence& evidence);
DiagnosisVerdict judge_wrong_interface(const RunEvidence& evidence);
DiagnosisVerdict judge_straggler(const RunEvidence& evidence);
DiagnosisVerdict judge_disk_slow(const RunEvidence& evidence);
DiagnosisVerdict judge_checkpoint_stalls(const RunEvidence& evidence);
DiagnosisVerdict judge_other_precision(const RunEvidence& evidence);
DiagnosisVerdict judge_batch_smaller(const RunEvidence& evidence);
DiagnosisVerdict judge_recompute_on(const RunEvidence& evidence);
DiagnosisVerdict judge_eager_not_compiled(const RunEvidence& evidence);
DiagnosisVerdict judge_warm_up(const RunEvidence& evidence);
DiagnosisVerdict judge_loss_not_finite(const RunEvidence& evidence);
DiagnosisVerdict judge_memory_leak(const RunEvidence& evidence);
DiagnosisVerdict judge_garbage_collection(const RunEvidence& evidence);
DiagnosisVerdict judge_waits_for_disk(const RunEvidence& evidence);
DiagnosisVerdict judge_pauses(const RunEvidence& evidence);
DiagnosisVerdict judge_slower_with_time(const RunEvidence& evidence);
DiagnosisVerdict judge_ended_early(const RunEvidence& evidence);
DiagnosisVerdict judge_tcp_not_infiniband(const RunEvidence& evidence);
DiagnosisVerdict judge_idle_in_step(const RunEvidence& evidence);

namespace {

bool follows(const Diagnosis& symptom, const Diagnosis& other) {
    if (symptom.rule == other.rule) return false;
    const auto& reasons = symptom.rule->follows_from;
    if (std::find(reasons.begin(), reasons.end(), other.rule->judge) != reasons.end()) return true;
    return symptom.rule->late_rank && other.rank && other.rank == symptom.rank;
}

}  // namespace

const std::vector<DiagnosisRule>& diagnosis_rules() {
    using enum HealthLayer;
    static const std::vector<DiagnosisRule> of_all_runs = {
        {.name = "hung-collective", .layer = network, .judge = judge_hung_collective},
        {.name = "disk-full", .layer = device, .judge = judge_disk_full},
        {.name = "memory-pressure", .layer = device, .judge = judge_memory_pressure},
        {.name = "cpu-limit", .layer = device, .judge = judge_cpu_limit, .clears = ClearsNode::on_any_rank},
        {.name = "noisy-neighbour", .layer = device, .judge = judge_noisy_neighbour, .clears = ClearsNode::never},
        // A loader that reads its pages again and again is slow for want of memory.
        {.name = "starved-input",
         .layer = model,
         .judge = judge_starved_input,
         .follows_from = {judge_memory_pressure}},
        {.name = "wrong-interface", .layer = network, .judge = judge_wrong_interface},
        {.name = "slow-link", .layer = network, .judge = judge_slow_link, .instead = {judge_tcp_not_infiniband}},
        // A limit that stops all ranks or pages that all of them lack never hit them alike.
        {.name = "straggler",
         .layer = device,
         .judge = judge_straggler,
         .clears = ClearsNode::never,
         .late_rank = true,
         .follows_from = {judge_cpu_limit, judge_memory_pressure}},
        {.name = "disk-slow", .layer = device, .judge = judge_disk_slow, .cost = CostLies::beside_step},
        {.name = "checkpoint-stalls", .layer = model, .judge = judge_checkpoint_stalls, .cost = CostLies::beside_step},
        {.name = "other-precision", .layer = model, .judge = judge_other_precision},
        {.name = "batch-smaller", .layer = model, .judge = judge_batch_smaller},
        {.name = "recompute-on", .layer = model, .judge = judge_recompute_on},
        {.name = "eager-not-compiled", .layer = model, .judge = judge_eager_not_compiled},
        {.name = "loss-not-finite", .layer = model, .judge = judge_loss_not_finite},
        {.name = "memory-leak", .layer = model, .judge = judge_memory_leak},
        {.name = "waits-for-disk",
         .layer = device,
         .judge = judge_waits_for_disk,
         .instead = {judge_disk_slow, judge_checkpoint_stalls, judge_starved_input, judge_memory_pressure}},
        {.name = "idle-in-step",
         .layer = model,
         .judge = judge_idle_in_step,
         .instead = {judge_waits_for_disk, judge_disk_slow, judge_memory_pressure, judge_cpu_limit}},
        {.name = "garbage-collection", .layer = model, .judge = judge_garbage_collection},
        {.name = "ended-early", .layer = model, .judge = judge_ended_early},
        // These two say how steps are uneven, and not why: what says why is enough.
        {.name = "pauses",
         .layer = model,
         .judge = judge_pauses,
         .instead = {judge_garbage_collection, judge_waits_for_disk, judge_noisy_neighbour, judge_cpu_limit,
                     judge_memory_pressure}},
        {.name = "slower-with-time",
         .layer = model,
         .judge = judge_slower_with_time,
         .follows_from = {judge_memory_leak},
         .instead = {judge_noisy_neighbour, judge_cpu_limit, judge_memory_pressure}},
        {.name = "warm-up", .layer = model, .judge = judge_warm_up, .cost = CostLies::before_steady}};
    static const std::vector<DiagnosisRule> rules = [] {
        std::vector<DiagnosisRule> all = of_all_runs;
        for (DiagnosisRule& rule : gpu_diagnosis_rules()) all.push_back(std::move(rule));
        return all;
    }();
    return rules;
}

const DiagnosisRule* find_diagnosis_rule(std::string_view name) {
    for (const DiagnosisRule& rule : diagnosis_rules())
        if (rule.name == name) return &rule;
    return nullptr;
}

std::string_view Diagnosis::name() const {
    return rule == nullptr ? std::string_view() : rule->name;
}

Diagnoses diagnose(const RunEvidence& evidence) {
    Diagnoses all;
    for (const DiagnosisRule& rule : diagnosis_rules()) {
        DiagnosisVerdict verdict = rule.judge(evidence);
        if (verdict.kind == DiagnosisVerdict::Kind::found && verdict.diagnosis) {
            verdict.diagnosis->rule = &rule;
            all.found.push_back(std::move(*verdict.diagnosis));
        } else if (verdict.kind == DiagnosisVerdict::Kind::ruled_out) {
            all.ruled_out.emplace_back(rule.name, std::move(verdict.reason));
        } else if (verdict.kind == DiagnosisVerdict::Kind::silent) {
            all.not_known.emplace_back(rule.name, std::move(verdict.reason));
        }
    }
    for (const DiagnosisRule& rule : diagnosis_rules()) {
        const auto mere =
            std::find_if(all.found.begin(), all.found.end(), [&](const Diagnosis& each) { return each.rule == &rule; });
        if (mere == all.found.end()) continue;
        const auto why = std::find_if(all.found.begin(), all.found.end(), [&](const Diagnosis& each) {
            if (std::find(rule.instead.begin(), rule.instead.end(), each.rule->judge) == rule.instead.end())
                return false;
            if (rule.cost == CostLies::at_most) return true;
            return (each.own || !mere->own) && 2 * each.cost_s >= mere->cost_s;
        });
        if (why == all.found.end()) continue;
        all.ruled_out.emplace_back(rule.name, "explained by " + std::string(why->name()));
        all.found.erase(mere);
    }
    // What has a reason of its own in the program is not told of its neighbours as well.
    double step = evidence.step_s().value_or(0), own = 0;
    for (const Diagnosis& each : all.found)
        if (each.own && each.rule->cost == CostLies::within_step) own += each.cost_s;
    for (Diagnosis& each : all.found)
        if (each.rule->judge == judge_noisy_neighbour && step > 0) each.cost_s *= std::max(0.0, 1 - own / step);
    std::stable_sort(all.found.begin(), all.found.end(), [](const Diagnosis& a, const Diagnosis& b) {
        if (a.stops != b.stops) return a.stops;
        const auto place = [](CostLies cost) {
            return cost == CostLies::before_steady ? 2 : cost == CostLies::at_most ? 1 : 0;
        };
        const int place_a = place(a.rule->cost), place_b = place(b.rule->cost);
        return place_a != place_b ? place_a < place_b : a.cost_s > b.cost_s;
    });
    // A symptom is told after its reason, whatever the two cost.
    for (const DiagnosisRule& rule : diagnosis_rules()) {
        const auto symptom =
            std::find_if(all.found.begin(), all.found.end(), [&](const Diagnosis& each) { return each.rule == &rule; });
        if (symptom == all.found.end()) continue;
        if (std::any_of(all.found.begin(), all.found.end(),
                        [&](const Diagnosis& each) { return follows(*symptom, each); }))
            std::rotate(symptom, symptom + 1, all.found.end());
    }
    return all;
}

}  // namespace stoker
