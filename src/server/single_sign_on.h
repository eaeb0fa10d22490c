// Single sign-on: an OpenID Connect provider says who somebody is, and by its groups which roles that person has here.
// The client fetches the ID token itself (code flow with PKCE, or device flow); this server takes nothing but a token
// that the provider signed for it, fresh, and once.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "govern/roles.h"
#include "io/http/oidc_provider.h"
#include "io/json_web_token.h"

namespace stoker {

struct GroupBinding {
    std::string group, project;  // project: ORGANISATION/PROJECT
    Role role = Role::viewer;
    Level level = Level::project;
    std::map<std::string, SourcePos> at;
};
// The key `oidc` of server.yaml.
struct OidcForm {
    std::string issuer, client_id, ca_file;
    std::string name_claim = "email", groups_claim = "groups";
    std::vector<std::string> scopes;  // beside openid
    std::vector<GroupBinding> groups;
    std::map<std::string, SourcePos> at;
};
RecordTable<OidcForm> oidc_form_table();
void check_oidc(const OidcForm& form, Problems& problems);
std::string exact_text(const OidcForm& form);

// Who has shown a token.
struct SignedOn {
    std::string name;
    std::vector<std::string> groups;
};

class SingleSignOn {
public:
    // `ca_pem`: whom the provider's certificate is to be of; empty: the system's authorities.
    SingleSignOn(OidcForm form, std::string ca_pem) : form_(std::move(form)), ca_pem_(std::move(ca_pem)) {}

    const OidcForm& form() const { return form_; }
    // "openid profile email"
    std::string scope() const;
    // denied: the token is not the provider's, not for us, too old, not yet, used before, or names nobody. Blocks while
    // keys are fetched.
    Result<SignedOn> who(const std::string& token, const std::string& nonce, std::int64_t now_s);
    // What the claims of a token say, whoever signed it.
    Result<SignedOn> judge(const Document& claims, const std::string& nonce, std::int64_t now_s) const;

private:
    Result<std::vector<JsonWebKey>> keys(bool again);

    const OidcForm form_;
    const std::string ca_pem_;
    std::mutex mutex_;  // guards what follows; held while keys are fetched
    std::vector<JsonWebKey> keys_;
    std::optional<std::chrono::steady_clock::time_point> fetched_;
    std::map<std::string, std::int64_t> used_;  // digests of tokens, and until when they would be taken
};

}  // namespace stoker
