// What the API says about organisations, projects and keys. As in views.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "govern/tenants.h"

namespace stoker::api {

struct OrganisationView {
    OrganisationId id;
    std::string name;
};
struct OrganisationList {
    std::vector<OrganisationView> items;
};
struct ProjectView {
    ProjectId id;
    OrganisationId organisation;
    std::string name, organisation_name;
};
struct ProjectList {
    std::vector<ProjectView> items;
};
struct KeyView {
    KeyId id;
    std::string name;
    bool service = false;
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectId project;
    std::string project_name;                // "hospital/imaging"
    std::string made_at, expires_at, state;  // valid, expired, revoked, disabled
    std::string node{};                      // an agent's, which tells of this node alone
};
struct KeyList {
    std::vector<KeyView> items;
};
struct KeyGiven {
    KeyView key;
    std::string secret;
};
struct Caller {
    std::string name;
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectView project;
    std::string key{}, login{}, expires_at{};  // empty: the installation's token
    std::string csrf{};                        // of a login by cookie
};

struct OrganisationBody {
    std::string name;
    std::string project = "default";
};
struct ProjectBody {
    std::string name;
    std::string organisation = kDefaultOrganisation.text();
};
struct KeyBody {
    std::string name;
    bool service = false;
    Role role = Role::viewer;
    Level level = Level::project;
    std::string project;         // empty: the caller's own
    std::int64_t expires_s = 0;  // 0: it does not
    std::string node{};          // an agent's may be bound to one
};

template <class V>
void fields(V& visit, OrganisationView& v) {
    visit("id", v.id);
    visit("name", v.name);
}
template <class V>
void fields(V& visit, OrganisationList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, ProjectView& v) {
    visit("id", v.id);
    visit("name", v.name);
    visit("organisation", v.organisation);
    visit("organisation_name", v.organisation_name);
}
template <class V>
void fields(V& visit, ProjectList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, KeyView& v) {
    visit("expires_at", v.expires_at);
    visit("id", v.id);
    visit("level", v.level);
    visit("made_at", v.made_at);
    visit("name", v.name);
    visit("node", v.node);
    visit("project", v.project);
    visit("project_name", v.project_name);
    visit("role", v.role);
    visit("service", v.service);
    visit("state", v.state);
}
template <class V>
void fields(V& visit, KeyList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, KeyGiven& v) {
    visit("key", v.key);
    visit("secret", v.secret);
}
template <class V>
void fields(V& visit, Caller& v) {
    visit("csrf", v.csrf);
    visit("expires_at", v.expires_at);
    visit("key", v.key);
    visit("level", v.level);
    visit("login", v.login);
    visit("name", v.name);
    visit("project", v.project);
    visit("role", v.role);
}
template <class V>
void fields(V& visit, OrganisationBody& v) {
    visit("name", v.name);
    visit("project", v.project);
}
template <class V>
void fields(V& visit, ProjectBody& v) {
    visit("name", v.name);
    visit("organisation", v.organisation);
}
template <class V>
void fields(V& visit, KeyBody& v) {
    visit("expires_s", v.expires_s);
    visit("level", v.level);
    visit("name", v.name);
    visit("node", v.node);
    visit("project", v.project);
    visit("role", v.role);
    visit("service", v.service);
}

}  // namespace stoker::api
