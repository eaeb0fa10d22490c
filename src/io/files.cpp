#include "io/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

ErrorKind kind_of(int code) {
    switch (code) {
        case ENOENT:
        case ENOTDIR: return ErrorKind::not_found;
        case EACCES:
        case EPERM:
        case EROFS: return ErrorKind::denied;
        case EISDIR:
        case ENAMETOOLONG:
        case ELOOP:
        case EINVAL: return ErrorKind::invalid;
        case ENOSPC:
        case EDQUOT: return ErrorKind::exhausted;
        default: return ErrorKind::unavailable;
    }
}

std::string shown(const std::string& path) {
    return path == "-" ? "stdin" : printable(path);
}

Error failure(const char* what, const std::string& path, int code) {
    return Error(kind_of(code), std::string(what) + " " + shown(path) + ": " + std::strerror(code));
}

Error missing(const std::string& path) {
    const fs::path wanted(path);
    const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
    std::error_code code;
    if (!fs::is_directory(folder, code))
        return Error(ErrorKind::not_found, "there is no folder " + shown(folder.string()) + " to read " +
                                               shown(wanted.filename().string()) + " from");
    constexpr std::size_t kMostNames = 1000;
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, code), end; !code && it != end && names.size() < kMostNames;
         it.increment(code)) {
        if (!it->is_directory(code)) names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());  // a folder's order is not stable, and ties go to the first
    const auto near = nearest(wanted.filename().string(), names);
    const std::string hint =
        near ? " (did you mean " + shown(wanted.has_parent_path() ? (folder / *near).string() : *near) + "?)" : "";
    return Error(ErrorKind::not_found, "there is no file " + shown(path) + hint);
}

Error too_large(const std::string& path, std::size_t max_bytes) {
    return Error(ErrorKind::invalid, shown(path) + " has more than " +
                                         format_thousands(static_cast<double>(max_bytes)) +
                                         " bytes, the most that is read");
}

// A pipe: of a shell's <(...), which will come, or of a FIFO that nobody writes to, which would wait for ever.
constexpr int kPipeWaitMs = 20'000;

Status wait_for_writer(int fd, const std::string& path) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, kPipeWaitMs);
    if (ready < 0 && errno != EINTR) return failure("cannot read", path, errno);
    if (ready == 0)
        return Error(ErrorKind::timed_out,
                     fmt::format("nothing came from {} within {} s", shown(path), kPipeWaitMs / 1000), {},
                     "it is a pipe, and nobody writes to it");
    return done();
}

Result<std::string> read_all(int fd, const std::string& path, std::size_t expected, std::size_t max_bytes) {
    std::string text;
    // One byte more than announced, so that the end is seen without growing once more.
    std::size_t chunk = std::min(std::max<std::size_t>(expected + 1, 4096), max_bytes + 1);
    for (std::size_t have = 0;;) {
        if (have == text.size()) text.resize(std::min(have + chunk, max_bytes + 1));
        const ssize_t got = ::read(fd, text.data() + have, text.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) {
            TRY_VOID(wait_for_writer(fd, path));
            continue;
        }
        if (got < 0) return failure("cannot read", path, errno);
        if (got == 0) {
            text.resize(have);
            return text;
        }
        have += static_cast<std::size_t>(got);
        if (have > max_bytes) return too_large(path, max_bytes);
        chunk = std::max<std::size_t>(have, 65536);
    }
}

// What rename() will replace: the file behind a link, or the path itself.
std::string target_of(const std::string& path) {
    char* const resolved = ::realpath(path.c_str(), nullptr);
    std::string target = resolved == nullptr ? path : resolved;
    std::free(resolved);
    return target;
}

Status fill_and_rename(UniqueFd& file, std::string_view text, const std::string& temporary, const std::string& target) {
    struct stat existing {};
    if (::stat(target.c_str(), &existing) == 0 && ::fchmod(file.get(), existing.st_mode & 07777) != 0)
        return failure("cannot write", target, errno);
    TRY_VOID(write_all(file.get(), text, target));
    if (::fsync(file.get()) != 0) return failure("cannot write", target, errno);
    if (::close(file.release()) != 0) return failure("cannot write", target, errno);
    if (::rename(temporary.c_str(), target.c_str()) != 0) return failure("cannot write", target, errno);
    return done();
}

}  // namespace

Status write_all(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t put = ::write(fd, text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failure("cannot write", path, errno);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    return done();
}

Status sync_folder(const std::string& path) {
    const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder && ::fsync(folder.get()) == 0) return done();
    return Error(ErrorKind::unavailable,
                 fmt::format("cannot sync the folder {}: {}", printable(path), std::strerror(errno)));
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
    if (path.empty()) return Error(ErrorKind::invalid, "the name of a file is empty");
    if (path.find('\0') != std::string::npos)
        return Error(ErrorKind::invalid, "the name of a file holds a zero byte: " + printable(path));
    if (path == "-") return read_all(STDIN_FILENO, path, 0, max_bytes);
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        const int code = errno;
        return code == ENOENT || code == ENOTDIR ? missing(path) : failure("cannot read", path, code);
    }
    struct stat about {};
    if (::fstat(file.get(), &about) != 0) return failure("cannot read", path, errno);
    if (S_ISDIR(about.st_mode)) return Error(ErrorKind::invalid, shown(path) + " is a folder, and a file is expected");
    const auto size = S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) : std::size_t{0};
    if (size > max_bytes) return too_large(path, max_bytes);
    // Without a writer a read says "the end" at once; a poll waits for one.
    if (S_ISFIFO(about.st_mode))
        TRY_VOID(wait_for_writer(file.get(), path));
    else
        (void)::fcntl(file.get(), F_SETFL, 0);  // a terminal is waited for
    return read_all(file.get(), path, size, max_bytes);
}

Status write_file_atomic(const std::string& path, std::string_view text) {
    if (path.empty() || path.find('\0') != std::string::npos)
        return Error(ErrorKind::invalid, "not a name of a file: '" + printable(path) + "'");
    const std::string target = target_of(path);
    std::error_code code;
    if (fs::is_directory(target, code))
        return Error(ErrorKind::invalid, shown(path) + " is a folder, and a file is expected");
    if (fs::exists(target, code) && !fs::is_regular_file(target, code)) {
        // /dev/stdout or a pipe: there is nothing to replace, and renaming over it would break the machine.
        const UniqueFd device(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
        if (device.get() < 0) return failure("cannot write", path, errno);
        return write_all(device.get(), text, path);
    }
    static std::atomic<unsigned> serial{0};
    const fs::path folder = fs::path(target).parent_path();
    const std::string name = ".stoker-" + std::to_string(::getpid()) + "-" + std::to_string(serial++) + ".tmp";
    const std::string temporary = (folder / name).string();
    // Created by open() and not by mkstemp(), so that a new file gets the mode that the user's umask asks for.
    UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) return failure("cannot write", path, errno);
    Status status = fill_and_rename(file, text, temporary, target);
    if (!status) ::unlink(temporary.c_str());
    return status;
}

Result<ScratchFolder> ScratchFolder::make(std::string_view word) {
    std::error_code code;
    const std::string folder = fs::temp_directory_path(code).string();
    std::string path = folder + "/stoker-" + std::string(word) + "-XXXXXX";
    if (code || ::mkdtemp(path.data()) == nullptr)
        return Error(ErrorKind::unavailable,
                     "cannot make a temporary folder" + (code ? "" : " in " + printable(folder)), {},
                     "set TMPDIR to a folder with room that may be written");
    return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace stoker
