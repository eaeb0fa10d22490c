// The rows of the table of routes that are about who belongs here and may do what.
#include "server/handlers.h"

namespace stoker::api {

void add_tenant_routes(std::vector<Route>& all) {
    all.push_back({.method = "GET",
                   .path = "/api/v1/whoami",
                   .access = Access::tenant(Action::look),
                   .operation = "getCaller",
                   .summary = "Who asks, in which project, and what it may do.",
                   .answers = {{.description = "The caller.", .schema = "Caller"}},
                   .handler = get_caller});
    all.push_back({.method = "GET",
                   .path = "/api/v1/organisations",
                   .access = Access::tenant(Action::look),
                   .operation = "listOrganisations",
                   .summary = "The organisations that the caller reaches.",
                   .answers = {{.description = "They.", .schema = "OrganisationList"}},
                   .handler = list_organisations});
    all.push_back({.method = "POST",
                   .path = "/api/v1/organisations",
                   .access = Access::provider(Action::administer),
                   .operation = "makeOrganisation",
                   .summary = "Makes an organisation with its first project.",
                   .body = "OrganisationBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "On disk.", .schema = "Organisation"}},
                   .problems = {409},
                   .changes = true,
                   .handler = make_organisation});
    all.push_back({.method = "GET",
                   .path = "/api/v1/projects",
                   .access = Access::tenant(Action::look),
                   .operation = "listProjects",
                   .summary = "The projects that the caller reaches.",
                   .answers = {{.description = "They.", .schema = "ProjectList"}},
                   .handler = list_projects});
    all.push_back({.method = "POST",
                   .path = "/api/v1/projects",
                   .access = Access::organisation(Action::administer),
                   .operation = "makeProject",
                   .summary = "Makes a project in an organisation.",
                   .body = "ProjectBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "On disk.", .schema = "Project"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = make_project});
    all.push_back(
        {.method = "GET",
         .path = "/api/v1/keys",
         .access = Access::tenant(Action::own),
         .operation = "listKeys",
         .summary = "The caller's own keys, of an admin all of the projects that it reaches; without their secrets.",
         .answers = {{.description = "They.", .schema = "KeyList"}},
         .handler = list_keys});
    all.push_back({.method = "POST",
                   .path = "/api/v1/keys",
                   .access = Access::tenant(Action::own),
                   .operation = "makeKey",
                   .summary = "Makes a key for a person or a program.",
                   .description =
                       "The secret is in this answer and nowhere else: its SHA-256 alone is kept. Nobody "
                       "gives a role that may more, or reaches further, than their own. Who is no admin "
                       "makes keys in their own name, after a login and not by a key, and they end: keys.own_longest "
                       "of the configuration.",
                   .body = "KeyBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "On disk.", .schema = "KeyGiven"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = make_key});
    all.push_back({.method = "POST",
                   .path = "/api/v1/keys/{key}/revoke",
                   .access = Access::tenant(Action::own),
                   .operation = "revokeKey",
                   .summary = "Ends a key: the next request with it is refused.",
                   .answers = {{.description = "On disk.", .schema = "Key"}},
                   .problems = {404},
                   .changes = true,
                   .handler = revoke_key});
    all.push_back({.method = "POST",
                   .path = "/api/v1/keys/{key}/rotate",
                   .access = Access::tenant(Action::own),
                   .operation = "rotateKey",
                   .summary = "Makes a key with the same rights in place of one.",
                   .description =
                       "The old one ends at once, or after old_for_s, so that programs can change over. Who is "
                       "no admin rotates keys of their own; a key itself alone, and to no later end.",
                   .body = "RotateBody",
                   .answers = {{.status = 201, .description = "On disk.", .schema = "KeyGiven"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = rotate_key});
}

}  // namespace stoker::api
