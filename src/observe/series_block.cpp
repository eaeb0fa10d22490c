// Longer than 500 lines because writing and reading of each part of a block stand side by side.
#include "observe/series_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>

namespace stoker {
namespace {

// SKB1, of before units followed the scatter and ranks shared what is equal, is read as well.
constexpr std::string_view kMagic = "SKB2", kOlder = "SKB1";
// Names that take a byte in a block. Only appended to: their places are in the files.
constexpr std::string_view kKnown[] = {
    "step_s",       "compute_s",  "wait_s",         "allreduce_s",   "checkpoint_s",  "tokens_per_s", "samples_per_s",
    "cpu",          "cpu_system", "run_wait",       "switches",      "preempted",     "minor_faults", "major_faults",
    "rss",          "peak_rss",   "swap",           "memory_used",   "memory_limit",  "limit_hits",   "disk_read",
    "disk_write",   "read_calls", "call_read",      "throttled",     "cpu_limit",     "net_received", "net_sent",
    "net_loopback", "processes",  "threads",        "blocked",       "stopped",       "cpus_allowed", "first_cpu",
    "foreign_cpu",  "steal",      "machine_cpus",   "disk_free",     "tokens",        "param_bits",   "recomputed",
    "compiled",     "loss",       "loader_workers", "autocast_bits", "torch_threads", "cpu_s",        "peak_rss_bytes"};
constexpr std::size_t kMostBody = 16u << 20, kMostPoints = 4096, kMostMetric = 200;
constexpr std::uint64_t kMostRank = 1 << 20;
constexpr std::size_t kMostCells = 1 << 23;  // of a block that is read: four times what a writer may put into one

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
// distance from that takes fewer bits than the distance from the last one. One that is far away is a spike, after which
// the guess stays where it was; the second in a row is a new level.
constexpr std::int64_t kSpike = 64;

struct Guess {
    bool knows_spikes = true;
    std::int64_t scaled = 0;
    bool any = false, spike = false;
    std::int64_t value() const { return scaled >> 4; }
    void see(std::int64_t code) {
        const bool far = knows_spikes && any && std::abs(code - value()) > kSpike;
        if (far && !spike) {
            spike = true;
            return;
        }
        scaled = any && !far ? scaled + (code * 16 - scaled) / 4 : code * 16;
        any = true;
        spike = false;
    }
};

// In units of so many codes, at least: the mean of a second, where one measurement is as good as the next, and how far
// smallest and largest are away. A column that scatters more than that is told in units of its own scatter: what is
// finer says nothing, and would take most of the room. Codes are as far apart as logarithms, so that a unit of them is
// a share of the value: it is never more than a fifth to either side.
constexpr std::int64_t kSecondUnit = 4, kRangeUnit = 4, kMostCode = 1 << 17, kMostUnit = 128;
constexpr unsigned kMostDoubled = 15;

std::int64_t in_units(std::int64_t code, std::int64_t unit) {
    return (code >= 0 ? code + unit / 2 : code - unit / 2) / unit;
}

// Of the values from one to the next, half of which is noise of each. By the median, so that a spike is no scatter.
template <class Number>
double deviation_of(const std::vector<Number>& values) {
    if (values.size() < 4) return 0;
    std::vector<double> steps;
    for (std::size_t i = 1; i < values.size(); ++i)
        steps.push_back(std::abs(static_cast<double>(values[i]) - static_cast<double>(values[i - 1])));
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    // 1.48: of a median to a deviation; the root of two: of a difference to one of its sides.
    return 1.48 / std::sqrt(2.0) * *middle;
}

// How a stream of codes is rounded: in units of so many, doubled while they are less than `share` of its deviation.
struct Rounding {
    std::int64_t unit = 1, most_unit = 1;
    double share = std::sqrt(0.5);  // so that it ends nearest to the deviation: 0.7 to 1.4, 4 to 16 % more variance
};

unsigned doubled_for(const std::vector<std::int64_t>& codes, const Rounding& rounding) {
    const double wanted = rounding.share * deviation_of(codes);
    unsigned doubled = 0;
    while (doubled < kMostDoubled && (rounding.unit << (doubled + 1)) <= rounding.most_unit &&
           static_cast<double>(rounding.unit << doubled) <= wanted)
        ++doubled;
    return doubled;
}

// What scatters around 0, or by more than half of itself, has no logarithm to speak of: it is told in steps of two to
// `exponent`, nearest to its deviation. Nothing: logarithms do.
constexpr int kLeastExponent = -200, kMostExponent = 200;

std::optional<int> linear_exponent(const std::vector<float>& means, const std::vector<std::int64_t>& codes, double most,
                                   double fine) {
    if (deviation_of(codes) <= static_cast<double>(kMostUnit)) return std::nullopt;
    const double deviation = fine * deviation_of(means);
    if (!(deviation > 0)) return std::nullopt;
    const int exponent = static_cast<int>(std::lround(std::log2(deviation)));
    if (exponent < kLeastExponent || exponent > kMostExponent ||
        std::ldexp(most, -exponent) >= static_cast<double>(kMostCode))
        return std::nullopt;
    return exponent;
}

// Distances from what is guessed, each a stream in a unit of its own.
void put_scattered(BitWriter& out, const std::vector<std::int64_t>& codes, const Rounding& rounding, bool first_apart) {
    const unsigned doubled = doubled_for(codes, rounding);
    out.put(doubled, 4);
    std::vector<std::int64_t> distances;
    Guess guess;
    for (const std::int64_t code : codes) {
        const std::int64_t value = in_units(code, rounding.unit << doubled);
        distances.push_back(value - guess.value());
        guess.see(value);
    }
    if (first_apart) {  // it is far from 0, which is guessed for it
        const std::int64_t level = distances.empty() ? 0 : distances.front();
        out.put(level == 0 ? 0 : 1, 1);
        if (level != 0) out.put(zigzag(level), 20);
        if (!distances.empty()) distances.erase(distances.begin());
    }
    put_stream(out, distances);
}

std::int64_t bounded_code(std::int64_t code) {
    return std::clamp(code, -kMostCode, kMostCode);
}

// Into codes.
void get_scattered(BitReader& in, std::vector<std::int64_t>& codes, std::int64_t unit, bool first_apart, bool older) {
    if (!older) unit <<= in.get(4);
    std::size_t from = 0;
    if (first_apart) {
        const std::int64_t level = in.bit() ? unzigzag(in.get(20)) : 0;
        if (!codes.empty()) codes.front() = level;
        from = 1;
    }
    std::vector<std::int64_t> rest(codes.size() > from ? codes.size() - from : 0);
    get_stream(in, rest);
    std::copy(rest.begin(), rest.end(), codes.begin() + static_cast<std::ptrdiff_t>(codes.size() - rest.size()));
    Guess guess{.knows_spikes = !older};
    for (std::int64_t& code : codes) {
        const std::int64_t value = bounded_code(guess.value() + bounded_code(code));
        guess.see(value);
        code = value * unit;
    }
}

// Numbers of steps: what is asked of them is which, and not how much they scatter.
bool is_number_of_step(std::string_view metric) {
    return metric == "step" || metric == "longest_step" || metric == "not_finite";
}
// The finest unit, of one or more, in which all of them can be written.
int whole_exponent(double most) {
    int exponent = 0;
    while (exponent < kMostExponent && std::ldexp(most, -exponent) >= static_cast<double>(kMostCode)) ++exponent;
    return exponent;
}

// What a step is made of is added up and held against a plan: where seconds scatter by more than half of themselves, as
// with an evaluation every so many steps, a unit of their deviation would make all of them the same, and too long or
// too short.
double fineness_of(std::string_view metric) {
    constexpr std::string_view kParts[] = {"step_s",       "compute_s",  "wait_s",    "allreduce_s",
                                           "checkpoint_s", "shortest_s", "longest_s", "cpu_s"};
    constexpr double kOfParts = 0.1;
    return std::find(std::begin(kParts), std::end(kParts), metric) != std::end(kParts) ? kOfParts : 1;
}

std::string encode_cells(const std::vector<SeriesCell>& cells, std::size_t points, bool with_range, bool whole,
                         double fine) {
    std::vector<std::int64_t> counts, means, highs, lows;
    std::vector<float> values;
    double most = 0;  // of all that is written
    std::int64_t last = 0, first = 0;
    for (std::size_t i = 0; i < points; ++i) {
        const SeriesCell cell = i < cells.size() ? cells[i] : SeriesCell{};
        if (i == 0) last = first = cell.count;
        counts.push_back(static_cast<std::int64_t>(cell.count) - last);
        last = cell.count;
        if (cell.count == 0) continue;
        values.push_back(cell.mean);
        means.push_back(series_code(cell.mean));
        for (const float value : {cell.min, cell.mean, cell.max}) most = std::max<double>(most, std::abs(value));
    }
    const std::optional<int> exponent = whole ? whole_exponent(most) : linear_exponent(values, means, most, fine);
    const auto code_of = [&](float value) -> std::int64_t {
        if (!exponent) return series_code(value);
        return std::llround(std::clamp(std::ldexp(static_cast<double>(value), -*exponent),
                                       -static_cast<double>(kMostCode), static_cast<double>(kMostCode)));
    };
    if (exponent)
        for (std::size_t i = 0; i < values.size(); ++i) means[i] = code_of(values[i]);
    if (with_range) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < std::min(points, cells.size()); ++i) {
            if (cells[i].count == 0) continue;
            highs.push_back(code_of(cells[i].max) - means[at]);
            lows.push_back(code_of(cells[i].min) - means[at++]);
        }
    }
    BitWriter out;
    out.put(first > 126 ? 127 : static_cast<std::uint64_t>(first), 7);
    if (first > 126) out.put(static_cast<std::uint64_t>(first), 32);
    put_stream(out, counts);
    out.put(exponent ? 1 : 0, 1);
    if (exponent) out.put(static_cast<std::uint64_t>(*exponent - kLeastExponent), 9);
    // In steps there is nothing finer to leave out of the means; the range may scatter more than they do, and an
    // extreme is told to one or two of its own deviations, which are less than half of that of what it is the extreme
    // of.
    put_scattered(out, means, {exponent || with_range ? 1 : kSecondUnit, exponent ? 1 : kMostUnit}, true);
    const Rounding range{exponent ? 1 : kRangeUnit, exponent ? kMostCode : kMostUnit, 1};
    if (with_range) {
        put_scattered(out, highs, range, false);
        put_scattered(out, lows, range, false);
    }
    return out.text();
}

bool decode_cells(std::string_view bytes, std::size_t points, bool with_range, bool older,
                  std::vector<SeriesCell>& cells) {
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
    const bool linear = !older && in.bit();
    const int exponent = linear ? static_cast<int>(in.get(9)) + kLeastExponent : 0;
    if (exponent > kMostExponent) return false;
    const auto value = [&](std::int64_t code) {
        code = bounded_code(code);
        return linear ? std::ldexp(static_cast<float>(code), exponent) : series_value(static_cast<std::int32_t>(code));
    };
    std::vector<std::int64_t> means(measured);
    get_scattered(in, means, linear || with_range ? 1 : kSecondUnit, true, older);
    std::size_t at = 0;
    for (SeriesCell& cell : cells)
        if (cell.count != 0) cell.min = cell.mean = cell.max = value(means[at++]);
    if (!with_range) return in.good;
    numbers.resize(measured);
    for (const bool high : {true, false}) {
        get_scattered(in, numbers, linear ? 1 : kRangeUnit, false, older);
        at = 0;
        for (SeriesCell& cell : cells) {
            if (cell.count == 0) continue;
            // In coarse units the mean may come out beyond the largest.
            const float range = value(means[at] + numbers[at]);
            if (high)
                cell.max = std::max(cell.mean, range);
            else
                cell.min = std::min(cell.mean, range);
            ++at;
        }
    }
    return in.good;
}

// --- columns: each cell of a block once, and of each metric its ranks in runs ---------------------------------------

void put_name(std::string& out, std::string_view name) {
    const auto known = std::find(std::begin(kKnown), std::end(kKnown), name);
    if (known != std::end(kKnown)) {
        put_varint(out, 0);
        put_varint(out, static_cast<std::uint64_t>(known - std::begin(kKnown)));
        return;
    }
    put_varint(out, name.size());
    out += name;
}

std::string_view get_name(ByteReader& in) {
    const std::uint64_t size = in.varint();
    if (size != 0) return in.bytes(size);
    const std::uint64_t known = in.varint();
    if (known >= std::size(kKnown)) in.good = false;
    return in.good ? kKnown[known] : std::string_view();
}

// Ranks that follow each other, with the same cells or with cells that follow each other.
struct ColumnRun {
    std::uint64_t first = 0, count = 0, cells = 0;
    bool same = false;
};

std::vector<ColumnRun> runs_of_ranks(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& rank_cells) {
    std::vector<ColumnRun> runs;
    for (const auto& [rank, cells] : rank_cells) {
        if (!runs.empty()) {
            ColumnRun& last = runs.back();
            const bool next = rank == last.first + last.count;
            if (next && cells == last.cells && (last.same || last.count == 1)) {
                last.same = true, ++last.count;
                continue;
            }
            if (next && !last.same && cells == last.cells + last.count) {
                ++last.count;
                continue;
            }
        }
        runs.push_back({.first = rank, .count = 1, .cells = cells});
    }
    return runs;
}

std::string encode_columns(const SeriesBlock& block) {
    std::map<std::string_view, std::vector<std::pair<std::uint64_t, const SeriesColumn*>>> metrics;
    for (const SeriesColumn& column : block.columns)
        metrics[column.metric].emplace_back(static_cast<std::uint64_t>(column.rank), &column);
    std::vector<std::string> cells;
    std::map<std::string, std::uint64_t> index;
    std::string runs;
    for (auto& [name, columns] : metrics) {
        std::sort(columns.begin(), columns.end());
        std::vector<std::pair<std::uint64_t, std::uint64_t>> rank_cells;
        for (const auto& [rank, column] : columns) {
            std::string encoded = encode_cells(column->cells, block.points, block.seconds > 1,
                                               is_number_of_step(column->metric), fineness_of(column->metric));
            const auto [found, fresh] = index.emplace(encoded, cells.size());
            if (fresh) cells.push_back(std::move(encoded));
            rank_cells.emplace_back(rank, found->second);
        }
        put_name(runs, name);
        const auto of_metric = runs_of_ranks(rank_cells);
        put_varint(runs, of_metric.size());
        for (const ColumnRun& run : of_metric) {
            put_varint(runs, run.first);
            put_varint(runs, run.count << 1 | (run.same ? 1 : 0));
            put_varint(runs, run.cells);
        }
    }
    std::string plain;
    put_varint(plain, cells.size());
    for (const std::string& each : cells) put_varint(plain, each.size());
    for (const std::string& each : cells) plain += each;
    put_varint(plain, metrics.size());
    return plain + runs;
}

using Wanted = std::function<bool(int rank, std::string_view metric)>;

bool decode_columns(ByteReader in, const Wanted& wanted, SeriesBlock& block) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) sizes.push_back(in.varint());
    std::vector<std::string_view> cells;
    for (const std::uint64_t size : sizes) cells.push_back(in.bytes(size));
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) {
        const std::string_view metric = get_name(in);
        if (metric.size() > kMostMetric) return false;
        for (std::uint64_t runs = in.varint(); runs > 0 && in.good; --runs) {
            const std::uint64_t first = in.varint(), packed = in.varint(), from = in.varint();
            const std::uint64_t count = packed >> 1;
            const bool same = (packed & 1) != 0;
            if (first > kMostRank || count > kMostRank || from >= cells.size() ||
                count > (same ? kMostRank : cells.size() - from))
                return false;
            for (std::uint64_t i = 0; i < count; ++i) {
                const int rank = static_cast<int>(first + i);
                if (wanted && !wanted(rank, metric)) continue;
                if ((block.columns.size() + 1) * std::max<std::size_t>(1, block.points) > kMostCells) return false;
                SeriesColumn column{.rank = rank, .metric = std::string(metric), .cells = {}};
                if (!decode_cells(cells[same ? from : from + i], block.points, block.seconds > 1, false, column.cells))
                    return false;
                block.columns.push_back(std::move(column));
            }
        }
    }
    return in.good;
}

bool decode_older_columns(ByteReader in, const Wanted& wanted, SeriesBlock& block) {
    std::vector<std::string_view> metrics;
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) metrics.push_back(in.bytes(in.varint()));
    for (std::uint64_t left = in.varint(); left > 0 && in.good; --left) {
        const std::uint64_t rank = in.varint(), metric = in.varint();
        const std::string_view cells = in.bytes(in.varint());
        if (!in.good || metric >= metrics.size() || metrics[metric].size() > kMostMetric || rank > INT32_MAX)
            return false;
        if (wanted && !wanted(static_cast<int>(rank), metrics[metric])) continue;
        SeriesColumn column{.rank = static_cast<int>(rank), .metric = std::string(metrics[metric]), .cells = {}};
        if (!decode_cells(cells, block.points, block.seconds > 1, true, column.cells)) return false;
        block.columns.push_back(std::move(column));
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
    const std::string plain = encode_columns(block);
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
    if (data.size() < BlockHead::kBytes || !(data.starts_with(kMagic) || data.starts_with(kOlder))) return std::nullopt;
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
    const bool read = data.starts_with(kOlder) ? decode_older_columns({plain}, wanted, block)
                                               : decode_columns({plain}, wanted, block);
    if (!read) return std::nullopt;
    return block;
}

}  // namespace stoker
