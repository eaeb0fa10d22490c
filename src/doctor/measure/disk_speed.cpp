#include "doctor/measure/disk_speed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::size_t kDiskPiece = 1 << 20, kSmallFile = 4096;
constexpr std::int64_t kLeastRoom = std::int64_t{64} << 20;  // that stays free beside what is written
constexpr std::uint64_t kTmpfs = 0x01021994, kRamfs = 0x858458f6;

std::string name_of_file_system(std::uint64_t type) {
    switch (type) {  // linux/magic.h
        case 0xef53: return "ext4";
        case 0x58465342: return "xfs";
        case 0x9123683e: return "btrfs";
        case 0x6969: return "nfs";
        case 0xff534d42:
        case 0xfe534d42: return "cifs";
        case 0x794c7630: return "overlay";
        case 0x65735546: return "fuse";
        case 0x2fc12fc1: return "zfs";
        case 0x0bd00bd0: return "lustre";
        case kTmpfs: return "tmpfs";
        case kRamfs: return "ramfs";
        default: return fmt::format("{:x}", type);
    }
}

Error disk_error(const std::string& folder, const char* what, int code) {
    const ErrorKind kind = code == ENOENT || code == ENOTDIR                  ? ErrorKind::not_found
                           : code == ENOSPC || code == EDQUOT                 ? ErrorKind::exhausted
                           : code == EACCES || code == EPERM || code == EROFS ? ErrorKind::denied
                                                                              : ErrorKind::unavailable;
    return Error(kind, fmt::format("cannot {} in {}: {}", what, printable(folder), std::strerror(code)), {},
                 code == ENOSPC || code == EDQUOT ? "make room there" : "");
}

// A file that has no name (any more).
Result<UniqueFd> nameless_file(const std::string& folder) {
    UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd) return fd;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return disk_error(folder, "make a file", errno);
    std::string name = folder + "/.stoker-doctor-XXXXXX";
    fd.reset(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd) return disk_error(folder, "make a file", errno);
    ::unlink(name.c_str());
    return fd;
}

struct FreeAligned {
    void operator()(char* memory) const { std::free(memory); }
};
using AlignedPiece = std::unique_ptr<char, FreeAligned>;

Result<AlignedPiece> random_piece() {
    AlignedPiece piece(static_cast<char*>(std::aligned_alloc(4096, kDiskPiece)));
    if (!piece) return Error(ErrorKind::exhausted, "no memory for the disk test");
    // Random bytes: some file systems and disks compress.
    SplitMix random(20'261'121);
    for (std::size_t i = 0; i < kDiskPiece; i += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(piece.get() + i, &word, 8);
    }
    return piece;
}

Result<DiskSpeed> measure_disk_here(const DiskTest& test) {
    DiskSpeed speed;
    struct statfs system {};
    if (::statfs(test.folder.c_str(), &system) != 0) return disk_error(test.folder, "look", errno);
    const auto type = static_cast<std::uint64_t>(static_cast<std::uint32_t>(system.f_type));
    speed.file_system = name_of_file_system(type);
    TRY(const DiskRoom room, room_of_disk(test.folder));
    const std::int64_t most =
        std::min(test.bytes, room.free_bytes - kLeastRoom) / static_cast<std::int64_t>(kDiskPiece);
    if (most < 1)
        return Error(ErrorKind::exhausted,
                     fmt::format("{} has {} MiB left: too little to try it", printable(test.folder),
                                 std::max<std::int64_t>(0, room.free_bytes) >> 20),
                     {}, "make room there");
    TRY(const UniqueFd file, nameless_file(test.folder));
    TRY(const AlignedPiece piece, random_piece());
    const double part = test.seconds / 3;
    speed.direct = ::fcntl(file.get(), F_SETFL, O_DIRECT) == 0;
    const auto use_cache = [&] {
        speed.direct = false;
        ::fcntl(file.get(), F_SETFL, 0);
    };

    double start = monotonic_seconds();
    for (std::int64_t i = 0; i < most; ++i) {
        ssize_t put = ::pwrite(file.get(), piece.get(), kDiskPiece, speed.written);
        if (put < 0 && errno == EINVAL && speed.direct) {  // it said yes and meant no
            use_cache();
            put = ::pwrite(file.get(), piece.get(), kDiskPiece, speed.written);
        }
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return disk_error(test.folder, "write", put < 0 ? errno : ENOSPC);
        speed.written += put;
        if (speed.direct && put % 4096 != 0) use_cache();  // a part of a piece: not aligned any more
        // Without O_DIRECT the cache would take all at once and the sync would have no end.
        if (!speed.direct && i % 16 == 15) ::fdatasync(file.get());
        if (monotonic_seconds() - start > part) break;
    }
    if (::fdatasync(file.get()) != 0) return disk_error(test.folder, "sync a file", errno);
    speed.write_bytes_per_s = static_cast<double>(speed.written) / std::max(1e-9, monotonic_seconds() - start);

    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    start = monotonic_seconds();
    while (speed.read + static_cast<std::int64_t>(kDiskPiece) <= speed.written) {
        ssize_t got = ::pread(file.get(), piece.get(), kDiskPiece, speed.read);
        if (got < 0 && errno == EINVAL && speed.direct) {
            use_cache();
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return disk_error(test.folder, "read", errno);
        speed.read += got;
        if (monotonic_seconds() - start > part) break;
    }
    speed.read_bytes_per_s = static_cast<double>(speed.read) / std::max(1e-9, monotonic_seconds() - start);

    // Each is removed while it is open: killed at any moment, at most one empty file of this name stays.
    const std::string small = fmt::format("{}/.stoker-doctor-{}-small", test.folder, ::getpid());
    start = monotonic_seconds();
    while (speed.small_files < test.small_files) {
        const UniqueFd one(::open(small.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!one) return disk_error(test.folder, "make a small file", errno);
        ::unlink(small.c_str());
        if (::pwrite(one.get(), piece.get(), kSmallFile, 0) != static_cast<ssize_t>(kSmallFile) ||
            ::pread(one.get(), piece.get(), kSmallFile, 0) != static_cast<ssize_t>(kSmallFile))
            return disk_error(test.folder, "write a small file", errno);
        ++speed.small_files;
        if (monotonic_seconds() - start > part) break;
    }
    speed.small_files_per_s = speed.small_files / std::max(1e-9, monotonic_seconds() - start);

    speed.in_memory = type == kTmpfs || type == kRamfs;
    if (speed.in_memory)
        speed.note = speed.file_system + " is memory, not a disk";
    else if (!speed.direct)
        speed.note = speed.file_system + " does not take O_DIRECT: the page cache may have answered reads";
    return speed;
}

// A disk that answers nothing is waited for by one thread at most.
constexpr std::size_t kMostDiskTests = 4, kMostHangingTests = 1;

}  // namespace

Result<DiskRoom> room_of_disk(const std::string& folder) {
    struct statvfs room {};
    if (::statvfs(folder.c_str(), &room) != 0) return disk_error(folder, "look", errno);
    const auto block = static_cast<std::int64_t>(room.f_frsize);
    return DiskRoom{.free_bytes = static_cast<std::int64_t>(room.f_bavail) * block,
                    .total_bytes = static_cast<std::int64_t>(room.f_blocks) * block};
}

Result<DiskSpeed> measure_disk(const DiskTest& test, std::chrono::steady_clock::time_point deadline) {
    static WithinDeadline tests({.name = "stoker-disk", .most = kMostDiskTests, .most_left = kMostHangingTests});
    constexpr std::string_view kRemedy = "dmesg | tail; a network file system: is its server there?";
    auto answer = tests.run<Result<DiskSpeed>>(deadline, [test] { return measure_disk_here(test); });
    if (answer) return std::move(*answer);
    if (answer.error().kind() == ErrorKind::exhausted)
        return Error(ErrorKind::timed_out, "an earlier test still waits for its disk", {}, std::string(kRemedy));
    return Error(ErrorKind::timed_out, fmt::format("the disk of {} did not answer in time", printable(test.folder)), {},
                 std::string(kRemedy));
}

}  // namespace stoker
