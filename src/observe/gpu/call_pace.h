// How often each question to a driver is asked, so that all of them together stay within a budget. What a question
// costs is measured while it is asked: on a real board some are answered from memory in a microsecond, and others are
// calls to the board's firmware that take milliseconds; which ones differs from driver to driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stoker {

// In readings: at 1 there is an answer in each.
struct AskEvery {
    int wanted = 1, most = 1;  // most: however dear it is, it is asked this often
};

class CallPace {
public:
    // Microseconds of calls for a reading. Above it only where what may not be asked more seldom costs more.
    explicit CallPace(double budget_us) : budget_us_(budget_us) {}

    // In the order in which they are numbered, from 0.
    void add(AskEvery every);
    bool due(std::size_t ask, std::uint64_t reading) const { return asks_[ask].next <= reading; }
    // It was asked in this reading and took so long; `silent`: it has no answer here.
    void took(std::size_t ask, std::uint64_t reading, double us, bool silent);
    // Readings until it is asked again, as of now: known before it is asked, so that whoever reads the answer knows how
    // old it may become.
    int next_in(std::size_t ask, std::uint64_t reading) const;
    // Between two questions once it is in step, and what one costs: the median of the last few, at first the
    // least.
    int every(std::size_t ask) const { return asks_[ask].every; }
    double cost_us(std::size_t ask) const;
    // Of all, for a reading on average.
    double total_us() const;
    void plan();

private:
    static constexpr std::size_t kKept = 7;
    struct Ask {
        AskEvery wish;
        std::array<float, kKept> us{};
        std::size_t times = 0;
        int silent = 0;  // in a row
        int every = 1;
        std::uint64_t next = 0;
    };
    double budget_us_;
    std::vector<Ask> asks_;
};

}  // namespace stoker
