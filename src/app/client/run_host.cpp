#include "app/client/run_host.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "deploy/engines/engines.h"
#include "server/node_file.h"

namespace stoker {
namespace {

constexpr double kAgainS = 30;
constexpr double kUploadsS = 600;  // for checkpoints that are owed to a store

}  // namespace

Result<std::unique_ptr<RunHost>> RunHost::open(Session& session, const Args& args) {
    std::unique_ptr<RunHost> host(new RunHost(session, args));
    if (Status found = host->find(); !found) {
        // Another process has the folder and does not answer yet, or no longer.
        if (found.error().kind() != ErrorKind::conflict) return found.error();
        TRY([[maybe_unused]] Client * client, host->again());
    }
    return host;
}

Status RunHost::find() {
    auto client = connect(args_);
    if (client) {
        client_ = std::move(*client);
        return done();
    }
    if (client.error().kind() != ErrorKind::not_found) return client.error();
    TRY(const std::string folder, state_folder(folder_option(args_)));
    ServerOptions options{.folder = folder,
                          .prices_file = args_.get_or("prices", ""),
                          .embedded = true,
                          .on_failure = [](const Error& error) {
                              fmt::print(stderr, "{}", error.text());
                              std::_Exit(3);
                          }};
    if (args_.has("prices")) options.overrides["prices"] = "--prices " + args_.get_or("prices", "");
    if (const auto nodes = args_.whole_number("virtual-nodes", 0, 0, 1000); nodes && *nodes > 0) {
        TRY(options.nodes, split_node(this_node(), *nodes));
        options.overrides["nodes"] = fmt::format("--virtual-nodes {}", *nodes);
    }
    TRY(server_, Server::start(std::move(options)));
    client_ = client_of(*server_, folder);
    return done();
}

Result<Client*> RunHost::again() {
    const auto begin = std::chrono::steady_clock::now();
    for (double pause_s = 0.05;; pause_s = std::min(1.0, pause_s * 2)) {
        const Status found = find();
        if (found) return client_.get();
        const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const ErrorKind kind = found.error().kind();
        const bool may_pass =
            kind == ErrorKind::conflict || kind == ErrorKind::unavailable || kind == ErrorKind::timed_out;
        if (!may_pass || passed > kAgainS) return found.error();
        std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    }
}

void RunHost::close() {
    if (!server_) return;
    const auto begin = std::chrono::steady_clock::now();
    bool told = false;
    const std::size_t left = server_->finish_uploads([&] {
        const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (passed > 1 && !std::exchange(told, true) && !session_.quiet)
            fmt::print(stderr, "{:<8} the last checkpoint is being uploaded\n", "upload");
        return passed > kUploadsS;
    });
    if (left > 0)
        fmt::print(stderr, "{:<8} the last checkpoint is not in its store yet: stoker up on this folder goes on\n",
                   "warning");
    server_->stop(5);
}

}  // namespace stoker
