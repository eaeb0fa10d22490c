#include "serve/gateway/gateway_client.h"

#include <algorithm>

#include "base/api_time.h"
#include "base/json.h"
#include "base/text.h"
#include "govern/keys.h"
#include "govern/roles.h"
#include "io/process.h"
#include "io/sha256.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/metrics_text.h"
#include "serve/wire/client_path.h"
#include "serve/wire/meters.h"

namespace stoker::gateway {
namespace {

constexpr std::string_view kModelsPath = "/v1/models";

Refusal unauthorized(const char* code, std::string message) {
    return {.status = 401, .type = "authentication_error", .code = code, .message = std::move(message)};
}

bool is_models_path(std::string_view path) {
    return path == kModelsPath || (path.starts_with(kModelsPath) && path[kModelsPath.size()] == '/');
}

}  // namespace

HttpLimits limits_of_requests(const Setup& setup) {
    // Names of models have slashes, and clients encode them.
    return {.max_head_bytes = 16 * 1024,
            .max_headers = 100,
            .max_body_bytes = setup.max_body_bytes,
            .encoded_slashes = true};
}

GatewayClient::GatewayClient(Loop& loop, bool own) : loop_(loop), setup_(loop.shared().setup()), own_(own) {
    loop_.client_begins(this);
}

GatewayClient::~GatewayClient() {
    loop_.client_ended(this);
}

void GatewayClient::leave_exchange() {
    if (!exchange_) return;
    exchange_->client_left();
    loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
}

void GatewayClient::cut_slow_exchange() {
    if (exchange_)
        exchange_->cut(
            LedgerOutcome::slow_consumer,
            {.status = 408, .type = "request_timeout", .code = "slow_consumer", .message = "the answer was not read"});
}

void GatewayClient::tell_room() {
    if (exchange_ && backlog() < setup_->stream_buffer_bytes / 2) exchange_->client_drained();
}

Refusal GatewayClient::late_request() {
    return {.status = 408,
            .type = "invalid_request_error",
            .code = "request_timeout",
            .message = "the request did not come in time"};
}

void GatewayClient::hear(const HttpRequest& head) {
    speaks_messages_ = wire::speaks_messages(head.path) || head.headers.find("anthropic-version");
    head_only_ = head.method == "HEAD";
    if (loop_.shared().access) {
        method_ = head.method;
        path_ = head.path;
    }
    origin_.clear();
    const auto origin = head.headers.find("origin");
    if (!origin) return;
    const auto setup = loop_.shared().setup();
    for (const std::string& may : setup->origins)
        if (may == "*" || may == *origin) origin_ = may;
    if (asks_what_may_be(head)) page_headers_ = head.headers.find("access-control-request-headers").value_or("");
}

void GatewayClient::append_page_headers(std::string& out) const {
    if (origin_.empty()) return;
    append_header(out, "access-control-allow-origin", origin_);
    append_header(out, "access-control-expose-headers", "*");
    append_header(out, "vary", "origin");
}

void GatewayClient::say_what_may_be() {
    std::string out;
    append_head(out, 204, "");
    append_header(out, "allow", "GET, HEAD, POST, DELETE, OPTIONS");
    append_page_headers(out);
    if (!origin_.empty()) {
        append_header(out, "access-control-allow-methods", "GET, HEAD, POST, DELETE");
        if (!page_headers_.empty()) append_header(out, "access-control-allow-headers", page_headers_);
        append_header(out, "access-control-max-age", "600");
    }
    append_header(out, "connection", keeps_open() ? "keep-alive" : "close");
    send_whole(out += "\r\n");
}

std::optional<Refusal> GatewayClient::authenticate(const HttpRequest& head) {
    hear(head);
    if (head.path == "/healthz" || head.path == "/readyz" || head.path == "/metrics") return std::nullopt;
    const auto refused = [&](Refusal why) {
        ++loop_.shared().counters.refused;
        return why;
    };
    // As clients of OpenAI, of Anthropic, and of Azure send it.
    auto header = head.headers.find("authorization");
    if (header && starts_with_ignore_case(*header, "bearer "))
        header->remove_prefix(7);
    else if (header = head.headers.find("x-api-key"); !header)
        header = head.headers.find("api-key");
    if (!header) return refused(unauthorized("invalid_api_key", "send the key as Authorization: Bearer KEY"));
    const std::string_view secret = trim(*header);
    if (head.path == kLimitsPath && loop_.shared().share) {
        if (loop_.shared().share->is_secret(secret)) return std::nullopt;
        return refused(unauthorized("invalid_api_key", "this is no gateway that shares limits"));
    }
    const std::int64_t now_us = wall_clock_us();
    const std::uint64_t version = loop_.shared().version;
    if (own_) return own_key(head, secret);
    const bool known = key_ != nullptr && version == version_ && secret == secret_ &&
                       (key_->entry.expires_us == 0 || now_us < key_->entry.expires_us);
    if (!known) {
        version_ = version;
        setup_ = loop_.shared().setup();
        key_ = nullptr;
        const std::string digest = hex(sha256(secret));
        if (const KeyEntry* entry = valid_key(setup_->tenants, digest, now_us)) {
            key_ = &setup_->key(*entry);
            secret_ = secret;
        } else {
            const auto id = setup_->tenants.key_of_sha256.find(digest);
            if (id == setup_->tenants.key_of_sha256.end())
                return refused(unauthorized("invalid_api_key", "there is no such key"));
            return refused(setup_->tenants.keys.at(id->second).revoked
                               ? unauthorized("key_revoked", "this key was revoked")
                               : unauthorized("key_expired", "this key has expired"));
        }
    }
    const Action needed = head.method == "GET" || head_only_ ? Action::look : Action::submit;
    if (!allowed(key_->entry.role, needed))
        return refused({.status = 403,
                        .type = "permission_error",
                        .code = "scope_missing",
                        .message = std::string("the role of this key, ") + std::string(to_string(key_->entry.role)) +
                                   ", may not use models"});
    return std::nullopt;
}

// Of this process itself, for a key that it names.
std::optional<Refusal> GatewayClient::own_key(const HttpRequest& request, std::string_view secret) {
    const auto name = request.headers.find("x-stoker-key");
    setup_ = loop_.shared().setup();
    key_ = nullptr;
    secret_.clear();
    if (name && secret == loop_.shared().own_secret)
        for (const KeySetup& each : setup_->keys)
            if (each.entry.name == *name && valid_key(setup_->tenants, each.entry.sha256, wall_clock_us()) != nullptr)
                key_ = &each;
    if (key_ != nullptr) return std::nullopt;
    ++loop_.shared().counters.refused;
    return unauthorized("invalid_api_key", "there is no such key");
}

void GatewayClient::ask_aside(HttpRequest request) {
    const auto side = loop_.shared().side();
    const std::uint64_t aside = loop_.next_aside();
    const auto asked = std::make_shared<HttpRequest>(std::move(request));
    const bool taken = loop_.shared().aside.post(
        [side, asked, aside, loop = &loop_, client = this, key = key_->entry.name, project = key_->project] {
            const auto answer = std::make_shared<HttpResponse>(side->answer(*asked, key, project));
            loop->poller().post([loop, client, aside, answer] { loop->answer_aside(client, aside, *answer); });
        });
    if (taken) {
        aside_ = aside;
        return;
    }
    refuse({.status = 503,
            .type = "overloaded",
            .code = "overloaded",
            .message = "too many ask for files and batches now",
            .retry_after_s = 1});
}

void GatewayClient::dispatch(HttpRequest request) {
    if (request.path == kLimitsPath && loop_.shared().share) {
        const std::string reply = loop_.shared().share->answer(request.body);
        if (!reply.empty()) return answer(200, "application/json", reply);
        return refuse({.status = 400,
                       .type = "invalid_request_error",
                       .code = "no_home",
                       .message = "this gateway counts no limits for others, or does not understand what is told"});
    }
    ++loop_.shared().counters.requests;
    std::string deployment;
    if (auto azure = wire::of_azure(request.path)) {
        request.path = std::move(azure->path);
        request.target = request.path;  // its api-version is for nobody else
        deployment = std::move(azure->model);
    }
    if (const auto coding = request.headers.find("content-encoding");
        coding && !equals_ignore_case(*coding, "identity"))
        return refuse({.status = 415,
                       .type = "invalid_request_error",
                       .code = "unsupported_encoding",
                       .message = "the body is encoded as " + printable(*coding, 40) + ": send it as it is"},
                      "accept-encoding: identity\r\n");
    if (const auto side = loop_.shared().side(); side && side->takes(request.path))
        return ask_aside(std::move(request));
    const wire::Endpoint* endpoint = wire::find_endpoint(request.path);
    const bool get = request.method == "GET" || head_only_;
    if (endpoint == nullptr || get) {
        const bool draining = loop_.shared().draining;
        const bool lost = loop_.shared().ledger && loop_.shared().ledger->failed();
        if (get && request.path == "/healthz") return answer(200, "text/plain", "ok\n");
        if (get && request.path == "/readyz")
            return draining || lost ? answer(503, "text/plain", draining ? "draining\n" : "ledger_unavailable\n")
                                    : answer(200, "text/plain", "ok\n");
        if (get && request.path == "/metrics")
            return answer(200, "text/plain; version=0.0.4", metrics_text(loop_.shared()));
        if (get && is_models_path(request.path)) return models(request);
        const bool elsewhere = endpoint != nullptr || is_models_path(request.path);
        const std::string meant = elsewhere ? "" : wire::path_meant(request.path);
        return refuse({.status = elsewhere ? 405 : 404,
                       .type = "invalid_request_error",
                       .code = elsewhere ? "method_not_allowed" : "unknown_url",
                       .message = elsewhere ? "this path takes " + std::string(endpoint != nullptr ? "POST" : "GET")
                                            : "there is nothing at " + printable(request.path, 100) +
                                                  (meant.empty() ? "" : "; " + meant + " is there")},
                      endpoint != nullptr ? "allow: POST\r\n"
                      : elsewhere         ? "allow: GET\r\n"
                                          : "");
    }
    if (request.method != "POST")
        return refuse({.status = 405,
                       .type = "invalid_request_error",
                       .code = "method_not_allowed",
                       .message = "this path takes POST"},
                      "allow: POST\r\n");
    if (loop_.shared().draining)
        return refuse({.status = 503,
                       .type = "overloaded",
                       .code = "draining",
                       .message = "this gateway is about to end",
                       .retry_after_s = 1});
    exchange_ = std::make_unique<Exchange>(loop_, *this, setup_, *key_, *endpoint);
    Exchange* begun = exchange_.get();
    if (!begun->begin(std::move(request), deployment) && exchange_.get() == begun)
        loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
}

void GatewayClient::models(const HttpRequest& request) {
    const std::string wanted =
        request.path.size() > kModelsPath.size() ? request.path.substr(kModelsPath.size() + 1) : "";
    Json::Array list;
    std::vector<const ModelSetup*> seen;
    for (const auto& [name, model] : setup_->models) {
        const auto has = [](const std::vector<std::string>& some, const std::string& one) {
            return some.empty() || std::find(some.begin(), some.end(), one) != some.end();
        };
        if (has(model.projects, key_->project) && has(key_->models, name)) seen.push_back(&model);
    }
    std::sort(seen.begin(), seen.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    for (const ModelSetup* model : seen) {
        Json entry = Json::object().set("id", model->name);
        if (speaks_messages_) {
            entry.set("type", "model").set("display_name", model->name);
            entry.set("created_at", rfc3339(loop_.shared().began_us));
            if (model->name == wanted) return answer(200, "application/json", entry.dump(0));
            list.push_back(std::move(entry));
            continue;
        }
        entry.set("object", "model");
        // Since when it is to be had here; its owner is the one project that sees it, where there is one.
        entry.set("created", loop_.shared().began_us / 1'000'000);
        entry.set("owned_by", model->projects.size() == 1 ? model->projects.front() : "stoker");
        if (model->name == wanted) return answer(200, "application/json", entry.dump(0));
        list.push_back(std::move(entry));
    }
    if (!wanted.empty())
        return refuse({.status = 404,
                       .type = "not_found_error",
                       .code = "model_not_found",
                       .message = "there is no model '" + printable(wanted, 100) + "'",
                       .param = "model"});
    if (speaks_messages_) {
        const auto named = [&](const ModelSetup* model) { return Json(model->name); };
        Json told = Json::object().set("data", Json(std::move(list))).set("has_more", false);
        told.set("first_id", seen.empty() ? Json() : named(seen.front()));
        told.set("last_id", seen.empty() ? Json() : named(seen.back()));
        return answer(200, "application/json", told.dump(0));
    }
    answer(200, "application/json", Json::object().set("object", "list").set("data", Json(std::move(list))).dump(0));
}

void GatewayClient::answer(int status, std::string_view type, std::string_view body) {
    std::string out;
    append_head(out, status, type);
    append_page_headers(out);
    append_number_header(out, "content-length", static_cast<std::int64_t>(body.size()));
    append_header(out, "connection", keeps_open() ? "keep-alive" : "close");
    out.append("\r\n").append(head_only_ ? "" : body);
    const auto& access = loop_.shared().access;
    // What watches this gateway asks every few seconds.
    if (access && path_ != "/healthz" && path_ != "/readyz" && path_ != "/metrics" && path_ != kLimitsPath)
        access->other(access_caller(), {}, status);
    send_whole(out);
}

AccessCaller GatewayClient::access_caller() const {
    return {.peer = own_ ? std::string_view("itself") : std::string_view(peer_),
            .method = method_,
            .path = path_,
            .key = key_ == nullptr ? std::string_view() : std::string_view(key_->entry.name),
            .project = key_ == nullptr ? std::string_view() : std::string_view(key_->project)};
}

void GatewayClient::refuse(const Refusal& refusal, std::string_view more_headers, std::string_view request_id) {
    const std::string body = error_body(refusal, speaks_messages_ ? Dialect::messages : Dialect::openai);
    std::string out;
    append_head(out, refusal.status, "application/json");
    append_page_headers(out);
    // Also what came to no account has a name, for whoever asks about it.
    const std::string id = request_id.empty() ? request_text(loop_.new_request()) : std::string(request_id);
    append_header(out, "x-request-id", id);
    if (speaks_messages_) append_header(out, "request-id", id);
    append_again_headers(out, refusal);
    if (refusal.status == 401) append_header(out, "www-authenticate", "Bearer");
    out += more_headers;
    append_number_header(out, "content-length", static_cast<std::int64_t>(body.size()));
    append_header(out, "connection", keeps_open() ? "keep-alive" : "close");
    out.append("\r\n").append(head_only_ ? "" : body);
    if (const auto& access = loop_.shared().access) {
        AccessCaller caller = access_caller();
        if (refusal.status == 401) caller.key = caller.project = {};  // of an earlier request of the connection
        access->refused(caller, id, refusal.status, refusal.code);
    }
    send_whole(out);
}

void GatewayClient::replay(const KeptAnswer& answer) {
    std::string out;
    append_head(out, answer.status, answer.type);
    append_page_headers(out);
    append_header(out, "x-request-id", answer.request_id);
    if (speaks_messages_) append_header(out, "request-id", answer.request_id);
    append_header(out, "idempotent-replayed", "true");
    append_number_header(out, "content-length", static_cast<std::int64_t>(answer.body.size()));
    append_header(out, "connection", keeps_open() ? "keep-alive" : "close");
    out.append("\r\n").append(answer.body);
    if (const auto& access = loop_.shared().access) access->other(access_caller(), answer.request_id, answer.status);
    send_whole(out);
}

}  // namespace stoker::gateway
