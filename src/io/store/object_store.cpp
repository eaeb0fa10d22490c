#include "io/store/object_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/process.h"
#include "io/sha256.h"
#include "io/store/object_store_protocol.h"

namespace stoker {
namespace {

using objects::Patience;
using objects::Protocol;

constexpr std::int64_t kMostParts = 10'000;  // of S3; Azure has 50,000
constexpr std::size_t kMib = 1u << 20;
constexpr std::size_t kReadPiece = 1u << 20;

Error file_error(std::string_view what, const std::string& path, int code) {
    const ErrorKind kind = code == ENOENT   ? ErrorKind::not_found
                           : code == ENOSPC ? ErrorKind::exhausted
                           : code == EACCES ? ErrorKind::denied
                                            : ErrorKind::unavailable;
    return Error(kind, fmt::format("cannot {} {}: {}", what, printable(path), std::strerror(code)));
}

// A file that is read once from front to end, part by part, by whoever is next.
class PartReader {
public:
    static Result<std::unique_ptr<PartReader>> open(const std::string& path) {
        auto reader = std::unique_ptr<PartReader>(new PartReader(path));
        reader->file_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!reader->file_ || ::fstat(reader->file_.get(), &reader->before_) != 0)
            return file_error("read", path, errno);
        if (!S_ISREG(reader->before_.st_mode))
            return Error(ErrorKind::invalid, printable(path) + " is no regular file");
        return reader;
    }
    std::int64_t bytes() const { return before_.st_size; }
    std::string sha256() { return hex(sum_.finish()); }

    struct Part {
        int number = 0;  // 0: there is no more
        std::int64_t offset = 0;
        std::string body;
    };
    Result<Part> next(std::size_t part_bytes) {
        const std::lock_guard guard(mutex_);
        Part part;
        if (offset_ >= before_.st_size) return part;
        part.number = ++number_;
        part.offset = offset_;
        part.body.resize(std::min(part_bytes, static_cast<std::size_t>(before_.st_size - offset_)));
        std::size_t got = 0;
        while (got < part.body.size()) {
            const ssize_t n =
                ::pread(file_.get(), part.body.data() + got, part.body.size() - got, offset_ + static_cast<off_t>(got));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return file_error("read", path_, errno);
            if (n == 0) return changed();
            got += static_cast<std::size_t>(n);
        }
        sum_.add(part.body);
        offset_ += static_cast<std::int64_t>(got);
        return part;
    }
    // What was sent is a file that existed at one moment.
    Status check_unchanged() const {
        struct stat now {};
        if (::fstat(file_.get(), &now) != 0) return file_error("look at", path_, errno);
        if (now.st_size != before_.st_size || now.st_mtim.tv_sec != before_.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != before_.st_mtim.tv_nsec)
            return changed();
        return done();
    }

private:
    explicit PartReader(std::string path) : path_(std::move(path)) {}
    Error changed() const {
        return Error(ErrorKind::conflict, printable(path_) + " changed while it was being sent", {},
                     "write to another name and rename it when it is complete");
    }
    const std::string path_;
    UniqueFd file_;
    struct stat before_ {};
    std::mutex mutex_;
    std::int64_t offset_ = 0;
    int number_ = 0;
    Sha256 sum_;
};

// What has come so far of a file.
class PartialFile {
public:
    Status open(const std::string& path, bool go_on) {
        path_ = path;
        file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (go_on ? 0 : O_TRUNC), 0666));
        if (!file_) return file_error("write", path, errno);
        std::string piece(kReadPiece, '\0');
        for (;;) {
            const ssize_t n = ::pread(file_.get(), piece.data(), piece.size(), bytes_);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return file_error("read", path, errno);
            if (n == 0) return done();
            sum_.add(std::string_view(piece).substr(0, static_cast<std::size_t>(n)));
            bytes_ += n;
        }
    }
    Status begin_anew() {
        bytes_ = 0;
        sum_.finish();
        return ::ftruncate(file_.get(), 0) == 0 ? done() : Status(file_error("shorten", path_, errno));
    }
    Status add(std::string_view piece) {
        sum_.add(piece);
        while (!piece.empty()) {
            const ssize_t n = ::pwrite(file_.get(), piece.data(), piece.size(), bytes_);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return file_error("write", path_, errno);
            piece.remove_prefix(static_cast<std::size_t>(n));
            bytes_ += n;
        }
        return done();
    }
    std::int64_t bytes() const { return bytes_; }
    std::string sha256() { return hex(sum_.finish()); }
    Status rename_to(const std::string& path) {
        if (::fsync(file_.get()) != 0) return file_error("sync", path_, errno);
        if (::rename(path_.c_str(), path.c_str()) != 0) return file_error("rename", path_, errno);
        return done();
    }
    void remove() { ::unlink(path_.c_str()); }

private:
    std::string path_;
    UniqueFd file_;
    std::int64_t bytes_ = 0;
    Sha256 sum_;
};

class Store final : public ObjectStore {
public:
    Store(ObjectUrl url, std::shared_ptr<const ObjectStoreOptions> options, std::unique_ptr<Protocol> protocol)
        : url_(std::move(url)), options_(std::move(options)), protocol_(std::move(protocol)) {}

    std::string url_of(std::string_view key) const override { return url_.text(key); }

    Result<ObjectInfo> put_file(const std::string& key, const std::string& path,
                                const TransferOptions& options) override {
        TRY_VOID(check_key(key));
        TRY(const auto file, PartReader::open(path));
        const Status put = file->bytes() <= static_cast<std::int64_t>(options_->part_bytes)
                               ? put_whole(key, *file, options)
                               : put_parts(key, *file, options);
        if (!put) return doing(put.error(), "putting", key);
        return ObjectInfo{.key = key, .bytes = file->bytes(), .etag = "", .sha256 = file->sha256()};
    }

    Status put_text(const std::string& key, std::string text, const TransferOptions& options) override {
        TRY_VOID(check_key(key));
        Patience patience(*options_, options);
        const Status put = protocol_->put(whole(key), std::move(text), options.tier, patience);
        return put ? put : Status(doing(put.error(), "putting", key));
    }

    Result<ObjectInfo> get_file(const std::string& key, const std::string& path, const std::string& sha256,
                                const TransferOptions& options) override {
        TRY_VOID(check_key(key));
        auto got = get_checked(key, path, sha256, options);
        if (!got) return doing(got.error(), "getting", key);
        return got;
    }

    Result<std::string> get_text(const std::string& key, std::size_t max_bytes,
                                 const TransferOptions& options) override {
        TRY_VOID(check_key(key));
        Patience patience(*options_, options);
        for (;;) {
            std::string text;
            bool too_long = false;
            const Status got = protocol_->get(
                whole(key), 0, "",
                [&](std::string_view piece) {
                    too_long = text.size() + piece.size() > max_bytes;
                    if (!too_long) text += piece;
                    return !too_long;
                },
                patience);
            if (too_long)
                return doing(Error(ErrorKind::invalid, fmt::format("it has more than {} bytes", max_bytes)), "getting",
                             key);
            if (got) return text;
            // The wire tries what has not begun; this is for what broke in the middle.
            if (text.empty() || !patience.again(got.error())) return doing(got.error(), "getting", key);
        }
    }

    Result<ObjectInfo> head(const std::string& key) override {
        TRY_VOID(check_key(key));
        const TransferOptions none;
        Patience patience(*options_, none);
        auto info = protocol_->head(whole(key), patience);
        if (!info) return doing(info.error(), "looking at", key);
        info->key = key;
        return info;
    }

    Status list(const std::string& prefix, const std::function<bool(const ObjectInfo&)>& each,
                const TransferOptions& options) override {
        const std::string above = url_.kind == ObjectUrl::Kind::file ? "" : url_.prefix;
        const std::size_t cut = above.empty() ? 0 : above.size() + 1;
        std::string next;
        for (;;) {
            Patience patience(*options_, options);
            const auto page = protocol_->list(whole(prefix), next, patience);
            if (!page) return doing(page.error(), "listing", prefix);
            for (ObjectInfo item : page->items) {
                if (item.key.size() <= cut) continue;
                item.key.erase(0, cut);
                if (!item.key.starts_with(prefix)) continue;  // a store that does not know prefixes
                if (!each(item)) return done();
            }
            if (page->next.empty()) return done();
            if (page->next == next)
                return Error(ErrorKind::unavailable, "the store gives the same page of its list again and again");
            next = page->next;
        }
    }

    Status remove(const std::string& key) override {
        TRY_VOID(check_key(key));
        const TransferOptions none;
        Patience patience(*options_, none);
        const Status removed = protocol_->remove(whole(key), patience);
        return removed ? removed : Status(doing(removed.error(), "removing", key));
    }

private:
    std::string whole(const std::string& key) const {
        if (url_.kind == ObjectUrl::Kind::file || url_.prefix.empty()) return key;
        return url_.prefix + "/" + key;
    }
    Error doing(const Error& error, std::string_view what, const std::string& key) const {
        return Error(error).while_doing(fmt::format("{} {}", what, url_.text(key)));
    }
    static Status check_key(const std::string& key) {
        bool good = !key.empty() && key.size() <= 900 && find_invalid_utf8(key) == std::string_view::npos;
        for (const char c : key) good = good && static_cast<unsigned char>(c) >= ' ' && c != 127 && c != '\\';
        for (const std::string_view part : split(key, '/')) good = good && !part.empty() && part != "." && part != "..";
        if (good) return done();
        return Error(ErrorKind::invalid, "'" + printable(key, 80) + "' cannot be the name of an object", {},
                     "1 to 900 bytes of UTF-8 without control characters, '\\', empty parts, '.' and '..'");
    }

    Status put_whole(const std::string& key, PartReader& file, const TransferOptions& options) {
        TRY(auto part, file.next(options_->part_bytes));
        TRY_VOID(file.check_unchanged());
        Patience patience(*options_, options);
        const auto bytes = static_cast<std::int64_t>(part.body.size());
        TRY_VOID(protocol_->put(whole(key), std::move(part.body), options.tier, patience));
        if (options.moved) options.moved(bytes);
        return done();
    }

    Status put_parts(const std::string& key, PartReader& file, const TransferOptions& options) {
        const auto least = static_cast<std::size_t>((file.bytes() + kMostParts - 1) / kMostParts);
        const std::size_t part_bytes =
            least <= options_->part_bytes ? options_->part_bytes : (least + kMib - 1) / kMib * kMib;
        // Of very large files fewer parts at a time, so that memory stays bounded.
        const auto parallel = static_cast<int>(
            std::clamp<std::size_t>(options_->part_bytes * static_cast<std::size_t>(options_->parallel) / part_bytes, 1,
                                    static_cast<std::size_t>(std::max(options_->parallel, 1))));
        const std::string name = whole(key);
        Patience first(*options_, options);
        TRY(const std::string upload, protocol_->begin(name, options.tier, first));
        const std::int64_t count =
            (file.bytes() + static_cast<std::int64_t>(part_bytes) - 1) / static_cast<std::int64_t>(part_bytes);
        std::vector<std::string> parts(static_cast<std::size_t>(count));
        std::mutex mutex;
        std::optional<Error> failed;
        std::atomic<bool> over{false};
        const auto fail = [&](const Error& error) {
            const std::lock_guard guard(mutex);
            if (!failed) failed = error;
            over = true;
        };
        const auto work = [&] {
            TransferOptions mine = options;
            mine.stop = [&] { return over.load() || (options.stop && options.stop()); };
            while (!over) {
                auto part = file.next(part_bytes);
                if (!part) return fail(part.error());
                if (part->number == 0) return;
                const auto bytes = static_cast<std::int64_t>(part->body.size());
                Patience patience(*options_, mine);
                auto sent = protocol_->part(name, upload, part->number, part->offset, std::move(part->body), patience);
                if (!sent) return fail(sent.error());
                parts[static_cast<std::size_t>(part->number - 1)] = std::move(*sent);
                if (options.moved) options.moved(bytes);
            }
        };
        std::vector<std::thread> threads;
        for (int i = 1; i < parallel; ++i) threads.emplace_back(work);
        work();
        for (std::thread& each : threads) each.join();
        Status status = failed ? Status(*failed) : file.check_unchanged();
        if (status) {
            Patience last(*options_, options);
            status = protocol_->finish(name, upload, parts, options.tier, last);
        }
        if (!status) protocol_->abandon(name, upload);
        return status;
    }

    Result<ObjectInfo> get_checked(const std::string& key, const std::string& path, const std::string& sha256,
                                   const TransferOptions& options) {
        Patience patience(*options_, options);
        TRY(const ObjectInfo there, protocol_->head(whole(key), patience));
        PartialFile file;
        // What an earlier process left can only be trusted when its digest will be compared.
        TRY_VOID(file.open(path + ".part", !sha256.empty()));
        bool resumed = file.bytes() > 0;
        if (file.bytes() > there.bytes) TRY_VOID(file.begin_anew());
        if (options.moved && file.bytes() > 0) options.moved(file.bytes());
        for (;;) {
            TRY_VOID(get_rest(key, there, file, options));
            const std::string sum = file.sha256();
            if (!sha256.empty() && sum != sha256) {
                if (std::exchange(resumed, false)) {
                    // It was the beginning of something else.
                    if (options.moved) options.moved(-file.bytes());
                    TRY_VOID(file.begin_anew());
                    continue;
                }
                file.remove();
                return Error(
                    ErrorKind::conflict,
                    fmt::format("its SHA-256 is {}, and should be {}", sum.substr(0, 16), sha256.substr(0, 16)), {},
                    "what lies in the store is damaged, or not what its manifest describes");
            }
            TRY_VOID(file.rename_to(path));
            return ObjectInfo{.key = key, .bytes = there.bytes, .etag = there.etag, .sha256 = sum};
        }
    }

    Status get_rest(const std::string& key, const ObjectInfo& there, PartialFile& file,
                    const TransferOptions& options) {
        Patience patience(*options_, options);
        while (file.bytes() < there.bytes) {
            const std::int64_t before = file.bytes();
            Status written = done();
            const Status got = protocol_->get(
                whole(key), before, there.etag,
                [&](std::string_view piece) {
                    if (patience.stopped()) written = objects::cancelled_transfer();
                    if (written && file.bytes() + static_cast<std::int64_t>(piece.size()) > there.bytes)
                        written = Error(ErrorKind::conflict, "the store sends more than it announced");
                    if (written) written = file.add(piece);
                    if (written && options.moved) options.moved(static_cast<std::int64_t>(piece.size()));
                    return written.ok();
                },
                patience);
            TRY_VOID(std::move(written));
            if (got && file.bytes() == there.bytes) return done();
            const Error error =
                got ? Error(ErrorKind::unavailable, "the store sent less than it announced") : got.error();
            if (file.bytes() > before) {
                patience.progressed();
                patience.transient = true;
            }
            if (!patience.again(error)) return error;
        }
        return done();
    }

    const ObjectUrl url_;
    const std::shared_ptr<const ObjectStoreOptions> options_;
    const std::unique_ptr<Protocol> protocol_;
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(const ObjectUrl& url, ObjectStoreOptions options) {
    if (!options.environment)
        options.environment = [](const char* name) {
            const char* value = std::getenv(name);
            return std::string(value == nullptr ? "" : value);
        };
    const auto shared = std::make_shared<const ObjectStoreOptions>(std::move(options));
    std::unique_ptr<Protocol> protocol;
    switch (url.kind) {
        case ObjectUrl::Kind::s3: {
            TRY(protocol, objects::make_s3(url, *shared));
            break;
        }
        case ObjectUrl::Kind::azure: {
            TRY(protocol, objects::make_azure(url, *shared));
            break;
        }
        case ObjectUrl::Kind::file: {
            TRY(protocol, objects::make_folder(url));
            break;
        }
    }
    return std::unique_ptr<ObjectStore>(std::make_unique<Store>(url, shared, std::move(protocol)));
}

}  // namespace stoker
