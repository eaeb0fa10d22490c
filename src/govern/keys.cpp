#include "govern/keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

bool is_principal_name(std::string_view name) {
    constexpr std::size_t kLongest = 64;
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name.size() <= kLongest && letter(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || c == '.' || c == '_' || c == '-' || c == '@'; });
}

Actor actor_of(const KeyEntry& key, const Tenants& tenants) {
    return {.kind = key.service ? PrincipalKind::service : PrincipalKind::user,
            .role = key.role,
            .level = key.level,
            .tenant = tenants.tenant_of(key.project),
            .name = key.name,
            .via = key.id.text(),
            .node = key.node};
}

const KeyEntry* valid_key(const Tenants& tenants, std::string_view sha256, std::int64_t now_us) {
    const auto id = tenants.key_of_sha256.find(sha256);
    if (id == tenants.key_of_sha256.end()) return nullptr;
    const KeyEntry& key = tenants.keys.at(id->second);
    const bool over = key.revoked || (key.expires_us > 0 && now_us >= key.expires_us);
    // Whoever may not come in any more does not come in by a key either.
    const UserEntry* user = tenants.find_user(key.name);
    return over || (user != nullptr && user->disabled) ? nullptr : &key;
}

bool is_own(const Actor& actor, const KeyEntry& key) {
    return (actor.kind == PrincipalKind::user || actor.kind == PrincipalKind::service) && actor.name == key.name &&
           (actor.kind == PrincipalKind::service) == key.service;
}

bool sees(const Actor& actor, const KeyEntry& key, const Tenants& tenants) {
    return reaches(actor, tenants.tenant_of(key.project)) &&
           (may(actor, {Action::administer, Level::project}) || is_own(actor, key));
}

Status may_give(const Actor& actor, Role role, Level level, const Tenant& tenant) {
    const bool less = actor.kind == PrincipalKind::core || within(role, actor.role);
    if (less && level <= actor.level && reaches(actor, tenant)) return done();
    return Error(ErrorKind::denied,
                 less ? fmt::format("{} is {} of the {} and gives no role of the {}{}", printable(actor.who(), 100),
                                    to_string(actor.role), to_string(actor.level), to_string(level),
                                    level <= actor.level ? " elsewhere" : "")
                      : fmt::format("{} is {} and gives nobody what {} may", printable(actor.who(), 100),
                                    to_string(actor.role), to_string(role)),
                 {}, fmt::format("ask whoever is admin of the {} for a {}", to_string(level), to_string(role)));
}

}  // namespace stoker
