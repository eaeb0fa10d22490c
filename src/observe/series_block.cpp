#include "observe/series_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace stoker {
namespace {

constexpr std::string_view kMagic = "SKB1";
constexpr std::size_t kMostBody = 16u << 20, kMostPoints = 4096, kMostMetric = 200;

template <class Number>
void put_fixed(std::string& out, Number value) {
    for (std::size_t i = 0; i < sizeof(Number); ++i)
        out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
}

std::uint64_t get_fixed(std::string_view data, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[at + i])) << (8 * i);
    return value;
}

void put_varint(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    out.push_back(static_cast<char>(value));
}

std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class BitWriter {
public:
    void put(std::uint64_t value, unsigned bits) {
        for (unsigned i = 0; i < bits; ++i, ++used_) {
            if (used_ % 8 == 0) out_.push_back(0);
            if ((value >> i & 1) != 0) out_.back() = static_cast<char>(out_.back() | 1 << used_ % 8);
        }
    }
    const std::string& text() const { return out_; }

private:
    std::string out_;
    std::size_t used_ = 0;
};

// Behind the end it reads zeros, and `good` is false.
class BitReader {
public:
    explicit BitReader(std::string_view data) : data_(data) {}
    std::uint64_t get(unsigned bits) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bits; ++i) value |= static_cast<std::uint64_t>(bit()) << i;
        return value;
    }
    bool bit() {
        if (at_ / 8 >= data_.size()) {
            good = false;
            return false;
        }
        const bool set = (static_cast<unsigned char>(data_[at_ / 8]) >> at_ % 8 & 1) != 0;
        ++at_;
        return set;
    }
    bool good = true;

private:
    std::string_view data_;
    std::size_t at_ = 0;
};

// Numbers around 0 by Rice's code: the low k bits as they are, the rest in ones; k is the best for the stream. It comes
// close to the entropy of what scatters, needs no tables, and each column is read without those beside it.
constexpr unsigned kAllZero = 31, kMostShift = 30, kMostOnes = 24, kEscapeBits = 40;

void put_stream(BitWriter& out, const std::vector<std::int64_t>& values) {
    unsigned best = kAllZero;
    std::uint64_t fewest = 0;
    if (std::any_of(values.begin(), values.end(), [](std::int64_t value) { return value != 0; }))
        for (unsigned k = 0; k <= kMostShift; ++k) {
            std::uint64_t bits = 0;
            for (const std::int64_t value : values) {
                const std::uint64_t ones = zigzag(value) >> k;
                bits += ones < kMostOnes ? ones + 1 + k : kMostOnes + kEscapeBits;
            }
            if (k == 0 || bits < fewest) {
                fewest = bits;
                best = k;
            }
        }
    out.put(best, 5);
    if (best == kAllZero) return;
    for (const std::int64_t value : values) {
        const std::uint64_t number = zigzag(value), ones = number >> best;
        if (ones < kMostOnes) {
            out.put((std::uint64_t{1} << ones) - 1, static_cast<unsigned>(ones) + 1);
            out.put(number, best);
        } else {
            out.put((std::uint64_t{1} << kMostOnes) - 1, kMostOnes);
            out.put(number, kEscapeBits);
        }
    }
}

void get_stream(BitReader& in, std::vector<std::int64_t>& values) {
    const auto k = static_cast<unsigned>(in.get(5));
    for (std::int64_t& value : values) {
        value = 0;
        if (k == kAllZero || !in.good) continue;
        unsigned ones = 0;
        while (ones < kMostOnes && in.bit()) ++ones;
        value = unzigzag(ones == kMostOnes ? in.get(kEscapeBits) : static_cast<std::uint64_t>(ones) << k | in.get(k));
    }
}

// Reads until something is missing; then `good` is false and every further value 0.
struct ByteReader {
    std::string_view rest;
    bool good = true;

    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (rest.empty()) break;
            const auto byte = static_cast<unsigned char>(rest.front());
            rest.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        good = false;
        return 0;
    }
    std::string_view bytes(std::uint64_t count) {
        if (count > rest.size()) {
            good = false;
            return {};
        }
        const std::string_view part = rest.substr(0, count);
        rest.remove_prefix(count);
        return part;
    }
};

std::uint32_t fnv1a(std::string_view data) {
    std::uint32_t hash = 2166136261u;
    for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

// What the next value is guessed to be: values of measurements scatter around something that moves slowly, and the
// distance from that takes fewer bits than the distance from the last one.
struct Guess {
    std::int64_t scaled = 0;
    bool any = false;
    std::int64_t value() const { return scaled >> 4; }
    void see(std::int64_t code) {
        scaled = any ? scaled + (code * 16 - scaled) / 4 : code * 16;
        any = true;
    }
};

// In units of so many codes: the mean of a second, where one measurement is as good as the next, and how far smallest
// and largest are away.
constexpr std::int64_t kSecondUnit = 4, kRangeUnit = 4, kMostCode = 1 << 17;

std::int64_t in_units(std::int64_t code, std::int64_t unit) {
    return (code >= 0 ? code + unit / 2 : code - unit / 2) / unit;
}

std::string encode_cells(const std::vector<SeriesCell>& cells, std::size_t points, bool with_range) {
    std::vector<std::int64_t> counts, means, highs, lows;
    const std::int64_t unit = with_range ? 1 : kSecondUnit;
    Guess guess, high, low;
    std::int64_t last = 0, first = 0;
    for (std::size_t i = 0; i < points; ++i) {
        const SeriesCell cell = i < cells.size() ? cells[i] : SeriesCell{};
        if (i == 0) last = first = cell.count;
        counts.push_back(static_cast<std::int64_t>(cell.count) - last);
        last = cell.count;
        if (cell.count == 0) continue;
        const std::int64_t code = series_code(cell.mean), mean = in_units(code, unit);
        means.push_back(mean - guess.value());
        guess.see(mean);
        const std::int64_t above = in_units(series_code(cell.max) - code, kRangeUnit);
        const std::int64_t below = in_units(series_code(cell.min) - code, kRangeUnit);
        highs.push_back(above - high.value());
        lows.push_back(below - low.value());
        high.see(above);
        low.see(below);
    }
    BitWriter out;
    out.put(first > 126 ? 127 : static_cast<std::uint64_t>(first), 7);
    if (first > 126) out.put(static_cast<std::uint64_t>(first), 32);
    put_stream(out, counts);
    // The first mean is far from 0, which is guessed for it.
    const std::int64_t level = means.empty() ? 0 : means.front();
    out.put(level == 0 ? 0 : 1, 1);
    if (level != 0) out.put(zigzag(level), 20);
    if (!means.empty()) means.erase(means.begin());
    put_stream(out, means);
    if (with_range) {
        put_stream(out, highs);
        put_stream(out, lows);
    }
    return out.text();
}

bool decode_cells(std::string_view bytes, std::size_t points, bool with_range, std::vector<SeriesCell>& cells) {
    cells.assign(points, {});
    BitReader in(bytes);
    auto last = static_cast<std::int64_t>(in.get(7));
    if (last == 127) last = static_cast<std::int64_t>(in.get(32));
    std::vector<std::int64_t> numbers(points);
    get_stream(in, numbers);
    std::size_t measured = 0;
    for (std::size_t i = 0; i < points; ++i) {
        last += numbers[i];
        if (last < 0 || last > UINT32_MAX) return false;
        cells[i].count = static_cast<std::uint32_t>(last);
        measured += last != 0 ? 1 : 0;
    }
    const auto bounded = [](std::int64_t code) { return std::clamp(code, -kMostCode, kMostCode); };
    const auto value = [&](std::int64_t code) { return series_value(static_cast<std::int32_t>(bounded(code))); };
    const std::int64_t unit = with_range ? 1 : kSecondUnit;
    const std::int64_t level = in.bit() ? unzigzag(in.get(20)) : 0;
    std::vector<std::int64_t> means(measured == 0 ? 0 : measured - 1);
    get_stream(in, means);
    if (measured != 0) means.insert(means.begin(), level);
    Guess guess;
    std::size_t at = 0;
    for (SeriesCell& cell : cells) {
        if (cell.count == 0) continue;
        std::int64_t& mean = means[at++];
        mean = bounded(guess.value() + bounded(mean));
        guess.see(mean);
        cell.min = cell.mean = cell.max = value(mean * unit);
    }
    if (!with_range) return in.good;
    numbers.resize(measured);
    for (const bool high : {true, false}) {
        get_stream(in, numbers);
        at = 0;
        Guess range;
        for (SeriesCell& cell : cells) {
            if (cell.count == 0) continue;
            const std::int64_t away = bounded(range.value() + bounded(numbers[at]));
            range.see(away);
            (high ? cell.max : cell.min) = value(means[at] + away * kRangeUnit);
            ++at;
        }
    }
    return in.good;
}

}  // namespace

void SeriesCell::add(float low, float middle, float high, std::uint32_t n) {
    if (n == 0) return;
    if (count == 0) {
        *this = {.min = low, .mean = middle, .max = high, .count = n};
        return;
    }
    min = std::min(min, low);
    max = std::max(max, high);
    const double share = static_cast<double>(n) / (static_cast<double>(count) + n);
    mean = static_cast<float>(mean + (static_cast<double>(middle) - mean) * share);
    count = count > UINT32_MAX - n ? UINT32_MAX : count + n;
}

std::int32_t series_code(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    // A float has 23 bits after the first: 8 are kept. What would round up to infinity stays below it.
    const std::uint32_t magnitude = std::min(((bits & 0x7fffffffu) + 0x4000u) >> 15, (0x7f800000u >> 15) - 1);
    return (bits >> 31) != 0 ? -static_cast<std::int32_t>(magnitude) : static_cast<std::int32_t>(magnitude);
}

float series_value(std::int32_t code) {
    const std::uint32_t magnitude = std::min(static_cast<std::uint32_t>(std::abs(code)), (0x7f800000u >> 15) - 1);
    return std::bit_cast<float>(magnitude << 15 | (code < 0 ? 0x80000000u : 0u));
}

std::string encode_block(const SeriesBlock& block) {
    std::string plain;
    std::map<std::string_view, std::size_t> metrics;
    for (const SeriesColumn& column : block.columns) metrics.emplace(column.metric, 0);
    put_varint(plain, metrics.size());
    std::size_t index = 0;
    for (auto& [name, at] : metrics) {
        at = index++;
        put_varint(plain, name.size());
        plain += name;
    }
    put_varint(plain, block.columns.size());
    for (const SeriesColumn& column : block.columns) {
        const std::string cells = encode_cells(column.cells, block.points, block.seconds > 1);
        put_varint(plain, static_cast<std::uint64_t>(column.rank));
        put_varint(plain, metrics.at(column.metric));
        put_varint(plain, cells.size());
        plain += cells;
    }
    std::string body;
    put_fixed(body, fnv1a(plain));
    body += plain;
    std::string out(kMagic);
    put_fixed(out, static_cast<std::uint32_t>(body.size()));
    put_fixed(out, static_cast<std::uint64_t>(block.start_s));
    put_fixed(out, static_cast<std::uint32_t>(block.seconds));
    put_fixed(out, static_cast<std::uint32_t>(block.points));
    put_fixed(out, fnv1a(out));
    return out + body;
}

std::optional<BlockHead> read_block_head(std::string_view data) {
    if (data.size() < BlockHead::kBytes || !data.starts_with(kMagic)) return std::nullopt;
    if (get_fixed(data, 24, 4) != fnv1a(data.substr(0, 24))) return std::nullopt;
    BlockHead head{.start_s = static_cast<std::int64_t>(get_fixed(data, 8, 8)),
                   .seconds = static_cast<std::int64_t>(get_fixed(data, 16, 4)),
                   .points = get_fixed(data, 20, 4),
                   .body_bytes = get_fixed(data, 4, 4)};
    constexpr std::int64_t kFarthest = std::int64_t{1} << 40;
    if (head.start_s < -kFarthest || head.start_s > kFarthest || head.seconds < 1 || head.points > kMostPoints ||
        head.body_bytes > kMostBody || head.bytes() > data.size())
        return std::nullopt;
    return head;
}

std::optional<SeriesBlock> decode_block(std::string_view data,
                                        const std::function<bool(int rank, std::string_view metric)>& wanted) {
    const auto head = read_block_head(data);
    if (!head) return std::nullopt;
    if (head->body_bytes < 4) return std::nullopt;
    const std::string_view plain = data.substr(BlockHead::kBytes + 4, head->body_bytes - 4);
    if (get_fixed(data, BlockHead::kBytes, 4) != fnv1a(plain)) return std::nullopt;
    SeriesBlock block{.start_s = head->start_s, .seconds = head->seconds, .points = head->points, .columns = {}};
    ByteReader in{plain};
    std::vector<std::string_view> metrics;
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) metrics.push_back(in.bytes(in.varint()));
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) {
        const std::uint64_t rank = in.varint(), metric = in.varint();
        const std::string_view cells = in.bytes(in.varint());
        if (!in.good || metric >= metrics.size() || metrics[metric].size() > kMostMetric || rank > INT32_MAX)
            return std::nullopt;
        if (wanted && !wanted(static_cast<int>(rank), metrics[metric])) continue;
        SeriesColumn column{.rank = static_cast<int>(rank), .metric = std::string(metrics[metric]), .cells = {}};
        if (!decode_cells(cells, head->points, head->seconds > 1, column.cells)) return std::nullopt;
        block.columns.push_back(std::move(column));
    }
    if (!in.good) return std::nullopt;
    return block;
}

}  // namespace stoker
