#include "run/decide/limit_text.h"

#include <fmt/format.h>

#include "base/api_time.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::size_t kDayChars = 10;  // of RFC 3339: "2026-12-01"

LimitText text_of_quota(const State& state, const TenantBlock& block, std::int64_t now_us) {
    LimitText out;
    const std::string scope = scope_in_words(state.tenants, block.scope),
                      used = amount_in_words(block.resource, block.used),
                      asked = amount_in_words(block.resource, block.asked),
                      allowed = amount_in_words(block.resource, block.allowed);
    out.numbers = {{"quota_used_milli", block.used},
                   {"quota_asked_milli", block.asked},
                   {block.cannot_give_back ? "quota_deserved_milli" : "quota_limit_milli", block.allowed}};
    out.holders = TenantLimits(state, {}, now_us).holders(block.scope, block.resource);
    const std::string wanted = amount_in_words(block.resource, block.used + block.asked);
    if (!block.cannot_give_back) {
        out.text =
            fmt::format("{} may hold at most {} at once and holds {}; this run takes {}", scope, allowed, used, asked);
        out.remedy = fmt::format("a limit of {} for {} (stoker quota set)", wanted, scope);
        return out;
    }
    out.text = fmt::format(
        "{} deserves {} and holds {}; this run takes {}, the rest would be borrowed, and borrowed work has to be able "
        "to go within {} s: it has no checkpoint folder, and no timeout as short as that",
        scope, allowed, used, asked, kReclaimNoticeS);
    out.remedy = fmt::format("a checkpoint folder, or {} deserved by {} (stoker quota set)", wanted, scope);
    return out;
}

LimitText text_of_budget(const State& state, const TenantBlock& block) {
    LimitText out;
    const std::string scope = scope_in_words(state.tenants, block.scope),
                      allowed = budget_amount(block.unit, block.allowed), used = budget_amount(block.unit, block.used),
                      asked = budget_amount(block.unit, block.asked);
    out.numbers = {
        {"budget_used_micro", block.used}, {"budget_asked_micro", block.asked}, {"budget_limit_micro", block.allowed}};
    out.text = fmt::format(
        "{} has {} for this month and used {}; this run{} takes {} more{}{}; the month ends on {}", scope, allowed,
        used, block.reserve ? ", with what runs already up to its end," : "", asked,
        block.reserve ? "" : " before it could be stopped",
        block.kept == 0 ? ""
                        : fmt::format(", {} of it kept for what stands higher", budget_amount(block.unit, block.kept)),
        rfc3339(block.resets_us).substr(0, kDayChars));
    out.holders = runs_under(state, block.scope);
    out.remedy = fmt::format("a budget above {} for {} (stoker budget set)",
                             budget_amount(block.unit, block.used + block.asked), scope);
    return out;
}

}  // namespace

LimitText limit_text_of(const State& state, const TenantBlock& block, std::int64_t now_us) {
    switch (block.cause) {
        case Cause::quota: return text_of_quota(state, block, now_us);
        case Cause::budget: return text_of_budget(state, block);
        default: return {};
    }
}

}  // namespace stoker
