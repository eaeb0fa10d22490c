#include "govern/ledger/segment_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <thread>

#include "io/files.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::size_t kLargestSegment = 1u << 30;
constexpr std::string_view kBegin = "seg-", kEnd = ".led";

Error disk(const std::string& doing, const std::string& path) {
    return Error(ErrorKind::unavailable, fmt::format("cannot {} {}: {}", doing, path, std::strerror(errno)));
}

Status write_at(int fd, std::string_view text, std::uint64_t at, const std::string& path) {
    while (!text.empty()) {
        const ssize_t size = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(at));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return disk("write", path);
        text.remove_prefix(static_cast<std::size_t>(size));
        at += static_cast<std::uint64_t>(size);
    }
    return done();
}

Result<UniqueFd> zeros(const std::string& path, std::uint64_t bytes) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return disk("make", path);
    const std::string block(std::min<std::uint64_t>(bytes, 1u << 20), '\0');
    for (std::uint64_t at = 0; at < bytes; at += block.size())
        TRY_VOID(write_at(
            fd.get(), std::string_view(block).substr(0, std::min<std::uint64_t>(block.size(), bytes - at)), at, path));
    if (::fsync(fd.get()) != 0) return disk("sync", path);
    return fd;
}

class SegmentFolder final : public SegmentHome {
public:
    explicit SegmentFolder(SegmentFolderOptions options) : options_(std::move(options)) {}
    ~SegmentFolder() override {
        if (preparer_.joinable()) preparer_.join();
        if (lock_) ::unlink(spare_path().c_str());
    }

    std::string place(std::uint64_t segment) const override { return options_.folder + "/" + segment_name(segment); }

    Result<std::vector<std::uint64_t>> segments() override {
        std::vector<std::uint64_t> found;
        std::error_code failed;
        for (auto entry = std::filesystem::directory_iterator(options_.folder, failed);
             !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
            const std::string name = entry->path().filename().string();
            if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
            const std::string_view digits =
                std::string_view(name).substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
            std::uint64_t number = 0;
            const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
            if (code != std::errc() || end != digits.data() + digits.size() || segment_name(number) != name)
                return Error(ErrorKind::conflict, entry->path().string() + ": its name is not that of a segment", {},
                             "nothing was changed; take the foreign file out");
            found.push_back(number);
        }
        if (failed)
            return Error(ErrorKind::not_found,
                         fmt::format("cannot read the ledger {}: {}", options_.folder, failed.message()), {},
                         "name the folder that stoker serve writes");
        std::sort(found.begin(), found.end());
        return found;
    }

    Result<std::string> read(std::uint64_t segment) override { return read_file(place(segment), kLargestSegment); }

    Status claim() override {
        if (lock_) return done();
        std::error_code failed;
        std::filesystem::create_directories(options_.folder, failed);
        if (failed)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot make the folder of the ledger {}: {}", options_.folder, failed.message()));
        const std::string path = options_.folder + "/lock";
        UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (!lock) return disk("open", path);
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
            return Error(ErrorKind::conflict, fmt::format("another process writes the ledger {}", options_.folder), {},
                         "give each gateway a folder of its own");
        lock_ = std::move(lock);
        return done();
    }

    Status cut(std::uint64_t segment, std::uint64_t bytes) override {
        const std::string path = place(segment);
        if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) return disk("cut", path);
        const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (!file || ::fsync(file.get()) != 0) return disk("sync", path);
        return done();
    }

    Status write(std::span<const SegmentPiece> pieces) override {
        for (const SegmentPiece& piece : pieces) {
            if (!file_ || written_ != piece.segment)
                TRY_VOID(begin(piece));
            else
                TRY_VOID(write_at(file_.get(), piece.bytes, piece.at, place(written_)));
        }
        if (options_.sync && file_ && ::fdatasync(file_.get()) != 0) return disk("sync", place(written_));
        return done();
    }

private:
    std::string spare_path() const { return options_.folder + "/spare.tmp"; }

    Status begin(const SegmentPiece& piece) {
        if (preparer_.joinable()) preparer_.join();
        if (file_ && options_.sync && ::fdatasync(file_.get()) != 0) return disk("sync", place(written_));
        const std::string spare = spare_path();
        std::error_code unknown;
        UniqueFd next;
        if (std::filesystem::file_size(spare, unknown) == piece.room && !unknown)
            next.reset(::open(spare.c_str(), O_RDWR | O_CLOEXEC));
        if (!next) {
            TRY(next, zeros(spare, piece.room));
        }
        // How it begins is on disk before the name says that this is a segment.
        TRY_VOID(write_at(next.get(), piece.bytes, piece.at, spare));
        if (::fdatasync(next.get()) != 0) return disk("sync", spare);
        if (::rename(spare.c_str(), place(piece.segment).c_str()) != 0) return disk("rename", spare);
        TRY_VOID(sync_folder(options_.folder));
        file_ = std::move(next);
        written_ = piece.segment;
        // The next one, ahead of its time; that it could not be made is told when it is needed.
        preparer_ = masked_thread("ledger-next", [spare, bytes = options_.usual_room] {
            const auto made = zeros(spare, bytes);
            if (!made) ::unlink(spare.c_str());
        });
        return done();
    }

    const SegmentFolderOptions options_;
    UniqueFd lock_, file_;
    std::uint64_t written_ = 0;  // the segment of file_
    std::thread preparer_;
};

}  // namespace

std::unique_ptr<SegmentHome> segment_folder(SegmentFolderOptions options) {
    return std::make_unique<SegmentFolder>(std::move(options));
}

std::string segment_name(std::uint64_t number) {
    return fmt::format("{}{:020}{}", kBegin, number, kEnd);
}

}  // namespace stoker
