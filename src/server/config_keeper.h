// What of the configuration is in force in a running server, where each setting comes from, and how a new version gets
// there. An option of the command line goes before the text, and the text before the default.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "run/core/core.h"
#include "run/engine/upload_journal.h"
#include "server/config_control.h"
#include "server/server_config.h"

namespace stoker {

struct ServerSettings {
    std::vector<NodeInfo> nodes;  // empty: this machine as it is
    PriceBook prices;
    CoreLimits limits;
    BackupOptions backup;
    double rate = 0;
    std::string azure_events;  // empty: not asked
    GateChoice health_gate = GateChoice::by_nodes;
    EngineChoice engine;
    std::vector<EngineChoice> engines;  // beside it
    WebhookForm webhook;                // without an URL: none
    LogLevel log_level = LogLevel::info;
    LogFormat log_format = LogFormat::logfmt;
    NotifyForm notify;
    IdleRules idle;
    TokenAccounts tokens;
    OidcForm oidc;  // without an issuer: none
};

// How a change reaches what runs. Each returns when it holds.
struct ConfigHooks {
    std::function<Result<std::string>()> newest;  // the text of the newest version; empty: there is none
    std::function<void(std::vector<NodeInfo>)> set_nodes;
    std::function<void(PriceBook)> set_prices;
    std::function<Status(const CoreLimits&)> set_limits;
    std::function<void(BackupOptions)> set_backup;
    std::function<void(IdleRules)> set_idle{};
    std::function<void(TokenAccounts)> set_tokens{};
};

// Where scheduled events are asked for, of "auto", "off" or a URL; empty: nowhere.
std::string azure_events_url(const std::string& asked);

class ConfigKeeper final : public ConfigControl {
public:
    // `overrides`: what the command line says, by key, in its own words; `usual` has it and the defaults.
    // `log`: which is told what holds for it; none: nobody is.
    ConfigKeeper(ServerSettings usual, std::map<std::string, std::string> overrides, CatalogSource catalog,
                 std::shared_ptr<Log> log = nullptr);

    // Before anything runs: from here on these settings are in force.
    Result<ServerSettings> begin(const std::string& text, const std::string& name);
    void use(ConfigHooks hooks);

    Status check(const std::string& text) override;
    Result<ConfigOutcome> apply() override;
    std::vector<ConfigSetting> settings() override;

private:
    struct Row {
        ConfigSetting setting;
        std::string exact;  // equal when nothing has to change
    };
    Result<ServerConfig> read(const std::string& text, const std::string& name) const;
    Result<ServerSettings> settle(const ServerConfig& config) const;
    std::vector<Row> rows_of(const ServerConfig& config, const ServerSettings& settings) const;
    bool overridden(const std::string& key) const { return overrides_.contains(key); }

    void use_log(const ServerSettings& settings) const;

    const ServerSettings usual_;
    const std::map<std::string, std::string> overrides_;
    const CatalogSource catalog_;
    const std::shared_ptr<Log> log_;

    std::mutex mutex_;  // guards what follows; one change at a time
    ConfigHooks hooks_;
    std::vector<Row> rows_;                        // of the newest version
    std::map<std::string, std::string> at_start_;  // of each key, Row::exact as it was then
};

}  // namespace stoker
