// A row of training or of training memory as a job of the cost model: its setup, its layout, its nodes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sizing/nearness.h"
#include "sizing/training.h"
#include "validate/hardware.h"
#include "validate/row.h"
#include "validate/shape.h"

namespace stoker::validate {

struct Job {
    std::string refused;
    std::vector<std::string> assumed;
    std::shared_ptr<const TrainingSetup> setup;
    ParallelLayout layout;
    int nodes = 1;
    int accelerator = -1;  // of the catalogue
    double gpus = 1, sequence = 1;
    double global_batch = 0;   // as the row has it, else one pass without accumulation
    bool device_known = true;  // false: nothing names the device, and any was taken (memory only)
    double most_memory = 0;    // bytes of the largest device that the row may mean; 0: it says which
    TrainingEstimate estimate;
    MeasuredCase measured;  // what its interval grows by
};

class Jobs {
public:
    Jobs(Hardware& hardware, Shapes& shapes) : hardware_(&hardware), shapes_(&shapes) {}

    // `memory`: the rows of a memory file, where the device may be blank and only the peak is wanted.
    Job of(const Row& row, bool memory);

    const Catalog& catalog() const { return hardware_->catalog(); }
    double constant(std::string_view name) const { return hardware_->catalog().constant_or_die(name); }

private:
    std::shared_ptr<const TrainingSetup> setup(const std::string& key, const Workload& workload, const Device& device,
                                               bool table, std::string& refused);
    Hardware* hardware_;
    Shapes* shapes_;
    std::map<std::string, std::shared_ptr<const TrainingSetup>, std::less<>> setups_;
};

// Of the words in precision and notes; what the device lacks falls back to what it has, and that is noted.
Precision training_precision(const Row& row, const Device& device, std::vector<std::string>& assumed,
                             std::string& refused);
// Whether that type is the model's own, not of a context around it ("amp", "mixed").
bool trained_in_own_type(const Row& row);

}  // namespace stoker::validate
