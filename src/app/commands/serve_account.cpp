// stoker serve account, objectives, verify: what the ledger of a gateway says.
#include "app/commands/serve_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "app/commands/deploy_endpoint.h"
#include "app/commands/focus_csv.h"
#include "app/commands/ledger_home.h"
#include "app/listing.h"
#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "govern/budget.h"
#include "govern/ledger/ledger_scan.h"
#include "io/process.h"
#include "serve/endpoints/endpoint.h"
#include "serve/gateway/objectives.h"

namespace stoker {

Result<gateway::GatewayConfig> read_gateway_file(Session& session, const std::string& path,
                                                 const gateway::EndpointBoards& endpoints) {
    TRY(const std::string text, session.read_source(path));
    return gateway::read_gateway_config(text, path, std::filesystem::path(path).parent_path().string(), endpoints);
}

std::string gateway_file_path(const Args& args) {
    return args.get_or("config", "gateway.yaml");
}

namespace {

constexpr double kPicoPerUsd = 1e12;

// Where they are only named: nobody keeps them.
Result<gateway::EndpointBoards> endpoints_there(const Args& args) {
    TRY(const std::string folder, endpoints_path(args));
    TRY(const std::vector<Endpoint> endpoints, EndpointFolder(folder).list());
    gateway::EndpointBoards boards;
    for (const Endpoint& each : endpoints) boards.emplace(each.name, std::make_shared<ReplicaBoard>());
    return boards;
}

std::string pico_text(PicoSum picousd) {
    return fmt::format("{:.6f}", static_cast<double>(picousd) / kPicoPerUsd);
}
// Exact, for programs: all twelve decimals.
std::string exact_usd(PicoSum picousd) {
    constexpr std::int64_t kWhole = 1'000'000'000'000;
    return fmt::format("{}.{:012}", static_cast<std::int64_t>(picousd / kWhole),
                       static_cast<std::int64_t>(picousd % kWhole));
}

enum class AccountBy : std::uint8_t { key_and_model, project, key, model };

// Since when; 0: ever.
Result<std::int64_t> since_of(const Args& args) {
    const auto said = args.get("since");
    if (!said) return std::int64_t{0};
    if (const auto at = parse_rfc3339(*said)) return *at;
    const auto ago = parse_seconds(*said);
    if (!ago || ago->v <= 0)
        return Error(ErrorKind::invalid,
                     fmt::format("--since: '{}' is neither a time nor so long ago", printable(*said, 60)), {},
                     "for example --since 7d, or --since 2026-11-01T00:00:00Z");
    return wall_clock_us() - static_cast<std::int64_t>(ago->v * 1e6);
}

struct AccountLine {
    std::string name;
    std::uint64_t requests = 0, in = 0, cached_in = 0, out = 0;
    PicoSum picousd = 0;

    void add(const SettleRecord& settle) {
        ++requests;
        in += settle.in;
        cached_in += settle.cached_in;
        out += settle.out;
        picousd += settle.charge_picousd;
    }
};

// One line for each project, key or model.
Result<CommandOutput> show_account_by(Session& session, const LedgerPlace& place, AccountBy by, std::int64_t since_us) {
    std::map<std::uint64_t, AccountLine> lines;
    const ScanOptions options{.account_from_unix_us = since_us,
                              .each = [&](const ReserveRecord& reserve, const SettleRecord& settle) {
                                  lines[by == AccountBy::project ? reserve.project
                                        : by == AccountBy::key   ? reserve.key
                                                                 : reserve.model]
                                      .add(settle);
                              }};
    TRY(const LedgerScan scan, scan_ledger_in_use(*place.home, options, [&] { lines.clear(); }));
    const char* head = by == AccountBy::project ? "project" : by == AccountBy::key ? "key" : "model";
    std::vector<AccountLine> sorted;
    AccountLine all{.name = "in all"};
    for (auto& [id, line] : lines) {
        line.name = name_in(scan, id);
        all.requests += line.requests;
        all.in += line.in;
        all.out += line.out;
        all.picousd += line.picousd;
        sorted.push_back(line);
    }
    // Who costs most stands first.
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.picousd != b.picousd ? a.picousd > b.picousd : a.name < b.name;
    });
    if (session.format != Format::text) {
        Json::Array rows;
        for (const AccountLine& line : sorted)
            rows.push_back(Json::object()
                               .set(head, line.name)
                               .set("requests", line.requests)
                               .set("tokens_in", line.in)
                               .set("tokens_cached_in", line.cached_in)
                               .set("tokens_out", line.out)
                               .set("usd", exact_usd(line.picousd)));
        return CommandOutput{dump(session, Json::object()
                                               .set("ledger", place.name)
                                               .set("rows", Json(std::move(rows)))
                                               .set("usd", exact_usd(all.picousd)))};
    }
    if (sorted.empty()) return CommandOutput{fmt::format("nothing was settled in that time in {}\n", place.name)};
    std::string text =
        fmt::format("{:<32} {:>10} {:>12} {:>12} {:>14}\n", head, "requests", "tokens in", "tokens out", "USD");
    sorted.push_back(all);
    for (const AccountLine& line : sorted)
        text += fmt::format("{} {:>10} {:>12} {:>12} {:>14}\n", pad_right(cut(line.name, 32), 32), line.requests,
                            line.in, line.out, pico_text(line.picousd));
    return CommandOutput{text};
}

// What is charged under one price, in the order of the file.
struct FocusKey {
    std::string day;
    std::uint64_t tenant = 0, project = 0, key = 0, model = 0;
    std::uint32_t price_version = 0;
    friend auto operator<=>(const FocusKey&, const FocusKey&) = default;
};

// The tokens of a month in the columns of stoker usage --focus: one row for each day, key, model and version of its
// price, exact to the pico-dollar, so that they sum to what the account says.
Result<CommandOutput> show_account_focus(const LedgerPlace& place, const std::string& month) {
    const auto window = month_window(month);
    if (!window)
        return Error(ErrorKind::invalid, fmt::format("--month is {}, expected one like 2026-11", printable(month, 40)));
    constexpr std::size_t kDay = 10;
    std::map<FocusKey, AccountLine> lines;
    const ScanOptions options{
        .account_from_unix_us = window->from_us, .each = [&](const ReserveRecord& reserve, const SettleRecord& settle) {
            if (settle.finished_unix_us < window->from_us || settle.finished_unix_us >= window->to_us) return;
            lines[{rfc3339(settle.finished_unix_us).substr(0, kDay), reserve.tenant, reserve.project, reserve.key,
                   reserve.model, reserve.price_version}]
                .add(settle);
        }};
    TRY(const LedgerScan scan, scan_ledger_in_use(*place.home, options, [&] { lines.clear(); }));
    std::string text = focus_head();
    for (const auto& [key, line] : lines) {
        const auto begins = parse_rfc3339(key.day + "T00:00:00Z");
        FocusCharge charge{.month = month, .from = key.day + "T00:00:00Z"};
        charge.to = rfc3339(begins.value_or(0) + std::int64_t{86'400} * 1'000'000).substr(0, kDay) + "T00:00:00Z";
        charge.organisation = name_in(scan, key.tenant);
        charge.project = name_in(scan, key.project);
        charge.currency = "USD";
        charge.cost = exact_usd(line.picousd);
        charge.quantity = std::to_string(line.in + line.out);
        charge.unit = "tokens";
        charge.category = "AI and Machine Learning";
        charge.service = "Inference";
        charge.resource = charge.resource_name = name_in(scan, key.model);
        charge.resource_type = "model";
        charge.sku = "tokens:" + charge.resource;
        charge.description =
            fmt::format("{} requests of {} to {}", line.requests, name_in(scan, key.key), charge.resource);
        charge.tags = Json::object()
                          .set("key", name_in(scan, key.key))
                          .set("price_version", static_cast<std::int64_t>(key.price_version))
                          .set("tokens_in", line.in)
                          .set("tokens_cached_in", line.cached_in)
                          .set("tokens_out", line.out)
                          .dump(0);
        text += focus_line(charge);
    }
    return CommandOutput{text};
}

}  // namespace

Result<gateway::GatewayOptions> gateway_options(Session& session, const Args& args) {
    TRY(const auto endpoints, endpoints_there(args));
    TRY(gateway::GatewayConfig config, read_gateway_file(session, gateway_file_path(args), endpoints));
    return std::move(config.options);
}

Result<CommandOutput> show_account(Session& session, const Args& args) {
    TRY(const LedgerPlace place, ledger_place(session, args));
    if (args.has("focus") != args.has("month"))
        return Error(ErrorKind::invalid, "--focus and --month: both or none", {},
                     "stoker serve account --month 2026-11 --focus");
    if (args.has("focus")) {
        for (const char* name : {"by", "since"})
            if (args.has(name))
                return Error(ErrorKind::invalid, fmt::format("--month and --{}: give one of them", name));
        return show_account_focus(place, args.get_or("month", ""));
    }
    TRY(const std::int64_t since_us, since_of(args));
    const std::string by = args.get_or("by", "");
    if (by == "project" || by == "key" || by == "model")
        return show_account_by(session, place,
                               by == "project" ? AccountBy::project
                               : by == "key"   ? AccountBy::key
                                               : AccountBy::model,
                               since_us);
    if (!by.empty())
        return Error(ErrorKind::invalid,
                     fmt::format("--by: '{}' is none of project, key and model", printable(by, 40)));
    TRY(const LedgerScan scan, scan_ledger_in_use(*place.home, {.account_from_unix_us = since_us}));
    AccountRow all;
    for (const auto& [who, row] : scan.accounts) {
        all.requests += row.requests;
        all.in += row.in;
        all.out += row.out;
        all.picousd += row.picousd;
        all.uncounted += row.uncounted;
    }
    if (session.format != Format::text) {
        Json::Array rows;
        for (const auto& [who, row] : scan.accounts) {
            Json outcomes = Json::object();
            for (const auto& [outcome, word] : enum_names(LedgerOutcome{}))
                if (const auto count = row.outcomes[static_cast<std::size_t>(outcome)]; count > 0)
                    outcomes.set(std::string(word), count);
            rows.push_back(Json::object()
                               .set("key", name_in(scan, who.first))
                               .set("model", name_in(scan, who.second))
                               .set("requests", row.requests)
                               .set("tokens_in", row.in)
                               .set("tokens_cached_in", row.cached_in)
                               .set("tokens_out", row.out)
                               .set("usd", exact_usd(row.picousd))
                               .set("partial", row.partial)
                               .set("recovered", row.recovered)
                               .set("drift", row.drift)
                               .set("uncounted", row.uncounted)
                               .set("outcomes", std::move(outcomes)));
        }
        return CommandOutput{dump(session, Json::object()
                                               .set("ledger", place.name)
                                               .set("rows", Json(std::move(rows)))
                                               .set("open", scan.open.size())
                                               .set("usd", exact_usd(all.picousd)))};
    }
    if (scan.accounts.empty()) return CommandOutput{fmt::format("nothing was settled yet in {}\n", place.name)};
    std::string text = fmt::format("{:<20} {:<20} {:>10} {:>12} {:>12} {:>14}\n", "key", "model", "requests",
                                   "tokens in", "tokens out", "USD");
    for (const auto& [who, row] : scan.accounts)
        text += fmt::format("{} {} {:>10} {:>12} {:>12} {:>14}\n", pad_right(cut(name_in(scan, who.first), 20), 20),
                            pad_right(cut(name_in(scan, who.second), 20), 20), row.requests, row.in, row.out,
                            pico_text(row.picousd));
    text += fmt::format("{:<41} {:>10} {:>12} {:>12} {:>14}\n", "in all", all.requests, all.in, all.out,
                        pico_text(all.picousd));
    if (all.uncounted > 0)
        text += fmt::format("{} of them had images or sound whose tokens nobody said; these are not charged\n",
                            all.uncounted);
    if (!scan.open.empty())
        text +=
            fmt::format("{} more are under way, or were cut off and are settled at the next start\n", scan.open.size());
    return CommandOutput{text};
}

Result<CommandOutput> verify_ledger(Session& session, const Args& args) {
    TRY(const LedgerPlace place, ledger_place(session, args));
    TRY(const LedgerScan scan, scan_ledger_in_use(*place.home));
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("ledger", place.name)
                                               .set("sound", true)
                                               .set("segments", scan.segments)
                                               .set("records", scan.records)
                                               .set("reserved", scan.reserves)
                                               .set("settled", scan.settles)
                                               .set("open", scan.open.size())
                                               .set("torn_records", scan.torn_records))};
    return CommandOutput{fmt::format(
        "{} is sound: {} records in {} segments; {} requests reserved, {} settled once each, {} open{}\n", place.name,
        scan.records, scan.segments, scan.reserves, scan.settles, scan.open.size(),
        scan.torn_records > 0
            ? fmt::format("; {} records of a commit that nobody was told of lie behind the end", scan.torn_records)
            : "")};
}

namespace {

std::string share_text(double share) {
    return fmt::format("{:.4g} %", 100 * share);
}

Json json_of(const gateway::KeptBudget& budget) {
    Json burn = Json::object();
    for (std::size_t i = 0; i < gateway::kBurnWindows.size(); ++i)
        burn.set(gateway::kBurnWindows[i].word,
                 Json::object().set("rate", budget.burn[i]).set("alert", static_cast<bool>(budget.burns_alert[i])));
    return Json::object()
        .set("target", budget.target)
        .set("requests", budget.of)
        .set("missed", budget.missed)
        .set("good", budget.good_share())
        .set("budget_left", budget.left)
        .set("burn", std::move(burn));
}
Json json_of(const gateway::KeptTimes& times) {
    return Json::object()
        .set("requests", times.count)
        .set("p50_s", times.p50_s)
        .set("p95_s", times.p95_s)
        .set("p99_s", times.p99_s);
}

}  // namespace

// How far the models that have an objective keep it. Exit 1: one does not.
Result<CommandOutput> show_objectives(Session& session, const Args& args) {
    TRY(const auto endpoints, endpoints_there(args));
    TRY(const gateway::GatewayConfig config, read_gateway_file(session, gateway_file_path(args), endpoints));
    if (args.has("rules")) {
        const std::string rules = gateway::objective_alerts(*config.setup);
        if (rules.empty())
            return Error(ErrorKind::not_found, "no model has an objective", {},
                         "objective: {first_token: 2s, availability: 99.9} of a model in " + gateway_file_path(args));
        return CommandOutput{rules};
    }
    const std::int64_t now_us = wall_clock_us();
    auto judge = std::make_unique<gateway::ObjectiveJudge>(*config.setup, now_us);
    const ScanOptions options{
        .each = [&](const ReserveRecord& reserve, const SettleRecord& settle) { judge->take(reserve, settle); }};
    TRY(const LedgerPlace place, ledger_place(session, args));
    TRY(const LedgerScan scan, scan_ledger_in_use(*place.home, options, [&] {
            judge = std::make_unique<gateway::ObjectiveJudge>(*config.setup, now_us);
        }));
    const auto reports = judge->reports();
    const bool kept = std::all_of(reports.begin(), reports.end(), [](const auto& each) { return each.kept(); });
    if (session.format != Format::text) {
        Json::Array rows;
        for (const auto& each : reports)
            rows.push_back(Json::object()
                               .set("model", each.model)
                               .set("kept", each.kept())
                               .set("days", each.objective.window_s / 86400)
                               .set("availability", json_of(each.availability))
                               .set("times", json_of(each.times))
                               .set("first_token", json_of(each.first_token))
                               .set("answer", json_of(each.answer)));
        return CommandOutput{dump(session, Json(std::move(rows))), kept ? 0 : 1};
    }
    if (reports.empty())
        return CommandOutput{
            fmt::format("no model of {} has an objective; for example objective: {{first_token: 2s, "
                        "availability: 99.9}}\n",
                        gateway_file_path(args))};
    std::string text;
    const Style& style = session.style;
    for (const auto& each : reports) {
        text += fmt::format("{}{}  {}\n", text.empty() ? "" : "\n", style.bold(printable(each.model, 100)),
                            each.kept() ? "kept" : style.bad("not kept"));
        const auto budget = [&](const char* what, const std::string& asked, const gateway::KeptBudget& one) {
            if (one.target <= 0) return;
            text +=
                fmt::format("  {}{}: {} of {} requests in {:.0f} days", pad_right(what, 14), asked,
                            one.of == 0 ? "no" : share_text(one.good_share()), one.of, each.objective.window_s / 86400);
            text += one.left >= 0 ? fmt::format(", {} of the error budget left\n", share_text(one.left))
                                  : fmt::format(", {}\n", style.bad("the error budget is overspent"));
            std::string burns;
            for (std::size_t i = 0; i < one.burn.size(); ++i)
                burns += fmt::format("{}{:.3g} in {}{}", i == 0 ? "" : ", ", one.burn[i], gateway::kBurnWindows[i].word,
                                     one.burns_alert[i] ? style.bad(" (alert)") : "");
            text += fmt::format("  {}burn rate {}; 1 is as fast as allowed\n", pad_right("", 14), burns);
        };
        budget("availability", share_text(each.objective.availability) + " answered", each.availability);
        std::string times;
        if (each.objective.first_token_s > 0)
            times += fmt::format("first token in {}", format_seconds(Seconds(each.objective.first_token_s)));
        if (each.objective.answer_s > 0)
            times += fmt::format("{}answer in {}", times.empty() ? "" : ", ",
                                 format_seconds(Seconds(each.objective.answer_s)));
        budget("times", share_text(each.objective.met) + " with " + times, each.times);
        const auto seen = [&](const char* what, const gateway::KeptTimes& one) {
            if (one.count > 0)
                text += fmt::format("  {}p50 {}, p95 {}, p99 {}, of {}\n", pad_right(what, 14),
                                    format_seconds(Seconds(one.p50_s)), format_seconds(Seconds(one.p95_s)),
                                    format_seconds(Seconds(one.p99_s)), one.count);
        };
        seen("first token", each.first_token);
        seen("whole answer", each.answer);
    }
    return CommandOutput{text, kept ? 0 : 1};
}

}  // namespace stoker
