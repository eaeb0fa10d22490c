#include "deploy/local/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "io/process.h"

namespace stoker {
namespace {

constexpr double kSeldom = 1, kOften = 0.1;

constexpr int kMostRounds = 8;

// Appends what `from` has from `offset` to `end`; the offset after it.
Result<std::int64_t> append_part(const UniqueFd& from, const UniqueFd& to, std::int64_t offset, std::int64_t end) {
    std::array<char, 65536> block{};
    for (;;) {
        const auto most = static_cast<std::size_t>(std::min<std::int64_t>(end - offset, std::ssize(block)));
        const ssize_t got = most == 0 ? 0 : ::pread(from.get(), block.data(), most, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error(ErrorKind::unavailable, std::strerror(errno));
        if (got == 0) return offset;
        for (ssize_t put = 0; put < got;) {
            const ssize_t wrote = ::write(to.get(), block.data() + put, static_cast<std::size_t>(got - put));
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0) return Error(ErrorKind::exhausted, std::strerror(errno));
            put += wrote;
        }
        offset += got;
    }
}

Status begin_anew(const UniqueFd& file) {
    if (::ftruncate(file.get(), 0) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0) return done();
    return Error(ErrorKind::unavailable, std::strerror(errno));
}

// How much is copied: at first all that there is room for, later less, since the copy has to win the race.
std::int64_t room_in(std::int64_t half, int rounds) {
    return half / (rounds < 2 ? 1 : 1 << (rounds - 1));
}

// Removes the first `bytes` of the file in one step, between two writes of whoever appends to it; false where the file
// system cannot (ext4 and xfs can, in whole blocks; tmpfs cannot). fallocate(2), FALLOC_FL_COLLAPSE_RANGE.
bool cut_front(const UniqueFd& file, std::int64_t bytes) {
    return ::fallocate(file.get(), FALLOC_FL_COLLAPSE_RANGE, 0, bytes) == 0;
}

}  // namespace

BoundedLog::BoundedLog(std::string path, std::int64_t most) : path_(std::move(path)), most_(most), pause_(kOften) {}

double BoundedLog::check() {
    struct stat status {};
    if (most_ <= 0 || ::stat(path_.c_str(), &status) != 0) return kSeldom;
    const std::int64_t size = status.st_size, grown = size - last_size_;
    last_size_ = size;
    if (size > most_ / 2) {
        // On a full disk the old part is lost rather than the bound.
        if (!rotate(size)) (void)(::truncate(path_.c_str(), 0) == 0);
        last_size_ = 0;
        return pause_ = kOften;
    }
    return pause_ = grown > most_ / 16 ? kOften : std::min(kSeldom, 2 * pause_);
}

Status BoundedLog::rotate(std::int64_t size) {
    const std::string old = path_ + ".1", temporary = old + ".tmp";
    const UniqueFd from(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const UniqueFd to(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!from || !to) return Error(ErrorKind::unavailable, std::strerror(errno));
    auto moved = move_blocks(from, to);
    if (moved && !*moved) moved = copy_and_empty(from, to, size);
    if (moved && ::rename(temporary.c_str(), old.c_str()) != 0)
        moved = Error(ErrorKind::unavailable, std::strerror(errno));
    if (moved) return done();
    ::unlink(temporary.c_str());
    return moved.error();
}

// Copies whole blocks and then cuts them off: nothing that is written meanwhile is lost. False, with nothing changed:
// not possible on this file system, or for a bound of less than a block.
Result<bool> BoundedLog::move_blocks(const UniqueFd& from, const UniqueFd& to) const {
    const std::int64_t half = most_ / 2;
    std::int64_t kept = 0;
    for (int rounds = 0; rounds < kMostRounds; ++rounds) {
        struct stat status {};
        if (::fstat(from.get(), &status) != 0) return Error(ErrorKind::unavailable, std::strerror(errno));
        if (rounds > 0 && status.st_size <= half) break;
        // Not up to the end: a range that reaches it cannot be cut.
        const std::int64_t block = std::max<std::int64_t>(512, status.st_blksize);
        const std::int64_t cut = status.st_size > 0 ? (status.st_size - 1) / block * block : 0;
        if (cut == 0) return rounds > 0;
        const bool fits = kept + cut <= half;
        if (!fits) TRY_VOID(begin_anew(to));
        const std::int64_t begin = fits ? 0 : std::max<std::int64_t>(0, cut - room_in(half, rounds));
        kept = (fits ? kept : 0) + cut - begin;
        if (const auto reached = append_part(from, to, begin, cut); !reached) return reached.error();
        if (!cut_front(from, cut)) {
            if (rounds > 0) return Error(ErrorKind::unavailable, std::strerror(errno));
            TRY_VOID(begin_anew(to));
            return false;
        }
    }
    return true;
}

// What is written while we copy is copied too, some times; what comes between the last look and the truncation is
// lost, which is some microseconds of a flood. One that writes as fast as we copy is caught up with by leaving out
// what the bound would not keep anyway.
Result<bool> BoundedLog::copy_and_empty(const UniqueFd& from, const UniqueFd& to, std::int64_t size) const {
    const std::int64_t half = most_ / 2;
    std::int64_t offset = std::max<std::int64_t>(0, size - half), kept = 0;
    for (int rounds = 0; rounds < kMostRounds; ++rounds) {
        struct stat status {};
        if (::fstat(from.get(), &status) != 0) return Error(ErrorKind::unavailable, std::strerror(errno));
        const std::int64_t end = status.st_size;
        if (end <= offset) break;
        if (kept + (end - offset) > half) {
            TRY_VOID(begin_anew(to));
            kept = 0;
            offset = std::max(offset, end - room_in(half, rounds));
        }
        const auto reached = append_part(from, to, offset, end);
        if (!reached) return reached.error();
        kept += *reached - offset;
        offset = *reached;
    }
    if (::ftruncate(from.get(), 0) != 0) return Error(ErrorKind::unavailable, std::strerror(errno));
    return true;
}

}  // namespace stoker
