// Organisations, projects and people as somebody types them, and as the API has them.
#pragma once

#include <string>

#include "app/client/client.h"
#include "base/result.h"
#include "govern/tenants.h"

namespace stoker {

// "o-2", or its name.
Result<OrganisationId> organisation_named(Client& client, const std::string& word);
// "p-2", "vision", or "north/vision" where several organisations have one of that name.
Result<ProjectId> project_named(Client& client, const std::string& word);
// A level of the tree: "o-2", "p-3", "p-3/anna" as they are; else "hospital", "imaging", "hospital/imaging",
// "imaging/anna", "hospital/imaging/anna". invalid: it could be several.
Result<std::string> scope_named(Client& client, const std::string& word);

}  // namespace stoker
