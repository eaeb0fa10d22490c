// stoker up: the control plane on this host, until it is told to stop.
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "app/client/client.h"
#include "app/client/output.h"
#include "app/commands/commands.h"
#include "app/commands/desk.h"
#include "app/commands/gpu_gate.h"
#include "app/commands/gpu_options.h"
#include "app/commands/journal_home.h"
#include "app/commands/ledger_home.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/engines/engines.h"
#include "io/files.h"
#include "io/handover.h"
#include "io/small_process.h"
#include "io/stop_signal.h"
#include "io/store/object_store.h"
#include "observe/gpu/rank_gpus.h"
#include "observe/health_lines.h"
#include "run/engine/engine.h"
#include "server/config_keeper.h"
#include "server/node_check.h"
#include "server/node_file.h"
#include "server/server.h"
#include "server/server_config.h"

namespace stoker {

namespace {

// The same after a restart, so that browsers and followers find it again.
constexpr int kUsualPort = 8042;
constexpr double kOldEndsWithinS = 60;   // answers what is open within 5 s, and uploads what is half way
constexpr double kRateElsewhere = 1000;  // of one address; the commands of a person make a few

Result<std::optional<Certificate>> certificate_of(const Args& args, const std::string& folder,
                                                  const std::string& address) {
    const std::string tls = args.get_or("tls", args.has("tls-cert") ? "files" : "off");
    if (tls == "auto") {
        TRY(Certificate own, own_certificate(folder, address, args.all("host-name")));
        return std::optional(std::move(own));
    }
    const auto certificate_file = args.get("tls-cert"), key_file = args.get("tls-key");
    if (!certificate_file && !key_file) return std::optional<Certificate>();
    if (!certificate_file || !key_file)
        return Error(ErrorKind::invalid, "--tls-cert and --tls-key are given together or not at all");
    TRY(std::string certificate, read_file(*certificate_file, 1 << 20));
    TRY(std::string key, read_file(*key_file, 1 << 20));
    Certificate given{std::move(certificate), std::move(key)};
    TRY_VOID(check_certificate(given).while_doing("reading " + *certificate_file + " and " + *key_file));
    return std::optional(std::move(given));
}

Result<std::vector<NodeInfo>> offered_nodes(Session& session, const Args& args) {
    if (const auto file = args.get("nodes")) {
        TRY(const Document document, session.read_document(*file));
        TRY(Catalog * catalog, session.catalog());
        return read_node_file(document, *catalog);
    }
    TRY(const int parts, args.whole_number("virtual-nodes", 0, 0, 1000));
    if (parts == 0) return std::vector<NodeInfo>();
    return split_node(this_node(), parts);
}

// What the command line says, by key of the configuration: it goes before it.
std::map<std::string, std::string> config_overrides_of(const Args& args) {
    constexpr std::pair<const char*, const char*> kOptions[] = {
        {"nodes", "nodes"},
        {"virtual-nodes", "nodes"},
        {"prices", "prices"},
        {"max-queued", "max_queued"},
        {"max-ended", "max_ended"},
        {"keep-ended", "keep_ended"},
        {"backup-to", "backup"},
        {"backup-every", "backup"},
        {"backup-keep", "backup"},
        {"rate", "rate"},
        {"azure-events", "azure_events"},
        {"health-gate", "health_gate"},
        {"runs-as", "engine"},
        {"log-level", "log_level"},
        {"log-format", "log_format"},
    };
    std::map<std::string, std::string> overrides;
    for (const auto& [option, key] : kOptions)
        if (const auto value = args.get(option)) {
            std::string& words = overrides[key];
            words += fmt::format("{}--{} {}", words.empty() ? "" : " ", option, printable(*value, 1000));
        }
    return overrides;
}

Result<std::optional<ServerOptions::ConfigFile>> config_file(Session& session, const Args& args) {
    const auto file = args.get("config");
    if (!file) return std::optional<ServerOptions::ConfigFile>();
    TRY(std::string text, session.read_source(*file));
    return std::optional(ServerOptions::ConfigFile{std::move(text), *file == "-" ? "stdin" : *file});
}

Result<BackupOptions> backup_options(const Args& args) {
    BackupOptions backup{.to = args.get_or("backup-to", "")};
    if (backup.to.empty()) {
        if (args.has("backup-every") || args.has("backup-keep"))
            return Error(ErrorKind::invalid, "--backup-every and --backup-keep need --backup-to URL");
        return backup;
    }
    // Keys that are missing are told now, not in an hour.
    TRY(const ObjectUrl url, read_object_url(backup.to));
    TRY([[maybe_unused]] const auto store, ObjectStore::open(url));
    if (const auto every = args.get("backup-every")) {
        const auto seconds = parse_seconds(*every);
        if (!seconds || seconds->v < 1 || seconds->v > kMostBackupEveryS)
            return Error(ErrorKind::invalid, "--backup-every takes a duration, not '" + printable(*every, 40) + "'", {},
                         "write for example 1h, 1 s to 366 days");
        backup.every_s = seconds->v;
    }
    TRY(backup.keep, args.whole_number("backup-keep", backup.keep, 1, 1'000'000));
    return backup;
}

// How much is kept in memory at most.
struct Bounds {
    int max_queued = 0, max_ended = 0;
    std::int64_t keep_ended_s = 0;
};

Result<Bounds> bounds_of(const Args& args) {
    const ServerOptions usual;
    Bounds bounds;
    TRY(bounds.max_queued, args.whole_number("max-queued", static_cast<int>(usual.max_queued), 1, kMostKeptRuns));
    TRY(bounds.max_ended, args.whole_number("max-ended", static_cast<int>(usual.max_ended), 0, kMostKeptRuns));
    const auto keep = args.get("keep-ended");
    if (!keep) return bounds;
    const auto seconds = parse_seconds(*keep);
    // Less than a minute, and a client that waits for its run would not learn how it ended.
    if (!seconds || !(seconds->value() >= kLeastKeepEndedS && seconds->value() <= kMostKeepEndedS))
        return Error(ErrorKind::invalid,
                     "--keep-ended takes a time from 1m to a hundred years, not '" + printable(*keep, 80) + "'", {},
                     "30d keeps runs for thirty days after their end");
    bounds.keep_ended_s = static_cast<std::int64_t>(seconds->value());
    return bounds;
}

GateChoice health_gate_of(const Args& args) {
    const auto asked = args.get("health-gate");
    if (!asked) return GateChoice::by_nodes;
    return *asked == "off" ? GateChoice::off : *asked == "full" ? GateChoice::full : GateChoice::quick;
}

Result<std::string> doctor_token_of(const Args& args) {
    const auto file = args.get("doctor-token-file");
    if (!file) return std::string();
    TRY(const std::string text, read_file(*file, 1 << 16).while_doing("reading the token of the doctors"));
    const std::string token(trim(text));
    if (token.empty())
        return Error(ErrorKind::invalid, "expected a token", {*file, 1, 1},
                     "copy the token of stoker doctor serve into the file");
    return token;
}

Result<std::shared_ptr<Log>> log_of(const Session& session, const Args& args) {
    LogOptions options{.level = session.quiet ? LogLevel::warn : LogLevel::info,
                       .format = args.get_or("log-format", "logfmt") == "json" ? LogFormat::json : LogFormat::logfmt,
                       .file = args.get_or("log-file", "")};
    if (const auto asked = args.get("log-level")) options.level = enum_named<LogLevel>(*asked).value_or(options.level);
    TRY(auto log, Log::open(std::move(options)));
    return std::shared_ptr<Log>(std::move(log));
}

// A socket that somebody else has made: the server whose place is taken, or the service manager (sd_listen_fds(3)).
struct GivenSocket {
    std::optional<Handover> from;  // the server before
    int socket = -1;
    ListenAddress listen;
};

Result<std::optional<GivenSocket>> given_socket(const Args& args, const std::string& folder) {
    GivenSocket given;
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    if (args.has("replace")) {
        TRY(given.from, Handover::ask(folder));
        given.socket = given.from->socket();
    } else if (pid != nullptr && count != nullptr && pid == std::to_string(::getpid())) {
        if (std::string_view(count) != "1")
            return Error(ErrorKind::invalid,
                         fmt::format("the service manager gives {} sockets, and one is listened to", count), {},
                         "one ListenStream= in the socket unit");
        constexpr int kFirstGiven = 3;
        given.socket = kFirstGiven;
        for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
    } else {
        return std::optional<GivenSocket>();
    }
    TRY(const SocketPlace place, place_of_socket(given.socket));
    given.listen = {place.address, place.port};
    if (const auto asked = args.get("listen")) {
        TRY(const ListenAddress other, parse_listen(*asked));
        if (other.address != given.listen.address || (other.port != 0 && other.port != given.listen.port))
            return Error(ErrorKind::invalid,
                         fmt::format("--listen {}, and the socket that is given listens on {} port {}",
                                     printable(*asked, 80), given.listen.address, given.listen.port),
                         {}, "leave --listen away; for another address, stop the server and start it again");
    }
    return std::optional(std::move(given));
}

// Before the server that is there ends: what would keep this one from starting is told, and nothing has happened.
Status look_before(const std::string& folder, const std::optional<ServerOptions::ConfigFile>& config,
                   const CatalogSource& catalog) {
    if (config) TRY_VOID(read_server_config(config->text, config->name, catalog));
    const auto known = read_offline(folder);
    if (known || known.error().kind() == ErrorKind::not_found) return done();
    Error error = known.error();
    return std::move(error).while_doing("looking whether this one can go on; the server that is there goes on");
}

Result<GpuHealthPolicy> gpu_policy_of(const Args& args) {
    const auto file = args.get("gpu-policy");
    if (!file) return usual_gpu_policy();
    TRY(const std::string text, read_file(*file, 1 << 20));
    return read_gpu_policy(text, *file);
}

Result<CommandOutput> run_up(Session& session, const Args& args) {
    share_heaps(2);
    TRY(const std::string folder, state_folder(folder_option(args)));
    TRY(auto given, given_socket(args, folder));
    TRY(ListenAddress listen, parse_listen(args.get_or("listen", fmt::format("127.0.0.1:{}", kUsualPort))));
    if (given) listen = given->listen;
    for (const std::string& name : args.all("host-name"))
        if (name.empty() || name.find_first_of("/: \t") != std::string::npos)
            return Error(ErrorKind::invalid, "--host-name takes a name, not '" + printable(name, 80) + "'", {},
                         "without a scheme and a port: stoker.example.org");
    TRY(auto certificate, certificate_of(args, folder, listen.address));
    std::string client_ca;
    if (const auto file = args.get("client-ca")) {
        if (!certificate)
            return Error(ErrorKind::invalid, "--client-ca needs TLS", {},
                         "add --tls auto, or --tls-cert and --tls-key");
        TRY(client_ca, read_file(*file, 1 << 20));
    }
    TRY(const double rate, args.number("rate", listen.loopback() ? 0 : kRateElsewhere, 0, kMostRate));
    TRY(const Bounds bounds, bounds_of(args));
    TRY(auto nodes, offered_nodes(session, args));
    TRY(BackupOptions backup, backup_options(args));
    TRY(const std::string doctor_token, doctor_token_of(args));
    TRY(const GpuHealthPolicy gpu_policy, gpu_policy_of(args));
    const std::string size = args.get_or("size", "");
    if (!size.empty()) TRY_VOID(facts_of_size(size));
    std::error_code made;  // where it is new, nobody else may look into it
    if (std::filesystem::create_directories(folder, made) && !made) ::chmod(folder.c_str(), 0700);
    TRY(auto gpu_series, SeriesStore::open(folder + "/node-series"));
    const auto fleet = std::make_shared<GpuFleet>(std::move(gpu_series), gpu_policy);
    NodeCheckFunction check = with_gpus(node_check(doctor_token, folder, size), gpu_policy, fleet);
    TRY(auto config, config_file(session, args));
    const CatalogSource catalog = [&session]() -> Result<Catalog> {
        TRY(const Catalog* known, session.catalog());
        return *known;
    };
    // Before any thread begins: they all inherit that these signals are ours to wait for.
    StopSignal stop;
    allow_gpus_of_ranks(gpu_root_options());
    TRY(auto log, log_of(session, args));
    TRY_VOID(may_listen(listen, certificate.has_value()));
    int socket = given ? given->socket : -1;
    if (given && given->from) {
        TRY_VOID(look_before(folder, config, catalog));
        socket = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);  // the server closes it
        if (socket < 0) return Error(ErrorKind::exhausted, "there is no descriptor left for the socket");
        TRY_VOID(given->from->go(kOldEndsWithinS).while_doing("taking the place of the server that is there"));
    }
    std::shared_ptr<JournalHome> home;
    if (const auto where = journal_url(args)) {
        TRY(home, lead_journal(*where, stop, session.quiet));
    }
    std::atomic<std::int64_t> replaced_by = 0;
    TRY(auto server, Server::start({.folder = folder,
                                    .address = listen.address,
                                    .port = listen.port,
                                    .any_port_if_taken = !args.has("listen") && !given,
                                    .socket = socket,
                                    .on_handover =
                                        [&replaced_by](std::int64_t pid) {
                                            replaced_by = pid;
                                            ::kill(::getpid(), SIGTERM);  // as if it was told to end
                                        },
                                    .runs_as = args.get_or("runs-as", ""),
                                    .certificate = std::move(certificate),
                                    .client_ca_pem = std::move(client_ca),
                                    .nodes = std::move(nodes),
                                    .accept_loss = args.has("accept-loss"),
                                    .journal_home = std::move(home),
                                    .prices_file = args.get_or("prices", ""),
                                    .requests_per_second = rate,
                                    .azure_events = azure_events_url(args.get_or("azure-events", "auto")),
                                    .max_queued = static_cast<std::size_t>(bounds.max_queued),
                                    .max_ended = static_cast<std::size_t>(bounds.max_ended),
                                    .keep_ended_s = bounds.keep_ended_s,
                                    .host_names = args.all("host-name"),
                                    .backup = std::move(backup),
                                    .health_gate = health_gate_of(args),
                                    .node_check = std::move(check),
                                    .gpus = fleet,
                                    .desk = make_desk(folder, session.catalog_dir),
                                    .overrides = config_overrides_of(args),
                                    .config = std::move(config),
                                    .catalog = catalog,
                                    .open_tokens = open_token_account,
                                    .log = std::move(log),
                                    .on_failure =
                                        [](const Error& error) {
                                            // The state may be ahead of the disk: nothing may happen any more.
                                            fmt::print(stderr, "{}", error.text());
                                            std::_Exit(3);
                                        }}));
    if (session.format == Format::text) {
        TRY_VOID(
            print_now(fmt::format("stoker is up at {}\n  folder {}, token in {}/token; ctrl-c ends it, and what "
                                  "runs goes on\n{}",
                                  server->url(), folder, folder,
                                  server->config_in_words().empty() ? "" : "  " + server->config_in_words() + "\n")));
        if (!server->setup_token().empty())
            TRY_VOID(
                print_now(fmt::format("  nobody can log in yet; the first administrator, once:\n"
                                      "  stoker login NAME --server {} --setup {}\n",
                                      server->url(), server->setup_token())));
    } else {
        Json up = Json::object().set("url", server->url()).set("folder", folder);
        if (!server->setup_token().empty()) up.set("setup_token", server->setup_token());
        TRY_VOID(print_now(dump(session, up)));
    }
    std::unique_ptr<GpuSentry> sentry;
    if (health_gate_of(args) != GateChoice::off) {
        sentry = GpuSentry::start(server->engine(), gpu_policy);
        tell_engine_of(*fleet, server->engine());
    }
    stop.wait();
    sentry.reset();
    fleet->on_worse({});
    if (!session.quiet)
        fmt::print(stderr, "{}; what runs goes on, and {} finds it\n",
                   replaced_by > 0 ? fmt::format("process {} takes over", replaced_by.load()) : "stopping",
                   replaced_by > 0 ? "it" : "the next stoker up");
    stop.exit_on_the_next();
    server->stop(5);
    return CommandOutput{};
}

}  // namespace

CliCommand up_command() {
    return {
        .name = "up",
        .summary = "the control plane on this host: queue, engine, API",
        .usage = "stoker up [options]",
        .description =
            "Runs until ctrl-c or TERM. Everything is kept in one folder: the journal (stoker.db), a token that is "
            "made at the first start, and what runs leave. A second server on the same folder is refused.\n"
            "It listens on 127.0.0.1 unless told otherwise, and elsewhere only with TLS. What runs when the server "
            "ends, also by kill -9, goes on; the next server takes it over.\n"
            "With --journal a record counts as written when PostgreSQL has it; one of several servers leads.\n"
            "Metrics for Prometheus are at /metrics, the description of the API at /api/v1/openapi.json. What it does "
            "is told on standard error, one event a line.",
        .examples = {"stoker up", "stoker up --listen 127.0.0.1:8042 --folder /srv/stoker",
                     "stoker up --listen 10.0.0.5:8443 --tls auto", "stoker up --nodes on-prem-nodes.yaml",
                     "stoker up --config server.yaml", "stoker up --replace",
                     "stoker up --journal postgresql://stoker@db.example.org/stoker --folder /mnt/shared/stoker"},
        .options =
            {{.name = "folder",
              .value = "DIR",
              .help = "what it keeps (STOKER_FOLDER, else ~/.local/state/stoker)",
              .completes = "dir"},
             {.name = "accept-loss", .help = "go on with a journal that has lost records; what they started is ended"},
             {.name = "journal",
              .value = "URL",
              .help = "keep the journal in a PostgreSQL database too (STOKER_JOURNAL): a second server with the same "
                      "address stands by and takes over"},
             {.name = "replace",
              .help = "take the place of the server that runs, as after an upgrade: its socket goes over, so nobody "
                      "is refused meanwhile, and what runs goes on"},
             {.name = "listen",
              .value = "ADDRESS:PORT",
              .help = "where to listen (127.0.0.1:8042, or a free port when that is taken)"},
             {.name = "tls",
              .value = "HOW",
              .help = "auto: with a certificate of its own making, in FOLDER/tls",
              .choices = {"auto", "off"}},
             {.name = "host-name",
              .value = "NAME",
              .help = "answer to this name too, beside localhost, addresses and names of the certificate",
              .repeats = true},
             {.name = "tls-cert", .value = "FILE", .help = "certificate chain, PEM", .completes = "file"},
             {.name = "tls-key", .value = "FILE", .help = "its key, PEM", .completes = "file"},
             {.name = "client-ca",
              .value = "FILE",
              .help = "who shows a certificate of this authority is the user of its common name, PEM",
              .completes = "file"},
             {.name = "config",
              .value = "FILE",
              .help = "what it offers, keeps and charges; each change of it is a version (stoker config). "
                      "Without it the newest version is in force; the options below go before it",
              .completes = "file"},
             {.name = "nodes",
              .value = "FILE",
              .help = "offer these nodes, as examples/on-prem-nodes.yaml, instead of this machine as it is",
              .completes = "file"},
             {.name = "virtual-nodes", .value = "N", .help = "offer this machine as N equal nodes"},
             {.name = "runs-as",
              .value = "WHO",
              .help = "as whom work runs on this machine, where the server is root: project (a user of its own for "
                      "each project, who cannot read the server's token, journal and secrets), the name of an account, "
                      "or server, which is meant when nothing is said"},
             {.name = "gpu-policy",
              .value = "FILE",
              .help = "which faults of a GPU keep work off its node (built in)",
              .completes = "file"},
             {.name = "health-gate",
              .value = "LEVEL",
              .help = "how nodes are checked before they take gangs: off, quick (some seconds) or full (minutes)",
              .choices = {"off", "quick", "full"}},
             {.name = "size",
              .value = "SIZE",
              .help = "what this machine is, whose published thresholds its checks are held against",
              .completes = "size"},
             {.name = "doctor-token-file",
              .value = "FILE",
              .help = "what `stoker doctor serve` on the nodes wants to be shown (key `doctor` in --nodes)",
              .completes = "file"},
             {.name = "prices",
              .value = "FILE",
              .help = "price book, for stoker usage and the cost of runs",
              .completes = "file"},
             {.name = "log-level",
              .value = "LEVEL",
              .help = "what it says of itself: debug (each request), info, warn, error or off (info)",
              .choices = {"debug", "info", "warn", "error", "off"}},
             {.name = "log-format",
              .value = "FORM",
              .help = "one line an event: logfmt or json (logfmt)",
              .choices = {"logfmt", "json"}},
             {.name = "log-file",
              .value = "FILE",
              .help = "where to, instead of standard error; 64 MiB, and four older ones beside it",
              .completes = "file"},
             {.name = "azure-events",
              .value = "URL",
              .help = "scheduled events of Azure, which announce evictions: auto (on its VMs), off, or where"},
             {.name = "backup-to",
              .value = "URL",
              .help = "copy the journal there at the start and every so often: s3://, az:// or file://"},
             {.name = "backup-every", .value = "TIME", .help = "how often (1h)"},
             {.name = "backup-keep", .value = "N", .help = "copies of this server that are kept there (24)"},
             {.name = "max-queued",
              .value = "N",
              .help = "runs that may wait; more are refused, to be tried again later (50000)"},
             {.name = "max-ended",
              .value = "N",
              .help = "runs that are kept after their end, some 2 KB each; the oldest go first, and the "
                      "journal keeps all (100000; 0: no limit)"},
             {.name = "keep-ended", .value = "TIME", .help = "and for how long at most: 30d (no limit)"},
             {.name = "rate",
              .value = "N",
              .help = "requests a second that one client may make (no limit on loopback, 1000 elsewhere; 0: none)"}},
        .run = run_up};
}

}  // namespace stoker
