// Byte-pair encoding of one piece of text: symbols are joined, the pair that was learnt first first, until no pair is
// left that the model knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stoker::tokens {

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using PieceMap = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

struct BpeMerge {
    std::uint32_t rank = 0, id = 0;
};

struct BpeModel {
    // Where merges are listed by pair: the id of a piece. Else a piece that is there may be joined, and this is its
    // rank: the smaller one first.
    PieceMap pieces;
    std::unordered_map<std::uint64_t, BpeMerge> merges;  // by pair_of
    bool by_pair = true;
    bool of_bytes = true;       // a symbol is a byte at first; else a character
    bool whole_first = false;   // a piece that is a token as a whole is never taken apart
    bool byte_fallback = true;  // a character that is no piece is as many tokens as it has bytes; else one
    bool fuse_unknown = false;  // such ones in a row are one
    bool drop_unknown = false;  // such ones are nothing

    static constexpr std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
        return std::uint64_t{left} << 32 | right;
    }
};

// Of a piece that is UTF-8, or of any bytes where the model is of bytes.
std::uint32_t count_bpe(const BpeModel& model, std::string_view piece);

}  // namespace stoker::tokens
