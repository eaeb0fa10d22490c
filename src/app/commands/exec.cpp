// stoker exec: a program, or a shell, beside a run.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/text.h"
#include "io/machine/beside_process.h"
#include "server/views.h"

namespace stoker {
namespace {

constexpr std::chrono::seconds kRankPatience{10};

// With what such an engine is asked itself. Of several only the name is known, and so is each way.
std::string way_on(const api::VersionView& version, const api::RunView& view, const api::RankView& rank, int number) {
    const api::AttemptView& attempt = view.attempts.back();
    const int per_pod = std::max(1, view.spec.nodes > 0 ? view.spec.ranks / view.spec.nodes : 1);
    const std::string of_slurm = "squeue --me names its job: srun --jobid JOB --overlap --pty bash";
    const std::string of_kubernetes = fmt::format(
        "kubectl exec -it $(kubectl get pods -o name -l "
        "stoker/operation={},batch.kubernetes.io/job-completion-index={}) "
        "-c rank-{} -- sh",
        attempt.operation, number / per_pod, number % per_pod);
    if (rank.node.find('@') != std::string::npos)
        return fmt::format("where {} is a Kubernetes: {}; where it is a Slurm: {}", printable(attempt.engine, 60),
                           of_kubernetes, of_slurm);
    if (version.queues && version.engine.find("lurm") != std::string::npos) return of_slurm;
    if (version.queues && version.engine.find("ubernetes") != std::string::npos) return of_kubernetes;
    return rank.node.empty() ? "run it on the machine of the server"
                             : fmt::format("run it on {}, where the server is", printable(rank.node, 80));
}

Result<api::RankView> rank_of(const api::RunView& view, int number) {
    const std::string run = view.run.id.text();
    if (!view.steps.empty())
        return Error(ErrorKind::unsupported, run + " is a graph: its steps run", {}, "stoker describe " + run);
    if (view.attempts.empty() || is_terminal(view.run.state) || view.attempts.back().state == AttemptState::ended)
        return Error(ErrorKind::conflict, fmt::format("{} is {}: nothing of it runs", run, to_string(view.run.state)));
    const auto& ranks = view.attempts.back().ranks;
    if (static_cast<std::size_t>(number) >= ranks.size())
        return Error(ErrorKind::invalid, fmt::format("{} has {} rank{}, and none is {}", run, ranks.size(),
                                                     ranks.size() == 1 ? "" : "s", number));
    const api::RankView& rank = ranks[static_cast<std::size_t>(number)];
    if (rank.ended || !rank.started)
        return Error(ErrorKind::conflict,
                     fmt::format("rank {} of {} {}", number, run, rank.ended ? "has ended" : "has not started yet"));
    return rank;
}

bool is_about_to_start(const api::RunView& view, int number) {
    if (!view.steps.empty() || view.attempts.empty() || is_terminal(view.run.state)) return false;
    const api::AttemptView& attempt = view.attempts.back();
    const auto at = static_cast<std::size_t>(number);
    return attempt.state != AttemptState::ended && at < attempt.ranks.size() && !attempt.ranks[at].started &&
           !attempt.ranks[at].ended;
}

Result<CommandOutput> run_exec(Session& session, const Args& args) {
    if (session.format != Format::text)
        return Error(ErrorKind::unsupported, "what a program prints is not ours to format", {}, "leave out -o");
    TRY(const int number, args.whole_number("rank", 0, 0, 100'000));
    TRY(const auto client, connect(args));
    TRY(const RunId run, find_run(*client, args.positional[0]));
    // A run counts as running a moment before its ranks are known.
    const auto until = std::chrono::steady_clock::now() + kRankPatience;
    api::RunView view;
    for (;;) {
        TRY(view, get<api::RunView>(*client, "/api/v1/runs/" + run.text()));
        if (!is_about_to_start(view, number) || std::chrono::steady_clock::now() > until) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    TRY(const api::RankView rank, rank_of(view, number));
    const auto pid = static_cast<pid_t>(rank.pid);
    // A number may be another's by now, or of another machine: only what says that it is this rank is. In a pod a rank
    // is the first process; here that is none's.
    auto environment = pid > 1 ? environment_of(pid)
                               : Result<std::vector<std::string>>(Error(ErrorKind::not_found, "it has no process"));
    if (!environment && environment.error().kind() == ErrorKind::denied) return environment.error();
    const auto has = [&](const std::string& entry) {
        return environment && std::find(environment->begin(), environment->end(), entry) != environment->end();
    };
    if (!has("STOKER_RUN=" + run.text())) {
        TRY(const auto version, get<api::VersionView>(*client, "/api/v1/version"));
        return Error(ErrorKind::unsupported,
                     fmt::format("rank {} of {} is no process of this machine", number, run.text()), {},
                     way_on(version, view, rank, number));
    }
    std::vector<std::string> arguments = args.program;
    const char* terminal = std::getenv("TERM");
    if (terminal != nullptr && ::isatty(0) == 1) {
        std::erase_if(*environment, [](const std::string& each) { return each.starts_with("TERM="); });
        environment->push_back(std::string("TERM=") + terminal);
    }
    if (arguments.empty()) arguments = {"/bin/sh", "-i"};
    TRY(const BesideResult result, run_beside(pid, arguments, *environment));
    if (!result.note.empty() && !session.quiet) fmt::print(stderr, "warning: {}\n", result.note);
    if (result.exit_code != 0 && !session.quiet) {
        fmt::print(stderr, "{} left with {}\n", arguments[0], result.exit_code);
        if (result.exit_code == 128 + 9) fmt::print(stderr, "a run that ends takes along what runs beside it\n");
    }
    return CommandOutput{"", result.exit_code};
}

}  // namespace

CliCommand exec_command() {
    CliCommand command{
        .name = "exec",
        .summary = "run a program, or a shell, beside a run",
        .usage = "stoker exec RUN [--rank N] [-- PROGRAM ARGUMENTS]",
        .description =
            "In the folder, with the environment, inside the image, the namespaces and the limits of one of its ranks, "
            "on this terminal. Without a program: a shell. It ends with the run. On the machine of the server, as the "
            "user of the server or root; where Slurm or Kubernetes runs the work, it says which of their commands "
            "does it. The exit code is the program's; what Stoker itself has to say comes with 2 or 3 and a line "
            "that begins with error.",
        .examples = {"stoker exec r-7", "stoker exec r-7 -- nvidia-smi", "stoker exec nightly --rank 3 -- py-spy dump"},
        .options = {{.name = "rank", .value = "N", .help = "beside this rank (0)"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_exec,
        .completes = "run",
        .takes_program = true};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
