#include "serve/gateway/session.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/json.h"
#include "base/text.h"
#include "govern/keys.h"
#include "govern/roles.h"
#include "io/sha256.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/metrics_text.h"
#include "serve/wire/meters.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostBehind = 64 * 1024;  // pipelined, while a request is under way
constexpr std::size_t kKeptCapacity = 2048;     // of a session that waits

void free_ssl(ssl_st* tls) {
    SSL_free(tls);
}

Refusal unauthorized(const char* code, std::string message) {
    return {.status = 401, .type = "authentication_error", .code = code, .message = std::move(message)};
}

}  // namespace

Session::Session(Loop& loop, UniqueFd socket, bool own)
    : loop_(loop),
      socket_(std::move(socket)),
      tls_(nullptr, free_ssl),
      setup_(loop.shared().setup()),
      parser_({.max_head_bytes = 16 * 1024, .max_headers = 100, .max_body_bytes = setup_->max_body_bytes}),
      own_(own),
      since_us_(monotonic_clock_us()) {
    ++loop_.shared().counters.open_sessions;
    if (loop_.shared().tls && !own_) {
        tls_.reset(SSL_new(loop_.shared().tls.get()));
        if (tls_ && SSL_set_fd(tls_.get(), socket_.get()) == 1) SSL_set_accept_state(tls_.get());
    }
    watched_ = EPOLLIN;
    if (!loop_.poller().add(socket_.get(), this, watched_)) dead_ = true;
}

Session::~Session() {
    --loop_.shared().counters.open_sessions;
}

ssize_t Session::receive(char* buffer, std::size_t size) {
    if (!tls_) return ::recv(socket_.get(), buffer, size, 0);
    const int got = SSL_read(tls_.get(), buffer, static_cast<int>(size));
    if (got > 0) return got;
    const int why = SSL_get_error(tls_.get(), got);
    tls_wants_write_ = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    errno = ECONNRESET;
    return -1;
}

ssize_t Session::transmit(std::string_view bytes) {
    if (!tls_) return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const int sent =
        SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1u << 20)));
    if (sent > 0) return sent;
    const int why = SSL_get_error(tls_.get(), sent);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

void Session::watch() {
    const std::size_t most = kMostBehind;
    std::uint32_t events = eof_ || rest_.size() >= most ? 0u : static_cast<std::uint32_t>(EPOLLIN);
    if (backlog() > 0 || tls_wants_write_) events |= EPOLLOUT;
    if (events == watched_ || !socket_) return;
    watched_ = events;
    loop_.poller().change(socket_.get(), this, events);
}

void Session::on_ready(std::uint32_t events) {
    if (dead_) return;
    if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && (events & EPOLLIN) == 0)) return close();
    if ((events & EPOLLOUT) != 0) flush();
    if (!dead_ && ((events & EPOLLIN) != 0 || tls_wants_write_)) read();
    if (!dead_) watch();
}

void Session::read() {
    while (!dead_) {
        const ssize_t size = receive(loop_.scratch(), loop_.scratch_size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size < 0) return close();
        if (size == 0) {
            eof_ = true;
            // Inside TLS nobody half-closes.
            if (tls_ || (!exchange_ && aside_ == 0 && backlog() == 0)) return close();
            if (!exchange_ && aside_ == 0) closing_ = true;
            return probe();
        }
        const auto got = static_cast<std::size_t>(size);
        take({loop_.scratch(), got});
        if (got < loop_.scratch_size() && !tls_) return;
        if (rest_.size() >= kMostBehind) return;
    }
}

// The client sends no more. Has it left, or does it only wait for its answer? A byte that means nothing brings a reset
// in the first case.
void Session::probe() {
    if (!exchange_ || http_1_0_ || backlog() > 0) return;
    if (exchange_->head_shown()) {
        if (!exchange_->streaming()) return;
        append_chunk(out_, ":\n\n");
    } else {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    }
    flush();
}

void Session::take(std::string_view bytes) {
    window_bytes_ += bytes.size();
    if (exchange_ || aside_ != 0 || closing_) {
        if (!closing_) rest_ += bytes;
        return;
    }
    while (!bytes.empty() && !dead_ && !closing_) {
        if (exchange_ || aside_ != 0) {
            rest_ += bytes;
            return;
        }
        if (!parser_.begun()) since_us_ = monotonic_clock_us();
        bytes.remove_prefix(parser_.feed(bytes));
        process();
    }
}

void Session::process() {
    using State = HttpRequestParser::State;
    if (parser_.state() == State::refused) {
        const int status = parser_.refusal_status();
        keep_alive_ = false;
        return refuse({.status = status,
                       .type = "invalid_request_error",
                       .code = status == 413 ? "request_too_large" : "bad_request",
                       .message = parser_.refusal()});
    }
    if (parser_.state() == State::head) return;
    keep_alive_ = parser_.keep_alive() && !draining_;
    http_1_0_ = parser_.http_1_0();
    if (!authenticated_) {
        speaks_messages_ = wire::speaks_messages(parser_.request().path);
        // Before the body is read: who may not ask has nothing to send.
        window_us_ = monotonic_clock_us();
        window_bytes_ = 0;
        if (!authenticate(parser_.request())) return;
        authenticated_ = true;
        if (parser_.state() == State::body && parser_.expects_continue()) {
            parser_.continue_sent();
            out_ += "HTTP/1.1 100 Continue\r\n\r\n";
            flush();
        }
    }
    if (parser_.state() != State::complete) return;
    HttpRequest request = parser_.take();
    authenticated_ = false;
    since_us_ = monotonic_clock_us();
    dispatch(std::move(request));
}

bool Session::authenticate(const HttpRequest& request) {
    const bool open = request.path == "/healthz" || request.path == "/readyz" || request.path == "/metrics";
    if (open) return true;
    const auto refused = [&](const Refusal& why) {
        // What is left of the body would be taken for the next request.
        keep_alive_ = keep_alive_ && parser_.state() == HttpRequestParser::State::complete;
        ++loop_.shared().counters.refused;
        if (keep_alive_) parser_.take();
        refuse(why);
        return false;
    };
    // As clients of OpenAI, of Anthropic, and of Azure send it.
    auto header = request.headers.find("authorization");
    if (header && starts_with_ignore_case(*header, "bearer "))
        header->remove_prefix(7);
    else if (header = request.headers.find("x-api-key"); !header)
        header = request.headers.find("api-key");
    if (!header) return refused(unauthorized("invalid_api_key", "send the key as Authorization: Bearer KEY"));
    const std::string_view secret = trim(*header);
    if (request.path == kLimitsPath && loop_.shared().share)
        return loop_.shared().share->is_secret(secret) ||
               refused(unauthorized("invalid_api_key", "this is no gateway that shares limits"));
    const std::int64_t now_us = wall_clock_us();
    const std::uint64_t version = loop_.shared().version;
    if (own_) return own_key(request, secret) || refused(unauthorized("invalid_api_key", "there is no such key"));
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
            return setup_->tenants.keys.at(id->second).revoked
                       ? refused(unauthorized("key_revoked", "this key was revoked"))
                       : refused(unauthorized("key_expired", "this key has expired"));
        }
    }
    const Action needed = request.method == "GET" ? Action::look : Action::submit;
    if (!allowed(key_->entry.role, needed))
        return refused({.status = 403,
                        .type = "permission_error",
                        .code = "scope_missing",
                        .message = std::string("the role of this key, ") + std::string(to_string(key_->entry.role)) +
                                   ", may not use models"});
    return true;
}

// Of this process itself, for a key that it names.
bool Session::own_key(const HttpRequest& request, std::string_view secret) {
    const auto name = request.headers.find("x-stoker-key");
    setup_ = loop_.shared().setup();
    key_ = nullptr;
    secret_.clear();
    if (!name || secret != loop_.shared().own_secret) return false;
    for (const KeySetup& each : setup_->keys)
        if (each.entry.name == *name && valid_key(setup_->tenants, each.entry.sha256, wall_clock_us()) != nullptr)
            key_ = &each;
    return key_ != nullptr;
}

void Session::ask_aside(HttpRequest request) {
    const auto side = loop_.shared().side();
    const std::uint64_t aside = loop_.next_aside();
    const auto asked = std::make_shared<HttpRequest>(std::move(request));
    const bool taken = loop_.shared().aside.post(
        [side, asked, aside, loop = &loop_, session = this, key = key_->entry.name, project = key_->project] {
            const auto answer = std::make_shared<HttpResponse>(side->answer(*asked, key, project));
            loop->poller().post([loop, session, aside, answer] { loop->answer_aside(session, aside, *answer); });
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

void Session::aside_done(const HttpResponse& response) {
    aside_ = 0;
    since_us_ = monotonic_clock_us();
    answer(response.status, response.content_type, response.body);
    if (!dead_) go_on();
}

void Session::dispatch(HttpRequest request) {
    if (request.path == kLimitsPath && loop_.shared().share) {
        const std::string reply = loop_.shared().share->answer(request.body);
        if (!reply.empty()) return answer(200, "application/json", reply);
        return refuse({.status = 400,
                       .type = "invalid_request_error",
                       .code = "no_home",
                       .message = "this gateway counts no limits for others, or does not understand what is told"});
    }
    ++loop_.shared().counters.requests;
    if (const auto side = loop_.shared().side(); side && side->takes(request.path))
        return ask_aside(std::move(request));
    const wire::Endpoint* endpoint = wire::find_endpoint(request.path);
    const bool get = request.method == "GET";
    if (endpoint == nullptr || get) {
        const bool draining = loop_.shared().draining;
        const bool lost = loop_.shared().ledger && loop_.shared().ledger->failed();
        if (get && request.path == "/healthz") return answer(200, "text/plain", "ok\n");
        if (get && request.path == "/readyz")
            return draining || lost ? answer(503, "text/plain", draining ? "draining\n" : "ledger_unavailable\n")
                                    : answer(200, "text/plain", "ok\n");
        if (get && request.path == "/metrics")
            return answer(200, "text/plain; version=0.0.4", metrics_text(loop_.shared()));
        if (get && (request.path == "/v1/models" || request.path.starts_with("/v1/models/"))) return models(request);
        const bool elsewhere = endpoint != nullptr || request.path == "/v1/models";
        return refuse({.status = elsewhere ? 405 : 404,
                       .type = "invalid_request_error",
                       .code = elsewhere ? "method_not_allowed" : "unknown_url",
                       .message = elsewhere ? "this path takes " + std::string(endpoint != nullptr ? "POST" : "GET")
                                            : "there is nothing at " + printable(request.path, 100)},
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
    if (loop_.shared().draining) {
        keep_alive_ = false;
        return refuse({.status = 503,
                       .type = "overloaded",
                       .code = "draining",
                       .message = "this gateway is about to end",
                       .retry_after_s = 1});
    }
    exchange_ = std::make_unique<Exchange>(loop_, *this, setup_, *key_, *endpoint);
    Exchange* begun = exchange_.get();
    if (!begun->begin(std::move(request)) && exchange_.get() == begun)
        loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
}

void Session::models(const HttpRequest& request) {
    constexpr std::string_view kAll = "/v1/models";
    const std::string wanted = request.path.size() > kAll.size() ? request.path.substr(kAll.size() + 1) : "";
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
        Json entry =
            Json::object().set("id", model->name).set("object", "model").set("created", 0).set("owned_by", "stoker");
        if (model->name == wanted) return answer(200, "application/json", entry.dump(0));
        list.push_back(std::move(entry));
    }
    if (!wanted.empty())
        return refuse({.status = 404,
                       .type = "not_found_error",
                       .code = "model_not_found",
                       .message = "there is no model '" + printable(wanted, 100) + "'",
                       .param = "model"});
    answer(200, "application/json", Json::object().set("object", "list").set("data", Json(std::move(list))).dump(0));
}

bool Session::keeps_open() const {
    return keep_alive_ && !eof_ && !draining_ && !loop_.shared().draining;
}

void Session::answer(int status, std::string_view type, std::string_view body, bool head_only) {
    append_head(out_, status, type);
    append_number_header(out_, "content-length", static_cast<std::int64_t>(body.size()));
    append_header(out_, "connection", keeps_open() ? "keep-alive" : "close");
    out_ += "\r\n";
    if (!head_only) out_ += body;
    if (!keeps_open()) closing_ = true;
    flush();
}

void Session::refuse(const Refusal& refusal, std::string_view more_headers, std::string_view request_id) {
    const std::string body = error_body(refusal, speaks_messages_ ? Dialect::messages : Dialect::openai);
    append_head(out_, refusal.status, "application/json");
    if (!request_id.empty()) append_header(out_, "x-request-id", request_id);
    if (refusal.retry_after_s > 0) append_number_header(out_, "retry-after", refusal.retry_after_s);
    if (refusal.status == 401) append_header(out_, "www-authenticate", "Bearer");
    out_ += more_headers;
    append_number_header(out_, "content-length", static_cast<std::int64_t>(body.size()));
    append_header(out_, "connection", keeps_open() ? "keep-alive" : "close");
    out_ += "\r\n" + body;
    if (!keeps_open()) closing_ = true;
    flush();
}

void Session::replay(const KeptAnswer& answer) {
    append_head(out_, answer.status, answer.type);
    append_header(out_, "x-request-id", answer.request_id);
    append_header(out_, "idempotent-replayed", "true");
    append_number_header(out_, "content-length", static_cast<std::int64_t>(answer.body.size()));
    append_header(out_, "connection", keeps_open() ? "keep-alive" : "close");
    out_ += "\r\n" + answer.body;
    if (!keeps_open()) closing_ = true;
    flush();
}

void Session::flush() {
    while (backlog() > 0) {
        const ssize_t size = transmit(std::string_view(out_).substr(sent_));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) break;
        if (size <= 0) return close();
        sent_ += static_cast<std::size_t>(size);
        stuck_us_ = 0;
    }
    if (backlog() == 0) {
        out_.clear();
        sent_ = 0;
        if (out_.capacity() > kKeptCapacity) std::string().swap(out_);
        if (closing_ && !exchange_ && aside_ == 0) {
            // The client may still be sending; without this it could lose the answer to a reset.
            ::shutdown(socket_.get(), SHUT_WR);
            if (eof_) return close();
            since_us_ = monotonic_clock_us();
        }
    } else if (stuck_us_ == 0) {
        stuck_us_ = monotonic_clock_us();
    }
    watch();
    if (exchange_ && backlog() < setup_->stream_buffer_bytes / 2) exchange_->client_drained();
}

void Session::exchange_done(bool keep_open) {
    loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
    since_us_ = monotonic_clock_us();
    if (!keep_open) closing_ = true;
    flush();
    if (!dead_) go_on();
}

// With what came behind the request that is over.
void Session::go_on() {
    if (closing_ || rest_.empty()) return;
    std::string next;
    next.swap(rest_);
    take(next);
    if (!dead_) watch();
}

void Session::drain() {
    draining_ = true;
    if (!exchange_ && aside_ == 0 && backlog() == 0 && !parser_.begun()) close();
}

void Session::sweep(std::int64_t now_us) {
    if (dead_) return;
    const Timeouts& timeouts = setup_->timeouts;
    const auto passed = [&](std::int64_t since, double seconds) {
        return static_cast<double>(now_us - since) > seconds * kUs;
    };
    if (backlog() > 0 && stuck_us_ != 0 && passed(stuck_us_, timeouts.slow_consumer_s)) {
        ++loop_.shared().counters.slow_consumers;
        if (exchange_)
            exchange_->cut(LedgerOutcome::slow_consumer, {.status = 408,
                                                          .type = "request_timeout",
                                                          .code = "slow_consumer",
                                                          .message = "the answer was not read"});
        return close();
    }
    if (exchange_) return exchange_->sweep(now_us);
    if (aside_ != 0) return;
    if (closing_) {
        if (passed(since_us_, 2)) close();
        return;
    }
    const auto late = [&] {
        keep_alive_ = false;
        refuse({.status = 408,
                .type = "invalid_request_error",
                .code = "request_timeout",
                .message = "the request did not come in time"});
    };
    if (parser_.state() == HttpRequestParser::State::body) {
        if (!passed(window_us_, timeouts.body_window_s)) return;
        if (window_bytes_ < timeouts.body_window_bytes) return late();
        window_us_ = now_us;
        window_bytes_ = 0;
    } else if (parser_.begun()) {
        if (passed(since_us_, timeouts.head_s)) late();
    } else if (passed(since_us_, timeouts.idle_s)) {
        close();
    }
}

void Session::close() {
    if (dead_) return;
    dead_ = true;
    if (exchange_) {
        exchange_->client_left();
        loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
    }
    loop_.poller().remove(socket_.get());
    tls_.reset();
    socket_.reset();
    loop_.session_ended(this);
}

}  // namespace stoker::gateway
