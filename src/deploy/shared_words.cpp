#include "deploy/shared_words.h"

#include <algorithm>

namespace stoker {

bool words_are_shared(const GangSpec& gang) {
    return std::all_of(gang.ranks.begin(), gang.ranks.end(),
                       [&](const RankSpec& rank) { return rank.arguments == gang.ranks[0].arguments; });
}

std::map<std::string, std::string> shared_environment(const GangSpec& gang) {
    std::map<std::string, std::string> result = gang.ranks[0].environment;
    for (const RankSpec& rank : gang.ranks)
        std::erase_if(result, [&](const auto& each) {
            const auto found = rank.environment.find(each.first);
            return found == rank.environment.end() || found->second != each.second;
        });
    return result;
}

}  // namespace stoker
