#include "scenarios.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker::sim {

RunSpec simple_run(std::string name, std::int64_t seconds) {
    RunSpec spec;
    spec.name = std::move(name);
    spec.command = {"work"};
    spec.environment["SIM_SECONDS"] = std::to_string(seconds);
    spec.max_attempts = 1000;  // faults outside the program never use it up
    return spec;
}

namespace {

void pick_shape(RunSpec& spec, SplitMix& random) {
    RankNeeds& needs = spec.per_rank;
    needs.memory_bytes = static_cast<std::int64_t>(1 + random.below(16)) << 30;
    switch (random.below(6)) {
        case 0: break;  // one core
        case 1:
            needs.gpus = 1;
            needs.gpu_milli = static_cast<int>(100 + random.below(9) * 100);
            break;
        case 2: needs.gpus = static_cast<int>(1 + random.below(4)); break;
        case 3:
            spec.ranks = static_cast<int>(2 + random.below(5));
            needs.gpus = 1;
            break;
        case 4:
            spec.nodes = static_cast<int>(1 + random.below(3));
            spec.ranks = spec.nodes * static_cast<int>(1 + random.below(2));
            needs.gpus = 2;
            break;
        default:
            spec.ranks = static_cast<int>(1 + random.below(8));
            needs.cpu_milli = 8000;
            break;
    }
    spec.environment["SIM_GPU_MILLI"] = std::to_string(needs.gpu_milli);
}

Planned graph_of(const std::string& name, SplitMix& random, std::int64_t seconds) {
    Planned planned;
    RunSpec& graph = planned.spec;
    graph.name = name;
    graph.kind = RunKind::graph;
    const auto add = [&](std::string step, std::vector<std::string> needs, OnFailure on_failure, bool fails) {
        GraphStep& each = graph.steps.emplace_back();
        each.name = std::move(step);
        each.depends_on = std::move(needs);
        each.on_failure = on_failure;
        each.run = simple_run("", seconds / 4 + 1);
        pick_shape(each.run, random);
        if (fails) each.run.environment["SIM_FAILS"] = "1000000";
    };
    const bool fails = random.below(2) == 0;
    add("data", {}, OnFailure::fail, false);
    add("train", {"data"}, OnFailure::continue_others, fails);
    add("extra", {"data"}, OnFailure::ignore, true);
    add("report", {"train", "extra"}, OnFailure::fail, false);
    planned.outcomes = {{name, fails ? "failed dependency" : "succeeded ok"},
                        {name + "/data", "succeeded ok"},
                        {name + "/train", fails ? "failed user_error" : "succeeded ok"},
                        {name + "/extra", "failed user_error"},
                        {name + "/report", fails ? "cancelled dependency" : "succeeded ok"}};
    return planned;
}

}  // namespace

std::vector<Planned> mixed_runs(std::uint64_t seed, int count, double over_s, double mean_s) {
    SplitMix random(SplitMix::mix(seed ^ 0xabc));
    std::vector<Planned> all;
    for (int i = 0; i < count; ++i) {
        const std::string name = fmt::format("run{:05}", i);
        const auto seconds = static_cast<std::int64_t>(1 + std::min(random.exponential(), 8.0) * mean_s);
        Planned planned;
        if (random.below(12) == 0) {
            planned = graph_of(name, random, seconds);
        } else {
            planned.spec = simple_run(name, seconds);
            pick_shape(planned.spec, random);
            RunSpec& spec = planned.spec;
            spec.priority = static_cast<int>(random.below(5)) - 2;
            spec.run_class = static_cast<RunClass>(random.below(3));
            if (random.below(3) == 0) spec.checkpoint.folder = "/ck/" + name;
            if (i % 3 == 0) spec.environment["SIM_DEAF"] = "1";
            std::string outcome = "succeeded ok";
            switch (random.below(10)) {
                case 0:
                    spec.environment["SIM_FAILS"] = "1000000";
                    spec.max_restarts = static_cast<int>(random.below(3));
                    outcome = "failed user_error";
                    break;
                case 1:
                    spec.environment["SIM_FAILS"] = "2";
                    spec.max_restarts = 2;
                    break;
                case 2:
                    spec.environment["SIM_FAILS"] = "3";
                    spec.environment["SIM_CODE"] = "75";
                    break;
                case 3:
                    spec.environment["SIM_SECONDS"] = "100000000";
                    spec.timeout_s = seconds;
                    outcome = "expired timeout";
                    break;
                case 4:
                    spec.environment["SIM_SECONDS"] = "100000000";
                    spec.lease.stop_after_s = seconds;
                    spec.lease.hard_max_s = 2 * seconds;
                    outcome = "expired lease";
                    break;
                default: break;
            }
            planned.outcomes[name] = outcome;
        }
        planned.at_s = random.uniform() * over_s;
        all.push_back(std::move(planned));
    }
    return all;
}

}  // namespace stoker::sim
