#include "app/server/run_observer.h"

#include <atomic>
#include <mutex>

#include "run/run_folder.h"

namespace stoker {

// Between the engine and a thread that may outlive both.
struct RunObserver::Link {
    std::atomic<bool> changed{true};
    std::mutex mutex;
    Engine* engine = nullptr;          // guarded by mutex; null: it is going
    std::weak_ptr<Observer> observer;  // the same
};

std::vector<WatchedRank> live_ranks(const State& state, const std::string& engine_folder) {
    std::vector<WatchedRank> ranks;
    for (const RunId run : state.live) {
        const Run* found = state.find(run);
        const Attempt* attempt = found == nullptr ? nullptr : found->live_attempt();
        if (attempt == nullptr) continue;
        const RunFolder folder = run_folder(engine_folder, run);
        const std::string metrics = folder.metrics();
        std::vector<std::string> folders{folder.path};
        std::string interface;
        for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
            if (const auto named = found->spec.environment.find(name); named != found->spec.environment.end())
                interface = named->second;
        if (const std::string checkpoints = folder.checkpoints(found->spec);
            !checkpoints.empty() && !checkpoints.starts_with(folder.path + "/"))
            folders.push_back(checkpoints);
        for (std::size_t i = 0; i < attempt->ranks.size(); ++i) {
            const RankStatus& status = attempt->ranks[i];
            if (!status.started || status.ended || status.pid <= 0) continue;
            const int rank = static_cast<int>(i);
            std::vector<StepSource> sources{
                {.kind = StepSource::Kind::lines, .path = rank_metrics_file(metrics, rank), .pattern = {}}};
            if (found->spec.observe) {
                const ObserveSpec& observe = *found->spec.observe;
                if (!observe.heartbeat.empty()) {
                    const bool relative = !observe.heartbeat.starts_with('/');
                    std::string path = (relative ? found->spec.folder + "/" : "") + observe.heartbeat;
                    if (rank > 0) path += ".rank-" + std::to_string(rank);
                    sources.push_back({.kind = StepSource::Kind::heartbeat, .path = path, .pattern = {}});
                }
                if (auto pattern = StepPattern::parse(observe.step_pattern); pattern && !observe.step_pattern.empty())
                    sources.push_back({.kind = StepSource::Kind::output,
                                       .path = folder.log({run, attempt->number}, rank),
                                       .pattern = std::move(*pattern)});
            }
            ranks.push_back({.run = run.text(),
                             .attempt = static_cast<int>(attempt->number),
                             .rank = rank,
                             .pid = static_cast<pid_t>(status.pid),
                             .sources = std::move(sources),
                             .folders = folders,
                             .interface = interface});
        }
    }
    return ranks;
}

Result<std::unique_ptr<RunObserver>> RunObserver::start(Engine& engine) {
    auto self = std::unique_ptr<RunObserver>(new RunObserver());
    TRY(std::unique_ptr<SeriesStore> series, SeriesStore::open(engine.folder() + "/series"));
    self->series_ = std::move(series);
    self->link_ = std::make_shared<Link>();
    const std::shared_ptr<Link> link = self->link_;
    link->engine = &engine;
    self->watch_ = engine.watch([link](std::span<const Record>) { link->changed = true; });
    self->observer_ = Observer::start({.series = self->series_, .before_look = [link] {
                                           if (!link->changed.exchange(false)) return;
                                           const std::lock_guard lock(link->mutex);
                                           if (link->engine == nullptr) return;
                                           const auto observer = link->observer;
                                           const Status asked = link->engine->read([observer](const EngineView& view) {
                                               if (const auto to = observer.lock())
                                                   to->watch(live_ranks(view.state, view.folder));
                                           });
                                           if (!asked) link->changed = true;
                                       }});
    const std::lock_guard lock(link->mutex);
    link->observer = self->observer_;
    link->changed = true;
    return self;
}

RunObserver::~RunObserver() {
    watch_.reset();
    if (link_) {
        const std::lock_guard lock(link_->mutex);
        link_->engine = nullptr;
    }
    observer_.reset();
}

}  // namespace stoker
