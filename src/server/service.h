// What the handlers of the API share: the engine, a pool for what takes time, and the waiting of long polls.
//
// A handler runs on the pool. What it wants of the state it copies under the engine's lock for readers (ask), and goes
// on without it. What it wants of the journal it copies on the core thread (ask_journal).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "govern/price_book.h"
#include "io/worker.h"
#include "server/api.h"
#include "server/exchange.h"

namespace stoker::api {

class Streams;

// The part of the state that scheduling looks at, copied so that questions are answered beside the core thread.
struct Scene {
    State state;
    std::int64_t now_us = 0;
    SchedulerOptions scheduler;
    bool recovering = false;
};
using ScenePtr = std::shared_ptr<const Scene>;
ScenePtr make_scene(const EngineView& view);

class Service : public std::enable_shared_from_this<Service> {
public:
    Service(Engine& engine, ApiOptions options, PriceBook prices);
    ~Service();
    void stop();

    Engine& engine() { return engine_; }
    const ApiOptions& options() const { return options_; }
    // May be replaced meanwhile; whoever counts goes on with the one he has.
    std::shared_ptr<const PriceBook> prices() const {
        std::lock_guard lock(mutex_);
        return prices_;
    }
    void set_prices(PriceBook prices) {
        auto fresh = std::make_shared<const PriceBook>(std::move(prices));
        std::lock_guard lock(mutex_);
        prices_ = std::move(fresh);
    }
    Streams& streams() { return *streams_; }

    // Copies, then goes on with it at once. Errors are answered.
    template <class T>
    void ask(const ExchangePtr& exchange, const std::function<Result<T>(const EngineView&)>& copy,
             const std::function<void(T)>& then) {
        std::optional<Result<T>> got;
        const Status status = engine_.read([&](const EngineView& view) { got = copy(view); });
        if (!status) return exchange->fail(status.error());
        if (!*got) return exchange->fail(got->error());
        then(std::move(**got));
    }
    // Copies on the core thread, then goes on with it on the pool.
    template <class T>
    void ask_journal(const ExchangePtr& exchange, std::function<Result<T>(const EngineView&)> copy,
                     std::function<void(T)> then) {
        const Status status = engine_.read_journal([this, self = shared_from_this(), exchange, copy = std::move(copy),
                                                    then = std::move(then)](const EngineView& view) {
            auto got = std::make_shared<Result<T>>(copy(view));
            if (!*got) return exchange->fail(got->error());
            work(exchange, [got, then] { then(std::move(**got)); });
        });
        if (!status) exchange->fail(status.error());
    }
    // `answer` on the core thread: short.
    void post(const ExchangePtr& exchange, Command command, std::function<void(Result<Ack>)> answer) {
        post_as(exchange, exchange->actor, std::move(command), std::move(answer));
    }
    // As somebody other than the request came from: who has just shown a password.
    void post_as(const ExchangePtr& exchange, const Actor& actor, Command command,
                 std::function<void(Result<Ack>)> answer);
    // On the pool, or 503.
    void work(const ExchangePtr& exchange, std::function<void()> job);
    // The same for what may take seconds.
    void work_long(const ExchangePtr& exchange, std::function<void()> job);

    // Calls `look` on the pool every `period_s`, and at once after a record about `run`, until it returns true or the
    // time is up; the last call says so. Bounded: false and a 503 when too many wait.
    void wait(const ExchangePtr& exchange, RunId run, double seconds, double period_s,
              std::function<void(bool last, std::function<void(bool done)> tell)> look);

    // Answered 504 when nobody answered by then, whatever happened to it.
    void watch_over(const ExchangePtr& exchange, double seconds);

    // False: this peer sent too many wrong tokens lately.
    bool may_try_token(const std::string& peer);
    void wrong_token(const std::string& peer);

    // Some 200 ms old at most, and never older than `at_least_seq`.
    void with_scene(const ExchangePtr& exchange, std::uint64_t at_least_seq, const std::function<void(ScenePtr)>& then);

    std::size_t waiting() const;

private:
    struct Waiter {
        ExchangePtr exchange;
        RunId run;
        std::chrono::steady_clock::time_point until, next;
        double period_s = 1;
        bool woken = false, busy = false, done = false;
        std::function<void(bool, std::function<void(bool)>)> look;
    };
    void tick();

    Engine& engine_;
    ApiOptions options_;
    WorkerPool pool_{{.name = "stoker-api", .threads = 4, .most_waiting = 8192}};
    WorkerPool long_pool_{{.name = "stoker-api-long", .threads = 4, .most_waiting = 1024}};
    std::unique_ptr<Streams> streams_;

    mutable std::mutex mutex_;  // guards what follows
    std::shared_ptr<const PriceBook> prices_;
    std::condition_variable changed_;
    bool stopping_ = false;
    std::uint64_t next_id_ = 0;
    std::map<std::uint64_t, std::shared_ptr<Waiter>> waiters_;
    std::unordered_map<std::uint64_t, std::pair<std::weak_ptr<Exchange>, std::chrono::steady_clock::time_point>> open_;
    struct Tries {
        int wrong = 0;
        std::chrono::steady_clock::time_point since;
    };
    std::map<std::string, Tries> tries_;
    ScenePtr scene_;
    std::chrono::steady_clock::time_point scene_at_;

    std::shared_ptr<void> watch_;
    std::thread ticker_;
};

// Live streams of events. Each has a place in the journal; one reader serves them all.
class Streams {
public:
    Streams(Engine& engine, std::size_t most);
    ~Streams();
    // False: too many.
    bool add(std::shared_ptr<HttpStream> stream, std::uint64_t after, RunId run);
    bool full() const;
    std::size_t size() const;
    void wake();
    void stop();

private:
    struct One {
        std::shared_ptr<HttpStream> stream;
        std::uint64_t after = 0;
        RunId run;
        std::chrono::steady_clock::time_point last;
    };
    void serve();
    Engine& engine_;
    std::size_t most_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool stopping_ = false, fresh_ = false;
    std::vector<std::shared_ptr<One>> streams_;
    std::thread thread_;
};

}  // namespace stoker::api
