// What each key may still do: requests, tokens and streams at once, and money. One decision admits or refuses, and the
// headers of the answer are its numbers, so that they cannot say something else. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "govern/limits/gcra.h"

namespace stoker {

struct KeyLimits {
    RateLimit requests, tokens;
    std::int64_t concurrent = 0;  // 0: no limit, as of the next
    std::uint64_t budget_picousd = 0;
    bool any() const { return !requests.none() || !tokens.none() || concurrent > 0 || budget_picousd > 0; }
};

// Tokens times this is pico-dollars: micro-dollars per million tokens.
struct TokenPrice {
    std::uint64_t in_picousd = 0, cached_in_picousd = 0, out_picousd = 0, request_picousd = 0;
    std::uint64_t image_picousd = 0;  // of one that was made
    std::uint64_t of(std::uint64_t in, std::uint64_t cached_in, std::uint64_t out) const {
        return (in - cached_in) * in_picousd + cached_in * cached_in_picousd + out * out_picousd + request_picousd;
    }
};

enum class LimitRefusal : std::uint8_t { none, requests, tokens, too_many_tokens, concurrent, budget };

struct AdmitDecision {
    LimitRefusal refusal = LimitRefusal::none;
    std::int64_t retry_after_s = 0;  // at least 1 where one is told
    RateLimit request_limit, token_limit;
    RateDecision requests, tokens;
    int refused_by = -1;          // of several scopes that were asked together: which; -1: not known
    bool money_is_spent = false;  // of a budget: what was charged leaves no room, whatever of the rest comes back
    bool admitted() const { return refusal == LimitRefusal::none; }
};

class LimitBook {
public:
    // What was charged before this process began.
    void set_spent(std::uint64_t key, std::uint64_t picousd);
    std::uint64_t spent(std::uint64_t key) const;
    void begin_period();  // nothing is spent yet; what is reserved stays so

    // All limits are looked at before anything is taken: a refusal changes nothing.
    AdmitDecision admit(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd,
                        std::int64_t now_ns);
    // More of the same request: tokens and money alone. False: it has reached its end.
    bool extend(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd,
                std::int64_t now_ns);
    void give_back(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd);
    // The end of what was admitted: the streams count one less, what was not used comes back.
    void settle(std::uint64_t key, const KeyLimits& limits, std::int64_t reserved_tokens, std::int64_t used_tokens,
                std::uint64_t reserved_picousd, std::uint64_t charged_picousd);
    // As if it had not been admitted: another limit refused it.
    void take_back(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens, std::uint64_t picousd);
    std::int64_t concurrent(std::uint64_t key) const;

    // Where several gateways share limits. What goes on and was spent here; what does so at the others, which counts
    // like our own; and what was admitted here for one of them, which from now on is told as part of that.
    struct Use {
        std::int64_t concurrent = 0;
        std::uint64_t spent = 0, reserved = 0;  // pico-dollars
    };
    Use use(std::uint64_t key) const;
    void set_elsewhere(std::uint64_t key, const Use& elsewhere);
    void hand_over(std::uint64_t key, std::uint64_t picousd);
    void refund_tokens(std::uint64_t key, const KeyLimits& limits, std::int64_t tokens);
    // What was admitted before this process began, nobody knows: every rate begins as if its burst had just been used.
    void begin_used_up(std::int64_t now_ns) { used_up_ns_ = now_ns; }

private:
    struct Scope {
        Gcra requests, tokens;
        std::int64_t concurrent = 0;
        std::uint64_t spent = 0, reserved = 0;  // pico-dollars
        Use elsewhere;
        bool rates_begun = false;
        std::uint64_t all_spent() const { return spent + elsewhere.spent; }
        std::uint64_t all_reserved() const { return reserved + elsewhere.reserved; }
    };
    struct Shard {
        mutable std::mutex mutex;  // guards scopes
        std::unordered_map<std::uint64_t, Scope> scopes;
    };
    Shard& shard(std::uint64_t key) { return shards_[key % shards_.size()]; }
    const Shard& shard(std::uint64_t key) const { return shards_[key % shards_.size()]; }
    void begin_rates(Scope& scope, const KeyLimits& limits) const;
    std::array<Shard, 16> shards_;
    std::optional<std::int64_t> used_up_ns_;
};

// Of two that both admitted, each limit with the one that is nearer to its end.
AdmitDecision tighter_of(const AdmitDecision& one, const AdmitDecision& other);
std::string reset_text(std::int64_t ns);  // "1s", "6m0s", "250ms", as Go writes durations

}  // namespace stoker
