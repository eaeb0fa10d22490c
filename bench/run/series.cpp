// The series store at the size of a large platform: runs x ranks x a day of seconds, and how long a chart takes.
//   bench_series [--runs 1000] [--ranks 8] [--sample 20]
// `sample` runs are really written, second by second; disk use is theirs times runs / sample, which holds since runs
// share nothing. Metrics look like those of a training: eight that are noisy, six that hardly move, eight at 0.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "observe/series.h"

using namespace stoker;
namespace fs = std::filesystem;

namespace {

int option(int argc, char** argv, std::string_view name, int otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == name) return std::atoi(argv[i + 1]);
    return otherwise;
}

// Bytes as the file system counts them, whole blocks.
double used_bytes(const std::string& folder) {
    double total = 0;
    std::error_code code;
    for (const auto& entry : fs::recursive_directory_iterator(folder, code))
        if (entry.is_regular_file()) total += std::ceil(static_cast<double>(entry.file_size()) / 4096) * 4096;
    return total;
}

}  // namespace

int main(int argc, char** argv) {
    const int runs = option(argc, argv, "--runs", 1000), ranks = option(argc, argv, "--ranks", 8);
    const int sample = std::min(runs, option(argc, argv, "--sample", 20));
    const std::string folder = fs::temp_directory_path() / ("stoker-bench-series-" + std::to_string(::getpid()));
    fs::remove_all(folder);
    auto opened = SeriesStore::open(folder);
    std::unique_ptr<SeriesStore> store = std::move(*opened);
    std::mt19937 random(7);
    std::normal_distribution<double> noise(0, 1);
    std::vector<double> table(1 << 20);
    for (double& each : table) each = noise(random);
    std::size_t at = 0;
    const auto next = [&] { return table[at = (at + 1) & (table.size() - 1)]; };
    const std::vector<std::string> noisy = {"step_s",       "compute_s", "wait_s",       "allreduce_s",
                                            "tokens_per_s", "cpu",       "minor_faults", "net_loopback"};
    const std::vector<std::string> quiet = {"rss", "peak_rss", "threads", "processes", "memory_used", "read_calls"};
    const std::vector<std::string> zero = {"swap",       "major_faults", "throttled",    "disk_read",
                                           "disk_write", "blocked",      "checkpoint_s", "limit_hits"};

    const std::int64_t start = 1'700'006'400, day = 86'400;
    const auto began = std::chrono::steady_clock::now();
    double worst = 0;
    for (int run = 0; run < sample; ++run) {
        const std::string name = "r-" + std::to_string(run);
        std::vector<double> slow(static_cast<std::size_t>(ranks) * quiet.size(), 1e9);
        for (std::int64_t second = 0; second < day; ++second) {
            const double t = static_cast<double>(start + second);
            for (int rank = 0; rank < ranks; ++rank) {
                for (std::size_t i = 0; i < noisy.size(); ++i)
                    store->add(name, rank, noisy[i], t, 0.2 * static_cast<double>(i + 1) * (1 + 0.05 * next()));
                for (std::size_t i = 0; i < quiet.size(); ++i) {
                    double& value = slow[static_cast<std::size_t>(rank) * quiet.size() + i];
                    if (second % 97 == 0) value *= 1 + 0.002 * std::abs(next());
                    store->add(name, rank, quiet[i], t, value);
                }
                for (const std::string& each : zero) store->add(name, rank, each, t, 0);
            }
            if (second % 600 == 0 && run + 1 == sample) {
                store->tidy(start + second);
                worst = std::max(worst, used_bytes(folder + "/" + name));
            }
        }
        store->tidy(start + day);
    }
    const double write_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    store->tidy(start + day);
    const double bytes = used_bytes(folder) / sample * runs;
    const double points = static_cast<double>(sample) * ranks * static_cast<double>(day) * 22;
    fmt::print(
        "written: {} runs x {} ranks x 22 metrics x a day, {:.0f} ns per value ({:.2f} % of a core for 64 ranks)\n",
        sample, ranks, write_s / points * 1e9, write_s / points * 64 * 22 * 100);
    fmt::print("disk: {:.1f} KB a rank; {} runs x {} ranks: {:.0f} MB at the end, {:.0f} MB at most on the way\n",
               bytes / runs / ranks / 1e3, runs, ranks, bytes / 1e6, worst * runs / 1e6);

    struct Chart {
        const char* what;
        std::int64_t back;
        std::vector<std::string> metrics;
    };
    for (const Chart& chart :
         {Chart{"last 10 minutes, one metric", 600, {"step_s"}}, Chart{"last hour, one metric", 3600, {"step_s"}},
          Chart{"a day, one metric", day, {"step_s"}},
          Chart{"a day, four metrics", day, {"step_s", "wait_s", "cpu", "rss"}}}) {
        std::vector<double> times, cpu;
        std::size_t shown = 0;
        for (int i = 0; i < 300; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            const std::clock_t used = std::clock();
            const auto all = store->query({.run = "r-" + std::to_string(i % sample),
                                           .metrics = chart.metrics,
                                           .rank = {},
                                           .from_s = start + day - chart.back,
                                           .to_s = start + day,
                                           .max_points = 500});
            times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
            cpu.push_back(static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
            if (all) shown = all->size() * (all->empty() ? 0 : all->front().points.size());
        }
        std::sort(times.begin(), times.end());
        std::sort(cpu.begin(), cpu.end());
        fmt::print("chart, {:<28} {:6d} points  p50 {:6.2f} ms  p99 {:6.2f} ms  of processor time {:6.2f} ms\n",
                   chart.what, shown, times[times.size() / 2] * 1e3, times[times.size() * 99 / 100] * 1e3,
                   cpu[cpu.size() * 99 / 100] * 1e3);
    }
    store.reset();
    fs::remove_all(folder);
}
