// stoker serve: the gateway of this host, its account, and keys for it.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/commands/serve_endpoints.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "govern/keys.h"
#include "govern/ledger/ledger_scan.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "io/stop_signal.h"
#include "serve/gateway/config.h"
#include "serve/gateway/gateway.h"
#include "server/server.h"

namespace stoker {
namespace {

constexpr double kLookEveryS = 0.25;  // at the file
constexpr double kPicoPerUsd = 1e12;

Result<gateway::GatewayConfig> read_config(Session& session, const std::string& path,
                                           const gateway::EndpointBoards& endpoints) {
    TRY(const std::string text, session.read_source(path));
    return gateway::read_gateway_config(text, path, std::filesystem::path(path).parent_path().string(), endpoints);
}

// Where they are only named: nobody keeps them.
Result<gateway::EndpointBoards> endpoints_there(const Args& args) {
    TRY(const std::string folder, endpoints_path(args));
    TRY(const std::vector<Endpoint> endpoints, EndpointFolder(folder).list());
    gateway::EndpointBoards boards;
    for (const Endpoint& each : endpoints) boards.emplace(each.name, std::make_shared<ReplicaBoard>());
    return boards;
}

std::string config_path(const Args& args) {
    return args.get_or("config", "gateway.yaml");
}

// Until somebody stops it; a changed file, and endpoints that come and go, are taken up on the way.
Status watch(Session& session, const std::string& path, gateway::Gateway& gateway, const EndpointService& endpoints,
             std::uint64_t seen_endpoints, StopSignal& stop) {
    std::error_code unknown;
    auto seen = std::filesystem::last_write_time(path, unknown);
    std::uint64_t version = 1;
    while (true) {
        const auto signal = stop.wait_for(kLookEveryS);
        if (signal && *signal != SIGHUP) return done();
        const auto now = std::filesystem::last_write_time(path, unknown);
        const std::uint64_t there = endpoints.version();
        const bool same = unknown || now == seen;
        if (!signal && same && there == seen_endpoints) continue;
        seen = now;
        seen_endpoints = there;
        auto config = read_config(session, path, endpoints.boards());
        if (!config) {
            fmt::print(stderr, "{}the gateway goes on as it was\n", config.error().text());
            continue;
        }
        config->setup->version = ++version;
        gateway.set_setup(config->setup);
        if (!session.quiet && (signal || !same)) fmt::print(stderr, "{} was read again\n", path);
    }
}

Result<CommandOutput> run_gateway(Session& session, const Args& args) {
    const std::string path = config_path(args);
    TRY(const std::string endpoints_at, endpoints_path(args));
    const char* elsewhere = std::getenv("STOKER_SERVER");
    const bool here = !args.has("server") && (args.has("folder") || elsewhere == nullptr || *elsewhere == '\0');
    EndpointService endpoints(
        endpoints_at, [&args] { return connect(args); }, here);
    const std::uint64_t seen_endpoints = endpoints.version();
    TRY(gateway::GatewayConfig config, read_config(session, path, endpoints.boards()));
    TRY(const ListenAddress listen, parse_listen(args.get_or("listen", config.listen)));
    if (!listen.loopback() && config.options.certificate_pem.empty())
        return Error(ErrorKind::denied,
                     fmt::format("{} is no loopback address, and keys would go there in the clear", listen.address), {},
                     "give tls_cert and tls_key, or listen on 127.0.0.1");
    config.options.address = listen.address;
    config.options.port = listen.port;
    if (args.has("no-ledger")) config.options.ledger_folder.clear();
    const std::string folder = config.options.ledger_folder;
    const bool tls = !config.options.certificate_pem.empty();
    StopSignal stop;
    // A file that may not grow is a write that fails, which the ledger knows how to take.
    std::signal(SIGXFSZ, SIG_IGN);
    TRY(auto gateway, gateway::Gateway::start(config.options, config.setup));
    const std::string url = fmt::format(
        "{}://{}:{}", tls ? "https" : "http",
        listen.address.find(':') == std::string::npos ? listen.address : "[" + listen.address + "]", gateway->port());
    const Ledger::Recovery* recovery = gateway->recovery();
    const std::uint64_t recovered = recovery == nullptr ? 0 : recovery->recovered;
    if (session.format == Format::text) {
        std::string text =
            fmt::format("the gateway listens at {}\n  models {}, keys {}; {}\n", url, config.setup->models.size(),
                        config.setup->keys.size(), folder.empty() ? "no account is kept" : "account in " + folder);
        if (recovered > 0)
            text += fmt::format(
                "  {} request{} that the last process left open {} settled as far as {} known to have come\n",
                recovered, recovered == 1 ? "" : "s", recovered == 1 ? "was" : "were",
                recovered == 1 ? "it is" : "they are");
        TRY_VOID(print_now(text));
    } else {
        TRY_VOID(
            print_now(dump(session, Json::object().set("url", url).set("ledger", folder).set("recovered", recovered))));
    }
    TRY_VOID(watch(session, path, *gateway, endpoints, seen_endpoints, stop));
    if (!session.quiet)
        fmt::print(stderr, "stopping: what streams may end within {}; once more to end it now\n",
                   format_seconds(Seconds(config.drain_s)));
    stop.exit_on_the_next();
    gateway->stop(std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(static_cast<std::int64_t>(config.drain_s * 1000)));
    const auto left = endpoints.boards();
    if (!session.quiet && !left.empty())
        fmt::print(stderr,
                   "replicas of {} endpoint{} go on: they are runs, and the next gateway finds them; stoker endpoints "
                   "stop NAME ends them while a gateway runs, stoker cancel RUN without one\n",
                   left.size(), left.size() == 1 ? "" : "s");
    return CommandOutput{};
}

Result<std::string> ledger_folder(Session& session, const Args& args) {
    if (const auto named = args.get("ledger")) return *named;
    TRY(const auto endpoints, endpoints_there(args));
    TRY(const gateway::GatewayConfig config, read_config(session, config_path(args), endpoints));
    return config.options.ledger_folder;
}

// A gateway may be writing it: what looks like damage is read once more before it is believed.
Result<LedgerScan> read_ledger(const std::string& folder) {
    constexpr int kTries = 3;
    for (int i = 1;; ++i) {
        auto scan = scan_ledger(folder);
        if (scan || scan.error().kind() != ErrorKind::conflict || i == kTries) return scan;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

std::string pico_text(PicoSum picousd) {
    return fmt::format("{:.6f}", static_cast<double>(picousd) / kPicoPerUsd);
}
// Exact, for programs: all twelve decimals.
std::string exact_usd(PicoSum picousd) {
    constexpr std::int64_t kWhole = 1'000'000'000'000;
    return fmt::format("{}.{:012}", static_cast<std::int64_t>(picousd / kWhole),
                       static_cast<std::int64_t>(picousd % kWhole));
}

std::string name_in(const LedgerScan& scan, std::uint64_t id) {
    const auto found = scan.names.find(id);
    return found == scan.names.end() ? fmt::format("{:016x}", id) : found->second.second;
}

Result<CommandOutput> show_account(Session& session, const Args& args) {
    TRY(const std::string folder, ledger_folder(session, args));
    TRY(const LedgerScan scan, read_ledger(folder));
    AccountRow all;
    for (const auto& [who, row] : scan.accounts) {
        all.requests += row.requests;
        all.in += row.in;
        all.out += row.out;
        all.picousd += row.picousd;
    }
    if (session.format != Format::text) {
        Json::Array rows;
        for (const auto& [who, row] : scan.accounts) {
            Json outcomes = Json::object();
            for (const auto& [outcome, word] : enum_names(LedgerOutcome{}))
                if (const auto count = row.outcomes[static_cast<std::size_t>(outcome)]; count > 0)
                    outcomes.set(std::string(word), count);
            rows.push_back(Json::object()
                               .set("key", name_in(scan, who.first))
                               .set("model", name_in(scan, who.second))
                               .set("requests", row.requests)
                               .set("tokens_in", row.in)
                               .set("tokens_cached_in", row.cached_in)
                               .set("tokens_out", row.out)
                               .set("usd", exact_usd(row.picousd))
                               .set("partial", row.partial)
                               .set("recovered", row.recovered)
                               .set("drift", row.drift)
                               .set("outcomes", std::move(outcomes)));
        }
        return CommandOutput{dump(session, Json::object()
                                               .set("ledger", folder)
                                               .set("rows", Json(std::move(rows)))
                                               .set("open", scan.open.size())
                                               .set("usd", exact_usd(all.picousd)))};
    }
    if (scan.accounts.empty()) return CommandOutput{fmt::format("nothing was settled yet in {}\n", folder)};
    std::string text = fmt::format("{:<20} {:<20} {:>10} {:>12} {:>12} {:>14}\n", "key", "model", "requests",
                                   "tokens in", "tokens out", "USD");
    for (const auto& [who, row] : scan.accounts)
        text += fmt::format("{} {} {:>10} {:>12} {:>12} {:>14}\n", pad_right(cut(name_in(scan, who.first), 20), 20),
                            pad_right(cut(name_in(scan, who.second), 20), 20), row.requests, row.in, row.out,
                            pico_text(row.picousd));
    text += fmt::format("{:<41} {:>10} {:>12} {:>12} {:>14}\n", "in all", all.requests, all.in, all.out,
                        pico_text(all.picousd));
    if (!scan.open.empty())
        text +=
            fmt::format("{} more are under way, or were cut off and are settled at the next start\n", scan.open.size());
    return CommandOutput{text};
}

Result<CommandOutput> verify(Session& session, const Args& args) {
    TRY(const std::string folder, ledger_folder(session, args));
    TRY(const LedgerScan scan, read_ledger(folder));
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("ledger", folder)
                                               .set("sound", true)
                                               .set("segments", scan.segments)
                                               .set("records", scan.records)
                                               .set("reserved", scan.reserves)
                                               .set("settled", scan.settles)
                                               .set("open", scan.open.size())
                                               .set("torn_records", scan.torn_records))};
    return CommandOutput{fmt::format(
        "{} is sound: {} records in {} segments; {} requests reserved, {} settled once each, {} open{}\n", folder,
        scan.records, scan.segments, scan.reserves, scan.settles, scan.open.size(),
        scan.torn_records > 0
            ? fmt::format("; {} records of a commit that nobody was told of lie behind the end", scan.torn_records)
            : "")};
}

Result<CommandOutput> make_gateway_key(Session& session, const Args& args) {
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, "a key is for somebody", {}, "write for example stoker serve key anna");
    const std::string& name = args.positional[1];
    if (!is_principal_name(name))
        return Error(ErrorKind::invalid, fmt::format("'{}' is no name for a key", printable(name, 80)), {},
                     "letters, digits and . _ - @, up to 64");
    const std::string secret = std::string(kKeyPrefix) + random_hex(32);
    const std::string digest = hex(sha256(secret));
    if (session.format != Format::text)
        return CommandOutput{
            dump(session, Json::object().set("name", name).set("secret", secret).set("sha256", digest))};
    return CommandOutput{
        fmt::format("{}\n\nIt is shown once. Under keys: of gateway.yaml write\n\n  - name: {}\n    sha256: {}\n",
                    secret, name, digest)};
}

Result<CommandOutput> run_serve(Session& session, const Args& args) {
    const std::string what = args.positional.empty() ? "run" : args.positional[0];
    if (what != "key" && args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("'{}' is one too many", printable(args.positional[1], 80)), {},
                     "stoker serve --help");
    if (what == "run") return run_gateway(session, args);
    if (what == "account") return show_account(session, args);
    if (what == "verify") return verify(session, args);
    if (what == "key") return make_gateway_key(session, args);
    return Error(ErrorKind::invalid, fmt::format("stoker serve has no '{}'", printable(what, 80)), {},
                 "run, account, verify or key NAME");
}

}  // namespace

CliCommand serve_command() {
    CliCommand command{
        .name = "serve",
        .summary = "a gateway for models: keys, limits, streams, and an account that is never wrong",
        .usage = "stoker serve [run|account|verify|key NAME] [options]",
        .description =
            "Listens as an OpenAI-compatible server (chat, completions, responses, embeddings, rerank, score, "
            "tokenize, models) "
            "and passes requests on to the upstreams of their model: any server that speaks the same. Each request is "
            "reserved in "
            "a ledger before its answer is shown and settled exactly once, also when this process is killed "
            "meanwhile.\n"
            "Keys, models, limits and prices are taken up when the file changes. Ctrl-c or TERM lets streams end "
            "first.\n"
            "Endpoints of stoker deploy --endpoint are models, too: their replicas are runs of the server of --folder, "
            "started, probed, scaled and drained from here; a request that comes while none is ready is held.\n"
            "account: what was used and charged, by key and model. verify: reads the whole ledger and says whether it "
            "is sound. "
            "key: makes a key and says what to write into the file.",
        .examples = {"stoker serve key anna", "stoker serve --config gateway.yaml",
                     "stoker serve account --config gateway.yaml", "stoker serve verify --ledger ledger -o json"},
        .options =
            {{.name = "config", .value = "FILE", .help = "what it is told to be (gateway.yaml)", .completes = "file"},
             {.name = "listen", .value = "ADDRESS:PORT", .help = "where to listen, in place of what the file says"},
             {.name = "ledger",
              .value = "DIR",
              .help = "for account and verify: this one, without a file",
              .completes = "dir"},
             {.name = "no-ledger", .help = "keep no account: to measure, or where another one is kept"}},
        .max_positional = 2,
        .subcommands = {"run", "account", "verify", "key"},
        .run = run_serve};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
