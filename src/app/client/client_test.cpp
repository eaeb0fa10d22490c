#include "app/client/client.h"

#include <gmock/gmock.h>

#include "app/client/testing.h"
#include "app/client/typed.h"
#include "server/views.h"

namespace stoker {
namespace {

using testing::HasSubstr;

// What the server found wrong reaches the person as the same problems with the same remedies, and scripts as the same
// exit code.
TEST(ClientTest, ProblemsOfTheServerAreErrorsOfTheCommand) {
    ScriptedTransport script;
    script.answers["GET /api/v1/runs/r-9"] = {
        .status = 404, .content_type = "application/problem+json", .body = R"({"detail":"there is no run r-9"})"};
    script.answers["POST /api/v1/runs"] = {
        .status = 422,
        .body = R"({"detail":"two","problems":[{"message":"no torch","remedy":"install it"},{"message":"no data"}]})"};
    script.answers["GET /proxy"] = {.status = 502, .body = "<html>bad gateway</html>"};
    Client client = script.client();
    EXPECT_EQ(client.get("/api/v1/runs/r-9").error().kind(), ErrorKind::not_found);
    EXPECT_THAT(client.get("/api/v1/runs/r-9").error().text(), HasSubstr("there is no run r-9"));
    const auto refused = client.post("/api/v1/runs", Json::object());
    ASSERT_EQ(refused.error().problems().size(), 2u);
    EXPECT_EQ(refused.error().problems()[0].remedy, "install it");
    EXPECT_EQ(exit_code(refused.error().kind()), 2);
    EXPECT_EQ(exit_code(client.get("/proxy").error().kind()), 3);
}

// An answer of a newer server, with fields that are not known here, is still read.
TEST(ClientTest, UnknownFieldsArePassedOver) {
    ScriptedTransport script;
    script.answers["GET /x"] = {.body = R"({"run":"r-3","version":4,"repeated":false,"brand_new":{"a":1}})"};
    Client client = script.client();
    const auto changed = get<api::Changed>(client, "/x");
    ASSERT_TRUE(changed.ok()) << changed.error().text();
    EXPECT_EQ(changed->run, RunId{3});
    script.answers["GET /x"] = {.body = R"({"run":17})"};
    EXPECT_FALSE(get<api::Changed>(client, "/x").ok());
}

TEST(ClientTest, PartsAreFoundByPath) {
    const auto document = Document::parse_json(R"({"a":{"b":"c","n":2.5,"t":true,"z":null},"l":[1,-3]})", "t");
    const Node& root = document->root();
    EXPECT_EQ(text_at(root, "a.b"), "c");
    EXPECT_EQ(number_at(root, "a.n"), 2.5);
    EXPECT_TRUE(flag_at(root, "a.t"));
    EXPECT_EQ(part(root, "a.z"), nullptr);
    EXPECT_EQ(text_at(root, "a.x.y"), "");
    EXPECT_EQ(json_of(root).dump(0), R"({"a":{"b":"c","n":2.5,"t":true,"z":null},"l":[1,-3]})");
}

// A name with a blank, a slash or an ampersand must not become another request.
TEST(ClientTest, TargetsAreEncoded) {
    EXPECT_EQ(url_encoded("a b/c&d=é"), "a%20b%2Fc%26d%3D%C3%A9");
}

TEST(ClientTest, RunsAreNamedInShortToo) {
    EXPECT_EQ(*run_named("r-7"), RunId{7});
    EXPECT_EQ(*run_named("7"), RunId{7});
    EXPECT_FALSE(run_named("x-7").ok());
    EXPECT_FALSE(run_named("").ok());
}

}  // namespace
}  // namespace stoker
