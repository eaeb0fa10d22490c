// People who log in and accounts of programs: which of their roles holds where they act, and who says who they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "govern/actor.h"

namespace stoker {

inline constexpr std::size_t kMostUsers = 100'000, kMostRolesOfUser = 100, kMostLoginsOfUser = 20;
// Of a secret that came of logging in; keys begin with kKeyPrefix.
inline constexpr std::string_view kLoginPrefix = "sts_";

// The role by which the user acts in the project: of those that reach it the one that may most (an admin before an
// operator, a developer, an auditor, a viewer), and of equals the one that reaches furthest. nullptr: none reaches it,
// and the user is nobody there.
const RoleBinding* role_in(const UserEntry& user, const Tenants& tenants, ProjectId project);
// Where somebody acts who does not say: the project of the first role. None: the user has no role.
std::optional<ProjectId> usual_project(const UserEntry& user);

// None: it has no role there (any more), or is disabled.
std::optional<Actor> actor_of(const UserEntry& user, const Tenants& tenants, ProjectId project, std::string_view via);
// Whoever goes by this name there now: a person, a program's account, or, where neither is called so, the holder of a
// key that is made out to it. For what is done in their name later.
std::optional<Actor> actor_called(const Tenants& tenants, const std::string& name, ProjectId project,
                                  std::int64_t now_us, std::string_view via);
// nullptr: nobody logged in with this, or it has ended. `sha256` in hex.
const LoginEntry* valid_login(const Tenants& tenants, std::string_view sha256, std::int64_t now_us);

// The caller that whoever shows this secret is, be it of a key or of a login; none: it is worth nothing. By `sha256` in
// hex.
std::optional<Actor> caller_of(const Tenants& tenants, std::string_view sha256, std::int64_t now_us);

// Sets passwords, and says who may not come in any more: an admin of the whole organisation that the user belongs to,
// if no role of it reaches further; else the provider. denied; not_found: it is foreign.
Status may_manage(const Actor& actor, const UserEntry& user, const Tenants& tenants);
// Some role of the user, or its organisation, lies within what the actor reaches.
bool sees(const Actor& actor, const UserEntry& user, const Tenants& tenants);

}  // namespace stoker
