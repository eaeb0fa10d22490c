#include "io/store/request_sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

std::tm utc(std::int64_t time_s) {
    const auto time = static_cast<std::time_t>(time_s);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    return parts;
}

std::string canonical_query(const QueryItems& query) {
    std::vector<std::pair<std::string, std::string>> items;
    for (const auto& [name, value] : query) items.emplace_back(percent_encode(name), percent_encode(value));
    std::sort(items.begin(), items.end());
    std::string text;
    for (const auto& [name, value] : items) {
        if (!text.empty()) text += '&';
        text += name;
        text += '=';
        text += value;
    }
    return text;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
    std::string out(kDigestBytes, '\0');
    unsigned size = 0;
    ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(),
           reinterpret_cast<unsigned char*>(out.data()), &size);
    return out;
}

std::string md5(std::string_view bytes) {
    std::string out(16, '\0');
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size, EVP_md5(),
                   nullptr) != 1)
        out.clear();  // a machine that forbids MD5 (FIPS): it is left out of the request then
    return out;
}

std::string base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto byte = [&](std::size_t at) -> std::uint32_t {
            return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
        };
        const std::uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
        for (std::size_t j = 0; j < 4; ++j)
            out += i + j > bytes.size() ? '=' : kBase64Digits[word >> (18 - 6 * j) & 63];
    }
    return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
    while (text.ends_with('=')) text.remove_suffix(1);
    std::string out;
    std::uint32_t word = 0;
    int bits = 0;
    for (const char c : text) {
        const std::size_t digit = kBase64Digits.find(c);
        if (digit == std::string_view::npos) return std::nullopt;
        word = word << 6 | static_cast<std::uint32_t>(digit);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out += static_cast<char>(word >> bits & 255);
    }
    if (bits == 6) return std::nullopt;  // one digit alone is no byte
    return out;
}

std::string percent_encode(std::string_view text, bool keep_slashes) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes);
        if (plain) {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
    }
    return out;
}

void sign_aws(const RequestToSign& request, const AwsKey& key, std::string_view payload_sha256_hex, std::int64_t time_s,
              HttpHeaders& headers) {
    const std::tm at = utc(time_s);
    const std::string day = fmt::format("{:04}{:02}{:02}", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday);
    const std::string moment = fmt::format("{}T{:02}{:02}{:02}Z", day, at.tm_hour, at.tm_min, at.tm_sec);
    headers.add("x-amz-date", moment);
    headers.add("x-amz-content-sha256", std::string(payload_sha256_hex));
    if (!key.session_token.empty()) headers.add("x-amz-security-token", key.session_token);
    std::map<std::string, std::string> signed_headers{{"host", std::string(request.host)}};
    for (const auto& [name, value] : headers.items) signed_headers[lower(name)] = std::string(trim(value));
    std::string names, lines;
    for (const auto& [name, value] : signed_headers) {
        names += (names.empty() ? "" : ";") + name;
        lines += name + ":" + value + "\n";
    }
    const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                              canonical_query(request.query), lines, names, payload_sha256_hex);
    const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, key.region, key.service);
    const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", moment, scope, hex(sha256(canonical)));
    std::string derived = hmac_sha256("AWS4" + key.secret, day);
    for (const std::string_view part :
         {std::string_view(key.region), std::string_view(key.service), std::string_view("aws4_request")})
        derived = hmac_sha256(derived, part);
    headers.add("Authorization", fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}", key.id,
                                             scope, names, hex(hmac_sha256(derived, text))));
}

std::string azure_string_to_sign(const RequestToSign& request, std::string_view account, const HttpHeaders& headers) {
    const auto header = [&](std::string_view name) { return std::string(headers.find(name).value_or("")); };
    std::string text(request.method);
    text += '\n';
    text += header("Content-Encoding") + "\n" + header("Content-Language") + "\n";
    if (request.body_bytes > 0) text += std::to_string(request.body_bytes);  // empty for none, since 2015-02-21
    text += '\n';
    for (const char* name : {"Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match",
                             "If-Unmodified-Since", "Range"})
        text += header(name) + "\n";
    std::map<std::string, std::string> own;
    for (const auto& [name, value] : headers.items)
        if (starts_with_ignore_case(name, "x-ms-")) own[lower(name)] = std::string(trim(value));
    for (const auto& [name, value] : own) text += name + ":" + value + "\n";
    text += fmt::format("/{}{}", account, request.path);
    std::map<std::string, std::string> query;
    for (const auto& [name, value] : request.query) query[lower(name)] = value;
    for (const auto& [name, value] : query) text += "\n" + name + ":" + value;
    return text;
}

void sign_azure(const RequestToSign& request, const AzureKey& key, HttpHeaders& headers) {
    const std::string text = azure_string_to_sign(request, key.account, headers);
    headers.add("Authorization", fmt::format("SharedKey {}:{}", key.account, base64(hmac_sha256(key.key, text))));
}

}  // namespace stoker
