// The rows of the table of routes that are about people, logging in, and who asked for what.
#include "server/handlers.h"

namespace stoker::api {

using Type = Parameter::Type;

void add_user_routes(std::vector<Route>& all) {
    const std::vector<Answers> user = {{.description = "On disk.", .schema = "User"}};
    all.push_back(
        {.method = "POST",
         .path = "/api/v1/login",
         .access = Access::open(),
         .operation = "logIn",
         .summary = "Gives a login for a name and its password.",
         .description =
             "The secret is sent as Authorization: Bearer, until it ends. With cookie=true it is in a cookie "
             "that no script reads, and requests that change something show csrf as X-CSRF-Token. One acts in "
             "one project: by the role there that may most.",
         .body = "LoginBody",
         .body_required = true,
         .answers = {{.status = 201, .description = "Logged in.", .schema = "LoginGiven"}},
         .problems = {401, 403},
         .changes = true,
         .handler = log_in});
    all.push_back({.method = "POST",
                   .path = "/api/v1/logout",
                   .access = Access::tenant(Action::look),
                   .operation = "logOut",
                   .summary = "Ends the login that this is asked with.",
                   .answers = {{.status = 204, .description = "It has ended.", .content_type = ""}},
                   .problems = {409},
                   .changes = true,
                   .handler = log_out});
    all.push_back({.method = "POST",
                   .path = "/api/v1/setup",
                   .access = Access::open(),
                   .operation = "makeFirstAdmin",
                   .summary = "Makes the first administrator, with the token that stoker up printed.",
                   .description = "Once, and only while there is no user. The answer is a login.",
                   .body = "SetupBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "Made, and logged in.", .schema = "LoginGiven"}},
                   .problems = {401, 403, 409},
                   .changes = true,
                   .handler = set_up});
    all.push_back({.method = "POST",
                   .path = "/api/v1/password",
                   .access = Access::tenant(Action::look),
                   .operation = "setOwnPassword",
                   .summary = "Changes the password of whoever asks.",
                   .description = "Ends all of their logins.",
                   .body = "OwnPasswordBody",
                   .body_required = true,
                   .answers = {{.status = 204, .description = "On disk.", .content_type = ""}},
                   .problems = {409},
                   .changes = true,
                   .handler = set_own_password});
    all.push_back({.method = "GET",
                   .path = "/api/v1/users",
                   .access = Access::tenant(Action::administer),
                   .operation = "listUsers",
                   .summary = "People and accounts of programs that have a role where the caller reaches.",
                   .answers = {{.description = "They, with the roles that the caller reaches.", .schema = "UserList"}},
                   .handler = list_users});
    all.push_back({.method = "POST",
                   .path = "/api/v1/users",
                   .access = Access::tenant(Action::administer),
                   .operation = "makeUser",
                   .summary = "Makes a person or a program's account, with a first role.",
                   .description = "Nobody gives a role that reaches further than their own.",
                   .body = "UserBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "On disk.", .schema = "User"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = make_user});
    all.push_back({.method = "POST",
                   .path = "/api/v1/users/{user}/roles",
                   .access = Access::tenant(Action::administer),
                   .operation = "bindRole",
                   .summary = "Gives or takes a role; it holds from the next request on.",
                   .body = "RoleBody",
                   .body_required = true,
                   .answers = user,
                   .problems = {404},
                   .changes = true,
                   .handler = bind_role});
    all.push_back({.method = "POST",
                   .path = "/api/v1/users/{user}/password",
                   .access = Access::organisation(Action::administer),
                   .operation = "setUserPassword",
                   .summary = "Sets somebody's password, and ends their logins.",
                   .description = "By an admin of the whole organisation, if no role of theirs reaches further.",
                   .body = "PasswordBody",
                   .body_required = true,
                   .answers = user,
                   .problems = {404},
                   .changes = true,
                   .handler = set_user_password});
    all.push_back({.method = "POST",
                   .path = "/api/v1/users/{user}/disable",
                   .access = Access::organisation(Action::administer),
                   .operation = "disableUser",
                   .summary = "Shuts somebody out, by password, key and certificate; or lets them in again.",
                   .body = "DisableBody",
                   .answers = user,
                   .problems = {404},
                   .changes = true,
                   .handler = disable_user});
    all.push_back({.method = "GET",
                   .path = "/api/v1/admission",
                   .access = Access::tenant(Action::look),
                   .operation = "listAdmission",
                   .summary = "Which runs are taken: the rules in force.",
                   .description = "They stand in the configuration, under admission, with its versions.",
                   .answers = {{.description = "They.", .schema = "AdmissionList"}},
                   .handler = list_admission});
    all.push_back({.method = "POST",
                   .path = "/api/v1/admission/test",
                   .access = Access::tenant(Action::inspect),
                   .operation = "testAdmission",
                   .summary = "Which of the runs that were submitted these rules would have refused.",
                   .description = "Of the runs that the caller reaches and the server still keeps. Nothing is written.",
                   .body = "AdmissionTestBody",
                   .body_required = true,
                   .answers = {{.description = "What they would have done.", .schema = "AdmissionTest"}},
                   .handler = test_admission});
    all.push_back(
        {.method = "GET",
         .path = "/api/v1/audit",
         .access = Access::provider(Action::inspect),
         .operation = "listAudit",
         .summary = "Who asked for what, from where, and what became of it; newest first.",
         .description = "Every request that changes something, and every one that was refused; some 80 MB of them are "
                        "kept. What was changed stands in the journal (GET /api/v1/events).",
         .query =
             {{.name = "refused", .description = "Only what was refused.", .type = Type::flag, .otherwise = "false"},
              {.name = "who", .description = "Only of whom this is the beginning: user/anna."},
              {.name = "limit",
               .description = "Lines, at most.",
               .type = Type::integer,
               .low = 1,
               .high = 1000,
               .otherwise = "100"}},
         .answers = {{.description = "They.", .schema = "AuditPage"}},
         .handler = list_audit});
}

}  // namespace stoker::api
