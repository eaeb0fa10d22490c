// server.yaml: what a server is told to be. One table reads it, names what is wrong with it, and makes its schema and
// its reference page.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "catalog/catalog.h"
#include "deploy/driver.h"
#include "govern/admission_rules.h"
#include "govern/idle.h"
#include "govern/price_book.h"
#include "io/log.h"
#include "run/decide/place.h"
#include "server/engine_config.h"
#include "server/single_sign_on.h"
#include "server/token_accounts.h"

namespace stoker {

// How nodes are checked before they take gangs. by_nodes: quick where one of them names a doctor, whose link can be
// looked at; else off, since a server that is one machine has no other node to take a gang to.
enum class GateChoice : std::uint8_t { by_nodes, off, quick, full };

struct BackupForm {
    std::string to;
    std::optional<Seconds> every;
    std::optional<int> keep;
    std::map<std::string, SourcePos> at;
};

struct WebhookForm {
    std::string url, secret_file;
    std::map<std::string, SourcePos> at;
};

// Who may be told that a run has ended.
struct NotifyForm {
    std::string program, sendmail;
    std::vector<std::string> urls;
    std::vector<std::string> budgets;  // mail addresses that are told what budgets reach
    std::vector<std::string> idle;     // and what becomes of runs that do nothing
    std::map<std::string, SourcePos> at;
};

struct BudgetsForm {
    std::optional<Seconds> lower_first;
    std::map<std::string, SourcePos> at;
};

// Of people that make keys for themselves.
struct KeysForm {
    std::optional<Seconds> own_longest;
    std::map<std::string, SourcePos> at;
};

// What is not written is left to the command line and to the defaults.
struct ServerConfig {
    std::optional<std::vector<NodeInfo>> nodes;
    std::optional<int> virtual_nodes;
    std::optional<PriceBook> prices;
    std::optional<int> max_queued, max_ended;
    std::optional<Seconds> keep_ended;
    std::optional<BackupForm> backup;
    std::optional<PlacementPolicy> policy;
    std::optional<GateChoice> health_gate;
    std::optional<double> rate;
    std::optional<LogLevel> log_level;
    std::optional<LogFormat> log_format;
    std::optional<std::string> azure_events;
    std::optional<EngineForm> engine;
    std::vector<EngineForm> engines;  // beside that one
    std::optional<WebhookForm> webhook;
    AdmissionRules admission;
    IdleRules idle;
    TokenAccounts tokens;
    std::optional<BudgetsForm> budgets;
    std::optional<KeysForm> keys;
    std::optional<NotifyForm> notify;
    std::optional<OidcForm> oidc;
    std::map<std::string, SourcePos> at;
};

inline constexpr int kMostKeptRuns = 10'000'000;  // about 20 GB
inline constexpr double kLeastKeepEndedS = 60;    // less, and a client that waits would not learn how its run ended
inline constexpr double kMostKeepEndedS = 100 * 365.25 * 86400;
inline constexpr double kMostBackupEveryS = 366.0 * 86400;
inline constexpr double kMostRate = 1e7;

// A catalogue to look GPUs up in; asked only where there are nodes.
using CatalogSource = std::function<Result<Catalog>()>;

// All problems together; `name` stands for the file in them. An empty text says nothing, and is right.
Result<ServerConfig> read_server_config(std::string_view text, const std::string& name, const CatalogSource& catalog);

// Where a run goes that names no engine.
std::string first_engine(const ServerConfig& config);
// Its rules, with where its engines stand. Null: there are none.
std::shared_ptr<const AdmissionPolicy> admission_policy(const ServerConfig& config);

bool says_nothing(std::string_view text);  // comments and blank lines at most

const RecordInfo& server_config_record();
std::string server_config_reference();  // docs/reference/server.md

}  // namespace stoker
