// How long a cold plan takes: an 8B model on 150 B tokens over every Azure GPU size x 1 ... 1,024 nodes. One JSON line
// at the end.
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "plan/plan.h"

namespace {

using namespace stoker;

constexpr std::string_view kWorkload = R"(version: 1
kind: training
model: llama-3-8b
data: {tokens: 150B, sequence: 8192}
precision: bf16
objective: {minimize: cost, deadline: 14d}
where: {cloud: azure, spot: allowed}
)";

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string cpu_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

[[noreturn]] void fail(const Error& error) {
    fmt::print(stderr, "{}\n", error.text());
    std::exit(4);
}

}  // namespace

int main(int argc, char** argv) {
    const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
    const double start = now_ms();
    auto catalog = Catalog::embedded();
    if (!catalog) fail(catalog.error());
    const double catalog_ms = now_ms() - start;
    auto document = Document::parse_yaml(kWorkload, "cold_plan.yaml");
    if (!document) fail(document.error());
    auto workload = read_workload(*document, *catalog, [](const std::string& path) -> Result<Document> {
        return Error(ErrorKind::not_found, path);
    });
    if (!workload) fail(workload.error());

    std::vector<double> all, search;
    std::int64_t considered = 0;
    std::string verdict;
    for (int run = 0; run < runs; ++run) {
        for (bool what_if : {true, false}) {
            PlanOptions options{.today = "2026-11-21"};
            options.what_if = what_if;
            const double before = now_ms();
            auto plan = make_plan(*workload, *catalog, options);
            if (!plan) fail(plan.error());
            (what_if ? all : search).push_back(now_ms() - before);
            considered = plan->considered;
            verdict = plan->verdict;
        }
    }
    const double first = all.front();  // nothing was warm for it
    std::sort(all.begin(), all.end());
    std::sort(search.begin(), search.end());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    utsname machine{};
    uname(&machine);
    fmt::print("{}\n{} on {}, {} threads\n", verdict, machine.machine, cpu_name(), std::thread::hardware_concurrency());
    fmt::print(
        "catalogue {:.0f} ms; first plan {:.0f} ms; plans with what-ifs {:.0f} ms (from {:.0f} to {:.0f}), without "
        "{:.0f} ms; peak {:.0f} MB; {} candidates\n",
        catalog_ms, first, all[all.size() / 2], all.front(), all.back(), search[search.size() / 2],
        static_cast<double>(usage.ru_maxrss) / 1024, considered);
    fmt::print(
        "{{\"name\": \"cold_plan_ms\", \"value\": {:.1f}, \"median\": {:.1f}, \"low\": {:.1f}, \"high\": {:.1f}, "
        "\"search_median\": {:.1f}, \"catalog_ms\": {:.1f}, \"peak_mb\": {:.0f}, "
        "\"runs\": {}, \"cpu\": \"{}\", \"threads\": {}}}\n",
        first, all[all.size() / 2], all.front(), all.back(), search[search.size() / 2], catalog_ms,
        static_cast<double>(usage.ru_maxrss) / 1024, runs, cpu_name(), std::thread::hardware_concurrency());
    return 0;
}
