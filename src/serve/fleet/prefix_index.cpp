#include "serve/fleet/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/result.h"

namespace stoker {
namespace {

// Not for secrets: two prompts that are made to collide cost their maker a miss.
std::uint64_t hash_bytes(const char* bytes, std::size_t size, std::uint64_t before) {
    std::uint64_t hash = before;
    for (; size >= 8; bytes += 8, size -= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, 8);
        hash = SplitMix::mix(hash + 0x9e3779b97f4a7c15ULL + word);
    }
    return hash == 0 ? 1 : hash;
}

std::vector<std::uint64_t> chain(const char* bytes, std::size_t blocks, std::size_t block_bytes, std::uint64_t seed) {
    std::vector<std::uint64_t> hashes;
    hashes.reserve(blocks);
    std::uint64_t hash = SplitMix::mix(seed + 1);
    for (std::size_t i = 0; i < blocks; ++i)
        hashes.push_back(hash = hash_bytes(bytes + i * block_bytes, block_bytes, hash));
    return hashes;
}

}  // namespace

std::vector<std::uint64_t> prefix_blocks(std::string_view prompt, std::uint64_t seed, std::size_t most_blocks) {
    static_assert(kPrefixBlockBytes % 8 == 0);
    return chain(prompt.data(), std::min(prompt.size() / kPrefixBlockBytes, most_blocks), kPrefixBlockBytes, seed);
}

std::vector<std::uint64_t> prefix_blocks(std::span<const std::int32_t> tokens, std::uint64_t seed,
                                         std::size_t most_blocks) {
    return chain(reinterpret_cast<const char*>(tokens.data()),
                 std::min(tokens.size() / kPrefixBlockTokens, most_blocks), kPrefixBlockTokens * sizeof(std::int32_t),
                 seed);
}

PrefixIndex::PrefixIndex(std::size_t most_bytes) {
    static_assert(sizeof(Entry) == 24);
    const std::size_t sets = std::bit_floor(std::max<std::size_t>(most_bytes / (sizeof(Entry) * kWays), 1));
    entries_.resize(sets * kWays);
    set_mask_ = sets - 1;
}

PrefixIndex::Entry* PrefixIndex::lookup(std::uint64_t hash) {
    Entry* set = &entries_[(hash & set_mask_) * kWays];
    for (std::size_t way = 0; way < kWays; ++way)
        if (set[way].hash == hash) return &set[way];
    return nullptr;
}

std::uint16_t PrefixIndex::slot_of(std::uint64_t replica) {
    if (const auto known = slots_.find(replica); known != slots_.end()) return known->second;
    if (replicas_.size() > 0xffff) {  // after so many restarts all begins anew
        std::fill(entries_.begin(), entries_.end(), Entry{});
        replicas_.assign(1, 0);
        slots_.clear();
    }
    const auto slot = static_cast<std::uint16_t>(replicas_.size());
    replicas_.push_back(replica);
    slots_.emplace(replica, slot);
    return slot;
}

PrefixMatches PrefixIndex::find(std::span<const std::uint64_t> blocks, double block_tokens) {
    PrefixMatches matches;
    ++tick_;
    for (std::size_t depth = 0; depth < blocks.size(); ++depth) {
        Entry* entry = lookup(blocks[depth]);
        if (entry == nullptr) break;
        entry->used = tick_;
        for (const std::uint16_t slot : entry->slots) {
            const std::uint64_t replica = slot == 0 ? 0 : replicas_[slot];
            if (replica == 0) continue;
            // Who computed this block computed those before it, though others may have taken its place there.
            const double tokens = static_cast<double>(depth + 1) * block_tokens;
            std::size_t at = 0;
            while (at < matches.count && matches.found[at].replica != replica) ++at;
            if (at == PrefixMatches::kMost) continue;
            matches.found[at] = {replica, tokens};
            if (at == matches.count) ++matches.count;
        }
    }
    std::stable_sort(matches.found.begin(), matches.found.begin() + static_cast<std::ptrdiff_t>(matches.count),
                     [](const CachedPrefix& a, const CachedPrefix& b) { return a.tokens > b.tokens; });
    return matches;
}

void PrefixIndex::add(std::span<const std::uint64_t> blocks, std::uint64_t replica) {
    CHECK(replica != 0);
    const std::uint16_t slot = slot_of(replica);
    ++tick_;
    for (const std::uint64_t hash : blocks) {
        Entry* entry = lookup(hash);
        if (entry == nullptr) {
            Entry* set = &entries_[(hash & set_mask_) * kWays];
            entry = std::max_element(set, set + kWays, [this](const Entry& a, const Entry& b) {
                auto age = [this](const Entry& e) { return e.hash == 0 ? ~std::uint32_t{0} : tick_ - e.used; };
                return age(a) < age(b);
            });
            *entry = {.hash = hash};
        }
        entry->used = tick_;
        const auto here = std::find(entry->slots.begin(), entry->slots.end(), slot);
        const auto last = here == entry->slots.end() ? entry->slots.end() - 1 : here;
        std::move_backward(entry->slots.begin(), last, last + 1);
        entry->slots[0] = slot;
    }
}

void PrefixIndex::forget(std::uint64_t replica) {
    const auto known = slots_.find(replica);
    if (known == slots_.end()) return;
    replicas_[known->second] = 0;
    slots_.erase(known);
}

}  // namespace stoker
