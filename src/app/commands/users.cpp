// stoker user: people and accounts of programs, and by which roles they act.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/password_asked.h"
#include "app/client/tenant_named.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "server/views_users.h"

namespace stoker {
namespace {

std::string role_text(const api::RoleView& role) {
    const std::string organisation = role.project_name.substr(0, role.project_name.find('/'));
    if (role.level == Level::provider) return fmt::format("{} of everything", to_string(role.role));
    if (role.level == Level::organisation) return fmt::format("{} of all of {}", to_string(role.role), organisation);
    return fmt::format("{} of {}", to_string(role.role), role.project_name);
}

std::string roles_text(const api::UserView& user) {
    std::vector<std::string> roles;
    for (const api::RoleView& each : user.roles) roles.push_back(role_text(each));
    return roles.empty() ? "nothing here" : join(roles, ", ");
}

Result<CommandOutput> user_shown(Session& session, const api::UserView& user, std::string_view what) {
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(user))};
    return CommandOutput{fmt::format("{} {}{}: {}\n", user.id.text(), user.name, what, roles_text(user))};
}

Result<std::string> whom(const Args& args) {
    if (args.positional.size() == 2) return args.positional[1];
    return Error(ErrorKind::invalid, "which user?", {}, fmt::format("stoker user {} NAME", args.positional[0]));
}

Status add_role(Client& client, const Args& args, Json& body) {
    if (args.has("of-organisation") && args.has("of-provider"))
        return Error(ErrorKind::invalid, "--of-organisation and --of-provider: give one of them");
    body.set("role", args.get_or("role", "developer"));
    if (args.has("of-organisation")) body.set("level", "organisation");
    if (args.has("of-provider")) body.set("level", "provider");
    if (const auto project = args.get("project")) {
        TRY(const ProjectId id, project_named(client, *project));
        body.set("project", id.text());
    }
    return done();
}

Result<CommandOutput> list_all_users(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const auto list, get<api::UserList>(*client, "/api/v1/users"));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(list))};
    if (list.items.empty()) return CommandOutput{"no users: stoker user make NAME\n"};
    std::vector<std::vector<std::string>> rows;
    for (const api::UserView& each : list.items)
        rows.push_back({each.id.text(), each.name + (each.service ? " (program)" : ""), each.organisation_name,
                        roles_text(each), each.state,
                        each.service        ? "by key"
                        : each.has_password ? "by password"
                                            : "without a password",
                        std::to_string(each.logins)});
    return CommandOutput{table_text(
        session.style,
        {{"user"}, {"name"}, {"organisation"}, {"may act as"}, {"state"}, {"comes in"}, {"logged in", Align::right}},
        rows, 0)};
}

Result<CommandOutput> make_one_user(Session& session, const Args& args) {
    TRY(const std::string name, whom(args));
    TRY(const auto client, connect(args));
    Json body = Json::object().set("name", name);
    TRY_VOID(add_role(*client, args, body));
    if (args.has("service")) {
        body.set("service", true);
    } else if (!args.has("no-password")) {
        TRY(const std::string password, password_asked(args, "first password of " + name, true));
        body.set("password", password);
    }
    TRY(const auto user, post<api::UserView>(*client, "/api/v1/users", body));
    return user_shown(session, user, "");
}

Result<CommandOutput> bind_one_role(Session& session, const Args& args, bool remove) {
    TRY(const std::string name, whom(args));
    if (!args.has("role"))
        return Error(ErrorKind::invalid, "which role?", {},
                     fmt::format("stoker user {} {} --role developer", args.positional[0], printable(name, 60)));
    TRY(const auto client, connect(args));
    Json body = Json::object();
    TRY_VOID(add_role(*client, args, body));
    if (remove) body.set("remove", true);
    TRY(const auto user, post<api::UserView>(*client, fmt::format("/api/v1/users/{}/roles", url_encoded(name)), body));
    return user_shown(session, user, " is");
}

Result<CommandOutput> set_password(Session& session, const Args& args) {
    TRY(const auto client, connect(args));
    if (args.positional.size() == 1) {
        // The current one is never in a file that has the new one.
        TRY(const std::string current, password_asked(Args{}, "your password now", false));
        TRY(const std::string next, password_asked(args, "your new password", true));
        TRY([[maybe_unused]] const Document changed,
            client->post("/api/v1/password", Json::object().set("current", current).set("password", next)));
        return CommandOutput{"changed; every login with the old one has ended\n"};
    }
    const std::string& name = args.positional[1];
    TRY(const std::string next, password_asked(args, "new password of " + name, true));
    TRY(const auto user, post<api::UserView>(*client, fmt::format("/api/v1/users/{}/password", url_encoded(name)),
                                             Json::object().set("password", next)));
    return user_shown(session, user, " has a new password, and every login has ended");
}

Result<CommandOutput> shut_out(Session& session, const Args& args, bool disabled) {
    TRY(const std::string name, whom(args));
    TRY(const auto client, connect(args));
    TRY(const auto user, post<api::UserView>(*client, fmt::format("/api/v1/users/{}/disable", url_encoded(name)),
                                             Json::object().set("disabled", disabled)));
    return user_shown(session, user, disabled ? " is shut out" : " may come in");
}

Result<CommandOutput> run_user(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    if (verb == "make") return make_one_user(session, args);
    if (verb == "bind" || verb == "unbind") return bind_one_role(session, args, verb == "unbind");
    if (verb == "password") return set_password(session, args);
    if (verb == "disable" || verb == "enable") return shut_out(session, args, verb == "disable");
    return list_all_users(session, args);
}

}  // namespace

CliCommand user_command() {
    return with_client(
        {.name = "user",
         .summary = "people and accounts of programs: make, bind to roles, shut out",
         .usage = "stoker user list | make NAME [--role ROLE] [--project NAME] | bind NAME --role ROLE | unbind NAME "
                  "--role ROLE | password [NAME] | disable NAME | enable NAME",
         .description =
             "A person logs in with a password (stoker login) and acts in one project, by the role there that may "
             "most; roles hold in a project, in a whole organisation, or everywhere. Who has no role in a project is "
             "nobody there. A program has keys in its name (stoker key make NAME --service).\n"
             "What is taken away is gone with the next request: a role, a password with all its logins, and with "
             "disable also the keys of that name.",
         .examples = {"stoker user make anna --role developer --project hospital/imaging",
                      "stoker user bind anna --role viewer --of-organisation --project hospital/imaging",
                      "stoker user make ci --service --project hospital/imaging", "stoker user password anna",
                      "stoker user disable anna", "stoker user list"},
         .options = {{.name = "role",
                      .value = "ROLE",
                      .help = "what it may do (make: developer)",
                      .choices = {"viewer", "developer", "operator", "admin", "auditor", "agent"}},
                     {.name = "project", .value = "NAME", .help = "where the role holds (yours)"},
                     {.name = "of-organisation", .help = "in the whole organisation of that project"},
                     {.name = "of-provider", .help = "everywhere"},
                     {.name = "service", .help = "make: a program's account; it has keys, and no password"},
                     {.name = "no-password", .help = "make: without one; an admin sets it later"},
                     {.name = "password-file",
                      .value = "FILE",
                      .help = "read the password there, - for stdin, instead of asking",
                      .completes = "file"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "make", "bind", "unbind", "password", "disable", "enable"},
         .run = run_user});
}

}  // namespace stoker
