// stoker edit: what waits, told otherwise.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/submission.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/run_file.h"
#include "app/session.h"
#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"
#include "run/spec/secrets.h"
#include "server/views_edit.h"
#include "workload/run_section.h"

namespace stoker {
namespace {

Result<std::optional<std::int64_t>> seconds_of(const Args& args, std::string_view name) {
    const auto given = args.get(name);
    if (!given) return std::optional<std::int64_t>();
    const auto seconds = parse_seconds(*given);
    if (!seconds)
        return Error(ErrorKind::invalid, fmt::format("--{}: {}", name, seconds.error().message()), {}, "90s, 30m, 4h");
    return std::optional(static_cast<std::int64_t>(seconds->v));
}

Result<std::map<std::string, std::string>> pairs_of(const Args& args, std::string_view name, bool from_here) {
    std::map<std::string, std::string> pairs;
    for (const std::string& word : args.all(name)) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos && from_here && !word.empty()) {
            const char* value = std::getenv(word.c_str());
            if (value == nullptr)
                return Error(ErrorKind::invalid,
                             fmt::format("--env {}: there is no such variable here", printable(word, 60)));
            pairs[word] = std::string(kSecretValue) + value;
            continue;
        }
        if (equals == std::string::npos || equals == 0)
            return Error(ErrorKind::invalid, fmt::format("--{} {}: expected KEY=VALUE", name, printable(word, 60)));
        pairs[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return pairs;
}

Result<api::EditBody> body_of(const Args& args) {
    api::EditBody body;
    body.name = args.get("name");
    body.gpu_model = args.get("gpu");
    if (args.has("chdir")) body.folder = std::filesystem::absolute(*args.get("chdir")).lexically_normal().string();
    if (!args.program.empty()) body.command = args.program;
    const auto whole = [&](const char* name, int low, int high) -> Result<std::optional<int>> {
        if (!args.has(name)) return std::optional<int>();
        TRY(const int value, args.whole_number(name, 0, low, high));
        return std::optional(value);
    };
    TRY(body.priority, whole("priority", -100, 100));
    TRY(body.ranks, whole("ranks", 1, kMostRanks));
    TRY(body.nodes, whole("nodes", 0, kMostRanks));
    TRY(body.gpus, whole("gpus", 0, 16));
    TRY(body.max_restarts, whole("restarts", 0, 1'000'000));
    if (args.has("times")) {
        TRY(body.times, args.whole_number("times", 1, 1, 1'000'000));
    }
    if (const auto words = args.get("class")) body.run_class = enum_named<RunClass>(*words);
    if (args.has("cpus")) {
        TRY(const double cpus, args.number("cpus", 1, 0, 100'000));
        body.cpu_milli = static_cast<std::int64_t>(cpus * 1000 + 0.5);
    }
    if (const auto memory = args.get("memory")) {
        const auto bytes = parse_bytes(*memory);
        if (!bytes) return Error(ErrorKind::invalid, "--memory: " + bytes.error().message(), {}, "16GiB of each rank");
        body.memory_bytes = static_cast<std::int64_t>(bytes->v);
    }
    TRY(body.timeout_s, seconds_of(args, "timeout"));
    TRY(body.lease_s, seconds_of(args, "lease"));
    TRY(body.queue_timeout_s, seconds_of(args, "queue-timeout"));
    if (const auto begin = args.get("begin")) {
        body.begin_at = "";
        if (*begin != "now") {
            TRY(const std::int64_t at, parse_begin(*begin, wall_clock_us()));
            body.begin_at = rfc3339(at);
        }
    }
    if (const auto every = args.get("every")) body.every = *every == "never" ? std::string() : *every;
    TRY(body.environment, pairs_of(args, "env", true));
    TRY(body.labels, pairs_of(args, "label", false));
    if (args.has("notify")) {
        RunSpec told;
        if (args.all("notify") != std::vector<std::string>{"nobody"}) TRY_VOID(set_notify(args, told));
        body.notify = told.notify.value_or(std::vector<NotifySpec>{});
    }
    return body;
}

Result<CommandOutput> run_edit(Session& session, const Args& args) {
    TRY(const api::EditBody body, body_of(args));
    const Json changes = codec::write(body);
    if (codec::encode(body) == codec::encode(api::EditBody{}))
        return Error(ErrorKind::invalid, "what is to be changed?", {},
                     "stoker edit r-7 --priority 10, or a new command: stoker edit r-7 -- python3 train.py");
    TRY(const auto client, connect(args));
    TRY(const RunId run, find_run(*client, args.positional[0]));
    TRY(const auto changed, post<api::Changed>(*client, "/api/v1/runs/" + run.text() + "/edit", changes));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(changed))};
    return CommandOutput{
        fmt::format("{} {}\n", run.text(), changed.repeated ? "is as it was: it said that already" : "is changed")};
}

}  // namespace

CliCommand edit_command() {
    CliCommand command{
        .name = "edit",
        .summary = "change a run that waits",
        .usage = "stoker edit RUN [options] [-- PROGRAM ARGUMENTS]",
        .description =
            "Until its first start; it keeps its number and its place in the queue, as far as its priority "
            "lets it. What is not named stays. A graph is edited by its steps. The journal keeps what was "
            "there before.",
        .examples = {"stoker edit r-7 --priority 10 --memory 32GiB", "stoker edit nightly --every never",
                     "stoker edit r-7 --begin now", "stoker edit r-7 -- python3 train.py --lr 1e-4"},
        .options =
            {{.name = "name", .letter = 'n', .value = "NAME", .help = "name of the run"},
             {.name = "ranks", .value = "N", .help = "so many processes, all of them or none"},
             {.name = "nodes", .value = "N", .help = "on so many nodes; 0: as few as possible"},
             {.name = "cpus", .value = "N", .help = "processors of each rank: 2, 0.5"},
             {.name = "memory", .value = "SIZE", .help = "memory of each rank: 16GiB"},
             {.name = "gpus", .value = "N", .help = "GPUs of each rank"},
             {.name = "gpu", .value = "MODEL", .help = "which: h100"},
             {.name = "chdir", .letter = 'C', .value = "DIR", .help = "working folder", .completes = "dir"},
             {.name = "env",
              .letter = 'e',
              .value = "KEY=VALUE",
              .help = "beside the environment that there is; KEY alone: with the value it has here, kept secret",
              .repeats = true},
             {.name = "label", .value = "KEY=VALUE", .help = "beside the labels that there are", .repeats = true},
             {.name = "begin", .value = "TIME", .help = "not before: 22:00, 2h, 2026-12-01T08:00; now: at once"},
             {.name = "every", .value = "TIME", .help = "again and again: 6h, or cron in UTC; never: only now"},
             {.name = "times", .value = "N", .help = "of a row: so many in all"},
             {.name = "notify",
              .value = "WHOM[,END]",
              .help = "in place of those who are told now; nobody: nobody",
              .repeats = true},
             {.name = "lease", .value = "TIME", .help = "checkpoint and stop after this long: 4h"},
             {.name = "timeout", .value = "TIME", .help = "all attempts together at most this long"},
             {.name = "queue-timeout", .value = "TIME", .help = "given up if it has not started by then"},
             {.name = "restarts", .value = "N", .help = "after failures of its own"},
             {.name = "class",
              .value = "CLASS",
              .help = "who goes first",
              .choices = {"guaranteed", "interactive", "spot"}},
             {.name = "priority", .value = "N", .help = "-100 to 100; a step weighs as much as an hour"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_edit,
        .completes = "run",
        .takes_program = true};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
