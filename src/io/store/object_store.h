// Object storage behind one small interface: S3 and what speaks it, Azure Blob Storage, and a folder. Files go up in
// parts, a few at a time, and come down with resume; every part is checked by the store against the digest that we
// sent, and every file that comes down against its SHA-256.
//
// Keys are relative to the prefix of the URL. Credentials come from the environment, as the vendors' own tools read it,
// and appear in no message. One object, any thread; blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/store/object_store_url.h"

namespace stoker {

struct ObjectInfo {
    std::string key;
    std::int64_t bytes = 0;
    std::string etag;    // changes with the content; empty where a store has none
    std::string sha256;  // in hex, of what was sent or received; not known of what was only looked at
};

struct ObjectStoreOptions {
    // The value of a variable, empty when there is none. Not given: the environment of this process.
    std::function<std::string(const char*)> environment;
    std::size_t part_bytes = 8u << 20;  // grows for files of more than 10,000 parts
    int parallel = 4;                   // parts under way of one file; memory is bounded by four times part_bytes
    int tries = 6;                      // of one request, before it counts as failed
    double first_wait_s = 0.2, most_wait_s = 20;
    double call_timeout_s = 120;  // of one request; of silence when something comes down
};

struct TransferOptions {
    std::function<bool()> stop;                     // asked between pieces: true ends it as cancelled (unavailable)
    std::function<void(std::int64_t bytes)> moved;  // so many more went or came; several threads
    std::string tier;                               // x-amz-storage-class, or x-ms-access-tier; empty: the store's own
};

class ObjectStore {
public:
    // Reads the environment; calls nobody. denied: there are no credentials, with which variables to set.
    static Result<std::unique_ptr<ObjectStore>> open(const ObjectUrl& url, ObjectStoreOptions options = {});
    virtual ~ObjectStore() = default;

    // The object is there whole, or not at all. conflict: the file changed while it was read.
    virtual Result<ObjectInfo> put_file(const std::string& key, const std::string& path,
                                        const TransferOptions& options = {}) = 0;
    virtual Status put_text(const std::string& key, std::string text, const TransferOptions& options = {}) = 0;
    // Into PATH.part, from where an earlier try ended, then renamed and synced. `sha256` in hex, empty: not known.
    // conflict: what came is something else.
    virtual Result<ObjectInfo> get_file(const std::string& key, const std::string& path, const std::string& sha256,
                                        const TransferOptions& options = {}) = 0;
    virtual Result<std::string> get_text(const std::string& key, std::size_t max_bytes,
                                         const TransferOptions& options = {}) = 0;
    virtual Result<ObjectInfo> head(const std::string& key) = 0;  // not_found
    // Every object whose key begins so, in order, page by page, until `each` says false.
    virtual Status list(const std::string& prefix, const std::function<bool(const ObjectInfo&)>& each,
                        const TransferOptions& options = {}) = 0;
    virtual Status remove(const std::string& key) = 0;  // one that is not there is removed already

    virtual std::string url_of(std::string_view key) const = 0;
};

}  // namespace stoker
