#include "server/service.h"

#include "server/event_view.h"

namespace stoker::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kAnswerBy = 60;  // seconds; longer than every wait that a handler may ask for
constexpr int kMostWrongTokens = 10;
constexpr auto kTokenWindow = std::chrono::seconds(60);
constexpr std::size_t kMostPeers = 4096;
constexpr auto kSceneAge = std::chrono::milliseconds(200);
constexpr auto kComment = std::chrono::seconds(15);

Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

// The run that a record is about, also when it is about one of its attempts.
RunId run_of(const RecordBody& body) {
    return std::visit(
        [](const auto& b) -> RunId {
            if constexpr (requires { b.run; })
                return b.run;
            else if constexpr (requires { b.attempt; })
                return b.attempt.run;
            else
                return {};
        },
        body);
}

}  // namespace

ScenePtr make_scene(const EngineView& view) {
    auto scene = std::make_shared<Scene>();
    const State& from = view.state;
    State& to = scene->state;
    scene->now_us = view.now_us;
    scene->scheduler = view.scheduler;
    scene->recovering = view.recovering;
    to.site = from.site;
    to.sites = from.sites;
    to.epoch = from.epoch;
    to.seq = from.seq;
    to.core_version = from.core_version;
    to.at_us = from.at_us;
    to.runs_made = from.runs_made;
    to.operations = from.operations;
    to.nodes = from.nodes;
    to.durations_us = from.durations_us;
    to.tenants = from.tenants;
    to.fair_use = from.fair_use;
    const auto take = [&](RunId id) {
        if (id) to.runs.share(id, from.runs);
    };
    const auto take_with_kin = [&](RunId id) {
        const Run* run = from.find(id);
        if (run == nullptr) return;
        take(id);
        take(run->parent);
        for (const RunId need : run->needs) take(need);
    };
    for (const RunId id : from.live) take_with_kin(id);
    for (const QueueKey& key : from.queue) take_with_kin(key.run);
    for (const auto& [at, id] : from.timers) take_with_kin(id);  // those that back off
    index_state(to);
    return scene;
}

Service::Service(Engine& engine, ApiOptions options, PriceBook prices)
    : engine_(engine), options_(std::move(options)), prices_(std::make_shared<const PriceBook>(std::move(prices))) {
    streams_ = std::make_unique<Streams>(engine_, options_.max_waiting);
    watch_ = engine_.watch([this](std::span<const Record> records) {
        {
            std::lock_guard lock(mutex_);
            if (!waiters_.empty())
                for (const Record& record : records) {
                    const RunId run = run_of(record.body);
                    for (auto& [id, waiter] : waiters_)
                        if (run && waiter->run == run) waiter->woken = true;
                }
        }
        changed_.notify_one();
        streams_->wake();
    });
    ticker_ = masked_thread("stoker-ticker", [this] { tick(); });
}

Service::~Service() {
    stop();
}

void Service::stop() {
    {
        std::lock_guard lock(mutex_);
        if (stopping_) return;
        stopping_ = true;
    }
    watch_.reset();
    changed_.notify_all();
    if (ticker_.joinable()) ticker_.join();
    streams_->stop();
    pool_.stop();
    long_pool_.stop();
    std::map<std::uint64_t, std::shared_ptr<Waiter>> waiters;
    {
        std::lock_guard lock(mutex_);
        waiters.swap(waiters_);
    }
    for (auto& [id, waiter] : waiters) waiter->exchange->fail(Error(ErrorKind::unavailable, "the server is stopping"));
}

void Service::post_as(const ExchangePtr& exchange, const Actor& actor, Command command,
                      std::function<void(Result<Ack>)> answer) {
    command.actor = actor;
    command.trace = exchange->trace.parent;
    const Status status = engine_.post(std::move(command), [self = shared_from_this(), answer = std::move(answer)](
                                                               Result<Ack> ack) { answer(std::move(ack)); });
    if (!status) exchange->fail(status.error());
}

void Service::work(const ExchangePtr& exchange, std::function<void()> job) {
    if (!pool_.post(std::move(job)))
        exchange->fail(Error(ErrorKind::unavailable, "too many requests wait to be answered"));
}
void Service::work_long(const ExchangePtr& exchange, std::function<void()> job) {
    if (!long_pool_.post(std::move(job)))
        exchange->fail(Error(ErrorKind::unavailable, "too many requests wait to be answered"));
}

void Service::wait(const ExchangePtr& exchange, RunId run, double wait_s, double period_s,
                   std::function<void(bool, std::function<void(bool)>)> look) {
    auto waiter = std::make_shared<Waiter>();
    waiter->exchange = exchange;
    waiter->run = run;
    waiter->until = Clock::now() + seconds(std::min(wait_s, options_.max_wait_s));
    waiter->next = Clock::now();
    waiter->period_s = period_s;
    waiter->look = std::move(look);
    bool refused = false;
    {
        std::lock_guard lock(mutex_);
        refused = stopping_ || waiters_.size() >= options_.max_waiting;
        if (!refused) waiters_.emplace(++next_id_, waiter);
    }
    if (refused)
        return exchange->fail(Error(ErrorKind::unavailable, "too many requests wait for something to happen"), 503,
                              "5");
    changed_.notify_one();
}

void Service::watch_over(const ExchangePtr& exchange, double limit_s) {
    std::uint64_t id = 0;
    {
        std::lock_guard lock(mutex_);
        id = ++next_id_;
        open_.emplace(id,
                      std::pair(std::weak_ptr(exchange), Clock::now() + seconds(limit_s > 0 ? limit_s : kAnswerBy)));
    }
    exchange->on_answer([self = weak_from_this(), id] {
        const auto service = self.lock();
        if (!service) return;
        std::lock_guard lock(service->mutex_);
        service->open_.erase(id);
    });
}

std::size_t Service::waiting() const {
    std::lock_guard lock(mutex_);
    return waiters_.size();
}

void Service::tick() {
    auto next_sweep = Clock::now();
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        auto now = Clock::now(), wake = now + std::chrono::seconds(1);
        std::vector<std::pair<std::shared_ptr<Waiter>, bool>> due;
        for (auto at = waiters_.begin(); at != waiters_.end();) {
            const auto& waiter = at->second;
            if (waiter->done || waiter->exchange->answered()) {
                at = waiters_.erase(at);
                continue;
            }
            if (!waiter->busy && (waiter->woken || now >= waiter->next || now >= waiter->until)) {
                waiter->busy = true;
                waiter->woken = false;
                waiter->next = now + seconds(waiter->period_s);
                due.emplace_back(waiter, now >= waiter->until);
            }
            if (!waiter->busy) wake = std::min({wake, waiter->next, waiter->until});
            ++at;
        }
        std::vector<ExchangePtr> late;
        if (now >= next_sweep) {
            next_sweep = now + std::chrono::seconds(1);
            for (auto at = open_.begin(); at != open_.end();) {
                const ExchangePtr exchange = at->second.first.lock();
                if (exchange && now < at->second.second) {
                    ++at;
                    continue;
                }
                if (exchange) late.push_back(exchange);
                at = open_.erase(at);
            }
        }
        lock.unlock();
        for (const auto& exchange : late)
            exchange->fail(Error(ErrorKind::timed_out, "there was no answer in time"), 504);
        late.clear();
        for (auto& [waiter, last] : due) {
            const auto tell = [this, w = waiter](bool done) {
                {
                    std::lock_guard again(mutex_);
                    w->busy = false;
                    w->done = done;
                }
                changed_.notify_one();
            };
            if (!pool_.post([w = waiter, last = last, tell] { w->look(last, tell); })) tell(false);
        }
        due.clear();
        lock.lock();
        const bool any = std::any_of(waiters_.begin(), waiters_.end(),
                                     [](const auto& each) { return each.second->woken && !each.second->busy; });
        if (!stopping_ && !any) changed_.wait_until(lock, wake);
    }
}

bool Service::may_try_token(const std::string& peer) {
    std::lock_guard lock(mutex_);
    const auto found = tries_.find(peer);
    if (found == tries_.end()) return true;
    if (Clock::now() - found->second.since > kTokenWindow) {
        tries_.erase(found);
        return true;
    }
    return found->second.wrong < kMostWrongTokens;
}

void Service::wrong_token(const std::string& peer) {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (tries_.size() >= kMostPeers)
        std::erase_if(tries_, [&](const auto& e) { return now - e.second.since > kTokenWindow; });
    if (tries_.size() >= kMostPeers) tries_.clear();
    Tries& tries = tries_[peer];
    if (tries.wrong == 0) tries.since = now;
    ++tries.wrong;
}

void Service::with_scene(const ExchangePtr& exchange, std::uint64_t at_least_seq,
                         const std::function<void(ScenePtr)>& then) {
    {
        std::unique_lock lock(mutex_);
        if (scene_ && scene_->state.seq >= at_least_seq && Clock::now() - scene_at_ < kSceneAge) {
            const ScenePtr scene = scene_;
            lock.unlock();
            return then(scene);
        }
    }
    ask<ScenePtr>(
        exchange,
        [this](const EngineView& view) -> Result<ScenePtr> {
            ScenePtr scene = make_scene(view);
            std::lock_guard lock(mutex_);
            scene_ = scene;
            scene_at_ = Clock::now();
            return scene;
        },
        then);
}

Streams::Streams(Engine& engine, std::size_t most) : engine_(engine), most_(most) {
    thread_ = masked_thread("stoker-streams", [this] { serve(); });
}
Streams::~Streams() {
    stop();
}

bool Streams::full() const {
    std::lock_guard lock(mutex_);
    return stopping_ || streams_.size() >= most_;
}
std::size_t Streams::size() const {
    std::lock_guard lock(mutex_);
    return streams_.size();
}

bool Streams::add(std::shared_ptr<HttpStream> stream, std::uint64_t after, RunId run) {
    auto one = std::make_shared<One>();
    one->stream = std::move(stream);
    one->after = after;
    one->run = run;
    one->last = Clock::now();
    {
        std::lock_guard lock(mutex_);
        if (stopping_ || streams_.size() >= most_) return false;
        streams_.push_back(std::move(one));
        fresh_ = true;
    }
    changed_.notify_one();
    return true;
}

void Streams::wake() {
    {
        std::lock_guard lock(mutex_);
        if (streams_.empty()) return;
        fresh_ = true;
    }
    changed_.notify_one();
}

void Streams::stop() {
    {
        std::lock_guard lock(mutex_);
        if (stopping_) return;
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    for (const auto& one : streams_) one->stream->close();
    streams_.clear();
}

void Streams::serve() {
    constexpr std::size_t kBatch = 500;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (!fresh_) changed_.wait_for(lock, std::chrono::seconds(1));
        if (stopping_) return;
        const bool fresh = std::exchange(fresh_, false);
        const auto all = streams_;
        lock.unlock();
        const auto now = Clock::now();
        if (fresh && !all.empty()) {
            std::uint64_t from = UINT64_MAX;
            for (const auto& one : all) from = std::min(from, one->after);
            auto events = std::make_shared<std::vector<Event>>();
            auto ready = std::make_shared<std::promise<Status>>();
            auto future = ready->get_future();
            const Status asked = engine_.read_journal([from, events, ready](const EngineView& view) {
                ready->set_value(read_events(view, from, kBatch, {}, *events));
            });
            bool read = asked.ok();
            while (read && future.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
                lock.lock();
                if (stopping_) return;
                lock.unlock();
            }
            read = read && [&] {
                try {
                    return future.get().ok();
                } catch (const std::future_error&) {  // the engine stopped and dropped it
                    return false;
                }
            }();
            if (read) {
                std::vector<std::string> rendered(events->size());  // once for all who watch
                for (const auto& one : all) {
                    std::string text;
                    const std::string object = one->run ? "run/" + one->run.text() : "";
                    for (std::size_t i = 0; i < events->size(); ++i) {
                        const Event& event = (*events)[i];
                        if (event.seq <= one->after) continue;
                        one->after = event.seq;
                        if (one->run && event.object != object) continue;
                        if (rendered[i].empty()) rendered[i] = as_server_sent(event);
                        text += rendered[i];
                    }
                    if (text.empty()) continue;
                    one->stream->write(std::move(text));
                    one->last = now;
                }
                if (events->size() == kBatch) {
                    lock.lock();
                    fresh_ = true;
                    lock.unlock();
                }
            }
        }
        for (const auto& one : all)
            if (now - one->last >= kComment) {
                one->stream->write(": alive\n\n");
                one->last = now;
            }
        lock.lock();
        std::erase_if(streams_, [](const auto& one) { return !one->stream->open(); });
    }
}

}  // namespace stoker::api
