#include "observe/gpu/call_pace.h"

#include <algorithm>
#include <cmath>

namespace stoker {

namespace {

// The first call of a kind loads what later ones find: its duration says little.
constexpr std::size_t kLearnt = 3;
constexpr int kSilent = 3;        // times in a row without an answer: it has none
constexpr int kSilentFactor = 6;  // it may come with a new mode of the board
constexpr int kOften = 10;

}  // namespace

void CallPace::add(AskEvery every) {
    asks_.push_back({.wish = every, .every = every.wanted});
}

double CallPace::cost_us(std::size_t ask) const {
    const Ask& of = asks_[ask];
    std::array<float, kKept> sorted = of.us;
    const std::size_t count = std::min(of.times, kKept);
    if (count == 0) return 0;
    if (count < kLearnt) return *std::min_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
    // A median is not moved by the one call during which the processor was somebody else's.
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count / 2),
                     sorted.begin() + static_cast<std::ptrdiff_t>(count));
    return sorted[count / 2];
}

double CallPace::total_us() const {
    double sum = 0;
    for (std::size_t i = 0; i < asks_.size(); ++i) sum += cost_us(i) / asks_[i].every;
    return sum;
}

// Answers are to be as little older than wanted as the budget allows: of all intervals T with sum(cost / T) = budget,
// sum(T / wanted) is least where T = l * sqrt(cost * wanted) for one l. It is found by halving.
void CallPace::plan() {
    std::vector<double> costs(asks_.size());
    for (std::size_t i = 0; i < asks_.size(); ++i) costs[i] = cost_us(i);
    const auto interval = [&](std::size_t i, double l) {
        const AskEvery wish = asks_[i].wish;
        const int most = asks_[i].silent >= kSilent ? wish.most * kSilentFactor : wish.most;
        const double t = std::ceil(l * std::sqrt(costs[i] * wish.wanted));
        return std::clamp(static_cast<int>(std::min(t, 1e6)), wish.wanted, std::max(most, wish.wanted));
    };
    const auto fits = [&](double l) {
        double sum = 0;
        for (std::size_t i = 0; i < asks_.size(); ++i) sum += costs[i] / interval(i, l);
        return sum <= budget_us_;
    };
    double low = 0, high = 1;
    if (!fits(0)) {
        for (int k = 0; k < 30 && !fits(high); ++k) high *= 2;
        for (int k = 0; k < 40; ++k) {
            const double middle = (low + high) / 2;
            (fits(middle) ? high : low) = middle;
        }
        low = high;
    }
    for (std::size_t i = 0; i < asks_.size(); ++i) asks_[i].every = interval(i, low);
}

int CallPace::next_in(std::size_t ask, std::uint64_t reading) const {
    const Ask& of = asks_[ask];
    const int every = std::max(1, of.every);
    // What is wanted often is asked a few times at once, to learn what it costs.
    if (of.times + 1 < kLearnt && of.wish.wanted < kOften) return 1;
    // From then on those of one interval are spread over it: together they would be a pause of the driver.
    const std::uint64_t step = static_cast<std::uint64_t>(every), phase = (ask * 7) % step;
    const std::uint64_t ahead = (phase + step - reading % step) % step;
    return static_cast<int>(ahead == 0 ? step : ahead);
}

void CallPace::took(std::size_t ask, std::uint64_t reading, double us, bool silent) {
    Ask& of = asks_[ask];
    of.next = reading + static_cast<std::uint64_t>(next_in(ask, reading));
    of.us[of.times++ % kKept] = static_cast<float>(us);
    of.silent = silent ? of.silent + 1 : 0;
}

}  // namespace stoker
