#include "io/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <new>

namespace stoker {

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    ~State() { EVP_MD_CTX_free(context); }
};

namespace {

// Looked up once: EVP_sha256() is looked up again, under a lock, each time a digest begins.
const EVP_MD* algorithm() {
    static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return found;
}

}  // namespace

// The digest is part of OpenSSL's default provider, so only memory can be missing.
Sha256::Sha256() : state_(new State) {
    if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, algorithm(), nullptr) != 1)
        throw std::bad_alloc();
}

Sha256::~Sha256() = default;

Sha256& Sha256::add(std::string_view bytes) {
    EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
    return *this;
}

std::string Sha256::finish() {
    std::string digest(kDigestBytes, '\0');
    EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    EVP_DigestInit_ex(state_->context, nullptr, nullptr);
    return digest;
}

std::string sha256(std::string_view bytes) {
    thread_local Sha256 sum;  // finish() makes it ready for the next
    return sum.add(bytes).finish();
}

std::string hex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

bool is_sha256(std::string_view text) {
    return text.size() == 2 * kDigestBytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace stoker
