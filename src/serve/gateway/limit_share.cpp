#include "serve/gateway/limit_share.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/worker.h"

namespace stoker::gateway {
namespace {

constexpr std::int64_t kPatienceNs = 3'000'000'000;  // of one request
constexpr double kCallS = 1;
constexpr auto kTellEvery = std::chrono::milliseconds(200);  // where nobody waits for it
constexpr auto kAgainAfter = std::chrono::milliseconds(50);
constexpr std::int64_t kKeepEveryNs = 1'000'000'000;
constexpr std::size_t kMostAsks = 512;  // of one message
constexpr ReadLimits kMessageLimits{};

std::int64_t share_now_ns() {
    return monotonic_clock_us() * 1000;
}

}  // namespace

LimitShare::LimitShare(LimitBook& book, LimitShareOptions options)
    : book_(book), options_(std::move(options)), process_(random_hex(8)) {}

Result<std::unique_ptr<LimitShare>> LimitShare::make(LimitBook& book, LimitShareOptions options) {
    auto share = std::unique_ptr<LimitShare>(new LimitShare(book, std::move(options)));
    if (share->options_.home.empty()) {
        share->home_ = std::make_unique<LimitHome>(book, share_now_ns());
        share->restore_home();
        return share;
    }
    TRY(share->client_,
        HttpClient::make({.url = share->options_.home, .ca_pem = share->options_.ca_pem, .connect_timeout_s = kCallS}));
    return share;
}

// Rates go on where they may have stood when the last process ended, which its record knows to a second.
void LimitShare::restore_home() {
    const auto text = read_file(options_.record, kMessageLimits.max_bytes);
    if (!text) return;
    const std::int64_t now_ns = share_now_ns();
    auto record = codec::decode<HomeRecord>(*text, options_.record, kMessageLimits);
    // What cannot be read says nothing: as if all were used up now.
    if (!record) return book_.begin_used_up(now_ns);
    const std::int64_t ago_ns = std::max<std::int64_t>(0, wall_clock_us() - record->at_us) * 1000;
    book_.begin_used_up(now_ns - std::max<std::int64_t>(0, ago_ns - kKeepEveryNs));
    if (record->at_us >= options_.account_from_unix_us) home_->restore(*record);
}

void LimitShare::keep_record(std::int64_t now_ns) {
    if (options_.record.empty() || now_ns - kept_ns_ < kKeepEveryNs / 2) return;
    kept_ns_ = now_ns;
    HomeRecord record = home_->record();
    record.at_us = wall_clock_us();
    // One that cannot be written is written anew: only a home that starts again misses it.
    (void)write_file_atomic(options_.record, codec::encode(record));
}

LimitShare::~LimitShare() {
    stop();
}

void LimitShare::start() {
    thread_ = masked_thread("limits", [this] { run(); });
}

void LimitShare::stop() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool LimitShare::asks() const {
    return !home_ || home_->settling(share_now_ns());
}

void LimitShare::know(std::uint64_t scope) {
    known_.insert(scope);
}

void LimitShare::ask(LimitAsk ask, Told told) {
    {
        const std::lock_guard guard(mutex_);
        ++figures_.asked;
        waiting_.push_back({std::move(ask), std::move(told), share_now_ns() + kPatienceNs});
    }
    wake_.notify_all();
}

void LimitShare::undo(const LimitAsk& ask) {
    for (const ScopeWant& want : ask.wants) {
        book_.take_back(want.scope.number, home_ ? want.limits() : KeyLimits{}, want.tokens, want.picousd);
        changed(want.scope.number, want.limits(), want.tokens);
    }
}

void LimitShare::changed(std::uint64_t scope, const KeyLimits& limits, std::int64_t unused_tokens) {
    if (home_) return;
    const std::lock_guard guard(mutex_);
    changed_.insert(scope);
    known_.insert(scope);
    if (unused_tokens != 0 && !limits.tokens.none())
        refunds_.push_back({ScopeId{scope}, limits.tokens.limit, limits.tokens.burst, unused_tokens});
}

std::string LimitShare::answer(std::string_view text) {
    if (!home_) return "";
    const auto message = codec::decode<LimitMessage>(text, "message", kMessageLimits);
    return message ? codec::encode(home_->answer(*message, share_now_ns())) : "";
}

bool LimitShare::is_secret(std::string_view secret) const {
    return secret.size() == options_.secret.size() &&
           CRYPTO_memcmp(secret.data(), options_.secret.data(), secret.size()) == 0;
}

void LimitShare::begin_period() {
    if (home_) return home_->begin_period();
    const std::lock_guard guard(mutex_);
    whole_ = true;
}

LimitShare::Figures LimitShare::figures() const {
    const std::lock_guard guard(mutex_);
    Figures figures = figures_;
    if (home_) figures.gateways = home_->heard();
    return figures;
}

void LimitShare::run() {
    bool again = false;
    while (true) {
        {
            std::unique_lock lock(mutex_);
            const auto woken = [this] { return stopping_ || !waiting_.empty(); };
            if (again)
                wake_.wait_for(lock, kAgainAfter, [this] { return stopping_; });
            else
                wake_.wait_for(lock, kTellEvery, woken);
            if (stopping_) break;
        }
        const std::int64_t now_ns = share_now_ns();
        if (home_) {
            home_->look(now_ns);
            keep_record(now_ns);
            decide_here(now_ns);
            again = home_->settling(now_ns);
        } else {
            again = !tell_home();
        }
        expire(share_now_ns());
    }
    if (!home_) tell_home();
    expire(INT64_MAX);
}

void LimitShare::decide_here(std::int64_t now_ns) {
    if (home_->settling(now_ns)) return;
    std::deque<Waiting> all;
    {
        const std::lock_guard guard(mutex_);
        all.swap(waiting_);
    }
    for (Waiting& each : all) each.told(admit_all(book_, each.ask, now_ns));
}

LimitMessage LimitShare::compose() {
    const std::lock_guard guard(mutex_);
    LimitMessage message{.process = process_, .gateway = options_.gateway, .sequence = ++sequence_, .whole = whole_};
    while (!stopping_ && !waiting_.empty() && asked_.size() < kMostAsks) {
        message.asks.push_back(waiting_.front().ask);
        asked_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    // Sent once: of two that tell the same, one would give back what nobody had.
    message.refunds = std::exchange(refunds_, {});
    for (const std::uint64_t scope : whole_ ? known_ : changed_) {
        const LimitBook::Use use = book_.use(scope);
        message.uses.push_back({ScopeId{scope}, use.concurrent, use.spent, use.reserved});
    }
    ++figures_.messages;
    return message;
}

bool LimitShare::tell_home() {
    const LimitMessage message = compose();
    HttpCall call{.method = "POST", .target = std::string(kLimitsPath), .timeout_s = kCallS};
    call.headers.add("Authorization", "Bearer " + options_.secret);
    call.headers.add("Content-Type", "application/json");
    call.body = codec::encode(message);
    const auto response = client_->call(call);
    Result<LimitReply> reply = response && response->status == 200
                                   ? codec::decode<LimitReply>(response->body, "answer", kMessageLimits)
                                   : Result<LimitReply>(Error(ErrorKind::unavailable, "no answer"));
    const bool decided = reply && reply->known && !reply->settling && reply->verdicts.size() == message.asks.size();
    {
        const std::lock_guard guard(mutex_);
        figures_.reached = static_cast<bool>(reply);
        if (reply && reply->known) {
            if (message.whole) whole_ = false;
            for (const ScopeUse& use : message.uses) {
                const LimitBook::Use now = book_.use(use.scope.number);
                if (now.concurrent == use.concurrent && now.spent == use.spent && now.reserved == use.reserved)
                    changed_.erase(use.scope.number);
            }
        } else {
            whole_ = true;
        }
        if (!decided) {
            waiting_.insert(waiting_.begin(), std::make_move_iterator(asked_.begin()),
                            std::make_move_iterator(asked_.end()));
            asked_.clear();
        }
    }
    if (decided) take(*reply);
    return decided;
}

void LimitShare::take(const LimitReply& reply) {
    for (const ScopeUse& use : reply.elsewhere)
        book_.set_elsewhere(use.scope.number, {use.concurrent, use.spent, use.reserved});
    std::vector<Waiting> asked;
    {
        const std::lock_guard guard(mutex_);
        asked.swap(asked_);
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const AdmitDecision decision = decision_of(reply.verdicts[i]);
        // In the book before the next message is written, which would otherwise say that it never began.
        if (decision.admitted()) {
            for (const ScopeWant& want : asked[i].ask.wants) {
                book_.admit(want.scope.number, {}, want.tokens, want.picousd, share_now_ns());
                changed(want.scope.number, {}, 0);
            }
        }
        asked[i].told(decision);
    }
}

void LimitShare::expire(std::int64_t now_ns) {
    std::vector<Waiting> late;
    {
        const std::lock_guard guard(mutex_);
        for (auto each = waiting_.begin(); each != waiting_.end();) {
            if (each->until_ns > now_ns) {
                ++each;
                continue;
            }
            late.push_back(std::move(*each));
            each = waiting_.erase(each);
        }
        figures_.unanswered += late.size();
    }
    for (Waiting& each : late) each.told(std::nullopt);
}

}  // namespace stoker::gateway
