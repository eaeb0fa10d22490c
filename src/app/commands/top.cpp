// stoker top: what the ranks do now, beside the plan.
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/client/top_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/fleet_table.h"
#include "app/commands/gpu_options.h"
#include "app/commands/gpu_table.h"
#include "app/session.h"
#include "base/api_time.h"
#include "base/text.h"
#include "io/process.h"
#include "io/stop_signal.h"
#include "observe/gpu/gpu_watch.h"

namespace stoker {

namespace {

constexpr int kMostRuns = 50;
constexpr std::int64_t kBackS = 30;  // steps may be as long

Result<std::vector<TopRow>> look_at_runs(Client& client, const Args& args) {
    std::vector<RunId> runs;
    if (args.positional.empty()) {
        TRY(const auto page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?state=running,checkpointing&limit={}", kMostRuns)));
        for (const api::RunItem& run : page.items)
            if (run.kind != RunKind::graph) runs.push_back(run.id);
    } else {
        for (const std::string& word : args.positional) {
            TRY(const RunId id, find_run(client, word));
            runs.push_back(id);
        }
    }
    std::vector<TopRow> rows;
    for (const RunId id : runs) {
        TRY(const auto view, get<api::RunView>(client, "/api/v1/runs/" + id.text()));
        // Of one that has ended: its last seconds.
        const auto ended = parse_rfc3339(view.run.ended_at);
        const std::int64_t to_us = ended ? *ended + 1'000'000 : wall_clock_us() + 1'000'000;
        TRY(const auto page,
            get<api::SeriesPage>(
                client, fmt::format("/api/v1/runs/{}/series?metric={}&from={}&to={}&max_points={}", id.text(),
                                    join(top_measures(), ","), url_encoded(rfc3339(to_us - kBackS * 1'000'000)),
                                    url_encoded(rfc3339(to_us)), kBackS)));
        for (TopRow& row : top_rows(view, page)) rows.push_back(std::move(row));
    }
    return rows;
}

// GPUs of this machine; no server is asked.
Result<CommandOutput> top_gpus(Session& session, const Args& args, int every) {
    if (!args.positional.empty())
        return Error(ErrorKind::invalid, "stoker top --gpus shows this machine, and takes no run", {},
                     "stoker top RUN shows its ranks; stoker gpu processes says whose processes use which GPU");
    GpuOwners owners;
    if (!session.interactive || session.format != Format::text || args.has("once")) {
        TRY(const GpuView view, look_at_gpus_once(gpu_root_options(), 20));
        owners.refresh(gpu_pids(view));
        if (session.format != Format::text) return CommandOutput{dump(session, gpu_json(view, owners))};
        return CommandOutput{gpu_table(view, owners, session.style)};
    }
    StopSignal stop;
    GpuWatch watch(gpu_root_options());
    while (true) {
        const GpuView view = watch.look();
        owners.refresh(gpu_pids(view));
        TRY_VOID(print_now("\x1b[H\x1b[2J" + gpu_table(view, owners, session.style) + "\n" +
                           gpu_process_table(view, owners, session.style) +
                           session.style.dim(fmt::format("every {} s; ctrl-c ends", every)) + "\n"));
        // The driver takes a moment to begin: the first look is soon followed by another.
        if (stop.wait_for(view.down == NvmlDown::starting ? 0.2 : every)) return CommandOutput{};
    }
}

// GPUs of other machines, as their agents tell the server.
Result<std::string> look_at_fleet(Session& session, const Args& args, Client& client) {
    if (args.positional.empty()) {
        TRY(const auto fleet, get<api::FleetGpus>(client, "/api/v1/gpus"));
        return session.format == Format::text ? fleet_table(fleet, session.style) : dump(session, codec::write(fleet));
    }
    std::string text;
    Json nodes = Json::array();
    for (const std::string& name : args.positional) {
        TRY(const auto node, get<api::NodeGpusView>(client, fmt::format("/api/v1/nodes/{}/gpus", url_encoded(name))));
        text += (text.empty() ? "" : "\n") + fleet_node_text(node, session.style);
        nodes.push(codec::write(node));
    }
    return session.format == Format::text ? text : dump(session, nodes);
}

Result<CommandOutput> top_fleet(Session& session, const Args& args, int every) {
    TRY(const auto client, connect(args));
    StopSignal stop;
    Reconnect reconnect(args, session.quiet, &stop);
    Client* at = client.get();
    while (true) {
        auto text = look_at_fleet(session, args, *at);
        if (!session.interactive || session.format != Format::text || args.has("once")) {
            TRY(std::string told, std::move(text));
            return CommandOutput{std::move(told)};
        }
        if (!text && (text.error().kind() == ErrorKind::unavailable || text.error().kind() == ErrorKind::timed_out)) {
            TRY(at, reconnect());
            text = look_at_fleet(session, args, *at);
        }
        TRY(const std::string told, std::move(text));
        TRY_VOID(print_now("\x1b[H\x1b[2J" + told + session.style.dim(fmt::format("every {} s; ctrl-c ends", every)) +
                           "\n"));
        if (stop.wait_for(every)) return CommandOutput{};
    }
}

Result<CommandOutput> run_top(Session& session, const Args& args) {
    TRY(const int every, args.whole_number("interval", 2, 1, 3600));
    if (args.has("gpus") && args.has("fleet"))
        return Error(ErrorKind::invalid, "--gpus shows this machine and --fleet all others", {}, "give one of them");
    if (args.has("fleet")) return top_fleet(session, args, every);
    if (args.has("gpus")) return top_gpus(session, args, every);
    TRY(const auto client, connect_to_look(args));
    const bool live = session.interactive && session.format == Format::text && !args.has("once") && !client->offline();
    if (!live) {
        TRY(const auto rows, look_at_runs(*client, args));
        if (session.format != Format::text) return CommandOutput{dump(session, top_json(rows))};
        return CommandOutput{top_text(rows, session.style)};
    }
    StopSignal stop;
    Reconnect reconnect(args, session.quiet, &stop);
    Client* at = client.get();
    while (true) {
        auto looked = look_at_runs(*at, args);
        if (!looked &&
            (looked.error().kind() == ErrorKind::unavailable || looked.error().kind() == ErrorKind::timed_out)) {
            TRY(at, reconnect());
            looked = look_at_runs(*at, args);
        }
        TRY(const auto rows, std::move(looked));
        // Home, the table, and nothing of what was below: the screen does not flicker.
        TRY_VOID(print_now("\x1b[H\x1b[2J" + top_text(rows, session.style) +
                           session.style.dim(fmt::format("every {} s; ctrl-c ends", every)) + "\n"));
        if (stop.wait_for(every)) return CommandOutput{};
    }
}

}  // namespace

CliCommand top_command() {
    CliCommand command{
        .name = "top",
        .summary = "what the ranks of the runs do now, beside the plan",
        .usage = "stoker top [RUN... | --gpus | --fleet [NODE...]] [options]",
        .description =
            "Step time against the plan, samples and tokens per second, processors, memory, and which part of a step "
            "waits for input and goes into collectives: a row for each rank, as means of the last five seconds that "
            "were measured. On a terminal it goes on until ctrl-c; elsewhere, with -o json and with --once it is "
            "printed once. With --gpus: the GPUs of this machine, with who uses them, what holds their clocks down and "
            "what is wrong with them. With --fleet: those of all nodes whose agents tell the server (stoker agent "
            "--server), a row each, and board by board of the nodes that are named.",
        .examples = {"stoker top", "stoker top r-7 --once", "stoker top --gpus", "stoker top --fleet",
                     "stoker top --fleet gpu-node-7", "stoker top -o json | jq '.[].step_s'"},
        .options = {{.name = "once", .help = "print it once"},
                    {.name = "gpus", .help = "the GPUs of this machine instead of runs"},
                    {.name = "fleet", .help = "the GPUs of other machines, as their agents tell"},
                    {.name = "interval", .value = "SECONDS", .help = "between looks (2)"}},
        .max_positional = 20,
        .run = run_top,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
