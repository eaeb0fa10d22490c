// What experiment trackers write while a program trains, read for its steps: event files of TensorBoard, the file of a
// W&B run (offline too), and the metrics of MLflow's file store. Each says when a step was logged, to a millisecond or
// better, so that it does not matter how late it is flushed. Nothing in such a file can make a reader grow or fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/step_file.h"

namespace stoker {

class TrackerFile {
public:
    virtual ~TrackerFile() = default;
    // The new steps, each with its time and the loss where one was logged; one line a step.
    virtual std::vector<StepLine> poll() = 0;

    // By its name; null: none of theirs.
    static std::unique_ptr<TrackerFile> open(const std::string& path);
};

// One that a process writes: what it has open, else what lies in its working folder and was written since.
// since_s: wall clock.
std::optional<std::string> find_tracker_file(const std::string& proc, const std::vector<pid_t>& pids, double since_s);

}  // namespace stoker
