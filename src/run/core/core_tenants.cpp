// Commands about who belongs here and may do what. What is foreign to the caller is as good as none.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "govern/keys.h"
#include "io/sha256.h"
#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::size_t kMostTenants = 10'000, kMostKeys = 100'000;
// In one name, made by who goes by it: keys stay in the state after their end, and are there for everybody.
constexpr std::size_t kMostOwnKeys = 20, kMostOwnKeysEver = 1000;

Status check_tenant_name(std::string_view what, std::string_view name) {
    if (is_principal_name(name)) return done();
    return Error(ErrorKind::invalid, fmt::format("'{}' is no name of {}", printable(name, 80), what), {},
                 "letters, digits and . _ - @, at most 64, the first a letter or a digit");
}

}  // namespace

Result<Ack> Core::on(const MakeOrganisation& make) {
    TRY_VOID(check_tenant_name("an organisation", make.name));
    TRY_VOID(check_tenant_name("a project", make.project));
    const Tenants& tenants = state_.tenants;
    for (const auto& [id, entry] : tenants.organisations)
        if (entry.name == make.name)
            return Error(ErrorKind::conflict, fmt::format("{} is called {} already", id.text(), make.name));
    if (tenants.organisations.size() >= kMostTenants)
        return Error(ErrorKind::exhausted, fmt::format("there are {} organisations already", kMostTenants));
    const OrganisationId organisation{tenants.organisations.rbegin()->first.number + 1};
    const ProjectId project{tenants.projects.rbegin()->first.number + 1};
    emit(OrganisationMade{organisation, make.name});
    emit(ProjectMade{project, organisation, make.project});
    return Ack{.made = organisation.text()};
}

Result<Ack> Core::on(const MakeProject& make) {
    TRY_VOID(check_tenant_name("a project", make.name));
    const Tenants& tenants = state_.tenants;
    const bool reached = actor_.kind == PrincipalKind::core || actor_.level == Level::provider ||
                         actor_.tenant.organisation == make.organisation;
    if (!tenants.organisations.contains(make.organisation) || !reached)
        return Error(ErrorKind::not_found, "there is no organisation " + make.organisation.text());
    for (const auto& [id, entry] : tenants.projects)
        if (entry.organisation == make.organisation && entry.name == make.name)
            return Error(ErrorKind::conflict, fmt::format("{} is called {} already", id.text(), make.name));
    if (tenants.projects.size() >= kMostTenants)
        return Error(ErrorKind::exhausted, fmt::format("there are {} projects already", kMostTenants));
    const ProjectId project{tenants.projects.rbegin()->first.number + 1};
    emit(ProjectMade{project, make.organisation, make.name});
    return Ack{.made = project.text()};
}

// When a key ends that somebody without an admin's right makes in their own name; refused, and why.
Result<std::int64_t> Core::own_key_ends(const std::string& name, bool service, std::int64_t asked_us) const {
    if (!is_own(actor_, {.name = name, .service = service}))
        return Error(ErrorKind::denied,
                     fmt::format("{} makes keys in no other name than their own", printable(actor_.who(), 100)), {},
                     fmt::format("stoker key make {}{}, or ask an admin of the project", printable(actor_.name, 64),
                                 actor_.kind == PrincipalKind::service ? " --service" : ""));
    const std::int64_t longest_s = options_.own_key_longest_s;
    if (longest_s == 0)
        return Error(
            ErrorKind::denied, "nobody but an admin makes keys here", {},
            "ask an admin of the project; keys: {own_longest: 90d} in the configuration lets people make theirs");
    std::size_t made = 0, valid = 0;
    for (const auto& [id, key] : state_.tenants.keys) {
        if (!is_own(actor_, key)) continue;
        ++made;
        valid += !key.revoked && (key.expires_us == 0 || key.expires_us > now_us_) ? 1 : 0;
    }
    if (valid >= kMostOwnKeys || made >= kMostOwnKeysEver)
        return Error(ErrorKind::conflict,
                     valid >= kMostOwnKeys ? fmt::format("{} has {} keys that hold already", name, valid)
                                           : fmt::format("{} has made {} keys already", name, made),
                     {},
                     valid >= kMostOwnKeys ? "stoker key list, and stoker key revoke those that nobody needs"
                                           : "an admin of the project makes another");
    const std::int64_t last_us = now_us_ + longest_s * kSecondUs;
    if (asked_us > last_us)
        return Error(ErrorKind::invalid,
                     fmt::format("the key would hold longer than the {} that a key of one's own may",
                                 format_seconds(Seconds(static_cast<double>(longest_s)))),
                     {}, "a shorter time, or an admin of the project makes it");
    return asked_us == 0 ? last_us : asked_us;
}

Result<Ack> Core::on(const MakeKey& make) {
    TRY_VOID(check_tenant_name(make.service ? "a program" : "a person", make.name));
    if (may(actor_, {Action::administer, Level::project})) return add_key(make);
    // Whoever found a key would else have another one when this one is revoked.
    if (KeyId::parse(actor_.via))
        return Error(ErrorKind::denied, fmt::format("{} is a key, and makes no further ones", actor_.via), {},
                     "stoker login first, or stoker key rotate " + actor_.via);
    MakeKey own = make;
    TRY(own.expires_us, own_key_ends(make.name, make.service, make.expires_us));
    return add_key(own);
}

Result<Ack> Core::add_key(const MakeKey& make) {
    const Tenants& tenants = state_.tenants;
    if (!is_sha256(make.sha256)) return Error(ErrorKind::invalid, "sha256 is none, in hex");
    if (make.expires_us != 0 && make.expires_us <= now_us_)
        return Error(ErrorKind::invalid, "the key would have expired already");
    if (!tenants.projects.contains(make.project) || !reaches(actor_, tenants.tenant_of(make.project)))
        return Error(ErrorKind::not_found, "there is no project " + make.project.text());
    TRY_VOID(may_give(actor_, make.role, make.level, tenants.tenant_of(make.project)));
    if (!make.node.empty() && make.role != Role::agent)
        return Error(ErrorKind::invalid, fmt::format("a key of the role {} is of no node", to_string(make.role)), {},
                     "only an agent's key is bound to one: leave the node out, or make it with the role agent");
    if (tenants.key_of_sha256.contains(make.sha256)) return Error(ErrorKind::conflict, "there is such a key already");
    if (tenants.keys.size() >= kMostKeys)
        return Error(ErrorKind::exhausted, fmt::format("there are {} keys already", kMostKeys));
    const KeyId key{tenants.keys.empty() ? 1 : tenants.keys.rbegin()->first.number + 1};
    emit(KeyMade{.key = key,
                 .name = make.name,
                 .service = make.service,
                 .role = make.role,
                 .level = make.level,
                 .project = make.project,
                 .sha256 = make.sha256,
                 .expires_us = make.expires_us,
                 .node = make.node});
    return Ack{.made = key.text()};
}

Result<Ack> Core::on(const RevokeKey& revoke) {
    const auto found = state_.tenants.keys.find(revoke.key);
    if (found == state_.tenants.keys.end() || !sees(actor_, found->second, state_.tenants))
        return Error(ErrorKind::not_found, "there is no key " + revoke.key.text());
    // A key that reaches further is not ended from below.
    TRY_VOID(
        may_give(actor_, found->second.role, found->second.level, state_.tenants.tenant_of(found->second.project)));
    if (found->second.revoked) return Ack{.repeated = true, .made = revoke.key.text()};
    emit(KeyRevoked{revoke.key});
    return Ack{.made = revoke.key.text()};
}

}  // namespace stoker
