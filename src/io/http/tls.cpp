#include "io/http/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

#include "base/text.h"

namespace stoker {
namespace {

template <auto free_it>
struct OpensslFree {
    template <class T>
    void operator()(T* thing) const {
        free_it(thing);
    }
};
using CertificatePtr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;

std::string openssl_reason() {
    const unsigned long code = ERR_peek_last_error();
    const char* reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return reason != nullptr ? reason : "no reason given";
}

Error openssl_failed(std::string_view what) {
    return Error(ErrorKind::internal, fmt::format("OpenSSL cannot {}: {}", what, openssl_reason()));
}

BioPtr reading(std::string_view text) {
    return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<std::size_t>(size));
}

bool is_address(const std::string& name) {
    std::array<unsigned char, 16> bytes;
    return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
           ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

bool is_dns_name(std::string_view name) {
    if (name.starts_with("*.")) name.remove_prefix(2);
    if (name.empty() || name.size() > 253) return false;
    for (const std::string_view label : split(name, '.')) {
        if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
        for (const char c : lower(label))
            if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) return false;
    }
    return true;
}

bool add_extension(X509* certificate, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_random_serial(X509* certificate) {
    std::array<unsigned char, 16> bytes;
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
    bytes[0] &= 0x7f;  // positive
    bytes[0] |= 0x40;
    const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
    return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

std::string time_text(const ASN1_TIME* time) {
    const BioPtr out(BIO_new(BIO_s_mem()));
    if (!out || ASN1_TIME_print(out.get(), time) != 1) return "an unknown time";
    return text_of(out.get());
}

}  // namespace

Result<Certificate> make_certificate(const std::vector<std::string>& names, int days) {
    if (names.empty()) return Error(ErrorKind::invalid, "a certificate needs at least one name or address");
    if (days < 1 || days > 36500)
        return Error(ErrorKind::invalid, fmt::format("a certificate cannot be valid for {} days (1 to 36500)", days));
    std::string alternatives;
    for (const std::string& name : names) {
        const bool address = is_address(name);
        if (!address && !is_dns_name(name))
            return Error(ErrorKind::invalid, "'" + printable(name, 80) + "' is neither a DNS name nor an IP address");
        alternatives += (alternatives.empty() ? "" : ",") + std::string(address ? "IP:" : "DNS:") + name;
    }
    const KeyPtr key(EVP_EC_gen("P-256"));
    const CertificatePtr certificate(X509_new());
    if (!key || !certificate) return openssl_failed("make a key");
    X509* raw = certificate.get();
    X509_set_version(raw, X509_VERSION_3);
    // An hour back, for peers whose clock is behind.
    X509_gmtime_adj(X509_getm_notBefore(raw), -3600);
    X509_time_adj_ex(X509_getm_notAfter(raw), days, 0, nullptr);
    X509_NAME* subject = X509_get_subject_name(raw);
    const std::string common = names.front().substr(0, 64);  // X.520's bound; checks go by the alternative names
    const auto* bytes = reinterpret_cast<const unsigned char*>(common.c_str());
    const bool filled = set_random_serial(raw) &&
                        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                                   reinterpret_cast<const unsigned char*>("Stoker"), -1, -1, 0) &&
                        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, -1, -1, 0) &&
                        X509_set_issuer_name(raw, subject) && X509_set_pubkey(raw, key.get()) &&
                        add_extension(raw, NID_basic_constraints, "critical,CA:FALSE") &&
                        add_extension(raw, NID_key_usage, "critical,digitalSignature") &&
                        add_extension(raw, NID_ext_key_usage, "serverAuth") &&
                        add_extension(raw, NID_subject_key_identifier, "hash") &&
                        add_extension(raw, NID_subject_alt_name, alternatives);
    if (!filled || X509_sign(raw, key.get(), EVP_sha256()) == 0) return openssl_failed("make a certificate");
    const BioPtr certificate_text(BIO_new(BIO_s_mem()));
    const BioPtr key_text(BIO_new(BIO_s_mem()));
    if (!certificate_text || !key_text || PEM_write_bio_X509(certificate_text.get(), raw) != 1 ||
        PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
        return openssl_failed("write a certificate");
    return Certificate{.certificate_pem = text_of(certificate_text.get()), .key_pem = text_of(key_text.get())};
}

Status check_certificate(const Certificate& pem) {
    if (pem.certificate_pem.empty() || pem.key_pem.empty())
        return Error(ErrorKind::invalid, pem.key_pem.empty() ? "the certificate comes without its key"
                                                             : "the key comes without its certificate");
    const CertificatePtr certificate(PEM_read_bio_X509(reading(pem.certificate_pem).get(), nullptr, nullptr, nullptr));
    if (!certificate) return Error(ErrorKind::invalid, "the certificate is not a PEM certificate: " + openssl_reason());
    // A password is never asked for: nobody sits at the terminal of a server.
    const auto no_password = [](char*, int, int, void*) { return -1; };
    const KeyPtr key(PEM_read_bio_PrivateKey(reading(pem.key_pem).get(), nullptr, +no_password, nullptr));
    if (!key)
        return Error(ErrorKind::invalid, "the key is not a PEM private key without a password: " + openssl_reason());
    if (X509_check_private_key(certificate.get(), key.get()) != 1) {
        ERR_clear_error();
        return Error(ErrorKind::invalid, "the key does not belong to the certificate");
    }
    const ASN1_TIME* from = X509_get0_notBefore(certificate.get());
    const ASN1_TIME* until = X509_get0_notAfter(certificate.get());
    if (X509_cmp_current_time(until) < 0)
        return Error(ErrorKind::invalid, "the certificate expired on " + time_text(until));
    if (X509_cmp_current_time(from) > 0)
        return Error(ErrorKind::invalid, "the certificate is not valid before " + time_text(from));
    return done();
}

std::vector<std::string> names_of_certificate(const std::string& certificate_pem) {
    std::vector<std::string> names;
    const CertificatePtr certificate(PEM_read_bio_X509(reading(certificate_pem).get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    if (!certificate) return names;
    auto* all =
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
    for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {  // -1 of none
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
        if (name->type == GEN_DNS) {
            const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
            names.emplace_back(bytes, static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
        } else if (name->type == GEN_IPADD) {
            const int length = ASN1_STRING_length(name->d.iPAddress);
            char text[INET6_ADDRSTRLEN] = "";
            if ((length == 4 || length == 16) &&
                ::inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text,
                            sizeof text) != nullptr)
                names.emplace_back(text);
        }
    }
    GENERAL_NAMES_free(all);
    return names;
}

}  // namespace stoker
