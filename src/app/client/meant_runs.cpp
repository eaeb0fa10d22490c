#include "app/client/meant_runs.h"

#include <fmt/format.h>

#include "app/client/typed.h"

namespace stoker {
namespace {

constexpr const char* kChoices[] = {"name", "state", "user"};

}  // namespace

const std::vector<OptionSpec>& meant_runs_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "all", .help = "every run that has not ended"},
        {.name = "name", .value = "NAME", .help = "every one of this name"},
        {.name = "state", .value = "STATE", .help = "every one in this state: queued, running"},
        {.name = "user", .value = "USER", .help = "every one of this user"}};
    return options;
}

Status check_meant_runs(const Args& args, std::string_view verb) {
    const bool chosen = args.has("all") || args.has("name") || args.has("state") || args.has("user");
    if (chosen == args.positional.empty()) return done();
    return Error(ErrorKind::invalid,
                 chosen ? std::string("runs and --all, --name, --state or --user are both given")
                        : fmt::format("which runs are to {}?", verb),
                 {}, "name them, or --all, --name NAME, --state STATE, --user USER");
}

Result<std::vector<RunId>> meant_runs(Client& client, const Args& args) {
    std::vector<RunId> runs;
    std::string query;
    for (const char* option : kChoices)
        if (const auto value = args.get(option)) query += fmt::format("&{}={}", option, url_encoded(*value));
    const bool chosen = args.positional.empty();
    for (const std::string& word : args.positional) {
        TRY(const RunId id, find_run(client, word));
        runs.push_back(id);
    }
    std::string cursor;
    do {
        if (!chosen) break;
        TRY(const auto page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?limit=500{}{}{}", query,
                                                  cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        for (const api::RunItem& run : page.items)
            // A step ends with its graph.
            if (!is_terminal(run.state) && !run.parent) runs.push_back(run.id);
        cursor = page.next_cursor;
    } while (!cursor.empty());
    return runs;
}

Result<std::vector<ToldRun>> tell_runs(Client& client, const Args& args, const std::vector<RunId>& runs,
                                       std::string_view action, const Json& body) {
    std::vector<ToldRun> told;
    for (const RunId id : runs) {
        auto answer = post<api::Changed>(client, fmt::format("/api/v1/runs/{}/{}", id.text(), action), Json(body));
        if (!answer && args.positional.empty() && answer.error().kind() == ErrorKind::conflict) continue;
        TRY(auto changed, std::move(answer));
        told.push_back({id, std::move(changed)});
    }
    return told;
}

CommandOutput no_runs_meant(const Session& session) {
    if (session.format != Format::text) return CommandOutput{dump(session, Json::array())};
    return CommandOutput{"no run that has not ended is meant\n"};
}

}  // namespace stoker
