#include "serve/tokens/bpe.h"

#include <algorithm>
#include <vector>

namespace stoker::tokens {
namespace {

constexpr std::uint32_t kUnknown = 0xffffffff;
constexpr std::int32_t kNone = -1;

struct Symbol {
    std::uint32_t begin = 0, size = 0, id = kUnknown;
    std::int32_t before = kNone, behind = kNone;
};
// Two neighbours that may be joined; out of date when one of them has become another since.
struct Pair {
    std::uint32_t rank, left, right, left_size, right_size, id;
};
struct Later {
    bool operator()(const Pair& a, const Pair& b) const { return a.rank != b.rank ? a.rank > b.rank : a.left > b.left; }
};

std::uint32_t character_size(unsigned char first) {
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

class Joining {
public:
    Joining(const BpeModel& model, std::string_view piece) : model_(model), piece_(piece) {}

    std::uint32_t count() {
        begin();
        for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols_.size()); ++i) consider(i, i + 1);
        while (!pairs_.empty()) {
            std::pop_heap(pairs_.begin(), pairs_.end(), Later{});
            const Pair pair = pairs_.back();
            pairs_.pop_back();
            join(pair);
        }
        return left();
    }

private:
    void begin() {
        symbols_.reserve(piece_.size());
        for (std::uint32_t at = 0; at < piece_.size();) {
            const auto rest = static_cast<std::uint32_t>(piece_.size()) - at;
            const std::uint32_t size =
                model_.of_bytes ? 1 : std::min(rest, character_size(static_cast<unsigned char>(piece_[at])));
            const auto found = model_.pieces.find(piece_.substr(at, size));
            if (model_.drop_unknown && found == model_.pieces.end()) {
                at += size;
                continue;
            }
            const auto here = static_cast<std::int32_t>(symbols_.size());
            symbols_.push_back({.begin = at,
                                .size = size,
                                .id = found == model_.pieces.end() ? kUnknown : found->second,
                                .before = here - 1,
                                .behind = here + 1});
            at += size;
        }
        if (!symbols_.empty()) symbols_.back().behind = kNone;
    }
    void consider(std::int32_t left, std::int32_t right) {
        if (left == kNone || right == kNone) return;
        const Symbol& a = symbols_[static_cast<std::size_t>(left)];
        const Symbol& b = symbols_[static_cast<std::size_t>(right)];
        Pair pair{.left = static_cast<std::uint32_t>(left),
                  .right = static_cast<std::uint32_t>(right),
                  .left_size = a.size,
                  .right_size = b.size};
        if (model_.by_pair) {
            if (a.id == kUnknown || b.id == kUnknown) return;
            const auto found = model_.merges.find(BpeModel::pair_of(a.id, b.id));
            if (found == model_.merges.end()) return;
            pair.rank = found->second.rank;
            pair.id = found->second.id;
        } else {
            const auto found = model_.pieces.find(piece_.substr(a.begin, std::size_t{a.size} + b.size));
            if (found == model_.pieces.end()) return;
            pair.rank = pair.id = found->second;
        }
        pairs_.push_back(pair);
        std::push_heap(pairs_.begin(), pairs_.end(), Later{});
    }
    void join(const Pair& pair) {
        Symbol& a = symbols_[pair.left];
        Symbol& b = symbols_[pair.right];
        if (a.size != pair.left_size || b.size != pair.right_size) return;
        a.size += b.size;
        a.id = pair.id;
        a.behind = b.behind;
        b.size = 0;
        if (a.behind != kNone)
            symbols_[static_cast<std::size_t>(a.behind)].before = static_cast<std::int32_t>(pair.left);
        consider(a.before, static_cast<std::int32_t>(pair.left));
        consider(static_cast<std::int32_t>(pair.left), a.behind);
    }
    std::uint32_t left() const {
        std::uint32_t count = 0;
        bool unknown_before = false;
        for (const Symbol& symbol : symbols_) {
            if (symbol.size == 0) continue;
            const bool unknown = symbol.id == kUnknown;
            if (!unknown)
                ++count;
            else if (model_.byte_fallback)
                count += symbol.size;
            else if (!unknown_before || !model_.fuse_unknown)
                ++count;
            unknown_before = unknown;
        }
        return count;
    }

    const BpeModel& model_;
    std::string_view piece_;
    std::vector<Symbol> symbols_;
    std::vector<Pair> pairs_;
};

}  // namespace

std::uint32_t count_bpe(const BpeModel& model, std::string_view piece) {
    if (piece.empty()) return 0;
    if (model.whole_first && model.pieces.contains(piece)) return 1;
    return Joining(model, piece).count();
}

}  // namespace stoker::tokens
