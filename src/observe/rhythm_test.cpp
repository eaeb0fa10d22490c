// Steps that nobody tells are found where they can be seen from outside, and made up nowhere.
#include "observe/rhythm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stoker {
namespace {

// Mean of each second of a program that computes for 70 % of each period and waits for the rest.
std::vector<double> seconds_of(double period, int count, double noise, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> error(0, noise);
    std::vector<double> values;
    for (int second = 0; second < count; ++second) {
        double busy = 0;
        for (int part = 0; part < 100; ++part) {
            const double at = second + part / 100.0;
            busy += std::fmod(at, period) < 0.7 * period ? 0.01 : 0;
        }
        values.push_back(std::max(0.0, busy + error(random)));
    }
    return values;
}

TEST(Rhythm, StepsOfSixSecondsAndMoreAreFound) {
    for (const double period : {6.5, 9.0, 14.3, 20.0})
        for (unsigned seed = 0; seed < 20; ++seed) {
            const auto found = rhythm_of(seconds_of(period, 150, 0.15, seed));
            ASSERT_TRUE(found) << period << " seed " << seed;
            EXPECT_NEAR(found->period_s, period, 0.1 * period) << seed;
        }
}

TEST(Rhythm, NoneIsMadeUp) {
    int made_up = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        // Fast ones, which a look a second sees at a false length; noise alone; and a slow drift.
        for (const double period : {0.3, 0.7, 0.85, 1.1, 1.4, 2.0})
            made_up += rhythm_of(seconds_of(period, 150, 0.1, seed)) ? 1 : 0;
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> any(0, 1);
        std::vector<double> noise, drift;
        for (int i = 0; i < 150; ++i)
            noise.push_back(any(random)), drift.push_back(0.2 + i / 150.0 + 0.1 * any(random));
        made_up += rhythm_of(noise) ? 1 : 0;
        made_up += rhythm_of(drift) ? 1 : 0;
    }
    EXPECT_LE(made_up, 8) << "of 1,600";
    EXPECT_FALSE(rhythm_of(std::vector<double>(20, 1.0)));
    EXPECT_FALSE(rhythm_of(std::vector<double>()));
}

}  // namespace
}  // namespace stoker
