// Benchmarks whose rows print neither lengths nor limits: data/calibration/benchmarks.tsv.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::validate {

struct Benchmark {
    std::string name, model;
    double prompt_tokens = 1, output_tokens = 1;
    double beams = 1;  // sequences that are generated for each prompt
    double steps = 1;  // of denoising, for each image
    std::optional<double> limit_ttft_s, limit_tpot_s, limit_latency_s;
};

class Benchmarks {
public:
    static Result<Benchmarks> embedded();
    static Result<Benchmarks> read(std::string_view text, FileName file);
    // By the name of its model, also with an accuracy target behind: "bert-99.9" is bert. nullptr: none.
    const Benchmark* find(std::string_view model, bool interactive = false) const;

private:
    std::vector<Benchmark> all_;
};

}  // namespace stoker::validate
