// JSON Web Tokens (RFC 7519) signed as JWS in compact form (RFC 7515): what somebody else's server says of who logs in.
// Only signatures with a public key are taken: RS256, RS384, RS512, PS256, ES256 and EdDSA (Ed25519); "none" and those
// with a shared secret never.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/result.h"

namespace stoker {

inline constexpr std::size_t kMostTokenBytes = 16 * 1024;

std::string base64url(std::string_view bytes);  // without padding
std::optional<std::string> decode_base64url(std::string_view text);

// A key of a JWK set (RFC 7517), ready to check signatures with.
class JsonWebKey {
public:
    // unsupported: a key that signs nothing here (encryption, a curve or a kind that we do not know).
    static Result<JsonWebKey> read(const Node& key);

    const std::string& id() const { return id_; }
    // Empty `algorithm` of the key: any that fits its kind.
    bool fits(std::string_view algorithm) const;
    bool is_signed(std::string_view algorithm, std::string_view message, std::string_view signature) const;

private:
    std::string id_, algorithm_, kind_;
    std::shared_ptr<void> key_;  // EVP_PKEY
};

// Those of a set that we can use.
Result<std::vector<JsonWebKey>> read_key_set(std::string_view json, const std::string& name);

struct JsonWebToken {
    std::string algorithm, key_id;
    Document claims;
};
// The parts, unverified. invalid: it is none, or says what is never taken.
Result<JsonWebToken> read_token(std::string_view token);
// The same, when one of these keys signed it. not_found: none of them has the id that it names (they may have been
// rotated); denied: the signature is wrong.
Result<JsonWebToken> verified_token(std::string_view token, const std::vector<JsonWebKey>& keys);

}  // namespace stoker
