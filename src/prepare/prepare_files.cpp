#include "prepare/prepare_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"

namespace stoker {

namespace fs = std::filesystem;

Error file_error(const std::string& path, const char* doing) {
    const int code = errno;
    return Error(code == ENOENT                    ? ErrorKind::not_found
                 : code == ENOSPC                  ? ErrorKind::exhausted
                 : code == EACCES || code == EPERM ? ErrorKind::denied
                                                   : ErrorKind::unavailable,
                 fmt::format("{} cannot be {}: {}", path, doing, std::strerror(code)));
}

Result<std::vector<SourceFile>> list_sources(const std::vector<std::string>& paths) {
    std::vector<SourceFile> all;
    const auto add = [&](const std::string& path, const std::string& name) -> Status {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) return file_error(path, "read");
        if (!S_ISREG(status.st_mode)) return done();
        all.push_back({path, name, status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec});
        return done();
    };
    for (const std::string& source : paths) {
        std::error_code code;
        if (!fs::is_directory(source, code)) {
            TRY_VOID(add(source, fs::path(source).filename().string()));
            continue;
        }
        const std::size_t first = all.size();
        for (fs::recursive_directory_iterator it(source, code), end; !code && it != end; it.increment(code))
            if (it->is_regular_file(code))
                TRY_VOID(add(it->path().string(), it->path().lexically_relative(source).string()));
        if (code) return Error(ErrorKind::unavailable, fmt::format("{} cannot be read: {}", source, code.message()));
        std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                  [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
    }
    if (all.empty()) return Error(ErrorKind::not_found, fmt::format("there is no file in {}", join(paths, ", ")));
    return all;
}

Result<Workplace> Workplace::open(const std::string& to) {
    const std::string path = to + ".partial";
    std::error_code code;
    fs::create_directories(fs::path(path).parent_path(), code);
    UniqueFd lock;
    for (bool ours = false; !ours;) {
        lock = UniqueFd(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        if (!lock) return file_error(path + ".lock", "made");
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
            return Error(ErrorKind::conflict, fmt::format("another stoker prepare is at work on {}", to), {},
                         "wait for it, or give another --to");
        // Its owner may have removed it between the two, and who comes next locks another file.
        struct stat held {
        }, named{};
        ours = ::fstat(lock.get(), &held) == 0 && ::stat((path + ".lock").c_str(), &named) == 0 &&
               held.st_ino == named.st_ino;
    }
    // From here on it is ours, and goes with us: not before, or the folder of the other one would go.
    Workplace place;
    place.path_ = path;
    place.lock_ = std::move(lock);
    fs::remove_all(path, code);
    if (::mkdir(path.c_str(), 0777) != 0) return file_error(path, "made");
    return place;
}

Workplace::~Workplace() {
    if (lock_.get() < 0) return;
    std::error_code code;
    fs::remove_all(path_, code);
    fs::remove(path_ + ".lock", code);
}

}  // namespace stoker
