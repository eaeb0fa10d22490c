// The tree of tenants: the provider, which is the installation; its organisations; their projects. Every run belongs to
// a project. One organisation with one project is there from the first record on, and is all there is until somebody
// makes another.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    std::string node{};  // an agent's, which tells of this node alone; empty: of any
    friend bool operator==(const KeyEntry&, const KeyEntry&) = default;
};

// A role, and where it holds.
struct RoleBinding {
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectId project = kDefaultProject;  // in which it acts; the level may reach further
    friend bool operator==(const RoleBinding&, const RoleBinding&) = default;
};
// A person who logs in, or a program's account (govern/users.h). Names are unique in the installation.
struct UserEntry {
    UserId id;
    std::string name;
    bool service = false;         // a program's: it has keys, and no password
    OrganisationId organisation;  // whose admins say who it is
    std::vector<RoleBinding> roles{};
    bool disabled = false;
    std::int64_t made_us = 0;
    std::string password{};  // argon2id, as io/password.h writes it; empty: none logs in with one
    friend bool operator==(const UserEntry&, const UserEntry&) = default;
};

using LoginId = Id<'s'>;
// Who has logged in acts as that user in one project until it ends. Of the secret only its SHA-256 is kept.
struct LoginEntry {
    LoginId id;
    UserId user;
    ProjectId project = kDefaultProject;
    std::string sha256;  // in hex
    std::int64_t made_us = 0, expires_us = 0;
    friend bool operator==(const LoginEntry&, const LoginEntry&) = default;
};

// How much of a resource a level of the tree may hold at once, in thousandths (govern/quota.h).
struct QuotaEntry {
    std::string scope;     // "o-2", "p-3", "p-3/anna"
    std::string resource;  // "gpu", "gpu:H100", "cpu"
    std::optional<std::int64_t> guaranteed_milli{}, deserved_milli{}, limit_milli{};
    bool says_nothing() const { return !guaranteed_milli && !deserved_milli && !limit_milli; }
    friend bool operator==(const QuotaEntry&, const QuotaEntry&) = default;
};

enum class BudgetUnit : std::uint8_t { usd, gpu_hours };
// At the limit: nothing new starts, or what runs is told and stopped, too.
enum class BudgetStop : std::uint8_t { block_new, stop_all };
constexpr std::array<std::pair<BudgetUnit, std::string_view>, 2> enum_names(BudgetUnit) {
    return {{{BudgetUnit::usd, "usd"}, {BudgetUnit::gpu_hours, "gpu_hours"}}};
}
constexpr std::array<std::pair<BudgetStop, std::string_view>, 2> enum_names(BudgetStop) {
    return {{{BudgetStop::block_new, "block_new"}, {BudgetStop::stop_all, "stop_all"}}};
}
// How much a level of the tree may use up in a calendar month, UTC (govern/budget.h).
struct BudgetEntry {
    std::string scope;
    BudgetUnit unit = BudgetUnit::usd;
    std::int64_t limit_micro = 0;  // micro-dollars, or millionths of a GPU hour
    BudgetStop on_exhausted = BudgetStop::stop_all;
    bool reserve = false;  // a run is let in only if its whole length fits
    // Of the month `month` ("2026-11"): which of the marks were told. A new month begins without any.
    std::string month{};
    std::vector<std::string> told{};
    friend bool operator==(const BudgetEntry&, const BudgetEntry&) = default;
};

struct Tenants {
    std::map<OrganisationId, OrganisationEntry> organisations = {{kDefaultOrganisation, {}}};
    std::map<ProjectId, ProjectEntry> projects = {{kDefaultProject, {}}};

    std::map<KeyId, KeyEntry> keys;
    std::map<std::string, KeyId, std::less<>> key_of_sha256;  // follows from them

    std::map<UserId, UserEntry> users;
    std::map<std::string, UserId, std::less<>> user_of_name;  // follows from them
    std::map<LoginId, LoginEntry> logins;                     // those that have not ended
    std::uint64_t logins_made = 0;
    std::map<std::string, LoginId, std::less<>> login_of_sha256;  // follows from them

    std::map<std::pair<std::string, std::string>, QuotaEntry> quotas;   // by scope and resource
    std::map<std::pair<std::string, BudgetUnit>, BudgetEntry> budgets;  // by scope and unit

    void add(KeyEntry key) {
        key_of_sha256[key.sha256] = key.id;
        const KeyId id = key.id;
        keys[id] = std::move(key);
    }
    void add(UserEntry user) {
        user_of_name[user.name] = user.id;
        const UserId id = user.id;
        users[id] = std::move(user);
    }
    void add(LoginEntry login) {
        login_of_sha256[login.sha256] = login.id;
        const LoginId id = login.id;
        logins[id] = std::move(login);
    }
    // Nothing: they have ended already.
    void end_login(LoginId id);
    void end_logins_of(UserId user);
    void end_logins_until(std::int64_t now_us);
    const UserEntry* find_user(std::string_view name) const;

    bool has(const Tenant& tenant) const;
    // The project with what stands above it; a project that there is.
    Tenant tenant_of(ProjectId project) const;
    // By its whole name, ORGANISATION/PROJECT.
    std::optional<ProjectId> project_named(std::string_view name) const;
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
    visit("node", entry.node);
    visit("project", entry.project);
    visit("revoked", entry.revoked);
    visit("role", entry.role);
    visit("service", entry.service);
    visit("sha256", entry.sha256);
}
template <class V>
void fields(V& visit, RoleBinding& binding) {
    visit("level", binding.level);
    visit("project", binding.project);
    visit("role", binding.role);
}
template <class V>
void fields(V& visit, UserEntry& entry) {
    visit("disabled", entry.disabled);
    visit("id", entry.id);
    visit("made_us", entry.made_us);
    visit("name", entry.name);
    visit("organisation", entry.organisation);
    visit("password", entry.password);
    visit("roles", entry.roles);
    visit("service", entry.service);
}
template <class V>
void fields(V& visit, LoginEntry& entry) {
    visit("expires_us", entry.expires_us);
    visit("id", entry.id);
    visit("made_us", entry.made_us);
    visit("project", entry.project);
    visit("sha256", entry.sha256);
    visit("user", entry.user);
}
template <class V>
void fields(V& visit, QuotaEntry& entry) {
    visit("deserved_milli", entry.deserved_milli);
    visit("guaranteed_milli", entry.guaranteed_milli);
    visit("limit_milli", entry.limit_milli);
    visit("resource", entry.resource);
    visit("scope", entry.scope);
}
template <class V>
void fields(V& visit, BudgetEntry& entry) {
    visit("limit_micro", entry.limit_micro);
    visit("month", entry.month);
    visit("on_exhausted", entry.on_exhausted);
    visit("reserve", entry.reserve);
    visit("scope", entry.scope);
    visit("told", entry.told);
    visit("unit", entry.unit);
}

}  // namespace stoker
