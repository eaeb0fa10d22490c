// stoker nodes: what there is, how well it is, and what people do about that.
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/node_text.h"
#include "app/client/output.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/text.h"
#include "io/process.h"

namespace stoker {

namespace {

using NodesClock = std::chrono::steady_clock;
constexpr auto kAskAgain = std::chrono::milliseconds(300);
constexpr int kWaitMinutes = 20;

Result<api::NodeView> one_node(Client& client, const std::string& name) {
    TRY(api::NodeList list, get<api::NodeList>(client, "/api/v1/nodes"));
    std::string names;
    for (api::NodeView& node : list.items) {
        if (node.name == name) return std::move(node);
        if (names.size() < 200) names += (names.empty() ? "" : ", ") + printable(node.name);
    }
    return Error(ErrorKind::not_found, "there is no node " + printable(name, 80), {},
                 names.empty() ? "no node was seen yet" : "there are " + names);
}

Result<CommandOutput> list_all(Session& session, Client& client) {
    TRY(const api::NodeList list, get<api::NodeList>(client, "/api/v1/nodes"));
    if (session.format != Format::text) {
        Json items = Json::array();
        for (const api::NodeView& node : list.items) items.push(codec::write(node));
        return CommandOutput{dump(session, items)};
    }
    std::string text;
    if (client.offline())
        text = session.style.dim("no server is running: as the journal in " + client.folder() + " has it") + "\n";
    return CommandOutput{text + nodes_text(list, session.style, wall_clock_us())};
}

Result<CommandOutput> describe_one(Session& session, Client& client, const std::string& name) {
    TRY(const api::NodeView node, one_node(client, name));
    return CommandOutput{session.format == Format::text ? node_text(node, session.style, wall_clock_us())
                                                        : dump(session, codec::write(node))};
}

// Until a check is there that was not there before.
Result<CommandOutput> check_one(Session& session, const Args& args, Client& client, const std::string& name) {
    TRY(const int minutes, args.whole_number("timeout", kWaitMinutes, 1, 24 * 60));
    TRY(const api::NodeView before, one_node(client, name));
    const std::string level = args.has("full") ? "full" : "quick";
    TRY(const auto asked, post<api::NodeCheckAsked>(client, fmt::format("/api/v1/nodes/{}/check", url_encoded(name)),
                                                    Json::object().set("level", level)));
    std::string runs;
    for (const RunId run : asked.waits_for) runs += (runs.empty() ? "" : ", ") + run.text();
    if (!args.has("wait")) {
        if (session.format != Format::text) return CommandOutput{dump(session, codec::write(asked))};
        return CommandOutput{runs.empty()
                                 ? fmt::format("{} is being checked; stoker nodes describe {} shows it\n", name, name)
                                 : fmt::format("{} will be checked when {} {} ended\n", name, runs,
                                               asked.waits_for.size() == 1 ? "has" : "have")};
    }
    if (!runs.empty() && session.format == Format::text && !session.quiet)
        TRY_VOID(print_now(session.style.dim("waits for " + runs + " to end") + "\n"));
    const auto until = NodesClock::now() + std::chrono::minutes(minutes);
    for (;;) {
        TRY(const api::NodeView now, one_node(client, name));
        const bool fresh = now.check && (!before.check || now.check->at != before.check->at);
        if (fresh) {
            const bool passed = now.check->verdict == HealthVerdict::pass || now.check->verdict == HealthVerdict::warn;
            CommandOutput output{dump(session, codec::write(now))};
            if (session.format == Format::text)
                output.out =
                    fmt::format("{}: {}; it is {} now\n{}", name, std::string(to_string(now.check->verdict)),
                                std::string(to_string(now.state)), check_result_text(*now.check, session.style));
            output.exit = passed ? 0 : 1;
            return output;
        }
        if (NodesClock::now() >= until)
            return Error(ErrorKind::timed_out, fmt::format("no check of {} within {} min", name, minutes), {},
                         "it is still asked for; stoker nodes describe shows what it waits for");
        std::this_thread::sleep_for(kAskAgain);
    }
}

Result<CommandOutput> change_node(Session& session, Client& client, const std::string& verb, const std::string& name) {
    TRY(const auto changed,
        post<api::NodeChanged>(client, fmt::format("/api/v1/nodes/{}/{}", url_encoded(name), verb), Json()));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(changed))};
    std::string text = fmt::format("{} is {}", name, std::string(to_string(changed.state)));
    if (changed.cause != Cause::none) text += fmt::format(": {}", meaning_of(changed.cause));
    return CommandOutput{text + "\n"};
}

Result<CommandOutput> run_nodes(Session& session, const Args& args) {
    const std::string verb = args.positional.empty() ? "list" : args.positional[0];
    const bool looks = verb == "list" || verb == "describe";
    const bool known = looks || verb == "check" || verb == "drain" || verb == "ready" || verb == "repaired";
    if (!known)
        return Error(ErrorKind::invalid, "stoker nodes does not know '" + printable(verb, 40) + "'", {},
                     "list, describe NAME, check NAME, drain NAME, ready NAME or repaired NAME");
    if (verb != "list" && args.positional.size() != 2)
        return Error(ErrorKind::invalid, fmt::format("stoker nodes {} needs one node", verb), {},
                     fmt::format("stoker nodes {} NAME; stoker nodes lists them", verb));
    if (verb == "list" && args.positional.size() > 1)
        return Error(ErrorKind::invalid, "stoker nodes list takes no name", {}, "stoker nodes describe NAME");
    for (const char* option : {"full", "wait", "timeout"})
        if (args.has(option) && verb != "check")
            return Error(ErrorKind::invalid, fmt::format("--{} belongs to stoker nodes check", option));
    TRY(const auto client, looks ? connect_to_look(args) : connect(args));
    if (verb == "list") return list_all(session, *client);
    const std::string& name = args.positional[1];
    if (verb == "describe") return describe_one(session, *client, name);
    if (verb == "check") return check_one(session, args, *client, name);
    return change_node(session, *client, verb, name);
}

}  // namespace

CliCommand nodes_command() {
    CliCommand command{
        .name = "nodes",
        .summary = "nodes: what they have, how well they are, and what to do about it",
        .usage = "stoker nodes [list | describe NAME | check NAME | drain NAME | ready NAME | repaired NAME]",
        .description =
            "list: every node, its state, what is free, its last health check. describe: one of them, with what its "
            "check measured against what was expected, the gangs that it held up, and what can be done.\n"
            "check: asks for a health check; it begins when nothing runs there. Exit code 1 with --wait: it did not "
            "pass. drain: starts nothing more there; what runs goes on. ready: takes work again, also when its check "
            "failed. repaired: something was changed; it is checked anew. The third repair in 30 days quarantines it.",
        .examples = {"stoker nodes", "stoker nodes describe node-b", "stoker nodes check node-b --full --wait",
                     "stoker nodes ready node-b", "stoker nodes -o json | jq '.[] | select(.state != \"ready\")'"},
        .options = {{.name = "full", .help = "check: some minutes instead of some seconds"},
                    {.name = "wait", .help = "check: until it is done"},
                    {.name = "timeout",
                     .value = "MINUTES",
                     .help = fmt::format("check: wait so long at most ({})", kWaitMinutes)}},
        .min_positional = 0,
        .max_positional = 2,
        .subcommands = {"list", "describe", "check", "drain", "ready", "repaired"},
        .run = run_nodes};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
