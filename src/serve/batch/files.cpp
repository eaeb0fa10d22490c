#include "serve/batch/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/codec.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/random_bytes.h"

namespace stoker::batch {
namespace {

constexpr std::size_t kMostMeta = 64 * 1024, kMostContent = 1u << 30;
constexpr const char* kMeta = ".file";
constexpr const char* kContent = ".bin";

}  // namespace

std::string FileStore::path_of(const std::string& id, const char* ending) const {
    return fmt::format("{}/{}{}", folder_, id, ending);
}

Result<std::unique_ptr<FileStore>> FileStore::open(std::string folder, std::uint64_t most_bytes) {
    auto store = std::unique_ptr<FileStore>(new FileStore(std::move(folder), most_bytes));
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(store->folder_, none)) {
        const std::string path = entry.path().string();
        if (!path.ends_with(kMeta)) continue;
        TRY(const std::string text, read_file(path, kMostMeta));
        TRY(StoredFile file, codec::decode<StoredFile>(trim(text), path));
        store->files_.emplace(file.id, std::move(file));
    }
    return store;
}

Result<StoredFile> FileStore::add(std::string filename, std::string purpose, std::string project,
                                  std::string_view content) {
    StoredFile file{.id = "file-" + random_hex(12),
                    .filename = std::move(filename),
                    .purpose = std::move(purpose),
                    .project = std::move(project),
                    .bytes = static_cast<std::int64_t>(content.size()),
                    .created_at = wall_clock_us() / 1'000'000};
    const std::lock_guard guard(mutex_);
    std::uint64_t there = content.size();
    for (const auto& [id, each] : files_) there += static_cast<std::uint64_t>(each.bytes);
    if (there > most_bytes_)
        return Error(
            ErrorKind::exhausted,
            fmt::format("all files together may have {} bytes, and with this one they had {}", most_bytes_, there), {},
            "delete some, or give batches: {space: ...} more in the gateway's file");
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    // What it says of itself comes last: without it there is no file.
    TRY_VOID(write_file_atomic(path_of(file.id, kContent), content));
    TRY_VOID(write_file_atomic(path_of(file.id, kMeta), codec::encode(file) + "\n"));
    files_.emplace(file.id, file);
    return file;
}

Result<StoredFile> FileStore::find(const std::string& id, const std::string& project) const {
    const std::lock_guard guard(mutex_);
    const auto found = files_.find(id);
    if (found == files_.end() || found->second.project != project)
        return Error(ErrorKind::not_found, fmt::format("there is no file '{}'", printable(id, 100)));
    return found->second;
}

Result<std::string> FileStore::content(const StoredFile& file) const {
    return read_file(path_of(file.id, kContent), kMostContent);
}

Status FileStore::remove(const StoredFile& file) {
    const std::lock_guard guard(mutex_);
    files_.erase(file.id);
    for (const char* ending : {kMeta, kContent})
        if (const std::string path = path_of(file.id, ending); ::unlink(path.c_str()) != 0 && errno != ENOENT)
            return Error(ErrorKind::unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
    return done();
}

std::vector<StoredFile> FileStore::list(const std::string& project) const {
    const std::lock_guard guard(mutex_);
    std::vector<StoredFile> out;
    for (const auto& [id, file] : files_)
        if (file.project == project) out.push_back(file);
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
        return a.created_at != b.created_at ? a.created_at > b.created_at : a.id < b.id;
    });
    return out;
}

}  // namespace stoker::batch
