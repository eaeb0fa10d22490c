// How often a start that was promised comes in time: the arrivals, gangs and run times of bench/run/philly go through
// the live scheduler on a virtual clock. Each run that has to wait is asked for its ETA when it is submitted, knowing
// only what a server knows then: what runs, what waits, and how long earlier runs of the same name took.
//   bench_eta [FILE] [NODES=9] [EVERY=1: of the runs that wait, ask each n-th]
// The first 20 % of the jobs only teach, the next 30 % were used to tune, the rest was not.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>

#include "io/gzip.h"
#include "run/decide/testing.h"
#include "run/decide/why.h"

using namespace stoker;

namespace {

struct Job {
    std::int64_t at_us = 0, length_us = 0;
    int gpus = 0;
    std::string name;
};

std::vector<Job> read_jobs(const std::string& file) {
    const auto text = read_plain_or_gzip(file, 64 << 20);
    if (!text) {
        fmt::print(stderr, "{}\n", text.error().text());
        std::exit(3);
    }
    std::vector<Job> jobs;
    std::size_t at = text->find('\n') + 1;
    while (at < text->size()) {
        const std::size_t end = std::min(text->find('\n', at), text->size());
        std::int64_t numbers[3] = {};
        const char* from = text->data() + at;
        for (std::int64_t& number : numbers) from = std::from_chars(from, text->data() + end, number).ptr + 1;
        jobs.push_back({.at_us = numbers[0] * kSecondUs,
                        .length_us = std::max<std::int64_t>(numbers[2], 1) * kSecondUs,
                        .gpus = static_cast<int>(numbers[1]),
                        .name = std::string(from, text->data() + end)});
        at = end + 1;
    }
    return jobs;
}

struct Promise {
    std::size_t job = 0;
    std::int64_t asked_us = 0;
    Eta eta;
    std::optional<double> waited_s;
};

struct Replay {
    run_testing::World world;
    std::int64_t zero_us = world.now_us;
    std::multimap<std::int64_t, RunId> ends;
    std::map<RunId, std::size_t> job_of, promise_of;
    std::vector<Promise> promises;
    std::vector<double> ask_s;

    void pass(const std::vector<Job>& jobs) {
        for (const Admission& admission : world.pass().admit) {
            const std::size_t job = job_of.at(admission.run);
            ends.emplace(world.now_us + jobs[job].length_us, admission.run);
            if (const auto found = promise_of.find(admission.run); found != promise_of.end()) {
                Promise& promise = promises[found->second];
                promise.waited_s = static_cast<double>(world.now_us - promise.asked_us) / 1e6;
                promise_of.erase(found);
            }
        }
    }
    void end(RunId run) {
        world.end(run);
        const OperationId launch = world.state.find(run)->attempts.back().launch;
        world.put(OperationIntended{.verb = Verb::release, .attempt = {run, 1}, .target = launch});
        world.put(OperationAnswered{
            .operation = {.site = "tests", .seq = world.state.seq}, .answer = Answer::confirmed, .detail = ""});
        world.put(RunForgotten{run});
        job_of.erase(run);
    }
    void ends_until(const std::vector<Job>& jobs, std::int64_t until_us) {
        while (!ends.empty() && ends.begin()->first <= until_us) {
            world.now_us = std::max(world.now_us, ends.begin()->first);
            while (!ends.empty() && ends.begin()->first <= world.now_us) {
                end(ends.begin()->second);
                ends.erase(ends.begin());
            }
            pass(jobs);
        }
    }
};

void report(const char* part, const std::vector<Promise>& promises, std::size_t from, std::size_t to) {
    std::size_t asked = 0, none = 0, no_p90 = 0, half = 0, nine = 0, told = 0, told90 = 0;
    double waited = 0;
    for (const Promise& each : promises) {
        if (each.job < from || each.job >= to) continue;
        ++asked;
        none += each.eta.p50_s ? 0 : 1;
        no_p90 += each.eta.p90_s ? 0 : 1;
        waited += each.waited_s.value_or(0);
        if (!each.waited_s) continue;
        if (each.eta.p50_s) {
            ++told;
            half += *each.waited_s <= *each.eta.p50_s + 1 ? 1 : 0;
        }
        if (each.eta.p90_s) {
            ++told90;
            nine += *each.waited_s <= *each.eta.p90_s + 1 ? 1 : 0;
        }
    }
    const auto share = [](std::size_t n, std::size_t of) {
        return of == 0 ? 0 : 100.0 * static_cast<double>(n) / static_cast<double>(of);
    };
    fmt::print(
        "{:9} {:5} runs had to wait, {:6.0f} s on average; P50 covers {:.1f} %, P90 {:.1f} %; no estimate {:.1f} %, "
        "no P90 {:.1f} %\n",
        part, asked, waited / static_cast<double>(std::max<std::size_t>(asked, 1)), share(half, told),
        share(nine, told90), share(none, asked), share(no_p90, asked));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string file = argc > 1 ? argv[1] : STOKER_SOURCE_DIR "/bench/run/philly/jobs.csv.gz";
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 9;
    const int every = argc > 3 ? std::max(1, std::atoi(argv[3])) : 1;
    const std::vector<Job> jobs = read_jobs(file);
    const auto began = std::chrono::steady_clock::now();
    Replay replay;
    for (int i = 0; i < nodes; ++i) replay.world.node(fmt::format("n{:02}", i), 8);
    std::size_t waits = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        replay.ends_until(jobs, replay.zero_us + jobs[i].at_us);
        replay.world.now_us = std::max(replay.world.now_us, replay.zero_us + jobs[i].at_us);
        RunSpec spec = run_testing::World::spec(jobs[i].gpus, 1);
        spec.name = jobs[i].name;
        const RunId run = replay.world.submit(std::move(spec));
        replay.job_of[run] = i;
        replay.pass(jobs);
        if (replay.world.state.find(run)->state != RunState::queued || waits++ % static_cast<std::size_t>(every) != 0)
            continue;
        const std::clock_t asking = std::clock();  // of the processor: others may share it
        Promise promise{.job = i,
                        .asked_us = replay.world.now_us,
                        .eta = eta(replay.world.state, run, replay.world.now_us),
                        .waited_s = {}};
        replay.ask_s.push_back(static_cast<double>(std::clock() - asking) / CLOCKS_PER_SEC);
        replay.promise_of[run] = replay.promises.size();
        replay.promises.push_back(std::move(promise));
    }
    replay.ends_until(jobs, std::int64_t{1} << 62);
    fmt::print("{} jobs on {} nodes of 8 GPUs in {:.0f} s\n", jobs.size(), nodes,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    report("tuned on", replay.promises, jobs.size() / 5, jobs.size() / 2);
    report("held out", replay.promises, jobs.size() / 2, jobs.size());
    std::sort(replay.ask_s.begin(), replay.ask_s.end());
    if (!replay.ask_s.empty())
        fmt::print("one question: median {:.1f} ms, longest {:.1f} ms\n", replay.ask_s[replay.ask_s.size() / 2] * 1e3,
                   replay.ask_s.back() * 1e3);
    return 0;
}
