// What a gateway is told to be, ready for use: keys by digest, models with the addresses of their upstreams. Never
// changed; a change of the file makes another one, and requests under way keep theirs.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "govern/ledger/ledger_record.h"
#include "govern/limits/limit_book.h"
#include "govern/tenants.h"
#include "serve/fleet/board.h"

namespace stoker::gateway {

inline constexpr double kUs = 1e6;  // microseconds a second

struct UpstreamSetup {
    std::uint64_t id = 0;  // of its URL
    std::string url, authority;
    sockaddr_storage address{};
    socklen_t address_size = 0;
};

struct ModelSetup {
    std::uint64_t id = 0;
    std::string name, upstream_name;  // upstream_name empty: the same
    std::string authorization;        // header of requests to the upstreams; empty: none
    std::vector<UpstreamSetup> upstreams;
    std::shared_ptr<ReplicaBoard> board;  // of an endpoint: in place of upstreams
    double queue_s = 0;  // a request waits so long when all upstreams are full; of an endpoint the board says it
    std::vector<std::string> projects;  // whose keys see it; empty: all
    TokenPrice price;
    std::uint32_t price_version = 0;
    std::uint32_t default_output_tokens = 1024;
    std::uint32_t max_outstanding = 0;  // of an upstream; 0: no limit
};

struct KeySetup {
    KeyEntry entry;
    std::uint64_t id = 0;  // in the ledger: of its name
    std::string project;
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
    std::vector<KeySetup> keys;  // the one of KeyId n at n - 1
    Tenants tenants;
    Timeouts timeouts;
    std::size_t max_body_bytes = 32u << 20, stream_buffer_bytes = 64u << 10, max_answer_bytes = 64u << 20;
    int max_attempts = 2;
    bool strict_tokens = false;  // reserve the upper bound of a prompt

    const KeySetup* key_of(std::string_view secret, std::int64_t now_us) const;
    const KeySetup& key(const KeyEntry& entry) const { return keys.at(entry.id.number - 1); }
};

// Since when money is counted against budgets.
enum class BudgetPeriod : std::uint8_t { month, day, total };
std::int64_t budget_period_start_us(BudgetPeriod period, std::int64_t now_us);  // UTC; 0: ever since

// Where it listens and what it keeps: for the life of a process.
struct GatewayOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    int threads = 1;
    std::size_t max_connections = 20'000;  // of one loop
    std::string certificate_pem, key_pem;  // empty: no TLS
    std::string ledger_folder;             // empty: no account is kept
    std::uint64_t ledger_segment_bytes = 16u << 20;
    bool ledger_sync = true;
    std::uint64_t name = 0;  // of this gateway, among others
    BudgetPeriod budget_period = BudgetPeriod::month;
    std::int64_t account_from_unix_us = 0;  // its start, when this process began
};

}  // namespace stoker::gateway
