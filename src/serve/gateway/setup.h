// What a gateway is told to be, ready for use: keys by digest, models with the addresses of their upstreams. Never
// changed; a change of the file makes another one, and requests under way keep theirs.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "govern/ledger/ledger_record.h"
#include "govern/limits/limit_book.h"
#include "govern/tenants.h"
#include "io/segment_home.h"
#include "serve/fleet/board.h"
#include "serve/gateway/access_log.h"
#include "serve/gateway/traces.h"

struct ssl_ctx_st;

namespace stoker::tokens {
class Tokenizer;
}

namespace stoker::gateway {

inline constexpr double kUs = 1e6;  // microseconds a second

struct UpstreamSetup {
    std::uint64_t id = 0;  // of its URL
    std::string url, authority;
    sockaddr_storage address{};
    socklen_t address_size = 0;
    std::string path;                 // before /v1/...; empty: none
    std::shared_ptr<ssl_ctx_st> tls;  // null: without
    std::string host;                 // that the certificate has to be for
};

// What is asked of a model's service; 0: nothing.
struct ServiceObjective {
    double first_token_s = 0, answer_s = 0;  // of so many of 100 requests as `met` says
    double met = 0.95;                       // share
    double availability = 0;                 // share of requests that are answered, of those that could be
    double window_s = 28 * 86400.0;
    bool any() const { return first_token_s > 0 || answer_s > 0 || availability > 0; }
};

struct ModelSetup {
    std::uint64_t id = 0;
    std::string name, upstream_name;  // upstream_name empty: the same
    std::string authorization;        // header line of requests to the upstreams; empty: none
    std::string api_version;          // of Azure OpenAI, where the name of a deployment stands in the path
    std::vector<UpstreamSetup> upstreams;
    std::shared_ptr<ReplicaBoard> board;  // of an endpoint: in place of upstreams
    double queue_s = 0;  // a request waits so long when all upstreams are full; of an endpoint the board says it
    double hedge_s = 0;  // without a first byte for so long it goes to a second replica as well; 0: never
    std::vector<std::string> projects;  // whose keys see it; empty: all
    TokenPrice price;
    std::uint32_t price_version = 0;
    std::uint32_t default_output_tokens = 1024;
    std::uint32_t max_outstanding = 0;  // of an upstream; 0: no limit
    std::vector<std::string> fallback;  // models that take what this one cannot, in this order
    std::uint64_t cap_picousd = 0;      // that all together may be charged for its answers in a budget period; 0: any
    std::uint64_t cap_id = 0;           // of that limit
    ServiceObjective objective;
    std::shared_ptr<const tokens::Tokenizer> tokenizer;  // null: of an endpoint the board may have it
};

struct ProjectSetup {
    std::uint64_t id = 0;
    std::string name;
    KeyLimits limits;  // of all its keys together
};

struct KeySetup {
    KeyEntry entry;
    std::uint64_t id = 0;  // in the ledger: of its name
    std::string project;
    std::uint64_t project_id = 0;
    bool project_limited = false;  // project_limits are some
    KeyLimits project_limits;
    std::vector<std::string> models;  // empty: all that its project sees
    KeyLimits limits;
};

struct Timeouts {
    double connect_s = 1, first_byte_s = 120, silence_s = 30, head_s = 10, idle_s = 75, slow_consumer_s = 30;
    double body_window_s = 30;  // in which a body has to move on by body_window_bytes
    std::size_t body_window_bytes = 30 * 1024;
};

struct Setup {
    std::uint64_t version = 1;
    std::unordered_map<std::string, ModelSetup> models;
    std::unordered_map<std::string, ProjectSetup> projects;  // that the file says something of
    bool names_hosts = false;    // addresses of upstreams were asked for by name, and may change
    std::vector<KeySetup> keys;  // the one of KeyId n at n - 1
    Tenants tenants;
    Timeouts timeouts;
    std::vector<std::string> origins;  // of web pages that may ask from a browser
    std::size_t max_body_bytes = 32u << 20, stream_buffer_bytes = 64u << 10, max_answer_bytes = 64u << 20;
    int max_attempts = 2;
    bool strict_tokens = false;  // reserve the upper bound of a prompt

    const KeySetup* key_of(std::string_view secret, std::int64_t now_us) const;
    const KeySetup& key(const KeyEntry& entry) const { return keys.at(entry.id.number - 1); }
};

// Since when money is counted against budgets.
enum class BudgetPeriod : std::uint8_t { month, day, total };
std::int64_t budget_period_start_us(BudgetPeriod period, std::int64_t now_us);  // UTC; 0: ever since
std::int64_t budget_period_end_us(BudgetPeriod period, std::int64_t now_us);    // 0: never

// Limits that several gateways keep together; without a secret each keeps its own.
struct SharedLimits {
    std::string home;  // URL of the gateway that counts; empty: this one
    std::string secret, ca_pem;
};

// Where it listens and what it keeps: for the life of a process.
struct GatewayOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    int threads = 1;
    std::size_t max_connections = 20'000;      // of one loop
    std::string certificate_pem, key_pem;      // empty: no TLS
    std::string ledger_folder;                 // empty: no account is kept
    std::string ledger_database;               // that has the account in place of the folder
    std::shared_ptr<SegmentHome> ledger_home;  // of the database, where this process writes
    std::uint64_t ledger_segment_bytes = 16u << 20;
    bool ledger_sync = true;
    std::uint64_t name = 0;  // of this gateway, among others
    SharedLimits shared_limits;
    TraceOptions traces;
    AccessLogOptions access_log;
    std::string batch_folder;  // of files and batches; empty: there are none
    int batch_at_once = 4;
    std::uint64_t batch_bytes = 10ull << 30;  // of all files
    BudgetPeriod budget_period = BudgetPeriod::month;
    std::int64_t account_from_unix_us = 0;  // its start, when this process began
    // Of a model that no setup has: it was asked for to be one and will be, so that a request comes again.
    std::function<bool(const std::string&)> will_be;
};

}  // namespace stoker::gateway
