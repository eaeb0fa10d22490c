// stoker console: where the console of a server is, with what lets one in.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "server/server.h"

namespace stoker {

namespace {

Result<CommandOutput> run_console(Session& session, const Args& args) {
    TRY(const ServerAddress server, server_address(args));
    const std::string& url = server.url;
    // Behind # it stays in the browser: neither the server's log nor a proxy sees it.
    const std::string link = server.token.empty() ? url + "/" : url + "/#token=" + server.token;
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object().set("url", url + "/").set("link", link))};
    return CommandOutput{link + "\n"};
}

}  // namespace

CliCommand console_command() {
    CliCommand command{.name = "console",
                       .summary = "the web console of a server: the link that opens it",
                       .usage = "stoker console [options]",
                       .description =
                           "Prints a link that opens the console in a browser as whoever asks: with the token of the "
                           "server on this machine, or the login or key of --server. Whoever has the link may do what "
                           "you may; it is not to be passed on. Without it the console asks for name and password.",
                       .examples = {"stoker console", "xdg-open \"$(stoker console)\""},
                       .options = client_options(),
                       .run = run_console};
    return command;
}

}  // namespace stoker
