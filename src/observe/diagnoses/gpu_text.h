// What the rules about GPUs share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

// None of the ranks holds a GPU: nothing is said, not even that something is missing.
DiagnosisVerdict no_gpu_here();
std::vector<const RankEvidence*> gpu_ranks(const RunEvidence& evidence);
// Of those the one with the largest (or smallest) mean of a measure.
const RankEvidence* worst_gpu(const RunEvidence& evidence, std::string_view name, bool largest = true);

// What a rank works in a step, in which a slower GPU costs; its step where it tells no more.
std::optional<double> gpu_work_s(const RankEvidence& rank);
// The median clock of the GPUs whose clock nothing holds down, other than this rank's; none: there is none of that
// kind.
std::optional<double> unheld_clock(const RunEvidence& evidence, const RankEvidence& rank);
// The part of the time in which nothing ran on the GPU, of a step, less what is known to be waiting for data and for
// checkpoints. None: not known, or in collectives it is not told which.
std::optional<double> gpu_idle_s(const RankEvidence& rank);

std::string clock_text(double hertz);  // "1,755 MHz"
// "the GPU of rank 3", "the GPUs of rank 3 on node-b".
std::string gpu_of(const RankEvidence& rank);

}  // namespace stoker
