#include "io/json_web_token.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kLeastRsaBytes = 256;  // 2048 bits (RFC 7518, 3.3)
constexpr std::size_t kHalfOfP256 = 32;

struct Algorithm {
    std::string_view name, kind;
    const char* digest;  // nullptr: the kind has its own
    bool pss = false;
};
constexpr std::array<Algorithm, 6> kAlgorithms = {{{"RS256", "RSA", "SHA256"},
                                                   {"RS384", "RSA", "SHA384"},
                                                   {"RS512", "RSA", "SHA512"},
                                                   {"PS256", "RSA", "SHA256", true},
                                                   {"ES256", "EC", "SHA256"},
                                                   {"EdDSA", "OKP", nullptr}}};

const Algorithm* find_algorithm(std::string_view name) {
    const auto* const found =
        std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const Algorithm& each) { return each.name == name; });
    return found == kAlgorithms.end() ? nullptr : found;
}

template <class T, void (*Free)(T*)>
struct Freed {
    void operator()(T* each) const { Free(each); }
};
using Number = std::unique_ptr<BIGNUM, Freed<BIGNUM, BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM, OSSL_PARAM_free>>;
using Context = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX, EVP_MD_CTX_free>>;

const unsigned char* raw_bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

Number big_number(std::string_view bytes) {
    return Number(BN_bin2bn(raw_bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

std::string member_of_key(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr && found->kind == NodeKind::string ? found->text : std::string();
}

EVP_PKEY* from_parameters(const char* kind, OSSL_PARAM_BLD* builder) {
    const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
    const Context context(EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
    EVP_PKEY* key = nullptr;
    if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
        EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) <= 0)
        return nullptr;
    return key;
}

EVP_PKEY* rsa_key(std::string_view n, std::string_view e) {
    const Number modulus = big_number(n), exponent = big_number(e);
    const Builder builder(OSSL_PARAM_BLD_new());
    if (!modulus || !exponent || !builder ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) <= 0 ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) <= 0)
        return nullptr;
    return from_parameters("RSA", builder.get());
}

EVP_PKEY* p256_key(std::string_view x, std::string_view y) {
    std::string point = "\x04";
    point.append(x).append(y);
    const Builder builder(OSSL_PARAM_BLD_new());
    if (!builder || OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) <= 0 ||
        OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) <= 0)
        return nullptr;
    return from_parameters("EC", builder.get());
}

// A signature of ECDSA is two numbers one after the other; OpenSSL wants them in DER.
std::string der_of(std::string_view signature) {
    if (signature.size() != 2 * kHalfOfP256) return {};
    const std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG, ECDSA_SIG_free>> both(ECDSA_SIG_new());
    Number r = big_number(signature.substr(0, kHalfOfP256)), s = big_number(signature.substr(kHalfOfP256));
    if (!both || !r || !s || ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return {};
    (void)r.release();  // they belong to it now
    (void)s.release();
    unsigned char* out = nullptr;
    const int size = i2d_ECDSA_SIG(both.get(), &out);
    if (size <= 0) return {};
    std::string der(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
    OPENSSL_free(out);
    return der;
}

}  // namespace

std::string base64url(std::string_view bytes) {
    std::string out;
    unsigned held = 0;
    int bits = 0;
    for (const char c : bytes) {
        held = held << 8 | static_cast<unsigned char>(c);
        for (bits += 8; bits >= 6; bits -= 6) out += kLetters[held >> (bits - 6) & 63];
    }
    if (bits > 0) out += kLetters[held << (6 - bits) & 63];
    return out;
}

std::optional<std::string> decode_base64url(std::string_view text) {
    std::string out;
    unsigned held = 0;
    int bits = 0;
    for (const char c : text) {
        const std::size_t at = kLetters.find(c);
        if (at == std::string_view::npos) return std::nullopt;
        held = (held << 6 | static_cast<unsigned>(at)) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out += static_cast<char>(held >> bits & 0xff);
        }
    }
    // One text for one value: what is left over is zero, and less than a letter.
    if (bits >= 6 || (held & ((1U << bits) - 1)) != 0) return std::nullopt;
    return out;
}

Result<JsonWebKey> JsonWebKey::read(const Node& key) {
    JsonWebKey read;
    read.id_ = member_of_key(key, "kid");
    read.kind_ = member_of_key(key, "kty");
    read.algorithm_ = member_of_key(key, "alg");
    const std::string use = member_of_key(key, "use"), curve = member_of_key(key, "crv");
    const auto part = [&](const char* name) { return decode_base64url(member_of_key(key, name)).value_or(""); };
    const Error unknown(ErrorKind::unsupported, "a key of a kind that signs nothing here");
    if (!use.empty() && use != "sig") return unknown;
    if (!read.algorithm_.empty() && find_algorithm(read.algorithm_) == nullptr) return unknown;
    EVP_PKEY* made = nullptr;
    if (read.kind_ == "RSA") {
        const std::string n = part("n"), e = part("e");
        if (n.size() < kLeastRsaBytes || n.size() > 2048 || e.empty() || e.size() > 8) return unknown;
        made = rsa_key(n, e);
    } else if (read.kind_ == "EC" && curve == "P-256") {
        const std::string x = part("x"), y = part("y");
        if (x.size() != kHalfOfP256 || y.size() != kHalfOfP256) return unknown;
        made = p256_key(x, y);
    } else if (read.kind_ == "OKP" && curve == "Ed25519") {
        const std::string x = part("x");
        made = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw_bytes(x), x.size());
    }
    if (made == nullptr) return unknown;
    read.key_ = std::shared_ptr<void>(made, [](void* each) { EVP_PKEY_free(static_cast<EVP_PKEY*>(each)); });
    return read;
}

bool JsonWebKey::fits(std::string_view algorithm) const {
    const Algorithm* known = find_algorithm(algorithm);
    return known != nullptr && known->kind == kind_ && (algorithm_.empty() || algorithm_ == algorithm);
}

bool JsonWebKey::is_signed(std::string_view algorithm, std::string_view message, std::string_view signature) const {
    const Algorithm* known = find_algorithm(algorithm);
    if (known == nullptr || !fits(algorithm)) return false;
    const std::string der = known->kind == "EC" ? der_of(signature) : std::string(signature);
    const Digest context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* of_key = nullptr;  // of the context
    if (der.empty() || !context ||
        EVP_DigestVerifyInit_ex(context.get(), &of_key, known->digest, nullptr, nullptr,
                                static_cast<EVP_PKEY*>(key_.get()), nullptr) <= 0)
        return false;
    if (known->pss && (EVP_PKEY_CTX_set_rsa_padding(of_key, RSA_PKCS1_PSS_PADDING) <= 0 ||
                       EVP_PKEY_CTX_set_rsa_pss_saltlen(of_key, RSA_PSS_SALTLEN_DIGEST) <= 0))
        return false;
    return EVP_DigestVerify(context.get(), raw_bytes(der), der.size(), raw_bytes(message), message.size()) == 1;
}

Result<std::vector<JsonWebKey>> read_key_set(std::string_view json, const std::string& name) {
    TRY(const Document document, Document::parse(json, name + ".json"));
    const Node* list = document.root().find("keys");
    if (list == nullptr || !list->is_sequence())
        return Error(ErrorKind::invalid, printable(name, 200) + " is no set of keys");
    std::vector<JsonWebKey> keys;
    for (const auto& each : list->items)
        if (auto key = JsonWebKey::read(*each)) keys.push_back(std::move(*key));
    return keys;
}

Result<JsonWebToken> read_token(std::string_view token) {
    const Error none(ErrorKind::invalid, "this is no signed token");
    const std::size_t first = token.find('.'), second = token.find('.', first + 1);
    if (token.size() > kMostTokenBytes || first == std::string_view::npos || second == std::string_view::npos ||
        token.find('.', second + 1) != std::string_view::npos)
        return none;
    const auto head = decode_base64url(token.substr(0, first)),
               body = decode_base64url(token.substr(first + 1, second - first - 1));
    if (!head || !body) return none;
    const auto header = Document::parse(*head, "head.json");
    auto claims = Document::parse(*body, "token.json");
    if (!header || !claims || !header->root().is_mapping() || !claims->root().is_mapping()) return none;
    const std::string algorithm = member_of_key(header->root(), "alg");
    // What must be understood and is not (RFC 7515, 4.1.11).
    if (find_algorithm(algorithm) == nullptr || header->root().find("crit") != nullptr)
        return Error(ErrorKind::invalid, fmt::format("a token signed by {} is not taken",
                                                     algorithm.empty() ? "nobody" : printable(algorithm, 40)));
    return JsonWebToken{algorithm, member_of_key(header->root(), "kid"), std::move(*claims)};
}

Result<JsonWebToken> verified_token(std::string_view token, const std::vector<JsonWebKey>& keys) {
    TRY(JsonWebToken read, read_token(token));
    const std::size_t end = token.rfind('.');
    const auto signature = decode_base64url(token.substr(end + 1));
    bool tried = false;
    for (const JsonWebKey& key : keys) {
        if (!read.key_id.empty() && !key.id().empty() && key.id() != read.key_id) continue;
        if (!key.fits(read.algorithm)) continue;
        tried = true;
        if (signature && key.is_signed(read.algorithm, token.substr(0, end), *signature)) return read;
    }
    if (!tried) return Error(ErrorKind::not_found, "none of the known keys signed the token");
    return Error(ErrorKind::denied, "the signature of the token is wrong");
}

}  // namespace stoker
