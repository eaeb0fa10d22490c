// Logging in by single sign-on: the provider's token for a login of ours, and roles by the groups in it.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "govern/users.h"
#include "io/process.h"
#include "run/engine/engine.h"
#include "server/caller.h"
#include "server/handlers.h"
#include "server/single_sign_on.h"
#include "server/views_users.h"

namespace stoker::api {
namespace {

constexpr std::int64_t kLeastSignOnS = 60, kLongestSignOnS = 30 * 86'400;

Error no_provider() {
    return Error(ErrorKind::conflict, "this server has no provider for single sign-on", {},
                 "stoker login NAME asks for a password; an operator writes oidc: into the configuration");
}

// By number, by its whole name, or by its own where the user has a role in it. Whether it may act there is asked later.
std::optional<ProjectId> project_meant(const UserEntry& user, const Tenants& tenants, const std::string& word) {
    if (const auto id = ProjectId::parse(word)) return tenants.projects.contains(*id) ? id : std::nullopt;
    if (const auto id = tenants.project_named(word)) return id;
    for (const RoleBinding& role : user.roles)
        if (const auto found = tenants.projects.find(role.project);
            found != tenants.projects.end() && found->second.name == word)
            return role.project;
    return std::nullopt;
}

// The roles that the configuration gives to groups: those of this person's, and those of others.
struct GroupRoles {
    std::vector<RoleBinding> held, not_held;
};
GroupRoles roles_of(const OidcForm& form, const SignedOn& person, const Tenants& tenants) {
    GroupRoles roles;
    const auto add = [](std::vector<RoleBinding>& list, const RoleBinding& role) {
        if (std::find(list.begin(), list.end(), role) == list.end()) list.push_back(role);
    };
    const auto is_in = [&](const GroupBinding& each) {
        return std::find(person.groups.begin(), person.groups.end(), each.group) != person.groups.end();
    };
    for (const bool held : {true, false})
        for (const GroupBinding& each : form.groups) {
            const auto project = tenants.project_named(each.project);
            if (!project || is_in(each) != held) continue;
            const RoleBinding role{.role = each.role, .level = each.level, .project = *project};
            // Of two groups with the same role one is enough.
            const bool by_another = std::find(roles.held.begin(), roles.held.end(), role) != roles.held.end();
            if (held || !by_another) add(held ? roles.held : roles.not_held, role);
        }
    return roles;
}

struct Looked {
    std::optional<UserEntry> user;
    GroupRoles roles;
    std::int64_t now_us = 0;
};
Result<Looked> look(Service& service, const OidcForm& form, const SignedOn& person) {
    Looked looked;
    TRY_VOID(service.engine().read([&](const EngineView& view) {
        const Tenants& tenants = view.state.tenants;
        if (const UserEntry* user = tenants.find_user(person.name)) looked.user = *user;
        looked.roles = roles_of(form, person, tenants);
        looked.now_us = view.now_us;
    }));
    return looked;
}

// Makes the person, or brings the roles of its groups up to date.
Result<UserEntry> bring_up_to_date(Service& service, const OidcForm& form, const SignedOn& person) {
    TRY(Looked looked, look(service, form, person));
    const auto command = [&](CommandBody what) {
        return call(service.engine(), {.what = std::move(what), .actor = Actor::token("oidc")});
    };
    if (!looked.user) {
        if (looked.roles.held.empty())
            return Error(
                ErrorKind::denied,
                fmt::format("{} is known to {}, and nobody here: no group of {} has a role", printable(person.name, 80),
                            form.issuer, person.groups.empty() ? "none" : printable(join(person.groups, ", "), 200)),
                {}, fmt::format("ask an admin for: stoker user make {}", printable(person.name, 80)));
        TRY([[maybe_unused]] const Ack made,
            command(MakeUser{.name = person.name, .role = looked.roles.held.front(), .password = ""}));
        TRY(looked, look(service, form, person));
    }
    if (!looked.user) return Error(ErrorKind::unavailable, "the user was not made");
    const UserEntry user = *looked.user;
    if (user.service) return Error(ErrorKind::denied, user.name + " is a program, and logs in by its key");
    const auto has = [&](const RoleBinding& role) {
        return std::find(user.roles.begin(), user.roles.end(), role) != user.roles.end();
    };
    for (const RoleBinding& role : looked.roles.held)
        if (!has(role)) TRY_VOID(command(BindRole{.user = user.id, .role = role, .remove = false}));
    for (const RoleBinding& role : looked.roles.not_held)
        if (has(role)) TRY_VOID(command(BindRole{.user = user.id, .role = role, .remove = true}));
    TRY(looked, look(service, form, person));
    return *looked.user;
}

}  // namespace

void get_sign_on(Service& service, const ExchangePtr& exchange) {
    const auto provider = service.options().oidc;
    if (!provider) return exchange->fail(no_provider());
    exchange->send(codec::write(SignOn{
        .issuer = provider->form().issuer, .client_id = provider->form().client_id, .scope = provider->scope()}));
}

void sign_on(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<SignOnBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto provider = service.options().oidc;
    if (!provider) return exchange->fail(no_provider());
    if (body->expires_s < kLeastSignOnS || body->expires_s > kLongestSignOnS)
        return exchange->fail(Error(ErrorKind::invalid, fmt::format("expires_s is {}, expected {} to {} (30 days)",
                                                                    body->expires_s, kLeastSignOnS, kLongestSignOnS)));
    if (!service.may_try_token(exchange->request.peer))
        return exchange->fail(Error(ErrorKind::denied, "too many wrong tokens from this address", {}, "wait a minute"),
                              429, "60");
    service.work_long(exchange, [&service, exchange, provider, body = std::move(*body)] {
        const auto person = provider->who(body.token, body.nonce, wall_clock_us() / 1'000'000);
        if (!person) {
            const bool wrong = person.error().kind() == ErrorKind::denied;
            if (wrong) service.wrong_token(exchange->request.peer);
            return exchange->fail(person.error(), wrong ? 401 : 0);
        }
        exchange->claim(person->name);
        const auto user = bring_up_to_date(service, provider->form(), *person);
        if (!user) return exchange->fail(user.error());
        std::optional<ProjectId> in;
        std::int64_t now_us = 0;
        const Status asked = service.engine().read([&](const EngineView& view) {
            now_us = view.now_us;
            in = body.project.empty() ? usual_project(*user) : project_meant(*user, view.state.tenants, body.project);
        });
        if (!asked) return exchange->fail(asked.error());
        if (!in)
            return exchange->fail(
                Error(ErrorKind::denied,
                      fmt::format("{} has no role {}", user->name,
                                  body.project.empty() ? "anywhere" : "in " + printable(body.project, 100)),
                      {}, "ask an admin of your organisation"));
        open_login(service, exchange, *user, *in, now_us, body.expires_s, body.cookie);
    });
}

}  // namespace stoker::api
