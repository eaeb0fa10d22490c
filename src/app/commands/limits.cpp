// stoker quota, budget: how much a level of the tree of tenants may hold at once, and use up in a month.
#include <cmath>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/tenant_named.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "server/views_limits.h"

namespace stoker {
namespace {

template <class View>
Result<CommandOutput> shown(Session& session, const View& view, std::string text) {
    return CommandOutput{session.format == Format::text ? std::move(text) : dump(session, codec::write(view))};
}

Result<std::string> level_given(const Args& args, std::string_view command) {
    if (args.positional.size() == 2) return args.positional[1];
    return Error(ErrorKind::invalid, "of which organisation, project or person?", {},
                 fmt::format("stoker {} {} hospital/imaging ...", command, args.positional[0]));
}

Result<std::optional<std::int64_t>> number_of(const Args& args, const char* option, double unit) {
    const auto text = args.get(option);
    if (!text) return std::optional<std::int64_t>();
    const auto number = parse_count(*text);
    if (!number.ok() || !(*number >= 0) || *number * unit > 4e15)
        return Error(ErrorKind::invalid,
                     fmt::format("--{} is {}, expected a number from 0 on", option, printable(*text, 40)));
    return std::optional(static_cast<std::int64_t>(std::llround(*number * unit)));
}

std::string count(const std::optional<std::int64_t>& milli) {
    return milli ? fmt::format("{:g}", static_cast<double>(*milli) / 1000) : "-";
}

std::string quota_table(Session& session, const api::QuotaList& list) {
    if (list.items.empty()) return "no quotas: everybody may hold what there is\n";
    std::vector<std::vector<std::string>> rows;
    for (const api::QuotaView& each : list.items)
        rows.push_back({each.scope, each.scope_name, each.resource, count(each.guaranteed_milli),
                        count(each.deserved_milli), count(each.limit_milli), count(each.used_milli),
                        count(each.waiting_milli)});
    return table_text(session.style,
                      {{"level"},
                       {"of"},
                       {"resource"},
                       {"guaranteed", Align::right},
                       {"deserved", Align::right},
                       {"limit", Align::right},
                       {"held", Align::right},
                       {"waiting", Align::right}},
                      rows, 1);
}

Result<CommandOutput> run_quota(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    if (verb == "list") {
        TRY(const auto client, connect_to_look(args));
        TRY(const auto list, get<api::QuotaList>(*client, "/api/v1/quotas"));
        return shown(session, list, quota_table(session, list));
    }
    TRY(const std::string level, level_given(args, "quota"));
    Json body = Json::object().set("resource", args.get_or("resource", "gpu"));
    bool any = false;
    for (const char* name : {"guaranteed", "deserved", "limit"}) {
        TRY(const auto milli, number_of(args, name, 1000));
        if (milli) body.set(std::string(name) + "_milli", *milli);
        any = any || milli;
    }
    if (any != (verb == "set"))
        return Error(ErrorKind::invalid, any ? "stoker quota remove takes no numbers" : "stoker quota set: how much?",
                     {}, "stoker quota set hospital/imaging --guaranteed 8 --limit 16");
    TRY(const auto client, connect(args));
    TRY(const std::string scope, scope_named(*client, level));
    TRY(const auto list, post<api::QuotaList>(*client, "/api/v1/quotas", body.set("scope", scope)));
    return shown(session, list, quota_table(session, list));
}

std::string amount(BudgetUnit unit, std::int64_t micro) {
    return unit == BudgetUnit::usd ? money_text(micro) : fmt::format("{:.2f} h", static_cast<double>(micro) / 1e6);
}

std::string budget_table(Session& session, const api::BudgetList& list) {
    if (list.items.empty()) return "no budgets\n";
    std::vector<std::vector<std::string>> rows;
    for (const api::BudgetView& each : list.items) {
        std::string told;
        for (const std::string& mark : each.told) {
            const bool number = mark.find_first_not_of("0123456789") == std::string::npos;
            told += (told.empty() ? "" : ", ") + mark + (number ? "%" : "");
        }
        const double percent =
            each.limit_micro > 0 ? 100.0 * static_cast<double>(each.used_micro) / static_cast<double>(each.limit_micro)
                                 : 0;
        rows.push_back({each.scope, each.scope_name, each.unit == BudgetUnit::usd ? "money" : "GPU hours",
                        amount(each.unit, each.limit_micro), amount(each.unit, each.used_micro),
                        fmt::format("{:.0f}%", percent), amount(each.unit, each.rate_micro_per_h) + "/h",
                        amount(each.unit, each.used_micro + each.committed_micro), told});
    }
    return table_text(session.style,
                      {{"level"},
                       {"of"},
                       {"budget of"},
                       {"limit", Align::right},
                       {"used", Align::right},
                       {"", Align::right},
                       {"now", Align::right},
                       {"if it runs on", Align::right},
                       {"told"}},
                      rows, 1) +
           session.style.dim(
               fmt::format("of {}, until {}", list.items.front().month, list.items.front().ends_at.substr(0, 10))) +
           "\n";
}

Result<CommandOutput> run_budget(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    if (verb == "list") {
        TRY(const auto client, connect_to_look(args));
        TRY(const auto list, get<api::BudgetList>(*client, "/api/v1/budgets"));
        return shown(session, list, budget_table(session, list));
    }
    TRY(const std::string level, level_given(args, "budget"));
    TRY(const auto usd, number_of(args, "usd", 1e6));
    TRY(const auto hours, number_of(args, "gpu-hours", 1e6));
    Json body = Json::object();
    if (verb == "set") {
        if (usd.has_value() == hours.has_value())
            return Error(ErrorKind::invalid, "stoker budget set takes --usd or --gpu-hours, one of them", {},
                         "stoker budget set hospital/imaging --usd 5000");
        body.set("limit_micro", usd ? *usd : *hours).set("unit", usd ? "usd" : "gpu_hours");
        body.set("on_exhausted", args.has("block-new") ? "block_new" : "stop_all");
        if (args.has("reserve")) body.set("reserve", true);
    } else {
        if (usd || (hours && *hours != 0) || args.has("block-new") || args.has("reserve"))
            return Error(ErrorKind::invalid, "stoker budget remove takes no numbers", {},
                         "--gpu-hours 0 for the budget in GPU hours; else it is the one in money");
        body.set("unit", hours ? "gpu_hours" : "usd").set("remove", true);
    }
    TRY(const auto client, connect(args));
    TRY(const std::string scope, scope_named(*client, level));
    TRY(const auto list, post<api::BudgetList>(*client, "/api/v1/budgets", body.set("scope", scope)));
    return shown(session, list, budget_table(session, list));
}

}  // namespace

CliCommand quota_command() {
    return with_client(
        {.name = "quota",
         .summary = "how much an organisation, project or person may hold at once: list, set, remove",
         .usage = "stoker quota list | set LEVEL [--guaranteed N] [--deserved N] [--limit N] | remove LEVEL",
         .description =
             "A level is an organisation (hospital), a project (hospital/imaging) or somebody in it "
             "(hospital/imaging/anna). Within the guarantee a run is owed its place: what others borrowed is told "
             "to go, and gone within the notice of 120 s and its own grace. Up to what is deserved it has a fair "
             "claim; above, it borrows what is idle, if it can go in time: it has a checkpoint folder, or a timeout "
             "of at most 120 s. Above the limit nothing starts, and stoker describe says which number of which level "
             "it is.\n"
             "Where nothing is deserved by word, it is what is guaranteed. set replaces all three numbers.",
         .examples = {"stoker quota set hospital/imaging --guaranteed 8 --limit 16",
                      "stoker quota set hospital --resource gpu:H100 --limit 32",
                      "stoker quota set hospital/imaging/anna --resource cpu --limit 64", "stoker quota list",
                      "stoker quota remove hospital/imaging"},
         .options = {{.name = "resource", .value = "WHAT", .help = "gpu, cpu, or one kind: gpu:H100 (gpu)"},
                     {.name = "guaranteed", .value = "N", .help = "owed, and made room for"},
                     {.name = "deserved", .value = "N", .help = "above it, it borrows (what is guaranteed)"},
                     {.name = "limit", .value = "N", .help = "above it nothing starts (none)"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "set", "remove"},
         .run = run_quota});
}

CliCommand budget_command() {
    return with_client(
        {.name = "budget",
         .summary = "how much an organisation, project or person may use in a month: list, set, remove",
         .usage = "stoker budget list | set LEVEL --usd N | --gpu-hours N [--block-new] [--reserve] | remove LEVEL",
         .description =
             "Of a calendar month, UTC, in dollars by the price book or in GPU hours. It warns at 50, 80 and 100 % "
             "and when what runs will not fit, each once a month (stoker journal show, GET /api/v1/events). What "
             "runs is told to stop so early that a notice of 60 s and its own grace still fit: the limit is overrun "
             "by less than one notice costs. What is stopped queues again, and goes on when the month is over or "
             "the budget is raised.",
         .examples = {"stoker budget set hospital/imaging --usd 5000",
                      "stoker budget set hospital --gpu-hours 2000 --block-new", "stoker budget list",
                      "stoker budget remove hospital/imaging", "stoker budget remove hospital --gpu-hours 0"},
         .options = {{.name = "usd", .value = "N", .help = "set: in dollars"},
                     {.name = "gpu-hours", .value = "N", .help = "set: in GPU hours; remove: 0 means that one"},
                     {.name = "block-new", .help = "set: nothing new starts, and what runs goes on"},
                     {.name = "reserve", .help = "set: a run starts only if its whole length fits"}},
         .min_positional = 1,
         .max_positional = 2,
         .subcommands = {"list", "set", "remove"},
         .run = run_budget});
}

}  // namespace stoker
