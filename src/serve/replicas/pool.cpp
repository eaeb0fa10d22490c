#include "serve/replicas/pool.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/enum_words.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/random_bytes.h"
#include "io/worker.h"
#include "serve/replicas/server_process.h"

namespace stoker {
namespace {

constexpr double kForgiveRestartsS = 60;
constexpr double kScaleEveryS = 1, kMetricsEveryS = 1, kStartProbeS = 0.1;

// One place for a replica: its processes come one after the other, each with an id of its own.
struct Slot {
    int number = 0;
    std::optional<ServerProcess> process;
    RouteReplica view{.state = ReplicaState::gone};
    BreakerState breaker;
    AgedSignals signals;
    std::string url, log;
    double started_s = 0, ready_s = -1, next_probe_s = 0, next_metrics_s = 0, restart_at_s = 0;
    double drained_by_s = 0, killed_by_s = 0;  // draining: when TERM is due at the latest, and KILL
    int failed_probes = 0, deaths = 0;
    bool unready = false;  // its probe fails
    bool told_to_end = false;
    std::uint64_t taken = 0;
};

class Pool final : public ReplicaPool, public std::enable_shared_from_this<Pool> {
public:
    explicit Pool(PoolOptions options)
        : options_(std::move(options)), cold_start_(options_.cold_start_s), random_(random_u64()) {
        mark_ = "STOKER_REPLICAS=" + options_.folder + ":" + options_.name;
        level_ = std::clamp(options_.level_at_first, options_.scale.least, options_.scale.most);
    }

    void begin() {
        end_marked_processes(mark_);
        thread_ = masked_thread("replicas", [this] { watch(); });
    }

    void arrived(double prompt_tokens, double output_tokens) override {
        const std::lock_guard lock(mutex_);
        const double now_s = monotonic_seconds();
        meter_.arrived(now_s, prompt_tokens, output_tokens);
        last_active_s_ = now_s;
        if (level_ == 0) wake_.notify_one();
    }

    void waiting(std::int64_t requests, double prompt_tokens) override {
        const std::lock_guard lock(mutex_);
        waiting_ = requests;
        waiting_tokens_ = prompt_tokens;
        if (requests > 0 && level_ == 0) wake_.notify_one();
    }

    std::unique_ptr<Use> take(const RouteQuery& query, RouteDecision* why) override;

    void set_level(int replicas) override {
        const std::lock_guard lock(mutex_);
        level_ = std::clamp(replicas, options_.scale.least, options_.scale.most);
        wake_.notify_one();
    }

    PoolPicture picture() const override {
        const std::lock_guard lock(mutex_);
        const double now_s = monotonic_seconds();
        PoolPicture picture{.level = level_,
                            .last_decision = last_decision_,
                            .cold_start_s = cold_start_.expected_s(),
                            .start_budget_s = cold_start_.budget_s(),
                            .starts = starts_,
                            .exits = exits_,
                            .last_failure = last_failure_};
        for (const auto& slot : slots_)
            picture.replicas.push_back({.id = slot->view.id,
                                        .slot = slot->number,
                                        .url = slot->url,
                                        .pid = slot->process ? slot->process->pid() : 0,
                                        .state = slot->view.state,
                                        .weight = weight_of(*slot, now_s),
                                        .age_s = now_s - slot->started_s,
                                        .start_s = slot->ready_s >= 0 ? slot->ready_s - slot->started_s : 0,
                                        .in_flight = slot->view.outstanding,
                                        .taken = slot->taken,
                                        .breaker = slot->breaker.phase,
                                        .signals = slot->signals.at(now_s)});
        return picture;
    }

    void stop(double drain_s) override {
        {
            const std::lock_guard lock(mutex_);
            if (!stopping_) stop_by_s_ = monotonic_seconds() + drain_s;
            stopping_ = true;
            wake_.notify_one();
        }
        if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
    }

private:
    friend class PoolUse;

    void tell(std::string_view event, const Slot& slot, std::string_view words) {
        if (options_.told) options_.told(event, slot.view.id, words);
    }

    double weight_of(const Slot& slot, double now_s) const {
        return slot.ready_s < 0 ? 0 : slow_start_weight(now_s - slot.ready_s, slot.taken);
    }

    // The thread: what is due, then sleep until something is or somebody calls.
    void watch() {
        std::unique_lock lock(mutex_);
        double next_scale_s = 0;
        while (true) {
            const double now_s = monotonic_seconds();
            if (stopping_) {
                level_ = 0;
                const bool over = now_s >= stop_by_s_;
                for (auto& slot : slots_) drain(*slot, now_s, over ? now_s : stop_by_s_);
                if (slots_.empty()) return;
            } else if (options_.scales_itself && (now_s >= next_scale_s || (level_ == 0 && waiting_ > 0))) {
                scale(now_s);
                next_scale_s = now_s + kScaleEveryS;
            }
            if (!stopping_) reach(now_s);
            for (auto& slot : slots_) look_at(*slot, lock);
            std::erase_if(slots_, [](const auto& slot) {
                return slot->view.state == ReplicaState::draining && !slot->process && slot->view.outstanding == 0;
            });
            wake_.wait_for(lock, std::chrono::milliseconds(50));
        }
    }

    void scale(double now_s) {
        const ScalePolicy& policy = options_.scale;
        ServiceLoad load{.burst = meter_.rate(now_s, policy.burst_s),
                         .fast = meter_.rate(now_s, policy.fast_s),
                         .slow = meter_.rate(now_s, policy.slow_s),
                         .waiting_prompt_tokens = waiting_tokens_,
                         .queued = waiting_,
                         .idle_s = now_s - last_active_s_,
                         .cold_start_s = cold_start_.expected_s(),
                         .replicas = level_};
        double prefill = 0, decode = 0;
        int live = 0;
        for (const auto& slot : slots_) {
            load.in_flight += slot->view.outstanding;
            load.waiting_prompt_tokens += slot->view.waiting_prompt_tokens;
            load.starting += slot->view.state == ReplicaState::starting ? 1 : 0;
            prefill += slot->view.prefill_tokens_per_second;
            decode += slot->view.decode_tokens_per_second;
            ++live;
        }
        load.prefill_tokens_per_s = live > 0 ? prefill / live : options_.prefill_tokens_per_s;
        load.decode_tokens_per_s = live > 0 ? decode / live : options_.decode_tokens_per_s;
        last_decision_ = decide_scale(load, policy, memory_, now_s);
        level_ = last_decision_.replicas;
    }

    // Starts or drains until as many as wanted are there; what drains does not count.
    void reach(double now_s) {
        int live = 0;
        for (const auto& slot : slots_) live += slot->view.state == ReplicaState::draining ? 0 : 1;
        for (; live < level_; ++live) {
            auto slot = std::make_unique<Slot>();
            while (std::any_of(slots_.begin(), slots_.end(), [&](const auto& s) { return s->number == slot->number; }))
                ++slot->number;
            slots_.push_back(std::move(slot));
        }
        for (; live > level_; --live) {
            Slot* least = nullptr;  // one that is not ready, else the one with least to finish
            auto rank = [](const Slot& s) { return std::pair(s.ready_s >= 0 ? 1 : 0, s.view.outstanding); };
            for (const auto& slot : slots_)
                if (slot->view.state != ReplicaState::draining && (least == nullptr || rank(*slot) < rank(*least)))
                    least = slot.get();
            drain(*least, now_s, now_s + options_.drain_limit_s);
            tell("draining", *least, fmt::format("{} in flight", least->view.outstanding));
        }
    }

    void drain(Slot& slot, double now_s, double by_s) {
        if (slot.view.state != ReplicaState::draining) {
            slot.drained_by_s = by_s;
            if (!slot.process) slot.view.outstanding = 0;
        }
        slot.drained_by_s = std::min(slot.drained_by_s, by_s);
        slot.view.state = ReplicaState::draining;
        if (slot.told_to_end || !slot.process) return;
        if (slot.view.outstanding > 0 && now_s < slot.drained_by_s) return;
        slot.process->signal(SIGTERM);
        slot.told_to_end = true;
        slot.killed_by_s = now_s + options_.kill_after_s;
    }

    void look_at(Slot& slot, std::unique_lock<std::mutex>& lock) {
        const double now_s = monotonic_seconds();
        if (slot.process)
            if (const auto how = slot.process->ended()) return has_ended(slot, *how, now_s);
        if (slot.view.state == ReplicaState::draining) {
            drain(slot, now_s, slot.drained_by_s);
            if (slot.told_to_end && slot.process && now_s >= slot.killed_by_s) slot.process->signal(SIGKILL);
            return;
        }
        if (!slot.process) {
            if (now_s >= slot.restart_at_s) start(slot, now_s);
            return;
        }
        if (slot.ready_s < 0 && now_s - slot.started_s > cold_start_.budget_s()) {
            tell("start_failed", slot, fmt::format("not ready within {:.0f} s", cold_start_.budget_s()));
            slot.process->signal(SIGKILL);
            return;
        }
        if (now_s >= slot.next_probe_s) probe(slot, lock);
        if (slot.ready_s >= 0 && !options_.metrics_path.empty() && now_s >= slot.next_metrics_s)
            read_metrics(slot, lock);
        refresh(slot, monotonic_seconds());
    }

    void start(Slot& slot, double now_s) {
        slot.log = fmt::format("{}/replica-{}.log", options_.folder, slot.number);
        auto process = ServerProcess::start({options_.command, options_.environment, mark_, slot.log});
        slot.view = {.id = ++last_id_,
                     .state = ReplicaState::starting,
                     .prefill_tokens_per_second = options_.prefill_tokens_per_s,
                     .decode_tokens_per_second = options_.decode_tokens_per_s,
                     .max_outstanding = options_.most_in_flight};
        if (!process) return fails(slot, process.error().message(), now_s);
        slot.process.emplace(std::move(*process));
        slot.breaker = {};
        slot.signals.restarted();
        slot.url = fmt::format("http://127.0.0.1:{}", slot.process->port());
        slot.started_s = now_s;
        slot.ready_s = -1;
        slot.next_probe_s = now_s + kStartProbeS;
        slot.failed_probes = 0;
        slot.unready = slot.told_to_end = false;
        slot.taken = 0;
        ++starts_;
        tell("started", slot, slot.url);
    }

    void has_ended(Slot& slot, const std::string& how, double now_s) {
        slot.process.reset();
        slot.view.outstanding = 0;
        slot.view.waiting_prompt_tokens = slot.view.outstanding_decode_tokens = 0;
        if (slot.view.state == ReplicaState::draining) return tell("gone", slot, how);
        ++exits_;
        fails(slot,
              fmt::format("{} ended with {} after {:.1f} s: {}", slot.url, how, now_s - slot.started_s,
                          printable(trim(end_of_log(slot.log, 400)), 400)),
              now_s);
    }

    void fails(Slot& slot, const std::string& why, double now_s) {
        if (slot.ready_s >= 0 && now_s - slot.ready_s >= kForgiveRestartsS) slot.deaths = 0;
        const double pause_s =
            std::min(options_.restart_after_s * std::exp2(std::min(slot.deaths, 10)), options_.most_restart_s);
        ++slot.deaths;
        slot.restart_at_s = now_s + pause_s;
        slot.ready_s = -1;
        last_failure_ = why;
        tell("exited", slot, why);
        slot.view.state = ReplicaState::starting;
        slot.view.id = ++last_id_;  // nobody's cache
    }

    // Without the lock: a server may take its time. The slot stays, since only this thread takes slots away.
    Result<HttpResponse> ask(const std::string& url, const std::string& path, std::unique_lock<std::mutex>& lock) {
        lock.unlock();
        auto answer = [&]() -> Result<HttpResponse> {
            TRY(const auto client, HttpClient::make({.url = url, .connect_timeout_s = options_.probe_timeout_s}));
            return client->call({.target = path, .timeout_s = options_.probe_timeout_s, .max_body_bytes = 8u << 20});
        }();
        lock.lock();
        return answer;
    }

    void probe(Slot& slot, std::unique_lock<std::mutex>& lock) {
        const bool starts = slot.ready_s < 0;
        const auto health = ask(slot.url, options_.health_path, lock);
        bool well = health && health->status == 200 &&
                    (options_.ready_word.empty() || health->body.find(options_.ready_word) != std::string::npos);
        std::string wrong;
        if (well && starts && !options_.model.empty()) {
            const auto models = ask(slot.url, "/v1/models", lock);
            well = models && models->status == 200;
            if (well && models->body.find('"' + options_.model + '"') == std::string::npos)
                wrong = fmt::format("{} serves another model than {}", slot.url, options_.model);
        }
        const double now_s = monotonic_seconds();
        slot.next_probe_s = now_s + (starts ? kStartProbeS : options_.probe_every_s * (0.8 + 0.4 * random_.uniform()));
        if (!wrong.empty()) {  // a stranger on its port
            last_failure_ = wrong;
            if (slot.process) slot.process->signal(SIGKILL);
            return;
        }
        if (!well) {
            if (!starts && ++slot.failed_probes >= 2 && !slot.unready) {
                slot.unready = true;
                tell("unready", slot, health ? fmt::format("HTTP {}", health->status) : health.error().message());
            }
            return;
        }
        slot.failed_probes = 0;
        if (slot.unready) tell("ready", slot, "its probe is answered again");
        slot.unready = false;
        if (!starts) return;
        slot.ready_s = now_s;
        cold_start_.started(now_s - slot.started_s);
        tell("ready", slot, fmt::format("after {:.2f} s", now_s - slot.started_s));
    }

    void read_metrics(Slot& slot, std::unique_lock<std::mutex>& lock) {
        const auto answer = ask(slot.url, options_.metrics_path, lock);
        const double now_s = monotonic_seconds();
        slot.next_metrics_s = now_s + kMetricsEveryS;
        if (!answer || answer->status != 200) return;
        const auto reading = read_engine_metrics(answer->body, options_.model);
        if (!reading || !reading->engine) return;
        slot.signals.read(reading->signals, now_s);
        const AgedSignals::Rates rates = slot.signals.rates(now_s);
        // A share of the way at a time: one second may have had one prompt only.
        auto follow = [](double& rate, std::optional<double> can, std::optional<double> did) {
            if (can) rate += 0.2 * (*can - rate);
            if (!can && did) rate = std::max(rate, *did);
        };
        follow(slot.view.prefill_tokens_per_second, rates.prompt_tokens_per_s, rates.seen_prompt_tokens_per_s);
        follow(slot.view.decode_tokens_per_second, rates.output_tokens_per_s, rates.seen_output_tokens_per_s);
    }

    void refresh(Slot& slot, double now_s) {
        if (slot.view.state == ReplicaState::draining || slot.ready_s < 0) return;
        slot.view.weight = weight_of(slot, now_s);
        slot.view.trial = is_trial_due(slot.breaker, now_s) && !slot.unready;
        slot.view.unreachable = slot.breaker.refused || slot.unready;
        const bool out = slot.unready || !takes_work(slot.breaker, now_s);
        slot.view.state = out                    ? ReplicaState::ejected
                          : slot.view.weight < 1 ? ReplicaState::slow_start
                                                 : ReplicaState::ready;
    }

    Slot* find(std::uint64_t id) {
        for (const auto& slot : slots_)
            if (slot->view.id == id) return slot.get();
        return nullptr;
    }

    const PoolOptions options_;
    std::string mark_;
    mutable std::mutex mutex_;  // guards all below
    std::condition_variable wake_;
    std::vector<std::unique_ptr<Slot>> slots_;
    LoadMeter meter_;
    ScaleMemory memory_;
    ColdStart cold_start_;
    SplitMix random_;
    ScaleDecision last_decision_;
    int level_ = 0;
    std::int64_t waiting_ = 0;
    double waiting_tokens_ = 0, last_active_s_ = monotonic_seconds(), stop_by_s_ = 0;
    std::uint64_t last_id_ = 0, starts_ = 0, exits_ = 0;
    std::string last_failure_;
    bool stopping_ = false;
    std::vector<RouteReplica> views_;
    std::thread thread_;

    static std::uint64_t random_u64() { return std::strtoull(random_hex(8).c_str(), nullptr, 16); }
};

// Keeps the pool alive: a request may end after its gateway has let go of the pool.
class PoolUse final : public ReplicaPool::Use {
public:
    PoolUse(std::shared_ptr<Pool> pool, std::uint64_t id, std::string url, RouteDecision decision)
        : pool_(std::move(pool)), id_(id), url_(std::move(url)), decision_(decision) {}
    ~PoolUse() override { ended(ReplicaOutcome::client_left, 0); }

    std::uint64_t replica() const override { return id_; }
    const std::string& url() const override { return url_; }
    const RouteDecision& decision() const override { return decision_; }

    void first_token() override {
        const std::lock_guard lock(pool_->mutex_);
        prefilled();
    }

    void ended(ReplicaOutcome outcome, double retry_after_s) override {
        const std::lock_guard lock(pool_->mutex_);
        if (std::exchange(over_, true)) return;
        prefilled();
        const double now_s = monotonic_seconds();
        pool_->last_active_s_ = now_s;
        Slot* slot = pool_->find(id_);
        if (slot == nullptr) return;  // its process has ended meanwhile
        if (slot->view.outstanding > 0) --slot->view.outstanding;
        slot->view.outstanding_decode_tokens =
            std::max(0.0, slot->view.outstanding_decode_tokens - decision_.output_tokens);
        slot->breaker = after_outcome(slot->breaker, outcome, now_s, pool_->random_, retry_after_s);
        pool_->refresh(*slot, now_s);
    }

private:
    void prefilled() {
        if (std::exchange(first_, true)) return;
        if (Slot* slot = pool_->find(id_))
            slot->view.waiting_prompt_tokens =
                std::max(0.0, slot->view.waiting_prompt_tokens - decision_.prompt_tokens);
    }

    std::shared_ptr<Pool> pool_;
    std::uint64_t id_;
    std::string url_;
    RouteDecision decision_;
    bool first_ = false, over_ = false;
};

std::unique_ptr<ReplicaPool::Use> Pool::take(const RouteQuery& query, RouteDecision* why) {
    const std::lock_guard lock(mutex_);
    const double now_s = monotonic_seconds();
    views_.clear();
    for (const auto& slot : slots_) {
        refresh(*slot, now_s);
        views_.push_back(slot->view);
    }
    const RouteDecision decision = route({.replicas = views_}, query, random_);
    if (why != nullptr) *why = decision;
    if (!decision) return nullptr;
    Slot& slot = *slots_[static_cast<std::size_t>(decision.replica)];
    if (decision.reason == RouteReason::trial) slot.breaker = with_trial_sent(slot.breaker);
    slot.view.outstanding += 1;
    slot.view.waiting_prompt_tokens += decision.prompt_tokens;
    slot.view.outstanding_decode_tokens += decision.output_tokens;
    slot.taken += 1;
    return std::make_unique<PoolUse>(shared_from_this(), slot.view.id, slot.url, decision);
}

// What the owner holds: stops the pool when it goes, though requests may still hold the rest of it.
class PoolOwner final : public ReplicaPool {
public:
    explicit PoolOwner(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}
    ~PoolOwner() override { pool_->stop(0); }
    void arrived(double prompt_tokens, double output_tokens) override { pool_->arrived(prompt_tokens, output_tokens); }
    void waiting(std::int64_t requests, double prompt_tokens) override { pool_->waiting(requests, prompt_tokens); }
    std::unique_ptr<Use> take(const RouteQuery& query, RouteDecision* why) override { return pool_->take(query, why); }
    void set_level(int replicas) override { pool_->set_level(replicas); }
    PoolPicture picture() const override { return pool_->picture(); }
    void stop(double drain_s) override { pool_->stop(drain_s); }

private:
    std::shared_ptr<Pool> pool_;
};

}  // namespace

Result<std::unique_ptr<ReplicaPool>> ReplicaPool::start(PoolOptions options) {
    if (options.command.empty() || options.command.front().empty())
        return Error(ErrorKind::invalid, fmt::format("{} has no command to start a replica with", options.name));
    if (std::none_of(options.command.begin(), options.command.end(),
                     [](const std::string& w) { return w.find("{port}") != std::string::npos; }))
        return Error(ErrorKind::invalid, fmt::format("the command of {} says no port", options.name), {},
                     "write {port} where the program takes it: --port {port}");
    if (options.scale.least < 0 || options.scale.most < 1 || options.scale.least > options.scale.most)
        return Error(ErrorKind::invalid, fmt::format("{}: from {} to {} replicas is no range", options.name,
                                                     options.scale.least, options.scale.most));
    if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST)
        return Error(ErrorKind::unavailable, fmt::format("{}: {}", options.folder, std::strerror(errno)));
    auto pool = std::make_shared<Pool>(std::move(options));
    pool->begin();
    return std::unique_ptr<ReplicaPool>(std::make_unique<PoolOwner>(std::move(pool)));
}

}  // namespace stoker
