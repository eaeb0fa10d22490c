#include "govern/actor.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/enum_words.h"
#include "base/text.h"

namespace stoker {
namespace {

// What stands before the name; the parts of the server have names only.
constexpr std::array<std::pair<PrincipalKind, std::string_view>, 4> kPrefixes = {{{PrincipalKind::token, "token/"},
                                                                                  {PrincipalKind::user, "user/"},
                                                                                  {PrincipalKind::service, "service/"},
                                                                                  {PrincipalKind::key, "key/"}}};

// A role that goes without saying.
bool is_usual(const Actor& actor) {
    switch (actor.kind) {
        case PrincipalKind::core: return true;
        case PrincipalKind::token: return actor.role == Role::admin && actor.level == Level::provider;
        default: return actor.role == Role::viewer && actor.level == Level::project;
    }
}

Actor actor_named(std::string_view who) {
    for (const auto& [kind, prefix] : kPrefixes)
        if (who.starts_with(prefix)) {
            const std::string_view name = who.substr(prefix.size());
            if (kind == PrincipalKind::token) return Actor::token(name);
            return {.kind = kind, .name = std::string(name)};
        }
    return Actor::part(who);
}

template <class E>
bool read_name(std::string_view word, E& value) {
    const std::optional<E> named = enum_named<E>(word);
    value = named.value_or(value);
    return named.has_value();
}

bool read_tenant(std::string_view word, Tenant& tenant) {
    const std::size_t slash = word.find('/');
    if (slash == std::string_view::npos) return false;
    const auto organisation = OrganisationId::parse(word.substr(0, slash));
    const auto project = ProjectId::parse(word.substr(slash + 1));
    if (!organisation || !project) return false;
    tenant = {*organisation, *project};
    return true;
}

// Takes the word after `label`, when that is what comes next.
bool take_word(std::string_view& rest, std::string_view label, std::string_view& word) {
    if (!rest.starts_with(label)) return false;
    rest.remove_prefix(label.size());
    word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    return true;
}

}  // namespace

Actor Actor::part(std::string_view name) {
    return {.name = std::string(name)};
}
Actor Actor::token(std::string_view name) {
    return {.kind = PrincipalKind::token, .role = Role::admin, .level = Level::provider, .name = std::string(name)};
}

std::string Actor::who() const {
    for (const auto& [each, prefix] : kPrefixes)
        if (each == kind) return std::string(prefix) + name;
    return name;
}

std::string Actor::text() const {
    std::string text = who();
    if (tenant != Tenant{}) text += " in " + tenant.organisation.text() + "/" + tenant.project.text();
    if (!is_usual(*this)) {
        (text += " as ") += to_string(role);
        if (level != Level::project) (text += " of ") += to_string(level);
    }
    if (!via.empty()) (text += " via ") += via;
    return text;
}

Result<Actor> Actor::parse(std::string_view text) {
    std::string_view rest = text.substr(std::min(text.find(' '), text.size())), word;
    Actor actor = actor_named(text.substr(0, text.size() - rest.size()));
    bool good = rest.size() < text.size();
    if (take_word(rest, " in ", word)) good = good && read_tenant(word, actor.tenant);
    if (take_word(rest, " as ", word)) {
        good = good && read_name(word, actor.role);
        actor.level = Level::project;
        if (take_word(rest, " of ", word)) good = good && read_name(word, actor.level);
    }
    if (rest.starts_with(" via ")) {
        actor.via = rest.substr(5);
        rest = {};
    }
    if (!good || !rest.empty())
        return Error(ErrorKind::invalid, fmt::format("{} is no actor that this version knows", printable(text, 200)),
                     {}, "install the version that wrote it");
    return actor;
}

bool may(const Actor& actor, const Right& right) {
    if (actor.kind == PrincipalKind::core) return true;
    return allowed(actor.role, right.action) && actor.level >= right.level;
}

bool reaches(const Actor& actor, const Tenant& tenant) {
    if (actor.kind == PrincipalKind::core) return true;
    switch (actor.level) {
        case Level::provider: return true;
        case Level::organisation: return actor.tenant.organisation == tenant.organisation;
        case Level::project: return actor.tenant == tenant;
    }
    return false;
}

std::string who_may(const Right& right) {
    const std::vector<Role> roles = roles_that_may(right.action);
    if (roles.empty()) return "nobody but the server itself";
    std::string text;
    for (std::size_t i = 0; i < roles.size(); ++i) {
        if (i > 0) text += i + 1 == roles.size() ? " or " : ", ";
        text += to_string(roles[i]);
    }
    if (right.level != Level::project) (text += " of the ") += to_string(right.level);
    return text;
}

Error denial(const Actor& actor, const Right& right) {
    std::string role(to_string(actor.role));
    if (actor.level != Level::project) (role += " of the ") += to_string(actor.level);
    return Error(ErrorKind::denied,
                 fmt::format("{} is {} and may not {}", printable(actor.who(), 100), role, in_words(right.action)), {},
                 "it takes " + who_may(right));
}

}  // namespace stoker
