// The server: engine, API and listening socket on one folder. `stoker up` is one that stays; `stoker run` without a
// server starts one for as long as its run takes.
//
// FOLDER/server.json tells clients where it listens; FOLDER/token (0600) what to show; FOLDER/tls/ is its certificate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/driver.h"
#include "io/http/tls.h"
#include "io/log.h"
#include "run/engine/upload_journal.h"
#include "server/api.h"
#include "server/config_keeper.h"
#include "server/token_charges.h"

namespace stoker {

class Desk;

// Where a server keeps the price book that it was given last.
std::string kept_prices(const std::string& folder);

struct ServerOptions {
    std::string folder;
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;          // 0: any free one
    bool any_port_if_taken = false;  // when another program has that one
    int socket = -1;                 // listens there already; address and port say where
    // Called when another process takes the place of this server, which ends then and leaves its address to it. None:
    // nobody can.
    std::function<void(std::int64_t pid)> on_handover;
    std::string runs_as;                        // of this machine: deploy/local/run_user.h
    std::string engine;                         // deploy/engines; empty: the usual one
    std::optional<Certificate> certificate;     // none: plain HTTP, on loopback only
    std::string client_ca_pem;                  // who says by certificate which user a client is; empty: nobody
    std::vector<NodeInfo> nodes;                // empty: this machine as it is
    bool accept_loss = false;                   // goes on with a journal that has lost records
    std::shared_ptr<JournalHome> journal_home;  // of EngineOptions
    std::string prices_file;
    double requests_per_second = 0;  // of one client; 0: no limit
    std::string azure_events;        // base URL of scheduled events; empty: not asked
    std::size_t max_queued = EngineOptions{}.max_queued, max_ended = EngineOptions{}.max_ended;
    std::int64_t keep_ended_s = 0;
    bool embedded = false;  // ends with the command that started it
    // Names that clients may call it by, beside localhost, addresses and those of the certificate.
    std::vector<std::string> host_names;
    BackupOptions backup;
    GateChoice health_gate = GateChoice::by_nodes;
    NodeCheckFunction node_check;    // none: nodes cannot be checked
    std::shared_ptr<GpuFleet> gpus;  // of ApiOptions
    std::shared_ptr<Desk> desk;      // of ApiOptions
    // The newest version of the configuration goes before what stands above, and these before it: what the command line
    // says, by key of the configuration, in its own words.
    std::map<std::string, std::string> overrides;
    struct ConfigFile {
        std::string text, name;
    };
    std::optional<ConfigFile> config;  // becomes a new version, when it is another text
    CatalogSource catalog;             // empty: the one of this program
    OpenTokenAccount open_tokens{};    // of TokenChargesOptions
    std::shared_ptr<Log> log;          // none: nothing is said
    std::function<void(const Error&)> on_failure;
};

class Server {
public:
    static Result<std::unique_ptr<Server>> start(ServerOptions options);
    virtual ~Server() = default;

    virtual const std::string& url() const = 0;
    virtual const std::string& token() const = 0;
    // Of the first administrator, once; empty: somebody can log in, or only this machine is listened to.
    virtual const std::string& setup_token() const = 0;
    virtual Engine& engine() = 0;
    virtual Api& api() = 0;
    // The version of the configuration that it started with, in a line; empty: there is none.
    virtual const std::string& config_in_words() const = 0;
    // Waits until the last checkpoint of every run that has ended is in its store, or `stop` says true. How many were
    // not.
    virtual std::size_t finish_uploads(const std::function<bool()>& stop) = 0;
    // Answers what is open, at most `seconds`, and leaves. What runs goes on under its keepers.
    virtual void stop(double seconds) = 0;
};

// Where the server and the commands keep their things: --folder, else $STOKER_FOLDER, else $XDG_STATE_HOME/stoker,
// else ~/.local/state/stoker.
Result<std::string> state_folder(const std::string& given);

// What a client needs to reach the server of a folder; not_found when none says that it is there.
struct ServerAddress {
    std::string url, token, ca_pem;
    std::int64_t pid = 0;
};
std::string address_file(const std::string& folder);  // what server_of reads
Result<ServerAddress> server_of(const std::string& folder);

// "127.0.0.1:8042", "[::1]:0", "8042".
struct ListenAddress {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    bool loopback() const;
};
Result<ListenAddress> parse_listen(std::string_view text);
// denied: others could reach it, and read the token on its way.
Status may_listen(const ListenAddress& listen, bool with_tls);

// FOLDER/tls/{cert,key}.pem, made when missing, expired, or without one of these names.
Result<Certificate> own_certificate(const std::string& folder, const std::string& address,
                                    const std::vector<std::string>& host_names = {});

}  // namespace stoker
