// What stands behind the figures of a plan, as a person reads it: the closest published run, and the constants that
// matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace stoker {

// "1.3 s per step", "412 output tokens/s": a figure of a published run.
std::string metric_text(std::string_view metric, double value);
// "12 % off", and of what is far off, which of the two was slower, and what it and others about as near show together:
// "65 % off: it took 2.9 x as long; together with 3 other sources near it 1.4 x".
std::string off_text(const PublishedRun& run);
bool far_off(const PublishedRun& run);  // so far that it matters which of the two was slower
// ": 8 x the GPUs, 2 x the sequence, fp8", what sets a run apart; empty where nothing does.
std::string unlike_text(const PublishedRun& run);
std::vector<std::string> evidence_lines(const PublishedEvidence& evidence);
// "gemm_k0 350 (300 - 400): step -1.5 +12 % [fitted on ...]", the largest first; empty where nothing was asked for.
std::vector<std::string> because_lines(const Plan& plan);

}  // namespace stoker
