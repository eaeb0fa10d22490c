#include "deploy/local/work_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr int kDeepestWork = 16;

Error no_such_file(std::string_view path) {
    return Error(ErrorKind::not_found, "there is no artefact " + printable(path, 200));
}

Result<UniqueFd> open_below(const std::string& folder, std::string_view path) {
    UniqueFd at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    const Error missing = no_such_file(path);
    if (!at) return missing;
    const auto parts = split(path, '/');
    if (parts.size() > kDeepestWork) return missing;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string part(parts[i]);
        if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) return missing;
        const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK);
        UniqueFd next(::openat(at.get(), part.c_str(), flags));
        if (!next) return missing;
        at = std::move(next);
    }
    return at;
}

void list_below(int folder, const std::string& prefix, int depth, std::size_t most, WorkFiles& list) {
    if (depth > kDeepestWork) {
        list.cut = true;
        return;
    }
    DIR* dir = ::fdopendir(folder);  // takes it
    if (dir == nullptr) {
        ::close(folder);
        return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir)) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        if (names.size() == most) {
            list.cut = true;
            break;
        }
        names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        struct stat status {};
        if (::fstatat(::dirfd(dir), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const std::string path = prefix + name;
        if (S_ISDIR(status.st_mode)) {
            const int next = ::openat(::dirfd(dir), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            if (next >= 0) list_below(next, path + "/", depth + 1, most, list);
        } else if (S_ISREG(status.st_mode) && find_invalid_utf8(path) == std::string::npos) {
            if (list.items.size() == most) {
                list.cut = true;
                break;
            }
            list.items.push_back(
                {.path = path,
                 .bytes = status.st_size,
                 .modified_us = status.st_mtim.tv_sec * std::int64_t{1'000'000} + status.st_mtim.tv_nsec / 1000});
        }
    }
    ::closedir(dir);
}

}  // namespace

WorkFiles list_work_files(const std::string& folder, std::size_t most) {
    WorkFiles list;
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) list_below(fd, "", 0, most, list);
    return list;
}

Result<FilePart> read_work_file(const std::string& folder, const std::string& path, std::int64_t from,
                                std::size_t most) {
    TRY(const UniqueFd file, open_below(folder, path));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return Error(ErrorKind::unavailable, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) return no_such_file(path);
    FilePart part{.bytes = {}, .size = status.st_size};
    if (from < 0 || from >= part.size) return part;
    part.bytes.resize(
        static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(most), part.size - from)));
    std::size_t have = 0;
    while (have < part.bytes.size()) {
        const ssize_t got = ::pread(file.get(), part.bytes.data() + have, part.bytes.size() - have,
                                    from + static_cast<std::int64_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    part.bytes.resize(have);
    return part;
}

}  // namespace stoker
