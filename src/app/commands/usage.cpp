// stoker usage: who used how much, and what it cost.
#include <fmt/format.h>

#include <algorithm>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/commands/focus_csv.h"
#include "app/commands/usage_bill.h"
#include "app/commands/usage_sacct.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "govern/budget.h"
#include "io/files.h"
#include "observe/gpu/gpu_waste.h"
#include "server/views_limits.h"
#include "server/views_observe.h"
#include "server/views_waste.h"

namespace stoker {

namespace {

std::string hours(double value) {
    return value == 0 ? "-" : value < 0.01 ? fmt::format("{:.4f}", value) : fmt::format("{:.2f}", value);
}

// Money to the micro-dollar: what is added up elsewhere has to come to the same.
std::string exact_money(std::int64_t microusd) {
    const std::int64_t whole = microusd < 0 ? -microusd : microusd;
    return fmt::format("{}{}.{:06}", microusd < 0 ? "-" : "", whole / 1'000'000, whole % 1'000'000);
}

std::string count_or_dash(std::int64_t count) {
    return count == 0 ? "-" : std::to_string(count);
}

std::string micro_text(std::int64_t micro) {
    return exact_money(micro);
}

Result<CommandOutput> show_invoice(Session& session, Client& client, const std::string& month) {
    TRY(const auto invoice, get<api::Invoice>(client, "/api/v1/invoice?month=" + url_encoded(month)));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(invoice))};
    std::vector<std::vector<std::string>> rows;
    const bool of_tokens = std::any_of(invoice.items.begin(), invoice.items.end(), [](const api::InvoiceLine& line) {
        return line.resource == PricedResource::tokens;
    });
    std::int64_t tokens = 0;
    const auto row = [&](std::vector<std::string> cells, std::string count, std::string cost) {
        if (of_tokens) cells.push_back(std::move(count));
        cells.push_back(std::move(cost));
        rows.push_back(std::move(cells));
    };
    for (const api::InvoiceLine& line : invoice.items) {
        tokens += line.tokens;
        row({line.organisation + "/" + line.project, line.user,
             fmt::format("{}{}{}", enum_word(line.resource), line.model.empty() ? "" : " ", line.model),
             hours(static_cast<double>(line.micro_hours) / 1e6)},
            count_or_dash(line.tokens), line.priced || line.microusd != 0 ? exact_money(line.microusd) : "no price");
    }
    row({"in all", "", "", ""}, count_or_dash(tokens), exact_money(invoice.total_microusd));
    std::vector<Column> columns = {{"project"}, {"who"}, {"what"}, {"hours", Align::right}};
    if (of_tokens) columns.push_back({"tokens", Align::right});
    columns.push_back({invoice.currency, Align::right});
    std::string text = table_text(session.style, columns, rows, 0);
    text +=
        session.style.dim(fmt::format("{}, charged by the hour, up to {}", invoice.month, invoice.charged_to)) + "\n";
    if (!invoice.priced) text += "some of it has no price: stoker up --prices FILE\n";
    return CommandOutput{text};
}

// What a gateway charged, in the same words as stoker serve account --focus has for it.
void add_tokens(FocusCharge& charge, const api::ChargeItem& each) {
    const api::TokenItem& tokens = *each.tokens;
    charge.description = fmt::format("{} requests of {} to {}", tokens.requests, each.user, each.model);
    charge.quantity = std::to_string(tokens.tokens_in + tokens.tokens_out);
    charge.unit = "tokens";
    charge.category = "AI and Machine Learning";
    charge.service = "Inference";
    charge.resource = charge.resource_name = each.model;
    charge.resource_type = "model";
    charge.tags = Json::object()
                      .set("key", each.user)
                      .set("price_version", tokens.price_version)
                      .set("tokens_in", tokens.tokens_in)
                      .set("tokens_cached_in", tokens.cached_in)
                      .set("tokens_out", tokens.tokens_out)
                      .set("account", tokens.account)
                      .set("price_book", each.book)
                      .dump(0);
}

// One row for each charge.
Result<CommandOutput> show_focus(Client& client, const std::string& month) {
    constexpr int kMostPages = 100'000;
    std::string text = focus_head();
    std::int64_t after = 0;
    for (int page = 0; page < kMostPages; ++page) {
        TRY(const auto list,
            get<api::ChargeList>(client, fmt::format("/api/v1/charges?month={}&after={}", url_encoded(month), after)));
        for (const api::ChargeItem& each : list.items) {
            FocusCharge charge{.month = month, .from = each.from, .to = each.to, .credit = each.credit};
            charge.sku = fmt::format("{}{}{}", enum_word(each.resource), each.model.empty() ? "" : ":", each.model);
            charge.organisation = each.organisation;
            charge.project = each.project;
            charge.currency = list.currency;
            charge.cost = exact_money(each.microusd);
            if (each.tokens) {
                add_tokens(charge, each);
                text += focus_line(charge);
                continue;
            }
            const std::string run = each.run ? each.run->text() : std::string();
            charge.description = fmt::format("{} of {} on {}", charge.sku, each.attempt, each.node);
            charge.quantity = micro_text(each.micro_hours);
            charge.unit = fmt::format("{} hours", enum_word(each.resource));
            charge.category = "Compute";
            charge.service = "GPU compute";
            charge.resource = charge.resource_name = run;
            charge.resource_type = "run";
            charge.tags = Json::object().set("user", each.user).set("price_book", each.book).dump(0);
            text += focus_line(charge);
        }
        if (!list.next_after) return CommandOutput{text};
        after = *list.next_after;
    }
    return Error(ErrorKind::exhausted, "the journal is longer than what is read of it at once");
}

constexpr std::size_t kMostWasteRuns = 500, kMostBillBytes = 64u << 20;

std::string share_text(double part, double whole) {
    return whole <= 0  ? "-"
           : part <= 0 ? "0 %"
                       : fmt::format("{:.{}f} %", 100 * part / whole, part < 0.1 * whole ? 1 : 0);
}

// What came of the GPU time of each run: its hours by state, and what was wasted of them, in hours and in money.
Result<CommandOutput> show_gpu_hours(Session& session, Client& client, const Args& args) {
    std::string window;
    for (const char* name : {"from", "to"})
        if (const auto value = args.get(name)) window += fmt::format("&{}={}", name, url_encoded(*value));
    TRY(const auto usage, get<api::UsageView>(client, "/api/v1/usage?by=run" + window));
    std::vector<api::UsageLine> lines;
    for (const api::UsageLine& line : usage.items)
        if (line.gpu_hours > 0) lines.push_back(line);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.gpu_hours > b.gpu_hours; });
    const std::size_t left_out = lines.size() > kMostWasteRuns ? lines.size() - kMostWasteRuns : 0;
    lines.resize(lines.size() - left_out);
    std::string metrics;
    for (const std::string& name : waste_measures()) metrics += (metrics.empty() ? "" : ",") + name;

    struct Row {
        std::string name;
        double hours = 0, cost = 0;
        bool priced = true;
        GpuWaste waste;
    };
    std::vector<Row> found;
    Row all{.name = "in all", .waste = {}};
    for (const api::UsageLine& line : lines) {
        Row row{.name = line.key,
                .hours = line.gpu_hours,
                .cost = static_cast<double>(line.cost_microusd) / 1e6,
                .priced = line.priced,
                .waste = {}};
        const auto page = get<api::SeriesPage>(
            client, fmt::format("/api/v1/runs/{}/series?metric={}&max_points=3600{}", line.key, metrics, window));
        if (page) {
            std::vector<RankSeries> series;
            for (const api::RankSeriesView& each : page->series) {
                RankSeries& out = series.emplace_back();
                out.rank = each.rank, out.metric = each.metric, out.seconds = each.seconds;
                for (const std::vector<double>& p : each.points) {
                    if (p.size() != 5) continue;
                    SeriesPoint& point = out.points.emplace_back();
                    point.at_s = static_cast<std::int64_t>(p[0]);
                    point.min = static_cast<float>(p[1]), point.mean = static_cast<float>(p[2]);
                    point.max = static_cast<float>(p[3]), point.count = static_cast<std::uint32_t>(p[4]);
                }
            }
            row.waste = gpu_waste_of(series);
        } else if (page.error().kind() != ErrorKind::not_found) {  // forgotten since
            return page.error();
        }
        all.hours += row.hours, all.cost += row.cost, all.priced = all.priced && row.priced;
        all.waste.add(row.waste);
        found.push_back(std::move(row));
    }
    if (found.size() != 1) found.push_back(all);

    using S = AllocationState;
    // Of the time that was held and of which no figures are there nothing is known, neither work nor waste.
    const auto unseen = [](const Row& row) { return std::max(0.0, row.hours - row.waste.seen_s / 3600); };
    const auto unknown = [&](const Row& row) { return unseen(row) + row.waste.in(S::unknown) / 3600; };
    if (session.format != Format::text) {
        Json items = Json::array();
        for (const Row& row : found) {
            Json states = Json::object();
            for (const S state : {S::busy, S::underused, S::host_bound, S::stalled, S::allocated_idle})
                states.set(std::string(to_string(state)), row.waste.in(state) / 3600);
            states.set("unknown", unknown(row));
            items.push(
                Json::object()
                    .set("run", row.name)
                    .set("gpu_hours", row.hours)
                    .set("state_hours", std::move(states))
                    .set("wasted_hours_least", row.waste.least_s / 3600)
                    .set("wasted_hours_most", row.waste.most_s / 3600 + unseen(row))
                    .set("cost", row.cost)
                    .set("wasted_cost_least", row.hours > 0 ? row.cost * row.waste.least_s / 3600 / row.hours : 0.0));
        }
        return CommandOutput{
            dump(session,
                 Json::object().set("items", std::move(items)).set("left_out", static_cast<std::int64_t>(left_out)))};
    }
    if (lines.empty()) return CommandOutput{"no run held a GPU in that time\n"};
    std::vector<std::vector<std::string>> rows;
    for (const Row& row : found) {
        const auto part = [&](S state) { return share_text(row.waste.in(state) / 3600, row.hours); };
        const double least = row.waste.least_s / 3600, most = row.waste.most_s / 3600;
        rows.push_back(
            {row.name, hours(row.hours), part(S::busy), part(S::underused), part(S::host_bound), part(S::stalled),
             part(S::allocated_idle), share_text(unknown(row), row.hours),
             row.waste.seen_s <= 0             ? "not known"
             : most - least > 0.02 * row.hours ? fmt::format("{} to {}", hours(least), hours(most))
                                               : hours(least),
             row.waste.seen_s <= 0 || row.cost <= 0
                 ? (row.priced ? "-" : "no price")
                 : money_text(static_cast<std::int64_t>(1e6 * row.cost * least / std::max(row.hours, 1e-12)))});
    }
    std::string text = table_text(session.style,
                                  {{"run"},
                                   {"GPU hours", Align::right},
                                   {"busy", Align::right},
                                   {"underused", Align::right},
                                   {"host bound", Align::right},
                                   {"stalled", Align::right},
                                   {"idle", Align::right},
                                   {"unknown", Align::right},
                                   {"wasted hours", Align::right},
                                   {"their cost", Align::right}},
                                  rows, 0);
    text += session.style.dim(
                "wasted: hours in which multiprocessors stood still, or spun without a step; `stoker explain RUN` says "
                "why") +
            "\n";
    if (left_out > 0) text += fmt::format("{} more runs held GPUs; --from and --to take fewer\n", left_out);
    return CommandOutput{text};
}

// What was held and did nothing.
Result<CommandOutput> show_waste(Session& session, Client& client, const Args& args) {
    std::string target = "/api/v1/waste?by=" + args.get_or("by", "user");
    for (const char* name : {"from", "to"})
        if (const auto value = args.get(name)) target += fmt::format("&{}={}", name, url_encoded(*value));
    constexpr double kLongS = 120;
    TRY(const Document answer, client.get(target, kLongS));
    TRY(const auto report, typed<api::WasteReport>(answer));
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(report))};
    std::vector<std::vector<std::string>> rows;
    api::WasteLine total;
    const auto row = [&](const api::WasteLine& line, const std::string& name, const std::string& cause) {
        rows.push_back({name, cause, line.runs > 0 ? std::to_string(line.runs) : "", hours(line.gpu_hours),
                        hours(line.cpu_hours), hours(line.node_hours),
                        line.priced || line.cost_microusd > 0
                            ? money_text(line.cost_microusd) + (line.priced ? "" : " and more")
                            : "no price"});
    };
    for (const api::WasteLine& line : report.items) {
        row(line, line.key, line.cause);
        total.gpu_hours += line.gpu_hours, total.cpu_hours += line.cpu_hours, total.node_hours += line.node_hours;
        total.cost_microusd += line.cost_microusd;
        total.priced = total.priced && line.priced;
    }
    if (report.items.size() > 1) row(total, "wasted in all", "");
    row(report.held, "of what was held", "");
    for (const api::WasteLine& line : report.free) row(line, "held by " + line.key, line.cause);
    std::string text = table_text(session.style,
                                  {{report.by},
                                   {"cause"},
                                   {"runs", Align::right},
                                   {"GPU hours", Align::right},
                                   {"CPU hours", Align::right},
                                   {"node hours", Align::right},
                                   {"cost", Align::right}},
                                  rows, 0);
    text += session.style.dim(fmt::format("{} to {}", report.from.substr(0, 16), report.to.substr(0, 16))) + "\n";
    if (report.unknown > 0)
        text += session.style.dim(fmt::format("of {} run{} nothing was measured: what is not known counts as busy",
                                              report.unknown, report.unknown == 1 ? "" : "s")) +
                "\n";
    if (report.left_out > 0)
        text += session.style.dim(
                    fmt::format("{} older runs were left out: --from and --to cut the time", report.left_out)) +
                "\n";
    return CommandOutput{text};
}

Result<CommandOutput> run_usage(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    if (args.has("waste")) {
        const std::string by = args.get_or("by", "user");
        if (args.has("month") || args.has("focus") || args.has("gpus") || args.has("against"))
            return Error(ErrorKind::invalid, "--waste, --gpus, --against and --month: give one of them", {},
                         "stoker usage --waste --from 2026-11-01 --to 2026-12-01");
        if (by != "user" && by != "project" && by != "run")
            return Error(ErrorKind::invalid, fmt::format("--waste is not counted by {}", by), {},
                         "--by user, project or run");
        return show_waste(session, *client, args);
    }
    if (args.has("focus") && !args.has("month"))
        return Error(ErrorKind::invalid, "--focus needs a month", {}, "stoker usage --month 2026-11 --focus");
    if (const auto month = args.get("month")) {
        for (const char* name : {"by", "from", "to", "gpus", "against"})
            if (args.has(name))
                return Error(ErrorKind::invalid, fmt::format("--month and --{}: give one of them", name));
        if (!month_window(*month))
            return Error(ErrorKind::invalid,
                         fmt::format("--month is {}, expected one like 2026-11", printable(*month, 40)));
        return args.has("focus") ? show_focus(*client, *month) : show_invoice(session, *client, *month);
    }
    if (args.has("against")) {
        for (const char* name : {"by", "gpus"})
            if (args.has(name))
                return Error(ErrorKind::invalid, fmt::format("--against and --{}: give one of them", name));
        if (const std::string where = args.get_or("against", "sacct"); where != "sacct") {
            TRY(const std::string text, read_file(where, kMostBillBytes));
            if (is_cloud_bill(text)) return compare_with_bill(session, *client, args, text);
        }
        return compare_with_sacct(session, *client, args);
    }
    if (args.has("gpus")) {
        if (args.has("by") && args.get_or("by", "run") != "run")
            return Error(ErrorKind::invalid, "--gpus is told of runs", {}, "leave --by out");
        return show_gpu_hours(session, *client, args);
    }
    std::string target = "/api/v1/usage?by=" + args.get_or("by", "user");
    for (const char* name : {"from", "to"})
        if (const auto value = args.get(name)) target += fmt::format("&{}={}", name, url_encoded(*value));
    TRY(const Document document, client->get(target));
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(document.root()))};
    TRY(const auto usage, typed<api::UsageView>(document));
    std::vector<std::vector<std::string>> rows;
    bool unpriced = false;
    const bool of_tokens = usage.total.requests > 0;
    const auto row = [&](const api::UsageLine& line, const std::string& name) {
        unpriced = unpriced || !line.priced;
        rows.push_back({name, hours(line.gpu_hours), hours(line.cpu_hours), hours(line.node_hours)});
        if (of_tokens) rows.back().push_back(count_or_dash(line.tokens));
        rows.back().push_back(line.priced || line.cost_microusd > 0
                                  ? money_text(line.cost_microusd) + (line.priced ? "" : " and more")
                                  : "no price");
    };
    for (const api::UsageLine& line : usage.items) row(line, line.key);
    if (usage.items.size() != 1) row(usage.total, "in all");
    std::vector<Column> columns = {
        {usage.by}, {"GPU hours", Align::right}, {"CPU hours", Align::right}, {"node hours", Align::right}};
    if (of_tokens) columns.push_back({"tokens", Align::right});
    columns.push_back({"cost", Align::right});
    std::string text = table_text(session.style, columns, rows, 0);
    text += session.style.dim(fmt::format("{}{}{}", usage.from.empty() ? "until " : usage.from + " to ", usage.to,
                                          usage.source.empty() ? "" : ", prices: " + usage.source)) +
            "\n";
    if (unpriced) text += "some of it has no price: stoker up --prices FILE\n";
    return CommandOutput{text};
}

}  // namespace

CliCommand usage_command() {
    CliCommand command{
        .name = "usage",
        .summary = "who held what for how long, and what it cost",
        .usage = "stoker usage [options]",
        .description =
            "Sums the intervals in which runs held machines, by user, project, node or run: from the moment a place "
            "was taken to the moment it was given back. Cost is interval times price book (stoker up --prices).\n"
            "--gpus says what came of GPU time, from what the driver told of the boards that each run was on: a share "
            "that is not known is told as such, and waste is an interval where utilisation alone is known.\n"
            "Tokens that gateways were charged for (tokens: of the server's configuration) count beside machines, by "
            "whole days, the last 92 of them.\n"
            "--month adds up what was charged: written into the journal every hour and at the end of each try, by "
            "the prices of that moment, and kept for 25 months after the runs themselves were forgotten.\n"
            "--waste judges minutes by every signal that is known (processors, disks, steps, GPUs): idle is only what "
            "all of them call idle, ten minutes in a row, and what is not known counts as busy.\n"
            "--against holds each try on Slurm against the cluster's accounting and says where the two part; the exit "
            "code is then 1. Where sacct is on another machine, give a file with what it printed. With a file of costs "
            "as Azure exports it (cost details of an agreement, or FOCUS; CSV), each machine and scale set of the bill "
            "is "
            "held against what was charged here for the nodes of that name, and what is billed for machines that "
            "nobody held is said.",
        .examples = {"stoker usage", "stoker usage --by run --from 2026-11-01", "stoker usage --by node -o json",
                     "stoker usage --waste --by project", "stoker usage --gpus --from 2026-11-01",
                     "stoker usage --against sacct --from 2026-11-01", "stoker usage --against azure-costs.csv",
                     "stoker usage --month 2026-11", "stoker usage --month 2026-11 --focus > charges.csv"},
        .options = {{.name = "by",
                     .value = "WHAT",
                     .help = "one line for each (user)",
                     .choices = {"user", "project", "node", "engine", "run"}},
                    {.name = "waste",
                     .help = "what was held and did nothing, by cause: no work, waiting for data, deployment, "
                             "forgotten; and what nobody held, because of a quota or not (the last week)"},
                    {.name = "from", .value = "DATE", .help = "since then: 2026-11-01 or RFC 3339"},
                    {.name = "to", .value = "DATE", .help = "until then"},
                    {.name = "gpus", .help = "what came of the GPU time of each run, and what waste cost"},
                    {.name = "against",
                     .value = "FILE",
                     .help = "what sacct says of the same jobs: the word sacct asks it, else a file of its output (the "
                             "last 30 days); or a bill of Azure, as CSV"},
                    {.name = "month", .value = "MONTH", .help = "the invoice of a month: 2026-11, to the micro-dollar"},
                    {.name = "focus", .help = "with --month: every charge as CSV with the columns of FOCUS 1.2"}},
        .run = run_usage};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
