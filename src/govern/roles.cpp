#include "govern/roles.h"

namespace stoker {
namespace {

template <class E>
std::string_view name_of(E value) {
    for (const auto& [each, name] : enum_names(value))
        if (each == value) return name;
    return "?";
}

}  // namespace

bool allowed(Role role, Action action) {
    switch (action) {
        case Action::look: return true;
        case Action::inspect: return role == Role::operator_ || role == Role::admin || role == Role::auditor;
        case Action::submit:
        case Action::steer: return role == Role::developer || role == Role::operator_ || role == Role::admin;
        case Action::operate: return role == Role::operator_ || role == Role::admin;
        case Action::configure: return role == Role::admin;
        case Action::report: return false;
    }
    return false;
}

std::vector<Role> roles_that_may(Action action) {
    std::vector<Role> roles;
    for (const auto& [role, name] : enum_names(Role{}))
        if (allowed(role, action)) roles.push_back(role);
    return roles;
}

std::string_view to_string(Role role) {
    return name_of(role);
}
std::string_view to_string(Level level) {
    return name_of(level);
}

std::string_view in_words(Action action) {
    switch (action) {
        case Action::look: return "look at runs";
        case Action::inspect: return "read the journal and the configuration";
        case Action::submit: return "submit runs";
        case Action::steer: return "steer runs";
        case Action::operate: return "operate nodes or evict runs";
        case Action::configure: return "configure the installation";
        case Action::report: return "report what happened";
    }
    return "?";
}

}  // namespace stoker
