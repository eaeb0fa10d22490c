#include "server/config_keeper.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/codec.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/azure/scheduled_events.h"
#include "deploy/engines/engines.h"
#include "io/store/object_store.h"
#include "server/node_file.h"

namespace stoker {
namespace {

constexpr std::size_t kNamedNodes = 5;
constexpr const char* kConfigName = "config";

std::string nodes_in_words(const std::vector<NodeInfo>& nodes) {
    if (nodes.empty()) return "this machine";
    std::vector<std::string> names;
    for (const NodeInfo& node : nodes) {
        if (names.size() == kNamedNodes) {
            names.push_back("...");
            break;
        }
        names.push_back(printable(node.name, 40));
    }
    return fmt::format("{} node{}: {}", nodes.size(), nodes.size() == 1 ? "" : "s", join(names, ", "));
}

std::string exact_nodes(const std::vector<NodeInfo>& nodes) {
    std::string text;
    for (const NodeInfo& node : nodes) {
        text += codec::encode(node) + "\n";
        for (const DeviceInfo& device : node.devices) text += device.file + "\n";
    }
    return text;
}

std::string exact_prices(const PriceBook& book) {
    std::string text = book.currency + "\n" + book.source + "\n";
    for (const BookPrice& price : book.prices)
        text += fmt::format("{} {} {} {} {}\n", to_string(price.resource), price.model, price.node,
                            price.microusd_per_hour, price.valid_from_us);
    for (const Markup& each : book.markups) text += fmt::format("{} {}\n", each.organisation, each.basis_points);
    return text;
}

std::string exact_engine(const EngineChoice& engine) {
    std::string exact = in_words(engine) + fmt::format("\n{}", engine.notice_s);
    for (const auto& [name, model] : engine.gpu_models) exact += "\n" + name + "=" + model;
    for (const std::string& each : engine.mounts) exact += "\nmounts " + each;
    for (const std::string* each : {&engine.rest.user, &engine.rest.token_file, &engine.rest.ca_file})
        exact += "\nrest " + *each;
    return exact + exact_words(engine.kubernetes);
}

std::optional<HealthLevel> gate_level(GateChoice choice, const std::vector<NodeInfo>& nodes) {
    if (choice == GateChoice::quick) return HealthLevel::quick;
    if (choice == GateChoice::full) return HealthLevel::full;
    const bool any = std::any_of(nodes.begin(), nodes.end(), [](const NodeInfo& node) { return !node.doctor.empty(); });
    return choice == GateChoice::by_nodes && any ? std::optional(HealthLevel::quick) : std::nullopt;
}

std::string number_or(std::int64_t number, const char* zero) {
    return number == 0 ? zero : std::to_string(number);
}

}  // namespace

std::string azure_events_url(const std::string& asked) {
    if (asked == "off") return {};
    if (asked != "auto") return asked;
    return on_azure() ? EventPollerOptions{}.url : std::string();
}

ConfigKeeper::ConfigKeeper(ServerSettings usual, std::map<std::string, std::string> overrides, CatalogSource catalog,
                           std::shared_ptr<Log> log)
    : usual_([&] {
          if (log) {
              usual.log_level = log->level();
              usual.log_format = log->format();
          }
          return std::move(usual);
      }()),
      overrides_(std::move(overrides)),
      catalog_(std::move(catalog)),
      log_(std::move(log)) {}

void ConfigKeeper::use_log(const ServerSettings& settings) const {
    if (log_) log_->use(settings.log_level, settings.log_format);
}

Result<ServerConfig> ConfigKeeper::read(const std::string& text, const std::string& name) const {
    TRY(ServerConfig config, read_server_config(text, name, catalog_));
    // Keys of the store that are missing are told now, not in an hour.
    if (config.backup && !overridden("backup")) {
        TRY(const ObjectUrl url, read_object_url(config.backup->to));
        if (const auto store = ObjectStore::open(url); !store) {
            const Problem& problem = store.error().problems().front();
            return Error(ErrorKind::invalid, "backup.to: " + problem.message, config.backup->at.at("to"),
                         problem.remedy);
        }
    }
    return config;
}

Result<ServerSettings> ConfigKeeper::settle(const ServerConfig& config) const {
    ServerSettings settings = usual_;
    const auto say = [this](const char* key, const auto& value, auto& out) {
        if (value && !overridden(key)) out = static_cast<std::remove_reference_t<decltype(out)>>(*value);
    };
    say("nodes", config.nodes, settings.nodes);
    if (config.virtual_nodes && !overridden("nodes")) {
        TRY(settings.nodes, split_node(this_node(), *config.virtual_nodes));
    }
    say("prices", config.prices, settings.prices);
    say("max_queued", config.max_queued, settings.limits.max_queued);
    say("max_ended", config.max_ended, settings.limits.max_ended);
    if (config.keep_ended && !overridden("keep_ended"))
        settings.limits.keep_ended_s = static_cast<std::int64_t>(config.keep_ended->value());
    say("policy", config.policy, settings.limits.policy);
    settings.limits.admission = admission_policy(config);
    // What cannot check stays off.
    if (usual_.health_gate != GateChoice::off) say("health_gate", config.health_gate, settings.health_gate);
    settings.limits.health = gate_level(settings.health_gate, settings.nodes);
    if (config.backup && !overridden("backup")) {
        const BackupOptions plain;
        settings.backup.to = config.backup->to;
        settings.backup.every_s = config.backup->every ? config.backup->every->value() : plain.every_s;
        settings.backup.keep = config.backup->keep.value_or(plain.keep);
    }
    say("rate", config.rate, settings.rate);
    say("log_level", config.log_level, settings.log_level);
    say("log_format", config.log_format, settings.log_format);
    if (config.engine) settings.engine = *config.engine;
    settings.engines.assign(config.engines.begin(), config.engines.end());
    if (config.webhook) settings.webhook = *config.webhook;
    if (config.notify) settings.notify = *config.notify;
    settings.idle = config.idle;
    settings.tokens = config.tokens;
    if (config.budgets && config.budgets->lower_first)
        settings.limits.lower_first_s = static_cast<std::int64_t>(config.budgets->lower_first->value());
    if (config.keys && config.keys->own_longest)
        settings.limits.own_key_longest_s = static_cast<std::int64_t>(config.keys->own_longest->value());
    if (config.oidc) settings.oidc = *config.oidc;
    if (config.azure_events && !overridden("azure_events"))
        settings.azure_events = azure_events_url(*config.azure_events);
    return settings;
}

std::vector<ConfigKeeper::Row> ConfigKeeper::rows_of(const ServerConfig& config, const ServerSettings& settings) const {
    std::vector<Row> rows;
    const auto add = [&](const char* key, bool written, std::string value, std::string exact, bool live = true) {
        const auto option = overrides_.find(key);
        const char* source = option != overrides_.end() ? "command_line" : written ? "configuration" : "default";
        if (option != overrides_.end()) value += " (" + printable(option->second, 80) + ")";
        rows.push_back({{.key = key, .value = std::move(value), .source = source, .live = live}, std::move(exact)});
    };
    const CoreLimits& limits = settings.limits;
    add("nodes", config.nodes || config.virtual_nodes,
        settings.engine.kind.empty() || settings.engine.kind == "local" ? nodes_in_words(settings.nodes)
                                                                        : "those of the engine",
        exact_nodes(settings.nodes));
    const std::size_t prices = settings.prices.prices.size();
    add("prices", config.prices.has_value(),
        prices == 0
            ? "none"
            : fmt::format("{} price{}: {}", prices, prices == 1 ? "" : "s", printable(settings.prices.source, 60)),
        exact_prices(settings.prices));
    add("max_queued", config.max_queued.has_value(), std::to_string(limits.max_queued),
        std::to_string(limits.max_queued));
    add("max_ended", config.max_ended.has_value(), number_or(static_cast<std::int64_t>(limits.max_ended), "no limit"),
        std::to_string(limits.max_ended));
    add("keep_ended", config.keep_ended.has_value(),
        limits.keep_ended_s == 0 ? "no limit" : format_seconds(Seconds(static_cast<double>(limits.keep_ended_s))),
        std::to_string(limits.keep_ended_s));
    const BackupOptions& backup = settings.backup;
    add("backup", config.backup.has_value(),
        backup.to.empty() ? "none"
                          : fmt::format("{} every {}, {} kept", printable(backup.to, 60),
                                        format_seconds(Seconds(backup.every_s)), number_or(backup.keep, "all")),
        fmt::format("{}\n{}\n{}", backup.to, backup.every_s, backup.keep));
    const std::string policy(to_string(limits.policy));
    add("policy", config.policy.has_value(), policy, policy);
    const AdmissionRules rules = limits.admission ? limits.admission->rules : AdmissionRules{};
    std::string exact_rules = exact_text(rules);
    if (limits.admission)
        for (const EnginePlace& each : limits.admission->engines) exact_rules += each.name + " " + each.region + "\n";
    add("admission", !rules.empty(),
        rules.empty() ? "every run is taken" : fmt::format("{} rule{}", rules.size(), rules.size() == 1 ? "" : "s"),
        std::move(exact_rules));
    const std::size_t idle = settings.idle.size();
    add("idle", idle != 0, idle == 0 ? "left alone" : fmt::format("{} rule{}", idle, idle == 1 ? "" : "s"),
        exact_text(settings.idle));
    const std::size_t accounts = settings.tokens.size();
    add("tokens", accounts != 0,
        accounts == 0 ? "of no gateway" : fmt::format("of {} gateway{}", accounts, accounts == 1 ? "" : "s"),
        exact_text(settings.tokens));
    add("budgets", config.budgets.has_value(),
        limits.lower_first_s == 0 ? "all stops at once"
                                  : fmt::format("what stands higher goes on {} longer",
                                                format_seconds(Seconds(static_cast<double>(limits.lower_first_s)))),
        std::to_string(limits.lower_first_s));
    add("keys", config.keys.has_value(),
        limits.own_key_longest_s == 0
            ? "made by admins alone"
            : fmt::format("one's own hold at most {}",
                          format_seconds(Seconds(static_cast<double>(limits.own_key_longest_s)))),
        std::to_string(limits.own_key_longest_s));
    const std::string gate(limits.health ? to_string(*limits.health) : "off");
    add("health_gate", config.health_gate.has_value(), gate, gate);
    add("rate", config.rate.has_value(), settings.rate == 0 ? "no limit" : fmt::format("{:g} a second", settings.rate),
        fmt::format("{}", settings.rate), false);
    const std::string level(enum_word(settings.log_level)), format(enum_word(settings.log_format));
    add("log_level", config.log_level.has_value(), level, level);
    add("log_format", config.log_format.has_value(), format, format);
    add("azure_events", config.azure_events.has_value(),
        settings.azure_events.empty() ? "off" : printable(settings.azure_events, 80), settings.azure_events, false);
    add("webhook", config.webhook.has_value(),
        settings.webhook.url.empty() ? "none" : printable(settings.webhook.url, 80),
        settings.webhook.url + "\n" + settings.webhook.secret_file, false);
    const NotifyForm& notify = settings.notify;
    const std::string urls = notify.urls.empty() ? "any address" : join(notify.urls, ", ");
    add("notify", config.notify.has_value(),
        printable(urls, 80) + (notify.program.empty() ? "" : "; program " + printable(notify.program, 80)) +
            (notify.budgets.empty() ? "" : "; of budgets " + printable(join(notify.budgets, ", "), 80)) +
            (notify.idle.empty() ? "" : "; of idle runs " + printable(join(notify.idle, ", "), 80)),
        join({urls, notify.program, notify.sendmail, join(notify.budgets, ","), join(notify.idle, ",")}, "\n"), false);
    add("oidc", config.oidc.has_value(), settings.oidc.issuer.empty() ? "none" : printable(settings.oidc.issuer, 80),
        exact_text(settings.oidc), false);
    add("engine", config.engine.has_value(), in_words(settings.engine), exact_engine(settings.engine), false);
    std::string engines, exact_engines;
    for (const EngineChoice& each : settings.engines) {
        engines += fmt::format("{}{} ({})", engines.empty() ? "" : "; ", each.name, in_words(each));
        exact_engines += each.name + "\n" + exact_engine(each) + "\n";
    }
    add("engines", !config.engines.empty(), engines.empty() ? "none" : engines, std::move(exact_engines), false);
    return rows;
}

Result<ServerSettings> ConfigKeeper::begin(const std::string& text, const std::string& name) {
    TRY(const ServerConfig config, read(text, name));
    TRY(ServerSettings settings, settle(config));
    const std::lock_guard guard(mutex_);
    rows_ = rows_of(config, settings);
    for (const Row& row : rows_) at_start_[row.setting.key] = row.exact;
    use_log(settings);
    return settings;
}

void ConfigKeeper::use(ConfigHooks hooks) {
    const std::lock_guard guard(mutex_);
    hooks_ = std::move(hooks);
}

Status ConfigKeeper::check(const std::string& text) {
    TRY(const ServerConfig config, read(text, kConfigName));
    TRY([[maybe_unused]] const ServerSettings settings, settle(config));
    return done();
}

Result<ConfigOutcome> ConfigKeeper::apply() {
    const std::lock_guard guard(mutex_);
    if (!hooks_.newest) return Error(ErrorKind::unavailable, "the server is not ready");
    TRY(const std::string text, hooks_.newest());
    TRY(const ServerConfig config, read(text, kConfigName));
    TRY(ServerSettings settings, settle(config));
    std::vector<Row> rows = rows_of(config, settings);
    ConfigOutcome outcome;
    const auto changed = [&](std::initializer_list<std::string_view> keys) {
        bool any = false;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (std::find(keys.begin(), keys.end(), rows[i].setting.key) == keys.end()) continue;
            if (rows[i].exact == rows_[i].exact) continue;
            outcome.applied.push_back(rows[i].setting.key);
            any = true;
        }
        return any;
    };
    // The limits first: they alone can fail, and then nothing else has changed.
    if (changed({"max_queued", "max_ended", "keep_ended", "policy", "health_gate", "admission", "budgets", "keys"}))
        TRY_VOID(hooks_.set_limits(settings.limits));
    if (changed({"log_level", "log_format"})) use_log(settings);
    if (changed({"nodes"})) hooks_.set_nodes(std::move(settings.nodes));
    if (changed({"prices"})) hooks_.set_prices(std::move(settings.prices));
    if (changed({"backup"})) hooks_.set_backup(std::move(settings.backup));
    if (changed({"idle"}) && hooks_.set_idle) hooks_.set_idle(std::move(settings.idle));
    if (changed({"tokens"}) && hooks_.set_tokens) hooks_.set_tokens(std::move(settings.tokens));
    for (Row& row : rows) {
        const std::string& key = row.setting.key;
        row.setting.pending_restart = !row.setting.live && row.exact != at_start_[key];
        if (row.setting.pending_restart) outcome.needs_restart.push_back(key);
        const bool written = config.at.contains(key) || (key == "nodes" && config.virtual_nodes);
        if (written && overridden(key)) outcome.overridden.push_back(key);
    }
    rows_ = std::move(rows);
    return outcome;
}

std::vector<ConfigSetting> ConfigKeeper::settings() {
    const std::lock_guard guard(mutex_);
    std::vector<ConfigSetting> settings;
    for (const Row& row : rows_) settings.push_back(row.setting);
    return settings;
}

}  // namespace stoker
