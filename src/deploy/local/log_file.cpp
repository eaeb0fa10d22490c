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
    const auto give_up = [&](Error error) {
        ::unlink(temporary.c_str());
        return error;
    };
    const std::int64_t half = most_ / 2;
    std::int64_t offset = std::max<std::int64_t>(0, size - half), kept = 0;
    // What is written while we copy is copied too, some times; what comes between the last look and the truncation is
    // lost, which is some microseconds of a flood. One that writes as fast as we copy is caught up with by leaving out
    // what the bound would not keep anyway.
    for (int rounds = 0; rounds < kMostRounds; ++rounds) {
        struct stat status {};
        if (::fstat(from.get(), &status) != 0) return give_up(Error(ErrorKind::unavailable, std::strerror(errno)));
        const std::int64_t end = status.st_size;
        if (end <= offset) break;
        if (kept + (end - offset) > half) {
            if (::ftruncate(to.get(), 0) != 0 || ::lseek(to.get(), 0, SEEK_SET) != 0)
                return give_up(Error(ErrorKind::unavailable, std::strerror(errno)));
            kept = 0;
            // The first time all that there is room for, later less: the copy has to win the race.
            offset = std::max(offset, end - half / (rounds < 2 ? 1 : 1 << (rounds - 1)));
        }
        const auto reached = append_part(from, to, offset, end);
        if (!reached) return give_up(reached.error());
        kept += *reached - offset;
        offset = *reached;
    }
    if (::ftruncate(from.get(), 0) != 0 || ::rename(temporary.c_str(), old.c_str()) != 0)
        return give_up(Error(ErrorKind::unavailable, std::strerror(errno)));
    return done();
}

}  // namespace stoker
