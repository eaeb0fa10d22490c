// stoker history: the runs of one name or of one file, and what each was told differently from the one before.
#include <filesystem>

#include <fmt/format.h>

#include "app/client/again.h"
#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/spec_differences.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "server/views.h"

namespace stoker {

namespace {

constexpr int kMostHistory = 500;          // runs that are shown
constexpr std::size_t kMostLooked = 2000;  // runs that are looked at for one file
constexpr std::size_t kShownDigits = 10, kShownChanges = 44, kShownValue = 60;

// Runs that were read from a file of that name, wherever it was then.
bool is_of_file(const api::RunView& view, const std::string& file) {
    if (!view.spec.source) return false;
    const std::filesystem::path theirs(view.spec.source->file), wanted(file);
    if (theirs == wanted) return true;
    return theirs.filename() == wanted.filename() && (theirs.is_relative() || wanted.is_relative());
}

// Newest first, one more than are shown where there is one: the last is held against it.
Result<std::vector<api::RunView>> runs_of(Client& client, const std::string& what, bool file, std::size_t most) {
    std::vector<api::RunView> views;
    std::string cursor;
    std::size_t looked = 0;
    do {
        TRY(const auto page,
            get<api::RunPage>(client,
                              fmt::format("/api/v1/runs?limit={}{}{}{}", std::min<std::size_t>(500, file ? 500 : most),
                                          file ? "" : "&name=" + url_encoded(what),
                                          cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        for (const api::RunItem& item : page.items) {
            if (file && item.parent) continue;  // its graph is the run of the file
            if (++looked > kMostLooked) return views;
            TRY(api::RunView view, get<api::RunView>(client, "/api/v1/runs/" + item.id.text()));
            if (file && !is_of_file(view, what)) continue;
            views.push_back(std::move(view));
            if (views.size() == most) return views;
        }
        cursor = page.next_cursor;
    } while (!cursor.empty());
    return views;
}

std::string commit_of(const api::RunView& view) {
    const SourceSpec source = view.spec.source.value_or(SourceSpec{});
    if (source.commit.empty()) return "-";
    return source.commit.substr(0, kShownDigits) + (source.dirty_sha256.empty() ? "" : "+");
}

std::string shown_value(const std::string& json) {
    return json.empty() ? "-" : cut(printable(json, 400), kShownValue);
}

std::string again_of(const api::RunView& view) {
    const auto found = view.spec.labels.find(kAgainLabel);
    return found == view.spec.labels.end() ? "" : found->second;
}

Json history_json(const api::RunView& view, const std::vector<Difference>& changed, bool first) {
    const SourceSpec source = view.spec.source.value_or(SourceSpec{});
    Json item = Json::object()
                    .set("run", view.run.id.text())
                    .set("name", view.run.name)
                    .set("submitted_at", view.run.submitted_at)
                    .set("user", view.run.user)
                    .set("state", to_string(view.run.state))
                    .set("digest", view.digest)
                    .set("commit", source.commit)
                    .set("dirty_sha256", source.dirty_sha256);
    if (const std::string from = again_of(view); !from.empty()) item.set("again_from", from);
    if (first) return item.set("changed", Json());
    Json list = Json::array();
    for (const Difference& each : changed)
        list.push(Json::object().set("path", each.path).set("after", each.values[0]).set("before", each.values[1]));
    return item.set("changed", std::move(list));
}

Result<CommandOutput> run_history(Session& session, const Args& args) {
    const std::string& what = args.positional[0];
    TRY(const int most, args.whole_number("limit", 20, 1, kMostHistory));
    std::error_code code;
    const bool file = std::filesystem::is_regular_file(what, code);
    TRY(const auto client, connect_to_look(args));
    TRY(const auto views, runs_of(*client, what, file, static_cast<std::size_t>(most) + 1));
    if (views.empty())
        return Error(ErrorKind::not_found,
                     file ? "no run was read from a file " + printable(what, 100)
                          : "there is no run named " + printable(what, 100),
                     {}, "stoker ps --all lists the runs and their names");
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> details;
    const std::size_t shown = std::min(views.size(), static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < shown; ++i) {
        const api::RunView& view = views[i];
        const bool first = i + 1 == views.size();
        std::vector<Difference> changed;
        if (!first) changed = spec_differences({&view.spec, &views[i + 1].spec});
        if (session.format != Format::text) {
            list.push(history_json(view, changed, first));
            continue;
        }
        std::vector<std::string> paths;
        for (const Difference& each : changed) paths.push_back(printable(each.path, 60));
        std::string words = first ? "the first" : paths.empty() ? "nothing" : join(paths, ", ");
        if (const std::string from = again_of(view); !from.empty())
            words = fmt::format("again {}: {}", printable(from, 20), words);
        rows.push_back({view.run.id.text(), view.run.submitted_at.substr(0, 16), cut(printable(view.run.user), 12),
                        std::string(to_string(view.run.state)), view.digest.substr(0, kShownDigits), commit_of(view),
                        args.has("diff") ? fmt::format("{}", first ? "-" : std::to_string(changed.size()))
                                         : cut(words, kShownChanges)});
        std::string detail;
        for (const Difference& each : changed)
            detail += fmt::format("  {}: {} -> {}\n", printable(each.path, 60), shown_value(each.values[1]),
                                  shown_value(each.values[0]));
        if (!detail.empty())
            details.push_back(view.run.id.text() + " against " + views[i + 1].run.id.text() + "\n" + detail);
    }
    if (session.format != Format::text) return CommandOutput{dump(session, list)};
    std::string text;
    if (client->offline())
        text = session.style.dim("no server is running: as the journal in " + client->folder() + " has it") + "\n";
    text +=
        table_text(session.style, {{"run"}, {"when"}, {"who"}, {"state"}, {"spec"}, {"commit"}, {"changed"}}, rows, 0);
    if (args.has("diff"))
        for (const std::string& detail : details) text += detail;
    return CommandOutput{text};
}

}  // namespace

CliCommand history_command() {
    CliCommand command{
        .name = "history",
        .summary = "the runs of one name or file, and what each was told differently",
        .usage = "stoker history NAME|FILE [options]",
        .description =
            "Newest first: when, by whom, how it went, the digest of its spec, the git commit of its folder (a + says "
            "that there were changes on top of it), and which parts of the spec are others than in the run before. "
            "FILE is a workload file: then the runs that were read from a file of that name.\n"
            "stoker submit --again RUN submits the spec of one of them anew; stoker compare RUN RUN holds how they "
            "went against each other.",
        .examples = {"stoker history tiny-gpt", "stoker history train.yaml --diff",
                     "stoker history nightly -o json | jq '.[0].changed'"},
        .options = {{.name = "diff", .help = "print the values, before and after"},
                    {.name = "limit", .value = "N", .help = "at most so many (20)"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_history,
        .completes = "file"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
