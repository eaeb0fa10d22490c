#include "serve/registry/weights_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/codec.h"
#include "base/text.h"
#include "io/files.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kDigestName = 20;  // characters of the digest that name a version here
constexpr std::size_t kMostCached = 10'000;

// DIGEST.json
struct CacheNote {
    std::string digest, ref;
    std::int64_t bytes = 0;
};
template <class V>
void fields(V& visit, CacheNote& note) {
    visit("bytes", note.bytes);
    visit("digest", note.digest);
    visit("ref", note.ref);
}

Result<UniqueFd> lock_file(const std::string& path) {
    // Inherited by a program that is started with it: the lock ends with the last who has it open.
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd) return fd;
    return Error(errno == EACCES ? ErrorKind::denied : ErrorKind::unavailable,
                 fmt::format("cannot open {}: {}", printable(path), std::strerror(errno)));
}

bool try_lock(const UniqueFd& fd, int how) {
    while (::flock(fd.get(), how | LOCK_NB) != 0)
        if (errno != EINTR) return false;
    return true;
}

Status wait_lock(const UniqueFd& fd, int how, const ModelTransfer& transfer) {
    while (!try_lock(fd, how)) {
        if (transfer.stop && transfer.stop()) return Error(ErrorKind::unavailable, "stopped");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return done();
}

std::int64_t changed_us(const std::string& path) {
    struct stat now {};
    return ::stat(path.c_str(), &now) == 0 ? now.st_mtim.tv_sec * 1'000'000 + now.st_mtim.tv_nsec / 1000 : 0;
}

std::string gb(std::int64_t bytes) {
    return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

Result<WeightsCache> WeightsCache::open(std::string folder, std::int64_t limit_bytes) {
    std::error_code code;
    fs::create_directories(folder, code);
    if (code) return Error(ErrorKind::denied, fmt::format("cannot make {}: {}", printable(folder), code.message()));
    if (limit_bytes <= 0) {
        struct statvfs disk {};
        if (::statvfs(folder.c_str(), &disk) != 0)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot look at {}: {}", printable(folder), std::strerror(errno)));
        limit_bytes = static_cast<std::int64_t>(disk.f_blocks) * static_cast<std::int64_t>(disk.f_frsize) / 2;
    }
    return WeightsCache(std::move(folder), limit_bytes);
}

std::string WeightsCache::path(const std::string& digest, std::string_view end) const {
    return fmt::format("{}/{}{}", folder_, digest.substr(0, kDigestName), end);
}

Result<std::vector<CachedWeights>> WeightsCache::list() const {
    std::vector<CachedWeights> found;
    std::error_code code;
    for (fs::directory_iterator at(folder_, code); !code && at != fs::directory_iterator(); at.increment(code)) {
        if (at->path().extension() != ".json" || found.size() >= kMostCached) continue;
        const auto text = read_file(at->path().string(), 1 << 16);
        if (!text) continue;  // removed meanwhile
        const auto note = codec::decode<CacheNote>(*text, at->path().string());
        if (!note || note->digest.size() < kDigestName) continue;  // of another program
        CachedWeights one{.digest = note->digest, .ref = note->ref, .bytes = note->bytes};
        one.used_us = changed_us(at->path().string());
        one.whole = fs::is_directory(path(one.digest, ""), code);
        const auto lock = lock_file(path(one.digest, ".lock"));
        one.in_use = lock && !try_lock(*lock, LOCK_EX);
        found.push_back(std::move(one));
    }
    if (code)
        return Error(ErrorKind::unavailable, fmt::format("cannot list {}: {}", printable(folder_), code.message()));
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.used_us > b.used_us; });
    return found;
}

Result<std::vector<std::string>> WeightsCache::shrink(std::int64_t to_bytes) {
    TRY(auto all, list());
    std::int64_t held = 0;
    for (const CachedWeights& each : all) held += each.bytes;
    std::vector<std::string> removed;
    for (auto each = all.rbegin(); each != all.rend() && held > to_bytes; ++each) {
        TRY(const UniqueFd lock, lock_file(path(each->digest, ".lock")));
        if (!try_lock(lock, LOCK_EX)) continue;
        std::error_code code;
        fs::remove_all(path(each->digest, ""), code);
        if (!code) fs::remove_all(path(each->digest, ".part"), code);
        if (code)
            return Error(ErrorKind::denied,
                         fmt::format("cannot remove {} of {}: {}", each->ref, printable(folder_), code.message()));
        // The lock's file stays: one who waits for it would otherwise hold a lock that nobody else sees.
        fs::remove(path(each->digest, ".json"), code);
        held -= each->bytes;
        removed.push_back(each->ref);
    }
    return removed;
}

Status WeightsCache::make_room(const ModelVersion& version, std::vector<std::string>& removed) const {
    if (version.bytes > limit_)
        return Error(ErrorKind::exhausted,
                     fmt::format("{} has {}, and all of {} may have {}", version.ref(), gb(version.bytes),
                                 printable(folder_), gb(limit_)),
                     {}, "--cache-limit, or STOKER_MODEL_CACHE_LIMIT, says how much");
    // One at a time: what comes is counted by its note, which the next one who makes room finds.
    TRY(const UniqueFd alone, lock_file(folder_ + "/room.lock"));
    TRY_VOID(wait_lock(alone, LOCK_EX, {}));
    const std::string note = path(version.digest, ".json");
    std::error_code code;
    if (!fs::exists(note, code)) {
        WeightsCache others = *this;
        struct statvfs disk {};
        std::int64_t most = limit_ - version.bytes;
        TRY(const auto all, list());
        std::int64_t held = 0, pinned = 0;
        for (const CachedWeights& each : all) held += each.bytes, pinned += each.in_use ? each.bytes : 0;
        if (::statvfs(folder_.c_str(), &disk) == 0) {
            const auto free = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
            most = std::min(most, held + free - version.bytes);
        }
        TRY(removed, others.shrink(std::max<std::int64_t>(0, most)));
        std::int64_t left = 0;
        TRY(const auto after, list());
        for (const CachedWeights& each : after) left += each.bytes;
        if (left > most)
            return Error(ErrorKind::exhausted,
                         fmt::format("there is no room for {} ({}) in {}: {} of {} are in use", version.ref(),
                                     gb(version.bytes), printable(folder_), gb(pinned), gb(limit_)),
                         {}, "stoker models cache says by whom; --cache-limit allows more");
    }
    return write_file_atomic(
        note, codec::encode(CacheNote{.digest = version.digest, .ref = version.ref(), .bytes = version.bytes}));
}

Result<WeightsCache::Held> WeightsCache::hold(ModelRegistry& registry, const ModelVersion& version,
                                              const ModelTransfer& transfer) {
    Held held{.folder = path(version.digest, ""), .lock = {}, .was_there = true, .removed = {}};
    TRY(held.lock, lock_file(path(version.digest, ".lock")));
    std::error_code code;
    for (;;) {
        TRY_VOID(wait_lock(held.lock, LOCK_SH, transfer));
        if (fs::is_directory(held.folder, code)) {
            // By the fine clock: the one that files are stamped with stands still for milliseconds.
            timespec now[2] = {};
            ::clock_gettime(CLOCK_REALTIME, &now[0]);
            now[1] = now[0];
            ::utimensat(AT_FDCWD, path(version.digest, ".json").c_str(), now, 0);
            return held;
        }
        TRY_VOID(wait_lock(held.lock, LOCK_EX, transfer));
        if (fs::is_directory(held.folder, code)) continue;  // somebody else was faster
        held.was_there = false;
        TRY_VOID(make_room(version, held.removed));
        TRY_VOID(registry.fetch(version, held.folder, transfer));
    }
}

std::string served_path(const ModelVersion& version, const std::string& folder) {
    const auto ends = [&](std::string_view end) {
        const auto found = std::find_if(version.files.begin(), version.files.end(),
                                        [&](const ModelFile& file) { return file.path.ends_with(end); });
        return found == version.files.end() ? std::string() : folder + "/" + found->path;  // in order: part 1 is first
    };
    if (version.header.format == WeightsFormat::gguf) return ends(".gguf");
    if (version.header.format == WeightsFormat::onnx) return ends(".onnx");
    for (const ModelFile& file : version.files)
        if (file.path == "config.json" || file.path.ends_with("/config.json"))
            return folder + (file.path.size() > 11 ? "/" + file.path.substr(0, file.path.size() - 12) : "");
    return folder;
}

}  // namespace stoker
