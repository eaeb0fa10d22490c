#include "server/single_sign_on.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kNow = 1'800'000'000;

OidcForm form() {
    OidcForm form;
    form.issuer = "https://login.example.org";
    form.client_id = "stoker";
    return form;
}
Result<SignedOn> judged(const std::string& claims, const std::string& nonce = "", const OidcForm& of = form()) {
    const auto document = Document::parse(claims, "token.json");
    EXPECT_TRUE(document.ok()) << claims;
    return SingleSignOn(of, "").judge(*document, nonce, kNow);
}
// A good token, with some of its claims as they are given.
std::string with(const std::string& claims) {
    std::string text = "{";
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, const char*>>{{"iss", "\"https://login.example.org\""},
                                                                    {"aud", "\"stoker\""},
                                                                    {"exp", "1800000300"},
                                                                    {"iat", "1799999990"},
                                                                    {"email", "\"anna@example.org\""},
                                                                    {"email_verified", "true"},
                                                                    {"groups", "[\"ml\", \"all\"]"}})
        if (claims.find("\"" + std::string(key) + "\"") == std::string::npos)
            text += "\"" + std::string(key) + "\": " + value + ", ";
    return text + (claims.empty() ? "\"sub\": \"1\"" : claims) + "}";
}
std::string refusal(const std::string& claims, const std::string& nonce = "") {
    const auto person = judged(with(claims), nonce);
    return person ? "" : person.error().message();
}

TEST(SingleSignOn, AGoodTokenSaysWhoAndInWhichGroups) {
    const auto person = judged(with(""));
    ASSERT_TRUE(person.ok()) << person.error().message();
    EXPECT_EQ(person->name, "anna@example.org");
    EXPECT_THAT(person->groups, ElementsAre("ml", "all"));
    EXPECT_EQ(refusal(R"("aud": ["stoker", "x"], "azp": "stoker")"), "");
    EXPECT_EQ(refusal(R"("nonce": "n")", "n"), "");
}

// Each of these is somebody who would get in otherwise.
TEST(SingleSignOn, WhatIsNotForUsNotNowOrNobodysIsRefused) {
    EXPECT_THAT(refusal(R"("iss": "https://evil.example.org")"), HasSubstr("is of https://evil.example.org"));
    EXPECT_THAT(refusal(R"("aud": "another")"), HasSubstr("is for another, and not for stoker"));
    EXPECT_THAT(refusal(R"("aud": ["stoker", "another"])"), HasSubstr("not for stoker"));
    EXPECT_THAT(refusal(R"("azp": "another")"), HasSubstr("not for stoker"));
    EXPECT_THAT(refusal(R"("exp": 1799999900)"), HasSubstr("has expired"));
    EXPECT_THAT(refusal(R"("exp": "soon")"), HasSubstr("has expired"));
    EXPECT_THAT(refusal(R"("iat": 1800000200)"), HasSubstr("of the future"));
    EXPECT_THAT(refusal(R"("nbf": 1800000200)"), HasSubstr("of the future"));
    EXPECT_THAT(refusal(R"("iat": 1799990000)"), HasSubstr("older than ten minutes"));
    EXPECT_THAT(refusal(R"("nonce": "n")"), HasSubstr("asked for by somebody else"));
    EXPECT_THAT(refusal("", "n"), HasSubstr("asked for by somebody else"));
    EXPECT_THAT(refusal(R"("email": "")"), HasSubstr("names nobody: its claim email is missing"));
    EXPECT_THAT(refusal(R"("email": "a b")"), HasSubstr("names nobody"));
    EXPECT_THAT(refusal(R"("email_verified": false)"), HasSubstr("not verified"));
    EXPECT_THAT(refusal(R"("email_verified": "true")"), HasSubstr("not verified"));
}

TEST(SingleSignOn, ClaimsAreFoundByTheirPath) {
    OidcForm keycloak = form();
    keycloak.name_claim = "preferred_username";
    keycloak.groups_claim = "realm_access.roles";
    const auto person =
        judged(with(R"("preferred_username": "anna", "realm_access": {"roles": ["a", 1, "b"]})"), "", keycloak);
    ASSERT_TRUE(person.ok()) << person.error().message();
    EXPECT_EQ(person->name, "anna");
    EXPECT_THAT(person->groups, ElementsAre("a", "b"));
    keycloak.groups_claim = "https://example.org/groups";
    EXPECT_THAT(
        judged(with(R"("preferred_username": "anna", "https://example.org/groups": "one")"), "", keycloak)->groups,
        ElementsAre("one"));
}

TEST(SingleSignOn, AnIssuerIsAskedOverTls) {
    Problems problems;
    OidcForm plain = form();
    plain.issuer = "http://login.example.org";
    plain.groups = {{.group = "ml", .project = "imaging"}};
    check_oidc(plain, problems);
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_THAT(problems[0].message, HasSubstr("without TLS"));
    EXPECT_THAT(problems[1].message, HasSubstr("'imaging' is no project"));
    problems.clear();
    plain.issuer = "http://127.0.0.1:8080/realms/main";
    plain.groups.clear();
    check_oidc(plain, problems);
    EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace stoker
