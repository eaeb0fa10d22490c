#include "server/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "base/version.h"
#include "deploy/azure/scheduled_events.h"
#include "deploy/engines/engines.h"
#include "explain/run_observer.h"
#include "io/core_files.h"
#include "io/files.h"
#include "io/handover.h"
#include "io/http/http_server.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "run/engine/upload.h"
#include "server/audit_trail.h"
#include "server/caller.h"
#include "server/handlers.h"
#include "server/idle_guard.h"
#include "server/log_events.h"
#include "server/owner_file.h"
#include "server/seal_keys.h"
#include "server/server_log.h"
#include "server/single_sign_on.h"
#include "server/tellers.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr double kLastWordsS = 1;  // of the log, when the process ends at once
constexpr std::size_t kMostPriceBytes = 4 << 20;
constexpr std::size_t kMaxSmallFile = 1 << 20, kMostToken = 1024, kSetupBytes = 32;
constexpr std::string_view kSetupPrefix = "setup_";

Result<std::string> token_of(const std::string& folder) {
    const std::string path = folder + "/token";
    std::error_code code;
    if (!fs::exists(path, code)) {
        TRY_VOID(write_for_owner(path, random_hex(32) + "\n"));
    }
    TRY(const std::string text, read_file(path, kMaxSmallFile).while_doing("reading the token"));
    const std::string_view token = trim(text);
    const bool visible = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
    if (token.size() < 16 || token.size() > kMostToken || !visible)
        return Error(ErrorKind::invalid,
                     fmt::format("the token is damaged: expected 16 to {} visible ASCII characters", kMostToken),
                     {path, 1, 1}, "remove the file: a new one is made at the next start");
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
        return Error(ErrorKind::denied,
                     "others can read the token (its mode is " + fmt::format("{:o})", status.st_mode & 0777u),
                     {path, 0, 0}, "chmod 600 " + path + ", or remove it, and a new one is made at the next start");
    return std::string(token);
}

void add_http_metrics(api::MetricsText& out, const HttpServerStats& stats) {
    using api::metric;
    const auto set = [&](std::size_t which, auto value) { out.set(which, static_cast<double>(value)); };
    set(metric("stoker_http_connections_total"), stats.connections);
    set(metric("stoker_http_connections"), stats.open);
    set(metric("stoker_http_requests_total"), stats.requests);
    set(metric("stoker_http_refused_total"), stats.refused);
    set(metric("stoker_http_streams"), stats.streams);
    set(metric("stoker_http_received_bytes_total"), stats.bytes_in);
    set(metric("stoker_http_sent_bytes_total"), stats.bytes_out);
}

void add_backup_metrics(api::MetricsText& out, const BackupStats& stats) {
    using api::metric;
    const auto set = [&](std::size_t which, auto value) { out.set(which, static_cast<double>(value)); };
    set(metric("stoker_backup_last_timestamp_seconds"), stats.last_us / 1'000'000);
    set(metric("stoker_backup_last_bytes"), stats.last_bytes);
    set(metric("stoker_backup_made_total"), stats.made);
    set(metric("stoker_backup_failed_total"), stats.failed);
}

class LocalServer final : public Server {
public:
    explicit LocalServer(ServerOptions options) : options_(std::move(options)) {}
    ~LocalServer() override { stop(0); }

    Status open() {
        std::error_code code;
        if (fs::create_directories(options_.folder, code) && !code) ::chmod(options_.folder.c_str(), 0700);
        if (code)
            return Error(ErrorKind::denied,
                         fmt::format("cannot make the folder {}: {}", options_.folder, code.message()));
        TRY_VOID(take_prices());
        keeper_ = std::make_shared<ConfigKeeper>(usual_settings(), options_.overrides, options_.catalog, options_.log);
        const auto offer = std::make_shared<NodeOffer>();
        ServerSettings settings;
        // Member by member: g++ 12 warns about an initialiser with a map in it.
        EngineOptions engine;
        engine.folder = options_.folder;
        const EngineKind* kind = nullptr;
        std::vector<std::string> left;
        engine.choose = [&](const State& state) -> Result<std::string> {
            TRY(settings, settings_at_start(state.config));
            if (settings.engine.kind.empty()) settings.engine.kind = options_.engine;
            TRY(kind, find_engine(settings.engine.kind));
            if (!options_.runs_as.empty() && !kind->here)
                return Error(ErrorKind::invalid, "--runs-as is for work on this machine", {},
                             fmt::format("leave it out: {} decides as whom work runs there", kind->name));
            if (!options_.runs_as.empty()) settings.engine.runs_as = options_.runs_as;
            offer->set(settings.nodes);
            left = engines_left(state, settings);
            return std::string(kind->name);
        };
        // Called while it opens, behind choose().
        engine.make_driver = [&, check = options_.node_check](const std::string& folder) {
            return make_engines({.folder = folder, .offer = offer, .check = check, .choice = settings.engine},
                                settings.engines, left);
        };
        engine.accept_loss = options_.accept_loss;
        engine.journal_home = options_.journal_home;
        engine.on_loss = [this](const std::string& what) {
            say(log_event("journal.lost"), {{"detail", what}});
            if (!options_.log) fmt::print(stderr, "warning: {}\n", what);
        };
        engine.configure = [&](const State&) -> Result<CoreLimits> { return settings.limits; };
        engine.on_failure = [this](const Error& error) {
            say(log_event("server.failed"), {{"error", error.message()}});
            if (options_.log) options_.log->flush(kLastWordsS);
            if (options_.on_failure) options_.on_failure(error);
        };
        engine.on_bug = [this](const Error& error) {
            say(log_event("server.failed"), {{"error", error.text()}});
            if (options_.log) return options_.log->flush(kLastWordsS);
            fmt::print(stderr, "{}", error.text());
        };
        write_no_core_files();
        TRY(seal_keys_, SealKeys::start({.folder = options_.folder, .log = options_.log}));
        TRY(engine_, Engine::open(std::move(engine)));
        if (options_.log) server_log_ = ServerLog::start(*engine_, options_.log);
        TRY_VOID(record_config());
        TRY_VOID(use_prices(settings.prices));
        TRY(tellers_, start_tellers(*engine_, settings.webhook, settings.notify, options_.log));
        TRY(observer_, RunObserver::start(*engine_, settings.prices));
        uploads_ =
            CheckpointUploads::start(*engine_, {.prune_failed = [log = options_.log](RunId run, const Error& error) {
                if (log)
                    log->write(log_event("checkpoint.prune_failed"), {{"run", run.text()}, {"error", error.message()}});
            }});
        TRY(token_, token_of(options_.folder));
        if (options_.log) options_.log->hide(Secret(token_));
        ApiOptions api{.token = token_, .actor = Actor::token("admin")};
        if (!options_.embedded) {
            TRY(api.audit, AuditTrail::open({.folder = options_.folder}));
            TRY(api.first_admin, first_admin());
            if (api.first_admin) setup_token_ = api.first_admin->token();
            if (api.first_admin && options_.log) options_.log->hide(Secret(setup_token_));
        }
        api.prices = std::move(settings.prices);
        api.config = keeper_;
        api.host_names = options_.host_names;
        api.series = observer_->series();
        idle_ = std::make_shared<IdleGuard>(
            *engine_,
            IdleOptions{.series = observer_->series(),
                        .prices = [this] { return prices_now(); },
                        .tell = [this](std::vector<JournalNotice> all) { tellers_.runs->tell(std::move(all)); },
                        .mails = settings.notify.idle,
                        .log = options_.log});
        idle_->use(settings.idle);
        api.idle = idle_;
        if (!options_.embedded) {
            tokens_ = std::make_unique<TokenCharges>(
                *engine_, TokenChargesOptions{.open_database = options_.open_tokens, .log = options_.log});
            tokens_->use(std::move(settings.tokens));
        }
        api.gpus = options_.gpus;
        api.desk = options_.desk;
        if (options_.certificate)
            for (std::string& name : names_of_certificate(options_.certificate->certificate_pem))
                api.host_names.push_back(std::move(name));
        api.embedded = options_.embedded;
        api.log = options_.log;
        api.may_notify = tellers_.may_notify;
        if (!settings.oidc.issuer.empty() && !options_.embedded) {
            std::string authorities;
            if (!settings.oidc.ca_file.empty()) {
                TRY(authorities, read_file(settings.oidc.ca_file, 1u << 20));
            }
            api.oidc = std::make_shared<SingleSignOn>(settings.oidc, std::move(authorities));
        }
        // Asked by requests only, so the server is there.
        api.more_metrics = [this](api::MetricsText& out) {
            add_http_metrics(out, http_->stats());
            if (const auto backups = this->backups()) add_backup_metrics(out, backups->stats());
            if (options_.log)
                out.set(api::metric("stoker_log_dropped_total"), static_cast<double>(options_.log->dropped()));
        };
        set_backups(settings.backup);
        TRY(api_, Api::make(*engine_, std::move(api)));
        keeper_->use({.newest = [this] { return newest_config(); },
                      .set_nodes =
                          [this, offer](std::vector<NodeInfo> nodes) {
                              offer->set(std::move(nodes));
                              engine_->discover();
                          },
                      .set_prices = [this](const PriceBook& prices) { (void)use_prices(prices); },
                      .set_limits = [this](const CoreLimits& limits) -> Status {
                          TRY([[maybe_unused]] const Ack ack,
                              call(*engine_, {.what = SetLimits{limits}, .actor = Actor::part("config")}));
                          return done();
                      },
                      .set_backup = [this](BackupOptions backup) { set_backups(std::move(backup)); },
                      .set_idle = [this](IdleRules rules) { idle_->use(std::move(rules)); },
                      .set_tokens =
                          [this](TokenAccounts accounts) {
                              if (tokens_) tokens_->use(std::move(accounts));
                          }});
        HttpServerOptions http{.address = options_.address,
                               .port = options_.port,
                               .socket = options_.socket,
                               .certificate_pem = options_.certificate ? options_.certificate->certificate_pem : "",
                               .key_pem = options_.certificate ? options_.certificate->key_pem : "",
                               .client_ca_pem = options_.client_ca_pem,
                               .max_body_bytes = 2u << 20,
                               .requests_per_second = settings.rate};
        const HttpHandler handler = [this](HttpRequest request, HttpReply reply) {
            api_->handle(std::move(request), std::move(reply));
        };
        auto listening = HttpServer::start(http, handler);
        if (!listening && options_.any_port_if_taken && listening.error().kind() == ErrorKind::unavailable) {
            http.port = 0;
            listening = HttpServer::start(http, handler);
        }
        TRY(http_, std::move(listening));
        const bool v6 = options_.address.find(':') != std::string::npos;
        const bool any = options_.address == "0.0.0.0" || options_.address == "::";
        url_ = fmt::format("http{}://{}{}{}:{}", options_.certificate ? "s" : "", v6 && !any ? "[" : "",
                           any ? "127.0.0.1" : options_.address, v6 && !any ? "]" : "", http_->port());
        if (!settings.azure_events.empty()) {
            TRY(events_, EventPoller::start({.url = settings.azure_events}, [offer](const EventMemory::Notice& notice) {
                    offer->notice(notice.seconds, notice.detail, wall_clock_us());
                }));
        }
        TRY_VOID(advertise());
        if (options_.on_handover) {
            // Where no such socket can be made, stoker up --replace says that nobody offers one.
            auto place = HandoverOffer::start(options_.folder, http_->socket(), [this](pid_t pid) {
                handed_over_ = true;
                say(log_event("server.replaced"), {{"pid", static_cast<std::int64_t>(pid)}});
                options_.on_handover(pid);
            });
            if (place) handover_ = std::move(*place);
        }
        say(log_event("server.started"), {{"version", version().number},
                                          {"commit", version().commit},
                                          {"folder", options_.folder},
                                          {"url", url_},
                                          {"pid", static_cast<std::int64_t>(::getpid())}});
        return done();
    }

    const std::string& url() const override { return url_; }
    const std::string& token() const override { return token_; }
    const std::string& setup_token() const override { return setup_token_; }
    Engine& engine() override { return *engine_; }
    Api& api() override { return *api_; }
    const std::string& config_in_words() const override { return config_in_words_; }
    std::size_t finish_uploads(const std::function<bool()>& stop) override {
        if (!uploads_) return 0;
        uploads_->finish(stop);
        return uploads_->owed();
    }

    void stop(double seconds) override {
        if (stopped_.exchange(true)) return;
        if (advertised_) say(log_event("server.stopping"), {});
        handover_.reset();
        // Whoever takes over listens there already.
        if (advertised_ && !handed_over_) ::unlink(address_file(options_.folder).c_str());
        events_.reset();
        if (idle_) idle_->stop();
        if (tokens_) tokens_->stop();
        tellers_ = {};
        if (api_) api_->stop();
        if (http_)
            http_->stop(std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
        if (keeper_) keeper_->use({});  // nothing is changed any more
        set_backups({});
        if (uploads_) uploads_->stop();
        observer_.reset();
        server_log_.reset();
        if (engine_) engine_->stop();
        if (advertised_) say(log_event("server.stopped"), {});
    }

private:
    void say(const LogEvent& event, const LogFields& fields) {
        if (options_.log) options_.log->write(event, fields);
    }

    // Where strangers could come, and nobody is there yet who could log in.
    Result<std::shared_ptr<api::FirstAdmin>> first_admin() {
        bool nobody = false;
        TRY_VOID(engine_->read([&](const EngineView& view) { nobody = view.state.tenants.users.empty(); }));
        if (!nobody || ListenAddress{options_.address, options_.port}.loopback())
            return std::shared_ptr<api::FirstAdmin>();
        return std::make_shared<api::FirstAdmin>(std::string(kSetupPrefix) + random_hex(kSetupBytes));
    }

    // The book that was given last stays with the folder: what a run cost is asked of later commands, too.
    Status use_prices(const PriceBook& prices) {
        TRY([[maybe_unused]] const Ack ack,
            call(*engine_, {.what = SetPrices{std::make_shared<const PriceBook>(prices), digest(prices)},
                            .actor = Actor::part("config")}));
        if (api_) api_->set_prices(prices);
        const std::lock_guard guard(backups_mutex_);
        in_force_ = std::make_shared<const PriceBook>(prices);
        return done();
    }

    std::shared_ptr<const PriceBook> prices_now() {
        const std::lock_guard guard(backups_mutex_);
        return in_force_;
    }

    Status take_prices() {
        const std::string kept = kept_prices(options_.folder);
        std::error_code code;
        if (options_.prices_file.empty() && fs::exists(kept, code)) options_.prices_file = kept;
        if (options_.prices_file.empty()) return done();
        TRY(const std::string text, read_file(options_.prices_file, kMostPriceBytes));
        TRY(prices_, PriceBook::read(text, options_.prices_file));
        return options_.prices_file == kept ? done() : write_for_owner(kept, text);
    }

    // Engines that have work of ours and are not in the configuration any more.
    static std::vector<std::string> engines_left(const State& state, const ServerSettings& settings) {
        std::set<std::string> names;
        for (const auto& [operation, attempt] : state.launches) names.insert(state.find(attempt)->engine);
        names.erase("");
        names.erase(name_of_engine(settings.engine));
        for (const EngineChoice& each : settings.engines) names.erase(each.name);
        return {names.begin(), names.end()};
    }

    // As the command line and the defaults have it.
    ServerSettings usual_settings() {
        return {.nodes = options_.nodes,
                .prices = prices_,
                .limits = {.max_queued = options_.max_queued,
                           .max_ended = options_.max_ended,
                           .keep_ended_s = options_.keep_ended_s},
                .backup = options_.backup,
                .rate = options_.requests_per_second,
                .azure_events = options_.azure_events,
                // Without a check every gang would wait for one.
                .health_gate = options_.node_check ? options_.health_gate : GateChoice::off};
    }

    Result<ServerSettings> settings_at_start(const ConfigVersions& versions) {
        if (options_.config) return keeper_->begin(options_.config->text, options_.config->name);
        if (versions.empty()) return keeper_->begin("", "");
        const std::string name = fmt::format("version {} of the configuration", versions.back().version);
        auto settings = keeper_->begin(versions.back().text, name);
        if (settings) return settings;
        Error error = settings.error();
        return std::move(error).while_doing(
            "starting with what the journal has; stoker up --config FILE starts with another");
    }

    Result<std::string> newest_config() {
        std::string text;
        TRY_VOID(engine_->read([&](const EngineView& view) {
            if (!view.state.config.empty()) text = view.state.config.back().text;
        }));
        return text;
    }

    // What was told at this start belongs to the history. A server for one run passes on what it finds.
    Status record_config() {
        if (!options_.embedded) {
            TRY(std::string text, newest_config());
            const bool other = options_.config && options_.config->text != text;
            std::string note = other ? "stoker up --config " + printable(options_.config->name, 400)
                                     : "the options of stoker up are others than before";
            if (options_.config) text = options_.config->text;
            TRY([[maybe_unused]] const Ack ack, call(*engine_, {.what = SetConfig{.text = std::move(text),
                                                                                  .note = std::move(note),
                                                                                  .overrides = options_.overrides},
                                                                .actor = Actor::part("command/up")}));
        }
        return engine_->read([&](const EngineView& view) {
            if (view.state.config.empty()) return;
            const ConfigVersion& newest = view.state.config.back();
            config_in_words_ = fmt::format("configuration version {}", newest.version);
            if (!newest.note.empty()) config_in_words_ += " (" + printable(newest.note, 100) + ")";
        });
    }

    std::shared_ptr<Backups> backups() {
        const std::lock_guard guard(backups_mutex_);
        return backups_;
    }
    void set_backups(BackupOptions backup) {
        std::shared_ptr<Backups> fresh;
        if (!backup.to.empty()) {
            backup.folder = options_.folder;
            // Its thread may be left behind with a store that does not answer.
            backup.told = [log = options_.log, to = backup.to](const Result<StoredJournal>& stored) {
                if (!log) return;
                if (stored)
                    log->write(log_event("backup.made"), {{"name", stored->name}, {"bytes", stored->bytes}});
                else
                    log->write(log_event("backup.failed"), {{"to", to}, {"error", stored.error().message()}});
            };
            fresh = Backups::start(std::move(backup));
        }
        {
            const std::lock_guard guard(backups_mutex_);
            fresh.swap(backups_);
        }
    }

    Status advertise() {
        Json json = Json::object()
                        .set("url", url_)
                        .set("pid", static_cast<std::int64_t>(::getpid()))
                        .set("embedded", options_.embedded);
        if (options_.certificate) json.set("ca_pem", options_.certificate->certificate_pem);
        TRY_VOID(write_for_owner(address_file(options_.folder), json.dump() + "\n"));
        advertised_ = true;
        return done();
    }

    ServerOptions options_;
    std::string url_, token_, setup_token_;
    std::unique_ptr<SealKeys> seal_keys_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<ServerLog> server_log_;
    std::unique_ptr<RunObserver> observer_;
    std::unique_ptr<CheckpointUploads> uploads_;
    std::shared_ptr<ConfigKeeper> keeper_;
    Tellers tellers_;
    PriceBook prices_;
    std::string config_in_words_;
    std::shared_ptr<IdleGuard> idle_;
    std::unique_ptr<TokenCharges> tokens_;
    std::mutex backups_mutex_;  // guards what follows
    std::shared_ptr<Backups> backups_;
    std::shared_ptr<const PriceBook> in_force_ = std::make_shared<const PriceBook>();
    std::unique_ptr<Api> api_;
    std::unique_ptr<EventPoller> events_;
    std::unique_ptr<HttpServer> http_;  // goes first: it calls the API
    std::unique_ptr<HandoverOffer> handover_;
    bool advertised_ = false;
    std::atomic<bool> handed_over_ = false;
    std::atomic<bool> stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
    TRY_VOID(may_listen({options.address, options.port}, options.certificate.has_value()));
    auto server = std::make_unique<LocalServer>(std::move(options));
    TRY_VOID(server->open());
    return std::unique_ptr<Server>(std::move(server));
}

Status may_listen(const ListenAddress& listen, bool with_tls) {
    if (!listen.loopback() && !with_tls)
        return Error(ErrorKind::denied,
                     fmt::format("{} can be reached from elsewhere, and without TLS the token could be read on the way",
                                 listen.address),
                     {}, "add --tls auto, or --tls-cert and --tls-key; 127.0.0.1 needs neither");
    return done();
}

std::string kept_prices(const std::string& folder) {
    return folder + "/prices.yaml";
}

}  // namespace stoker
