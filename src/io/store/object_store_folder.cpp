// A folder as an object store: for tests, a mounted share, and a copy on another disk.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/store/object_store_protocol.h"

namespace stoker::objects {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kFolderPiece = 1u << 20;

Error folder_error(std::string_view what, const std::string& path, int code) {
    const ErrorKind kind = code == ENOENT                    ? ErrorKind::not_found
                           : code == ENOSPC                  ? ErrorKind::exhausted
                           : code == EACCES || code == EROFS ? ErrorKind::denied
                                                             : ErrorKind::unavailable;
    return Error(kind, fmt::format("cannot {} {}: {}", what, printable(path), std::strerror(code)));
}

class FolderProtocol final : public Protocol {
public:
    explicit FolderProtocol(std::string folder) : folder_(std::move(folder)) {}

    Status put(const std::string& key, std::string body, const std::string&, Patience& patience) override {
        patience.transient = false;
        TRY_VOID(make_parent(key));
        return write_file_atomic(path(key), body);
    }
    Result<std::string> begin(const std::string& key, const std::string&, Patience& patience) override {
        patience.transient = false;
        TRY_VOID(make_parent(key));
        // A name that no key ends with, and that list() passes over.
        std::string temporary = path(key) + "." + random_hex(4) + ".tmp~";
        const UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (!file) return folder_error("make", temporary, errno);
        return temporary;
    }
    Result<std::string> part(const std::string&, const std::string& upload, int, std::int64_t offset, std::string body,
                             Patience&) override {
        const UniqueFd file(::open(upload.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file) return folder_error("open", upload, errno);
        std::string_view rest = body;
        while (!rest.empty()) {
            const ssize_t written = ::pwrite(file.get(), rest.data(), rest.size(), offset);
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return folder_error("write", upload, errno);
            rest.remove_prefix(static_cast<std::size_t>(written));
            offset += written;
        }
        return std::string();
    }
    Status finish(const std::string& key, const std::string& upload, const std::vector<std::string>&,
                  const std::string&, Patience&) override {
        const UniqueFd file(::open(upload.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file || ::fsync(file.get()) != 0) return folder_error("sync", upload, errno);
        if (::rename(upload.c_str(), path(key).c_str()) != 0) return folder_error("rename", upload, errno);
        return done();
    }
    void abandon(const std::string&, const std::string& upload) override { ::unlink(upload.c_str()); }

    Result<ObjectInfo> head(const std::string& key, Patience& patience) override {
        patience.transient = false;
        struct stat status {};
        if (::stat(path(key).c_str(), &status) != 0) return folder_error("look at", path(key), errno);
        if (!S_ISREG(status.st_mode)) return folder_error("read", path(key), ENOENT);
        return ObjectInfo{
            .key = key,
            .bytes = status.st_size,
            .etag = fmt::format("{}-{}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec)};
    }

    Status get(const std::string& key, std::int64_t from, const std::string&,
               const std::function<bool(std::string_view)>& on_piece, Patience& patience) override {
        patience.transient = false;
        const UniqueFd file(::open(path(key).c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) return folder_error("open", path(key), errno);
        std::string piece(kFolderPiece, '\0');
        for (;;) {
            const ssize_t got = ::pread(file.get(), piece.data(), piece.size(), from);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return folder_error("read", path(key), errno);
            if (got == 0 || !on_piece(std::string_view(piece).substr(0, static_cast<std::size_t>(got)))) return done();
            from += got;
        }
    }

    Result<ObjectPage> list(const std::string& prefix, const std::string&, Patience& patience) override {
        patience.transient = false;
        ObjectPage page;
        // The folder that the prefix leads into; what is beside it cannot begin so.
        const std::size_t slash = prefix.rfind('/');
        const std::string below = slash == std::string::npos ? "" : prefix.substr(0, slash);
        std::error_code code;
        fs::recursive_directory_iterator entries(path(below), code);
        if (code == std::errc::no_such_file_or_directory) return page;
        for (; !code && entries != fs::recursive_directory_iterator(); entries.increment(code)) {
            std::error_code ignored;  // removed meanwhile
            if (!entries->is_regular_file(ignored)) continue;
            ObjectInfo item{.key = entries->path().lexically_relative(folder_).string()};
            if (!item.key.starts_with(prefix) || item.key.ends_with(".tmp~")) continue;
            item.bytes = static_cast<std::int64_t>(entries->file_size(ignored));
            page.items.push_back(std::move(item));
        }
        if (code)
            return Error(ErrorKind::unavailable, fmt::format("cannot list {}: {}", printable(folder_), code.message()));
        std::sort(page.items.begin(), page.items.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
        return page;
    }

    Status remove(const std::string& key, Patience& patience) override {
        patience.transient = false;
        if (::unlink(path(key).c_str()) != 0 && errno != ENOENT) return folder_error("remove", path(key), errno);
        // Folders that are empty now; the first that is not ends it.
        for (std::string at = key; at.find('/') != std::string::npos;) {
            at.resize(at.rfind('/'));
            if (::rmdir(path(at).c_str()) != 0) break;
        }
        return done();
    }

private:
    std::string path(const std::string& key) const { return key.empty() ? folder_ : folder_ + "/" + key; }
    Status make_parent(const std::string& key) {
        std::error_code code;
        fs::create_directories(fs::path(path(key)).parent_path(), code);
        if (!code) return done();
        return folder_error("make the folder of", path(key), code.value());
    }

    const std::string folder_;
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_folder(const ObjectUrl& url) {
    return std::unique_ptr<Protocol>(std::make_unique<FolderProtocol>(url.prefix));
}

}  // namespace stoker::objects
