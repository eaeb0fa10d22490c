// Runs that hold machines and do nothing, and keeping one of them.
#include <algorithm>

#include <fmt/format.h>

#include "base/api_time.h"
#include "run/state/rules.h"
#include "server/handlers.h"
#include "server/idle_guard.h"
#include "server/views_idle.h"

namespace stoker::api {
namespace {

constexpr std::int64_t kLongestKeepS = 366 * 86'400;

std::string time_or_nothing(std::int64_t us) {
    return us == 0 ? std::string() : rfc3339(us / kSecondUs * kSecondUs);
}

IdleRunView view_of_idle(const IdleStand& stand, std::int64_t now_us) {
    const IdleRun& run = stand.run;
    const bool kept = run.kept_until_us > now_us;
    return {
        .run = run.run,
        .name = stand.name,
        .user = stand.user,
        .project = stand.project,
        .rule = stand.rule,
        .why = stand.why,
        .state = std::string(state_of_idle(stand, now_us)),
        .idle_since = time_or_nothing(run.since_us),
        .told_at = time_or_nothing(run.told_us),
        .kept_until = kept ? time_or_nothing(run.kept_until_us) : "",
        .kept_by = kept ? run.kept_by : "",
        .parked_at = time_or_nothing(run.parked_us),
        .next_at = time_or_nothing(run.next_us),
        .idle_s = run.since_us == 0 ? 0 : static_cast<double>(std::max<std::int64_t>(0, now_us - run.since_us)) / 1e6,
        .chance_that_it_goes_on = stand.wrong,
        .saves_s = stand.saved_s,
        .loses_s = stand.lost_s,
        .cpus = stand.cores,
        .gpus = stand.gpus,
        .pauses = run.pauses,
        .cost_microusd_per_hour = stand.microusd_per_hour};
}

void send_idle(Service& service, const ExchangePtr& exchange, RunId only) {
    const std::shared_ptr<IdleGuard>& guard = service.options().idle;
    service.ask<IdleList>(
        exchange,
        [guard, only, actor = exchange->actor](const EngineView& view) -> Result<IdleList> {
            IdleList list;
            if (!guard) return list;
            const bool everywhere = actor.kind == PrincipalKind::core || actor.level == Level::provider;
            for (const IdleStand& each : guard->stands())
                if (reaches(actor, view.state.tenants.tenant_of(each.project_id)) && (!only || each.run.run == only))
                    list.items.push_back(view_of_idle(each, view.now_us));
            // Rules name organisations and people: those of others are none of a tenant's business.
            for (const IdleRule& rule : guard->rules())
                if (everywhere || (rule.organisations.empty() && rule.projects.empty() && rule.users.empty()))
                    list.rules.push_back(in_words(rule));
            return list;
        },
        [exchange](const IdleList& list) { exchange->send(codec::write(list)); });
}

}  // namespace

std::string_view state_of_idle(const IdleStand& stand, std::int64_t now_us) {
    if (stand.run.parked_us != 0) return "parked";
    if (stand.run.kept_until_us > now_us) return "kept";
    return stand.run.told_us != 0 ? "told" : "idle";
}

void list_idle(Service& service, const ExchangePtr& exchange) {
    send_idle(service, exchange, {});
}

void keep_run(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const auto body = read_body_as<KeepBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (body->for_s < 0 || body->for_s > kLongestKeepS)
        return exchange->fail(Error(ErrorKind::invalid,
                                    fmt::format("for_s is {}, expected 0 to {} (a year)", body->for_s, kLongestKeepS)));
    service.ask<bool>(
        exchange,
        [run = *id](const EngineView& view) -> Result<bool> {
            if (view.state.find(run) == nullptr) return no_such_run(view.state, run);
            return true;
        },
        [&service, exchange, run = *id, for_s = body->for_s](bool) {
            service.work_long(exchange, [&service, exchange, run, for_s] {
                const std::shared_ptr<IdleGuard>& guard = service.options().idle;
                if (!guard)
                    return exchange->fail(Error(ErrorKind::conflict, "this server looks after no idle runs", {},
                                                "rules stand under `idle` of its configuration"));
                if (const Status kept = guard->keep(run, for_s, exchange->actor.who()); !kept)
                    return exchange->fail(kept.error());
                send_idle(service, exchange, run);
            });
        });
}

}  // namespace stoker::api
