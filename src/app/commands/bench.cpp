// stoker bench: what this machine has and does, measured, kept for plans that name cloud: this-machine; or a server
// under load (bench_serve.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/commands/bench_serve.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "base/text.h"
#include "doctor/framework_speed.h"
#include "doctor/this_machine.h"
#include "io/terminal.h"

namespace stoker {

namespace {

std::string spread_text(const Spread& s, double unit, std::string_view name) {
    return fmt::format("{} {} (min {}, median {}, of {} runs)", number_text(s.max / unit), name,
                       number_text(s.min / unit), number_text(s.median / unit), s.repeats);
}

Card machine_card(const Machine& machine, const MachineSpeed& speed) {
    Card card{machine.model.empty() ? "this machine" : machine.model, {}};
    card.add("model", "", machine.model);
    card.add("architecture", "architecture", machine.architecture);
    card.add("physical_cores", "cores", machine.physical_cores,
             fmt::format("{} physical, {} logical, {} socket{}", machine.physical_cores, machine.logical_cores,
                         machine.sockets, machine.sockets == 1 ? "" : "s"));
    card.add("logical_cores", "", machine.logical_cores);
    card.add("usable_cores", "usable by this process", machine.usable_cores(),
             fmt::format("{} (affinity {}{})", machine.usable_cores(), machine.allowed_cores,
                         machine.cpu_limit ? fmt::format(", cgroup limit {:g}", *machine.cpu_limit) : ""));
    card.add("mhz", "clock", machine.mhz > 0 ? Json(machine.mhz) : Json(),
             machine.mhz > 0 ? fmt::format("{} MHz", number_text(machine.mhz)) : "");
    card.add("extensions", "instructions", machine.extensions.empty() ? Json() : Json(join(machine.extensions, " ")));
    card.add("memory_bytes", "memory", machine.usable_memory().v,
             fmt::format("{} GiB usable of {}", number_text(machine.usable_memory().v / kGiB),
                         number_text(machine.memory.v / kGiB)));
    card.add(
        "last_level_cache_bytes", "last-level cache",
        machine.last_level_cache.v > 0 ? Json(machine.last_level_cache.v) : Json(),
        machine.last_level_cache.v > 0 ? fmt::format("{} MiB", number_text(machine.last_level_cache.v / kMiB)) : "");
    card.add("speed", "", speed_json(speed));
    card.add("best_matmul_flops_per_second", "fp32 matmul, all cores", speed.matmul_flops.max,
             spread_text(speed.matmul_flops, 1e9, "GFLOP/s") +
                 fmt::format(", {} on {} threads", speed.kernel, speed.threads));
    card.add("best_triad_bytes_per_second", "memory, triad", speed.triad_bytes.max,
             spread_text(speed.triad_bytes, 1e9, "GB/s"));
    return card;
}

// What a training on these cores meets: the range over the measured shapes, and one line for each number of ranks.
void add_framework(const FrameworkSpeed& speed, Card& card) {
    card.add("framework", "framework", framework_json(speed), fmt::format("{} of {}", speed.framework, speed.python));
    std::map<std::pair<std::string, int>, std::pair<double, double>> rates;  // lowest, highest
    for (const MatmulRate& m : speed.matmul) {
        const auto [at, first] = rates.try_emplace({m.precision, m.threads}, m.flops_per_second, m.flops_per_second);
        at->second.first = std::min(at->second.first, m.flops_per_second);
        at->second.second = std::max(at->second.second, m.flops_per_second);
    }
    for (const auto& [what, range] : rates)
        card.add(
            "", fmt::format("{}, {} thread{}", what.first, what.second, what.second == 1 ? "" : "s"), Json(),
            fmt::format("{} to {} GFLOP/s by shape", number_text(range.first / 1e9), number_text(range.second / 1e9)));
    card.add("", "an operator", Json(),
             fmt::format("{} us from Python to its kernel", number_text(1e6 * speed.operator_s)));
    card.add("", "memory, one thread", Json(), number_text(speed.memory_bytes_per_second / 1e9) + " GB/s added");
    const auto span = [&](const char* what, const auto& costs, const char* of) {
        if (costs.empty()) return;
        const auto [low, high] = std::minmax_element(
            costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
        card.add("", what, Json(),
                 fmt::format("{} to {} ns {}", number_text(1e9 * low->seconds), number_text(1e9 * high->seconds), of));
    };
    span("attention", speed.attention, "a score, by sequence and head");
    span("beside the products", speed.elementwise, "a token and hidden element, by size");
    if (speed.optimizer_s > 0) card.add("", "AdamW", Json(), number_text(1e9 * speed.optimizer_s) + " ns a parameter");
    for (const TogetherRate& t : speed.together) {
        if (t.ranks < 2) continue;
        const RankRates rates_here = rates_of_rank(speed, "fp32", t.ranks, 1, {.hidden = 256, .tokens = 1024});
        card.add("", fmt::format("{} ranks at once", t.ranks), Json(),
                 fmt::format("{:.0f} % of a rate alone, all-reduce {} GB/s and {} us", 100 * t.share_of_alone,
                             number_text(rates_here.loopback_bytes_per_second / 1e9),
                             number_text(2e6 * rates_here.loopback_latency_s)));
    }
}

Result<CommandOutput> run_bench(Session& session, const Args& args) {
    if (args.positional.front() == "serve") return bench_serve(session, args);
    if (args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("stoker bench {} takes nothing more", args.positional.front()), {},
                     "stoker bench cpu, or stoker bench serve URL");
    const Machine machine = discover_machine();
    const bool quick = args.has("quick"), framework = args.has("framework") || args.has("python");
    ProgressLine progress(!session.quiet);
    progress.update(-1, quick ? "measuring for about 2 seconds" : "measuring for up to 20 seconds");
    const MachineSpeed speed = measure_machine(machine, quick);
    std::string kept;
    if (!args.has("no-save")) {
        TRY(kept, this_machine_path());
        TRY_VOID(save_speed(kept, machine, speed, session.today));
    }
    Card card = machine_card(machine, speed);
    if (framework) {
        progress.update(-1, quick ? "measuring PyTorch for about 15 seconds" : "measuring PyTorch for about a minute");
        TRY(const FrameworkSpeed measured,
            measure_framework(args.get_or("python", "/usr/bin/python3"), quick, session.today));
        if (!kept.empty()) TRY_VOID(save_framework(kept, machine, measured));
        add_framework(measured, card);
    }
    progress.clear();
    if (!kept.empty()) card.add("kept", "kept in", kept);
    if (session.format != Format::text) return CommandOutput{dump(session, card.json()), 0};
    const bool busy = speed.matmul_flops.min < 0.8 * speed.matmul_flops.max;
    std::string text = card.text(session.style);
    if (busy)
        text += "  " + session.style.warn("!") +
                " the runs differ by more than 20 %: the machine was busy, measure again when it is quiet\n";
    return CommandOutput{text + "  " + session.style.dim("used by plans with  where: {cloud: this-machine}") + "\n", 0};
}

}  // namespace

CliCommand bench_command() {
    CliCommand command{
        .name = "bench",
        .summary = "measure this machine for plans that run on it, or a server of models under load",
        .usage =
            "stoker bench cpu [--quick] [--framework]\n  stoker bench serve URL [--rate R | --concurrency N] [--plan "
            "FILE]",
        .description =
            "cpu measures an fp32 matrix product and memory bandwidth on all usable cores, prints them with their "
            "spread, and keeps them\n"
            "per processor in $XDG_CACHE_HOME/stoker/this-machine.json (or ~/.cache) for workloads with where: "
            "{cloud: this-machine}.\n"
            "--framework measures what PyTorch makes of them as well: products by shape, precision and threads, "
            "the cost of an operator,\n"
            "memory, gloo's all-reduce by size and ranks, and what ranks take from each other.\n"
            "\n"
            "serve puts load on any OpenAI-compatible server and prints what its clients met: time to first token, "
            "time per output token,\n"
            "gaps, throughput, and with --goal the requests within it. In an open loop each request is timed from when "
            "it was due.\n"
            "--plan takes load and lengths from a workload file and holds the result against what was planned. Exit 1 "
            "when some requests\n"
            "failed, 3 when all did.",
        .examples =
            {"stoker bench cpu", "stoker bench cpu --framework", "stoker bench cpu --quick -o json",
             "stoker bench serve http://127.0.0.1:8080 --rate 4 --goal ttft=500ms,tpot=50ms",
             "stoker bench serve http://127.0.0.1:8080 --plan endpoint.yaml --row row.csv --cell engine=llama.cpp"},
        .options = {{.name = "quick", .help = "cpu: 2 seconds instead of up to 20; PyTorch 15 instead of 60"},
                    {.name = "framework", .help = "cpu: PyTorch as well"},
                    {.name = "python",
                     .value = "PATH",
                     .help = "cpu: the Python whose PyTorch is measured (/usr/bin/python3); implies --framework",
                     .completes = "file"},
                    {.name = "no-save", .help = "cpu: do not keep the result"}},
        .min_positional = 1,
        .max_positional = 2,
        .subcommands = {"cpu", "serve"},
        .run = run_bench};
    command.options.insert(command.options.end(), bench_serve_options().begin(), bench_serve_options().end());
    return command;
}

}  // namespace stoker
