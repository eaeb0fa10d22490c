// Signatures of requests to object stores, and the sums and encodings that go with them: AWS Signature Version 4
// ("Authenticating Requests: Using the Authorization Header") and Azure Storage's "Authorize with Shared Key".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/http/http.h"
#include "io/http/http_date.h"

namespace stoker {

std::string hmac_sha256(std::string_view key, std::string_view text);  // 32 raw bytes
std::string md5(std::string_view bytes);  // 16 raw bytes; stores check bodies against it, nothing is protected by it
std::string base64(std::string_view bytes);
std::optional<std::string> decode_base64(std::string_view text);
// RFC 3986: all but unreserved characters; a slash stays when it separates the parts of a path.
std::string percent_encode(std::string_view text, bool keep_slashes = false);

using QueryItems = std::vector<std::pair<std::string, std::string>>;  // not encoded

struct RequestToSign {
    std::string_view method;
    std::string_view host;  // as in the Host header
    std::string_view path;  // percent-encoded
    const QueryItems& query;
    std::size_t body_bytes = 0;
};

struct AwsKey {
    std::string id, secret, session_token, region, service = "s3";
};
// Adds x-amz-date, x-amz-content-sha256, x-amz-security-token and Authorization; host and every header there is are
// signed.
void sign_aws(const RequestToSign& request, const AwsKey& key, std::string_view payload_sha256_hex, std::int64_t time_s,
              HttpHeaders& headers);

struct AzureKey {
    std::string account, key;  // the key decoded
};
// The text that is signed; x-ms-date must be among the headers.
std::string azure_string_to_sign(const RequestToSign& request, std::string_view account, const HttpHeaders& headers);
void sign_azure(const RequestToSign& request, const AzureKey& key, HttpHeaders& headers);  // adds Authorization

}  // namespace stoker
