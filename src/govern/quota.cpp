#include "govern/quota.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "govern/keys.h"

namespace stoker {
namespace {

constexpr std::string_view kGpuOf = "gpu:";
constexpr std::int64_t kMostMilli = 1'000'000'000;  // a million GPUs
constexpr std::int64_t kLongestFairDelayUs = std::int64_t{86'400} * 1'000'000;

// Where what was given means less than it says, what follows from the rest.
std::optional<std::int64_t> deserved_of(const QuotaEntry& entry) {
    return entry.deserved_milli ? entry.deserved_milli : entry.guaranteed_milli;
}

std::string text_of_milli(std::int64_t milli) {
    return fmt::format("{:g}", static_cast<double>(milli) / 1000);
}

}  // namespace

QuotaOwner quota_owner(const Tenant& tenant, std::string_view submitted_by) {
    return {tenant, std::string(submitted_by.substr(submitted_by.rfind('/') + 1))};
}

std::array<std::string, 3> scopes_of(const QuotaOwner& owner) {
    const std::string project = owner.tenant.project.text();
    return {owner.tenant.organisation.text(), project, project + "/" + owner.user};
}

Result<QuotaScope> parse_quota_scope(const Tenants& tenants, std::string_view text) {
    if (const auto organisation = OrganisationId::parse(text)) {
        if (tenants.organisations.contains(*organisation)) return QuotaScope{.organisation = *organisation};
        return Error(ErrorKind::not_found, "there is no organisation " + organisation->text());
    }
    const std::size_t slash = text.find('/');
    const auto project = ProjectId::parse(text.substr(0, slash));
    const std::string_view user = slash == std::string_view::npos ? "" : text.substr(slash + 1);
    if (!project || (slash != std::string_view::npos && !is_principal_name(user)))
        return Error(ErrorKind::invalid, fmt::format("'{}' is no level of the tree", printable(text, 80)), {},
                     "o-2 for an organisation, p-3 for a project, p-3/anna for a person or program in it");
    if (!tenants.projects.contains(*project))
        return Error(ErrorKind::not_found, "there is no project " + project->text());
    return QuotaScope{.project = *project, .user = std::string(user)};
}

std::string scope_in_words(const Tenants& tenants, std::string_view scope) {
    const auto parsed = parse_quota_scope(tenants, scope);
    if (!parsed) return std::string(scope);
    if (parsed->organisation) return "organisation " + tenants.organisations.at(parsed->organisation).name;
    const ProjectEntry& project = tenants.projects.at(parsed->project);
    const std::string name =
        fmt::format("project {}/{}", tenants.organisations.at(project.organisation).name, project.name);
    return parsed->user.empty() ? name : parsed->user + " in " + name;
}

std::int64_t QuotaDemand::of(std::string_view resource) const {
    if (resource == "cpu") return cpu_milli;
    if (resource == "gpu") return gpu_milli;
    const auto found = gpu_milli_of.find(std::string(resource.substr(std::min(resource.size(), kGpuOf.size()))));
    return found == gpu_milli_of.end() ? 0 : found->second;
}

bool is_quota_resource(std::string_view resource) {
    if (resource == "cpu" || resource == "gpu") return true;
    return resource.starts_with(kGpuOf) && is_principal_name(resource.substr(kGpuOf.size()));
}

std::string amount_in_words(std::string_view resource, std::int64_t milli) {
    const std::string_view unit = resource == "cpu"   ? "CPU"
                                  : resource == "gpu" ? "GPU"
                                                      : resource.substr(kGpuOf.size());
    const bool one = milli == 1000 || resource == "cpu" || resource.starts_with(kGpuOf);
    return fmt::format("{} {}{}", text_of_milli(milli), unit, one ? "" : "s");
}

Status check_quota(const QuotaEntry& entry) {
    Problems problems;
    if (!is_quota_resource(entry.resource))
        problems.push_back({fmt::format("'{}' is no resource of a quota", printable(entry.resource, 80)),
                            "cpu, gpu, or gpu:H100 for one kind of GPU",
                            {}});
    std::int64_t before = 0;
    std::string_view before_name;
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::optional<std::int64_t>>{"guaranteed", entry.guaranteed_milli},
          {"deserved", entry.deserved_milli},
          {"limit", entry.limit_milli}}) {
        if (!value) continue;
        if (*value < 0 || *value > kMostMilli)
            problems.push_back(
                {fmt::format("{} is {}, expected 0 to {}", name, text_of_milli(*value), text_of_milli(kMostMilli)),
                 "",
                 {}});
        else if (*value < before)
            problems.push_back({fmt::format("{} is {}, less than {}, which is {}", name, text_of_milli(*value),
                                            before_name, text_of_milli(before)),
                                "guaranteed is at most deserved, and that at most the limit",
                                {}});
        before = std::max(before, *value);
        before_name = name;
    }
    if (problems.empty()) return done();
    return Error(ErrorKind::invalid, std::move(problems));
}

Status check_quota_in_tree(const Tenants& tenants, const QuotaEntry& entry) {
    // The parent's scope of every scope; nothing above an organisation.
    const auto parent_of = [&](const std::string& scope) -> std::string {
        if (const std::size_t slash = scope.find('/'); slash != std::string::npos) return scope.substr(0, slash);
        const auto project = ProjectId::parse(scope);
        return project ? tenants.tenant_of(*project).organisation.text() : "";
    };
    // With the new entry in place of what is there.
    const auto guaranteed = [&](const std::string& scope) -> std::optional<std::int64_t> {
        if (scope == entry.scope) return entry.guaranteed_milli;
        const auto found = tenants.quotas.find({scope, entry.resource});
        return found == tenants.quotas.end() ? std::nullopt : found->second.guaranteed_milli;
    };
    const auto check_children = [&](const std::string& parent) -> Status {
        const auto has = guaranteed(parent);
        if (parent.empty() || !has) return done();
        std::int64_t sum = parent_of(entry.scope) == parent ? entry.guaranteed_milli.value_or(0) : 0;
        for (const auto& [key, each] : tenants.quotas)
            if (key.second == entry.resource && key.first != entry.scope && parent_of(key.first) == parent)
                sum += each.guaranteed_milli.value_or(0);
        if (sum <= *has) return done();
        return Error(ErrorKind::conflict,
                     fmt::format("below {} {} would be guaranteed, and it is itself guaranteed {}",
                                 scope_in_words(tenants, parent), amount_in_words(entry.resource, sum),
                                 amount_in_words(entry.resource, *has)),
                     {}, "guarantee less below, or more above");
    };
    TRY_VOID(check_children(parent_of(entry.scope)));
    return check_children(entry.scope);
}

std::int64_t QuotaVerdict::allowed_milli() const {
    if (entry == nullptr) return 0;
    if (tier == QuotaTier::over) return entry->limit_milli.value_or(0);
    return deserved_of(*entry).value_or(entry->limit_milli.value_or(0));
}

QuotaUse::QuotaUse(const Tenants& tenants) {
    for (const auto& [key, entry] : tenants.quotas) rows_[key.first].push_back({&entry});
}

void QuotaUse::add(const QuotaOwner& owner, const QuotaDemand& demand, int sign) {
    if (rows_.empty()) return;
    for (const std::string& scope : scopes_of(owner))
        if (const auto found = rows_.find(scope); found != rows_.end())
            for (Row& row : found->second) row.used_milli += sign * demand.of(row.entry->resource);
}

QuotaVerdict QuotaUse::judge(const QuotaOwner& owner, const QuotaDemand& demand) const {
    QuotaVerdict verdict;
    if (rows_.empty()) return verdict;
    bool any = false;
    for (const std::string& scope : scopes_of(owner)) {
        const auto found = rows_.find(scope);
        if (found == rows_.end()) continue;
        for (const Row& row : found->second) {
            const std::int64_t asked = demand.of(row.entry->resource), would = row.used_milli + asked;
            if (asked == 0) continue;
            const QuotaEntry& entry = *row.entry;
            QuotaTier tier = QuotaTier::fair;
            bool counts = true;
            if (entry.limit_milli && would > *entry.limit_milli)
                tier = QuotaTier::over;
            else if (entry.guaranteed_milli && would <= *entry.guaranteed_milli)
                tier = QuotaTier::owed;
            else if (const auto deserved = deserved_of(entry))
                tier = would <= *deserved ? QuotaTier::fair : QuotaTier::borrowed;
            else
                counts = false;  // a limit alone gives nobody a claim, and takes none away
            if (!counts || (any && tier <= verdict.tier)) continue;
            any = true;
            verdict = {.tier = tier, .entry = &entry, .used_milli = row.used_milli, .asked_milli = asked};
        }
    }
    return verdict;
}

std::int64_t QuotaUse::used_milli(const std::string& scope, const std::string& resource) const {
    if (const auto found = rows_.find(scope); found != rows_.end())
        for (const Row& row : found->second)
            if (row.entry->resource == resource) return row.used_milli;
    return 0;
}

// Halves for whole half-lives, and a straight line within one: 6 % off the curve at most, and the same everywhere.
std::int64_t decayed(const FairUse& use, std::int64_t now_us) {
    const std::int64_t since = std::max<std::int64_t>(0, now_us - use.at_us), halves = since / kFairHalfLifeUs;
    if (halves > 62) return 0;
    const std::int64_t whole = use.milli_s >> halves, rest_s = since % kFairHalfLifeUs / 1'000'000,
                       life_s = kFairHalfLifeUs / 1'000'000;
    return whole - whole / (2 * life_s) * rest_s - whole % (2 * life_s) * rest_s / (2 * life_s);
}

void add_use(FairUse& use, std::int64_t milli_s, std::int64_t now_us) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    use.milli_s = std::min(kMost, decayed(use, now_us) + std::min(kMost, std::max<std::int64_t>(0, milli_s)));
    use.at_us = now_us;
}

std::int64_t fair_delay_us(std::int64_t used_share_milli, std::int64_t deserved_share_milli) {
    const std::int64_t over = std::clamp<std::int64_t>(used_share_milli - deserved_share_milli, 0, 1000);
    return kLongestFairDelayUs / 1000 * over;
}

}  // namespace stoker
