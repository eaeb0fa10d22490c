#include "govern/tenants.h"

namespace stoker {

bool Tenants::has(const Tenant& tenant) const {
    const auto found = projects.find(tenant.project);
    return found != projects.end() && found->second.organisation == tenant.organisation;
}

void Tenants::end_login(LoginId id) {
    const auto found = logins.find(id);
    if (found == logins.end()) return;
    login_of_sha256.erase(found->second.sha256);
    logins.erase(found);
}

void Tenants::end_logins_of(UserId user) {
    std::erase_if(logins, [&](const auto& each) {
        if (each.second.user != user) return false;
        login_of_sha256.erase(each.second.sha256);
        return true;
    });
}

void Tenants::end_logins_until(std::int64_t now_us) {
    std::erase_if(logins, [&](const auto& each) {
        if (each.second.expires_us > now_us) return false;
        login_of_sha256.erase(each.second.sha256);
        return true;
    });
}

const UserEntry* Tenants::find_user(std::string_view name) const {
    const auto found = user_of_name.find(name);
    return found == user_of_name.end() ? nullptr : &users.at(found->second);
}

Tenant Tenants::tenant_of(ProjectId project) const {
    const auto found = projects.find(project);
    return {.organisation = found == projects.end() ? OrganisationId{} : found->second.organisation,
            .project = project};
}

std::optional<ProjectId> Tenants::project_named(std::string_view name) const {
    for (const auto& [id, project] : projects)
        if (organisations.at(project.organisation).name + "/" + project.name == name) return id;
    return std::nullopt;
}

}  // namespace stoker
