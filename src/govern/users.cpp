#include "govern/users.h"

#include <algorithm>

#include <fmt/format.h>

#include "govern/keys.h"

namespace stoker {
namespace {

int weight(Role role) {
    switch (role) {
        case Role::agent: return -1;  // of a node: it looks at nothing
        case Role::viewer: return 0;
        case Role::auditor: return 1;
        case Role::developer: return 2;
        case Role::operator_: return 3;
        case Role::admin: return 4;
    }
    return 0;
}

bool holds_in(const RoleBinding& role, const Tenants& tenants, ProjectId project) {
    if (role.level == Level::provider) return true;
    if (role.level == Level::project) return role.project == project;
    return tenants.tenant_of(role.project).organisation == tenants.tenant_of(project).organisation;
}

bool is_of(const Actor& actor, OrganisationId organisation) {
    return actor.kind == PrincipalKind::core || actor.level == Level::provider ||
           (actor.level == Level::organisation && actor.tenant.organisation == organisation);
}

}  // namespace

const RoleBinding* role_in(const UserEntry& user, const Tenants& tenants, ProjectId project) {
    const RoleBinding* best = nullptr;
    if (!tenants.projects.contains(project)) return best;
    for (const RoleBinding& each : user.roles) {
        if (!holds_in(each, tenants, project)) continue;
        const auto rank = [](const RoleBinding& role) { return std::pair(weight(role.role), role.level); };
        if (best == nullptr || rank(*best) < rank(each)) best = &each;
    }
    return best;
}

std::optional<ProjectId> usual_project(const UserEntry& user) {
    return user.roles.empty() ? std::nullopt : std::optional(user.roles.front().project);
}

std::optional<Actor> actor_of(const UserEntry& user, const Tenants& tenants, ProjectId project, std::string_view via) {
    const RoleBinding* role = user.disabled ? nullptr : role_in(user, tenants, project);
    if (role == nullptr) return std::nullopt;
    return Actor{.kind = user.service ? PrincipalKind::service : PrincipalKind::user,
                 .role = role->role,
                 .level = role->level,
                 .tenant = tenants.tenant_of(project),
                 .name = user.name,
                 .via = std::string(via)};
}

std::optional<Actor> actor_called(const Tenants& tenants, const std::string& name, ProjectId project,
                                  std::int64_t now_us, std::string_view via) {
    if (const UserEntry* user = tenants.find_user(name)) return actor_of(*user, tenants, project, via);
    for (const auto& [id, key] : tenants.keys) {
        if (key.name != name || key.project != project || valid_key(tenants, key.sha256, now_us) == nullptr) continue;
        Actor actor = actor_of(key, tenants);
        actor.via = via;
        return actor;
    }
    return std::nullopt;
}

const LoginEntry* valid_login(const Tenants& tenants, std::string_view sha256, std::int64_t now_us) {
    const auto id = tenants.login_of_sha256.find(sha256);
    if (id == tenants.login_of_sha256.end()) return nullptr;
    const LoginEntry& login = tenants.logins.at(id->second);
    return now_us >= login.expires_us ? nullptr : &login;
}

std::optional<Actor> caller_of(const Tenants& tenants, std::string_view sha256, std::int64_t now_us) {
    if (const KeyEntry* key = valid_key(tenants, sha256, now_us)) return actor_of(*key, tenants);
    const LoginEntry* login = valid_login(tenants, sha256, now_us);
    if (login == nullptr) return std::nullopt;
    const auto user = tenants.users.find(login->user);
    if (user == tenants.users.end()) return std::nullopt;
    return actor_of(user->second, tenants, login->project, login->id.text());
}

Status may_manage(const Actor& actor, const UserEntry& user, const Tenants& tenants) {
    if (actor.kind == PrincipalKind::core ||
        (actor.level == Level::provider && allowed(actor.role, Action::administer)))
        return done();
    if (!sees(actor, user, tenants)) return Error(ErrorKind::not_found, "there is no user " + user.id.text());
    const bool inside = std::all_of(user.roles.begin(), user.roles.end(), [&](const RoleBinding& role) {
        return role.level != Level::provider && is_of(actor, tenants.tenant_of(role.project).organisation);
    });
    if (inside && is_of(actor, user.organisation) && allowed(actor.role, Action::administer)) return done();
    return denial(actor, {Action::administer, inside ? Level::organisation : Level::provider});
}

bool sees(const Actor& actor, const UserEntry& user, const Tenants& tenants) {
    if (is_of(actor, user.organisation)) return true;
    return std::any_of(user.roles.begin(), user.roles.end(), [&](const RoleBinding& role) {
        return role.level != Level::provider && reaches(actor, tenants.tenant_of(role.project));
    });
}

}  // namespace stoker
