// Which of several engines a run goes to that leaves it open: the one where it starts first. What is free now goes
// before what has to be waited for; of that, by when it is free or its own queue expects to start it; where nobody can
// tell, what costs less. Otherwise the nearest: the first of the configuration.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "run/decide/gang.h"
#include "run/decide/schedule.h"

namespace stoker {

inline constexpr std::int64_t kNobodyKnows = std::numeric_limits<std::int64_t>::max();

struct EngineOffer {
    const EngineScene* engine = nullptr;
    std::optional<Gang> gang;           // none: never there
    std::string never;                  // and why not: "has nothing that large"
    Cause cause = Cause::none;          // the same
    bool fits_now = false;              // by what we know of it
    int waiting = 0;                    // runs of ours in its own queue
    std::int64_t at_us = 0;             // when it would start there
    std::int64_t rate_micro_per_h = 0;  // 0: it has no price
    std::string room;                   // "0 of 8 GPUs"
};

// Those where it can go, the best first.
std::vector<const EngineOffer*> in_order_of_start(const std::vector<EngineOffer>& offers);
// "local has 0 of 8 GPUs free until about 14:10 UTC"
std::string words_of(const EngineOffer& offer, std::int64_t now_us);
// Why there and not on a nearer one; empty: it could have gone nowhere else.
std::string why_chosen(const std::vector<EngineOffer>& offers, const EngineOffer& chosen, std::int64_t now_us);

// Runs of ours that an engine has in its queue, and when it expects to have started them all; 0: it does not say.
struct QueueAtEngine {
    int waiting = 0;
    std::int64_t until_us = 0;
};
QueueAtEngine queue_at(const State& state, const EngineScene& engine, bool first);
// It has refused this run before.
bool has_refused(const Run& run, const EngineScene& engine);

}  // namespace stoker
