#include "app/client/meant_runs.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>

#include "app/client/typed.h"

namespace stoker {
namespace {

constexpr const char* kChoices[] = {"name", "state", "user"};
// Each answer waits for a commit, and the server commits together what has arrived together. Fewer runs than kEach for
// each connection are told sooner than another one is made.
constexpr std::size_t kMostConnections = 16, kEach = 32;

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
    using Told = Result<api::Changed>;
    std::vector<std::optional<Told>> answers(runs.size());
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> refused = false;
    const bool chosen = args.positional.empty();
    const auto ended_meanwhile = [&](const Told& answer) {
        return !answer && chosen && answer.error().kind() == ErrorKind::conflict;
    };
    const auto tell = [&](Client& by) {
        while (!refused) {
            const std::size_t i = next++;
            if (i >= runs.size()) return;
            answers[i] = post<api::Changed>(by, fmt::format("/api/v1/runs/{}/{}", runs[i].text(), action), Json(body));
            if (!*answers[i] && !ended_meanwhile(*answers[i])) refused = true;
        }
    };
    std::vector<std::jthread> others;
    for (std::size_t n = std::min(kMostConnections, runs.size() / kEach); n > 1; --n)
        others.emplace_back([&args, &tell] {
            if (const auto another = connect(args))
                tell(**another);  // one that cannot be had leaves its part to the rest
        });
    tell(client);
    others.clear();
    std::vector<ToldRun> told;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (!answers[i] || ended_meanwhile(*answers[i])) continue;  // none: told no more after one was refused
        TRY(auto changed, std::move(*answers[i]));
        told.push_back({runs[i], std::move(changed)});
    }
    return told;
}

CommandOutput no_runs_meant(const Session& session) {
    if (session.format != Format::text) return CommandOutput{dump(session, Json::array())};
    return CommandOutput{"no run that has not ended is meant\n"};
}

}  // namespace stoker
