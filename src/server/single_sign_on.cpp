#include "server/single_sign_on.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/table_impl.h"
#include "base/text.h"
#include "govern/keys.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr double kFetchTimeoutS = 10;
constexpr std::int64_t kSkewS = 60;          // that clocks may be apart
constexpr std::int64_t kOldestTokenS = 600;  // since it was issued: it is fetched to be shown at once
constexpr std::size_t kMostUsedTokens = 100'000;
constexpr std::chrono::seconds kKeysHold{900}, kNotAgainBefore{30};

std::vector<std::string> texts_of(const Node* node) {
    std::vector<std::string> texts;
    if (node == nullptr) return texts;
    if (node->kind == NodeKind::string) texts.push_back(node->text);
    if (node->is_sequence())
        for (const auto& each : node->items)
            if (each->kind == NodeKind::string) texts.push_back(each->text);
    return texts;
}

// A claim by its path: "groups", or "realm_access.roles".
const Node* claim(const Document& claims, std::string_view path) {
    // Names of claims may have dots themselves (https://example.org/groups).
    if (const Node* whole = claims.root().find(path)) return whole;
    const Node* at = &claims.root();
    for (const std::string_view word : split(path, '.')) {
        if (at == nullptr || !at->is_mapping()) return nullptr;
        at = at->find(word);
    }
    return at;
}

std::optional<std::int64_t> seconds_of(const Document& claims, std::string_view key) {
    const Node* found = claims.root().find(key);
    if (found == nullptr || found->kind != NodeKind::number || !(found->number >= 0) || found->number > 1e11)
        return std::nullopt;
    return static_cast<std::int64_t>(found->number);
}

RecordTable<GroupBinding> group_binding_table() {
    RecordTable<GroupBinding> t("group", "Which role the members of a group of the provider have here.");
    t.text("group", &GroupBinding::group, "As the token has it.", "ml-team").required();
    std::vector<std::pair<std::string, Role>> roles;
    for (const auto& [role, word] : enum_names(Role{})) roles.emplace_back(std::string(word), role);
    t.choice("role", &GroupBinding::role, std::move(roles), "Which role.", "developer").required();
    t.text("project", &GroupBinding::project, "In which project it acts: ORGANISATION/PROJECT.", "hospital/imaging")
        .required();
    std::vector<std::pair<std::string, Level>> levels;
    for (const auto& [level, word] : enum_names(Level{})) levels.emplace_back(std::string(word), level);
    t.choice("level", &GroupBinding::level, std::move(levels),
             "How far it reaches: the project (when nothing is said), all of its organisation, or everything.",
             "organisation");
    return t;
}

}  // namespace

RecordTable<OidcForm> oidc_form_table() {
    RecordTable<OidcForm> t("oidc",
                            "Single sign-on by an OpenID Connect provider: stoker login without a password. The client "
                            "is a public one (no secret), with the code flow and PKCE, the device flow, or both.");
    t.text("issuer", &OidcForm::issuer, "The provider, as it calls itself.", "https://login.example.org/realms/main")
        .required();
    t.other_names({"url", "provider"});
    t.text("client_id", &OidcForm::client_id, "As what this server is known there.", "stoker").required();
    t.text("name_claim", &OidcForm::name_claim,
           "Which claim of the ID token is the user's name here; email when nothing is said, which the provider must "
           "have verified. One that people can change themselves lets them be somebody else.",
           "email");
    t.text("groups_claim", &OidcForm::groups_claim,
           "Which claim lists the groups, by its path; groups when nothing is said.", "realm_access.roles");
    t.list_of_text("scopes", &OidcForm::scopes,
                   "What is asked for beside openid; profile and email when nothing is said.",
                   "[profile, email, groups]");
    t.list_of(
        "groups", &OidcForm::groups, group_binding_table(),
        "Roles by group, brought up to date with each login. Whoever is in none of them needs roles of stoker user "
        "bind.");
    t.text("ca_file", &OidcForm::ca_file,
           "A file with the authorities of the provider's certificate; the system's when nothing is said.",
           "/etc/stoker/login-ca.pem");
    return t;
}

void check_oidc(const OidcForm& form, Problems& problems) {
    const auto at = [&](const char* key) {
        const auto found = form.at.find(key);
        return found == form.at.end() ? SourcePos{} : found->second;
    };
    if (!form.issuer.empty())
        if (const Status good = check_issuer(form.issuer); !good)
            problems.push_back(
                {"oidc.issuer: " + good.error().message(), good.error().problems().front().remedy, at("issuer")});
    for (const GroupBinding& each : form.groups) {
        const std::size_t slash = each.project.find('/');
        if (slash == std::string::npos || slash == 0 || slash + 1 == each.project.size()) {
            const auto place = each.at.find("project");
            problems.push_back({fmt::format("oidc.groups: '{}' is no project", printable(each.project, 80)),
                                "ORGANISATION/PROJECT: hospital/imaging",
                                place == each.at.end() ? SourcePos{} : place->second});
        }
    }
}

std::string exact_text(const OidcForm& form) {
    std::string text = join({form.issuer, form.client_id, form.ca_file, form.name_claim, form.groups_claim}, "\n");
    for (const std::string& each : form.scopes) text += "\n" + each;
    for (const GroupBinding& each : form.groups)
        text += fmt::format("\n{}\t{}\t{}\t{}", each.group, to_string(each.role), to_string(each.level), each.project);
    return text;
}

std::string SingleSignOn::scope() const {
    return "openid " + (form_.scopes.empty() ? std::string("profile email") : join(form_.scopes, " "));
}

Result<std::vector<JsonWebKey>> SingleSignOn::keys(bool again) {
    const auto now = std::chrono::steady_clock::now();
    // Whoever shows tokens of unknown keys does not make us ask the provider each time.
    if (fetched_ && now - *fetched_ < (again ? kNotAgainBefore : kKeysHold)) return keys_;
    TRY(const OidcProvider provider, discover_provider(form_.issuer, ca_pem_, kFetchTimeoutS));
    TRY(const std::string text, fetch_text(provider.keys, ca_pem_, kFetchTimeoutS));
    TRY(keys_, read_key_set(text, provider.keys));
    fetched_ = now;
    return keys_;
}

Result<SignedOn> SingleSignOn::judge(const Document& claims, const std::string& nonce, std::int64_t now_s) const {
    const auto wrong = [](std::string what) { return Error(ErrorKind::denied, "the token " + std::move(what)); };
    if (member_text(claims, "iss") != form_.issuer)
        return wrong(fmt::format("is of {}, and not of {}", printable(member_text(claims, "iss"), 100), form_.issuer));
    const std::vector<std::string> audience = texts_of(claims.root().find("aud"));
    const std::string party = member_text(claims, "azp");
    if (std::find(audience.begin(), audience.end(), form_.client_id) == audience.end() ||
        (audience.size() > 1 && party.empty()) || (!party.empty() && party != form_.client_id))
        return wrong(fmt::format("is for {}, and not for {}", printable(join(audience, ", "), 100), form_.client_id));
    const auto expires = seconds_of(claims, "exp"), issued = seconds_of(claims, "iat"),
               begins = seconds_of(claims, "nbf");
    if (!expires || *expires + kSkewS <= now_s) return wrong("has expired");
    if (!issued || *issued > now_s + kSkewS || (begins && *begins > now_s + kSkewS))
        return wrong("is of the future: the clocks of this server and of the provider are apart");
    if (*issued + kOldestTokenS + kSkewS <= now_s) return wrong("is older than ten minutes");
    // One that was asked for with a nonce has it, and is nothing without it.
    if (member_text(claims, "nonce") != nonce) return wrong("was asked for by somebody else");
    const Node* named = claim(claims, form_.name_claim);
    const std::string name = named != nullptr && named->kind == NodeKind::string ? named->text : std::string();
    if (!is_principal_name(name))
        return wrong(fmt::format("names nobody: its claim {} is {}", form_.name_claim,
                                 name.empty() ? "missing" : "'" + printable(name, 80) + "'"));
    if (form_.name_claim == "email") {
        const Node* verified = claims.root().find("email_verified");
        if (verified == nullptr || verified->kind != NodeKind::boolean || !verified->boolean)
            return wrong("has an address that the provider has not verified (email_verified)");
    }
    return SignedOn{name, texts_of(claim(claims, form_.groups_claim))};
}

Result<SignedOn> SingleSignOn::who(const std::string& token, const std::string& nonce, std::int64_t now_s) {
    const std::lock_guard lock(mutex_);
    TRY(const auto known, keys(false));
    auto read = verified_token(token, known);
    if (!read && read.error().kind() == ErrorKind::not_found) {
        TRY(const auto fresh, keys(true));
        read = verified_token(token, fresh);
    }
    if (!read) return Error(ErrorKind::denied, read.error().message());
    TRY(SignedOn person, judge(read->claims, nonce, now_s));
    std::erase_if(used_, [&](const auto& each) { return each.second < now_s; });
    if (used_.size() >= kMostUsedTokens) return Error(ErrorKind::unavailable, "too many log in at once");
    // What was signed, and not the letters of the signature.
    const std::string digest = sha256(token.substr(0, token.rfind('.')));
    if (!used_.emplace(digest, now_s + kOldestTokenS + 2 * kSkewS).second)
        return Error(ErrorKind::denied, "the token was used already", {}, "stoker login fetches another");
    return person;
}

}  // namespace stoker
