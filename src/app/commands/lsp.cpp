// stoker lsp: the check in an editor, over stdin and stdout.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include <poll.h>
#include <unistd.h>

#include "app/commands/commands.h"
#include "app/commands/own_files.h"
#include "app/session.h"
#include "check/lsp_message.h"
#include "check/lsp_server.h"
#include "io/clock.h"
#include "io/files.h"

namespace stoker {

namespace {

Result<CommandOutput> run_lsp(Session& session, const Args&) {
    LspFrames frames;
    ReadChoice choice;
    choice.workload_problems = own_file_judge(session);
    LspServer server(session.today, choice);
    std::array<char, 64u << 10> buffer{};
    for (;;) {
        const auto wait = server.tick(monotonic_seconds());
        if (const std::string out = server.take(); !out.empty()) TRY_VOID(write_all(STDOUT_FILENO, out, "stdout"));
        pollfd in{STDIN_FILENO, POLLIN, 0};
        const int ready = poll(&in, 1, wait ? static_cast<int>(std::ceil(*wait * 1000)) : -1);
        if (ready < 0 && errno != EINTR) return Error(ErrorKind::unavailable, "stdin cannot be waited for");
        if (ready <= 0) continue;
        const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return CommandOutput{"", server.exit().value_or(1)};  // the editor is gone
        frames.feed({buffer.data(), static_cast<std::size_t>(got)});
        for (;;) {
            TRY(const std::optional<std::string> message, frames.next());
            if (!message) break;
            server.handle(*message, monotonic_seconds());
            if (server.exit()) {
                if (const std::string out = server.take(); !out.empty())
                    TRY_VOID(write_all(STDOUT_FILENO, out, "stdout"));
                return CommandOutput{"", *server.exit()};
            }
        }
    }
}

}  // namespace

CliCommand lsp_command() {
    CliCommand command;
    command.name = "lsp";
    command.summary = "stoker check inside an editor: a language server on stdin and stdout";
    command.usage = "stoker lsp";
    command.description =
        "Started by an editor, not by hand. Findings while you type, quick fixes, \"ignore with a reason\", and on a "
        "VM "
        "size its vCPUs, memory, GPUs, price and retirement. stoker.toml of the workspace applies. Rules over one file "
        "run at every change, those over several files after 200 ms of quiet.";
    command.examples = {"stoker lsp"};
    command.run = run_lsp;
    return command;
}

}  // namespace stoker
