// A certificate that no client takes, or a key that does not fit, would be noticed by the first user only.
#include "io/http/tls.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Tls, MakesCertificatesThatFit) {
    const auto made = make_certificate({"localhost", "*.example.com", "10.0.0.5", "::1", "gpu-node_1"}, 30);
    ASSERT_TRUE(made.ok()) << made.error().text();
    EXPECT_TRUE(made->certificate_pem.starts_with("-----BEGIN CERTIFICATE-----\n"));
    EXPECT_TRUE(made->key_pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
    const auto checked = check_certificate(*made);
    EXPECT_TRUE(checked.ok()) << checked.error().text();
    const auto other = make_certificate({"localhost"}, 30);
    EXPECT_NE(other->key_pem, made->key_pem);
}

// A server answers to the names of its certificate.
TEST(Tls, ReadsTheNamesOfACertificate) {
    const std::vector<std::string> names{"localhost", "*.example.org", "10.0.0.5", "::1"};
    const auto made = make_certificate(names, 1);
    ASSERT_TRUE(made.ok()) << made.error().text();
    EXPECT_EQ(names_of_certificate(made->certificate_pem), names);
    EXPECT_TRUE(names_of_certificate("nonsense").empty());
    EXPECT_TRUE(names_of_certificate("").empty());
}

TEST(Tls, RefusesNamesThatAreNone) {
    for (const std::string name : {"", "a b", "a,DNS:evil", "-a", "a..b", "http://a", "a/b", "*", "a.*.b", "a\nb"}) {
        const auto made = make_certificate({name}, 30);
        ASSERT_FALSE(made.ok()) << name;
        EXPECT_EQ(made.error().kind(), ErrorKind::invalid);
    }
    EXPECT_FALSE(make_certificate({}, 30).ok());
    EXPECT_FALSE(make_certificate({"a"}, 0).ok());
    std::string longer_than_a_common_name(100, 'a');
    longer_than_a_common_name[50] = '.';
    EXPECT_TRUE(make_certificate({longer_than_a_common_name}, 1).ok());
}

// Made with `openssl ca -selfsign -startdate 20200101000000Z -enddate 20200102000000Z`; used nowhere else.
constexpr const char* kExpiredCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBAjCBqgIBATAKBggqhkjOPQQDAjAOMQwwCgYDVQQDDANvbGQwHhcNMjAwMTAx
MDAwMDAwWhcNMjAwMTAyMDAwMDAwWjAOMQwwCgYDVQQDDANvbGQwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAAQnEl3wt996b4Lz4qKi58ryxuCq/jtj/+lic/rZ4EBn
1Xr1NCBzvxD8LxNqC98xbCbd3LiukacDKiNY/bUuuAUrMAoGCCqGSM49BAMCA0cA
MEQCIESEcDcb5oRsTMaOEqeRMQliP2Wl+xTMeVl2kyAZh5PRAiBvceP8dBy3J4MY
SLRzR6HSumWPQI9r3tO3KLy/Qu57TQ==
-----END CERTIFICATE-----
)";
constexpr const char* kExpiredKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgX8/yI9TqnOXD0Nxb
ng7sn0UqhRzouEY5kvl3T+adNh6hRANCAAQnEl3wt996b4Lz4qKi58ryxuCq/jtj
/+lic/rZ4EBn1Xr1NCBzvxD8LxNqC98xbCbd3LiukacDKiNY/bUuuAUr
-----END PRIVATE KEY-----
)";

TEST(Tls, SaysWhatIsWrongWithACertificate) {
    const auto good = make_certificate({"localhost"}, 30);
    const auto other = make_certificate({"localhost"}, 30);
    const auto why = [](const std::string& certificate, const std::string& key) {
        const auto checked = check_certificate({.certificate_pem = certificate, .key_pem = key});
        if (checked) return std::string("nothing");
        EXPECT_EQ(checked.error().kind(), ErrorKind::invalid);
        return checked.error().message();
    };
    EXPECT_EQ(why(good->certificate_pem, other->key_pem), "the key does not belong to the certificate");
    EXPECT_EQ(why(good->certificate_pem, ""), "the certificate comes without its key");
    EXPECT_EQ(why("", good->key_pem), "the key comes without its certificate");
    EXPECT_NE(why("nonsense", good->key_pem).find("not a PEM certificate"), std::string::npos);
    EXPECT_NE(why(good->key_pem, good->key_pem).find("not a PEM certificate"), std::string::npos);
    EXPECT_NE(why(good->certificate_pem, good->certificate_pem).find("not a PEM private key"), std::string::npos);
    EXPECT_EQ(why(kExpiredCertificate, kExpiredKey), "the certificate expired on Jan  2 00:00:00 2020 GMT");
}

}  // namespace
}  // namespace stoker
