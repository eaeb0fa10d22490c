#include "run/engine/upload.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "io/worker.h"
#include "run/engine/checkpoints.h"
#include "run/engine/upload_manifest.h"

namespace stoker {

// Of a run, for a look at its checkpoints. Named, because lambdas of a named class hold it.
struct UploadView {
    RunId run;
    bool ended = false;
    UploadPolicy policy;
    std::string folder, site;
    std::optional<StoredCheckpoints> stored;
};

namespace {

using UploadClock = std::chrono::steady_clock;

constexpr std::size_t kMostUploads = 4;  // at a time
constexpr double kStopWaitS = 3;
constexpr double kListLimitS = 60;

UploadClock::duration upload_seconds(double seconds) {
    return std::chrono::duration_cast<UploadClock::duration>(std::chrono::duration<double>(seconds));
}

bool uploads_checkpoints(const RunSpec& spec) {
    return spec.checkpoint.upload && !spec.checkpoint.folder.empty();
}

std::string fault_of(const Error& error) {
    std::string text = error.message();
    if (!error.problems().front().remedy.empty()) text += " (" + error.problems().front().remedy + ")";
    return text;
}

// What is to go up now; nothing when it waits for more.
const Checkpoint* choose_upload(const std::vector<Checkpoint>& all, const UploadView& view) {
    const std::int64_t newest_stored = view.stored ? view.stored->step : -1;
    std::vector<const Checkpoint*> newer;  // highest first
    for (const Checkpoint& each : all)
        if (each.complete && each.step > newest_stored) newer.push_back(&each);
    if (newer.empty()) return nullptr;
    const bool due = newer.size() >= static_cast<std::size_t>(view.policy.every) || (view.ended && view.policy.at_end);
    return due ? newer.front() : nullptr;
}

}  // namespace

// Shared with threads that outlive everybody when their file system does not answer.
struct CheckpointUploads::Work : std::enable_shared_from_this<Work> {
    UploadOptions options;
    std::mutex mutex;
    std::condition_variable changed;
    std::mutex reading;        // guards engine; taken before `mutex` where both are
    Engine* engine = nullptr;  // null: it is going
    std::atomic<bool> stopping{false};
    std::uint64_t asked = 0, looked = 0;  // looks at the runs: wanted, made
    std::set<RunId> candidates, ended, busy;
    std::map<RunId, UploadClock::time_point> not_before;
    std::map<RunId, int> tries;  // since the start of this server
    // The scheduler and the uploads. The last of them may end it with the rest of this, on its own thread.
    WorkerPool threads{{.name = "stoker-upload", .threads = kMostUploads + 1}};

    // ---- the scheduler's thread
    void run() {
        (void)find_first();
        for (;;) {
            std::vector<UploadView> views;
            std::uint64_t look = 0;
            {
                const std::lock_guard guard(mutex);
                look = asked;
            }
            (void)read([&](const EngineView& view) {
                for (const RunId id : wanted()) {
                    const Run* run = view.state.find(id);
                    if (run == nullptr) {
                        drop(id);
                        continue;
                    }
                    views.push_back({.run = id,
                                     .ended = is_terminal(run->state),
                                     .policy = *run->spec.checkpoint.upload,
                                     .folder = run_folder(view.folder, id).checkpoints(run->spec),
                                     .site = view.state.site,
                                     .stored = run->stored});
                }
            });
            std::unique_lock lock(mutex);
            for (UploadView& view : views) {
                if (view.ended) ended.insert(view.run);
                const auto wait = not_before.find(view.run);
                if (wait != not_before.end() && wait->second > UploadClock::now()) continue;
                if (busy.contains(view.run)) continue;
                const RunId id = view.run;
                const bool begun = threads.post([self = shared_from_this(), view = std::move(view)] {
                    self->examine(view);
                    const std::lock_guard guard(self->mutex);
                    self->busy.erase(view.run);
                    // It may have ended since this look at it began.
                    if (self->ended.contains(view.run)) ++self->asked;
                    self->changed.notify_all();
                });
                if (begun) busy.insert(id);
            }
            looked = look;
            changed.notify_all();
            const auto wanted_now = [&] { return stopping || looked < asked; };
            // With nothing to look at, an idle server stays asleep.
            if (candidates.empty())
                changed.wait(lock, wanted_now);
            else
                changed.wait_for(lock, upload_seconds(options.look_every_s), wanted_now);
            if (stopping) return;
        }
    }

    Status find_first() {
        return read([this](const EngineView& view) {
            const std::lock_guard guard(mutex);
            for (const auto& [id, run] : view.state.runs) {
                if (!uploads_checkpoints(run.spec)) continue;
                candidates.insert(id);
                if (is_terminal(run.state)) ended.insert(id);
            }
        });
    }

    std::vector<RunId> wanted() {
        const std::lock_guard guard(mutex);
        return {candidates.begin(), candidates.end()};
    }

    void drop(RunId run) {
        const std::lock_guard guard(mutex);
        candidates.erase(run);
        ended.erase(run);
        not_before.erase(run);
        tries.erase(run);
        changed.notify_all();
    }

    // Under a lock of its own: what is read locks ours, and the engine may not go while it is read.
    Status read(const std::function<void(const EngineView&)>& see) {
        const std::lock_guard guard(reading);
        if (engine == nullptr) return Error(ErrorKind::unavailable, "the server is stopping");
        return engine->read(see);
    }

    Status tell(Command command) {
        const auto answered = std::make_shared<std::promise<Status>>();
        auto future = answered->get_future();
        command.actor = Actor::part("uploads");
        {
            const std::lock_guard guard(reading);
            if (engine == nullptr) return Error(ErrorKind::unavailable, "the server is stopping");
            TRY_VOID(engine->post(std::move(command), [answered](const Result<Ack>& ack) {
                answered->set_value(ack ? done() : Status(ack.error()));
            }));
        }
        return future.get();
    }

    // ---- a thread of one run
    void examine(const UploadView& view) {
        std::shared_ptr<const Questions> questions;
        {
            const std::lock_guard guard(reading);
            if (engine == nullptr) return;
            questions = engine->questions();
        }
        const auto listed = questions->list_checkpoints(view.folder, after(kListLimitS));
        if (!listed) return wait_longer(view, 1);
        const std::vector<Checkpoint>* all = &listed->items;
        if (view.stored && view.stored->uploading >= 0) {
            const auto begun = std::find_if(all->begin(), all->end(), [&](const Checkpoint& each) {
                return each.complete && each.step == view.stored->uploading;
            });
            return upload(view, view.stored->uploading, begun == all->end() ? "" : begun->folder);
        }
        if (const Checkpoint* next = choose_upload(*all, view)) return upload(view, next->step, next->folder);
        if (view.ended) drop(view.run);
    }

    void upload(const UploadView& view, std::int64_t step, const std::string& folder) {
        const auto base = read_object_url(view.policy.to);
        if (!base) return drop(view.run);  // of a journal that was written by something else
        const std::string url = view.stored ? view.stored->url : base->text(view.site + "/" + view.run.text());
        if (!tell({.what = BeginUpload{.run = view.run, .step = step, .url = url}})) return wait_longer(view, 1);
        const auto sent = send(view, step, folder, url);
        if (stopping) return;  // the next server goes on
        EndUpload end{.run = view.run, .step = step};
        if (sent)
            end.bytes = *sent;
        else
            end.fault = fault_of(sent.error());
        if (!tell({.what = std::move(end)})) return wait_longer(view, 1);
        const std::lock_guard guard(mutex);
        if (sent) {
            tries.erase(view.run);
            not_before.erase(view.run);
            ++asked;
            changed.notify_all();
            return;
        }
        const int failed = ++tries[view.run];
        if (view.ended && failed >= options.tries_after_end) {
            candidates.erase(view.run);
            ended.erase(view.run);
            changed.notify_all();
            return;
        }
        set_wait(view.run, failed);
    }

    void wait_longer(const UploadView& view, int failed) {
        const std::lock_guard guard(mutex);
        set_wait(view.run, failed);
    }
    void set_wait(RunId run, int failed) {
        const double wait =
            std::min(options.most_wait_s, options.first_wait_s * static_cast<double>(1u << std::min(failed - 1, 10)));
        not_before[run] = UploadClock::now() + upload_seconds(wait);
    }

    // The bytes of the checkpoint.
    Result<std::int64_t> send(const UploadView& view, std::int64_t step, const std::string& folder,
                              const std::string& url) {
        TRY(const ObjectUrl place, read_object_url(url));
        TRY(const auto store, ObjectStore::open(place));
        const TransferOptions transfer{
            .stop = [this] { return stopping.load(); }, .moved = {}, .tier = view.policy.tier};
        const std::int64_t begun = view.stored ? view.stored->uploading : -1;
        if (begun == step) {
            // Of an earlier server: its last word may have been lost, not the upload.
            TRY(const auto complete, list_stored(*store, transfer));
            for (const StoredName& each : complete) {
                if (each.step != step) continue;
                TRY(const std::string json, store->get_text("complete/" + each.name + ".json", 32u << 20, transfer));
                TRY(const StoredManifest manifest, read_stored_manifest(json, each.name));
                return manifest.bytes;
            }
        }
        if (folder.empty())
            return Error(ErrorKind::not_found,
                         fmt::format("the checkpoint of step {} was removed before it was uploaded", step));
        TRY(const StoredManifest sent,
            upload_checkpoint(*store, folder, {.step = step, .run = view.run.text(), .site = view.site}, transfer));
        // It is there; that older ones could not be removed is told with the next one.
        const Status pruned = prune_stored(*store, view.policy.keep);
        if (!pruned && options.prune_failed) options.prune_failed(view.run, pruned.error());
        return sent.bytes;
    }
};

std::unique_ptr<CheckpointUploads> CheckpointUploads::start(Engine& engine, UploadOptions options) {
    auto self = std::unique_ptr<CheckpointUploads>(new CheckpointUploads());
    self->work_ = std::make_shared<Work>();
    self->work_->options = options;
    self->work_->engine = &engine;
    self->watch_ = engine.watch([work = self->work_](std::span<const Record> records) {
        for (const Record& record : records) {
            if (const auto* submitted = std::get_if<RunSubmitted>(&record.body)) {
                if (!uploads_checkpoints(submitted->spec)) continue;
                const std::lock_guard guard(work->mutex);
                work->candidates.insert(submitted->run);
                ++work->asked;
                work->changed.notify_all();
            } else if (const auto* moved = std::get_if<RunMoved>(&record.body)) {
                const std::lock_guard guard(work->mutex);
                if (!work->candidates.contains(moved->run)) continue;
                // Its last checkpoint is looked for at once.
                ++work->asked;
                work->changed.notify_all();
            }
        }
    });
    self->work_->threads.post([work = self->work_] { work->run(); });
    return self;
}

CheckpointUploads::~CheckpointUploads() {
    stop();
}

std::size_t CheckpointUploads::owed() const {
    const std::lock_guard guard(work_->mutex);
    return work_->ended.size();
}

void CheckpointUploads::finish(const std::function<bool()>& stop) {
    std::unique_lock lock(work_->mutex);
    const std::uint64_t mine = ++work_->asked;
    work_->changed.notify_all();
    while (!stop() && !work_->stopping && (work_->looked < mine || !work_->ended.empty()))
        work_->changed.wait_for(lock, std::chrono::milliseconds(50));
}

void CheckpointUploads::stop() {
    watch_.reset();
    {
        const std::lock_guard guard(work_->reading);
        work_->engine = nullptr;
    }
    {
        const std::lock_guard guard(work_->mutex);
        work_->stopping = true;
        work_->changed.notify_all();
    }
    work_->threads.stop(after(kStopWaitS));
}

}  // namespace stoker
