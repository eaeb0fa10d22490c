// Which seeds a simulation plays: all of them; STOKER_SIM_SEED alone, to see a failure again; or, under sanitizers,
// where each takes ten times as long, one of every STOKER_SIM_SHARE. STOKER_SIM_SEEDS plays so many in place of those
// that a test names.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::sim {

std::vector<std::uint64_t> seeds(std::uint64_t count);
std::uint64_t seed_share();  // 1: all
// What has to have happened over all seeds together can only be asked where all are played.
bool all_seeds();

}  // namespace stoker::sim
