// The states of GPUs that are held, on labelled phases: 1,000 runs of each, precision and recall of what is acted on,
// and how long it takes until it is said. The phases are invented (observe/gpu/allocation_generator.h says how).
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "observe/gpu/allocation_generator.h"

using namespace stoker;

int main() {
    constexpr int kRuns = 1000, kSeconds = 360;
    std::map<AllocationState, DetectorScore> scores;
    std::map<AllocationState, double> latest_s;
    for (const Phase& phase : allocation_phases()) {
        std::map<AllocationState, int> said;
        for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
            PhaseGenerator generator(phase.name, seed);
            AllocationWatch watch({}, generator.floor_w());
            AllocationState last = AllocationState::unknown;
            double first_s = -1;
            for (int second = 0; second <= kSeconds; second += 5) {
                last = watch.look(generator.at(second)).state;
                if (last == phase.label && first_s < 0) first_s = second;
            }
            ++said[last];
            ++scores[last].said;
            ++scores[phase.label].of;
            scores[phase.label].right += last == phase.label ? 1 : 0;
            if (first_s >= 0) latest_s[phase.label] = std::max(latest_s[phase.label], first_s);
        }
        std::string told;
        for (const auto& entry : said) told += fmt::format(" {} {}", to_string(entry.first), entry.second);
        fmt::print("{:18} is {:15} said:{}\n", phase.name, to_string(phase.label), told);
    }
    for (const auto& entry : scores)
        fmt::print(
            "{{\"state\": \"{}\", \"precision\": {:.4f}, \"recall\": {:.4f}, \"latest_s\": {:.0f}, \"runs\": {}}}\n",
            to_string(entry.first), entry.second.precision(), entry.second.recall(), latest_s[entry.first], kRuns);
    return 0;
}
