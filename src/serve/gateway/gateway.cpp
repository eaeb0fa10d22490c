#include "serve/gateway/gateway.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <thread>

#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {
namespace {

constexpr auto kCutPatience = std::chrono::seconds(3);

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
    static constexpr unsigned char kOurs[] = "\x02h2\x08http/1.1";
    unsigned char* found = nullptr;
    const int agreed = SSL_select_next_proto(&found, size, kOurs, sizeof kOurs - 1, offered, offered_size);
    *chosen = found;
    return agreed == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Result<std::shared_ptr<ssl_ctx_st>> tls_context(const GatewayOptions& options) {
    const auto wrong = [](const char* what) {
        return Error(ErrorKind::invalid, fmt::format("the {} of the gateway cannot be used", what), {},
                     "name a certificate chain and its key, PEM");
    };
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    if (!context) return wrong("TLS library");
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);  // RFC 9113 9.2.1
    SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
    const auto memory = [](const std::string& pem) {
        return std::unique_ptr<BIO, int (*)(BIO*)>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
    };
    const auto chain = memory(options.certificate_pem), key = memory(options.key_pem);
    std::unique_ptr<X509, void (*)(X509*)> leaf(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr), X509_free);
    if (!leaf || SSL_CTX_use_certificate(context.get(), leaf.get()) != 1) return wrong("certificate");
    while (X509* next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr))
        if (SSL_CTX_add0_chain_cert(context.get(), next) != 1) X509_free(next);
    ERR_clear_error();
    std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> secret(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr),
                                                          EVP_PKEY_free);
    if (!secret || SSL_CTX_use_PrivateKey(context.get(), secret.get()) != 1 ||
        SSL_CTX_check_private_key(context.get()) != 1)
        return wrong("key of the certificate");
    return context;
}

std::vector<NameRecord> names_of(const Setup& setup) {
    std::vector<NameRecord> names;
    for (const KeySetup& key : setup.keys) {
        names.push_back({NameKind::key, key.id, key.entry.name});
        names.push_back({NameKind::project, name_id(key.project), key.project});
    }
    for (const auto& [name, model] : setup.models) {
        names.push_back({NameKind::model, model.id, name});
        for (const UpstreamSetup& upstream : model.upstreams)
            names.push_back({NameKind::replica, upstream.id, upstream.url});
    }
    return names;
}

}  // namespace

Gateway::Gateway(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<Gateway>> Gateway::start(GatewayOptions options, std::shared_ptr<const Setup> setup) {
    auto shared = std::make_unique<Shared>();
    if (!options.certificate_pem.empty()) {
        TRY(shared->tls, tls_context(options));
    }
    if (!options.shared_limits.secret.empty()) {
        TRY(shared->share,
            LimitShare::make(shared->limits,
                             {.gateway = options.name,
                              .home = options.shared_limits.home,
                              .secret = options.shared_limits.secret,
                              .ca_pem = options.shared_limits.ca_pem,
                              .record = options.ledger_folder.empty() ? "" : options.ledger_folder + ".limits.json",
                              .account_from_unix_us = options.account_from_unix_us}));
    }
    if (!options.ledger_folder.empty()) {
        LedgerOptions ledger{.folder = options.ledger_folder,
                             .home = options.ledger_home,
                             .segment_bytes = options.ledger_segment_bytes,
                             .names = names_of(*setup),
                             .account_from_unix_us = options.account_from_unix_us,
                             .sync = options.ledger_sync};
        for (std::size_t i = 0; i < 8; ++i) ledger.gateway[i] = static_cast<std::uint8_t>(options.name >> (8 * i));
        TRY(shared->ledger, Ledger::open(std::move(ledger)));
        std::map<std::uint64_t, PicoSum> spent;
        std::map<std::uint64_t, std::uint64_t> project_of, cap_of;  // key, model
        for (const KeySetup& key : setup->keys) project_of[key.id] = key.project_id;
        for (const auto& [name, model] : setup->models) cap_of[model.id] = model.cap_id;
        for (const auto& [who, row] : shared->ledger->recovery().accounts) {
            spent[who.first] += row.picousd;
            if (const auto project = project_of.find(who.first); project != project_of.end())
                spent[project->second] += row.picousd;
            if (const auto cap = cap_of.find(who.second); cap != cap_of.end() && cap->second != 0)
                spent[cap->second] += row.picousd;
        }
        for (const auto& [key, sum] : spent) {
            shared->limits.set_spent(key, static_cast<std::uint64_t>(sum));
            if (shared->share) shared->share->know(key);
        }
    }
    if (!options.traces.to.empty()) {
        TRY(shared->traces, TraceExporter::make(options.traces, options.name));
    }
    if (!options.access_log.file.empty()) {
        TRY(shared->access, AccessLog::open(options.access_log));
    }
    shared->period_from_us = options.account_from_unix_us;
    shared->options = std::move(options);
    shared->set_setup(std::move(setup));
    auto gateway = std::unique_ptr<Gateway>(new Gateway(std::move(shared)));
    Shared& own = *gateway->shared_;
    std::uint16_t port = own.options.port;
    own.own_secret = random_hex(32);
    for (int i = 0; i < own.options.threads; ++i) {
        TRY(auto loop,
            Loop::make(own, static_cast<std::uint64_t>(monotonic_clock_us()) + name_id(random_hex(8)), port));
        port = loop->port();
        gateway->loops_.push_back(std::move(loop));
    }
    TRY_VOID(gateway->loops_.front()->open_own_door());
    if (own.ledger)
        own.ledger->on_commit([&gateway = *gateway] {
            for (const auto& loop : gateway.loops_) loop->poller().wake();
        });
    if (own.share) own.share->start();
    for (const auto& loop : gateway->loops_) loop->start();
    return gateway;
}

Gateway::~Gateway() {
    stop(std::chrono::steady_clock::now());
}

std::uint16_t Gateway::port() const {
    return loops_.front()->port();
}

std::uint16_t Gateway::own_port() const {
    return loops_.front()->own_port();
}

const std::string& Gateway::own_secret() const {
    return shared_->own_secret;
}

void Gateway::set_side(std::shared_ptr<const SideApi> side) {
    shared_->set_side(std::move(side));
}

const Ledger::Recovery* Gateway::recovery() const {
    return shared_->ledger ? &shared_->ledger->recovery() : nullptr;
}

void Gateway::set_setup(std::shared_ptr<const Setup> setup) {
    if (shared_->ledger) shared_->ledger->name(names_of(*setup));
    shared_->set_setup(std::move(setup));
}

void Gateway::stop(std::chrono::steady_clock::time_point deadline) {
    if (shared_->draining.exchange(true)) return;
    for (const auto& loop : loops_) loop->drain();
    const auto open = [&] {
        return std::any_of(loops_.begin(), loops_.end(), [](const auto& loop) { return loop->open_sessions() > 0; });
    };
    const auto wait_until = [&](std::chrono::steady_clock::time_point end) {
        while (open() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    wait_until(deadline);
    if (open()) {
        for (const auto& loop : loops_) loop->cut();
        wait_until(std::chrono::steady_clock::now() + kCutPatience);
    }
    shared_->aside.stop(std::chrono::steady_clock::now() + kCutPatience);
    for (const auto& loop : loops_) loop->stop();
    if (shared_->share) shared_->share->stop();
    shared_->traces.reset();
    shared_->access.reset();  // what waits is written
    shared_->ledger.reset();  // all of it is written
}

}  // namespace stoker::gateway
