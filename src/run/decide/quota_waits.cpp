#include "run/decide/quota_waits.h"

#include <algorithm>

#include "run/decide/tenant_limits.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// Of a long past the pieces are put together, so that a question is answered in time.
constexpr std::size_t kMostPieces = 200, kMostWaiting = 200;

struct HeldEnd {
    std::int64_t at_us = 0;
    bool begins = false;
    const Run* run = nullptr;
    const Attempt* attempt = nullptr;
};
struct WaitPiece {
    std::int64_t from_us = 0, to_us = 0;
    const Run* run = nullptr;
};

// When it could have started, but for room and quotas: after what it needs, not before its time.
std::int64_t may_start_us(const State& state, const Run& run) {
    std::int64_t at = std::max(run.submitted_us, run.spec.begin_at_us.value_or(0));
    for (const RunId id : run.needs) {
        const Run* need = state.find(id);
        if (need == nullptr) continue;
        if (need->ended_us == 0) return 0;
        at = std::max(at, need->ended_us);
    }
    return at;
}

void add_waits(const State& state, const Run& run, std::int64_t now_us, std::vector<WaitPiece>& waits) {
    if (run.spec.kind == RunKind::graph || run.held) return;
    std::int64_t from = may_start_us(state, run);
    if (from == 0) return;
    for (const Attempt& attempt : run.attempts) {
        if (attempt.created_us > from) waits.push_back({from, attempt.created_us, &run});
        if (attempt.ended_us == 0) return;  // it runs
        from = std::max(attempt.ended_us, from);
    }
    from = std::max(from, run.not_before_us);
    const std::int64_t to = is_terminal(run.state) ? run.ended_us : now_us;
    if (to > from && (!is_terminal(run.state) || run.attempts.empty())) waits.push_back({from, to, &run});
}

}  // namespace

std::vector<QuotaWait> quota_waits(const State& state, const UsageWindow& window, std::int64_t now_us) {
    std::vector<QuotaWait> pieces;
    const std::int64_t to = std::min(window.to_us, now_us);
    if (state.tenants.quotas.empty() || to <= window.from_us) return pieces;
    std::vector<HeldEnd> held;
    std::vector<WaitPiece> waits;
    for (const auto& [id, run] : state.runs) {
        for (const Attempt& attempt : run.attempts) {
            const std::int64_t begins = attempt.created_us, ends = attempt.held_until_us(now_us);
            if (begins == 0 || ends <= begins || begins >= to) continue;
            held.push_back({begins, true, &run, &attempt});
            held.push_back({ends, false, &run, &attempt});
        }
        add_waits(state, run, now_us, waits);
    }
    std::erase_if(waits, [&](const WaitPiece& each) { return each.to_us <= window.from_us || each.from_us >= to; });
    if (waits.empty()) return pieces;
    // The end of one goes before the beginning of another at the same moment: they did not hold it both.
    std::sort(held.begin(), held.end(), [](const HeldEnd& a, const HeldEnd& b) {
        return std::pair(a.at_us, a.begins) < std::pair(b.at_us, b.begins);
    });
    std::vector<std::int64_t> cuts = {window.from_us, to};
    for (const HeldEnd& each : held) cuts.push_back(each.at_us);
    for (const WaitPiece& each : waits) cuts.push_back(each.from_us), cuts.push_back(each.to_us);
    std::erase_if(cuts, [&](std::int64_t at) { return at < window.from_us || at > to; });
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const std::size_t every = cuts.size() / kMostPieces + 1;

    QuotaUse use(state.tenants);
    std::size_t next = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); i += every) {
        const std::int64_t from_us = cuts[i], to_us = cuts[std::min(i + every, cuts.size() - 1)];
        for (; next < held.size() && held[next].at_us <= from_us; ++next) {
            const QuotaOwner owner =
                quota_owner(state.tenants.tenant_of(held[next].run->project), held[next].run->submitted_by);
            const QuotaDemand demand = demand_of(state, held[next].run->spec.per_rank, held[next].run->spec.ranks,
                                                 &held[next].attempt->places);
            held[next].begins ? use.hold(owner, demand) : use.give_back(owner, demand);
        }
        QuotaWait piece{from_us, to_us};
        std::size_t looked_at = 0;
        for (const WaitPiece& each : waits) {
            if (each.from_us > from_us || each.to_us <= from_us) continue;
            if (++looked_at > kMostWaiting) break;
            const QuotaDemand asks = quota_demand(each.run->spec);
            const QuotaVerdict verdict =
                use.judge(quota_owner(state.tenants.tenant_of(each.run->project), each.run->submitted_by), asks);
            const bool keeps = verdict.tier == QuotaTier::borrowed && !gives_back_in_time(each.run->spec);
            if (verdict.tier != QuotaTier::over && !keeps) continue;
            piece.gpu_milli += asks.gpu_milli;
            piece.cpu_milli += asks.cpu_milli;
        }
        if (piece.gpu_milli == 0 && piece.cpu_milli == 0) continue;
        if (!pieces.empty() && pieces.back().to_us == from_us && pieces.back().gpu_milli == piece.gpu_milli &&
            pieces.back().cpu_milli == piece.cpu_milli)
            pieces.back().to_us = to_us;
        else
            pieces.push_back(piece);
    }
    return pieces;
}

}  // namespace stoker
