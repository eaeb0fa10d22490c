// Longer than 500 lines because writing, recovery, queries and tidying share the tiers and the names of files.
#include "observe/series.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "io/files.h"
#include "io/process.h"
#include "observe/series_block.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

struct Tier {
    std::string_view name;
    std::int64_t seconds, points, keep_s, file_s;
    std::int64_t block_s() const { return seconds * points; }
};
// What is kept of one tier covers a block of the next, so that those in memory can be made again.
constexpr std::array<Tier, 3> kTiers{{{"1s", 1, 60, 3600, 300},
                                      {"1m", 60, 60, 86'400, 6 * 3600},
                                      {"1h", 3600, 24, 365 * std::int64_t{86'400}, 30 * std::int64_t{86'400}}}};
constexpr std::size_t kMostFile = 64u << 20;
constexpr std::size_t kMostJoined = 1024;  // points of a file that becomes one block
constexpr const char* kKeptText = "/explanation.json";

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
    return value - ((value % step) + step) % step;
}

struct SeriesFile {
    std::size_t tier = 0;
    std::int64_t start_s = 0;
    std::string path;
};

// Of one run, by tier, then time.
std::vector<SeriesFile> series_files(const std::string& folder) {
    std::vector<SeriesFile> files;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
        const std::string name = it->path().filename().string();
        for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
            const std::string_view prefix = kTiers[tier].name;
            if (!name.starts_with(prefix) || !name.ends_with(".blk") || name.size() < prefix.size() + 6) continue;
            const char* from = name.data() + prefix.size() + 1;
            const char* to = name.data() + name.size() - 4;
            std::int64_t start = 0;
            const auto [stop, error] = std::from_chars(from, to, start);
            if (error == std::errc() && stop == to) files.push_back({tier, start, it->path().string()});
        }
    }
    std::sort(files.begin(), files.end(), [](const SeriesFile& a, const SeriesFile& b) {
        return std::tie(a.tier, a.start_s) < std::tie(b.tier, b.start_s);
    });
    return files;
}

// The folder of a run of which no series is left, with the text beside them.
void drop_empty(const std::string& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || !series_files(folder).empty()) return;
    fs::remove(folder + kKeptText, ignored);
    ::rmdir(folder.c_str());  // refused while anything is in it
}

std::string content_of(const std::string& path) {
    auto text = read_file(path, kMostFile);
    return text ? std::move(*text) : std::string();
}

}  // namespace

bool is_series_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                      c == '_' || c == '.';
           });
}

struct SeriesStore::Shared {
    SeriesOptions options;
    std::atomic<std::int64_t> added{0}, late{0}, refused{0}, blocks{0}, bytes_written{0}, cut_bytes{0}, damaged{0};
    std::mutex mutex;
    std::string error;  // guarded by mutex

    void failed(std::string what) {
        const std::lock_guard lock(mutex);
        error = std::move(what);
    }
};

class SeriesStore::RunWriter {
public:
    RunWriter(std::string folder, std::shared_ptr<Shared> shared)
        : folder_(std::move(folder)), shared_(std::move(shared)) {}

    // What an earlier process left: torn ends are cut off, coarse points that were only in its memory are made again.
    void recover() {
        const auto files = series_files(folder_);
        std::array<std::optional<std::int64_t>, kTiers.size()> written;
        for (std::size_t i = 0; i < files.size(); ++i) {
            const SeriesFile& file = files[i];
            if (i + 1 < files.size() && files[i + 1].tier == file.tier) continue;
            written[file.tier] = cut_torn_end(file.path);
            file_start_[file.tier] = file.start_s;
        }
        newest_ = written[0];
        for (std::size_t tier = 1; tier < kTiers.size(); ++tier) {
            for (const SeriesFile& file : files) {
                if (file.tier != tier - 1) continue;
                if (written[tier] &&
                    file.start_s + kTiers[tier - 1].file_s + kTiers[tier - 1].block_s() < *written[tier])
                    continue;
                each_block(file.path, [&](std::string_view data, const BlockHead& head) {
                    if (written[tier] && head.end_s() <= *written[tier]) return;
                    const auto block = decode_block(data);
                    if (!block) return;
                    for (const SeriesColumn& column : block->columns)
                        for (std::size_t i = 0; i < column.cells.size(); ++i) {
                            const std::int64_t at = head.start_s + static_cast<std::int64_t>(i) * head.seconds;
                            if (column.cells[i].count != 0 && (!written[tier] || at >= *written[tier]))
                                put(tier, column_of(column.rank, column.metric), at, column.cells[i]);
                        }
                });
            }
        }
    }

    void add(int rank, std::string_view metric, double at, double value) {
        const auto number = static_cast<float>(value);
        if (!std::isfinite(number) || !std::isfinite(at) || std::abs(at) > 1e12 || rank < 0 || metric.empty() ||
            metric.size() > 64) {
            ++shared_->refused;
            return;
        }
        const std::lock_guard lock(mutex_);
        const std::size_t column = column_of(rank, metric);
        if (column == kNone) {
            ++shared_->refused;
            return;
        }
        const auto at_s = static_cast<std::int64_t>(std::floor(at));
        const SeriesCell cell{.min = number, .mean = number, .max = number, .count = 1};
        bool taken = true;
        for (std::size_t tier = 0; tier < kTiers.size(); ++tier) taken = put(tier, column, at_s, cell) && taken;
        ++(taken ? shared_->added : shared_->late);
        if (taken && (!newest_ || at_s >= *newest_)) newest_ = at_s + 1;
    }

    void flush() {
        const std::lock_guard lock(mutex_);
        for (std::size_t tier = 0; tier < kTiers.size(); ++tier) write(tier);
    }

    std::optional<std::int64_t> newest() {
        const std::lock_guard lock(mutex_);
        return newest_;
    }

    // Calls use(rank, metric, at, cell) for what is in memory.
    template <class Use>
    void each_pending(std::size_t tier, const Use& use) {
        const std::lock_guard lock(mutex_);
        const Pending& pending = pending_[tier];
        for (std::size_t i = 0; i < pending.cells.size(); ++i)
            for (const auto& [slot, cell] : pending.cells[i])
                use(columns_[i].first, columns_[i].second, pending.start_s + std::int64_t{slot} * kTiers[tier].seconds,
                    cell);
    }

    template <class Use>
    static void each_block(const std::string& path, const Use& use) {
        const std::string content = content_of(path);
        std::string_view rest = content;
        while (const auto head = read_block_head(rest)) {
            use(rest.substr(0, head->bytes()), *head);
            rest.remove_prefix(head->bytes());
        }
    }

private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    // Only what was measured: agents tell of a second in ten, and of a thousand of them an hour is in memory.
    struct PendingCell {
        std::uint32_t slot = 0;
        SeriesCell cell;
    };
    struct Pending {
        std::int64_t start_s = -1;
        std::vector<std::vector<PendingCell>> cells;  // by column, in order of time
    };

    std::size_t column_of(int rank, std::string_view metric) {
        const auto found = index_.find(std::pair(rank, metric));
        if (found != index_.end()) return found->second;
        if (columns_.size() >= shared_->options.max_columns) return kNone;
        if (metrics_.find(metric) == metrics_.end()) {
            if (metrics_.size() >= shared_->options.max_metrics) return kNone;
            metrics_.emplace(metric);
        }
        const std::string_view kept = *metrics_.find(metric);
        columns_.emplace_back(rank, kept);
        index_.emplace(std::pair(rank, kept), columns_.size() - 1);
        return columns_.size() - 1;
    }

    bool put(std::size_t tier, std::size_t column, std::int64_t at, const SeriesCell& cell) {
        if (column == kNone) return false;
        Pending& pending = pending_[tier];
        const std::int64_t block = floor_to(at, kTiers[tier].block_s());
        if (block != pending.start_s) {
            // A little late is passed over; much means that the clock was set back, and what it says now counts.
            const bool late = pending.start_s >= 0 && block < pending.start_s;
            if (late && at >= pending.start_s - 2 * kTiers[tier].block_s()) return false;
            write(tier);
            pending.start_s = block;
        }
        if (pending.cells.size() <= column) pending.cells.resize(columns_.size());
        auto& cells = pending.cells[column];
        const auto slot = static_cast<std::uint32_t>((at - block) / kTiers[tier].seconds);
        auto place = cells.end();
        if (!cells.empty() && cells.back().slot >= slot)
            place = std::lower_bound(cells.begin(), cells.end(), slot,
                                     [](const PendingCell& each, std::uint32_t wanted) { return each.slot < wanted; });
        if (place == cells.end() || place->slot != slot) place = cells.insert(place, {slot, {}});
        place->cell.add(cell.min, cell.mean, cell.max, cell.count);
        return true;
    }

    void write(std::size_t tier) {
        Pending& pending = pending_[tier];
        std::size_t first = kNone, last = 0;
        for (const auto& cells : pending.cells)
            if (!cells.empty()) {
                first = std::min<std::size_t>(first, cells.front().slot);
                last = std::max<std::size_t>(last, cells.back().slot);
            }
        if (first != kNone) {
            SeriesBlock block{.start_s = pending.start_s + static_cast<std::int64_t>(first) * kTiers[tier].seconds,
                              .seconds = kTiers[tier].seconds,
                              .points = last + 1 - first,
                              .columns = {}};
            for (std::size_t i = 0; i < pending.cells.size(); ++i) {
                const auto& cells = pending.cells[i];
                if (cells.empty()) continue;
                SeriesColumn column{.rank = columns_[i].first, .metric = std::string(columns_[i].second), .cells = {}};
                column.cells.resize(cells.back().slot + 1 - first);
                for (const auto& [slot, cell] : cells) column.cells[slot - first] = cell;
                block.columns.push_back(std::move(column));
            }
            append(tier, block.start_s, encode_block(block));
        }
        for (auto& cells : pending.cells) cells.clear();
        pending.start_s = -1;
    }

    void append(std::size_t tier, std::int64_t start_s, const std::string& bytes) {
        auto& file = file_start_[tier];
        if (!file || start_s >= *file + kTiers[tier].file_s || start_s < *file) {
            if (file) join_blocks(path_of(tier, *file));
            file = start_s;
        }
        std::error_code code;
        fs::create_directory(folder_, code);  // never what is above it: a home that was deleted is not made again
        const std::string path = path_of(tier, *file);
        const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        struct stat before {};
        if (!fd || ::fstat(fd.get(), &before) != 0)
            return shared_->failed("cannot write " + path + ": " + std::strerror(errno));
        ssize_t wrote = 0;
        do wrote = ::write(fd.get(), bytes.data(), bytes.size());
        while (wrote < 0 && errno == EINTR);
        if (wrote != static_cast<ssize_t>(bytes.size())) {
            shared_->failed("cannot write " + path + ": " + (wrote < 0 ? std::strerror(errno) : "the disk is full"));
            if (::ftruncate(fd.get(), before.st_size) != 0) file.reset();  // a new file, since this end is torn
            return;
        }
        ++shared_->blocks;
        shared_->bytes_written += static_cast<std::int64_t>(bytes.size());
    }

    std::string path_of(std::size_t tier, std::int64_t file) const {
        return folder_ + "/" + std::string(kTiers[tier].name) + "-" + std::to_string(file) + ".blk";
    }

    // A file that nothing more is written to, as one block: what each column begins with is a third of a short one.
    static void join_blocks(const std::string& path) {
        SeriesBlock whole;
        std::map<std::pair<int, std::string>, std::size_t> places;
        std::size_t blocks = 0, before = 0;
        bool fits = true;
        each_block(path, [&](std::string_view data, const BlockHead& head) {
            auto block = fits ? decode_block(data) : std::nullopt;
            if (blocks++ == 0) whole.start_s = head.start_s, whole.seconds = head.seconds;
            before += data.size();
            const std::int64_t from = (head.start_s - whole.start_s) / whole.seconds;
            // In order, or a clock was set back: then it stays as it is.
            fits = block && head.seconds == whole.seconds && from >= static_cast<std::int64_t>(whole.points);
            if (!fits) return;
            whole.points = static_cast<std::size_t>(from) + head.points;
            for (SeriesColumn& column : block->columns) {
                const auto [place, is_new] =
                    places.try_emplace(std::pair(column.rank, column.metric), whole.columns.size());
                if (is_new) whole.columns.push_back({column.rank, column.metric, {}});
                auto& cells = whole.columns[place->second].cells;
                cells.resize(static_cast<std::size_t>(from));
                cells.insert(cells.end(), column.cells.begin(), column.cells.end());
            }
        });
        if (!fits || blocks < 2 || whole.points > kMostJoined) return;
        const std::string bytes = encode_block(whole);
        // Whoever reads finds the one or the other. When it cannot be written, it stays as it was.
        if (bytes.size() < before) (void)write_file_atomic(path, bytes).ok();
    }

    // Returns where the blocks that are whole end in time.
    std::optional<std::int64_t> cut_torn_end(const std::string& path) {
        const std::string content = content_of(path);
        std::string_view rest = content;
        std::optional<std::int64_t> end;
        while (const auto head = read_block_head(rest)) {
            const bool is_last = rest.size() == head->bytes();
            if (is_last && !decode_block(rest, [](int, std::string_view) { return false; })) break;
            end = std::max(end.value_or(head->end_s()), head->end_s());
            rest.remove_prefix(head->bytes());
        }
        if (!rest.empty()) {
            shared_->cut_bytes += static_cast<std::int64_t>(rest.size());
            if (::truncate(path.c_str(), static_cast<off_t>(content.size() - rest.size())) != 0)
                shared_->failed("cannot cut the torn end of " + path + ": " + std::strerror(errno));
        }
        return end;
    }

    const std::string folder_;
    const std::shared_ptr<Shared> shared_;
    std::mutex mutex_;  // guards what is below
    std::set<std::string, std::less<>> metrics_;
    std::vector<std::pair<int, std::string_view>> columns_;  // views of metrics_
    std::map<std::pair<int, std::string_view>, std::size_t> index_;
    std::array<Pending, kTiers.size()> pending_;
    std::array<std::optional<std::int64_t>, kTiers.size()> file_start_;
    std::optional<std::int64_t> newest_;
};

SeriesStore::SeriesStore(std::string folder, SeriesOptions options)
    : folder_(std::move(folder)), shared_(std::make_shared<Shared>()) {
    shared_->options = options;
}

Result<std::unique_ptr<SeriesStore>> SeriesStore::open(std::string folder, SeriesOptions options) {
    std::error_code code;
    fs::create_directories(folder, code);
    if (code) return Error(ErrorKind::denied, "cannot make the folder " + folder + ": " + code.message());
    ::chmod(folder.c_str(), 0700);
    return std::unique_ptr<SeriesStore>(new SeriesStore(std::move(folder), options));
}

SeriesStore::~SeriesStore() {
    for (auto& [run, writer] : writers_) writer->flush();
}

std::shared_ptr<SeriesStore::RunWriter> SeriesStore::writer(const std::string& run, bool make) {
    if (!is_series_name(run)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = writers_.find(run);
    if (found != writers_.end()) return found->second;
    if (!make) return nullptr;
    auto fresh = std::make_shared<RunWriter>(folder_ + "/" + run, shared_);
    fresh->recover();
    writers_.emplace(run, fresh);
    return fresh;
}

void SeriesStore::add(const std::string& run, int rank, std::string_view metric, double at_s, double value) {
    if (const auto to = writer(run, true))
        to->add(rank, metric, at_s, value);
    else
        ++shared_->refused;
}

void SeriesStore::flush(const std::string& run) {
    if (const auto of = writer(run, false)) of->flush();
}

void SeriesStore::end(const std::string& run) {
    flush(run);
    const std::lock_guard lock(mutex_);
    writers_.erase(run);
}

std::optional<std::int64_t> SeriesStore::newest(const std::string& run) {
    const auto of = writer(run, true);
    return of ? of->newest() : std::nullopt;
}

Result<std::vector<RankSeries>> SeriesStore::query(const SeriesQuery& query) {
    if (!is_series_name(query.run)) return Error(ErrorKind::invalid, "not the name of a run: " + query.run);
    if (query.max_points == 0 || query.to_s <= query.from_s)
        return Error(ErrorKind::invalid, "the time that was asked for is empty");
    const auto files = series_files(folder_ + "/" + query.run);
    const auto live = writer(query.run, false);
    const auto wanted = [&](int rank, std::string_view metric) {
        return (!query.rank || *query.rank == rank) &&
               (query.metrics.empty() ||
                std::find(query.metrics.begin(), query.metrics.end(), metric) != query.metrics.end());
    };

    std::array<std::optional<std::int64_t>, kTiers.size()> first;
    for (const SeriesFile& file : files)
        if (!first[file.tier]) first[file.tier] = file.start_s;
    for (std::size_t tier = 0; live && tier < kTiers.size(); ++tier)
        live->each_pending(tier, [&](int, std::string_view, std::int64_t at, const SeriesCell&) {
            if (!first[tier] || at < *first[tier]) first[tier] = at;
        });
    // The finest that reaches as far back as any coarser one, and no finer than the chart can show.
    std::optional<std::size_t> chosen;
    for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
        if (!first[tier]) continue;
        bool reaches = true;
        for (std::size_t other = tier + 1; other < kTiers.size(); ++other)
            if (first[other] && *first[tier] > std::max(query.from_s, *first[other]) + kTiers[other].seconds)
                reaches = false;
        if (!reaches) continue;
        const std::int64_t span = query.to_s - std::max(query.from_s, *first[tier]);
        if (chosen && span / kTiers[tier].seconds < static_cast<std::int64_t>(query.max_points)) break;
        chosen = tier;
    }
    std::vector<RankSeries> all;
    if (!chosen) return all;

    const Tier& tier = kTiers[*chosen];
    const std::int64_t from = floor_to(std::max(query.from_s, *first[*chosen]), tier.seconds);
    const std::int64_t points = std::max<std::int64_t>(1, (query.to_s - from + tier.seconds - 1) / tier.seconds);
    const std::int64_t per_point =
        (points + static_cast<std::int64_t>(query.max_points) - 1) / static_cast<std::int64_t>(query.max_points);
    const std::int64_t seconds = per_point * tier.seconds;
    std::map<std::pair<int, std::string>, std::vector<SeriesCell>> cells;
    const auto take = [&](std::vector<SeriesCell>& to, std::int64_t at, const SeriesCell& cell) {
        if (cell.count == 0 || at < from || at >= query.to_s) return;
        const auto slot = static_cast<std::size_t>((at - from) / seconds);  // less than max_points
        if (to.size() <= slot) to.resize(slot + 1);
        to[slot].add(cell.min, cell.mean, cell.max, cell.count);
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
        const SeriesFile& file = files[i];
        const bool more = i + 1 < files.size() && files[i + 1].tier == file.tier;
        if (file.tier != *chosen || file.start_s >= query.to_s) continue;
        if (more && files[i + 1].start_s + tier.block_s() < from) continue;
        RunWriter::each_block(file.path, [&](std::string_view data, const BlockHead& head) {
            if (head.start_s >= query.to_s || head.end_s() <= from) return;
            const auto block = decode_block(data, wanted);
            if (!block) {
                ++shared_->damaged;
                return;
            }
            for (const SeriesColumn& column : block->columns) {
                auto& to = cells[{column.rank, column.metric}];
                for (std::size_t slot = 0; slot < column.cells.size(); ++slot)
                    take(to, head.start_s + static_cast<std::int64_t>(slot) * head.seconds, column.cells[slot]);
            }
        });
    }
    if (live)
        live->each_pending(*chosen, [&](int rank, std::string_view metric, std::int64_t at, const SeriesCell& cell) {
            if (wanted(rank, metric)) take(cells[{rank, std::string(metric)}], at, cell);
        });
    for (auto& [key, slots] : cells) {
        RankSeries& series =
            all.emplace_back(RankSeries{.rank = key.first, .metric = key.second, .seconds = seconds, .points = {}});
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (slots[i].count != 0)
                series.points.push_back({.at_s = from + static_cast<std::int64_t>(i) * seconds,
                                         .min = slots[i].min,
                                         .mean = slots[i].mean,
                                         .max = slots[i].max,
                                         .count = slots[i].count});
    }
    std::erase_if(all, [](const RankSeries& series) { return series.points.empty(); });
    return all;
}

Status SeriesStore::keep_text(const std::string& run, const std::string& text) {
    if (!is_series_name(run)) return Error(ErrorKind::invalid, "not the name of a run: " + run);
    if (text.size() > kMostKeptText)
        return Error(ErrorKind::invalid, "more than " + std::to_string(kMostKeptText) + " bytes to keep of " + run);
    const std::string folder = folder_ + "/" + run;
    if (series_files(folder).empty()) return Error(ErrorKind::not_found, "there are no series of " + run);
    return write_file_atomic(folder + kKeptText, text);
}

Result<std::string> SeriesStore::kept_text(const std::string& run) const {
    if (!is_series_name(run)) return Error(ErrorKind::invalid, "not the name of a run: " + run);
    return read_file(folder_ + "/" + run + kKeptText, kMostKeptText);
}

std::vector<std::string> SeriesStore::recent() const {
    std::vector<std::string> runs;
    std::error_code code;
    for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
        const auto files = series_files(it->path().string());
        if (!files.empty() && files.front().tier == 0) runs.push_back(it->path().filename().string());
    }
    return runs;
}

void SeriesStore::tidy(std::int64_t now_s) {
    struct Old {
        SeriesFile file;
        std::int64_t bytes = 0;
    };
    std::vector<Old> kept;
    std::int64_t total = 0;
    std::error_code code;
    for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
        for (SeriesFile& file : series_files(it->path().string())) {
            const Tier& tier = kTiers[file.tier];
            std::error_code ignored;
            if (file.start_s + tier.file_s + tier.block_s() + tier.keep_s < now_s) {
                fs::remove(file.path, ignored);
                continue;
            }
            const auto bytes = static_cast<std::int64_t>(fs::file_size(file.path, ignored));
            if (ignored) continue;
            total += bytes;
            kept.push_back({std::move(file), bytes});
        }
        drop_empty(it->path().string());
    }
    if (total <= shared_->options.max_bytes) return;
    std::sort(kept.begin(), kept.end(), [](const Old& a, const Old& b) {
        return std::tie(a.file.tier, a.file.start_s) < std::tie(b.file.tier, b.file.start_s);
    });
    for (const Old& old : kept) {
        if (total <= shared_->options.max_bytes) break;
        std::error_code ignored;
        if (!fs::remove(old.file.path, ignored)) continue;
        total -= old.bytes;
        drop_empty(fs::path(old.file.path).parent_path().string());
    }
}

SeriesStats SeriesStore::stats() const {
    const std::lock_guard lock(shared_->mutex);
    return {.added = shared_->added,
            .late = shared_->late,
            .refused = shared_->refused,
            .blocks = shared_->blocks,
            .bytes_written = shared_->bytes_written,
            .cut_bytes = shared_->cut_bytes,
            .damaged_blocks = shared_->damaged,
            .error = shared_->error};
}

std::int64_t SeriesStore::bytes() const {
    std::int64_t total = 0;
    std::error_code code;
    for (fs::recursive_directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
        std::error_code ignored;
        if (it->is_regular_file(ignored)) total += static_cast<std::int64_t>(it->file_size(ignored));
    }
    return total;
}

}  // namespace stoker
