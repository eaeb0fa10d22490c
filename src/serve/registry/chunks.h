// What a registry does chunk by chunk, and what a push is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/store/object_store.h"
#include "serve/registry/model_registry.h"

namespace stoker {

// A file that is pushed.
struct ModelSource {
    std::string on_disk, path;  // path: below the folder that was named
    std::int64_t bytes = 0;
};
// Files, and folders with all that is in them but hidden files; sorted by path. invalid: none, or two of one path.
Result<std::vector<ModelSource>> sources_of(const std::vector<std::string>& paths);
// Of all files of weights together. invalid: none; a pickle; one that is damaged; a part of several that is missing;
// two models.
Result<WeightsHeader> header_of_sources(const std::vector<ModelSource>& sources);

std::int64_t chunk_size(const ModelVersion& version, std::size_t file, std::size_t chunk);
Result<std::string> read_chunk(const std::string& path, std::int64_t offset, std::int64_t bytes);
// conflict: what came is something else, also when asked again.
Result<std::string> get_chunk(ObjectStore& store, const std::string& key, const std::string& digest, std::int64_t bytes,
                              const ModelTransfer& transfer);

// Every chunk of every file, some at a time; the first error ends it.
Status for_each_chunk(const ModelVersion& version, const ModelTransfer& transfer,
                      const std::function<Status(std::size_t file, std::size_t chunk)>& each);

// Tells how far it is; from any thread.
class ChunkProgress {
public:
    ChunkProgress(const ModelTransfer& transfer, std::int64_t of, std::string_view what)
        : transfer_(transfer), of_(of), what_(what) {}
    void add(std::int64_t bytes) {
        const std::lock_guard guard(mutex_);
        done_ += bytes;
        if (transfer_.progress) transfer_.progress(done_, of_, what_);
    }

private:
    const ModelTransfer& transfer_;
    const std::int64_t of_;
    const std::string_view what_;
    std::mutex mutex_;
    std::int64_t done_ = 0;
};

}  // namespace stoker
