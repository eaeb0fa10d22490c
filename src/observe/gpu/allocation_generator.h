// Phases of work with their label, as figures of a GPU and of its owner; for the test and the benchmark of
// allocation_state.h. Invented, and so are its assumptions: means from the findings on idle and hung GPUs (a hung
// collective: 100 % at a tenth of the power; serving: bursts), noise normal, one sample a second. A recording of real
// phases goes before it.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "observe/gpu/allocation_state.h"

namespace stoker {

struct Phase {
    std::string_view name;
    AllocationState label;  // what should be said at its end
};
inline const std::vector<Phase>& allocation_phases() {
    using S = AllocationState;
    static const std::vector<Phase> phases = {{"idle", S::allocated_idle},
                                              {"loaded_idle", S::allocated_idle},
                                              {"notebook_left", S::allocated_idle},
                                              {"copy_in", S::busy},
                                              {"device_copy", S::busy},
                                              {"matmul", S::busy},
                                              {"training", S::busy},
                                              {"spin", S::stalled},
                                              {"hung_collective", S::stalled},
                                              {"bursty_serving", S::waiting},
                                              {"starved", S::host_bound},
                                              {"checkpoint_write", S::host_bound},
                                              {"cpu_evaluation", S::host_bound},
                                              {"compile", S::host_bound},
                                              {"no_gpm_idle", S::unknown},
                                              {"quiet_network", S::underused}};
    return phases;
}

class PhaseGenerator {
public:
    PhaseGenerator(std::string_view phase, std::uint64_t seed)
        : phase_(phase), random_(seed), floor_(60 + 30 * uniform()), limit_(400 + 300 * uniform()) {}
    double floor_w() const { return floor_; }

    AllocationSample at(int second) {
        AllocationSample s{.at_s = static_cast<double>(second), .held = true};
        const auto set = [&](double use, double sm, double tensor, double dram, double power, double link, double cpu,
                             double disk, double net) {
            s.utilization = share(use), s.sm_active = share(sm), s.tensor_active = share(tensor),
            s.dram_active = share(dram);
            s.power_w = floor_ + power * (limit_ - floor_) + floor_ * 0.01 * normal();
            s.power_limit_w = limit_;
            s.link_bytes_per_s = noisy(link), s.cpu = noisy(cpu), s.disk_bytes_per_s = noisy(disk),
            s.network_bytes_per_s = noisy(net);
        };
        if (phase_ == "idle")
            set(0, 0, 0, 0, 0.002, 0, 0.001, 0, 100);
        else if (phase_ == "loaded_idle")
            set(0, 0, 0, 0, 0.005, 1000, 0.01, 0, 500);
        else if (phase_ == "notebook_left")
            set(0, 0, 0, 0, 0.004, 0, 0.02, 200, 2000);
        else if (phase_ == "copy_in")
            set(0.9, 0.4, 0, 0.1, 0.2, 20e9, 1, 0, 0);
        else if (phase_ == "device_copy")
            set(1, 0.9, 0, 0.85, 0.5, 0, 0.2, 0, 0);
        else if (phase_ == "matmul")
            set(1, 0.98, 0.9, 0.3, 0.95, 0, 0.2, 0, 0);
        else if (phase_ == "training")
            set(0.97, 0.85, 0.5, 0.4, 0.8, 5e9, 1.5, 2e6, 1e5), s.progress = true;
        else if (phase_ == "spin")
            set(1, 0.5, 0, 0.001, 0.15, 0, 1, 0, 0);
        else if (phase_ == "hung_collective")
            set(1, 0.1, 0, 0.003, 0.05, 1000, 1, 0, 200);
        else if (phase_ == "bursty_serving") {
            const bool on = uniform() < 0.01 && second < 290;
            set(on ? 0.6 : 0, on ? 0.4 : 0, on ? 0.2 : 0, on ? 0.3 : 0, on ? 0.4 : 0.1, 1e5, 0.1, 0, 1e4);
            s.open_requests = second % 45 < 10;
        } else if (phase_ == "starved")
            set(0.12, 0.06, 0.03, 0.03, 0.15, 5e8, 6, 8e7, 0);
        else if (phase_ == "checkpoint_write")
            set(0, 0, 0, 0, 0.1, 1e8, 1, 9e8, 0);
        else if (phase_ == "cpu_evaluation")
            set(0, 0, 0, 0, 0.1, 1000, 7, 1e4, 0);
        else if (phase_ == "compile")
            set(0.01, 0.003, 0, 0, 0.1, 1e4, 3, 3e6, 0);
        else if (phase_ == "no_gpm_idle") {
            set(0, 0, 0, 0, 0.002, 0, 0, 0, 0);
            s.sm_active.reset(), s.tensor_active.reset(), s.dram_active.reset(), s.link_bytes_per_s.reset();
        } else if (phase_ == "quiet_network")
            set(0, 0, 0, 0, 0.01, 1e3, 0.2, 0, 2e6);
        return s;
    }

private:
    double uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }
    double normal() { return std::normal_distribution<>(0, 1)(random_); }
    double share(double mean) { return mean == 0 ? 0 : std::clamp(mean * (1 + 0.01 * normal()), 0.0, 1.0); }
    double noisy(double mean) { return mean * std::max(0.0, 1 + 0.2 * normal()); }

    std::string_view phase_;
    std::mt19937_64 random_;
    double floor_, limit_;
};

struct DetectorScore {
    std::size_t said = 0, right = 0, of = 0;  // of one state: how often it was said, rightly, and should have been
    double precision() const { return said == 0 ? 0 : static_cast<double>(right) / static_cast<double>(said); }
    double recall() const { return of == 0 ? 0 : static_cast<double>(right) / static_cast<double>(of); }
};

}  // namespace stoker
