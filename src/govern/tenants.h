// The tree of tenants: the provider, which is the installation; its organisations; their projects. Every run belongs to
// a project. One organisation with one project is there from the first record on, and is all there is until somebody
// makes another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/ids.h"
#include "govern/roles.h"

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

using KeyId = Id<'k'>;
// What whoever holds a key may do, and where (govern/keys.h).
struct KeyEntry {
    KeyId id;
    std::string name;      // of the person or the program
    bool service = false;  // a program's
    Role role = Role::viewer;
    Level level = Level::project;              // at which the role is bound
    ProjectId project = kDefaultProject;       // in which it acts; the level may reach further
    std::string sha256;                        // of the secret, in hex
    std::int64_t made_us = 0, expires_us = 0;  // 0: it does not
    bool revoked = false;
    friend bool operator==(const KeyEntry&, const KeyEntry&) = default;
};

struct Tenants {
    std::map<OrganisationId, OrganisationEntry> organisations = {{kDefaultOrganisation, {}}};
    std::map<ProjectId, ProjectEntry> projects = {{kDefaultProject, {}}};

    std::map<KeyId, KeyEntry> keys;
    std::map<std::string, KeyId, std::less<>> key_of_sha256;  // follows from them

    void add(KeyEntry key) {
        key_of_sha256[key.sha256] = key.id;
        const KeyId id = key.id;
        keys[id] = std::move(key);
    }
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

template <class V>
void fields(V& visit, KeyEntry& entry) {
    visit("expires_us", entry.expires_us);
    visit("id", entry.id);
    visit("level", entry.level);
    visit("made_us", entry.made_us);
    visit("name", entry.name);
    visit("project", entry.project);
    visit("revoked", entry.revoked);
    visit("role", entry.role);
    visit("service", entry.service);
    visit("sha256", entry.sha256);
}

}  // namespace stoker
