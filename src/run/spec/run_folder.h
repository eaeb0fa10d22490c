// Where a run keeps its things, below the engine's folder:
//   runs/r-7/a-7.1/rank-0.out   log of a rank      runs/r-7/metrics.jsonl   what STOKER_METRICS_FILE got
//   runs/r-7/artifacts/         STOKER_ARTIFACT_DIR    runs/r-7/checkpoints/    when the spec names a relative folder
#pragma once

#include <string>

#include "base/ids.h"
#include "base/measure.h"
#include "base/result.h"
#include "run/spec/run_spec.h"

namespace stoker {

struct RunFolder {
    std::string path;  // FOLDER/runs/r-7
    std::string logs(const AttemptId& attempt) const { return path + "/" + attempt.text(); }
    std::string log(const AttemptId& attempt, int rank) const;
    std::string metrics() const { return path + "/metrics.jsonl"; }
    std::string artifacts() const { return path + "/artifacts"; }
    // The spec's own when absolute, below `path` when relative; empty: none are written.
    std::string checkpoints(const RunSpec& spec) const;
};
// What its ranks are looked at for, wherever they run.
MeasureSpec measure_spec(const RunSpec& spec, const RunFolder& folder);
// The network interface that its ranks are told to use, as NCCL and gloo read it; empty: none is named.
std::string named_interface(const RunSpec& spec);

RunFolder run_folder(const std::string& engine_folder, RunId run);

// Makes what a run finds when it starts: its folder, artifacts and checkpoints.
Status make_run_folder(const RunFolder& folder, const std::string& checkpoints);

}  // namespace stoker
