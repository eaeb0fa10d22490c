// RankNeeds: what a Deployment plans for each of its ranks, and what a RunSpec asks for.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// What one rank takes of its node.
struct RankNeeds {
    std::int64_t cpu_milli = 1000;
    std::int64_t memory_bytes = 0;  // 0: none set aside, no limit
    int gpus = 0;
    int gpu_milli = 1000;   // of each; below 1000 with one GPU only
    std::string gpu_model;  // empty: any
    friend bool operator==(const RankNeeds&, const RankNeeds&) = default;
};

template <class V>
void fields(V& visit, RankNeeds& needs) {
    visit("cpu_milli", needs.cpu_milli);
    visit("gpu_milli", needs.gpu_milli);
    visit("gpu_model", needs.gpu_model);
    visit("gpus", needs.gpus);
    visit("memory_bytes", needs.memory_bytes);
}

}  // namespace stoker
