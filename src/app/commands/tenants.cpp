// stoker org, project, key, whoami: who belongs here and may do what.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/tenant_named.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "server/views_tenants.h"

namespace stoker {
namespace {

template <class View>
Result<CommandOutput> shown(Session& session, const View& view, std::string text) {
    return CommandOutput{session.format == Format::text ? std::move(text) : dump(session, codec::write(view))};
}

Result<std::string> name_given(const Args& args, std::string_view what, std::string_view word = "NAME") {
    if (args.positional.size() == 2) return args.positional[1];
    return Error(ErrorKind::invalid, fmt::format("which {}?", what), {},
                 fmt::format("stoker {} {} {}", what, args.positional[0], word));
}

Result<CommandOutput> run_org(Session& session, const Args& args) {
    if (args.positional[0] == "make") {
        TRY(const std::string name, name_given(args, "org"));
        TRY(const auto client, connect(args));
        Json body = Json::object().set("name", name);
        if (const auto project = args.get("project")) body.set("project", *project);
        TRY(const auto made, post<api::OrganisationView>(*client, "/api/v1/organisations", body));
        return shown(session, made, fmt::format("{} {}\n", made.id.text(), made.name));
    }
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::OrganisationList>(*client, "/api/v1/organisations"));
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : list.items) rows.push_back({each.id.text(), each.name});
    return shown(session, list, table_text(session.style, {{"organisation"}, {"name"}}, rows, 0));
}

Result<CommandOutput> run_project(Session& session, const Args& args) {
    if (args.positional[0] == "make") {
        TRY(const std::string name, name_given(args, "project"));
        TRY(const auto client, connect(args));
        Json body = Json::object().set("name", name);
        if (const auto organisation = args.get("organisation")) {
            TRY(const OrganisationId id, organisation_named(*client, *organisation));
            body.set("organisation", id.text());
        }
        TRY(const auto made, post<api::ProjectView>(*client, "/api/v1/projects", body));
        return shown(session, made, fmt::format("{} {}/{}\n", made.id.text(), made.organisation_name, made.name));
    }
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::ProjectList>(*client, "/api/v1/projects"));
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : list.items) rows.push_back({each.id.text(), each.name, each.organisation_name});
    return shown(session, list, table_text(session.style, {{"project"}, {"name"}, {"organisation"}}, rows, 0));
}

std::string reach_text(const api::KeyView& key) {
    switch (key.level) {
        case Level::project: return fmt::format("{} of {}", to_string(key.role), key.project_name);
        case Level::organisation:
            return fmt::format("{} of all of {}", to_string(key.role),
                               key.project_name.substr(0, key.project_name.find('/')));
        case Level::provider: break;
    }
    return key.node.empty() ? fmt::format("{} of everything", to_string(key.role))
                            : fmt::format("{} of node {} alone", to_string(key.role), printable(key.node, 80));
}

Result<std::int64_t> seconds_of(const Args& args, const char* option) {
    const auto text = args.get(option);
    if (!text) return 0;
    const auto seconds = parse_seconds(*text);
    if (!seconds)
        return Error(ErrorKind::invalid, fmt::format("--{}: {}", option, seconds.error().message()), {},
                     "write 90d, or 8h");
    return static_cast<std::int64_t>(seconds->v);
}

Result<CommandOutput> key_given(Session& session, const api::KeyGiven& given) {
    if (session.format == Format::text && !session.quiet)
        fmt::print(stderr, "{} for {}, {}{}. The secret is shown this once; only its hash is kept.\n",
                   given.key.id.text(), given.key.name, reach_text(given.key),
                   given.key.expires_at.empty() ? "" : ", until " + given.key.expires_at);
    return shown(session, given, given.secret + "\n");
}

Result<CommandOutput> rotate_key(Session& session, const Args& args) {
    TRY(const std::string word, name_given(args, "key", "KEY"));
    TRY(const std::int64_t expires_s, seconds_of(args, "expires"));
    TRY(const std::int64_t old_for_s, seconds_of(args, "old-for"));
    TRY(const auto client, connect(args));
    TRY(const auto given, post<api::KeyGiven>(*client, fmt::format("/api/v1/keys/{}/rotate", url_encoded(word)),
                                              Json::object().set("expires_s", expires_s).set("old_for_s", old_for_s)));
    return key_given(session, given);
}

Result<CommandOutput> make_key(Session& session, const Args& args) {
    Json body = Json::object().set("role", args.get_or("role", "developer"));
    if (args.positional.size() == 2) body.set("name", args.positional[1]);
    if (args.has("service")) body.set("service", true);
    if (args.has("of-organisation") && args.has("of-provider"))
        return Error(ErrorKind::invalid, "--of-organisation and --of-provider: give one of them");
    if (args.has("of-organisation")) body.set("level", "organisation");
    if (args.has("of-provider")) body.set("level", "provider");
    TRY(const std::int64_t expires_s, seconds_of(args, "expires"));
    if (expires_s != 0) body.set("expires_s", expires_s);
    if (const auto node = args.get("node")) body.set("node", *node);
    TRY(const auto client, connect(args));
    if (const auto project = args.get("project")) {
        TRY(const ProjectId id, project_named(*client, *project));
        body.set("project", id.text());
    }
    TRY(const auto given, post<api::KeyGiven>(*client, "/api/v1/keys", body));
    return key_given(session, given);
}

Result<CommandOutput> run_key(Session& session, const Args& args) {
    if (args.positional[0] == "make") return make_key(session, args);
    if (args.positional[0] == "rotate") return rotate_key(session, args);
    if (args.positional[0] == "revoke") {
        TRY(const std::string word, name_given(args, "key", "KEY"));
        TRY(const auto client, connect(args));
        TRY(const auto key,
            post<api::KeyView>(*client, fmt::format("/api/v1/keys/{}/revoke", url_encoded(word)), Json()));
        return shown(session, key, fmt::format("{} of {} is revoked\n", key.id.text(), key.name));
    }
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::KeyList>(*client, "/api/v1/keys"));
    if (list.items.empty()) return shown(session, list, "no keys\n");
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : list.items)
        rows.push_back({each.id.text(), each.name + (each.service ? " (program)" : ""), reach_text(each), each.state,
                        each.made_at.substr(0, 10), each.expires_at.substr(0, 16)});
    return shown(session, list,
                 table_text(session.style, {{"key"}, {"for"}, {"may act as"}, {"state"}, {"made"}, {"ends"}}, rows, 0));
}

Result<CommandOutput> run_whoami(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const auto caller, get<api::Caller>(*client, "/api/v1/whoami"));
    return shown(session, caller,
                 fmt::format("{}, {} of the {}, in {}/{}{}{}\n", caller.name, to_string(caller.role),
                             to_string(caller.level), caller.project.organisation_name, caller.project.name,
                             !caller.key.empty()     ? ", by key " + caller.key
                             : !caller.login.empty() ? ", by login " + caller.login
                                                     : "",
                             caller.expires_at.empty() ? "" : " until " + caller.expires_at));
}

}  // namespace

CliCommand org_command() {
    return with_client({.name = "org",
                        .summary = "organisations: list those that you reach, make one",
                        .usage = "stoker org list | make NAME [--project NAME]",
                        .description = "Every run belongs to a project of an organisation; nobody sees what belongs to "
                                       "another one. Until one is made there is `default`, with one project.",
                        .examples = {"stoker org make hospital --project imaging", "stoker org list"},
                        .options = {{.name = "project", .value = "NAME", .help = "make: its first project (default)"}},
                        .min_positional = 1,
                        .max_positional = 2,
                        .subcommands = {"list", "make"},
                        .run = run_org});
}

CliCommand project_command() {
    return with_client(
        {.name = "project",
         .summary = "projects of an organisation: list those that you reach, make one",
         .usage = "stoker project list | make NAME [--organisation NAME]",
         .description = "Keys act in a project; what they submit belongs there, and usage is counted by it.",
         .examples = {"stoker project make vision --organisation hospital", "stoker project list"},
         .options = {{.name = "organisation", .value = "NAME", .help = "make: in this one (the default one)"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "make"},
         .run = run_project});
}

CliCommand key_command() {
    return with_client(
        {.name = "key",
         .summary = "keys for people and programs: make, list, rotate, revoke",
         .usage =
             "stoker key make [NAME] [--role ROLE] [--project NAME] [--expires TIME] | list | rotate KEY [--old-for "
             "TIME] | "
             "revoke KEY",
         .description =
             "A key is a secret of 256 bits that is shown once; the server keeps its SHA-256. Whoever sends it "
             "(STOKER_TOKEN, --token-file, or Authorization: Bearer) acts under that name, with that role, in that "
             "project: a viewer looks, a developer submits and steers runs, an operator also runs nodes and evicts, an "
             "admin also makes projects and keys, an auditor reads everything and changes nothing; an agent of the "
             "provider "
             "tells what the GPUs of a node do (stoker agent --server). What lies outside "
             "is as good as not there.\n"
             "Developers and operators make, list, rotate and revoke keys of their own (make without NAME), which may "
             "no "
             "more than they and hold 90 days at most, or as long as the server's configuration says. They log in for "
             "that: a key makes no further ones, and rotates itself alone.\n"
             "A run on this machine has the rights of the server's own user there: give developer only to those whom "
             "you would let log in.",
         .examples = {"stoker key make --expires 30d",
                      "stoker key make anna --role developer --project vision --expires 90d",
                      "stoker key make ci --service --role developer",
                      "stoker key make agent-n7 --service --role agent --of-provider --node n7",
                      "stoker key make boss --role auditor --of-organisation --project hospital/vision",
                      "STOKER_TOKEN=stk_... stoker ps --server https://gpu.example.org:8443",
                      "stoker key rotate k-3 --old-for 1h", "stoker key revoke k-3"},
         .options = {{.name = "role",
                      .value = "ROLE",
                      .help = "what it may do (developer)",
                      .choices = {"viewer", "developer", "operator", "admin", "auditor", "agent"}},
                     {.name = "project", .value = "NAME", .help = "in which it acts (yours)"},
                     {.name = "of-organisation", .help = "the role reaches the whole organisation of that project"},
                     {.name = "of-provider", .help = "the role reaches everything, nodes and configuration as well"},
                     {.name = "node", .value = "NAME", .help = "an agent's tells of this node alone (of any)"},
                     {.name = "expires",
                      .value = "TIME",
                      .help = "ends after this long: 90d, 8h; if left out never, one's own as late as it may"},
                     {.name = "old-for",
                      .value = "TIME",
                      .help = "rotate: the old key still holds so long (it ends at once)"},
                     {.name = "service", .help = "it is for a program, not for a person"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"make", "list", "rotate", "revoke"},
         .run = run_key});
}

CliCommand whoami_command() {
    return with_client({.name = "whoami",
                        .summary = "who you are to the server, and what you may do",
                        .usage = "stoker whoami [options]",
                        .description = "By the key or token that STOKER_TOKEN or --token-file holds.",
                        .examples = {"stoker whoami"},
                        .run = run_whoami});
}

}  // namespace stoker
