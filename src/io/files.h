// Whole files in and out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

// The content of a file; "-" is stdin. Refused, with what to do about it: a missing file (the nearest name beside it is
// offered), a folder, more than max_bytes, no permission.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

// Readers see the old content or the new, never a part: a temporary file beside it is filled, synced and renamed. The
// mode of an existing file is kept; a link keeps pointing at the file, which is replaced.
Status write_file_atomic(const std::string& path, std::string_view text);

// What was made, renamed or removed in it is on disk. unavailable: it cannot be opened or synced.
Status sync_folder(const std::string& path);

// All of it to an open file; `path` is for the error. exhausted: there is no room.
Status write_all(int fd, std::string_view text, const std::string& path);

// A folder of its own in the temporary folder, which goes with everything in it.
class ScratchFolder {
public:
    // `word` is a part of its name. unavailable: it cannot be made.
    static Result<ScratchFolder> make(std::string_view word);
    ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder();
    const std::string& path() const { return path_; }

private:
    explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

}  // namespace stoker
