// stoker ps: the runs that go on, and those that ended lately.
#include <algorithm>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/api_time.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"

namespace stoker {

namespace {

constexpr double kLatelyS = 3600;

std::string query_of(const Args& args) {
    std::string query;
    for (const char* name : {"state", "name", "user"})
        if (const auto value = args.get(name)) query += fmt::format("&{}={}", name, url_encoded(*value));
    return query;
}

// Runs of every state that is not an end, and the newest of the others, by page.
Result<std::vector<api::RunItem>> list_runs(Client& client, const Args& args, std::int64_t& now_us, std::size_t most) {
    std::vector<api::RunItem> runs;
    const bool all = args.has("all") || args.has("state") || args.has("name") || args.has("user");
    std::string cursor;
    do {
        TRY(const api::RunPage page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?limit=500{}{}{}", query_of(args),
                                                  cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        now_us = now_of(page.now, client.offline());
        for (const api::RunItem& run : page.items) {
            const auto ended = parse_rfc3339(run.ended_at);
            const bool lately = !ended || static_cast<double>(now_us - *ended) / 1e6 < kLatelyS;
            if (all || !is_terminal(run.state) || lately) runs.push_back(run);
            if (runs.size() >= most) return runs;
        }
        cursor = page.next_cursor;
    } while (!cursor.empty());
    return runs;
}

std::string note_of(const api::RunItem& run) {
    if (is_terminal(run.state)) return run.state == RunState::succeeded ? "" : std::string(to_string(run.cause));
    if (run.held) return "held";
    const bool waits = run.state == RunState::queued || run.state == RunState::requeued || run.waits_at_engine;
    if (!waits) return "";
    if (!run.detail.empty()) return printable(run.detail, 60);
    return run.cause == Cause::none || run.cause == Cause::ok ? "" : std::string(to_string(run.cause));
}

Result<CommandOutput> run_ps(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const int most, args.whole_number("limit", 200, 1, 100'000));
    std::int64_t now_us = 0;
    TRY(const std::vector<api::RunItem> runs, list_runs(*client, args, now_us, static_cast<std::size_t>(most)));
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const api::RunItem& run : runs) list.push(codec::write(run));
        return CommandOutput{dump(session, list)};
    }
    std::string text;
    if (client->offline())
        text = session.style.dim("no server is running: as the journal in " + client->folder() + " has it") + "\n";
    if (runs.empty())
        return CommandOutput{text + (args.has("all") ? "no runs\n" : "no runs now (--all lists those that ended)\n")};
    std::vector<std::vector<std::string>> rows;
    // Where there is more than one.
    const bool engines =
        std::any_of(runs.begin(), runs.end(), [](const api::RunItem& run) { return !run.engine.empty(); });
    for (const api::RunItem& run : runs) {
        rows.push_back({run.id.text(), cut(printable(run.name), 32), state_text(session.style, run),
                        run.gpus > 0 ? fmt::format("{} x {} GPU", run.ranks, run.gpus / std::max(1, run.ranks))
                                     : std::to_string(run.ranks),
                        run.attempts > 1 ? std::to_string(run.attempts) : "", ago_text(run.submitted_at, now_us),
                        run.used_s > 0 ? format_seconds(Seconds(run.used_s)) : "", note_of(run)});
        if (engines) rows.back().insert(rows.back().begin() + 3, run.engine.empty() ? "-" : printable(run.engine));
    }
    std::vector<Column> columns{
        {"run"}, {"name"}, {"state"}, {"ranks"}, {"tries", Align::right}, {"age", Align::right}, {"ran", Align::right},
        {""}};
    if (engines) columns.insert(columns.begin() + 3, {"engine"});
    text += table_text(session.style, columns, rows, 0);
    if (runs.size() == static_cast<std::size_t>(most)) text += fmt::format("the first {}; --limit lists more\n", most);
    return CommandOutput{text};
}

}  // namespace

CliCommand ps_command() {
    CliCommand command{
        .name = "ps",
        .summary = "runs: what goes on, what waits, what ended lately",
        .usage = "stoker ps [options]",
        .description =
            "Lists the runs that have not ended and those that ended within the last hour, newest first. --all lists "
            "every one that is remembered.\n"
            "Without a server the journal of the folder is read: what it says is as of its last record.",
        .examples = {"stoker ps", "stoker ps --all --state failed", "stoker ps -o json | jq '.[].id'"},
        .options = {{.name = "all", .letter = 'a', .help = "also runs that ended longer ago"},
                    {.name = "state",
                     .value = "STATE",
                     .help = "only these",
                     .choices = {"queued", "starting", "running", "checkpointing", "requeued", "cancelling",
                                 "succeeded", "failed", "cancelled", "expired"}},
                    {.name = "name", .value = "NAME", .help = "only runs of this name"},
                    {.name = "user", .value = "USER", .help = "only runs of this user"},
                    {.name = "limit", .value = "N", .help = "at most so many (200)"}},
        .run = run_ps};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
