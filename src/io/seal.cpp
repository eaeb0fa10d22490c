#include "io/seal.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <memory>

#include "base/text.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr std::string_view kMark = "stoker-sealed-1\n";
constexpr std::size_t kKeyIdBytes = 8, kNonceBytes = 12, kTagBytes = 16;

struct FreeCipher {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

unsigned char* octets(std::string& text, std::size_t from = 0) {
    return reinterpret_cast<unsigned char*>(text.data()) + from;
}
const unsigned char* octets(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

// Which key it was, and nothing of it.
std::string key_id(const std::string& key) {
    return sha256("stoker seal key " + key).substr(0, kKeyIdBytes);
}

}  // namespace

Result<std::string> read_seal_key(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::string word = lower(trim(text));
    // The text is not told: it is a key that somebody miscounted.
    if (word.size() != 2 * kSealKeyBytes || word.find_first_not_of(kDigits) != std::string::npos)
        return Error(ErrorKind::invalid, "this is no key for sealing", {}, "64 hex digits: openssl rand -hex 32");
    std::string key;
    for (std::size_t i = 0; i < word.size(); i += 2)
        key += static_cast<char>(16 * kDigits.find(word[i]) + kDigits.find(word[i + 1]));
    return key;
}

Result<std::string> seal(const std::string& key, std::string_view name, std::string_view plain) {
    std::string out(kMark);
    out += key_id(key);
    const std::size_t nonce_at = out.size(), text_at = nonce_at + kNonceBytes;
    out.resize(text_at + plain.size() + kTagBytes);
    const Cipher cipher(EVP_CIPHER_CTX_new());
    int done_bytes = 0, last = 0;
    const bool sealed =
        cipher && ::getrandom(octets(out, nonce_at), kNonceBytes, 0) == static_cast<ssize_t>(kNonceBytes) &&
        EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, octets(std::string_view(key)),
                           octets(out, nonce_at)) == 1 &&
        EVP_EncryptUpdate(cipher.get(), nullptr, &last, octets(name), static_cast<int>(name.size())) == 1 &&
        EVP_EncryptUpdate(cipher.get(), octets(out, text_at), &done_bytes, octets(plain),
                          static_cast<int>(plain.size())) == 1 &&
        EVP_EncryptFinal_ex(cipher.get(), octets(out, text_at + plain.size()), &last) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, octets(out, text_at + plain.size())) == 1;
    if (!sealed || key.size() != kSealKeyBytes || static_cast<std::size_t>(done_bytes) != plain.size())
        return Error(ErrorKind::internal, "a value could not be sealed");
    return out;
}

bool is_sealed(std::string_view sealed) {
    return sealed.starts_with(kMark);
}

bool is_sealed_with(const std::string& key, std::string_view sealed) {
    return is_sealed(sealed) && sealed.substr(kMark.size()).starts_with(key_id(key));
}

Result<std::string> open_sealed(const std::string& key, std::string_view name, std::string_view sealed) {
    const Error wrong(ErrorKind::denied, "it was sealed with another key, or has been changed");
    const std::size_t text_at = kMark.size() + kKeyIdBytes + kNonceBytes;
    if (!is_sealed_with(key, sealed) || sealed.size() < text_at + kTagBytes) return wrong;
    std::string tag(sealed.substr(sealed.size() - kTagBytes)), out(sealed.size() - text_at - kTagBytes, '\0');
    const std::string_view nonce = sealed.substr(kMark.size() + kKeyIdBytes, kNonceBytes);
    const std::string_view text = sealed.substr(text_at, out.size());
    const Cipher cipher(EVP_CIPHER_CTX_new());
    int done_bytes = 0, last = 0;
    unsigned char none = 0;
    const bool opened =
        cipher && key.size() == kSealKeyBytes &&
        EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, octets(std::string_view(key)), octets(nonce)) ==
            1 &&
        EVP_DecryptUpdate(cipher.get(), nullptr, &last, octets(name), static_cast<int>(name.size())) == 1 &&
        EVP_DecryptUpdate(cipher.get(), out.empty() ? &none : octets(out), &done_bytes, octets(text),
                          static_cast<int>(text.size())) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, octets(tag)) == 1 &&
        EVP_DecryptFinal_ex(cipher.get(), &none, &last) == 1;
    if (!opened) return wrong;
    return out;
}

}  // namespace stoker
