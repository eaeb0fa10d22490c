#include "seeds.h"

#include <algorithm>
#include <cstdlib>

namespace stoker::sim {

std::uint64_t seed_share() {
    const char* share = std::getenv("STOKER_SIM_SHARE");
    return share == nullptr ? 1 : std::max<std::uint64_t>(1, std::strtoull(share, nullptr, 10));
}

bool all_seeds() {
    return seed_share() == 1 && std::getenv("STOKER_SIM_SEED") == nullptr;
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
    if (const char* one = std::getenv("STOKER_SIM_SEED")) return {std::strtoull(one, nullptr, 10)};
    if (const char* more = std::getenv("STOKER_SIM_SEEDS")) count = std::strtoull(more, nullptr, 10);
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 1; i <= count; i += seed_share()) all.push_back(i);
    return all;
}

}  // namespace stoker::sim
