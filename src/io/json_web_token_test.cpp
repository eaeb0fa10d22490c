#include "io/json_web_token.h"

#include <gmock/gmock.h>

#include <map>

namespace stoker {
namespace {

using testing::HasSubstr;

// Keys and tokens made with jose 6 of npm, which is somebody else's reading of the same RFCs: {"sub": "anna"}.
constexpr char kKeys[] =
    R"({"keys":[{"kty":"RSA","n":"0kp1iKrV1P28xshA1osYerUu5xgNsKGTWOlTv3t-qToJUQHS5DAAmkOmE4sG0lfLAAlGGdid7)"
    R"(uv5WIW-x47Z4zrENBiM7XVbO4XIcyU0C0zGUnKJEYB0suF1jqnoV_VglnbRV5makt-OX0r7F2vtL5oUsFWXl99ipkmWBrJBYm_su)"
    R"(wjUmJfIKUR7v2G_melXK6ouyy5AL8i-6fJaokQSnIwoaTBuc8eittf-4KM0C0Epr-1xF4nflu6JZxZ07ckR0cwQf7ZQBxxZPc0gl)"
    R"(63YqR1qKxkksyrTMJ6CnBT9eAwjB5dJPmSIqkaCrZ8PXcm_ayTodwKggAtt3pF-BFtVpQ","e":"AQAB","kid":"rs256","use)"
    R"(":"sig","alg":"RS256"},{"kty":"RSA","n":"jeeJb3nYnnIRCoqZdYQcyMtTwsp1pEoTQwzBdTMLS-Yvvy7EHh0dSyCCpys)"
    R"(yd0OCO8Cu65yqs5OxZniG2cmHTkcY4WykubIb67hwHPXdf5L4vj21K5IX0c66eC9d06LpfgEIV3N4XnWvVpsX7govdsTS-nPenpx)"
    R"(9np0yLKUvxCPcCRPltYh9LUKIrpgSBu3eKt1OE2o_iQeaBOrlQJr_TFOUvSCE9nvCxEYqlHYGkxH_e2tFzz30vtKyxw9-NjmakaD)"
    R"(OBd17x0NKxoxt9n4x0b1WvOpmgv7Q9b_mnD1VqX3VITgO_m5z_Y-0tdNVsk0x5PoC1yu3c2F8M44eicwI4w","e":"AQAB","kid)"
    R"(":"ps256","use":"sig","alg":"PS256"},{"kty":"EC","x":"DqiqGAgL3jNIrMnJ2y6jKDONioiMCjQE9Er1PT9KoHs",")"
    R"(y":"HpBJcktJ7wWDhTbwU7y5kzN8dNo-ioTH3g44O4Awot0","crv":"P-256","kid":"es256","use":"sig","alg":"ES25)"
    R"(6"},{"crv":"Ed25519","x":"7epraiBwK42JmJ1rZbnPWw2W-d8jyJhabzauSXWm0QQ","kty":"OKP","kid":"eddsa","us)"
    R"(e":"sig","alg":"EdDSA"}]})";
const std::map<std::string, std::string>& tokens() {
    static const std::map<std::string, std::string> all = {
        {"RS256", R"(eyJhbGciOiJSUzI1NiIsImtpZCI6InJzMjU2In0.eyJzdWIiOiJhbm5hIiwiaXNzIjoiaHR0cHM6Ly9sb2dpbi5leGFtcGx)"
                  R"(lLm9yZyJ9.lHAPwJ0i4PN1x1RtqiC5HySb78RKjZemM3iSK4CAdN6kYjMjD55GIS-AUhnldt6x_IZDy9OVhy2GARCRwNmKF)"
                  R"(a2QvIrfOaGeDTWSLM00GcMf96ZpV3n0p7niQiGz2k288g4CoeBDCfGu5KOfOCuD-Et0WM26KKLIaHthUD8hWFljxxpMaq46)"
                  R"(JZPXZFxUbBI7DF9k1GnMW21BHprtVOWodoAsOItBwTW3RGAj-clpHftyYdxDuPGs87E6zmPoJ6E28o5mS1PfjOduW5uWkf8)"
                  R"(LihMi3FpCczBNUn9loeFsp-VuES7I1IWPyaRojSb6-Grw9BvnjCjZYKPciD_mPOqyBg)"},
        {"PS256", R"(eyJhbGciOiJQUzI1NiIsImtpZCI6InBzMjU2In0.eyJzdWIiOiJhbm5hIiwiaXNzIjoiaHR0cHM6Ly9sb2dpbi5leGFtcGx)"
                  R"(lLm9yZyJ9.e4b4NGRdzgR_YSfj2aoQ6oqo7lV1Fzji3hGUoiqj3kutxiTgyjgibAVJj2rv6W0nWpc95TiAkELRKvTWUzuTg)"
                  R"(MIe4ebC8cfi7Dh-IdguMmh1XFXnOJaBy_NUzLXYHt-Ip6ge2I8DjuHYi9UnIFaZRfgqQBI8bnkfUNleOS_TW0kYyPG0-BgO)"
                  R"(EKtvXop848PEMQPG0NCKhvmgf3QT94Kjajqf6RVxX2W3jbtKOEcKHNM5G4FWP9MWYFEBovbPn6KVcUOuNr2F9frLOH49SOA)"
                  R"(AVBBp8gh7J2YYQDhYPNdJzEsTVw9omm2RdEbiiFg_rDw4ZI5tBF2VrcyDbBuLVO0FIw)"},
        {"ES256", R"(eyJhbGciOiJFUzI1NiIsImtpZCI6ImVzMjU2In0.eyJzdWIiOiJhbm5hIiwiaXNzIjoiaHR0cHM6Ly9sb2dpbi5leGFtcGx)"
                  R"(lLm9yZyJ9.Cr8e35OLXfgH25jqehZBVHmKCIrEFrSQQV-g5879ETRBaYVHQSsSzqxDCEpizKRL07ZeAnaOrFmRmJdtjbI51)"
                  R"(Q)"},
        {"EdDSA", R"(eyJhbGciOiJFZERTQSIsImtpZCI6ImVkZHNhIn0.eyJzdWIiOiJhbm5hIiwiaXNzIjoiaHR0cHM6Ly9sb2dpbi5leGFtcGx)"
                  R"(lLm9yZyJ9.oJaYWXkUN-W84_sjX0lO_9b5pONoE6NBXPIwp0OpAWEMmo8WOTqeWouYByhTQuvDMCsGMDRKTyDSK15EUFNpD)"
                  R"(w)"}};
    return all;
}
std::vector<JsonWebKey> keys() {
    auto read = read_key_set(kKeys, "keys");
    EXPECT_TRUE(read.ok());
    return read ? std::move(*read) : std::vector<JsonWebKey>();
}
std::string subject(const JsonWebToken& token) {
    const Node* found = token.claims.root().find("sub");
    return found == nullptr ? "" : found->text;
}

TEST(JsonWebToken, WhatOthersSignedIsRead) {
    ASSERT_EQ(keys().size(), 4u);
    for (const auto& [algorithm, token] : tokens()) {
        const auto read = verified_token(token, keys());
        ASSERT_TRUE(read.ok()) << algorithm << ": " << read.error().message();
        EXPECT_EQ(read->algorithm, algorithm);
        EXPECT_EQ(subject(*read), "anna");
    }
}

// Whoever can change a letter could be anybody.
TEST(JsonWebToken, OneLetterLessIsNothing) {
    for (const auto& [algorithm, token] : tokens()) {
        const std::size_t body = token.find('.') + 1;
        for (const std::size_t at : {body + 3, token.rfind('.') + 5, token.size() - 6}) {
            std::string other = token;
            other[at] = other[at] == 'A' ? 'B' : 'A';
            EXPECT_FALSE(verified_token(other, keys()).ok()) << algorithm << " " << at;
        }
        EXPECT_FALSE(verified_token(token.substr(0, token.rfind('.') + 1), keys()).ok()) << algorithm;
        EXPECT_FALSE(verified_token(token + "A", keys()).ok()) << algorithm;
    }
}

// "none", a shared secret, and the key of one algorithm used for another: the three old ways in.
TEST(JsonWebToken, AlgorithmsThatAreNoneAreNotTaken) {
    const std::string& good = tokens().at("RS256");
    const std::string body = good.substr(good.find('.'), good.rfind('.') - good.find('.'));
    for (const char* head : {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":"HS256","kid":"rs256"})", R"({})",
                             R"({"alg":"RS256","kid":"rs256","crit":["b64"]})"}) {
        EXPECT_FALSE(verified_token(base64url(head) + body + ".", keys()).ok()) << head;
        EXPECT_FALSE(verified_token(base64url(head) + body + good.substr(good.rfind('.')), keys()).ok()) << head;
    }
    // The key says that it is of RS256 alone.
    const std::string other = base64url(R"({"alg":"PS256","kid":"rs256"})") + body + good.substr(good.rfind('.'));
    EXPECT_EQ(verified_token(other, keys()).error().kind(), ErrorKind::not_found);
}

TEST(JsonWebToken, AKeyThatIsNotKnownYetIsToldFromAWrongSignature) {
    std::vector<JsonWebKey> few = keys();
    std::erase_if(few, [](const JsonWebKey& key) { return key.id() == "es256"; });
    EXPECT_EQ(verified_token(tokens().at("ES256"), few).error().kind(), ErrorKind::not_found);
    EXPECT_THAT(verified_token("a.b", keys()).error().message(), HasSubstr("no signed token"));
}

TEST(JsonWebToken, KeysThatAreTooShortOrSignNothingAreLeftOut) {
    const auto read = read_key_set(
        R"({"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"RSA","use":"enc"},{"a":1}]})",
        "keys");
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read->empty());
    EXPECT_FALSE(read_key_set("[]", "keys").ok());
}

TEST(JsonWebToken, Base64OfAddressesHasOneTextForEachValue) {
    EXPECT_EQ(base64url(std::string("\xfb\xff\x00", 3)), "-_8A");
    for (const char* text : {"", "f", "fo", "foo", "foob", "fooba"}) EXPECT_EQ(decode_base64url(base64url(text)), text);
    for (const char* bad : {"A", "AB=", "Zh", "+/", "Zm9v Zg"}) EXPECT_FALSE(decode_base64url(bad)) << bad;
}

}  // namespace
}  // namespace stoker
