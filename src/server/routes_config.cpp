// The rows of the table of routes that are about the configuration.
#include "server/handlers.h"

namespace stoker::api {

void add_config_routes(std::vector<Route>& all) {
    const std::vector<Answers> set = {
        {.description = "On disk, and in force as far as it says.", .schema = "ConfigSet", .headers = {"ETag"}}};
    all.push_back({.method = "GET",
                   .path = "/api/v1/config",
                   .access = Access::provider(Action::inspect),
                   .operation = "getConfig",
                   .summary = "The newest configuration, and what of it is in force.",
                   .description = "Each setting with where it comes from: the configuration, the command line, which "
                                  "goes before it, or the default. Version 0: nothing was ever said.",
                   .answers = {{.description = "It.", .schema = "Config", .headers = {"ETag"}}},
                   .handler = get_config});
    all.push_back({.method = "PUT",
                   .path = "/api/v1/config",
                   .access = Access::provider(Action::configure),
                   .operation = "setConfig",
                   .summary = "Makes a new version of the configuration.",
                   .description = "The text is YAML; what is wrong with it comes back with line and column. The same "
                                  "text again makes no new version. If-Match: the newest version has to be that one.",
                   .body = "ConfigBody",
                   .body_required = true,
                   .answers = set,
                   .problems = {404, 412},
                   .changes = true,
                   .if_match = true,
                   .handler = put_config});
    all.push_back({.method = "GET",
                   .path = "/api/v1/config/versions",
                   .access = Access::provider(Action::inspect),
                   .operation = "listConfigVersions",
                   .summary = "The versions of the configuration, newest first, without their texts.",
                   .description = "The newest 100 at most; the journal has all of them.",
                   .answers = {{.description = "They.", .schema = "ConfigVersionList"}},
                   .handler = list_config_versions});
    all.push_back({.method = "GET",
                   .path = "/api/v1/config/versions/{version}",
                   .access = Access::provider(Action::inspect),
                   .operation = "getConfigVersion",
                   .summary = "One of them, with its text.",
                   .answers = {{.description = "It.", .schema = "ConfigText"}},
                   .problems = {404},
                   .handler = get_config_version});
    all.push_back({.method = "POST",
                   .path = "/api/v1/config/rollback",
                   .access = Access::provider(Action::configure),
                   .operation = "rollBackConfig",
                   .summary = "Makes a new version with the text of an older one.",
                   .description = "No version is ever changed or removed.",
                   .body = "RollbackBody",
                   .body_required = true,
                   .answers = set,
                   .problems = {404, 412},
                   .changes = true,
                   .if_match = true,
                   .handler = roll_config_back});
}

}  // namespace stoker::api
