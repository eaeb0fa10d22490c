// Runs whose end is known beforehand, whatever happens in between.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "run/spec/run_spec.h"

namespace stoker::sim {

struct Planned {
    double at_s = 0;
    RunSpec spec;
    std::map<std::string, std::string> outcomes;  // "succeeded ok", by name of the run
};

RunSpec simple_run(std::string name, std::int64_t seconds);
// A mix of gangs, fractions of GPUs, flaky and hopeless programs, timeouts, leases and graphs within `over_s` seconds.
std::vector<Planned> mixed_runs(std::uint64_t seed, int count, double over_s, double mean_s);

}  // namespace stoker::sim
