// A URL that is understood differently than meant sends checkpoints elsewhere; one with a key in it would be
// journalled.
#include "io/store/object_store_url.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ObjectUrl, ReadsWhatUsersWrite) {
    const auto s3 = read_object_url("s3://models/a/b/?endpoint=http://127.0.0.1:7070&region=eu-west-1");
    ASSERT_TRUE(s3.ok()) << s3.error().text();
    EXPECT_EQ(s3->bucket, "models");
    EXPECT_EQ(s3->prefix, "a/b");
    EXPECT_EQ(s3->text("r-7"), "s3://models/a/b/r-7?endpoint=http://127.0.0.1:7070&region=eu-west-1");
    const auto azure = read_object_url("https://acc1.blob.core.windows.net/box/p");
    ASSERT_TRUE(azure.ok()) << azure.error().text();
    EXPECT_EQ(azure->text(), "az://acc1/box/p");
    const auto china = read_object_url("https://acc1.blob.core.chinacloudapi.cn/box");
    ASSERT_TRUE(china.ok());
    EXPECT_EQ(china->endpoint, "https://acc1.blob.core.chinacloudapi.cn");
    const auto emulator = read_object_url("az://devstoreaccount1/box?endpoint=http://127.0.0.1:10000/devstoreaccount1");
    ASSERT_TRUE(emulator.ok()) << emulator.error().text();
    EXPECT_EQ(read_object_url("file:///srv/x/")->text("y"), "file:///srv/x/y");
    for (const char* url : {"s3://models/a/b?region=eu-west-1", "az://acc1/box/p", "file:///srv"})
        EXPECT_EQ(read_object_url(url)->text(), url);
}

TEST(ObjectUrl, RefusesWhatIsWrongAndSecretsWithoutRepeatingThem) {
    for (const char* wrong :
         {"", "models/a", "gs://bucket/a", "s3://", "s3://A/b", "s3://bucket//a", "s3://bucket/../a", "az://acc1",
          "az://acc1/b", "https://example.org/box", "file://relative", "file:///a/../b", "s3://bucket/a b",
          "s3://bucket?endpoint=ftp://x", "s3://bucket?endpoint=http://h/path", "s3://bucket?what=1",
          "s3://bucket?region=", "file:///a?region=x"})
        EXPECT_FALSE(read_object_url(wrong).ok()) << wrong;
    for (const char* secret : {"https://acc1.blob.core.windows.net/box?sv=1&sig=hush", "s3://id:hush@bucket/a"}) {
        const auto refused = read_object_url(secret);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().text().find("hush"), std::string::npos) << refused.error().text();
    }
}

}  // namespace
}  // namespace stoker
