// What became of the requests of each model and each project, for metrics: counters and histograms, by any thread,
// without a lock once a loop knows them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "govern/ledger/ledger_record.h"

namespace stoker::gateway {

// Of a fixed list of bounds; the last bucket is whatever is more.
template <std::size_t N>
struct Histogram {
    std::array<std::atomic<std::uint64_t>, N + 1> counts{};
    std::atomic<std::uint64_t> sum_us{0};

    void see(const std::array<double, N>& bounds, double seconds) {
        std::size_t i = 0;
        while (i < N && seconds > bounds[i]) ++i;
        counts[i].fetch_add(1, std::memory_order_relaxed);
        sum_us.fetch_add(static_cast<std::uint64_t>(seconds * 1e6), std::memory_order_relaxed);
    }
};

// Steps of a half to two thirds, so that a percentile is known within a quarter; up to 0.1 s finer than what
// OpenTelemetry advises for gen_ai.server.time_to_first_token, of which most bounds are there, too.
inline constexpr std::array<double, 22> kSecondsBounds = {.001, .0025, .005, .01, .02, .03, .04, .06, .08, .1, .15,
                                                          .25,  .4,    .6,   1,   1.5, 2.5, 5,   10,  20,  40, 80};
inline constexpr std::array<double, 16> kTokenBounds = {.001, .0025, .005, .0075, .01, .015, .02, .025,
                                                        .035, .05,   .075, .1,    .15, .25,  .5,  1};
using SecondsHistogram = Histogram<kSecondsBounds.size()>;
using TokenHistogram = Histogram<kTokenBounds.size()>;

struct ModelFigures {
    std::string name;
    SecondsHistogram first_token, duration, queue;
    TokenHistogram each_token;
    std::array<std::atomic<std::uint64_t>, enum_names(LedgerOutcome{}).size()> outcomes{};
    std::atomic<std::uint64_t> tokens_in{0}, tokens_cached{0}, tokens_out{0}, fell_back{0};
    // Held against the model's objective, where it has one.
    std::atomic<std::uint64_t> judged{0}, unavailable{0}, slow{0};
};
struct ProjectFigures {
    std::string name;
    std::atomic<std::uint64_t> requests{0}, tokens_in{0}, tokens_out{0}, picousd{0};
};

class FigureBook {
public:
    // References stay good as long as the book.
    ModelFigures& of_model(std::uint64_t id, const std::string& name);
    ProjectFigures& of_project(std::uint64_t id, const std::string& name);
    std::string text() const;  // in the format of Prometheus

private:
    mutable std::mutex mutex_;  // guards the maps, not what they hold
    std::map<std::uint64_t, std::unique_ptr<ModelFigures>> models_;
    std::map<std::uint64_t, std::unique_ptr<ProjectFigures>> projects_;
};

}  // namespace stoker::gateway
