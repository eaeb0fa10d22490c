// Regret: within each group of measured layouts of one model on one number of devices, how much slower is the layout
// that the model ranks first than the best that was measured.
#pragma once

#include <string>
#include <vector>

#include "validate/predict.h"

namespace stoker::validate {

struct RegretGroup {
    std::string source{}, model{}, device{};
    double gpus = 0;
    std::size_t layouts = 0;
    double best_s = 0;  // measured
    // Measured of the choice over the best, less 1. By the model; the most common layout of the source; FLOPs alone;
    // any, on average.
    double model_choice = 0, common = 0, flops = 0, random = 0;
    std::string chosen{};  // id of the row the model ranks first
};

struct RegretFigures {
    double median = 0, mean = 0, max = 0;
};

struct Regret {
    std::vector<RegretGroup> groups;
    RegretFigures model_choice, common, flops, random;
    std::size_t left_out = 0;  // rows with a measured step that were refused or contradict themselves
};

inline constexpr std::size_t kLeastLayouts = 8;
Regret regret(const Csv& csv, Jobs& jobs);

}  // namespace stoker::validate
