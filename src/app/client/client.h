// What the commands talk to: a server over HTTP, an engine of this process, or, for looking only, the journal of a
// folder on which no server runs. All three answer the same API, so a command is written once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/args.h"
#include "app/session.h"
#include "base/document.h"
#include "base/json.h"
#include "io/http/http_client.h"
#include "io/stop_signal.h"
#include "server/server.h"

namespace stoker {

class Transport {
public:
    virtual ~Transport() = default;
    virtual Result<HttpResponse> send(const HttpCall& call) = 0;
};

// Answers of 2xx as JSON; everything else as the Error that the problem+json tells.
class Client {
public:
    Client(std::unique_ptr<Transport> transport, std::string folder, bool offline)
        : transport_(std::move(transport)), folder_(std::move(folder)), offline_(offline) {}

    Result<Document> get(const std::string& target, double timeout_s = 30);
    // A body of null: none is sent.
    Result<Document> post(const std::string& target, const Json& body, const HttpHeaders& headers = {},
                          double timeout_s = 60);
    Result<Document> put(const std::string& target, const Json& body, const HttpHeaders& headers = {});
    Result<HttpResponse> raw(const HttpCall& call);  // 2xx only

    const std::string& folder() const { return folder_; }
    // No server runs: the answers are what the journal says, and nothing can be changed.
    bool offline() const { return offline_; }

private:
    std::unique_ptr<Transport> transport_;
    std::string folder_;
    bool offline_;
};

// --folder, --server, --token-file: how a command finds its server.
const std::vector<OptionSpec>& client_options();
CliCommand with_client(CliCommand command);  // with these behind its own
std::string folder_option(const Args& args);

// The server that --server, $STOKER_SERVER or the folder's server.json names; not_found when none runs.
Result<std::unique_ptr<Client>> connect(const Args& args);
// Where that is; nobody is asked whether a server is there. Of one elsewhere there is no pid.
Result<ServerAddress> server_address(const Args& args, const std::string& token = "");
// Connects with the first call.
Result<std::unique_ptr<Client>> client_at(const ServerAddress& address, const std::string& folder);
// The server of connect(), with this token whatever else there is; "-": with none.
Result<std::unique_ptr<Client>> connect_with(const Args& args, const std::string& token);
// The same, or the folder's journal when no server runs.
Result<std::unique_ptr<Client>> connect_to_look(const Args& args);
// Asks again and again for the server of `args` after it has gone: a restart, perhaps on another port. It says so once,
// and gives up after some minutes, or when `stop` says so. What it gives stays its own.
class Reconnect {
public:
    Reconnect(const Args& args, bool quiet, StopSignal* stop) : args_(args), quiet_(quiet), stop_(stop) {}
    Result<Client*> operator()();

private:
    const Args& args_;
    bool quiet_;
    StopSignal* stop_;
    std::shared_ptr<Client> client_;
};
// Over an engine of this process.
std::unique_ptr<Client> client_of(Server& server, const std::string& folder);

// Parts of a JSON answer by path: "cause", "why.text". Missing: empty, 0, nullptr.
const Node* part(const Node& node, std::string_view path);
std::string text_at(const Node& node, std::string_view path);
double number_at(const Node& node, std::string_view path, double otherwise = 0);
bool flag_at(const Node& node, std::string_view path);
Json json_of(const Node& node);

std::string url_encoded(std::string_view text);

}  // namespace stoker
