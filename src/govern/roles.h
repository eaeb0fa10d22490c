// Who may do what. A role says which actions, the level at which it is bound how far they reach. What the table does
// not allow is denied.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stoker {

enum class Role : std::uint8_t { viewer, developer, operator_, admin, auditor, agent };

// What a command or a request amounts to where somebody's right to it is asked for.
enum class Action : std::uint8_t {
    look,        // at runs, their logs, files and figures; at nodes and usage
    inspect,     // what everybody did and was told: the journal, the configuration
    submit,      // runs
    steer,       // runs that are there: cancel, hold, release, renew, resume
    own,         // what is one's own: keys in one's own name, that may no more than oneself
    operate,     // nodes, and who stays on them: drain, check, evict
    administer,  // who belongs here and may do what: projects, keys
    configure,   // the installation: its configuration, its backups
    measure,     // tell what the GPUs of a node do: what the agent there is given a key for
    report,      // what drivers, uploads and observers saw; nobody's but the server's own
};

// Of the tree of tenants, lowest first: a role that is bound at one reaches everything below it.
enum class Level : std::uint8_t { project, organisation, provider };

// Pure and total: every pair has an answer.
bool allowed(Role role, Action action);
// Whatever `role` may, `other` may as well.
bool within(Role role, Role other);
// Who may, from the least on; an auditor, who changes nothing, stands last.
std::vector<Role> roles_that_may(Action action);

// What has to be allowed, and the lowest level at which that has to be bound.
struct Right {
    Action action;
    Level level;
    friend bool operator==(const Right&, const Right&) = default;
};

constexpr std::array<std::pair<Role, std::string_view>, 6> enum_names(Role) {
    return {{{Role::viewer, "viewer"},
             {Role::developer, "developer"},
             {Role::operator_, "operator"},
             {Role::admin, "admin"},
             {Role::auditor, "auditor"},
             {Role::agent, "agent"}}};
}
constexpr std::array<std::pair<Action, std::string_view>, 10> enum_names(Action) {
    return {{{Action::look, "look"},
             {Action::inspect, "inspect"},
             {Action::submit, "submit"},
             {Action::steer, "steer"},
             {Action::own, "own"},
             {Action::operate, "operate"},
             {Action::administer, "administer"},
             {Action::configure, "configure"},
             {Action::measure, "measure"},
             {Action::report, "report"}}};
}
constexpr std::array<std::pair<Level, std::string_view>, 3> enum_names(Level) {
    return {{{Level::project, "project"}, {Level::organisation, "organisation"}, {Level::provider, "provider"}}};
}
std::string_view to_string(Role role);
std::string_view to_string(Level level);
std::string_view in_words(Action action);  // "submit runs"

}  // namespace stoker
