// Weights on this machine: fetched once, held while somebody serves them, and removed, the longest unused first, when
// others need the room. Processes share it by locks of the kernel, which end with whoever held them.
//   CACHE/DIGEST/        the files of a version; DIGEST.part while they come
//   CACHE/DIGEST.json    what it is, and how many bytes it has or will have; its time of change is that of the last use
//   CACHE/DIGEST.lock    shared by all who use it; alone by who fills or removes it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/process.h"
#include "serve/registry/model_registry.h"

namespace stoker {

struct CachedWeights {
    std::string digest, ref;
    std::int64_t bytes = 0, used_us = 0;
    bool whole = false, in_use = false;
};

class WeightsCache {
public:
    // `limit_bytes` of all versions together, those that come included; 0: half of the file system.
    static Result<WeightsCache> open(std::string folder, std::int64_t limit_bytes);

    struct Held {
        std::string folder;
        UniqueFd lock;  // as long as it is open, here or in a program that it was handed to, the files stay
        bool was_there = false;
        std::vector<std::string> removed;  // versions that made room
    };
    // Waits for another process that fetches the same. exhausted: what is in use leaves no room, or the limit is less
    // than the version.
    Result<Held> hold(ModelRegistry& registry, const ModelVersion& version, const ModelTransfer& transfer);

    Result<std::vector<CachedWeights>> list() const;  // the last used first
    // Removes what nobody uses, the longest unused first, until no more than so much is left; what was removed.
    Result<std::vector<std::string>> shrink(std::int64_t to_bytes);
    std::int64_t limit_bytes() const { return limit_; }
    const std::string& folder() const { return folder_; }

private:
    WeightsCache(std::string folder, std::int64_t limit) : folder_(std::move(folder)), limit_(limit) {}
    std::string path(const std::string& digest, std::string_view end) const;
    Status make_room(const ModelVersion& version, std::vector<std::string>& removed) const;
    std::string folder_;
    std::int64_t limit_;
};

// What a server is given of a version's folder: its only or first file where the engine takes a file (GGUF, ONNX), the
// folder with config.json where it takes a folder (safetensors).
std::string served_path(const ModelVersion& version, const std::string& folder);

}  // namespace stoker
