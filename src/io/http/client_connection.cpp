#include "io/http/client_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "io/http/resolve.h"

namespace stoker::http {

class TlsClientContext {
public:
    explicit TlsClientContext(SSL_CTX* raw) : raw_(raw) {}
    ~TlsClientContext() { SSL_CTX_free(raw_); }
    TlsClientContext(const TlsClientContext&) = delete;
    TlsClientContext& operator=(const TlsClientContext&) = delete;
    SSL_CTX* raw() const { return raw_; }

private:
    SSL_CTX* raw_;
};

namespace {

using Time = ClientConnection::Time;

constexpr std::size_t kReceiveBytes = 64 * 1024;

std::string openssl_words() {
    const unsigned long code = ERR_peek_last_error();
    const char* reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return reason != nullptr ? reason : "no reason given";
}

std::string errno_words(int code) {
    return std::strerror(code);
}

// 0: the deadline passed. Otherwise what poll() saw.
short wait_for(int descriptor, short events, Time deadline) {
    while (true) {
        pollfd one{.fd = descriptor, .events = events, .revents = 0};
        const int ready = ::poll(&one, 1, milliseconds_until(deadline));
        if (ready > 0) return one.revents;
        if (ready < 0 && errno != EINTR) return POLLERR;
        if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return 0;
    }
}

class PlainConnection final : public ClientConnection {
public:
    explicit PlainConnection(UniqueFd socket) : socket_(std::move(socket)) { buffer_.resize(kReceiveBytes); }

    Result<std::size_t> send(std::string_view bytes, Time deadline) override {
        std::size_t sent = 0;
        while (sent < bytes.size()) {
            const ssize_t size = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (size > 0) {
                sent += static_cast<std::size_t>(size);
            } else if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
                const short seen = wait_for(socket_.get(), POLLOUT | POLLIN, deadline);
                if (seen == 0) return Error(ErrorKind::timed_out, "it did not take the request in time");
                if ((seen & POLLOUT) == 0 || (watch_input_ && (seen & POLLIN) != 0)) return sent;
            } else if (size < 0 && errno != EINTR) {
                return sent;
            }
        }
        return sent;
    }

    Result<std::string_view> receive(Time deadline) override {
        while (true) {
            const ssize_t size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
            if (size >= 0) return std::string_view(buffer_.data(), static_cast<std::size_t>(size));
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                return Error(ErrorKind::unavailable, "the connection broke: " + errno_words(errno));
            if (wait_for(socket_.get(), POLLIN, deadline) == 0)
                return Error(ErrorKind::timed_out, "no answer came in time");
        }
    }

    bool is_idle() override {
        pollfd one{.fd = socket_.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
        return ::poll(&one, 1, 0) == 0;
    }

    void ignore_input_while_sending() { watch_input_ = false; }

private:
    UniqueFd socket_;
    std::string buffer_;
    bool watch_input_ = true;
};

class TlsConnection final : public ClientConnection {
public:
    TlsConnection(std::unique_ptr<PlainConnection> plain, std::shared_ptr<TlsClientContext> context)
        : plain_(std::move(plain)), context_(std::move(context)), ssl_(SSL_new(context_->raw())) {
        plain_->ignore_input_while_sending();  // TLS has messages of its own
        buffer_.resize(kReceiveBytes);
    }
    ~TlsConnection() override {
        if (ssl_ == nullptr) return;
        if (established_ && SSL_shutdown(ssl_) >= 0) {
            const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
            (void)flush(soon);
        }
        SSL_free(ssl_);
        ERR_clear_error();
    }

    Status handshake(const ServerUrl& url, Time deadline) {
        if (ssl_ == nullptr) return Error(ErrorKind::internal, "OpenSSL cannot begin TLS: " + openssl_words());
        in_ = BIO_new(BIO_s_mem());
        out_ = BIO_new(BIO_s_mem());
        CHECK(in_ != nullptr && out_ != nullptr);
        BIO_set_mem_eof_return(in_, -1);
        SSL_set_bio(ssl_, in_, out_);
        SSL_set_connect_state(ssl_);
        SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
        std::array<unsigned char, 16> address;
        const bool numeric = ::inet_pton(AF_INET, url.host.c_str(), address.data()) == 1 ||
                             ::inet_pton(AF_INET6, url.host.c_str(), address.data()) == 1;
        const bool named = numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), url.host.c_str()) == 1
                                   : SSL_set1_host(ssl_, url.host.c_str()) == 1 &&
                                         SSL_set_tlsext_host_name(ssl_, url.host.c_str()) == 1;
        if (!named) return Error(ErrorKind::invalid, "a certificate cannot be valid for the host " + url.host);
        while (true) {
            const int code = SSL_do_handshake(ssl_);
            const int want = SSL_get_error(ssl_, code);
            TRY_VOID(flush(deadline));
            if (code == 1) break;
            if (want != SSL_ERROR_WANT_READ) return handshake_error(url);
            TRY(const bool more, fill(deadline));
            if (!more)
                return Error(ErrorKind::unavailable, "it closed the connection during the TLS handshake", {},
                             "does it speak https on this port?");
        }
        established_ = true;
        return done();
    }

    Result<std::size_t> send(std::string_view bytes, Time deadline) override {
        std::size_t sent = 0;
        while (sent < bytes.size()) {
            // In steps, so that the encrypted copy stays small.
            const std::string_view step = bytes.substr(sent, kReceiveBytes);
            std::size_t size = 0;
            ERR_clear_error();
            if (SSL_write_ex(ssl_, step.data(), step.size(), &size) != 1) return sent;
            TRY(const bool all, flush_some(deadline));
            if (!all) return sent;
            sent += size;
        }
        return sent;
    }

    Result<std::string_view> receive(Time deadline) override {
        while (true) {
            std::size_t size = 0;
            ERR_clear_error();
            if (SSL_read_ex(ssl_, buffer_.data(), buffer_.size(), &size) == 1)
                return std::string_view(buffer_.data(), size);
            const int want = SSL_get_error(ssl_, 0);
            TRY_VOID(flush(deadline));
            if (want == SSL_ERROR_ZERO_RETURN) return std::string_view();
            if (want != SSL_ERROR_WANT_READ) return Error(ErrorKind::unavailable, "TLS broke: " + openssl_words());
            TRY(const bool more, fill(deadline));
            if (!more) return Error(ErrorKind::unavailable, "the connection broke: closed without an end of TLS");
        }
    }

    bool is_idle() override {
        if (SSL_pending(ssl_) > 0) return false;
        if (plain_->is_idle()) return true;
        // What came may be a session ticket, which is no answer.
        const auto now = std::chrono::steady_clock::now();
        const auto more = fill(now);
        if (!more || !*more) return false;
        char byte = 0;
        std::size_t size = 0;
        ERR_clear_error();
        return SSL_peek_ex(ssl_, &byte, 1, &size) != 1 && SSL_get_error(ssl_, 0) == SSL_ERROR_WANT_READ;
    }

private:
    // False: the server closed the connection.
    Result<bool> fill(Time deadline) {
        TRY(const std::string_view bytes, plain_->receive(deadline));
        if (bytes.empty()) return false;
        CHECK(BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()));
        return true;
    }
    // False: the connection broke, which receive() will tell.
    Result<bool> flush_some(Time deadline) {
        char* data = nullptr;
        const long size = BIO_get_mem_data(out_, &data);
        if (size <= 0) return true;
        TRY(const std::size_t sent, plain_->send({data, static_cast<std::size_t>(size)}, deadline));
        (void)BIO_reset(out_);
        return sent == static_cast<std::size_t>(size);
    }
    Status flush(Time deadline) {
        TRY([[maybe_unused]] const bool all, flush_some(deadline));
        return done();
    }

    Error handshake_error(const ServerUrl& url) {
        const long verdict = SSL_get_verify_result(ssl_);
        const std::string words = openssl_words();
        if (verdict != X509_V_OK)
            return Error(ErrorKind::denied,
                         fmt::format("the certificate of {} is not trusted: {}", url.authority,
                                     X509_verify_cert_error_string(verdict)),
                         {}, "name the certificate of the server, or of the authority that signed it");
        return Error(ErrorKind::unavailable, "the TLS handshake failed: " + words, {},
                     "does it speak https on this port?");
    }

    std::unique_ptr<PlainConnection> plain_;
    std::shared_ptr<TlsClientContext> context_;
    SSL* ssl_;
    BIO* in_ = nullptr;   // of ssl_
    BIO* out_ = nullptr;  // of ssl_
    bool established_ = false;
    std::string buffer_;
};

// A Unix socket is there or not: its server takes connections from its queue, and a full one is EAGAIN at once.
Result<UniqueFd> connect_socket(const std::string& path, Time deadline) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return Error(ErrorKind::invalid, "the name of a socket is longer than the system takes: " + printable(path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    constexpr int kPauseMs = 10;
    for (;;) {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!socket) return Error(ErrorKind::unavailable, "no socket can be opened: " + errno_words(errno));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
        if (errno != EAGAIN) return Error(ErrorKind::unavailable, errno_words(errno));
        if (milliseconds_until(deadline) == 0) return Error(ErrorKind::timed_out, "no connection was made in time");
        ::poll(nullptr, 0, kPauseMs);
    }
}

Result<UniqueFd> connect_to(const addrinfo& address, Time deadline) {
    UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return Error(ErrorKind::unavailable, "no socket can be opened: " + errno_words(errno));
    if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return Error(ErrorKind::unavailable, errno_words(errno));
        if (wait_for(socket.get(), POLLOUT, deadline) == 0)
            return Error(ErrorKind::timed_out, "no connection was made in time");
        int code = 0;
        socklen_t size = sizeof code;
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
        if (code != 0) return Error(ErrorKind::unavailable, errno_words(code));
    }
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return socket;
}

// Every address of the name in turn.
Result<UniqueFd> connect_host(const ServerUrl& url, Time deadline) {
    if (!url.socket.empty()) return connect_socket(url.socket, deadline);
    TRY(const Addresses list, resolve(url.host, url.port, deadline));
    Result<UniqueFd> last = Error(ErrorKind::unavailable, "the name has no address");
    for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
        last = connect_to(*address, deadline);
        if (last || last.error().kind() == ErrorKind::timed_out) break;
    }
    return last;
}

}  // namespace

Result<ServerUrl> read_server_url(std::string_view url) {
    const auto wrong = [&](const std::string& what) {
        return Error(ErrorKind::invalid, fmt::format("'{}' {}", printable(url, 120), what), {},
                     "write it as http://HOST:PORT or https://HOST:PORT");
    };
    ServerUrl out;
    std::string_view rest = url;
    if (starts_with_ignore_case(rest, "https://")) {
        out.tls = true;
        rest.remove_prefix(8);
    } else if (starts_with_ignore_case(rest, "http://")) {
        rest.remove_prefix(7);
    } else {
        return wrong("is not the URL of a server");
    }
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.find_first_of("/?#") != std::string_view::npos) return wrong("has a path, which a server has not");
    if (rest.find('@') != std::string_view::npos) return wrong("has a user name, which is not sent");
    std::string_view port;
    if (rest.starts_with('[')) {
        const std::size_t end = rest.find(']');
        if (end == std::string_view::npos) return wrong("has '[' without ']'");
        out.host = rest.substr(1, end - 1);
        in6_addr address{};
        if (::inet_pton(AF_INET6, out.host.c_str(), &address) != 1) return wrong("has no IPv6 address in its brackets");
        rest.remove_prefix(end + 1);
        if (!rest.empty() && rest.front() != ':') return wrong("has something other than a port behind ']'");
        if (!rest.empty()) port = rest.substr(1);
        out.authority = "[" + out.host + "]";
        if (!rest.empty() && port.empty()) return wrong("has no port behind ':'");
    } else {
        const std::size_t colon = rest.find(':');
        out.host = rest.substr(0, colon);
        if (colon != std::string_view::npos) port = rest.substr(colon + 1);
        if (colon != std::string_view::npos && port.empty()) return wrong("has no port behind ':'");
        out.authority = out.host;
    }
    const auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:";
    if (out.host.empty() || out.host.find_first_not_of(allowed) != std::string::npos || out.host.size() > 253)
        return wrong("has no valid host name or address");
    out.port = out.tls ? 443 : 80;
    if (!port.empty()) {
        const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), out.port);
        if (code != std::errc() || end != port.data() + port.size() || out.port == 0)
            return wrong("has a port that is not a number from 1 to 65535");
        out.authority += fmt::format(":{}", out.port);
    }
    return out;
}

Result<ServerUrl> read_server_or_socket(std::string_view url) {
    constexpr std::string_view kUnix = "unix:";
    if (!starts_with_ignore_case(url, kUnix)) return read_server_url(url);
    ServerUrl out;
    out.socket = url.substr(kUnix.size());
    out.authority = "localhost";
    if (!out.socket.starts_with('/') || out.socket.find('\0') != std::string::npos)
        return Error(ErrorKind::invalid, fmt::format("'{}' names no socket", printable(url, 120)), {},
                     "write it as unix:/PATH");
    return out;
}

namespace {

// With the certificates that lead from ours to an authority, where the file has them.
Status show_certificate(SSL_CTX* raw, const Certificate& own) {
    TRY_VOID(check_certificate(own));
    BIO* chain = BIO_new_mem_buf(own.certificate_pem.data(), static_cast<int>(own.certificate_pem.size()));
    bool good = true;
    for (int i = 0; X509* certificate = PEM_read_bio_X509(chain, nullptr, nullptr, nullptr); ++i) {
        good = good &&
               (i == 0 ? SSL_CTX_use_certificate(raw, certificate) : SSL_CTX_add1_chain_cert(raw, certificate)) == 1;
        X509_free(certificate);
    }
    BIO_free(chain);
    ERR_clear_error();  // of the end of the file
    BIO* key_text = BIO_new_mem_buf(own.key_pem.data(), static_cast<int>(own.key_pem.size()));
    EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
    BIO_free(key_text);
    good = good && key != nullptr && SSL_CTX_use_PrivateKey(raw, key) == 1;
    EVP_PKEY_free(key);
    if (!good) return Error(ErrorKind::invalid, "the client certificate cannot be used: " + openssl_words());
    return done();
}

}  // namespace

Result<std::shared_ptr<TlsClientContext>> make_tls_client_context(const std::string& ca_pem, const Certificate& own) {
    auto context = std::make_shared<TlsClientContext>(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* raw = context->raw();
    if (raw == nullptr) return Error(ErrorKind::internal, "OpenSSL cannot begin TLS: " + openssl_words());
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    if (!own.certificate_pem.empty() || !own.key_pem.empty()) TRY_VOID(show_certificate(raw, own));
    if (ca_pem.empty()) {
        SSL_CTX_set_default_verify_paths(raw);
        return context;
    }
    X509_STORE* store = SSL_CTX_get_cert_store(raw);
    // What was named is trusted, also when it is a server's own certificate and no authority.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    BIO* bio = BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size()));
    int count = 0;
    while (X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
        X509_STORE_add_cert(store, certificate);
        X509_free(certificate);
        ++count;
    }
    BIO_free(bio);
    ERR_clear_error();
    if (count == 0) return Error(ErrorKind::invalid, "what is to be trusted is not a PEM certificate");
    return context;
}

Result<std::unique_ptr<ClientConnection>> ClientConnection::connect(const ServerUrl& url,
                                                                    const std::shared_ptr<TlsClientContext>& tls,
                                                                    Time deadline) {
    TRY(UniqueFd socket, connect_host(url, deadline));
    auto plain = std::make_unique<PlainConnection>(std::move(socket));
    if (!tls) return std::unique_ptr<ClientConnection>(std::move(plain));
    auto secure = std::make_unique<TlsConnection>(std::move(plain), tls);
    TRY_VOID(secure->handshake(url, deadline));
    return std::unique_ptr<ClientConnection>(std::move(secure));
}

}  // namespace stoker::http
