#include "run/decide/choose_engine.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/api_time.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::int64_t kDayUs = 86'400 * kSecondUs;

// "14:10 UTC"; with its date when that is another day than now.
std::string about(std::int64_t at_us, std::int64_t now_us) {
    const std::string text = rfc3339(at_us);  // 2026-11-23T14:10:00...
    const std::string clock = text.substr(11, 5) + " UTC";
    return at_us / kDayUs == now_us / kDayUs ? clock : text.substr(0, 10) + " " + clock;
}

}  // namespace

std::vector<const EngineOffer*> in_order_of_start(const std::vector<EngineOffer>& offers) {
    std::vector<const EngineOffer*> order;
    for (const EngineOffer& each : offers)
        if (each.gang) order.push_back(&each);
    const bool priced =
        std::all_of(order.begin(), order.end(), [](const EngineOffer* each) { return each->rate_micro_per_h > 0; });
    std::stable_sort(order.begin(), order.end(), [&](const EngineOffer* a, const EngineOffer* b) {
        const auto key = [&](const EngineOffer& offer) {
            const bool unknown = offer.at_us == kNobodyKnows;
            // Where nobody knows when, a place in a queue is better than none.
            return std::tuple(offer.at_us, unknown && !offer.fits_now,
                              unknown && priced ? offer.rate_micro_per_h : std::int64_t{0});
        };
        return key(*a) < key(*b);
    });
    return order;
}

std::string words_of(const EngineOffer& offer, std::int64_t now_us) {
    const std::string& name = offer.engine->name;
    if (!offer.gang) return name + " " + offer.never;
    if (offer.fits_now && offer.waiting == 0) return fmt::format("{} has {} free", name, offer.room);
    const std::string until = offer.at_us == kNobodyKnows ? std::string(", and nobody can tell until when")
                                                          : " until about " + about(offer.at_us, now_us);
    if (!offer.fits_now) return fmt::format("{} has {} free{}", name, offer.room, until);
    return fmt::format("{} has {} run{} of this server in its own queue{}", name, offer.waiting,
                       offer.waiting == 1 ? "" : "s", until);
}

std::string why_chosen(const std::vector<EngineOffer>& offers, const EngineOffer& chosen, std::int64_t now_us) {
    if (offers.size() < 2) return {};
    std::string others;
    for (const EngineOffer& each : offers) {
        if (&each == &chosen) break;
        others += (others.empty() ? "" : "; ") + words_of(each, now_us);
    }
    const std::string to = "sent to " + chosen.engine->name + ": ";
    return to + (others.empty() ? words_of(chosen, now_us) : others);
}

QueueAtEngine queue_at(const State& state, const EngineScene& engine, bool first) {
    QueueAtEngine queue;
    bool all_told = true;
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        const Attempt& attempt = run.attempts.back();
        const bool there = attempt.engine == engine.name || (first && attempt.engine.empty());
        if (!there || attempt.end_us != 0 || !waits_at_engine(run)) continue;
        ++queue.waiting;
        all_told = all_told && attempt.engine_wait->starts_us > 0;
        queue.until_us = std::max(queue.until_us, attempt.engine_wait->starts_us);
    }
    if (!all_told) queue.until_us = 0;
    return queue;
}

bool has_refused(const Run& run, const EngineScene& engine) {
    return std::any_of(run.attempts.begin(), run.attempts.end(), [&](const Attempt& attempt) {
        return attempt.engine == engine.name && attempt.launched == Answer::rejected;
    });
}

}  // namespace stoker
