// One block of series as bytes: all ranks and metrics of a run over the same stretch of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct SeriesCell {
    float min = 0, mean = 0, max = 0;
    std::uint32_t count = 0;  // 0: nothing was measured
    void add(float low, float middle, float high, std::uint32_t n);
};
struct SeriesColumn {
    int rank = 0;
    std::string metric;
    std::vector<SeriesCell> cells;
};
struct SeriesBlock {
    std::int64_t start_s = 0, seconds = 1;  // of the first cell; of each
    std::size_t points = 0;
    std::vector<SeriesColumn> columns;
};

// What stands in front of a block, so that readers pass over those they do not need.
struct BlockHead {
    std::int64_t start_s = 0, seconds = 1;
    std::size_t points = 0, body_bytes = 0;
    std::size_t bytes() const { return kBytes + body_bytes; }
    std::int64_t end_s() const { return start_s + seconds * static_cast<std::int64_t>(points); }
    static constexpr std::size_t kBytes = 28;
};

// Cells of one second are written with their mean alone. What scatters from point to point is kept to 0.7 of its own
// deviation or a fifth of the value, whichever is less where it scatters by less than half of itself; what does not, to
// the precision below.
std::string encode_block(const SeriesBlock& block);
// Nothing: these bytes do not begin with a block, or with less than the whole of one.
std::optional<BlockHead> read_block_head(std::string_view data);
// The columns that are wanted; nothing when the block is damaged.
std::optional<SeriesBlock> decode_block(std::string_view data,
                                        const std::function<bool(int rank, std::string_view metric)>& wanted = {});

// 9 significant bits of a number: whole numbers up to 511 exactly, others to 0.2 %.
std::int32_t series_code(float value);
float series_value(std::int32_t code);

}  // namespace stoker
