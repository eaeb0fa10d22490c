// stoker serve: the gateway of this host, its account, and keys for it.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/commands/ledger_home.h"
#include "app/commands/serve_account.h"
#include "app/commands/serve_endpoints.h"
#include "app/commands/serve_tokens.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/engines/engines.h"
#include "govern/keys.h"
#include "io/core_files.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "io/stop_signal.h"
#include "serve/batch/batches.h"
#include "serve/gateway/config.h"
#include "serve/gateway/gateway.h"
#include "server/server.h"

namespace stoker {
namespace {

constexpr double kLookEveryS = 0.25;   // at the file
constexpr double kResolveEveryS = 60;  // names of upstreams, whose addresses change

// Until somebody stops it; a changed file, and endpoints that come and go, are taken up on the way.
Status watch(Session& session, const std::string& path, gateway::Gateway& gateway, const EndpointService& endpoints,
             std::uint64_t seen_endpoints, bool names_hosts, StopSignal& stop) {
    std::error_code unknown;
    auto seen = std::filesystem::last_write_time(path, unknown);
    std::uint64_t version = 1;
    bool names = names_hosts;
    auto resolved = std::chrono::steady_clock::now();
    while (true) {
        const auto signal = stop.wait_for(kLookEveryS);
        if (signal && *signal != SIGHUP) return done();
        const auto now = std::filesystem::last_write_time(path, unknown);
        const std::uint64_t there = endpoints.version();
        const bool same = unknown || now == seen;
        const bool look_up =
            names && std::chrono::steady_clock::now() - resolved > std::chrono::duration<double>(kResolveEveryS);
        if (!signal && same && there == seen_endpoints && !look_up) continue;
        resolved = std::chrono::steady_clock::now();
        seen = now;
        const std::uint64_t seen_before = std::exchange(seen_endpoints, there);
        auto config = read_gateway_file(session, path, endpoints.boards());
        if (!config) {
            // A name server that does not answer for once is nobody's news.
            if (signal || !same || there != seen_before)
                fmt::print(stderr, "{}the gateway goes on as it was\n", config.error().text());
            continue;
        }
        names = config->setup->names_hosts;
        config->setup->version = ++version;
        gateway.set_setup(config->setup);
        if (!session.quiet && (signal || !same)) fmt::print(stderr, "{} was read again\n", path);
    }
}

Result<CommandOutput> run_gateway(Session& session, const Args& args) {
    const std::string path = gateway_file_path(args);
    StopSignal stop;
    write_no_core_files();
    // Before anything else is read, since what was read would be old when this one's turn comes.
    TRY(std::shared_ptr<SegmentHome> ledger_home, lead_ledger(session, args, stop));
    TRY(const std::string endpoints_at, endpoints_path(args));
    const char* elsewhere = std::getenv("STOKER_SERVER");
    const bool here = !args.has("server") && (args.has("folder") || elsewhere == nullptr || *elsewhere == '\0');
    EndpointService endpoints(
        endpoints_at, [&args] { return connect(args); }, here);
    const std::uint64_t seen_endpoints = endpoints.version();
    TRY(gateway::GatewayConfig config, read_gateway_file(session, path, endpoints.boards()));
    TRY(const ListenAddress listen, parse_listen(args.get_or("listen", config.listen)));
    if (!listen.loopback() && config.options.certificate_pem.empty())
        return Error(ErrorKind::denied,
                     fmt::format("{} is no loopback address, and keys would go there in the clear", listen.address), {},
                     "give tls_cert and tls_key, or listen on 127.0.0.1");
    config.options.address = listen.address;
    config.options.port = listen.port;
    config.options.will_be = [&endpoints](const std::string& model) { return endpoints.there(model); };
    if (args.has("no-ledger")) config.options.ledger_folder.clear();
    const std::string account = ledger_home ? config.options.ledger_database : config.options.ledger_folder;
    config.options.ledger_home = std::move(ledger_home);
    const bool tls = !config.options.certificate_pem.empty();
    // A file that may not grow is a write that fails, which the ledger knows how to take.
    std::signal(SIGXFSZ, SIG_IGN);
    TRY(auto gateway, gateway::Gateway::start(config.options, config.setup));
    const std::string url = fmt::format(
        "{}://{}:{}", tls ? "https" : "http",
        listen.address.find(':') == std::string::npos ? listen.address : "[" + listen.address + "]", gateway->port());
    // Who listens everywhere is reached by the name of the machine.
    const bool everywhere = listen.address == "0.0.0.0" || listen.address == "::";
    endpoints.listens_at(
        everywhere ? fmt::format("{}://{}:{}", tls ? "https" : "http", this_node().name, gateway->port()) : url);
    std::shared_ptr<batch::BatchService> batches;
    if (!config.options.batch_folder.empty()) {
        TRY(batches, batch::BatchService::start({.folder = config.options.batch_folder,
                                                 .at_once = config.options.batch_at_once,
                                                 .most_bytes = config.options.batch_bytes,
                                                 .server = fmt::format("http://127.0.0.1:{}", gateway->own_port()),
                                                 .secret = gateway->own_secret()}));
        gateway->set_side(std::make_shared<const gateway::SideApi>(gateway::SideApi{
            .takes = batch::BatchService::takes,
            .answer = [batches](const HttpRequest& request, const std::string& key, const std::string& project) {
                return batches->answer(request, {.key = key, .project = project});
            }}));
    }
    const Ledger::Recovery* recovery = gateway->recovery();
    const std::uint64_t recovered = recovery == nullptr ? 0 : recovery->recovered;
    if (session.format == Format::text) {
        std::string text =
            fmt::format("the gateway listens at {}\n  models {}, keys {}; {}\n", url, config.setup->models.size(),
                        config.setup->keys.size(), account.empty() ? "no account is kept" : "account in " + account);
        if (recovered > 0)
            text += fmt::format(
                "  {} request{} that the last process left open {} settled as far as {} known to have come\n",
                recovered, recovered == 1 ? "" : "s", recovered == 1 ? "was" : "were",
                recovered == 1 ? "it is" : "they are");
        TRY_VOID(print_now(text));
    } else {
        TRY_VOID(print_now(
            dump(session, Json::object().set("url", url).set("ledger", account).set("recovered", recovered))));
    }
    TRY_VOID(watch(session, path, *gateway, endpoints, seen_endpoints, config.setup->names_hosts, stop));
    if (!session.quiet)
        fmt::print(stderr, "stopping: what streams may end within {}; once more to end it now\n",
                   format_seconds(Seconds(config.drain_s)));
    stop.exit_on_the_next();
    // Lines under way are asked again by the next process.
    gateway->set_side(nullptr);
    batches.reset();
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
    const std::size_t takes = what == "key" ? 2 : what == "tokens" ? 3 : 1;
    if (args.positional.size() > takes)
        return Error(ErrorKind::invalid, fmt::format("'{}' is one too many", printable(args.positional[takes], 80)), {},
                     "stoker serve --help");
    if (what == "run") return run_gateway(session, args);
    if (what == "account") return show_account(session, args);
    if (what == "verify") return verify_ledger(session, args);
    if (what == "objectives") return show_objectives(session, args);
    if (what == "tokens") return count_tokens(session, args);
    if (what == "key") return make_gateway_key(session, args);
    return Error(ErrorKind::invalid, fmt::format("stoker serve has no '{}'", printable(what, 80)), {},
                 "run, account, objectives, verify, tokens TOKENIZER or key NAME");
}

}  // namespace

CliCommand serve_command() {
    CliCommand command{
        .name = "serve",
        .summary = "a gateway for models: keys, limits, streams, and an account that is never wrong",
        .usage = "stoker serve [run|account|objectives|verify|tokens TOKENIZER [TEXT]|key NAME] [options]",
        .description =
            "Listens as an OpenAI-compatible server (chat, completions, responses, embeddings, rerank, score, "
            "tokenize, speech, images, models; and Anthropic's messages) "
            "and passes requests on to the upstreams of their model: any server that speaks the same. Each request is "
            "reserved in "
            "a ledger before its answer is shown and settled exactly once, also when this process is killed "
            "meanwhile.\n"
            "Keys, models, limits and prices are taken up when the file changes. Ctrl-c or TERM lets streams end "
            "first.\n"
            "Endpoints of stoker deploy --endpoint are models, too: their replicas are runs of the server of --folder, "
            "started, probed, scaled and drained from here; a request that comes while none is ready is held.\n"
            "account: what was used and charged, by key and model. objectives: how far models keep what their "
            "objective "
            "asks, what is left of their error budget and how fast it is spent; exit 1 where it is overspent. verify: "
            "reads the whole ledger and says whether it "
            "is sound. "
            "tokens: counts a text (or standard input) as the gateway does, by the tokenizer of a model: "
            "tokenizer.json, a "
            "GGUF, a file of tiktoken. "
            "key: makes a key and says what to write into the file.",
        .examples = {"stoker serve key anna", "stoker serve --config gateway.yaml",
                     "stoker serve account --config gateway.yaml --by project --since 30d",
                     "stoker serve account --month 2026-11 --focus > tokens.csv",
                     "stoker serve objectives --config gateway.yaml",
                     "stoker serve objectives --rules > stoker-objectives.yaml",
                     "stoker serve verify --ledger ledger -o json",
                     "stoker serve tokens /models/qwen3-8b/tokenizer.json prompt.txt"},
        .options =
            {{.name = "config", .value = "FILE", .help = "what it is told to be (gateway.yaml)", .completes = "file"},
             {.name = "listen", .value = "ADDRESS:PORT", .help = "where to listen, in place of what the file says"},
             {.name = "ledger",
              .value = "DIR",
              .help = "for account, objectives and verify: this one, without a file",
              .completes = "dir"},
             {.name = "by", .value = "WHAT", .help = "of account: one line for each project, key or model"},
             {.name = "since",
              .value = "TIME",
              .help = "of account: only what ended since then (7d, or 2026-11-01T00:00:00Z)"},
             {.name = "month", .value = "MONTH", .help = "of account, with --focus: 2026-11, UTC"},
             {.name = "focus",
              .help = "of account: a row of CSV for each day, key, model and price, with the columns of FOCUS 1.2, as "
                      "stoker usage --focus has them for machines"},
             {.name = "rules", .help = "of objectives: alerts on burn rates for Prometheus"},
             {.name = "lines",
              .help = "of tokens: each line by itself; one that begins with a quote is a text of JSON"},
             {.name = "no-ledger", .help = "keep no account: to measure, or where another one is kept"}},
        .max_positional = 3,
        .subcommands = {"run", "account", "objectives", "verify", "tokens", "key"},
        .run = run_serve};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
