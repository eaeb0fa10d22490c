#include "govern/tenants.h"

namespace stoker {

bool Tenants::has(const Tenant& tenant) const {
    const auto found = projects.find(tenant.project);
    return found != projects.end() && found->second.organisation == tenant.organisation;
}

Tenant Tenants::tenant_of(ProjectId project) const {
    const auto found = projects.find(project);
    return {.organisation = found == projects.end() ? OrganisationId{} : found->second.organisation,
            .project = project};
}

}  // namespace stoker
