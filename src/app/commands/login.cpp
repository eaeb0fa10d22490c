// stoker login, logout: to a server elsewhere, by name and password.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/password_asked.h"
#include "app/client/saved_logins.h"
#include "app/client/single_sign_on.h"
#include "app/client/tenant_named.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "server/views_users.h"

namespace stoker {
namespace {

// A login is for a server that is named: whoever reads the token file of a folder is its administrator already.
Result<std::string> server_named(const Args& args) {
    if (const auto url = args.get("server")) return *url;
    const char* variable = std::getenv("STOKER_SERVER");
    if (variable != nullptr && *variable != '\0') return std::string(variable);
    return Error(ErrorKind::invalid, "log in where?", {},
                 "add --server https://gpu.example.org:8443, or set STOKER_SERVER; the server of a folder on this "
                 "machine takes the token in that folder, and needs no login");
}

CommandOutput logged_in(Session& session, const api::LoginGiven& given, const std::string& url) {
    if (session.format != Format::text) {
        api::LoginGiven shown = given;
        shown.secret.clear();  // it is in the file
        return CommandOutput{dump(session, codec::write(shown))};
    }
    const api::Caller& caller = given.caller;
    return CommandOutput{fmt::format("{}, {} of the {}, in {}/{} at {} until {}\n", caller.name, to_string(caller.role),
                                     to_string(caller.level), caller.project.organisation_name, caller.project.name,
                                     url, given.expires_at.substr(0, 16))};
}

Result<std::int64_t> seconds_wanted(const Args& args) {
    const auto expires = args.get("expires");
    if (!expires) return std::int64_t{0};
    const auto seconds = parse_seconds(*expires);
    if (!seconds) return Error(ErrorKind::invalid, "--expires: " + seconds.error().message(), {}, "write 12h, or 7d");
    return static_cast<std::int64_t>(seconds->v);
}

Result<CommandOutput> log_in_by_provider(Session& session, const Args& args, const std::string& url) {
    if (!args.positional.empty())
        return Error(ErrorKind::invalid, "the provider says who you are, and a name is given", {},
                     "stoker login --sso, without a name");
    for (const char* other : {"setup", "password-file"})
        if (args.has(other)) return Error(ErrorKind::invalid, fmt::format("--sso and --{}: give one of them", other));
    TRY(const std::int64_t expires_s, seconds_wanted(args));
    TRY(const auto client, connect_with(args, "-"));
    TRY(const auto provider, get<api::SignOn>(*client, "/api/v1/login/oidc"));
    TRY(const FetchedToken fetched,
        fetch_token(provider, {.device = args.has("device"), .say = [](const std::string& what) {
                                   fmt::print(stderr, "{}\n", what);
                                   std::fflush(stderr);
                               }}));
    Json body = Json::object().set("token", fetched.token).set("nonce", fetched.nonce);
    if (expires_s != 0) body.set("expires_s", expires_s);
    if (const auto project = args.get("project")) body.set("project", *project);
    TRY(const auto given, post<api::LoginGiven>(*client, "/api/v1/login/oidc", body));
    TRY_VOID(save_login(url, {given.secret, given.caller.name, given.expires_at}));
    return logged_in(session, given, url);
}

Result<CommandOutput> run_login(Session& session, const Args& args) {
    TRY(const std::string url, server_named(args));
    if (args.has("sso") || args.has("device")) return log_in_by_provider(session, args, url);
    const char* user = std::getenv("USER");
    const std::string name = !args.positional.empty() ? args.positional[0] : user == nullptr ? "" : user;
    if (name.empty()) return Error(ErrorKind::invalid, "log in as whom?", {}, "stoker login NAME");
    const auto setup = args.get("setup");
    TRY(const std::int64_t expires_s, seconds_wanted(args));
    TRY(const auto client, connect_with(args, "-"));
    TRY(const std::string password,
        password_asked(args,
                       setup ? fmt::format("new password of {}", name) : fmt::format("password of {} at {}", name, url),
                       setup.has_value()));
    if (setup) {
        TRY(const auto given,
            post<api::LoginGiven>(*client, "/api/v1/setup",
                                  Json::object().set("token", *setup).set("name", name).set("password", password)));
        TRY_VOID(save_login(url, {given.secret, name, given.expires_at}));
        return logged_in(session, given, url);
    }
    Json body = Json::object().set("name", name).set("password", password);
    if (expires_s != 0) body.set("expires_s", expires_s);
    const auto project = args.get("project");
    if (project && ProjectId::parse(*project)) body.set("project", *project);
    TRY(auto given, post<api::LoginGiven>(*client, "/api/v1/login", body));
    if (project && !ProjectId::parse(*project)) {
        // Its number is known to whoever is in.
        TRY(const auto inside, connect_with(args, given.secret));
        const auto id = project_named(*inside, *project);
        (void)inside->post("/api/v1/logout", Json());
        if (!id) return id.error();
        TRY(given, post<api::LoginGiven>(*client, "/api/v1/login", body.set("project", id->text())));
    }
    TRY_VOID(save_login(url, {given.secret, name, given.expires_at}));
    return logged_in(session, given, url);
}

Result<CommandOutput> run_logout(Session& session, const Args& args) {
    TRY(const std::string url, server_named(args));
    TRY(const SavedLogin login, saved_login(url));
    if (login.token.empty())
        return Error(ErrorKind::not_found, "nobody is logged in at " + printable(url, 200), {}, "stoker login");
    TRY(const auto client, connect_with(args, login.token));
    const auto ended = client->post("/api/v1/logout", Json());
    TRY_VOID(save_login(url, {}));
    // It has ended by itself, which is as good.
    if (!ended && ended.error().kind() != ErrorKind::denied) return ended.error();
    if (session.format != Format::text) return CommandOutput{dump(session, Json::object().set("server", url))};
    return CommandOutput{fmt::format("{} is logged out at {}\n", login.user, url)};
}

}  // namespace

CliCommand login_command() {
    return with_client(
        {.name = "login",
         .summary = "log in to a server elsewhere, by name and password or by single sign-on",
         .usage = "stoker login [NAME | --sso | --device] --server URL [--project NAME] [--expires TIME]",
         .description =
             "Asks for the password, and keeps what the server gives for it in ~/.config/stoker/logins.json, which "
             "only "
             "you can read; commands with the same --server or STOKER_SERVER use it until it ends. One acts in one "
             "project, by the role there that may most.\n"
             "With --sso the server's OpenID Connect provider says who you are, in the browser of this machine; with "
             "--device in that of any other, where you enter a code.\n"
             "The first administrator of a server logs in with --setup and the token that stoker up printed, once.",
         .examples = {"stoker login anna --server https://gpu.example.org:8443",
                      "stoker login anna --project hospital/imaging --expires 7d",
                      "stoker login --sso --server https://gpu.example.org:8443",
                      "stoker login --device --project hospital/imaging",
                      "stoker login root --server https://gpu.example.org:8443 --setup setup_..."},
         .options = {{.name = "project", .value = "NAME", .help = "act in this project (that of your first role)"},
                     {.name = "expires", .value = "TIME", .help = "ends after this long, 30d at most (12h)"},
                     {.name = "password-file",
                      .value = "FILE",
                      .help = "read the password there, - for stdin, instead of asking",
                      .completes = "file"},
                     {.name = "sso", .help = "by single sign-on, with a browser on this machine"},
                     {.name = "device", .help = "by single sign-on, with a browser anywhere"},
                     {.name = "setup", .value = "TOKEN", .help = "be the first administrator, with a new password"}},
         .max_positional = 1,
         .run = run_login});
}

CliCommand logout_command() {
    return with_client({.name = "logout",
                        .summary = "end the login at a server",
                        .usage = "stoker logout --server URL",
                        .description = "The server forgets it, and so does this machine.",
                        .examples = {"stoker logout --server https://gpu.example.org:8443"},
                        .run = run_logout});
}

}  // namespace stoker
