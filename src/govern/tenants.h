// The tree of tenants: the provider, which is the installation; its organisations; their projects. Every run belongs to
// a project. One organisation with one project is there from the first record on, and is all there is until somebody
// makes another.
#pragma once

#include <map>
#include <string>

#include "base/ids.h"

namespace stoker {

using OrganisationId = Id<'o'>;
using ProjectId = Id<'p'>;

inline constexpr OrganisationId kDefaultOrganisation{1};
inline constexpr ProjectId kDefaultProject{1};

// A project, with the organisation above it.
struct Tenant {
    OrganisationId organisation = kDefaultOrganisation;
    ProjectId project = kDefaultProject;
    friend bool operator==(const Tenant&, const Tenant&) = default;
};

struct OrganisationEntry {
    OrganisationId id = kDefaultOrganisation;
    std::string name = "default";
    friend bool operator==(const OrganisationEntry&, const OrganisationEntry&) = default;
};
struct ProjectEntry {
    ProjectId id = kDefaultProject;
    OrganisationId organisation = kDefaultOrganisation;
    std::string name = "default";
    friend bool operator==(const ProjectEntry&, const ProjectEntry&) = default;
};

struct Tenants {
    std::map<OrganisationId, OrganisationEntry> organisations = {{kDefaultOrganisation, {}}};
    std::map<ProjectId, ProjectEntry> projects = {{kDefaultProject, {}}};

    bool has(const Tenant& tenant) const;
    // The project with what stands above it; a project that there is.
    Tenant tenant_of(ProjectId project) const;
    // Nothing but what was there at first.
    bool only_default() const { return organisations.size() == 1 && projects.size() == 1; }
    friend bool operator==(const Tenants&, const Tenants&) = default;
};

template <class V>
void fields(V& visit, OrganisationEntry& entry) {
    visit("id", entry.id);
    visit("name", entry.name);
}
template <class V>
void fields(V& visit, ProjectEntry& entry) {
    visit("id", entry.id);
    visit("name", entry.name);
    visit("organisation", entry.organisation);
}

}  // namespace stoker
