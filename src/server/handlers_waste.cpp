// What was held and did nothing, by who held it and why: the judge of govern/waste.h over what the observer measured.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/api_time.h"
#include "base/enum_words.h"
#include "govern/waste.h"
#include "io/journal.h"
#include "run/decide/quota_waits.h"
#include "run/state/free_time.h"
#include "run/state/rules.h"
#include "run/state/run_intervals.h"
#include "server/handlers.h"
#include "server/views_waste.h"
#include "server/waste_samples.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostRunsJudged = 2000;
constexpr std::size_t kMostPointsJudged = 20'000;  // of a series: two weeks of minutes
constexpr std::size_t kMostNodeRecords = 5000;     // read while the core stands still
constexpr std::int64_t kUsualWasteUs = std::int64_t{7} * 86'400 * kSecondUs;

struct HeldAttempt {
    WasteSubject subject;
    std::vector<UsageInterval> intervals;
};
struct HeldRun {
    std::string run, user, project;
    std::vector<HeldAttempt> attempts;
    int gpus_of_rank = 0;
};
// When each node was there.
using NodeTimes = std::map<std::string, NodeTime>;
using NodeTimesPtr = std::shared_ptr<NodeTimes>;
struct Held {
    std::vector<HeldRun> runs;
    std::vector<WasteLine> free;
    std::int64_t from_us = 0, to_us = 0, left_out = 0;
};

HeldRun held_of(const State& state, const Run& run, const PriceBook& prices, std::int64_t now_us) {
    HeldRun held{.run = run.id.text(),
                 .user = run.spec.user,
                 .project = run.spec.project,
                 .attempts = {},
                 .gpus_of_rank = run.spec.per_rank.gpus};
    for (const Attempt& attempt : run.attempts) {
        if (attempt.began_us() == 0) continue;
        const std::int64_t until = attempt.held_until_us(now_us);
        held.attempts.push_back(
            {.subject = {.began_us = attempt.began_us(),
                         .running_us = attempt.running_us,
                         .until_us = until,
                         .cores = static_cast<double>(run.spec.per_rank.cpu_milli) / 1000 * run.spec.ranks,
                         .gpus = run.spec.ranks * run.spec.per_rank.gpus,
                         .samples = {}},
             .intervals = intervals_at(state, run.spec, attempt.places, prices, attempt.began_us(), until,
                                       markup_of(state, run.project, prices))});
    }
    return held;
}

void add_piece(WasteLine& line, const HeldAttempt& attempt, const PriceBook& prices, const UsageWindow& window) {
    for (const UsageInterval& interval : attempt.intervals) {
        const double hours = hours_of(interval, window);
        (interval.resource == PricedResource::gpu    ? line.gpu_hours
         : interval.resource == PricedResource::node ? line.node_hours
                                                     : line.cpu_hours) += hours;
        const Cost cost = cost_of(prices, interval, window);
        line.cost_microusd += cost.microusd;
        line.priced = line.priced && cost.priced;
    }
}

WasteReport report_of(Held held, const std::string& by, const PriceBook& prices, SeriesStore* store) {
    WasteReport report{.from = rfc3339(held.from_us), .to = rfc3339(held.to_us), .by = by, .currency = prices.currency};
    report.left_out = held.left_out;
    report.free = std::move(held.free);
    report.held.key = "held";
    std::map<std::pair<std::string, std::string>, WasteLine> lines;
    for (HeldRun& run : held.runs) {
        const std::string& key = by == "run" ? run.run : by == "project" ? run.project : run.user;
        std::set<std::string> causes;
        bool measured = false;
        for (HeldAttempt& attempt : run.attempts) {
            WasteSubject& subject = attempt.subject;
            const std::int64_t from = std::max(subject.began_us, held.from_us),
                               to = std::min(subject.until_us, held.to_us);
            if (to <= from) continue;
            add_piece(report.held, attempt, prices, {from, to});
            if (store != nullptr)
                // The whole attempt: whether it is forgotten is seen at its end.
                if (const auto series = store->query({.run = run.run,
                                                      .metrics = waste_metrics(),
                                                      .rank = {},
                                                      .from_s = subject.began_us / kSecondUs,
                                                      .to_s = subject.until_us / kSecondUs + 1,
                                                      .max_points = kMostPointsJudged}))
                    subject.samples = samples_of(*series, run.gpus_of_rank);
            measured = measured || !subject.samples.empty();
            for (const WastePiece& piece : judge_waste(subject)) {
                const UsageWindow window{std::max(piece.from_us, held.from_us), std::min(piece.to_us, held.to_us)};
                if (window.to_us <= window.from_us) continue;
                const std::string cause(enum_word(piece.cause));
                WasteLine& line = lines[{key, cause}];
                add_piece(line, attempt, prices, window);
                if (causes.insert(cause).second) ++line.runs;
            }
        }
        ++report.held.runs;
        if (!measured) ++report.unknown;
    }
    for (auto& [name, line] : lines) {
        line.key = name.first;
        line.cause = name.second;
        report.items.push_back(std::move(line));
    }
    // What costs most, and where nothing has a price what lasts longest, first.
    std::stable_sort(report.items.begin(), report.items.end(), [](const WasteLine& a, const WasteLine& b) {
        const auto hours = [](const WasteLine& line) {
            return line.gpu_hours + line.node_hours + line.cpu_hours / 100;
        };
        return std::pair(a.cost_microusd, hours(a)) > std::pair(b.cost_microusd, hours(b));
    });
    return report;
}

bool sees_the_fleet(const Actor& actor) {
    return actor.kind == PrincipalKind::core || actor.kind == PrincipalKind::token || actor.level == Level::provider;
}

Result<NodeTimesPtr> times_of_nodes(const EngineView& view) {
    auto times = std::make_shared<NodeTimes>();
    if (view.journal == nullptr) return times;
    std::size_t left = kMostNodeRecords;
    for (const auto& [name, status] : view.state.nodes) {
        TRY(const auto numbers, view.journal->numbers_of("node/" + name, 0, left));
        NodeTime& time = (*times)[name];
        for (const std::uint64_t seq : numbers)
            TRY_VOID(view.journal->read(seq - 1, [&time](const JournalRecord& record) -> Result<bool> {
                if (record.redacted) return false;
                TRY(const RecordBody body, decode_body(record.kind, record.format, record.body, record.seq));
                time.add(record.at_us, body);
                return false;
            }));
        left -= numbers.size();
        if (left == 0) break;
    }
    return times;
}

void add_free(WasteLine& line, const WasteLine& more) {
    line.gpu_hours += more.gpu_hours, line.cpu_hours += more.cpu_hours, line.node_hours += more.node_hours;
    line.cost_microusd += more.cost_microusd;
    line.priced = line.priced && more.priced;
}

// What nobody held in that time: while nodes stood ready, and while they were kept away.
struct FreeLines {
    WasteLine ready, away;
};
FreeLines free_in(const State& state, const NodeTimes& times, const PriceBook& prices, const UsageWindow& window,
                  const std::map<std::string, std::vector<UsageInterval>>& held) {
    FreeLines lines;
    for (const auto& [name, time] : times) {
        const NodeInfo* node = state.find_node(name);
        if (node == nullptr) continue;
        const auto found = held.find(name);
        for (const NodeSpan& span : time.spans(window)) {
            const FreeTime free =
                free_time(state, *node, found == held.end() ? std::vector<UsageInterval>() : found->second,
                          {span.from_us, span.to_us}, prices);
            WasteLine more;
            more.gpu_hours = free.gpu_hours, more.cpu_hours = free.cpu_hours, more.node_hours = free.node_hours;
            more.cost_microusd = free.microusd, more.priced = free.priced;
            add_free(span.ready ? lines.ready : lines.away, more);
        }
    }
    return lines;
}

// Of what stood ready, that which work would have taken, had its quota let it: GPUs by GPUs, and where it wants none
// processors by processors.
WasteLine kept_by_quota(const WasteLine& ready, const QuotaWait& wait) {
    const double hours = static_cast<double>(wait.to_us - wait.from_us) / 3.6e9;
    const auto share = [](double wanted, double there) { return there <= 0 ? 0 : std::min(1.0, wanted / there); };
    const double cpus = share(static_cast<double>(wait.cpu_milli) / 1000 * hours, ready.cpu_hours),
                 gpus = share(static_cast<double>(wait.gpu_milli) / 1000 * hours, ready.gpu_hours),
                 all = wait.gpu_milli > 0 ? gpus : cpus;
    WasteLine kept;
    kept.gpu_hours = ready.gpu_hours * gpus;
    kept.cpu_hours = ready.cpu_hours * std::min(cpus, wait.gpu_milli > 0 ? all : 1.0);
    kept.node_hours = ready.node_hours * all;
    kept.cost_microusd = std::llround(static_cast<double>(ready.cost_microusd) * all);
    kept.priced = ready.priced;
    return kept;
}

// Three lines at most: what stood ready, what of it a quota kept from work that waited, and what was out of service.
std::vector<WasteLine> free_lines(const State& state, const NodeTimes& times, const PriceBook& prices,
                                  const UsageWindow& window, std::int64_t now_us) {
    const auto held = held_of_nodes(state, prices, window, now_us);
    FreeLines all = free_in(state, times, prices, window, held);
    WasteLine kept;
    for (const QuotaWait& wait : quota_waits(state, window, now_us))
        add_free(kept, kept_by_quota(free_in(state, times, prices, {wait.from_us, wait.to_us}, held).ready, wait));
    all.ready.gpu_hours = std::max(0.0, all.ready.gpu_hours - kept.gpu_hours);
    all.ready.cpu_hours = std::max(0.0, all.ready.cpu_hours - kept.cpu_hours);
    all.ready.node_hours = std::max(0.0, all.ready.node_hours - kept.node_hours);
    all.ready.cost_microusd = std::max<std::int64_t>(0, all.ready.cost_microusd - kept.cost_microusd);
    all.ready.cause = "unallocated", kept.cause = "waiting for quota", all.away.cause = "out of service";
    std::vector<WasteLine> lines;
    for (WasteLine* line : {&all.ready, &kept, &all.away})
        if (line->gpu_hours + line->cpu_hours + line->node_hours > 0) {
            line->key = "nobody";
            lines.push_back(std::move(*line));
        }
    return lines;
}

void send_waste(Service& service, const ExchangePtr& exchange, const std::string& by, std::int64_t from,
                std::int64_t to, const NodeTimesPtr& times) {
    service.ask<std::shared_ptr<Held>>(
        exchange,
        [from, to, times, actor = exchange->actor,
         prices = service.prices()](const EngineView& view) -> Result<std::shared_ptr<Held>> {
            auto held = std::make_shared<Held>();
            held->to_us = to == 0 ? view.now_us : std::min(to, view.now_us);
            held->from_us = from == 0 ? held->to_us - kUsualWasteUs : from;
            for (auto at = view.state.runs.end(); at != view.state.runs.begin();) {
                --at;
                const Run& run = at->second;
                if (!reaches(actor, view.state.tenants.tenant_of(run.project)) || run.attempts.empty() ||
                    run.attempts.front().created_us >= held->to_us ||
                    (run.ended_us != 0 && run.ended_us <= held->from_us))
                    continue;
                if (held->runs.size() >= kMostRunsJudged)
                    ++held->left_out;
                else
                    held->runs.push_back(held_of(view.state, run, *prices, view.now_us));
            }
            if (times) held->free = free_lines(view.state, *times, *prices, {held->from_us, held->to_us}, view.now_us);
            return held;
        },
        [&service, exchange, by](const std::shared_ptr<Held>& held) {
            service.work_long(exchange, [&service, exchange, by, held] {
                exchange->send(
                    codec::write(report_of(std::move(*held), by, *service.prices(), service.options().series.get())));
            });
        });
}

}  // namespace

void get_waste(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const std::string by = p.text("by", "user");
    const std::int64_t from = p.has("from") ? *parse_rfc3339(p.text("from")) : 0,
                       to = p.has("to") ? *parse_rfc3339(p.text("to")) : 0;
    if (from != 0 && to != 0 && to <= from)
        return exchange->fail(Error(ErrorKind::invalid, "to is not after from", {"query", 0, 0}));
    if (!sees_the_fleet(exchange->actor)) return send_waste(service, exchange, by, from, to, nullptr);
    service.ask_journal<NodeTimesPtr>(exchange, times_of_nodes,
                                      [&service, exchange, by, from, to](const NodeTimesPtr& times) {
                                          send_waste(service, exchange, by, from, to, times);
                                      });
}

}  // namespace stoker::api
