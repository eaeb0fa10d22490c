// What watching costs: N ranks, each a process with some threads that works and sleeps, looked at every second.
//   bench_observer [--ranks 64] [--threads 8] [--seconds 20]
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "deploy/local/rank_measures.h"
#include "io/process.h"
#include "observe/watch.h"

using namespace stoker;
namespace fs = std::filesystem;

namespace {

int number(int argc, char** argv, std::string_view name, int otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == name) return std::atoi(argv[i + 1]);
    return otherwise;
}

[[noreturn]] void be_a_rank(int threads) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < threads; ++i)
        std::thread([] {
            for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }).detach();
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = number(argc, argv, "--ranks", 64), threads = number(argc, argv, "--threads", 8);
    const int seconds = number(argc, argv, "--seconds", 20);
    const std::string folder = fs::temp_directory_path() / ("stoker-bench-observer-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::vector<pid_t> children;
    for (int i = 0; i < ranks; ++i) {
        const pid_t child = ::fork();
        if (child == 0) be_a_rank(threads);
        children.push_back(child);
    }
    {
        auto store = SeriesStore::open(folder);
        auto observer = Observer::start({.series = std::shared_ptr<SeriesStore>(std::move(*store))});
        const auto measures = std::make_shared<RankMeasures>();
        std::vector<WatchedGang> watched;
        for (int i = 0; i < ranks; ++i) {
            if (i % 8 == 0) {
                MeasuredGang gang{.launched = {"bench", static_cast<std::uint64_t>(i + 1)},
                                  .log_folder = folder,
                                  .measure = {},
                                  .live = {}};
                gang.measure.lines = folder + "/none";
                watched.push_back({.run = "r-" + std::to_string(i / 8),
                                   .attempt = 1,
                                   .live = {},
                                   .read = [measures, gang](const auto& live, const MeasureQuery& query) {
                                       MeasuredGang now = gang;
                                       now.live = live;
                                       return measures->read(now, query);
                                   }});
            }
            watched.back().live.push_back({.rank = i % 8, .pid = children[static_cast<std::size_t>(i)], .node = {}});
        }
        observer->watch(watched);
        std::this_thread::sleep_for(std::chrono::seconds(3));
        const ObserverStats before = observer->stats();
        std::this_thread::sleep_for(std::chrono::seconds(seconds));
        const ObserverStats after = observer->stats();
        const double looks = static_cast<double>(after.ticks - before.ticks);
        fmt::print(
            "{} ranks x {} threads: {:.2f} % of a core, {:.2f} ms of processor time a look, {} looks, {} skipped, "
            "worst {:.1f} ms late\n",
            after.ranks, threads, (after.cpu_s - before.cpu_s) / seconds * 100,
            (after.cpu_s - before.cpu_s) / looks * 1e3, after.ticks - before.ticks, after.skipped,
            after.worst_late_s * 1e3);
    }
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    fs::remove_all(folder);
}
