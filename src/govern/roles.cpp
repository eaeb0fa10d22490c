#include "govern/roles.h"
#include "base/enum_words.h"

namespace stoker {
bool allowed(Role role, Action action) {
    switch (action) {
        case Action::look: return role != Role::agent;
        case Action::inspect: return role == Role::operator_ || role == Role::admin || role == Role::auditor;
        case Action::submit:
        case Action::own:
        case Action::steer: return role == Role::developer || role == Role::operator_ || role == Role::admin;
        case Action::operate: return role == Role::operator_ || role == Role::admin;
        case Action::administer:
        case Action::configure: return role == Role::admin;
        case Action::measure: return role == Role::agent || role == Role::operator_ || role == Role::admin;
        case Action::report: return false;
    }
    return false;
}

bool within(Role role, Role other) {
    for (const auto& [action, name] : enum_names(Action{}))
        if (allowed(role, action) && !allowed(other, action)) return false;
    return true;
}

std::vector<Role> roles_that_may(Action action) {
    std::vector<Role> roles;
    for (const auto& [role, name] : enum_names(Role{}))
        if (allowed(role, action)) roles.push_back(role);
    return roles;
}

std::string_view to_string(Role role) {
    return enum_word(role);
}
std::string_view to_string(Level level) {
    return enum_word(level);
}

std::string_view in_words(Action action) {
    switch (action) {
        case Action::look: return "look at runs";
        case Action::inspect: return "read the journal and the configuration";
        case Action::submit: return "submit runs";
        case Action::steer: return "steer runs";
        case Action::own: return "have keys of their own";
        case Action::operate: return "operate nodes or evict runs";
        case Action::administer: return "say who may do what";
        case Action::configure: return "configure the installation";
        case Action::measure: return "tell what the GPUs of a node do";
        case Action::report: return "report what happened";
    }
    return "?";
}

}  // namespace stoker
