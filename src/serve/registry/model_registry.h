// Models in an object store: what a push of files is called, where its bytes lie, and how they come back whole.
// Below the URL of a registry:
//   chunks/ab/abcd...             32 MiB of a file at most, named by its SHA-256, once for all versions that have it
//   models/NAME/000003-xxxx.json  a version: its files with their chunks, and what their headers say; written last
//   models/NAME/000002.removed    a version that was removed: its number is never another's
//   pushing/NAME-xxxx.json        a push under way; its chunks are nobody's to remove
//   cleaning.json                 chunks of no version are being removed: no push begins
// A version never changes. Without its file there is no version: what a push left that was cut off is found again by
// the next push of the same bytes, and removed by clean().
//
// The order of steps holds between machines because a store lists what was written before (S3 since December 2020, and
// Azure Blob always): a push tells of itself and then looks for a cleaning; a cleaning tells of itself and then looks
// for pushes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/store/object_store.h"
#include "serve/models/weights_header.h"

namespace stoker {

struct ModelSource;  // chunks.h
struct ModelFile {
    std::string path;  // below the folder that was pushed
    std::int64_t bytes = 0;
    std::vector<std::string> chunks;  // SHA-256 in hex, in order; all but the last have chunk_bytes
};
struct ModelVersion {
    std::int64_t format = 1;
    std::string name;
    int version = 0;     // from 1
    std::string digest;  // SHA-256 in hex of the files' names and chunks: two versions with the same bytes share it
    std::string created_at, created_by, note;
    std::int64_t bytes = 0, chunk_bytes = 0;
    std::vector<ModelFile> files;
    WeightsHeader header;  // of all its files of weights together

    std::string ref() const;  // "chat@3"
};

// "chat", "chat@3": letters in lower case, digits and . _ -, up to 60, beginning with a letter or a digit.
struct ModelRef {
    std::string name;
    int version = 0;  // 0: the newest
};
Result<ModelRef> read_model_ref(std::string_view text);
// invalid: not as we write it, or it names a file outside its folder.
Result<ModelVersion> read_model_version(std::string_view json, const std::string& what);

struct ModelTransfer {
    std::function<bool()> stop;
    std::function<void(std::int64_t done, std::int64_t of, std::string_view what)> progress;  // any thread, in turn
    int parallel = 4;  // chunks under way; each takes its size of memory
};

struct ModelPushed {
    ModelVersion version;
    bool was_there = false;         // the newest version has these bytes: nothing was written
    std::int64_t sent_bytes = 0;    // what the store did not have
    std::int64_t shared_bytes = 0;  // what it had: of other versions, or of a push that was cut off
};

class ModelRegistry {
public:
    static constexpr std::int64_t kChunkBytes = 32 << 20;
    // Reads the environment; calls nobody.
    static Result<ModelRegistry> open(std::string_view url);
    explicit ModelRegistry(std::unique_ptr<ObjectStore> store, std::int64_t chunk_bytes = kChunkBytes)
        : store_(std::move(store)), chunk_bytes_(chunk_bytes) {}

    std::string url() const { return store_->url_of(""); }

    // A file, or a folder with everything below it that is no hidden file. Refused before anything is sent: no file of
    // weights among them, one that is cut off or contradicts itself, a pickle. conflict: a file changed meanwhile, or a
    // cleaning is under way.
    Result<ModelPushed> push(const std::string& name, const std::vector<std::string>& paths, const std::string& note,
                             const ModelTransfer& transfer);

    Result<std::vector<std::string>> names();
    Result<std::vector<int>> versions(const std::string& name);  // rising; empty: there is no such model
    // not_found names the nearest; conflict: two pushes chose one number, and are about to choose another.
    Result<ModelVersion> find(const ModelRef& ref);

    // Every file into FOLDER, which is made: chunk by chunk, each against its digest; what is there already and right
    // is kept, so that a fetch that was cut off goes on. exhausted: there is no room, found out before anything comes.
    Status fetch(const ModelVersion& version, const std::string& folder, const ModelTransfer& transfer);
    // One small file of a version, as text.
    Result<std::string> read(const ModelVersion& version, const std::string& path, std::size_t max_bytes);
    // Chunks that are missing or not what they are called; empty: all is well.
    Result<std::vector<std::string>> verify(const ModelVersion& version, const ModelTransfer& transfer);

    // The version is gone, and its number is given to no other one; its chunks go with the next clean().
    Status remove(const ModelVersion& version);
    struct Cleaned {
        std::int64_t chunks = 0, bytes = 0;
        std::vector<std::string> given_up;  // pushes older than a day, which nobody goes on with
    };
    // Chunks that no version has. conflict: a push is under way.
    Result<Cleaned> clean(const ModelTransfer& transfer);

private:
    struct Keys {
        std::vector<std::pair<int, std::string>> versions;  // rising
        int highest = 0;                                    // of those that were removed, too
    };
    Result<Keys> keys_of(const std::string& name);
    Status send(const ModelVersion& version, const std::vector<ModelSource>& sources, const ModelTransfer& transfer,
                ModelPushed& out);
    Status number(ModelVersion& version);

    std::unique_ptr<ObjectStore> store_;
    std::int64_t chunk_bytes_;
};

template <class V>
void fields(V& visit, WeightsHeader::OfType& type) {
    visit("bytes", type.bytes);
    visit("elements", type.elements);
    visit("tensors", type.tensors);
}
template <class V>
void fields(V& visit, WeightsHeader& header) {
    visit("active_experts", header.active_experts);
    visit("architecture", header.architecture);
    visit("chat_template", header.chat_template);
    visit("context", header.context);
    visit("experts", header.experts);
    visit("ffn", header.ffn);
    visit("file_bytes", header.file_bytes);
    visit("format", header.format);
    visit("head_dim", header.head_dim);
    visit("heads", header.heads);
    visit("hidden", header.hidden);
    visit("kv_heads", header.kv_heads);
    visit("layers", header.layers);
    visit("name", header.name);
    visit("parameters", header.parameters);
    visit("tensors", header.tensors);
    visit("tokenizer", header.tokenizer);
    visit("types", header.types);
    visit("version", header.version);
    visit("vocabulary", header.vocabulary);
    visit("weight_bytes", header.weight_bytes);
    visit("weights_elsewhere", header.weights_elsewhere);
}
template <class V>
void fields(V& visit, ModelFile& file) {
    visit("bytes", file.bytes);
    visit("chunks", file.chunks);
    visit("path", file.path);
}
template <class V>
void fields(V& visit, ModelVersion& version) {
    visit("bytes", version.bytes);
    visit("chunk_bytes", version.chunk_bytes);
    visit("created_at", version.created_at);
    visit("created_by", version.created_by);
    visit("digest", version.digest);
    visit("files", version.files);
    visit("format", version.format);
    visit("header", version.header);
    visit("name", version.name);
    visit("note", version.note);
    visit("version", version.version);
}

}  // namespace stoker
