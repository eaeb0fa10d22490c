// Who acts: of every command, and of every record that it leaves behind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "govern/roles.h"
#include "govern/tenants.h"

namespace stoker {

enum class PrincipalKind : std::uint8_t {
    core,     // a part of the server itself; it may do everything
    token,    // whoever holds the installation's token
    user,     // the rest are made by an admin; none is yet
    service,  // a program's account
    key,
};

struct Actor {
    PrincipalKind kind = PrincipalKind::core;
    Role role = Role::viewer;      // the core needs none
    Level level = Level::project;  // where the role is bound
    Tenant tenant{};               // in which it acts: what it submits belongs there
    std::string name = "core";     // "driver"; "admin"; "u-3"
    std::string via{};             // "console"; empty: nothing to tell
    std::string node{};            // whose key tells of this node alone; not in text()
    friend bool operator==(const Actor&, const Actor&) = default;

    static Actor part(std::string_view name);   // of the server: "driver", "command/up"
    static Actor token(std::string_view name);  // admin of the provider, in the default project

    std::string who() const;  // "driver", "token/admin", "user/u-3"
    // As the journal has it: "user/u-3 in o-2/p-4 as developer of organisation via console". What is as usual is left
    // out, so that today's one tenant reads as ever: "token/admin".
    std::string text() const;
    // What text() wrote, and what journals from before tenants have. invalid: neither.
    static Result<Actor> parse(std::string_view text);
};

// Its role allows it, at a level that is high enough.
bool may(const Actor& actor, const Right& right);
// What belongs to the tenant lies below where its role is bound.
bool reaches(const Actor& actor, const Tenant& tenant);
// denied, and what it would take; for whoever may not.
Error denial(const Actor& actor, const Right& right);
// "viewer, developer or admin of the provider"
std::string who_may(const Right& right);

}  // namespace stoker
