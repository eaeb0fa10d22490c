// The published GPU-sharing study again: 6 placement policies on 17 workloads of the openb trace, at 130 % demand,
// beside the means that the study printed. One JSON line at the end.
//   bench_fleet [SEEDS [FOLDER]]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/tsv.h"
#include "io/gzip.h"
#include "run/decide/replay.h"

namespace {

using namespace stoker;

constexpr std::size_t kMostBytes = 64 << 20;

template <typename T>
T need(Result<T> result) {
    if (result) return std::move(result).value();
    fmt::print(stderr, "{}\n", result.error().text());
    std::exit(2);
}

// The study numbers its policies.
PlacementPolicy published_policy(std::string_view name) {
    static const std::map<std::string_view, PlacementPolicy> policies = {
        {"01-Random", PlacementPolicy::random},
        {"02-DotProd", PlacementPolicy::dot_product},
        {"03-GpuClustering", PlacementPolicy::gpu_clustering},
        {"04-GpuPacking", PlacementPolicy::gpu_packing},
        {"05-BestFit", PlacementPolicy::best_fit},
        {"06-FGD", PlacementPolicy::fragmentation},
    };
    return policies.at(name);
}

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
    const int seeds = argc > 1 ? std::clamp(std::atoi(argv[1]), 1, 100) : 3;
    const std::string folder = argc > 2 ? argv[2] : STOKER_SOURCE_DIR "/bench/planning/openb";
    const std::string nodes_file = folder + "/openb_node_list_gpu_node.csv.gz";
    const std::string nodes = need(read_plain_or_gzip(nodes_file, kMostBytes));
    const std::string expected_text = need(read_plain_or_gzip(folder + "/fgd_expected.csv", kMostBytes));
    const Tsv expected = need(Tsv::read_csv(expected_text, "fgd_expected.csv"));
    const std::size_t workload = need(expected.column("workload")), policy = need(expected.column("policy")),
                      at_100 = need(expected.column("alloc_pct_at_100")),
                      at_130 = need(expected.column("alloc_pct_at_130"));

    fmt::print("GPU allocated at 130 % demand, mean of {} seeds; in brackets the difference to the published mean\n\n",
               seeds);
    std::string last;
    std::map<std::string, double> worst_130, worst_100;
    std::vector<double> seconds;
    Fleet fleet;
    std::vector<FleetTask> tasks;
    int rows = 0, inside = 0;
    for (std::size_t row = 0; row < expected.rows(); ++row) {
        const std::string name(expected.at(row, workload)), method(expected.at(row, policy));
        if (name != last) {
            if (!last.empty()) fmt::print("\n");
            fmt::print("{:<13}", name.substr(std::string_view("openb_pod_list_").size()));
            last = name;
            fleet = need(read_fleet(nodes, nodes_file));
            const std::string file = folder + "/" + name + ".csv.gz";
            tasks = need(read_fleet_tasks(need(read_plain_or_gzip(file, kMostBytes)), file, fleet));
        }
        double allocated = 0, allocated_100 = 0;
        for (int seed = 0; seed < seeds; ++seed) {
            const double start = now_s();
            const ReplayResult result = replay(
                fleet, tasks,
                {.policy = published_policy(method), .demand = 1.3, .seed = 42 + static_cast<std::uint64_t>(seed)});
            seconds.push_back(now_s() - start);
            allocated += 100 * result.allocated / seeds;
            allocated_100 += 100 * result.points.at(9).allocated / seeds;
        }
        const double off = allocated - need(expected.number(row, at_130));
        const double off_100 = allocated_100 - need(expected.number(row, at_100));
        fmt::print(" {:6.2f} ({:+5.2f})", allocated, off);
        worst_130[method] = std::max(worst_130[method], std::abs(off));
        worst_100[method] = std::max(worst_100[method], std::abs(off_100));
        ++rows;
        inside += std::abs(off) <= 0.5 ? 1 : 0;
    }
    fmt::print("\n\n");
    std::sort(seconds.begin(), seconds.end());
    std::string worst;
    for (const auto& [method, off] : worst_130) {
        fmt::print("{:<17} worst difference {:.2f} points at 130 %, {:.2f} at 100 %\n", method, off, worst_100[method]);
        worst += fmt::format("{}\"{}\":{:.3f}", worst.empty() ? "" : ",", method, off);
    }
    fmt::print("{} of {} rows within 0.5 points; a replay takes {:.3f} s (median; {:.3f} to {:.3f}, {} runs)\n", inside,
               rows, seconds[seconds.size() / 2], seconds.front(), seconds.back(), seconds.size());
    fmt::print(
        "{{\"bench\":\"fleet\",\"seeds\":{},\"rows\":{},\"within_half_point\":{},\"replay_median_s\":{:.4f},"
        "\"replay_max_s\":{:.4f},\"worst_points\":{{{}}}}}\n",
        seeds, rows, inside, seconds[seconds.size() / 2], seconds.back(), worst);
    return 0;
}
