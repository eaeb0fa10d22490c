// What a file only says to run, without a plan: one job, or the points of a sweep as an array of jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/deployment.h"

namespace stoker {

struct RunPoint {
    std::string title;  // "lr=1e-4 batch=8"
    StartSpec start;
};
struct RunArray {
    std::string name;
    std::vector<RunPoint> points;  // alike but for program and environment
    int parallel = 0;              // at most so many at once; 0: as many as there is room for
    bool array = false;            // of several runs, also where only one is left
};

// unsupported: the target has no words for it.
Result<std::vector<FileToWrite>> run_array_files(const RunArray& runs, std::string_view target);

}  // namespace stoker
