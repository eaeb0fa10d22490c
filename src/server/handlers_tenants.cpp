// Organisations, projects and keys; and who asks.
#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "govern/keys.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "observe/series.h"
#include "run/state/rules.h"
#include "server/caller.h"
#include "server/handlers.h"
#include "server/views_users.h"

namespace stoker::api {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::int64_t kLongestKeyS = std::int64_t{10} * 366 * 86'400;

bool reaches_organisation(const Actor& actor, OrganisationId organisation) {
    return actor.kind == PrincipalKind::core || actor.level == Level::provider ||
           actor.tenant.organisation == organisation;
}

ProjectView view_of_project(const Tenants& tenants, ProjectId id) {
    const ProjectEntry& entry = tenants.projects.at(id);
    return {.id = id,
            .organisation = entry.organisation,
            .name = entry.name,
            .organisation_name = tenants.organisations.at(entry.organisation).name};
}

KeyView view_of_key(const EngineView& view, const KeyEntry& key) {
    const std::int64_t now_us = view.now_us;
    const ProjectView project = view_of_project(view.state.tenants, key.project);
    const bool expired = key.expires_us > 0 && now_us >= key.expires_us;
    const UserEntry* user = view.state.tenants.find_user(key.name);
    return {.id = key.id,
            .name = key.name,
            .service = key.service,
            .role = key.role,
            .level = key.level,
            .project = key.project,
            .project_name = project.organisation_name + "/" + project.name,
            .made_at = rfc3339(key.made_us),
            .expires_at = rfc3339(key.expires_us),
            .state = key.revoked                         ? "revoked"
                     : expired                           ? "expired"
                     : user != nullptr && user->disabled ? "disabled"
                                                         : "valid",
            .node = key.node};
}

// The command's outcome, then what it made, as it is now.
template <class View>
void tell(Service& service, const ExchangePtr& exchange, CommandBody what, int status,
          std::function<Result<View>(const EngineView&, const std::string& made)> show) {
    service.post(exchange, {.what = std::move(what)},
                 [&service, exchange, status, show = std::move(show)](const Result<Ack>& ack) {
                     if (!ack) return exchange->fail(ack.error());
                     service.work(exchange, [&service, exchange, status, show, made = ack->made] {
                         service.ask<View>(
                             exchange, [&](const EngineView& view) { return show(view, made); },
                             [exchange, status](const View& view) { exchange->send(codec::write(view), status); });
                     });
                 });
}

}  // namespace

Caller caller_view(const EngineView& view, const Actor& actor) {
    const Tenants& tenants = view.state.tenants;
    Caller caller{.name = actor.name,
                  .role = actor.role,
                  .level = actor.level,
                  .project = view_of_project(tenants, actor.tenant.project)};
    const auto id = KeyId::parse(actor.via);
    if (const auto key = id ? tenants.keys.find(*id) : tenants.keys.end(); key != tenants.keys.end()) {
        caller.key = actor.via;
        caller.expires_at = rfc3339(key->second.expires_us);
    }
    const auto in = LoginId::parse(actor.via);
    if (const auto login = in ? tenants.logins.find(*in) : tenants.logins.end(); login != tenants.logins.end()) {
        caller.login = actor.via;
        caller.expires_at = rfc3339(login->second.expires_us);
    }
    return caller;
}

void get_caller(Service& service, const ExchangePtr& exchange) {
    service.ask<Caller>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<Caller> { return caller_view(view, actor); },
        [exchange](Caller caller) {
            const std::string secret =
                exchange->request.headers.find("Authorization") ? std::string() : secret_in_cookie(exchange->request);
            if (!secret.empty() && !caller.login.empty()) caller.csrf = csrf_token(secret);
            exchange->send(codec::write(caller));
        });
}

void list_organisations(Service& service, const ExchangePtr& exchange) {
    service.ask<OrganisationList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<OrganisationList> {
            OrganisationList list;
            for (const auto& [id, entry] : view.state.tenants.organisations)
                if (reaches_organisation(actor, id)) list.items.push_back({id, entry.name});
            return list;
        },
        [exchange](const OrganisationList& list) { exchange->send(codec::write(list)); });
}

void make_organisation(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<OrganisationBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    tell<OrganisationView>(service, exchange, MakeOrganisation{body->name, body->project}, 201,
                           [](const EngineView& view, const std::string& made) -> Result<OrganisationView> {
                               const OrganisationId id = *OrganisationId::parse(made);
                               return OrganisationView{id, view.state.tenants.organisations.at(id).name};
                           });
}

void list_projects(Service& service, const ExchangePtr& exchange) {
    service.ask<ProjectList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<ProjectList> {
            ProjectList list;
            for (const auto& [id, entry] : view.state.tenants.projects)
                if (reaches(actor, view.state.tenants.tenant_of(id)))
                    list.items.push_back(view_of_project(view.state.tenants, id));
            return list;
        },
        [exchange](const ProjectList& list) { exchange->send(codec::write(list)); });
}

void make_project(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<ProjectBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto organisation = OrganisationId::parse(body->organisation);
    if (!organisation)
        return exchange->fail(Error(
            ErrorKind::invalid, fmt::format("organisation is {}, expected o-2", printable(body->organisation, 60))));
    tell<ProjectView>(service, exchange, MakeProject{*organisation, body->name}, 201,
                      [](const EngineView& view, const std::string& made) -> Result<ProjectView> {
                          return view_of_project(view.state.tenants, *ProjectId::parse(made));
                      });
}

void list_keys(Service& service, const ExchangePtr& exchange) {
    service.ask<KeyList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<KeyList> {
            KeyList list;
            for (const auto& [id, key] : view.state.tenants.keys)
                if (sees(actor, key, view.state.tenants)) list.items.push_back(view_of_key(view, key));
            return list;
        },
        [exchange](const KeyList& list) { exchange->send(codec::write(list)); });
}

void make_key(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<KeyBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (body->expires_s < 0 || body->expires_s > kLongestKeyS)
        return exchange->fail(Error(ErrorKind::invalid, fmt::format("expires_s is {}, expected 0 to {} (ten years)",
                                                                    body->expires_s, kLongestKeyS)));
    const auto project =
        body->project.empty() ? std::optional(exchange->actor.tenant.project) : ProjectId::parse(body->project);
    if (!project)
        return exchange->fail(
            Error(ErrorKind::invalid, fmt::format("project is {}, expected p-2", printable(body->project, 60))));
    if (!body->node.empty() && !is_series_name(body->node))
        return exchange->fail(Error(ErrorKind::invalid,
                                    fmt::format("node is {}, expected the name of a node", printable(body->node, 60))));
    // Left out: one's own.
    const bool own = body->name.empty();
    const std::string secret = std::string(kKeyPrefix) + random_hex(kSecretBytes);
    // The moment of the server, by which it expires.
    std::int64_t now_us = 0;
    if (const Status asked = service.engine().read([&](const EngineView& view) { now_us = view.now_us; }); !asked)
        return exchange->fail(asked.error());
    tell<KeyGiven>(service, exchange,
                   MakeKey{.name = own ? exchange->actor.name : body->name,
                           .service = own ? exchange->actor.kind == PrincipalKind::service : body->service,
                           .role = body->role,
                           .level = body->level,
                           .project = *project,
                           .sha256 = hex(sha256(secret)),
                           .expires_us = body->expires_s > 0 ? now_us + body->expires_s * kSecondUs : 0,
                           .node = body->node},
                   201, [secret](const EngineView& view, const std::string& made) -> Result<KeyGiven> {
                       return KeyGiven{view_of_key(view, view.state.tenants.keys.at(*KeyId::parse(made))), secret};
                   });
}

void rotate_key(Service& service, const ExchangePtr& exchange) {
    const std::string word = exchange->parameters.path.at("key");
    const auto key = KeyId::parse(word);
    if (!key) return exchange->fail(Error(ErrorKind::not_found, "there is no key " + printable(word, 60)));
    const auto body = read_body_as<RotateBody>(*exchange, false);
    if (!body) return exchange->fail(body.error());
    for (const auto& [name, seconds] :
         {std::pair("expires_s", body->expires_s), std::pair("old_for_s", body->old_for_s)})
        if (seconds < 0 || seconds > kLongestKeyS)
            return exchange->fail(Error(ErrorKind::invalid, fmt::format("{} is {}, expected 0 to {} (ten years)", name,
                                                                        seconds, kLongestKeyS)));
    const std::string secret = std::string(kKeyPrefix) + random_hex(kSecretBytes);
    std::int64_t now_us = 0;
    if (const Status asked = service.engine().read([&](const EngineView& view) { now_us = view.now_us; }); !asked)
        return exchange->fail(asked.error());
    tell<KeyGiven>(service, exchange,
                   RotateKey{.key = *key,
                             .sha256 = hex(sha256(secret)),
                             .expires_us = body->expires_s > 0 ? now_us + body->expires_s * kSecondUs : 0,
                             .old_until_us = body->old_for_s > 0 ? now_us + body->old_for_s * kSecondUs : 0},
                   201, [secret](const EngineView& view, const std::string& made) -> Result<KeyGiven> {
                       return KeyGiven{view_of_key(view, view.state.tenants.keys.at(*KeyId::parse(made))), secret};
                   });
}

void revoke_key(Service& service, const ExchangePtr& exchange) {
    const std::string word = exchange->parameters.path.at("key");
    const auto key = KeyId::parse(word);
    if (!key) return exchange->fail(Error(ErrorKind::not_found, "there is no key " + printable(word, 60)));
    tell<KeyView>(service, exchange, RevokeKey{*key}, 200,
                  [](const EngineView& view, const std::string& made) -> Result<KeyView> {
                      return view_of_key(view, view.state.tenants.keys.at(*KeyId::parse(made)));
                  });
}

}  // namespace stoker::api
