// The file of a gateway as it is written: each key with its words for the reference, and nothing judged beyond its
// type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "base/units.h"
#include "govern/roles.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

struct PriceForm {
    std::optional<Usd> input, cached_input, output, request, image;
    std::map<std::string, SourcePos> at;
};
struct ObjectiveForm {
    std::optional<Seconds> first_token, answer;
    std::optional<double> met, availability, days;
    std::map<std::string, SourcePos> at;
};
enum class KeyHeader : std::uint8_t { authorization, api_key, x_api_key };
struct ModelForm {
    std::string name, upstream_model, key_env, endpoint, ca, api_version, tokenizer;
    std::vector<std::string> upstreams, projects, fallback;
    std::optional<KeyHeader> key_header;
    std::optional<Usd> cap;
    std::optional<ObjectiveForm> objective;
    std::optional<PriceForm> price;
    std::optional<int> default_output_tokens, max_outstanding;
    std::optional<Seconds> queue, hedge;
    std::map<std::string, SourcePos> at;
};
struct KeyForm {
    std::string name, sha256, project, expires;
    std::vector<std::string> models;
    std::optional<Role> role;
    std::optional<bool> revoked;
    std::optional<double> requests_per_minute, request_burst, tokens_per_minute, token_burst, concurrent;
    std::optional<Usd> budget;
    std::map<std::string, SourcePos> at;
};
struct ProjectForm {
    std::string name;
    std::optional<double> requests_per_minute, request_burst, tokens_per_minute, token_burst, concurrent;
    std::optional<Usd> budget;
    std::map<std::string, SourcePos> at;
};
struct LedgerForm {
    std::string folder, database;
    std::optional<Bytes> segment;
    std::map<std::string, SourcePos> at;
};
struct BatchForm {
    std::string folder;
    std::optional<int> at_once;
    std::optional<Bytes> space;
    std::map<std::string, SourcePos> at;
};
struct SharedLimitsForm {
    std::string home, secret_env, ca;
    std::map<std::string, SourcePos> at;
};
struct TraceForm {
    std::string to, header_env;
    std::optional<double> share;
    std::map<std::string, SourcePos> at;
};
struct AccessLogForm {
    std::string file;
    std::optional<LogFormat> format;
    std::optional<Bytes> max_bytes;
    std::optional<int> keep;
    std::map<std::string, SourcePos> at;
};
struct TimeoutForm {
    std::optional<Seconds> connect, first_byte, silence, head, idle, slow_consumer, drain;
    std::map<std::string, SourcePos> at;
};
enum class Reservation : std::uint8_t { likely, strict };
struct GatewayForm {
    std::string listen, tls_cert, tls_key;
    std::vector<std::string> origins;
    std::optional<int> threads, name, max_attempts;
    std::optional<Bytes> max_body, stream_buffer;
    std::optional<LedgerForm> ledger;
    std::optional<BatchForm> batches;
    std::optional<SharedLimitsForm> shared_limits;
    std::optional<TraceForm> traces;
    std::optional<AccessLogForm> access_log;
    std::optional<TimeoutForm> timeouts;
    std::optional<Reservation> reservation;
    std::optional<BudgetPeriod> budget_period;
    std::vector<ModelForm> models;
    std::vector<ProjectForm> projects;
    std::vector<KeyForm> keys;
    std::map<std::string, SourcePos> at;
};

const RecordTable<GatewayForm>& gateway_table();

}  // namespace stoker::gateway
