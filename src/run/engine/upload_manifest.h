// Checkpoints in an object store: how they lie there, up and down. Below the URL of a run:
//   step-000040/rank-0.pt ...     the files of the checkpoint, its own manifest among them
//   complete/step-000040.json     ours, written last: names every file with its size and SHA-256
// Without the second there is no checkpoint: what an upload that was cut off left is never restored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/store/object_store.h"
#include "run/spec/run_spec.h"

namespace stoker {

struct StoredFile {
    std::string name;  // below the folder of the checkpoint
    std::int64_t size = 0;
    std::string sha256;  // in hex
};
struct StoredManifest {
    std::int64_t format = 1;
    std::string name;  // "step-000040"
    std::int64_t step = 0;
    std::string run, site;
    std::int64_t bytes = 0, uploaded_us = 0;
    std::vector<StoredFile> files;
};
template <class V>
void fields(V& visit, StoredFile& file) {
    visit("name", file.name);
    visit("sha256", file.sha256);
    visit("size", file.size);
}
template <class V>
void fields(V& visit, StoredManifest& manifest) {
    visit("bytes", manifest.bytes);
    visit("files", manifest.files);
    visit("format", manifest.format);
    visit("name", manifest.name);
    visit("run", manifest.run);
    visit("site", manifest.site);
    visit("step", manifest.step);
    visit("uploaded_us", manifest.uploaded_us);
}

// invalid: not as we write it, or it names a file outside its folder.
Result<StoredManifest> read_stored_manifest(std::string_view json, const std::string& what);

// The complete ones, highest step first; only their names were looked at.
struct StoredName {
    std::string name;
    std::int64_t step = 0;
};
Result<std::vector<StoredName>> list_stored(ObjectStore& store, const TransferOptions& options = {});

// Every regular file of the folder, then the manifest. conflict: a file changed meanwhile, or is not what the
// checkpoint's own manifest says of it.
Result<StoredManifest> upload_checkpoint(ObjectStore& store, const std::string& folder, StoredManifest head,
                                         const TransferOptions& options);

// All but the `keep` newest complete ones, and what uploads that were cut off left below the newest complete one. The
// newest complete one is never removed.
Status prune_stored(ObjectStore& store, int keep);

struct RestoreProgress {
    std::string name;  // of the checkpoint
    std::int64_t bytes = 0, total = 0;
};
// The newest complete checkpoint of the first URL that has one, into FOLDER/step-N, which appears when every file was
// compared with its digest; a damaged one falls back to the one before. What came before a restart is not sent again.
// The name; nothing when no URL has one. unavailable: a store does not answer.
struct Restored {
    std::string name;
    std::string passed_over;  // why a newer one was not taken
};
Result<std::optional<Restored>> restore_checkpoint(const std::vector<std::string>& urls, const std::string& folder,
                                                   const std::function<void(const RestoreProgress&)>& progress,
                                                   const std::function<bool()>& stop);

}  // namespace stoker
