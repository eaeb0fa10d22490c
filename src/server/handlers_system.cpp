// What concerns the server as a whole: health, metrics, version, events, usage, backup.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/version.h"
#include "deploy/engine_node.h"
#include "explain/run_cost.h"
#include "run/engine/journal_care.h"
#include "serve/endpoints/endpoint.h"
#include "server/bodies.h"
#include "server/event_view.h"
#include "server/handlers.h"
#include "server/idle_guard.h"
#include "server/metrics.h"
#include "server/run_view.h"
#include "server/views_limits.h"

namespace stoker::api {
namespace {

std::int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

struct Counted {
    std::array<std::int64_t, enum_names(RunState{}).size()> runs{};
    std::int64_t queued = 0, live = 0, operations = 0, unknown = 0, records = 0;
    std::array<std::int64_t, enum_names(NodeState{}).size()> nodes{};
    std::array<std::int64_t, enum_names(HealthVerdict{}).size()> checked{};
    std::int64_t under_check = 0;
    double oldest_queued_s = 0;
    std::uint64_t epoch = 0;
    bool recovering = false;
    QuotaList quotas;
    BudgetList budgets;
    std::int64_t now_us = 0;
};

Counted count(const EngineView& view) {
    Counted c;
    for (const auto& [id, run] : view.state.runs) ++c.runs[static_cast<std::size_t>(run.state)];
    c.queued = static_cast<std::int64_t>(view.state.queue.size());
    c.live = static_cast<std::int64_t>(view.state.live.size());
    c.operations = static_cast<std::int64_t>(view.state.operations.size());
    for (const auto& [id, operation] : view.state.operations) c.unknown += operation.unknown ? 1 : 0;
    for (const auto& [name, node] : view.state.nodes) {
        ++c.nodes[static_cast<std::size_t>(node.state)];
        if (node.health && node.health->last) ++c.checked[static_cast<std::size_t>(node.health->last->verdict)];
    }
    c.under_check = static_cast<std::int64_t>(view.scheduler.health.under_check.size());
    std::int64_t oldest = view.now_us;
    for (const QueueKey& key : view.state.queue) oldest = std::min(oldest, view.state.find(key.run)->submitted_us);
    c.oldest_queued_s = static_cast<double>(view.now_us - oldest) / 1e6;
    c.records = static_cast<std::int64_t>(view.state.seq);
    c.epoch = view.state.epoch;
    c.recovering = view.recovering;
    c.quotas = all_quotas(view);
    c.now_us = view.now_us;
    return c;
}

// A value for each name of an enum; the counts are indexed by it.
template <class E, std::size_t N>
void set_by(MetricsText& out, std::size_t which, std::string_view label, const std::array<std::int64_t, N>& counts) {
    static_assert(N == enum_names(E{}).size());
    for (const auto& [value, name] : enum_names(E{}))
        out.set(which, label, name, static_cast<double>(counts[static_cast<std::size_t>(value)]));
}

constexpr std::size_t kMostLimitGauges = 1000;

void add_limits(const Counted& c, MetricsText& out) {
    const auto whole = [](std::int64_t milli) { return static_cast<double>(milli) / 1000; };
    for (std::size_t i = 0; i < std::min(c.quotas.items.size(), kMostLimitGauges); ++i) {
        const QuotaView& each = c.quotas.items[i];
        const MetricsText::Labels labels = {{"level", each.scope_name}, {"resource", each.resource}};
        out.add(metric("stoker_quota_held"), "", labels, whole(each.used_milli));
        out.add(metric("stoker_quota_waiting"), "", labels, whole(each.waiting_milli));
        if (each.limit_milli) out.add(metric("stoker_quota_limit"), "", labels, whole(*each.limit_milli));
    }
    for (std::size_t i = 0; i < std::min(c.budgets.items.size(), kMostLimitGauges); ++i) {
        const BudgetView& each = c.budgets.items[i];
        if (each.limit_micro <= 0) continue;
        const MetricsText::Labels labels = {{"level", each.scope_name}, {"unit", enum_word(each.unit)}};
        const auto share = [&](std::int64_t micro) {
            return static_cast<double>(micro) / static_cast<double>(each.limit_micro);
        };
        out.add(metric("stoker_budget_used_ratio"), "", labels, share(each.used_micro));
        out.add(metric("stoker_budget_end_ratio"), "", labels, share(each.used_micro + each.committed_micro));
    }
}

void add_idle(const IdleGuard& guard, std::int64_t now_us, MetricsText& out) {
    if (guard.rules().empty()) return;
    std::map<std::string_view, int> counts = {{"idle", 0}, {"told", 0}, {"kept", 0}, {"parked", 0}};
    for (const IdleStand& each : guard.stands()) ++counts[state_of_idle(each, now_us)];
    for (const auto& [state, count] : counts) out.set(metric("stoker_idle_runs"), "state", state, count);
}

constexpr std::size_t kMostEndpointGauges = 1000;

void add_endpoints(Service& service, MetricsText& out) {
    const auto all = EndpointFolder(service.engine().folder() + "/endpoints").list();
    if (!all) return;
    for (std::size_t i = 0; i < std::min(all->size(), kMostEndpointGauges); ++i) {
        const Endpoint& each = (*all)[i];
        const EndpointRevision* now = each.find(each.current);
        if (now == nullptr) continue;
        const std::string revision = std::to_string(now->number);
        const MetricsText::Labels labels = {{"endpoint", each.name}, {"revision", revision}};
        if (const auto s = seconds_after_deploy(*now, now->first_ready_at))
            out.add(metric("stoker_endpoint_first_ready_seconds"), "", labels, *s);
        if (const auto s = seconds_after_deploy(*now, now->first_token_at))
            out.add(metric("stoker_endpoint_first_token_seconds"), "", labels, *s);
    }
}

std::string metrics_text(Service& service, const Counted& c) {
    MetricsText out;
    const auto set = [&](std::size_t which, auto value) { out.set(which, static_cast<double>(value)); };
    out.add(metric("stoker_build_info"), "", {{"version", version().number}, {"commit", version().commit}}, 1);
    set_by<RunState>(out, metric("stoker_runs"), "state", c.runs);
    set(metric("stoker_queue_length"), c.queued);
    set(metric("stoker_queue_oldest_seconds"), c.oldest_queued_s);
    set(metric("stoker_runs_live"), c.live);
    set_by<NodeState>(out, metric("stoker_nodes"), "state", c.nodes);
    set_by<HealthVerdict>(out, metric("stoker_nodes_checked"), "verdict", c.checked);
    set(metric("stoker_nodes_under_check"), c.under_check);
    set(metric("stoker_operations_open"), c.operations);
    set(metric("stoker_operations_unknown"), c.unknown);
    set(metric("stoker_recovering"), c.recovering ? 1 : 0);
    set(metric("stoker_epoch"), c.epoch);
    const EngineStats stats = service.engine().stats();
    set(metric("stoker_journal_records_total"), c.records);
    set(metric("stoker_journal_bytes"), stats.journal_bytes);
    out.set(metric("stoker_commit_seconds"), "quantile", "0.5", stats.commit_p50_s);
    out.set(metric("stoker_commit_seconds"), "quantile", "0.99", stats.commit_p99_s);
    out.add(metric("stoker_commit_seconds"), "_sum", {}, stats.commit_sum_s);
    out.add(metric("stoker_commit_seconds"), "_count", {}, static_cast<double>(stats.commits));
    set(metric("stoker_commands_total"), stats.commands);
    set(metric("stoker_commands_waiting"), stats.waiting_commands);
    set(metric("stoker_effects_total"), stats.effects);
    set(metric("stoker_effects_waiting"), stats.waiting_effects);
    set(metric("stoker_effects_running"), stats.running_effects);
    set(metric("stoker_driver_up"), stats.driver_error.empty() ? 1 : 0);
    set(metric("stoker_facts_total"), stats.facts);
    set(metric("stoker_clock_jump_seconds"), stats.clock_jump_s);
    set(metric("stoker_api_waiting"), service.waiting());
    set(metric("stoker_api_streams"), service.streams().size());
    set(metric("process_resident_memory_bytes"), resident_bytes());
    add_limits(c, out);
    add_endpoints(service, out);
    if (service.options().idle) add_idle(*service.options().idle, c.now_us, out);
    if (service.options().gpus) add_gpu_metrics(*service.options().gpus, out);
    if (service.options().more_metrics) service.options().more_metrics(out);
    return out.text();
}

}  // namespace

void get_health(Service&, const ExchangePtr& exchange) {
    exchange->send(codec::write(HealthView{.status = "alive", .reason = ""}));
}

void get_ready(Service& service, const ExchangePtr& exchange) {
    const Status asked = service.engine().read([exchange](const EngineView& view) {
        if (!view.recovering) return exchange->send(codec::write(HealthView{.status = "ready", .reason = ""}));
        exchange->fail(Error(ErrorKind::unavailable, "recovering: what runs outside is being listed"), 503);
    });
    if (!asked) exchange->fail(asked.error(), 503);
}

void get_metrics_text(Service& service, const ExchangePtr& exchange) {
    service.ask<Counted>(
        exchange,
        [prices = service.prices()](const EngineView& view) -> Result<Counted> {
            Counted counted = count(view);
            counted.budgets = all_budgets(view, prices);
            return counted;
        },
        [&service, exchange](const Counted& counted) {
            exchange->send({.status = 200,
                            .content_type = "text/plain; version=0.0.4; charset=utf-8",
                            .headers = {},
                            .body = metrics_text(service, counted)});
        });
}

void get_openapi(Service&, const ExchangePtr& exchange) {
    static const std::string text = openapi_document().dump() + "\n";
    exchange->send({.status = 200, .content_type = "application/json", .headers = {}, .body = text});
}

void get_version(Service& service, const ExchangePtr& exchange) {
    service.ask<VersionView>(
        exchange,
        [](const EngineView& view) -> Result<VersionView> {
            VersionView v;
            v.site = view.state.site;
            v.epoch = view.state.epoch;
            v.seq = view.state.seq;
            v.recovering = view.recovering;
            return v;
        },
        [&service, exchange](VersionView v) {
            v.version = version().number;
            v.commit = version().commit;
            v.compiler = version().compiler;
            v.api = "v1";
            v.embedded = service.options().embedded;
            const Capabilities& can = service.engine().capabilities();
            v.engine = can.detail;
            v.gang = can.gang;
            v.limits_memory = can.limits_memory;
            v.isolates_devices = can.isolates_devices;
            v.queues = can.queues;
            v.binds = can.binds;
            exchange->send(codec::write(v));
        });
}

void post_backup(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<BackupBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const std::string name = body->file;
    const bool plain =
        !name.empty() && name.size() <= 100 && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                   c == '.';
        });
    if (!plain)
        return exchange->fail(Error(ErrorKind::invalid,
                                    "file is " + printable(name, 120) + ", expected a plain file name", {},
                                    "letters, digits, '-', '_' and '.'; it lies in the folder backups of the server"));
    // With a connection of its own, so that nothing waits for the copy.
    const auto copy = [name, base = service.engine().folder()]() -> Result<BackupView> {
        const std::string folder = base + "/backups";
        if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
            return Error(ErrorKind::unavailable, "cannot make " + folder);
        BackupView made{.file = folder + "/" + name, .bytes = 0, .seq = 0};
        struct stat status {};
        if (::lstat(made.file.c_str(), &status) == 0)
            return Error(ErrorKind::conflict, "there is a backup " + name + " already", {}, "choose another name");
        TRY(const JournalHead head, back_up_journal(base, made.file));
        made.seq = head.seq;
        if (::stat(made.file.c_str(), &status) == 0) made.bytes = status.st_size;
        return made;
    };
    service.work_long(exchange, [exchange, copy] {
        const Result<BackupView> made = copy();
        if (!made) return exchange->fail(made.error());
        exchange->send(codec::write(*made), 201);
    });
}

namespace {

void send_events(Service& service, const ExchangePtr& exchange, RunId run) {
    const Parameters& p = exchange->parameters;
    const auto& headers = exchange->request.headers;
    const std::string accept = lower(headers.find("Accept").value_or("*/*"));
    auto after = static_cast<std::uint64_t>(p.integer("after", 0));
    if (accept.find("text/event-stream") != std::string::npos && exchange->request.method == "GET") {
        if (const auto last = headers.find("Last-Event-ID")) {
            const auto [end, code] = std::from_chars(last->data(), last->data() + last->size(), after);
            if (code != std::errc() || end != last->data() + last->size())
                return exchange->fail(Error(ErrorKind::invalid, "Last-Event-ID is no number", {"header", 0, 0}));
        }
        if (service.streams().full())
            return exchange->fail(Error(ErrorKind::unavailable, "too many streams are open"), 503, "5");
        return service.ask<bool>(
            exchange,
            [run](const EngineView& view) -> Result<bool> {
                if (run && view.state.find(run) == nullptr)
                    return Error(ErrorKind::not_found, "there is no run " + run.text());
                return true;
            },
            [&service, exchange, after, run](bool) {
                const auto stream =
                    exchange->stream({.status = 200, .content_type = "text/event-stream", .headers = {}, .body = ""});
                if (!stream) return;
                stream->write("retry: 2000\n\n");
                if (!service.streams().add(stream, after, run)) stream->close();
            });
    }
    const auto limit = static_cast<std::size_t>(p.integer("limit", 100));
    service.ask_journal<std::vector<Event>>(
        exchange,
        [after, limit, run](const EngineView& view) -> Result<std::vector<Event>> {
            if (run && view.state.find(run) == nullptr)
                return Error(ErrorKind::not_found, "there is no run " + run.text());
            std::vector<Event> events;
            TRY_VOID(read_events(view, after, limit, run, events));
            return events;
        },
        [exchange, limit](const std::vector<Event>& events) {
            std::string body = "{\"items\":[";
            for (const Event& event : events) body += (body.back() == '[' ? "" : ",") + as_json(event);
            body += "]";
            if (events.size() == limit && !events.empty()) body += fmt::format(",\"next_after\":{}", events.back().seq);
            exchange->send({.status = 200, .content_type = "application/json", .headers = {}, .body = body + "}\n"});
        });
}

// One run's share of a usage report.
struct Used {
    std::string run, user, project;
    std::vector<UsageInterval> intervals;
};

}  // namespace

void get_events(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    send_events(service, exchange, p.has("run") ? *RunId::parse(p.text("run")) : RunId{});
}
void get_run_events(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    send_events(service, exchange, *id);
}

void get_usage(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const std::string by = p.text("by", "run");
    const std::int64_t from = p.has("from") ? *parse_rfc3339(p.text("from")) : 0,
                       to = p.has("to") ? *parse_rfc3339(p.text("to")) : 0;
    if (to != 0 && to <= from)
        return exchange->fail(Error(ErrorKind::invalid, "to is not after from", {"query", 0, 0}));
    struct OfTokens {
        std::string user, project;
        ChargeSum sum;
    };
    struct Copied {
        std::vector<Used> runs;
        std::vector<OfTokens> tokens;
        std::int64_t to = 0;
    };
    service.ask<std::shared_ptr<Copied>>(
        exchange,
        [from, to, exchange, prices = service.prices()](const EngineView& view) -> Result<std::shared_ptr<Copied>> {
            auto copied = std::make_shared<Copied>();
            copied->to = to != 0 ? to : view.now_us;
            for (const auto& [id, run] : view.state.runs) {
                if (!reaches(exchange->actor, view.state.tenants.tenant_of(run.project))) continue;
                if (run.attempts.empty() || run.attempts.front().created_us >= copied->to ||
                    (run.ended_us != 0 && run.ended_us <= from))
                    continue;
                copied->runs.push_back({.run = id.text(),
                                        .user = run.spec.user,
                                        .project = run.spec.project,
                                        .intervals = intervals_of(view.state, run, *prices, view.now_us)});
            }
            const Tenants& tenants = view.state.tenants;
            for (const auto& [key, sum] : view.state.token_days)
                if (key.day_us >= from && key.day_us < copied->to &&
                    reaches(exchange->actor, tenants.tenant_of(key.project)))
                    copied->tokens.push_back({key.user, tenants.projects.at(key.project).name, sum});
            return copied;
        },
        [&service, exchange, by, from](const std::shared_ptr<Copied>& copied) {
            const std::vector<EngineState> engines = service.engine().engines();
            const std::string first = engines.empty() ? "the engine" : engines.front().name;
            const auto book = service.prices();
            const PriceBook& prices = *book;
            const UsageWindow window{from, copied->to};
            std::map<std::string, UsageLine> lines;
            std::vector<std::string> order;
            UsageLine total;
            total.key = "total";
            for (const Used& used : copied->runs)
                for (const UsageInterval& interval : used.intervals) {
                    const std::string key = by == "user"      ? used.user
                                            : by == "project" ? used.project
                                            : by == "node"    ? interval.node
                                            : by == "engine"  ? engine_of_node(interval.node, first)
                                                              : used.run;
                    if (!lines.contains(key)) order.push_back(key);
                    const Cost cost = cost_of(prices, interval, window);
                    for (UsageLine* line : {&lines[key], &total}) {
                        const double hours = hours_of(interval, window);
                        (interval.resource == PricedResource::gpu    ? line->gpu_hours
                         : interval.resource == PricedResource::node ? line->node_hours
                                                                     : line->cpu_hours) += hours;
                        line->cost_microusd += cost.microusd;
                        line->priced = line->priced && cost.priced;
                    }
                }
            for (const OfTokens& used : copied->tokens) {
                const std::string key = by == "user" ? used.user : by == "project" ? used.project : "gateways";
                if (!lines.contains(key)) order.push_back(key);
                for (UsageLine* line : {&lines[key], &total}) {
                    line->tokens += used.sum.tokens;
                    line->requests += used.sum.requests;
                    line->cost_microusd += used.sum.microusd;
                }
            }
            UsageView view;
            view.from = rfc3339(from);
            view.to = rfc3339(copied->to);
            view.by = by;
            view.currency = prices.currency;
            view.source = prices.source;
            for (const std::string& key : order) {
                lines[key].key = key;
                view.items.push_back(lines[key]);
            }
            view.total = total;
            exchange->send(codec::write(view));
        });
}

}  // namespace stoker::api
