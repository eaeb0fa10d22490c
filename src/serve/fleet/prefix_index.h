// Which replica holds the beginning of a prompt: hashes of its blocks, each chained to those before, and who computed
// them last. Of a fixed size; what was used longest ago goes first. One thread, or a lock around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/fleet/route.h"

namespace stoker {

// One hash for each whole block of the prompt, each of all that is before it too. The seed is of tenant and revision:
// else one tenant could tell by the time to a first token what another one has asked. Bytes past `most_blocks` blocks
// are not looked at.
inline constexpr std::size_t kPrefixBlockBytes = 256, kPrefixBlockTokens = 64, kMostPrefixBlocks = 1024;
std::vector<std::uint64_t> prefix_blocks(std::string_view prompt, std::uint64_t seed,
                                         std::size_t most_blocks = kMostPrefixBlocks);
std::vector<std::uint64_t> prefix_blocks(std::span<const std::int32_t> tokens, std::uint64_t seed,
                                         std::size_t most_blocks = kMostPrefixBlocks);

struct PrefixMatches {
    static constexpr std::size_t kMost = 8;
    std::array<CachedPrefix, kMost> found{};  // longest first
    std::size_t count = 0;
    std::span<const CachedPrefix> span() const { return {found.data(), count}; }
};

class PrefixIndex {
public:
    explicit PrefixIndex(std::size_t most_bytes = 64u << 20);

    // block_tokens: how many tokens one block stands for.
    PrefixMatches find(std::span<const std::uint64_t> blocks, double block_tokens);
    // When its first token has arrived, and not before: a request that fails leaves nothing in a cache.
    void add(std::span<const std::uint64_t> blocks, std::uint64_t replica);
    void forget(std::uint64_t replica);  // it restarted or is gone
    std::size_t bytes() const { return entries_.size() * sizeof(Entry); }

private:
    static constexpr std::size_t kWays = 8, kHolders = 4;
    struct Entry {
        std::uint64_t hash = 0;                       // 0: free
        std::array<std::uint16_t, kHolders> slots{};  // of those who hold it, newest first; 0: none
        std::uint32_t used = 0;                       // tick of the last use
        std::uint32_t reserved = 0;
    };
    Entry* lookup(std::uint64_t hash);
    std::uint16_t slot_of(std::uint64_t replica);

    std::vector<Entry> entries_;
    std::uint64_t set_mask_ = 0;
    std::uint32_t tick_ = 0;
    std::vector<std::uint64_t> replicas_{0};  // by slot; 0: forgotten. A slot is not used again
    std::unordered_map<std::uint64_t, std::uint16_t> slots_;
};

}  // namespace stoker
