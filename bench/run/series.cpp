// The series store at the size of a large platform: runs x ranks x a day of seconds, and how long a chart takes.
//   bench_series [--runs 1000] [--ranks 8] [--sample 12] [--keep FOLDER]
// `sample` runs are really written, second by second, through the store that the server uses; the bytes of the others
// are theirs, which holds since runs share nothing: the sum over half of the sample is told beside it. With --keep the
// sample ends now and stays, for bench/observe to ask a real server about.
// Columns are those that the observer and the PyTorch hook write (observe/watch.h), scattering as they did in trainings
// on this machine: times of steps by 5 %, counts of the kernel by 10 to 60 %, memory hardly.
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

std::string text_option(int argc, char** argv, std::string_view name) {
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == name) return argv[i + 1];
    return "";
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
    const int sample = std::min(runs, option(argc, argv, "--sample", 12));
    const std::string kept = text_option(argc, argv, "--keep");
    const std::string folder =
        kept.empty() ? (fs::temp_directory_path() / ("stoker-bench-series-" + std::to_string(::getpid()))).string()
                     : kept;
    if (kept.empty()) fs::remove_all(folder);
    auto opened = SeriesStore::open(folder);
    std::unique_ptr<SeriesStore> store = std::move(*opened);
    std::mt19937 random(7);
    std::normal_distribution<double> noise(0, 1);
    std::vector<double> table(1 << 21);
    for (double& each : table) each = noise(random);
    std::size_t at = 0;
    const auto next = [&] { return table[at = (at + 1) & (table.size() - 1)]; };
    // How far each scatters from second to second; how often it is not 0.
    struct Column {
        const char* name;
        double level, scatter, often = 1;
        bool walks = false;  // moves slowly instead, once in 97 s
        bool first = false;  // of rank 0 alone
    };
    const std::vector<Column> columns = {{"step_s", 0.21, 0.05},
                                         {"compute_s", 0.16, 0.05},
                                         {"wait_s", 0.004, 0.4},
                                         {"allreduce_s", 0.03, 0.25},
                                         {"checkpoint_s", 1.5, 0.1, 0.002},
                                         {"tokens_per_s", 9700, 0.05},
                                         {"cpu", 0.97, 0.03},
                                         {"cpu_system", 0.05, 0.3},
                                         {"run_wait", 0.02, 0.6},
                                         {"switches", 210, 0.2},
                                         {"preempted", 8, 0.5},
                                         {"minor_faults", 1900, 0.3},
                                         {"major_faults", 2, 0.5, 0.001},
                                         {"rss", 6e8, 0.0005, 1, true},
                                         {"peak_rss", 7e8, 0.0003, 1, true},
                                         {"swap", 0, 0},
                                         {"memory_used", 9e8, 0.002, 1, true},
                                         {"memory_limit", 4e9, 0},
                                         {"limit_hits", 0, 0},
                                         {"disk_read", 4e5, 0.5, 0.01},
                                         {"disk_write", 2e6, 0.5, 0.02},
                                         {"read_calls", 120, 0.15},
                                         {"call_read", 3e6, 0.1},
                                         {"throttled", 0, 0},
                                         {"cpu_limit", 1, 0},
                                         {"net_received", 2e4, 0.4, 1, false, true},
                                         {"net_sent", 2e4, 0.4, 1, false, true},
                                         {"net_loopback", 4e7, 0.06, 1, false, true},
                                         {"processes", 1, 0},
                                         {"threads", 9, 0},
                                         {"blocked", 1, 0, 0.01},
                                         {"cpus_allowed", 1, 0},
                                         {"first_cpu", 0, 0},
                                         {"foreign_cpu", 0.1, 0.5, 1, false, true},
                                         {"steal", 0.01, 0.5, 0.05, false, true},
                                         {"machine_cpus", 64, 0, 1, false, true},
                                         {"disk_free", 4e11, 0.0001, 1, true, true},
                                         {"tokens", 2048, 0},
                                         {"param_bits", 32, 0},
                                         {"recomputed", 0, 0},
                                         {"compiled", 0, 0}};

    const std::int64_t day = 86'400;
    const std::int64_t start = kept.empty() ? 1'700'006'400 : static_cast<std::int64_t>(std::time(nullptr)) - day;
    const auto began = std::chrono::steady_clock::now();
    double worst = 0, values = 0;
    for (int run = 0; run < sample; ++run) {
        const std::string name = "r-" + std::to_string(run + 1);
        std::vector<double> slow(static_cast<std::size_t>(ranks) * columns.size(), 1);
        for (std::int64_t second = 0; second < day; ++second) {
            const double t = static_cast<double>(start + second);
            for (int rank = 0; rank < ranks; ++rank)
                for (std::size_t i = 0; i < columns.size(); ++i) {
                    const Column& column = columns[i];
                    if (column.first && rank != 0) continue;
                    ++values;
                    double value = column.level;
                    if (column.often < 1 && std::abs(next()) * 0.8 > column.often) value = 0;
                    if (column.walks) {
                        double& level = slow[static_cast<std::size_t>(rank) * columns.size() + i];
                        if (second % 97 == 0) level *= 1 + column.scatter * next();
                        value *= level;
                    } else if (column.scatter > 0) {
                        // Counts and waits lean to one side, as they do for real.
                        value *= std::exp(column.scatter * next());
                    }
                    store->add(name, rank, column.name, t, value);
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
    const double each_s = static_cast<double>(sample) * ranks * static_cast<double>(day);
    fmt::print(
        "written: {} runs x {} ranks x {} metrics x a day, {:.0f} ns per value ({:.2f} % of a core for 64 ranks)\n",
        sample, ranks, columns.size(), write_s / values * 1e9, write_s / each_s * 64 * 100);
    double half = 0;
    for (int run = 0; run < sample / 2; ++run) half += used_bytes(folder + "/r-" + std::to_string(run + 1));
    if (sample > 1)
        fmt::print("a run: {:.1f} KB over half of them, {:.1f} KB over all\n", half / (sample / 2) / 1e3,
                   used_bytes(folder) / sample / 1e3);
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
            const auto all = store->query({.run = "r-" + std::to_string(1 + i % sample),
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
    if (kept.empty()) fs::remove_all(folder);
}
