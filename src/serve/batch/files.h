// Files that clients of a gateway leave with it, for batches: one folder, two files each, of a project. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::batch {

struct StoredFile {
    std::string id, filename, purpose, project;
    std::int64_t bytes = 0, created_at = 0;  // seconds, as the API has them
};
template <class V>
void fields(V& visit, StoredFile& file) {
    visit("bytes", file.bytes);
    visit("created_at", file.created_at);
    visit("filename", file.filename);
    visit("id", file.id);
    visit("project", file.project);
    visit("purpose", file.purpose);
}

class FileStore {
public:
    // Reads what is there; the folder is made with the first file.
    static Result<std::unique_ptr<FileStore>> open(std::string folder, std::uint64_t most_bytes);

    // exhausted: all of them together would be more than there is room for.
    Result<StoredFile> add(std::string filename, std::string purpose, std::string project, std::string_view content);
    // Of that project alone; not_found, in the same words for what is not there and for what is another's.
    Result<StoredFile> find(const std::string& id, const std::string& project) const;
    Result<std::string> content(const StoredFile& file) const;
    Status remove(const StoredFile& file);
    std::vector<StoredFile> list(const std::string& project) const;  // the newest first
    const std::string& folder() const { return folder_; }

private:
    FileStore(std::string folder, std::uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
    std::string path_of(const std::string& id, const char* ending) const;

    const std::string folder_;
    const std::uint64_t most_bytes_;
    mutable std::mutex mutex_;  // guards files_
    std::map<std::string, StoredFile> files_;
};

}  // namespace stoker::batch
