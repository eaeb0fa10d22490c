#include "prepare/prepare_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>

#include "base/codec.h"
#include "base/random.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"
#include "prepare/prepare_files.h"
#include "prepare/tar_text.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Progress = std::function<void(double, std::string_view)>;
constexpr std::size_t kMostExamples = 10;
constexpr std::size_t kCopyBlock = std::size_t{1} << 20;
constexpr const char* kManifest = "manifest.json";

// 48 bytes: a hundred million of them fit into memory.
struct Entry {
    std::uint64_t hash_high = 0, hash_low = 0;
    std::uint64_t offset = 0;
    std::uint32_t source = 0, length = 0;  // with files: the first file of the sample, and how many
    std::uint64_t bytes = 0;               // in a shard
    std::uint64_t rank = 0;                // among its equals in the order that is asked for
};

// What makes two runs the same: sources as they are, and all that shapes the shards.
std::string digest_of(const PrepareOptions& options, const std::vector<SourceFile>& sources) {
    Sha256 hash;
    for (const SourceFile& source : sources)
        hash.add(fmt::format("{}\n{}\n{} {}\n", source.path, source.name, source.bytes, source.modified_ns));
    hash.add(fmt::format("{} {} {} {} {} {} {} {} {}\n{}\n", options.files, static_cast<int>(options.rules.format),
                         static_cast<int>(options.order), options.seed, options.shards, options.shard_bytes,
                         options.keep_duplicates, options.rules.max_bytes, options.rules.key,
                         join(options.rules.required, "\n")));
    return hex(hash.finish());
}

void left_out(const PrepareOptions& options, const UniqueFd& rejects, std::string place, std::string reason,
              PrepareReport& report) {
    ++report.malformed;
    if (rejects.get() >= 0)
        (void)write_all(rejects.get(), fmt::format("{}\t{}\n", place, reason), options.rejects).ok();
    if (report.examples.size() < kMostExamples) report.examples.push_back({std::move(place), std::move(reason)});
}

void set_hash(Entry& entry, std::string_view digest) {
    std::memcpy(&entry.hash_high, digest.data(), 8);
    std::memcpy(&entry.hash_low, digest.data() + 8, 8);
}

Status room_for(const std::vector<Entry>& entries, const PrepareOptions& options) {
    if (static_cast<std::int64_t>(entries.size()) < options.max_records) return done();
    return Error(ErrorKind::exhausted, fmt::format("there are more than {} records", options.max_records), {},
                 "prepare the sources in parts, or raise --max-records (48 bytes of memory each)");
}

// Order by a key: numbers before words, by their values.
void rank_by_key(std::vector<Entry>& entries, const std::vector<std::string>& keys) {
    struct Key {
        bool word = true;
        double number = 0;
        std::string_view text;
        bool operator<(const Key& other) const {
            if (word != other.word) return !word;
            return word ? text < other.text : number < other.number;
        }
    };
    std::vector<Key> parsed(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        parsed[i].text = keys[i];
        const auto [end, code] = std::from_chars(keys[i].data(), keys[i].data() + keys[i].size(), parsed[i].number);
        parsed[i].word = code != std::errc() || end != keys[i].data() + keys[i].size();
    }
    std::vector<std::size_t> order(entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return parsed[a] < parsed[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) entries[order[i]].rank = i;
}

class Preparation {
public:
    Preparation(const PrepareOptions& options, const Progress& progress) : options_(options), progress_(progress) {}

    Result<PrepareReport> run() {
        TRY(sources_, list_sources(options_.sources));
        report_.sources = static_cast<std::int64_t>(sources_.size());
        for (const SourceFile& source : sources_) report_.source_bytes += source.bytes;
        const std::string digest = digest_of(options_, sources_);
        TRY(const bool same, is_there(digest));
        if (same) return std::move(report_);
        TRY(Workplace place, Workplace::open(options_.to));
        if (!options_.rejects.empty()) {
            rejects_ = UniqueFd(::open(options_.rejects.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
            if (rejects_.get() < 0) return file_error(options_.rejects, "written");
        }
        TRY_VOID(options_.files ? read_files() : read_records(place.path()));
        TRY_VOID(drop_duplicates());
        report_.kept = static_cast<std::int64_t>(entries_.size());
        if (entries_.empty())
            return Error(ErrorKind::invalid, "no record is left", {},
                         report_.examples.empty() ? "the sources are empty"
                                                  : report_.examples[0].place + ": " + report_.examples[0].reason);
        put_in_order();
        TRY_VOID(write_shards(place.path()));
        std::error_code code;
        fs::remove(place.path() + "/spool", code);
        TRY_VOID(write_file_atomic(place.path() + "/" + kManifest,
                                   codec::encode(PrepareManifest{.digest = digest, .report = report_}) + "\n"));
        if (options_.replace) fs::remove_all(options_.to, code);
        if (::rename(place.path().c_str(), options_.to.c_str()) != 0) return file_error(options_.to, "made");
        const fs::path parent = fs::absolute(options_.to).parent_path();
        const UniqueFd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder.get() >= 0) (void)::fsync(folder.get());
        return std::move(report_);
    }

private:
    // True: made of the same before, and `report_` tells of it.
    Result<bool> is_there(const std::string& digest) {
        std::error_code code;
        if (!fs::exists(options_.to, code)) return false;
        const std::string path = options_.to + "/" + kManifest;
        if (fs::is_empty(options_.to, code) && !code) return false;
        const auto text = read_file(path, std::size_t{64} << 20);
        if (!text)
            return Error(ErrorKind::conflict,
                         fmt::format("{} is there, and stoker prepare did not make it", options_.to), {},
                         "give another --to");
        const auto known = codec::decode<PrepareManifest>(*text, path);
        if (known && known->digest == digest) {
            report_ = known->report;
            report_.was_there = true;
            return true;
        }
        if (options_.replace) return false;
        return Error(ErrorKind::conflict,
                     fmt::format("{} was made of other sources or with other options", options_.to), {},
                     "--replace makes it anew, or give another --to");
    }
    Status read_records(const std::string& folder) {
        std::int64_t passed = 0;
        std::vector<std::string> keys;
        UniqueFd spool;
        std::uint64_t spooled = 0;
        std::string pending;
        const std::string spool_path = folder + "/spool";
        for (std::uint32_t number = 0; number < sources_.size(); ++number) {
            const SourceFile& source = sources_[number];
            TRY(RecordReader reader, RecordReader::open(source.path, options_.rules));
            if (options_.rules.format == RecordFormat::csv) {
                if (number == 0) header_ = reader.header();
                if (reader.header() != header_)
                    return Error(ErrorKind::invalid, "its columns are others than those of " + sources_[0].path,
                                 SourcePos{source.path, 1, 0}, "prepare files of different columns apart");
            }
            const bool packed = reader.packed();
            if (packed && spool.get() < 0) {
                spool = UniqueFd(::open(spool_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
                if (spool.get() < 0) return file_error(spool_path, "made");
            }
            for (std::uint64_t count = 0;; ++count) {
                if (count % 4096 == 0)
                    progress_(0.6 * static_cast<double>(passed + static_cast<std::int64_t>(reader.position())) /
                                  static_cast<double>(std::max<std::int64_t>(1, report_.source_bytes)),
                              fmt::format("reading {}, {} records", source.name, report_.read));
                TRY(const auto record, reader.next());
                if (!record) break;
                ++report_.read;
                if (record->blank) {
                    ++report_.blank;
                    continue;
                }
                if (!record->fault.empty()) {
                    left_out(options_, rejects_,
                             record->column > 0 ? fmt::format("{}:{}:{}", source.path, record->line, record->column)
                                                : fmt::format("{}:{}", source.path, record->line),
                             record->fault, report_);
                    continue;
                }
                TRY_VOID(room_for(entries_, options_));
                Entry entry{.offset = record->offset,
                            .source = number,
                            .length = static_cast<std::uint32_t>(record->bytes.size()),
                            .bytes = record->bytes.size() + 1};
                set_hash(entry, hash_.add(record->bytes).finish());
                if (packed) {
                    entry.source = kSpool;
                    entry.offset = spooled;
                    spooled += record->bytes.size();
                    pending += record->bytes;
                    if (pending.size() >= kCopyBlock) {
                        TRY_VOID(write_all(spool.get(), pending, spool_path));
                        pending.clear();
                    }
                }
                if (options_.order == RecordOrder::key) keys.push_back(record->key);
                entries_.push_back(entry);
            }
            passed += source.bytes;
        }
        TRY_VOID(write_all(spool.get(), pending, spool_path));
        if (options_.order == RecordOrder::key) rank_by_key(entries_, keys);
        return done();
    }

    // Files of one sample stand together: the same name up to the first dot of its last part, as WebDataset reads them.
    Status read_files() {
        const auto stem = [](const std::string& name) {
            const std::size_t slash = name.rfind('/');
            return name.substr(0, name.find('.', slash == std::string::npos ? 0 : slash + 1));
        };
        std::vector<char> block(kCopyBlock);
        std::int64_t passed = 0;
        for (std::uint32_t first = 0; first < sources_.size();) {
            std::uint32_t last = first + 1;
            while (last < sources_.size() && stem(sources_[last].name) == stem(sources_[first].name)) ++last;
            if (first % 64 == 0)
                progress_(0.6 * static_cast<double>(passed) /
                              static_cast<double>(std::max<std::int64_t>(1, report_.source_bytes)),
                          fmt::format("reading {}, {} samples", sources_[first].name, report_.read));
            ++report_.read;
            Entry entry{.source = first, .length = last - first};
            std::int64_t content = 0;
            std::string fault;
            for (std::uint32_t each = first; each < last && fault.empty(); ++each) {
                const SourceFile& source = sources_[each];
                const UniqueFd file(::open(source.path.c_str(), O_RDONLY | O_CLOEXEC));
                std::int64_t bytes = 0;
                for (ssize_t got = 1; got > 0 && fault.empty();) {
                    got = file.get() < 0 ? -1 : ::read(file.get(), block.data(), block.size());
                    if (got < 0) fault = std::strerror(errno);
                    if (got > 0) hash_.add({block.data(), static_cast<std::size_t>(got)});
                    bytes += std::max<ssize_t>(got, 0);
                }
                if (fault.empty() && bytes != source.bytes) fault = "it changed while it was read";
                hash_.add(fmt::format("\n{}\n", bytes));
                content += bytes;
                entry.bytes += tar_header(source.name, bytes).size() + static_cast<std::uint64_t>(bytes) +
                               tar_padding(bytes).size();
                passed += bytes;
            }
            set_hash(entry, hash_.finish());
            if (!fault.empty()) {
                left_out(options_, rejects_, sources_[first].path, fault, report_);
            } else if (content == 0) {
                ++report_.blank;
            } else {
                TRY_VOID(room_for(entries_, options_));
                entries_.push_back(entry);
            }
            first = last;
        }
        if (options_.order == RecordOrder::key) {
            std::vector<std::string> keys;
            for (const Entry& entry : entries_) keys.push_back(sources_[entry.source].name);
            rank_by_key(entries_, keys);
        }
        return done();
    }

    // The first of equal ones stays.
    Status drop_duplicates() {
        if (options_.keep_duplicates) return done();
        std::vector<std::uint32_t> order(entries_.size());
        if (entries_.size() > UINT32_MAX) return Error(ErrorKind::exhausted, "there are more than 4 billion records");
        std::iota(order.begin(), order.end(), 0U);
        const auto same = [&](std::uint32_t a, std::uint32_t b) {
            return entries_[a].hash_high == entries_[b].hash_high && entries_[a].hash_low == entries_[b].hash_low;
        };
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            const Entry &x = entries_[a], &y = entries_[b];
            if (x.hash_high != y.hash_high) return x.hash_high < y.hash_high;
            return x.hash_low != y.hash_low ? x.hash_low < y.hash_low : a < b;
        });
        std::vector<bool> drop(entries_.size());
        for (std::size_t i = 1; i < order.size(); ++i)
            if (same(order[i - 1], order[i])) drop[order[i]] = true;
        std::size_t to = 0;
        for (std::size_t i = 0; i < entries_.size(); ++i)
            if (!drop[i]) entries_[to++] = entries_[i];
        report_.duplicates = static_cast<std::int64_t>(entries_.size() - to);
        entries_.resize(to);
        return done();
    }

    void put_in_order() {
        if (options_.order == RecordOrder::shuffle) {
            SplitMix random(options_.seed);
            for (std::size_t i = entries_.size(); i > 1; --i) std::swap(entries_[i - 1], entries_[random.below(i)]);
        } else if (options_.order == RecordOrder::length) {
            std::stable_sort(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.bytes < b.bytes; });
        } else if (options_.order == RecordOrder::key) {
            std::stable_sort(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
        }
    }

    Status copy_files(const Entry& entry, std::string& out) {
        for (std::uint32_t each = entry.source; each < entry.source + entry.length; ++each) {
            const SourceFile& source = sources_[each];
            TRY(const std::string content, read_file(source.path, static_cast<std::size_t>(source.bytes)));
            if (static_cast<std::int64_t>(content.size()) != source.bytes)
                return Error(ErrorKind::conflict, source.path + " changed while it was read", {}, "run it again");
            out += tar_header(source.name, source.bytes) + content + tar_padding(source.bytes);
        }
        return done();
    }

    Status copy_record(const Entry& entry, const std::string& spool, std::string& out) {
        if (open_source_ != entry.source || open_.get() < 0) {
            const std::string& path = entry.source == kSpool ? spool : sources_[entry.source].path;
            open_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
            if (open_.get() < 0) return file_error(path, "read");
            open_source_ = entry.source;
        }
        const std::size_t have = out.size();
        out.resize(have + entry.length);
        for (std::size_t got = 0; got < entry.length;) {
            const ssize_t some = ::pread(open_.get(), out.data() + have + got, entry.length - got,
                                         static_cast<off_t>(entry.offset + got));
            if (some < 0 && errno == EINTR) continue;
            if (some < 0) return file_error(entry.source == kSpool ? spool : sources_[entry.source].path, "read");
            if (some == 0)
                return Error(ErrorKind::conflict, sources_[entry.source].path + " became shorter while it was read", {},
                             "run it again");
            got += static_cast<std::size_t>(some);
        }
        out.push_back('\n');
        return done();
    }

    Status write_shards(const std::string& folder) {
        std::uint64_t total = 0;
        for (const Entry& entry : entries_) total += entry.bytes;
        std::uint64_t count = options_.shards > 0 ? static_cast<std::uint64_t>(options_.shards)
                                                  : (total + static_cast<std::uint64_t>(options_.shard_bytes) - 1) /
                                                        static_cast<std::uint64_t>(options_.shard_bytes);
        count = std::clamp<std::uint64_t>(count, 1, std::min<std::uint64_t>(entries_.size(), 1'000'000));
        const char* ending = options_.files                                 ? "tar"
                             : options_.rules.format == RecordFormat::jsonl ? "jsonl"
                             : options_.rules.format == RecordFormat::csv   ? "csv"
                                                                            : "txt";
        std::size_t at = 0;
        std::uint64_t written = 0;
        for (std::uint64_t number = 0; number < count; ++number) {
            PreparedShard shard{.name = fmt::format("shard-{:05}-of-{:05}.{}", number, count, ending), .sha256 = {}};
            const std::string path = folder + "/" + shard.name;
            const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
            if (file.get() < 0) return file_error(path, "made");
            std::string out;
            if (options_.rules.format == RecordFormat::csv && !options_.files) out = header_ + "\n";
            const auto flush = [&]() -> Status {
                TRY_VOID(write_all(file.get(), out, path));
                hash_.add(out);
                shard.bytes += static_cast<std::int64_t>(out.size());
                out.clear();
                return done();
            };
            // To the middle of the record that crosses the end of the share, and one record at least for each to come.
            const std::uint64_t until = total / count * (number + 1) + total % count * (number + 1) / count;
            while (at < entries_.size() - (count - number - 1) &&
                   (shard.records == 0 || number + 1 == count || written + entries_[at].bytes / 2 < until)) {
                const Entry& entry = entries_[at++];
                TRY_VOID(options_.files ? copy_files(entry, out) : copy_record(entry, folder + "/spool", out));
                written += entry.bytes;
                ++shard.records;
                if (out.size() >= kCopyBlock) {
                    TRY_VOID(flush());
                    progress_(0.6 + 0.4 * static_cast<double>(written) / static_cast<double>(total),
                              "writing " + shard.name);
                }
            }
            if (options_.files) out += tar_end();
            TRY_VOID(flush());
            if (::fsync(file.get()) != 0) return file_error(path, "written");
            shard.sha256 = hex(hash_.finish());
            report_.shards.push_back(std::move(shard));
        }
        return done();
    }

    static constexpr std::uint32_t kSpool = UINT32_MAX;
    const PrepareOptions& options_;
    const Progress& progress_;
    std::vector<SourceFile> sources_;
    std::vector<Entry> entries_;
    PrepareReport report_;
    UniqueFd rejects_, open_;
    std::uint32_t open_source_ = 0;
    std::string header_;
    Sha256 hash_;
};

}  // namespace

std::string report_text(const PrepareReport& report) {
    return codec::encode(report);
}

Result<PrepareReport> prepare_data(const PrepareOptions& options, const Progress& progress) {
    return Preparation(options, progress).run();
}

Result<std::vector<std::string>> check_prepared(const std::string& folder, const Progress& progress) {
    const std::string path = folder + "/" + kManifest;
    TRY(const std::string text, read_file(path, std::size_t{256} << 20));
    TRY(const PrepareManifest manifest, codec::decode<PrepareManifest>(text, path));
    std::vector<std::string> problems;
    std::vector<char> block(kCopyBlock);
    Sha256 hash;
    for (std::size_t i = 0; i < manifest.report.shards.size(); ++i) {
        const PreparedShard& shard = manifest.report.shards[i];
        progress(static_cast<double>(i) / static_cast<double>(manifest.report.shards.size()), "reading " + shard.name);
        if (shard.name.find('/') != std::string::npos)
            return Error(ErrorKind::invalid, path + " names a shard outside its folder: " + shard.name);
        const UniqueFd file(::open((folder + "/" + shard.name).c_str(), O_RDONLY | O_CLOEXEC));
        std::int64_t bytes = 0;
        ssize_t got = file.get() < 0 ? -1 : 1;
        while (got > 0 && (got = ::read(file.get(), block.data(), block.size())) > 0) {
            hash.add({block.data(), static_cast<std::size_t>(got)});
            bytes += got;
        }
        const std::string digest = hex(hash.finish());
        if (got < 0)
            problems.push_back(fmt::format("{} cannot be read: {}", shard.name, std::strerror(errno)));
        else if (bytes != shard.bytes)
            problems.push_back(fmt::format("{} has {} bytes, {} were written", shard.name, bytes, shard.bytes));
        else if (digest != shard.sha256)
            problems.push_back(fmt::format("{} has other content than was written", shard.name));
    }
    return problems;
}

}  // namespace stoker
