// CheckpointPolicy: where the checkpoints of a Deployment or a run are written, how often, and which are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker {

// Complete checkpoints go into an object store, too, while the run goes on.
struct UploadPolicy {
    std::string to;      // io/store/object_store_url.h; the server puts its name and the run's behind it
    int keep = 3;        // newest complete ones in the store
    int every = 1;       // each n-th
    bool at_end = true;  // and the last one, when the run has ended
    std::string tier;    // of the store: COOL, STANDARD_IA; empty: its own
    friend bool operator==(const UploadPolicy&, const UploadPolicy&) = default;
};

struct CheckpointPolicy {
    std::string folder;           // empty: none are written; relative: below the run's own folder
    std::int64_t interval_s = 0;  // 0: the program's own
    int keep = 3;                 // newest complete ones
    std::string restore_from;     // where upload put those of another run; used when there is none in the folder
    std::optional<UploadPolicy> upload;
    friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};

template <class V>
void fields(V& visit, UploadPolicy& spec) {
    visit("at_end", spec.at_end);
    visit("every", spec.every);
    visit("keep", spec.keep);
    visit("tier", spec.tier);
    visit("to", spec.to);
}
template <class V>
void fields(V& visit, CheckpointPolicy& spec) {
    visit("folder", spec.folder);
    visit("interval_s", spec.interval_s);
    visit("keep", spec.keep);
    visit("restore_from", spec.restore_from);
    visit("upload", spec.upload);
}

}  // namespace stoker
