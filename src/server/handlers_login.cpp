// Logging in and out, the first administrator, and one's own password.
#include <atomic>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "govern/keys.h"
#include "govern/users.h"
#include "io/password.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "server/caller.h"
#include "server/handlers.h"
#include "server/views_users.h"

namespace stoker::api {
namespace {

constexpr std::size_t kLoginSecretBytes = 32;
constexpr std::int64_t kLeastLoginS = 60, kLongestLoginS = 30 * 86'400, kUsualLoginS = 43'200;

Error wrong_login() {
    return Error(ErrorKind::denied, "the name or the password is wrong", {},
                 "after several wrong ones it takes a minute until the next; an admin of your organisation sets a new "
                 "password: stoker user password NAME");
}

// Each takes 100 ms and 64 MiB, one after the other: whoever floods logins keeps nobody else waiting for long.
constexpr int kMostPasswordsWaiting = 16;
std::atomic<int> passwords_waiting{0};

struct Known {
    UserEntry user;
    std::int64_t now_us = 0;
};
Result<std::optional<Known>> look_up(Service& service, const std::string& name) {
    std::optional<Known> found;
    TRY_VOID(service.engine().read([&](const EngineView& view) {
        if (const UserEntry* user = view.state.tenants.find_user(name)) found = Known{*user, view.now_us};
    }));
    return found;
}

// Whose name and password these are goes on; everybody else is told the same, after the same time.
void with_password(Service& service, const ExchangePtr& exchange, const std::string& name, std::string password,
                   std::function<void(const Known&)> then) {
    if (!service.may_try_token(exchange->request.peer))
        return exchange->fail(
            Error(ErrorKind::denied, "too many wrong passwords from this address", {}, "wait a minute"), 429, "60");
    if (passwords_waiting.fetch_add(1) >= kMostPasswordsWaiting) {
        --passwords_waiting;
        return exchange->fail(Error(ErrorKind::unavailable, "too many log in at once"), 503, "5");
    }
    // Given back when the job is done, or was never begun.
    const std::shared_ptr<void> place(nullptr, [](void*) { --passwords_waiting; });
    service.work_long(exchange,
                      [&service, exchange, name, place, password = std::move(password), then = std::move(then)] {
                          const auto known = look_up(service, name);
                          if (!known) return exchange->fail(known.error());
                          const bool right = password_is(password, *known ? (*known)->user.password : std::string());
                          if (right && !(*known)->user.disabled) return then(**known);
                          service.wrong_token(exchange->request.peer);
                          exchange->fail(wrong_login(), 401);
                      });
}

}  // namespace

void open_login(Service& service, const ExchangePtr& exchange, const UserEntry& user, ProjectId project,
                std::int64_t now_us, std::int64_t seconds, bool cookie) {
    std::optional<Actor> actor;
    const Status asked =
        service.engine().read([&](const EngineView& view) { actor = actor_of(user, view.state.tenants, project, ""); });
    if (!asked) return exchange->fail(asked.error());
    if (!actor)
        return exchange->fail(Error(ErrorKind::denied,
                                    user.disabled ? fmt::format("{} is disabled", user.name)
                                                  : fmt::format("{} has no role in {}", user.name, project.text()),
                                    {}, "ask an admin of your organisation"));
    const std::string secret = std::string(kLoginPrefix) + random_hex(kLoginSecretBytes);
    const std::int64_t expires_us = now_us + seconds * 1'000'000;
    service.post_as(
        exchange, *actor,
        {.what =
             OpenLogin{.user = user.id, .project = project, .sha256 = hex(sha256(secret)), .expires_us = expires_us}},
        [&service, exchange, secret, seconds, cookie, actor = *actor](const Result<Ack>& ack) {
            if (!ack) return exchange->fail(ack.error());
            service.work(exchange, [&service, exchange, secret, seconds, cookie, actor, made = ack->made] {
                Actor in = actor;
                in.via = made;
                service.ask<LoginGiven>(
                    exchange,
                    [&](const EngineView& view) -> Result<LoginGiven> {
                        return LoginGiven{.login = *LoginId::parse(made),
                                          .caller = caller_view(view, in),
                                          .secret = cookie ? "" : secret,
                                          .csrf = cookie ? csrf_token(secret) : "",
                                          .expires_at = caller_view(view, in).expires_at};
                    },
                    [&](const LoginGiven& given) {
                        HttpResponse response = json_response(codec::write(given), 201);
                        if (cookie)
                            response.headers.add("Set-Cookie", login_cookie(exchange->request.secure, secret, seconds));
                        exchange->send(std::move(response));
                    });
            });
        });
}

void log_in(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<LoginBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (body->expires_s < kLeastLoginS || body->expires_s > kLongestLoginS)
        return exchange->fail(Error(ErrorKind::invalid, fmt::format("expires_s is {}, expected {} to {} (30 days)",
                                                                    body->expires_s, kLeastLoginS, kLongestLoginS)));
    std::optional<ProjectId> project;
    if (!body->project.empty() && !(project = ProjectId::parse(body->project)))
        return exchange->fail(
            Error(ErrorKind::invalid, fmt::format("project is {}, expected p-2", printable(body->project, 60))));
    const std::string name = body->name.substr(0, 100);
    if (is_principal_name(name)) exchange->claim(name);
    with_password(service, exchange, name, std::move(body->password),
                  [&service, exchange, project, seconds = body->expires_s, cookie = body->cookie](const Known& known) {
                      const auto in = project ? project : usual_project(known.user);
                      if (!in)
                          return exchange->fail(Error(ErrorKind::denied, known.user.name + " has no role anywhere", {},
                                                      "ask an admin of your organisation"));
                      open_login(service, exchange, known.user, *in, known.now_us, seconds, cookie);
                  });
}

void log_out(Service& service, const ExchangePtr& exchange) {
    const auto login = LoginId::parse(exchange->actor.via);
    if (!login)
        return exchange->fail(Error(ErrorKind::conflict, "this was no login, so that there is nothing to end", {},
                                    "stoker key revoke ends a key"));
    service.post(exchange, {.what = CloseLogin{*login}}, [exchange](const Result<Ack>& ack) {
        if (!ack) return exchange->fail(ack.error());
        HttpResponse response{.status = 204, .content_type = "", .headers = {}, .body = ""};
        response.headers.add("Set-Cookie", login_cookie(exchange->request.secure, "", 0));
        exchange->send(std::move(response));
    });
}

void set_up(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<SetupBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto first = service.options().first_admin;
    const std::string& peer = exchange->request.peer;
    if (!service.may_try_token(peer))
        return exchange->fail(Error(ErrorKind::denied, "too many wrong tokens from this address", {}, "wait a minute"),
                              429, "60");
    if (!first || !first->is(body->token)) {
        service.wrong_token(peer);
        return exchange->fail(Error(ErrorKind::denied, "the token is wrong, or the first administrator is there", {},
                                    "stoker up prints the token while nobody is; after that stoker login"),
                              401);
    }
    if (const Status fit = check_password(body->password); !fit) return exchange->fail(fit.error());
    if (!first->take())
        return exchange->fail(Error(ErrorKind::conflict, "the token was used already", {}, "stoker login"));
    service.work_long(exchange, [&service, exchange, first, body = std::move(*body)] {
        auto hash = hash_password(body.password);
        if (!hash) {
            first->give_back();
            return exchange->fail(hash.error());
        }
        service.post_as(
            exchange, Actor::token("setup"),
            {.what = MakeUser{.name = body.name,
                              .role = {.role = Role::admin, .level = Level::provider, .project = kDefaultProject},
                              .password = std::move(*hash)}},
            [&service, exchange, first, name = body.name](const Result<Ack>& ack) {
                if (!ack) {
                    first->give_back();
                    return exchange->fail(ack.error());
                }
                service.work(exchange, [&service, exchange, name] {
                    const auto known = look_up(service, name);
                    if (!known) return exchange->fail(known.error());
                    open_login(service, exchange, (*known)->user, kDefaultProject, (*known)->now_us, kUsualLoginS,
                               false);
                });
            });
    });
}

void set_own_password(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<OwnPasswordBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (exchange->actor.kind != PrincipalKind::user || !LoginId::parse(exchange->actor.via))
        return exchange->fail(Error(ErrorKind::conflict, "whoever changes a password has logged in with it", {},
                                    "stoker login; an admin sets the one of somebody else: stoker user password NAME"));
    if (const Status fit = check_password(body->password); !fit) return exchange->fail(fit.error());
    with_password(service, exchange, exchange->actor.name, std::move(body->current),
                  [&service, exchange, password = std::move(body->password)](const Known& known) {
                      auto hash = hash_password(password);
                      if (!hash) return exchange->fail(hash.error());
                      service.post(exchange, {.what = SetPassword{known.user.id, std::move(*hash)}},
                                   [exchange](const Result<Ack>& ack) {
                                       if (!ack) return exchange->fail(ack.error());
                                       exchange->send({.status = 204, .content_type = "", .headers = {}, .body = ""});
                                   });
                  });
}

}  // namespace stoker::api
