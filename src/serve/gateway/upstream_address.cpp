#include "serve/gateway/upstream_address.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>

namespace stoker::gateway {
namespace {

constexpr std::string_view kVersion = "/v1";

}  // namespace

UpstreamUrl split_url(const std::string& url) {
    const std::size_t scheme = url.find("://");
    const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
    if (slash == std::string::npos) return {url, ""};
    std::string path = url.substr(slash);
    while (path.ends_with('/')) path.pop_back();
    if (path.ends_with(kVersion)) path.resize(path.size() - kVersion.size());
    return {url.substr(0, slash), path};
}

std::shared_ptr<ssl_ctx_st> upstream_tls(const std::string& ca_pem) {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (!context) return context;
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    if (ca_pem.empty()) {
        SSL_CTX_set_default_verify_paths(context.get());
        ERR_clear_error();
        return context;
    }
    const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())),
                                                   BIO_free);
    bool any = false;
    while (X509* one = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
        any = X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one) == 1 || any;
        X509_free(one);
    }
    ERR_clear_error();
    return any ? context : nullptr;
}

bool is_path_word(std::string_view text) {
    return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
}

}  // namespace stoker::gateway
