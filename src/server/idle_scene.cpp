#include "server/idle_scene.h"

#include <algorithm>

#include "base/enum_words.h"
#include "govern/quota.h"
#include "run/state/run_intervals.h"
#include "server/waste_samples.h"

namespace stoker {
namespace {

constexpr std::size_t kMostIdlePoints = 20'000;

}  // namespace

std::int64_t piece_us(const IdleRule& rule) {
    const auto after_us = static_cast<std::int64_t>(rule.after_s() * 1e6);
    return std::clamp<std::int64_t>(after_us / 20, kSecondUs, kLongestPieceUs) / kSecondUs * kSecondUs;
}

std::optional<IdleScene> idle_scene(Engine& engine, const IdleRules& rules, const std::set<RunId>& remembered,
                                    const PriceBook& prices) {
    IdleScene scene;
    const Status asked = engine.read([&](const EngineView& view) {
        const State& state = view.state;
        scene.now_us = view.now_us;
        const auto watch = [&](const Run& run) -> std::optional<WatchedRun> {
            const Tenant tenant = state.tenants.tenant_of(run.project);
            const auto organisation = state.tenants.organisations.find(tenant.organisation);
            const auto project = state.tenants.projects.find(run.project);
            if (organisation == state.tenants.organisations.end() || project == state.tenants.projects.end())
                return std::nullopt;
            const QuotaOwner owner = quota_owner(tenant, run.submitted_by);
            const IdleRule* rule = idle_rule_for(rules, {.organisation = organisation->second.name,
                                                         .project = project->second.name,
                                                         .user = owner.user,
                                                         .kind = std::string(enum_word(run.spec.kind)),
                                                         .run_class = std::string(enum_word(run.spec.run_class))});
            if (rule == nullptr) return std::nullopt;
            WatchedRun watched{.run = run.id, .rule = *rule, .name = run.spec.name, .user = owner.user};
            watched.project = organisation->second.name + "/" + project->second.name;
            watched.project_id = run.project;
            watched.gpus_of_rank = run.spec.per_rank.gpus;
            watched.goes_on = !run.spec.checkpoint.folder.empty();
            watched.checkpoint_us =
                run.spec.checkpoint.interval_s > 0 ? run.spec.checkpoint.interval_s * kSecondUs : kUnknownCheckpointUs;
            watched.ends_us = latest_end_us(run);
            watched.subject.cores = static_cast<double>(run.spec.per_rank.cpu_milli) / 1000 * run.spec.ranks;
            watched.subject.gpus = run.spec.ranks * run.spec.per_rank.gpus;
            if (run.spec.notify)
                for (const NotifySpec& each : *run.spec.notify) watched.notify.push_back(each.to);
            return watched;
        };
        for (const RunId id : state.live) {
            const Run& run = *state.find(id);
            const Attempt& attempt = run.attempts.back();
            scene.there.insert(id);
            // What was told to go is on its way already.
            if (attempt.running_us == 0 || attempt.end_us != 0 || attempt.notice != Cause::none) continue;
            auto watched = watch(run);
            if (!watched) continue;
            watched->attempt = attempt.number;
            watched->subject.began_us = attempt.began_us();
            watched->subject.running_us = attempt.running_us;
            watched->subject.until_us = view.now_us;
            watched->microusd_per_hour =
                rate_of(intervals_at(state, run.spec, attempt.places, prices, attempt.began_us(), view.now_us,
                                     markup_of(state, run.project, prices)),
                        prices, view.now_us);
            scene.live.push_back(std::move(*watched));
        }
        for (const RunId id : remembered) {
            const Run* run = state.find(id);
            if (run == nullptr || is_terminal(run->state)) continue;
            scene.there.insert(id);
            if (!run->held || run->live_attempt() != nullptr) continue;
            if (auto watched = watch(*run)) scene.parked.emplace(id, std::move(*watched));
        }
    });
    if (!asked) return std::nullopt;
    return scene;
}

std::vector<WasteSample> samples_of_run(SeriesStore* store, const WatchedRun& watched, std::int64_t from_us,
                                        std::int64_t now_us) {
    if (store == nullptr) return {};
    const auto series = store->query({.run = watched.run.text(),
                                      .metrics = waste_metrics(),
                                      .rank = {},
                                      .from_s = from_us / kSecondUs,
                                      .to_s = now_us / kSecondUs + 1,
                                      .max_points = kMostIdlePoints});
    if (!series) return {};
    return coarser(samples_of(*series, watched.gpus_of_rank), piece_us(watched.rule));
}

}  // namespace stoker
