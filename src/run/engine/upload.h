// The uploads of a server: what runs with `checkpoint: {upload: ...}` write goes into their object store, in the
// background. Looks at the checkpoint folders of such runs every few seconds, on threads of its own; a folder or a
// store that does not answer holds nobody up, not even stop(). What it begins and how that ended goes through the core
// and so into the journal; after a restart what was begun and not told to have ended is looked for in the store, and
// done again when it is not there.
#pragma once

#include <functional>
#include <memory>

#include "run/engine/engine.h"

namespace stoker {

struct UploadOptions {
    double look_every_s = 2;
    double first_wait_s = 5, most_wait_s = 600;  // before the next try of an upload that failed
    int tries_after_end = 5;                     // of the last upload of a run that has ended; a restart begins anew
    // What the journal does not say: older checkpoints could not be removed from the store. From a thread that may be
    // left behind, so it has to own what it touches.
    std::function<void(RunId, const Error&)> prune_failed;
};

class CheckpointUploads {
public:
    static std::unique_ptr<CheckpointUploads> start(Engine& engine, UploadOptions options = {});
    ~CheckpointUploads();  // stop()

    // Runs that have ended and whose last checkpoint is still on its way.
    std::size_t owed() const;
    // Looks now, and waits until nothing is owed or `stop` says true.
    void finish(const std::function<bool()>& stop);
    // What is under way is left for the next server. Before the engine stops.
    void stop();

private:
    CheckpointUploads() = default;
    struct Work;
    std::shared_ptr<Work> work_;
    std::shared_ptr<void> watch_;
};

}  // namespace stoker
