// What the observer measured: series, and the run against its plan.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/api_time.h"
#include "base/text.h"
#include "explain/end_words.h"
#include "explain/explanation.h"
#include "explain/kept_explanation.h"
#include "explain/run_cost.h"
#include "run/spec/run_folder.h"
#include "server/explanation_view.h"
#include "server/handlers.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostPoints = 1'000'000;  // of one answer, some 40 MB
constexpr std::size_t kMostMetricsAsked = 96;
constexpr auto kTailBy = std::chrono::seconds(5);  // for the end of a log, from an engine elsewhere

// The store of the server's observer; without a server the folder's, which is only read.
std::shared_ptr<SeriesStore> series_of(Service& service) {
    if (service.options().series) return service.options().series;
    const std::string folder = service.engine().folder() + "/series";
    std::error_code code;
    if (!std::filesystem::is_directory(folder, code)) return nullptr;
    auto store = SeriesStore::open(folder);
    return store ? std::shared_ptr<SeriesStore>(std::move(*store)) : nullptr;
}

// The end of what each rank of the last attempt printed, wherever it ran.
LogTail tail_of(Service& service, const Run& run) {
    constexpr std::size_t kLines = 400, kBytes = 128 << 10;
    const AttemptId id{run.id, run.attempts.empty() ? 0 : run.attempts.back().number};
    const OperationId launched = run.attempts.empty() ? OperationId{} : run.attempts.back().launch;
    return [&service, launched, folder = run_folder(service.engine().folder(), run.id).logs(id)](int rank) {
        const LogPlace place{.launched = launched, .log_folder = folder, .rank = rank};
        auto piece =
            service.engine().questions()->tail_log(place, kLines, kBytes, std::chrono::steady_clock::now() + kTailBy);
        return piece ? Result<std::string>(std::move(piece->text)) : Result<std::string>(piece.error());
    };
}

// What was measured of the same stands behind it, as evidence.
void tell_first(ToldDiagnosis end, std::vector<ToldDiagnosis>& diagnoses) {
    for (const ToldDiagnosis& each : diagnoses)
        if (each.name == end.name) end.evidence.push_back(each.what);
    std::erase_if(diagnoses, [&](const ToldDiagnosis& each) { return each.name == end.name; });
    diagnoses.insert(diagnoses.begin(), std::move(end));
}

// What get_series needs of the state.
struct SeriesLook {
    int ranks = 1;
    std::int64_t submitted_us = 0, now_us = 0;
};

}  // namespace

void get_series(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const Parameters& p = exchange->parameters;
    SeriesQuery query{.run = id->text(), .metrics = {}, .rank = {}};
    const std::string metrics = p.text("metric");
    for (const std::string_view name : split(metrics, ','))
        if (!trim(name).empty()) query.metrics.emplace_back(trim(name));
    if (query.metrics.size() > kMostMetricsAsked)
        return exchange->fail(Error(ErrorKind::invalid, "more than 96 metrics are asked for", {"query", 0, 0},
                                    "leave metric out for all that there are"));
    if (p.has("rank")) query.rank = static_cast<int>(p.integer("rank", 0));
    query.max_points = static_cast<std::size_t>(p.integer("max_points", 500));
    const std::int64_t from_us = p.has("from") ? *parse_rfc3339(p.text("from")) : 0,
                       to_us = p.has("to") ? *parse_rfc3339(p.text("to")) : 0;
    if (from_us != 0 && to_us != 0 && to_us <= from_us)
        return exchange->fail(Error(ErrorKind::invalid, "to is not after from", {"query", 0, 0}));
    service.ask<SeriesLook>(
        exchange,
        [run = *id](const EngineView& view) -> Result<SeriesLook> {
            const Run* found = view.state.find(run);
            if (found == nullptr) return Error(ErrorKind::not_found, "there is no run " + run.text());
            return SeriesLook{.ranks = found->spec.ranks, .submitted_us = found->submitted_us, .now_us = view.now_us};
        },
        [&service, exchange, query, from_us, to_us](const SeriesLook& looked) {
            service.work_long(exchange, [&service, exchange, query, from_us, to_us, looked] {
                SeriesQuery asked = query;
                asked.from_s = (from_us != 0 ? from_us : looked.submitted_us) / 1'000'000;
                asked.to_s = (to_us != 0 ? to_us : looked.now_us + 1'000'000) / 1'000'000;
                // All ranks and metrics of a large run at once would be more than anybody can look at.
                const std::size_t columns = static_cast<std::size_t>(asked.rank ? 1 : std::max(1, looked.ranks)) *
                                            (asked.metrics.empty() ? 40 : asked.metrics.size());
                asked.max_points = std::clamp<std::size_t>(kMostPoints / columns, 1, asked.max_points);
                SeriesPage page{.run = *RunId::parse(asked.run),
                                .from = rfc3339(asked.from_s * 1'000'000),
                                .to = rfc3339(asked.to_s * 1'000'000),
                                .series = {}};
                if (asked.to_s <= asked.from_s) return exchange->send(codec::write(page));
                const auto store = series_of(service);
                if (store != nullptr) {
                    const auto series = store->query(asked);
                    if (!series) return exchange->fail(series.error());
                    for (const RankSeries& each : *series) {
                        RankSeriesView& out = page.series.emplace_back();
                        out.rank = each.rank;
                        out.metric = each.metric;
                        out.seconds = each.seconds;
                        for (const SeriesPoint& point : each.points)
                            out.points.push_back({static_cast<double>(point.at_s), point.min, point.mean, point.max,
                                                  static_cast<double>(point.count)});
                    }
                }
                exchange->send(codec::write(page));
            });
        });
}

void get_explanation(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    service.ask<RunAsItStands>(
        exchange,
        [&service, run = *id](const EngineView& view) {
            return run_as_it_stands(view.state, run, *service.prices(), view.now_us);
        },
        [&service, exchange, again = exchange->parameters.flag("again")](const RunAsItStands& stands) {
            service.work_long(exchange, [&service, exchange, stands, again] {
                const ExplainedPart part = explained_part(stands.run, stands.now_us);
                std::vector<RankSeries> series;
                std::optional<ExplainedRun> kept;
                if (const auto store = series_of(service)) {
                    auto found = series_of_part(*store, stands.run, part);
                    if (!found) return exchange->fail(found.error());
                    series = std::move(*found);
                    if (part.ended && !again)
                        if (const auto text = store->kept_text(stands.run.id.text()))
                            if (auto read = read_kept(*text)) kept = std::move(*read);
                }
                ExplainedRun told = kept_or_now(std::move(kept), explain_run(stands, part, series));
                // Read when it is asked for: the log is kept as long as the run.
                if (part.ended)
                    if (auto end = end_in_words(stands.run, tail_of(service, stands.run)))
                        tell_first(std::move(*end), told.diagnoses);
                exchange->send(codec::write(view_of_explanation(told)));
            });
        });
}

}  // namespace stoker::api
