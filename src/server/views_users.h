// What the API says about people, accounts and who has logged in. As in views.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/views_tenants.h"

namespace stoker::api {

struct RoleView {
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectId project;
    std::string project_name;  // "hospital/imaging"
};
struct UserView {
    UserId id;
    std::string name;
    bool service = false;
    OrganisationId organisation;
    std::string organisation_name;
    std::vector<RoleView> roles;  // those that the caller reaches
    std::string state;            // active, disabled
    bool has_password = false;
    std::int64_t logins = 0;  // that have not ended
    std::string made_at;
};
struct UserList {
    std::vector<UserView> items;
};
// Of somebody who has just shown who it is.
struct LoginGiven {
    LoginId login;
    Caller caller;
    std::string secret;  // empty where it is in a cookie
    std::string csrf;    // with a cookie: X-CSRF-Token of what changes something
    std::string expires_at;
};

struct LoginBody {
    std::string name, password;
    std::string project;  // in which to act; empty: of the first role
    std::int64_t expires_s = 43'200;
    bool cookie = false;
};
struct SetupBody {
    std::string token, name, password;
};
// How to log in by single sign-on.
struct SignOn {
    std::string issuer, client_id, scope;
};
struct SignOnBody {
    std::string token;    // the ID token
    std::string nonce;    // that it was asked for with; empty: of the device flow, without one
    std::string project;  // as LoginBody
    std::int64_t expires_s = 43'200;
    bool cookie = false;
};
struct OwnPasswordBody {
    std::string current, password;
};
struct UserBody {
    std::string name;
    bool service = false;
    Role role = Role::viewer;
    Level level = Level::project;
    std::string project;   // empty: the caller's own
    std::string password;  // empty: none
};
struct RoleBody {
    Role role = Role::viewer;
    Level level = Level::project;
    std::string project;
    bool remove = false;
};
struct PasswordBody {
    std::string password;
};
struct DisableBody {
    bool disabled = true;
};
struct RotateBody {
    std::int64_t expires_s = 0;
    std::int64_t old_for_s = 0;
};

template <class V>
void fields(V& visit, RoleView& v) {
    visit("level", v.level);
    visit("project", v.project);
    visit("project_name", v.project_name);
    visit("role", v.role);
}
template <class V>
void fields(V& visit, UserView& v) {
    visit("has_password", v.has_password);
    visit("id", v.id);
    visit("logins", v.logins);
    visit("made_at", v.made_at);
    visit("name", v.name);
    visit("organisation", v.organisation);
    visit("organisation_name", v.organisation_name);
    visit("roles", v.roles);
    visit("service", v.service);
    visit("state", v.state);
}
template <class V>
void fields(V& visit, UserList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, LoginGiven& v) {
    visit("caller", v.caller);
    visit("csrf", v.csrf);
    visit("expires_at", v.expires_at);
    visit("login", v.login);
    visit("secret", v.secret);
}
template <class V>
void fields(V& visit, LoginBody& v) {
    visit("cookie", v.cookie);
    visit("expires_s", v.expires_s);
    visit("name", v.name);
    visit("password", v.password);
    visit("project", v.project);
}
template <class V>
void fields(V& visit, SetupBody& v) {
    visit("name", v.name);
    visit("password", v.password);
    visit("token", v.token);
}
template <class V>
void fields(V& visit, SignOn& v) {
    visit("client_id", v.client_id);
    visit("issuer", v.issuer);
    visit("scope", v.scope);
}
template <class V>
void fields(V& visit, SignOnBody& v) {
    visit("cookie", v.cookie);
    visit("expires_s", v.expires_s);
    visit("nonce", v.nonce);
    visit("project", v.project);
    visit("token", v.token);
}
template <class V>
void fields(V& visit, OwnPasswordBody& v) {
    visit("current", v.current);
    visit("password", v.password);
}
template <class V>
void fields(V& visit, UserBody& v) {
    visit("level", v.level);
    visit("name", v.name);
    visit("password", v.password);
    visit("project", v.project);
    visit("role", v.role);
    visit("service", v.service);
}
template <class V>
void fields(V& visit, RoleBody& v) {
    visit("level", v.level);
    visit("project", v.project);
    visit("remove", v.remove);
    visit("role", v.role);
}
template <class V>
void fields(V& visit, PasswordBody& v) {
    visit("password", v.password);
}
template <class V>
void fields(V& visit, DisableBody& v) {
    visit("disabled", v.disabled);
}
template <class V>
void fields(V& visit, RotateBody& v) {
    visit("expires_s", v.expires_s);
    visit("old_for_s", v.old_for_s);
}

}  // namespace stoker::api
