#include "explain/run_observer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <set>

#include "explain/blame.h"
#include "explain/explanation.h"
#include "explain/run_cost.h"
#include "observe/collect.h"
#include "run/spec/run_folder.h"

namespace stoker {

namespace {

using ObserverClock = std::chrono::steady_clock;
// What a rank wrote last is read when it has gone.
constexpr auto kBlameAfter = std::chrono::seconds(3);
constexpr auto kReadLimit = std::chrono::seconds(5);
constexpr std::size_t kMostToBlame = 256, kMostBlamePoints = 1'000'000;

}  // namespace

// Between the engine and a thread that may outlive both.
struct RunObserver::Link {
    std::atomic<bool> changed{true};
    std::mutex mutex;
    Engine* engine = nullptr;             // guarded by mutex; null: it is going
    std::weak_ptr<Observer> observer;     // the same
    ExplanationKeeper* keeper = nullptr;  // the same
    std::set<std::string> live;           // the same: runs with ranks at the last look
    std::mutex ended_mutex;               // guards what follows; the core's thread takes it, so nobody waits under it
    std::deque<std::pair<ObserverClock::time_point, AttemptId>> ended;  // the oldest go first

    void note_ended(std::span<const Record> records) {
        for (const Record& record : records) {
            const auto* moved = std::get_if<AttemptMoved>(&record.body);
            if (moved == nullptr || moved->event != AttemptEvent::gone) continue;
            const std::lock_guard lock(ended_mutex);
            ended.emplace_back(ObserverClock::now() + kBlameAfter, moved->attempt);
            if (ended.size() > kMostToBlame) ended.pop_front();
        }
    }

    // One at a time: a look at the series of an hour takes some milliseconds.
    void blame_next(SeriesStore& series) {
        std::optional<EndedAttempt> last;
        Planned planned;
        AttemptId id;
        {
            const std::lock_guard lock(ended_mutex);
            if (ended.empty() || ObserverClock::now() < ended.front().first) return;
            id = ended.front().second;
            ended.pop_front();
        }
        {
            const std::lock_guard lock(mutex);
            if (engine == nullptr) return;
            const Status asked = engine->read([&](const EngineView& view) {
                last = ended_attempt(view.state, id);
                if (last) planned = planned_of(view.state.find(id.run)->spec);
            });
            if (!asked || !last) return;
        }
        const std::size_t columns = last->node_of_rank.size() * evidence_measures().size();
        const auto found = series.query({.run = last->attempt.run.text(),
                                         .metrics = evidence_measures(),
                                         .rank = {},
                                         .from_s = static_cast<std::int64_t>(last->from_s),
                                         .to_s = static_cast<std::int64_t>(last->to_s) + 2,
                                         .max_points = std::clamp<std::size_t>(kMostBlamePoints / columns, 60, 3602)});
        if (!found) return;
        const RunEvidence evidence =
            collect_evidence(*found, planned, {.from_s = last->from_s, .to_s = last->to_s, .expects_steps = false});
        auto blame = blame_of(*last, evidence);
        if (!blame) return;
        const std::lock_guard lock(mutex);
        if (engine != nullptr)
            (void)engine->post({.what = std::move(*blame), .actor = Actor::part("observer")},
                               [](const Result<Ack>&) {});
    }
};

namespace {

// Of those that had ranks, the runs that have none now.
std::vector<RunId> runs_without_ranks(std::set<std::string>& live, const std::vector<LiveGang>& gangs) {
    std::set<std::string> now;
    for (const LiveGang& gang : gangs) now.insert(gang.run.text());
    std::vector<RunId> gone;
    for (const std::string& run : live)
        if (!now.contains(run))
            if (const auto id = RunId::parse(run)) gone.push_back(*id);
    live = std::move(now);
    return gone;
}

Result<std::optional<RunAsItStands>> ended_run(Engine& engine, const PriceBook& prices, RunId run) {
    std::optional<RunAsItStands> ended;
    bool over = false;
    TRY_VOID(engine.read([&](const EngineView& view) {
        const Run* found = view.state.find(run);
        over = found == nullptr || (!is_terminal(found->state) && found->live_attempt() != nullptr);
        if (over || !is_terminal(found->state)) return;
        if (auto stands = run_as_it_stands(view.state, run, prices, view.now_us)) ended = std::move(*stands);
    }));
    if (over) return Error(ErrorKind::not_found, run.text() + " has not ended");
    return ended;
}

}  // namespace

std::vector<LiveGang> live_gangs(const State& state, const std::string& engine_folder) {
    std::vector<LiveGang> gangs;
    for (const RunId run : state.live) {
        const Run* found = state.find(run);
        const Attempt* attempt = found == nullptr ? nullptr : found->live_attempt();
        if (attempt == nullptr) continue;
        std::vector<LiveRank> live;
        for (std::size_t i = 0; i < attempt->ranks.size(); ++i) {
            const RankStatus& status = attempt->ranks[i];
            if (!status.started || status.ended) continue;
            live.push_back({.rank = static_cast<int>(i),
                            .pid = status.pid,
                            .node = i < attempt->places.size() ? attempt->places[i].node : ""});
        }
        if (live.empty()) continue;
        const RunFolder folder = run_folder(engine_folder, run);
        gangs.push_back({.run = run,
                         .attempt = attempt->number,
                         .gang = {.launched = attempt->launch,
                                  .log_folder = folder.logs({run, attempt->number}),
                                  .measure = measure_spec(found->spec, folder),
                                  .live = std::move(live)}});
    }
    return gangs;
}

namespace {

// The engine may go while somebody is asked; who asks does not keep it.
std::vector<WatchedGang> watched_gangs(std::vector<LiveGang> gangs, const std::weak_ptr<const Questions>& engine) {
    std::vector<WatchedGang> watched;
    for (LiveGang& each : gangs)
        watched.push_back(
            {.run = each.run.text(),
             .attempt = static_cast<int>(each.attempt),
             .live = each.gang.live,
             .read = [engine, gang = std::move(each.gang)](const std::vector<LiveRank>& live,
                                                           const MeasureQuery& query) -> Result<Measures> {
                 const auto asked = engine.lock();
                 if (!asked) return Error(ErrorKind::unavailable, "the engine has gone");
                 MeasuredGang now = gang;
                 now.live = live;
                 return asked->read_measures(now, query, ObserverClock::now() + kReadLimit);
             }});
    return watched;
}

}  // namespace

Result<std::unique_ptr<RunObserver>> RunObserver::start(Engine& engine, PriceBook prices) {
    auto self = std::unique_ptr<RunObserver>(new RunObserver());
    TRY(std::unique_ptr<SeriesStore> series, SeriesStore::open(engine.folder() + "/series"));
    self->series_ = std::move(series);
    self->link_ = std::make_shared<Link>();
    const std::shared_ptr<Link> link = self->link_;
    link->engine = &engine;
    self->keeper_ =
        ExplanationKeeper::start({.series = self->series_, .look = [&engine, prices = std::move(prices)](RunId run) {
                                      return ended_run(engine, prices, run);
                                  }});
    link->keeper = self->keeper_.get();
    // What ended while no server was there to see it.
    std::vector<RunId> unseen;
    for (const std::string& run : self->series_->recent())
        if (const auto id = RunId::parse(run)) unseen.push_back(*id);
    self->keeper_->offer(unseen);
    self->watch_ = engine.watch([link](std::span<const Record> records) {
        link->changed = true;
        link->note_ended(records);
    });
    self->observer_ = Observer::start({.series = self->series_, .before_look = [link, series = self->series_] {
                                           link->blame_next(*series);
                                           if (!link->changed.exchange(false)) return;
                                           const std::lock_guard lock(link->mutex);
                                           if (link->engine == nullptr) return;
                                           const auto observer = link->observer;
                                           std::vector<LiveGang> gangs;
                                           const Status asked = link->engine->read([&gangs](const EngineView& view) {
                                               gangs = live_gangs(view.state, view.folder);
                                           });
                                           if (!asked) {
                                               link->changed = true;
                                               return;
                                           }
                                           link->keeper->offer(runs_without_ranks(link->live, gangs));
                                           if (const auto to = observer.lock())
                                               to->watch(watched_gangs(std::move(gangs), link->engine->questions()));
                                       }});
    const std::lock_guard lock(link->mutex);
    link->observer = self->observer_;
    link->changed = true;
    return self;
}

RunObserver::~RunObserver() {
    watch_.reset();
    std::vector<RunId> ended;
    if (link_) {
        const std::lock_guard lock(link_->mutex);
        // What was seen alive and is not looked at any more: those that ended since are kept, the others not.
        for (const std::string& run : link_->live)
            if (const auto id = RunId::parse(run)) ended.push_back(*id);
        link_->engine = nullptr;
    }
    observer_.reset();  // writes out what it has
    if (keeper_) keeper_->offer(ended);
    keeper_.reset();
}

}  // namespace stoker
