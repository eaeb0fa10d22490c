// The part of one gateway in limits that several share. The home decides its own requests in its book, as a gateway
// alone does; another one asks the home before a request begins, many requests in one message, one message under way at
// a time. Nothing is admitted on a guess: so no limit is exceeded, whoever is killed, and without the home nothing that
// has a limit begins.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/http/http_client.h"
#include "serve/gateway/limit_home.h"
#include "serve/gateway/limit_messages.h"

namespace stoker::gateway {

inline constexpr std::string_view kLimitsPath = "/stoker/limits";

struct LimitShareOptions {
    std::uint64_t gateway = 0;  // its number among them
    std::string home;           // URL; empty: this one is the home
    std::string secret, ca_pem;
    std::string record;                     // file of the home; empty: none is kept
    std::int64_t account_from_unix_us = 0;  // money that was spent before is of another period
};

class LimitShare {
public:
    // Nothing: the home did not answer in time.
    using Told = std::function<void(const std::optional<AdmitDecision>&)>;

    static Result<std::unique_ptr<LimitShare>> make(LimitBook& book, LimitShareOptions options);
    ~LimitShare();  // stop()
    LimitShare(const LimitShare&) = delete;
    LimitShare& operator=(const LimitShare&) = delete;

    bool home() const { return home_ != nullptr; }
    bool asks() const;               // requests wait for an answer, and are not decided at once
    void know(std::uint64_t scope);  // that was spent from before this process began
    void start();
    void stop();  // who waits is told nothing; the home is told the last of it

    // `told` is called once, on the thread of this. What was admitted counts in the book by then.
    void ask(LimitAsk ask, Told told);
    void undo(const LimitAsk& ask);  // it was admitted, and nobody was there any more
    // The book has changed; of `tokens` set aside these were not used (negative: more than that were).
    void changed(std::uint64_t scope, const KeyLimits& limits, std::int64_t unused_tokens);
    std::string answer(std::string_view message);  // of the home to another one; empty: it is none
    bool is_secret(std::string_view secret) const;
    void begin_period();

    struct Figures {
        std::uint64_t asked = 0, messages = 0, unanswered = 0;
        std::size_t gateways = 0;  // that the home hears of
        bool reached = true;       // the home, with the last message
    };
    Figures figures() const;

private:
    struct Waiting {
        LimitAsk ask;
        Told told;
        std::int64_t until_ns = 0;
    };
    LimitShare(LimitBook& book, LimitShareOptions options);
    void run();
    void decide_here(std::int64_t now_ns);
    bool tell_home();  // false: later again
    LimitMessage compose();
    void take(const LimitReply& reply);
    void expire(std::int64_t now_ns);
    void restore_home();
    void keep_record(std::int64_t now_ns);

    LimitBook& book_;
    const LimitShareOptions options_;
    const std::string process_;
    std::unique_ptr<LimitHome> home_;
    std::unique_ptr<HttpClient> client_;
    std::int64_t kept_ns_ = 0;
    std::thread thread_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable wake_;
    bool stopping_ = false, whole_ = true;
    std::deque<Waiting> waiting_;
    std::vector<Waiting> asked_;  // in the message under way
    std::vector<ScopeRefund> refunds_;
    std::set<std::uint64_t> changed_, known_;
    std::uint64_t sequence_ = 0;
    Figures figures_;
};

}  // namespace stoker::gateway
