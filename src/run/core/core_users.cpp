// Commands about people and accounts: who they are, by which role they act, and who has logged in.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "govern/keys.h"
#include "govern/users.h"
#include "run/core/core.h"

namespace stoker {
namespace {

bool is_digest(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string in_words(const Tenants& tenants, const RoleBinding& role) {
    const ProjectEntry& project = tenants.projects.at(role.project);
    const std::string& organisation = tenants.organisations.at(project.organisation).name;
    if (role.level == Level::provider) return fmt::format("{} of everything", to_string(role.role));
    if (role.level == Level::organisation) return fmt::format("{} of all of {}", to_string(role.role), organisation);
    return fmt::format("{} of {}/{}", to_string(role.role), organisation, project.name);
}

Error no_such_user(UserId id) {
    return Error(ErrorKind::not_found, "there is no user " + id.text(), {},
                 "stoker user list names those that you see");
}

}  // namespace

Result<Ack> Core::on(const MakeUser& make) {
    if (!is_principal_name(make.name) || UserId::parse(make.name))  // which is a number
        return Error(
            ErrorKind::invalid,
            fmt::format("'{}' is no name of {}", printable(make.name, 80), make.service ? "a program" : "a person"), {},
            "letters, digits and . _ - @, at most 64, the first a letter or a digit");
    const Tenants& tenants = state_.tenants;
    const Tenant tenant = tenants.tenant_of(make.role.project);
    if (!tenants.projects.contains(make.role.project) || !reaches(actor_, tenant))
        return Error(ErrorKind::not_found, "there is no project " + make.role.project.text());
    TRY_VOID(may_give(actor_, make.role.role, make.role.level, tenant));
    if (make.service && !make.password.empty())
        return Error(ErrorKind::invalid, "a program has keys, and no password", {},
                     fmt::format("stoker key make {} --service", make.name));
    if (const UserEntry* other = tenants.find_user(make.name))
        return Error(ErrorKind::conflict, fmt::format("somebody is called {} already", make.name), {},
                     sees(actor_, *other, tenants) ? "stoker user bind " + make.name + " gives another role"
                                                   : "choose another name");
    if (tenants.users.size() >= kMostUsers)
        return Error(ErrorKind::exhausted, fmt::format("there are {} users already", kMostUsers));
    const UserId id{tenants.users.empty() ? 1 : tenants.users.rbegin()->first.number + 1};
    emit(UserSet{{.id = id,
                  .name = make.name,
                  .service = make.service,
                  .organisation = tenant.organisation,
                  .roles = {make.role}}});
    if (!make.password.empty()) emit(PasswordSet{id, make.password});
    return Ack{.made = id.text()};
}

Result<Ack> Core::on(const BindRole& bind) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.users.find(bind.user);
    // Somebody of one's own organisation, whatever the role there; nobody else is known.
    const bool known = found != tenants.users.end() && (sees(actor_, found->second, tenants) ||
                                                        found->second.organisation == actor_.tenant.organisation);
    if (!known) return no_such_user(bind.user);
    const Tenant tenant = tenants.tenant_of(bind.role.project);
    if (!tenants.projects.contains(bind.role.project) || !reaches(actor_, tenant))
        return Error(ErrorKind::not_found, "there is no project " + bind.role.project.text());
    TRY_VOID(may_give(actor_, bind.role.role, bind.role.level, tenant));
    UserEntry user = found->second;
    user.password.clear();
    const auto at = std::find(user.roles.begin(), user.roles.end(), bind.role);
    const bool there = at != user.roles.end();
    if (bind.remove && !there)
        return Error(ErrorKind::not_found, fmt::format("{} is not {}", user.name, in_words(tenants, bind.role)), {},
                     "stoker user list says what everybody is");
    if (there != bind.remove) return Ack{.repeated = true, .made = bind.user.text()};
    if (bind.remove) {
        user.roles.erase(at);
    } else {
        if (user.roles.size() >= kMostRolesOfUser)
            return Error(ErrorKind::exhausted, fmt::format("{} has {} roles already", user.name, kMostRolesOfUser));
        user.roles.push_back(bind.role);
    }
    emit(UserSet{std::move(user)});
    return Ack{.made = bind.user.text()};
}

Result<Ack> Core::on(const SetPassword& set) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.users.find(set.user);
    if (found == tenants.users.end()) return no_such_user(set.user);
    const UserEntry& user = found->second;
    const bool own = actor_.kind == PrincipalKind::user && actor_.name == user.name && actor_.via.starts_with("s-");
    if (!own) TRY_VOID(may_manage(actor_, user, tenants));
    if (user.service)
        return Error(ErrorKind::invalid, fmt::format("{} is a program: it has keys, and no password", user.name));
    if (!set.password.starts_with("$argon2id$") || set.password.size() > 500)
        return Error(ErrorKind::invalid, "the password is no argon2id hash");
    emit(PasswordSet{set.user, set.password});
    return Ack{.made = set.user.text()};
}

Result<Ack> Core::on(const DisableUser& disable) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.users.find(disable.user);
    if (found == tenants.users.end()) return no_such_user(disable.user);
    TRY_VOID(may_manage(actor_, found->second, tenants));
    if (found->second.disabled == disable.disabled) return Ack{.repeated = true, .made = disable.user.text()};
    UserEntry user = found->second;
    user.password.clear();
    user.disabled = disable.disabled;
    emit(UserSet{std::move(user)});
    return Ack{.made = disable.user.text()};
}

Result<Ack> Core::on(const OpenLogin& open) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.users.find(open.user);
    if (found == tenants.users.end() || (actor_.kind != PrincipalKind::core && actor_.name != found->second.name))
        return no_such_user(open.user);
    const UserEntry& user = found->second;
    if (user.disabled || role_in(user, tenants, open.project) == nullptr)
        return Error(ErrorKind::denied, fmt::format("{} has no role in {}", user.name, open.project.text()));
    if (!is_digest(open.sha256) || tenants.login_of_sha256.contains(open.sha256) ||
        tenants.key_of_sha256.contains(open.sha256))
        return Error(ErrorKind::invalid, "sha256 is none, in hex, or it is there already");
    if (open.expires_us <= now_us_) return Error(ErrorKind::invalid, "the login would have expired already");
    std::vector<LoginId> own;
    for (const auto& [id, login] : tenants.logins)
        if (login.user == open.user && login.expires_us > now_us_) own.push_back(id);
    // The oldest gives way: somebody who logs in from a script must not be locked out by it.
    const LoginId id{tenants.logins_made + 1};
    for (std::size_t i = 0; i + kMostLoginsOfUser <= own.size(); ++i) emit(LoginEnded{own[i]});
    emit(LoginMade{
        {.id = id, .user = open.user, .project = open.project, .sha256 = open.sha256, .expires_us = open.expires_us}});
    return Ack{.made = id.text()};
}

Result<Ack> Core::on(const CloseLogin& close) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.logins.find(close.login);
    const bool own = found != tenants.logins.end() && actor_.via == close.login.text();
    if (found == tenants.logins.end())
        return Error(ErrorKind::not_found, "nobody is logged in as " + close.login.text());
    if (!own) TRY_VOID(may_manage(actor_, tenants.users.at(found->second.user), tenants));
    emit(LoginEnded{close.login});
    return Ack{.made = close.login.text()};
}

Result<Ack> Core::on(const RotateKey& rotate) {
    const Tenants& tenants = state_.tenants;
    const auto found = tenants.keys.find(rotate.key);
    if (found == tenants.keys.end() || !sees(actor_, found->second, tenants))
        return Error(ErrorKind::not_found, "there is no key " + rotate.key.text());
    const KeyEntry& old = found->second;
    TRY_VOID(may_give(actor_, old.role, old.level, tenants.tenant_of(old.project)));
    if (old.revoked || (old.expires_us > 0 && old.expires_us <= now_us_))
        return Error(ErrorKind::conflict, fmt::format("{} has ended already", rotate.key.text()), {},
                     "stoker key make makes another one");
    if (rotate.expires_us != 0 && rotate.expires_us <= now_us_)
        return Error(ErrorKind::invalid, "the new key would have expired already");
    const KeyEntry kept = old;
    std::int64_t expires_us = rotate.expires_us;
    if (!may(actor_, {Action::administer, Level::project})) {
        // By itself it gets no longer life than it was given, and no other key gets another secret by it.
        const bool itself = actor_.via == kept.id.text();
        if (!itself && KeyId::parse(actor_.via))
            return Error(ErrorKind::denied, fmt::format("{} is a key, and rotates itself alone", actor_.via), {},
                         "stoker login first");
        if (itself && expires_us == 0) expires_us = kept.expires_us;
        if (itself && kept.expires_us != 0 && expires_us > kept.expires_us)
            return Error(ErrorKind::invalid, "the new key would hold longer than the one that asks for it", {},
                         "leave --expires out, or stoker login first");
        TRY(expires_us, own_key_ends(kept.name, kept.service, expires_us));
    }
    TRY(const Ack made, add_key(MakeKey{.name = kept.name,
                                        .service = kept.service,
                                        .role = kept.role,
                                        .level = kept.level,
                                        .project = kept.project,
                                        .sha256 = rotate.sha256,
                                        .expires_us = expires_us,
                                        .node = kept.node}));
    if (rotate.old_until_us <= now_us_)
        emit(KeyRevoked{rotate.key});
    else if (kept.expires_us == 0 || kept.expires_us > rotate.old_until_us)
        emit(KeyEnds{rotate.key, rotate.old_until_us});
    return made;
}

}  // namespace stoker
