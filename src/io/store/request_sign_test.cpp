// Signatures that differ from the vendors' own examples in one byte are refused by every store, with the same 403.
#include "io/store/request_sign.h"

#include <gtest/gtest.h>

#include "io/sha256.h"

namespace stoker {
namespace {

constexpr std::int64_t kMay24 = 1369353600;  // 2013-05-24T00:00:00Z, of the examples in Amazon's S3 documentation
const AwsKey kExampleKey{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", "us-east-1"};

std::string signature(std::string_view method, std::string_view path, const QueryItems& query, HttpHeaders headers,
                      std::string_view body) {
    sign_aws({.method = method, .host = "examplebucket.s3.amazonaws.com", .path = path, .query = query}, kExampleKey,
             hex(sha256(body)), kMay24, headers);
    const std::string text(*headers.find("Authorization"));
    return text.substr(text.rfind('=') + 1);
}

TEST(RequestSign, GivesAmazonsPublishedSignatures) {
    HttpHeaders range;
    range.add("Range", "bytes=0-9");
    EXPECT_EQ(signature("GET", "/test.txt", {}, range, ""),
              "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    HttpHeaders put;
    put.add("Date", "Fri, 24 May 2013 00:00:00 GMT");
    put.add("x-amz-storage-class", "REDUCED_REDUNDANCY");
    EXPECT_EQ(signature("PUT", "/test%24file.text", {}, put, "Welcome to Amazon S3."),
              "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    EXPECT_EQ(signature("GET", "/", {{"lifecycle", ""}}, {}, ""),
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    EXPECT_EQ(signature("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, ""),
              "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(RequestSign, SignsTheTextOfMicrosoftsExample) {
    // "Authorize with Shared Key", Get Container Metadata with query parameters.
    HttpHeaders headers;
    headers.add("x-ms-version", "2015-02-21");
    headers.add("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT");
    const QueryItems query{{"restype", "container"}, {"comp", "metadata"}, {"timeout", "20"}};
    EXPECT_EQ(azure_string_to_sign({.method = "GET", .host = "", .path = "/mycontainer", .query = query}, "myaccount",
                                   headers),
              "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
              "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20");
    HttpHeaders put;
    put.add("Content-MD5", "sum");
    put.add("x-ms-date", "Sun");
    EXPECT_EQ(
        azure_string_to_sign({.method = "PUT", .host = "", .path = "/c/b", .query = {}, .body_bytes = 7}, "a", put),
        "PUT\n\n\n7\nsum\n\n\n\n\n\n\n\nx-ms-date:Sun\n/a/c/b");
}

TEST(RequestSign, HmacMd5AndBase64AreTheOnesOfTheirStandards) {
    // RFC 4231 case 2, RFC 1321 A.5, RFC 4648 10.
    EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex(md5("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
    for (const auto& [plain, text] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}}) {
        EXPECT_EQ(base64(plain), text);
        EXPECT_EQ(decode_base64(text), plain);
    }
    EXPECT_EQ(decode_base64("Zm9v!"), std::nullopt);
    EXPECT_EQ(decode_base64("Z"), std::nullopt);
}

TEST(RequestSign, Encodes) {
    EXPECT_EQ(percent_encode("a b/ü$~"), "a%20b%2F%C3%BC%24~");
    EXPECT_EQ(percent_encode("a b/c", true), "a%20b/c");
}

}  // namespace
}  // namespace stoker
