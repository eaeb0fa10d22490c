// stoker run: from a file or a command line to its end, on this machine.
#include <fmt/format.h>

#include "app/client/again.h"
#include "app/client/client.h"
#include "app/client/explanation_text.h"
#include "app/client/follow.h"
#include "app/client/run_host.h"
#include "app/client/run_text.h"
#include "app/client/submission.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/gpu_options.h"
#include "app/session.h"
#include "base/text.h"
#include "io/process.h"
#include "observe/gpu/rank_gpus.h"

namespace stoker {

namespace {

// The first ctrl-c asks the run to stop and waits for it; the second leaves it to itself.
Result<api::RunView> stop_run(Session& session, Follower& follower, RunId id, StopSignal& stop) {
    fmt::print(stderr, "{:<8} stopping; ctrl-c again leaves it running\n", id.text());
    TRY_VOID(post<api::Changed>(follower.client(), fmt::format("/api/v1/runs/{}/cancel", id.text()), Json()));
    TRY(api::RunView view, follower.follow(id, &stop));
    if (!is_terminal(view.run.state))
        fmt::print(stderr, "{:<8} goes on: stoker logs -f {}\n", id.text(), id.text());
    else if (view.checkpoints && view.checkpoints->newest && !session.quiet)
        fmt::print(stderr, "{:<8} checkpoint of step {} is there: stoker run --resume {}\n", id.text(),
                   view.checkpoints->newest->step, id.text());
    return view;
}

// Other runs that the server of this process looked after.
void tell_left(Client& client, RunId mine) {
    const auto page = get<api::RunPage>(client, "/api/v1/runs?limit=100&state=running");
    if (!page) return;
    std::size_t others = 0;
    for (const api::RunItem& run : page->items) others += run.id == mine || run.parent == mine ? 0 : 1;
    if (others > 0)
        fmt::print(stderr, "{} other run{} on without a server: stoker up looks after {}\n", others,
                   others == 1 ? " goes" : "s go", others == 1 ? "it" : "them");
}

// What slowed it down, where something did; a server that does not know is none to wait for.
void tell_causes(Client& client, const api::RunView& view) {
    if (view.run.kind == RunKind::graph || view.attempts.empty()) return;
    const auto explained =
        get<api::ExplanationView>(client, fmt::format("/api/v1/runs/{}/explanation", view.run.id.text()));
    if (!explained) return;
    const std::string summary = explanation_summary(*explained);
    for (const std::string_view line : split_lines(summary)) fmt::print(stderr, "{:<8} {}\n", "", line);
}

// Written down under a key of its own, so that it is there once.
Result<RunId> submit_or_resume(RunHost& host, const Args& args, const LoadedRun* loaded) {
    if (loaded == nullptr) {
        TRY(const RunId old, find_run(host.client(), *args.get("resume")));
        HttpHeaders headers;
        headers.add("Idempotency-Key", new_key());
        TRY(const auto submitted,
            post<api::Submitted>(host.client(), fmt::format("/api/v1/runs/{}/resume", old.text()), Json(), headers));
        return submitted.run;
    }
    TRY(const auto submitted, submit(host.client(), loaded->spec, new_key()));
    return submitted.run;
}

Result<CommandOutput> run_run(Session& session, const Args& args) {
    std::optional<LoadedRun> loaded;
    if (args.has("again") && args.has("resume"))
        return Error(ErrorKind::invalid, "--again starts anew and --resume goes on: give one of them");
    if (args.has("again")) {
        TRY_VOID(check_again(args, "run"));
    } else if (!args.has("resume")) {
        TRY(loaded, load_submission(session, args));
    } else if (!args.positional.empty() || !args.program.empty()) {
        return Error(ErrorKind::invalid, "--resume goes on with what was submitted: no file or program beside it");
    }
    allow_gpus_of_ranks(gpu_root_options());
    // Before anything is started or made.
    for (const char* option : {"resume", "again"}) {
        const auto word = args.get(option);
        if (!word || run_named(*word)) continue;
        TRY(const auto look, connect_to_look(args));
        TRY_VOID(find_run(*look, *word));
    }
    StopSignal stop;
    TRY(const auto host, RunHost::open(session, args));
    if (args.has("again")) {
        TRY(loaded, load_again(session, host->client(), args));
    }
    if (args.has("prices") && !host->embedded() && !session.quiet)
        fmt::print(stderr, "{:<8} the server of this folder counts with its own price book (stoker up --prices)\n",
                   "warning");
    if (args.has("every") && host->embedded())
        return Error(ErrorKind::unsupported, "--every: without a server nobody is there when the next is due", {},
                     "stoker up, and stoker submit with --every");
    if (loaded) TRY_VOID(set_start(host->client(), args, loaded->spec));
    if (args.has("dry-run") && loaded) return dry_run(session, host->client(), *loaded);
    TRY(const RunId id, submit_or_resume(*host, args, loaded ? &*loaded : nullptr));
    // The server has looked at them, or it would have refused.
    if (loaded && loaded->spec.prerequisites && !session.quiet && session.format == Format::text)
        fmt::print(stderr, "{:<8} {}: ok\n", "check", checked_text(*loaded->spec.prerequisites));
    Follower follower(session, host->client(),
                      {.logs = session.format == Format::text,
                       .all_ranks = args.has("all-ranks"),
                       .may_wait = args.has("wait-for-nodes")},
                      [&] { return host->again(); });
    TRY(api::RunView view, follower.follow(id, &stop));
    if (follower.hopeless()) {
        const api::WhyView why = *view.why;
        TRY_VOID(host->client().post(fmt::format("/api/v1/runs/{}/cancel", id.text()), Json()));
        TRY(view, get<api::RunView>(host->client(), "/api/v1/runs/" + id.text()));
        if (session.format == Format::text) {
            fmt::print(stderr, "{:<8} cannot start here: {}\n", id.text(), why.text);
            for (const std::string& way : why.unblock) fmt::print(stderr, "{:<8} would start it: {}\n", "", way);
            if (!session.quiet)
                fmt::print(stderr, "{:<8} it was cancelled; --wait-for-nodes waits for a larger machine\n", "");
        }
    }
    if (follower.interrupted()) {
        TRY(view, stop_run(session, follower, id, stop));
    }
    if (host->embedded() && !session.quiet) tell_left(host->client(), id);
    std::string out;
    if (session.format != Format::text)
        out = dump(session, codec::write(view));
    else if (!session.quiet && is_terminal(view.run.state)) {
        fmt::print(stderr, "{:<8} {}\n", id.text(), outcome_text(view, measured_steps(host->client(), view)));
        tell_causes(host->client(), view);
    }
    host->close();
    return CommandOutput{out, exit_code_of(view.run)};
}

}  // namespace

CliCommand run_command() {
    CliCommand command{
        .name = "run",
        .summary = "run a workload file, a script or a program here, and watch it to its end",
        .usage = "stoker run [FILE | -- PROGRAM ARGUMENTS] [options]",
        .description =
            "FILE is a workload file with a run: section, an #SBATCH script, or a SkyPilot or dstack task; what "
            "cannot be had of those is told. Prerequisites are checked before anything is held; then every rank "
            "starts, or none. The log of rank 0 goes to stdout, states and progress to stderr.\n"
            "With a server on the folder (stoker up) it runs there; without one, this process is the server until "
            "the run has ended. ctrl-c stops the run: it gets TERM and writes a checkpoint if it can; --resume goes "
            "on from there. A run whose terminal is killed goes on; stoker ps finds it.\n"
            "Exit 0 when the run succeeded, 1 when it did not.",
        .examples = {"stoker run examples/tiny-gpt.yaml", "stoker run -- python3 train.py --lr 1e-4",
                     "stoker run --ranks 2 --lease 4h -- python3 train.py", "stoker run job.sbatch",
                     "stoker run --resume r-7", "stoker run examples/tiny-gpt.yaml --prices examples/prices.yaml",
                     "stoker run examples/pipeline.yaml --sweep lr=1e-4,3e-4"},
        .options = {{.name = "resume",
                     .value = "RUN",
                     .help = "submit an ended run again, from its last checkpoint",
                     .completes = "run"},
                    {.name = "again",
                     .value = "RUN",
                     .help = "submit the spec of an earlier run anew, as a new run from its start",
                     .completes = "run"},
                    {.name = "wait-for-nodes", .help = "wait also when no machine that there is could start it"},
                    {.name = "all-ranks", .help = "print the log of every rank, each line with its number"},
                    {.name = "prices",
                     .value = "FILE",
                     .help = "price book, without a server: what the run costs is predicted and counted",
                     .completes = "file"},
                    {.name = "virtual-nodes", .value = "N", .help = "offer this machine as N nodes, without a server"}},
        .max_positional = 1,
        .run = run_run,
        .completes = "file",
        .takes_program = true};
    for (const auto* list : {&override_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    return command;
}

}  // namespace stoker
