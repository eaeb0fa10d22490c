// What concerns the server as a whole: health, metrics, version, events, usage, backup.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "app/server/api_time.h"
#include "app/server/event_view.h"
#include "app/server/handlers.h"
#include "app/server/run_view.h"
#include "app/version.h"
#include "base/text.h"
#include "run/journal_care.h"

namespace stoker::api {
namespace {

std::int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

// A label's value in the text format of Prometheus.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out + "\"";
}

class MetricsText {
public:
    void family(std::string_view name, std::string_view type, std::string_view help) {
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    void value(std::string_view name, double value, const std::string& labels = {}) {
        text_ += fmt::format("{}{} {:.17g}\n", name, labels.empty() ? "" : "{" + labels + "}", value);
    }
    void one(std::string_view name, std::string_view type, std::string_view help, double v) {
        family(name, type, help);
        value(name, v);
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

struct Counted {
    std::array<std::int64_t, 10> runs{};
    std::int64_t queued = 0, live = 0, operations = 0, unknown = 0, records = 0;
    std::array<std::int64_t, enum_names(NodeState{}).size()> nodes{};
    std::array<std::int64_t, enum_names(HealthVerdict{}).size()> checked{};
    std::int64_t under_check = 0;
    double oldest_queued_s = 0;
    std::uint64_t epoch = 0;
    bool recovering = false;
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
    return c;
}

std::string metrics_text(Service& service, const Counted& c) {
    MetricsText out;
    out.family("stoker_build_info", "gauge", "Which Stoker this is.");
    out.value("stoker_build_info", 1, "version=" + quoted(version().number) + ",commit=" + quoted(version().commit));
    out.family("stoker_runs", "gauge", "Runs by state.");
    for (const auto& [state, name] : enum_names(RunState{}))
        out.value("stoker_runs", static_cast<double>(c.runs[static_cast<std::size_t>(state)]), "state=" + quoted(name));
    out.one("stoker_queue_length", "gauge", "Runs that wait for a place.", static_cast<double>(c.queued));
    out.one("stoker_queue_oldest_seconds", "gauge", "How long the longest waiting of them has waited.",
            c.oldest_queued_s);
    out.one("stoker_runs_live", "gauge", "Runs that hold places.", static_cast<double>(c.live));
    out.family("stoker_nodes", "gauge", "Nodes by state.");
    for (const auto& [state, name] : enum_names(NodeState{}))
        out.value("stoker_nodes", static_cast<double>(c.nodes[static_cast<std::size_t>(state)]),
                  "state=" + quoted(name));
    out.family("stoker_nodes_checked", "gauge", "Nodes by the verdict of their last health check.");
    for (const auto& [verdict, name] : enum_names(HealthVerdict{}))
        out.value("stoker_nodes_checked", static_cast<double>(c.checked[static_cast<std::size_t>(verdict)]),
                  "verdict=" + quoted(name));
    out.one("stoker_nodes_under_check", "gauge", "Health checks under way.", static_cast<double>(c.under_check));
    out.one("stoker_operations_open", "gauge", "Effects intended and not answered for good.",
            static_cast<double>(c.operations));
    out.one("stoker_operations_unknown", "gauge", "Of these, those whose answer was lost.",
            static_cast<double>(c.unknown));
    out.one("stoker_recovering", "gauge", "1 until everything outside was listed once.", c.recovering ? 1 : 0);
    out.one("stoker_epoch", "counter", "Starts of the server on this journal.", static_cast<double>(c.epoch));
    const EngineStats stats = service.engine().stats();
    out.one("stoker_journal_records_total", "counter", "Records in the journal.", static_cast<double>(c.records));
    out.one("stoker_journal_bytes", "gauge", "Size of the journal.", static_cast<double>(stats.journal_bytes));
    out.family("stoker_commit_seconds", "summary", "Time of a commit, of the last 1,024.");
    out.value("stoker_commit_seconds", stats.commit_p50_s, "quantile=\"0.5\"");
    out.value("stoker_commit_seconds", stats.commit_p99_s, "quantile=\"0.99\"");
    out.value("stoker_commit_seconds_count", static_cast<double>(stats.turns));
    out.one("stoker_commands_total", "counter", "Commands taken since the start.", static_cast<double>(stats.commands));
    out.one("stoker_commands_waiting", "gauge", "Commands not yet taken.", static_cast<double>(stats.waiting_commands));
    out.one("stoker_effects_total", "counter", "Driver calls since the start.", static_cast<double>(stats.effects));
    out.one("stoker_effects_waiting", "gauge", "Driver calls that wait for a thread.",
            static_cast<double>(stats.waiting_effects));
    out.one("stoker_effects_running", "gauge", "Driver calls under way.", static_cast<double>(stats.running_effects));
    out.one("stoker_facts_total", "counter", "Facts seen since the start.", static_cast<double>(stats.facts));
    out.one("stoker_clock_jump_seconds", "gauge", "How far the wall clock was moved since the start.",
            stats.clock_jump_s);
    out.one("stoker_api_waiting", "gauge", "Long polls.", static_cast<double>(service.waiting()));
    out.one("stoker_api_streams", "gauge", "Live streams of events.", static_cast<double>(service.streams().size()));
    out.one("process_resident_memory_bytes", "gauge", "Resident memory.", static_cast<double>(resident_bytes()));
    std::string text = out.take();
    if (service.options().more_metrics) text += service.options().more_metrics();
    return text;
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
        exchange, [](const EngineView& view) -> Result<Counted> { return count(view); },
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

std::vector<UsageInterval> intervals_of(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us) {
    std::vector<UsageInterval> out;
    const RankNeeds& needs = run.spec.per_rank;
    for (const Attempt& attempt : run.attempts) {
        const std::int64_t to = attempt.ended_us != 0 ? attempt.ended_us : now_us;
        for (const RankPlace& place : attempt.places) {
            const NodeInfo* found = state.find_node(place.node);
            UsageInterval each{.resource = PricedResource::cpu,
                               .node = place.node,
                               .model = "",
                               .milli = needs.cpu_milli,
                               .from_us = attempt.created_us,
                               .to_us = to};
            // A node with a price of its own is paid by the largest share that a rank takes of it.
            const bool whole = std::any_of(prices.prices.begin(), prices.prices.end(), [&](const BookPrice& price) {
                return price.resource == PricedResource::node && (price.node.empty() || price.node == place.node);
            });
            if (whole && found != nullptr) {
                const NodeInfo& info = *found;
                std::int64_t share = info.cpu_milli > 0 ? 1000 * needs.cpu_milli / info.cpu_milli : 0;
                if (!info.devices.empty())
                    share = std::max(share, std::int64_t{needs.gpus} * needs.gpu_milli /
                                                static_cast<std::int64_t>(info.devices.size()));
                each.resource = PricedResource::node;
                each.milli = std::min<std::int64_t>(1000, share);
                out.push_back(each);
                continue;
            }
            out.push_back(each);
            for (unsigned i = 0; i < 32; ++i) {
                if ((place.devices >> i & 1) == 0) continue;
                each.resource = PricedResource::gpu;
                each.milli = needs.gpu_milli;
                each.model = found != nullptr && i < found->devices.size() ? found->devices[i].model : needs.gpu_model;
                out.push_back(each);
            }
        }
    }
    return out;
}

void get_usage(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const std::string by = p.text("by", "run");
    const std::int64_t from = p.has("from") ? *parse_rfc3339(p.text("from")) : 0,
                       to = p.has("to") ? *parse_rfc3339(p.text("to")) : 0;
    if (to != 0 && to <= from)
        return exchange->fail(Error(ErrorKind::invalid, "to is not after from", {"query", 0, 0}));
    struct Copied {
        std::vector<Used> runs;
        std::int64_t to = 0;
    };
    service.ask<std::shared_ptr<Copied>>(
        exchange,
        [from, to, prices = service.prices()](const EngineView& view) -> Result<std::shared_ptr<Copied>> {
            auto copied = std::make_shared<Copied>();
            copied->to = to != 0 ? to : view.now_us;
            for (const auto& [id, run] : view.state.runs) {
                if (run.attempts.empty() || run.attempts.front().created_us >= copied->to ||
                    (run.ended_us != 0 && run.ended_us <= from))
                    continue;
                copied->runs.push_back({.run = id.text(),
                                        .user = run.spec.user,
                                        .project = run.spec.project,
                                        .intervals = intervals_of(view.state, run, *prices, view.now_us)});
            }
            return copied;
        },
        [&service, exchange, by, from](const std::shared_ptr<Copied>& copied) {
            const auto book = service.prices();
            const PriceBook& prices = *book;
            const UsageWindow window{from, copied->to};
            std::map<std::string, UsageLine> lines;
            std::vector<std::string> order;
            UsageLine total;
            total.key = "total";
            for (const Used& used : copied->runs)
                for (const UsageInterval& interval : used.intervals) {
                    const std::string& key = by == "user"      ? used.user
                                             : by == "project" ? used.project
                                             : by == "node"    ? interval.node
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
