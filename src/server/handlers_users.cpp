// People and accounts: who they are, by which roles they act.
#include <algorithm>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "govern/users.h"
#include "io/password.h"
#include "server/handlers.h"
#include "server/views_users.h"

namespace stoker::api {
namespace {

UserView view_of_user(const EngineView& view, const Actor& actor, const UserEntry& user) {
    const Tenants& tenants = view.state.tenants;
    UserView shown{.id = user.id,
                   .name = user.name,
                   .service = user.service,
                   .organisation = user.organisation,
                   .organisation_name = tenants.organisations.at(user.organisation).name,
                   .state = user.disabled ? "disabled" : "active",
                   .has_password = !user.password.empty(),
                   .made_at = rfc3339(user.made_us)};
    for (const RoleBinding& each : user.roles) {
        const Tenant tenant = tenants.tenant_of(each.project);
        if (!reaches(actor, tenant)) continue;
        shown.roles.push_back({.role = each.role,
                               .level = each.level,
                               .project = each.project,
                               .project_name = tenants.organisations.at(tenant.organisation).name + "/" +
                                               tenants.projects.at(each.project).name});
    }
    shown.logins = std::count_if(tenants.logins.begin(), tenants.logins.end(), [&](const auto& each) {
        return each.second.user == user.id && each.second.expires_us > view.now_us;
    });
    return shown;
}

// The command's outcome, then the user as it is now.
void tell_user(Service& service, const ExchangePtr& exchange, CommandBody what, int status = 200) {
    service.post(exchange, {.what = std::move(what)}, [&service, exchange, status](const Result<Ack>& ack) {
        if (!ack) return exchange->fail(ack.error());
        service.work(exchange, [&service, exchange, status, made = ack->made] {
            service.ask<UserView>(
                exchange,
                [&](const EngineView& view) -> Result<UserView> {
                    return view_of_user(view, exchange->actor, view.state.tenants.users.at(*UserId::parse(made)));
                },
                [exchange, status](const UserView& view) { exchange->send(codec::write(view), status); });
        });
    });
}

// By id those that one sees: whoever counts them up learns no names. By name everybody of one's organisation, so that
// who is known can be let into a project.
std::optional<UserId> user_in_path(Service& service, const ExchangePtr& exchange) {
    const std::string word = exchange->parameters.path.at("user");
    std::optional<UserId> found;
    (void)service.engine().read([&](const EngineView& view) {
        const Tenants& tenants = view.state.tenants;
        const UserEntry* user = nullptr;
        if (const auto id = UserId::parse(word)) {
            if (const auto at = tenants.users.find(*id); at != tenants.users.end()) user = &at->second;
            if (user != nullptr && !sees(exchange->actor, *user, tenants)) user = nullptr;
        } else {
            user = tenants.find_user(word);
            if (user != nullptr && !sees(exchange->actor, *user, tenants) &&
                user->organisation != exchange->actor.tenant.organisation)
                user = nullptr;
        }
        if (user != nullptr) found = user->id;
    });
    if (!found)
        exchange->fail(Error(ErrorKind::not_found, "there is no user " + printable(word, 80), {},
                             "stoker user list names those that you see"));
    return found;
}

std::optional<ProjectId> project_of(const ExchangePtr& exchange, const std::string& word) {
    const auto project = word.empty() ? std::optional(exchange->actor.tenant.project) : ProjectId::parse(word);
    if (!project)
        exchange->fail(Error(ErrorKind::invalid, fmt::format("project is {}, expected p-2", printable(word, 60))));
    return project;
}

// Hashing takes a while: on the pool for what is long.
void hash_then(Service& service, const ExchangePtr& exchange, std::string password,
               std::function<void(std::string)> then) {
    if (password.empty()) return then({});
    if (const Status fit = check_password(password); !fit) return exchange->fail(fit.error());
    service.work_long(exchange, [exchange, password = std::move(password), then = std::move(then)] {
        auto hash = hash_password(password);
        if (!hash) return exchange->fail(hash.error());
        then(std::move(*hash));
    });
}

}  // namespace

void list_users(Service& service, const ExchangePtr& exchange) {
    service.ask<UserList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<UserList> {
            UserList list;
            for (const auto& [id, user] : view.state.tenants.users)
                if (sees(actor, user, view.state.tenants)) list.items.push_back(view_of_user(view, actor, user));
            return list;
        },
        [exchange](const UserList& list) { exchange->send(codec::write(list)); });
}

void make_user(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<UserBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto project = project_of(exchange, body->project);
    if (!project) return;
    if (body->service && !body->password.empty())
        return exchange->fail(Error(ErrorKind::invalid, "a program has keys, and no password"));
    hash_then(service, exchange, std::move(body->password),
              [&service, exchange, body = *body, project = *project](std::string hash) {
                  tell_user(service, exchange,
                            MakeUser{.name = body.name,
                                     .service = body.service,
                                     .role = {.role = body.role, .level = body.level, .project = project},
                                     .password = std::move(hash)},
                            201);
              });
}

void bind_role(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<RoleBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto user = user_in_path(service, exchange);
    if (!user) return;
    const auto project = project_of(exchange, body->project);
    if (!project) return;
    tell_user(service, exchange,
              BindRole{*user, {.role = body->role, .level = body->level, .project = *project}, body->remove});
}

void set_user_password(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<PasswordBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto user = user_in_path(service, exchange);
    if (!user) return;
    if (const Status fit = check_password(body->password); !fit) return exchange->fail(fit.error());
    // Before the time is spent: whoever may not is told at once.
    std::optional<Error> refused;
    const Status asked = service.engine().read([&](const EngineView& view) {
        const auto found = view.state.tenants.users.find(*user);
        const Status may = found == view.state.tenants.users.end()
                               ? Status(Error(ErrorKind::not_found, "there is no user " + user->text()))
                               : may_manage(exchange->actor, found->second, view.state.tenants);
        if (!may) refused = may.error();
    });
    if (!asked) refused = asked.error();
    if (refused) return exchange->fail(*refused);
    hash_then(service, exchange, std::move(body->password), [&service, exchange, id = *user](std::string hash) {
        tell_user(service, exchange, SetPassword{id, std::move(hash)});
    });
}

void disable_user(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<DisableBody>(*exchange, false);
    if (!body) return exchange->fail(body.error());
    const auto user = user_in_path(service, exchange);
    if (user) tell_user(service, exchange, DisableUser{*user, body->disabled});
}

}  // namespace stoker::api
