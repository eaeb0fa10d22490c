// API keys: who holds one acts as the person or the program that it was made for, with its role, within its reach. The
// secret is shown once; only its SHA-256 is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "govern/actor.h"

namespace stoker {

// 256 bits behind it, in hex.
inline constexpr std::string_view kKeyPrefix = "stk_";

// "anna", "ci-nightly", "anna@example.org": a word that stands in the journal and in usage.
bool is_principal_name(std::string_view name);

// The caller that whoever holds this key is. `tenants` is where its project stands.
Actor actor_of(const KeyEntry& key, const Tenants& tenants);
// nullptr: no such key, or it was revoked or has expired, or the user of its name is disabled. `sha256` in hex.
const KeyEntry* valid_key(const Tenants& tenants, std::string_view sha256, std::int64_t now_us);
// Made out to whoever acts: everybody with a right to their own sees, rotates and revokes it.
bool is_own(const Actor& actor, const KeyEntry& key);
// One's own, or all that lie below where an admin is bound; what is neither is as good as not there.
bool sees(const Actor& actor, const KeyEntry& key, const Tenants& tenants);
// Nobody gives a role that may more, or reaches further, than their own. denied.
Status may_give(const Actor& actor, Role role, Level level, const Tenant& tenant);

}  // namespace stoker
